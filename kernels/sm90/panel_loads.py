"""An operand of the epilogue comes by TMA, into the panels in which the result is staged.

When   before the products of a tile    wait until TMA has read the panels │ load all of them
       after the products, a panel      wait until it is full │ ldmatrix │ evaluate │ stmatrix
       The loads come while the consumer multiplies, and in `pingpong` while it waits for its turn.

Where  the layout, the boxes and the rows that lanes address are those of the result: ldmatrix gives
       a thread the elements that its stmatrix overwrites. A warp reads its own rows only.
       `PanelPlan.operand_read` proves that ldmatrix is free of bank conflicts.
"""

import cutlass
import cutlass.cute as cute
from cutlass import Int64
from cutlass.cute.nvgpu import cpasync, warp

from cutedsl_gemm.kernels.device import lower
from cutedsl_gemm.kernels.plan.smem import staged_layout
from cutedsl_gemm.kernels.plan.tma import EVICT_FIRST
from cutedsl_gemm.kernels.sm90.panel_fragments import lane_rows, tiled_copy
from layouts import size
from layouts.hardware.facts import WARPGROUP


class PanelLoads:
    """One warp of a consumer issues the loads, and all of its threads read the panels."""

    def __init__(self, plan):
        self.plan = plan
        operand = plan.planned_epilogue.operands[plan.staged_operand]
        self.dtype = lower.DTYPES[operand.dtype]

    def source(self, operand):
        """The TMA load atom, and the operand (M, N) as TMA sees it."""
        panel = (self.plan.panel_rows, self.plan.panel_columns)
        load = cpasync.CopyBulkTensorTileG2SOp()
        return cpasync.make_tiled_tma_atom(
            load, operand, lower.smem_layout(self.plan.staging), panel
        )

    def tensors(self, storage, loaded, source):
        """The panels (R, P, staged_panels), the atom, the operand in panels, and the mbarriers."""
        plan, (tma, gO) = self.plan, source
        layout = staged_layout(plan.staging, plan.staged_panels)
        sO = lower.smem_tensor(storage, layout, self.dtype)
        gO = cute.local_tile(gO, (plan.panel_rows, plan.panel_columns), (None, None))
        return sO, tma, gO, loaded

    def buffer(self, consumer, panel):
        """The buffer of a panel among those of all consumers, and the number of its mbarrier."""
        return consumer * self.plan.c_stages + self.plan.operand_buffer(panel)

    @cute.jit
    def issue(self, consumer, tensors, m, n):
        """Load the panels of tile column n, in row m of panels."""
        plan, (sO, tma, gO, loaded) = self.plan, tensors
        # (box, staged_panels), (box, row of panels, panel)
        sO, gO = lower.tma_partition(tma, sO, gO)
        if cute.arch.make_warp_uniform(cute.arch.warp_idx()) % 4 == 0:
            cute.arch.cp_async_bulk_wait_group(0, read=True)
            for panel in cutlass.range_constexpr(plan.panels):
                buffer = self.buffer(consumer, panel)
                with cute.arch.elect_one():
                    cute.arch.mbarrier_arrive_and_expect_tx(loaded + buffer, plan.panel_bytes)
                cute.copy(
                    tma,
                    gO[None, m, n * plan.panels + panel],
                    sO[None, buffer],
                    tma_bar_ptr=loaded + buffer,
                    cache_policy=Int64(EVICT_FIRST),  # it is read once
                )

    @cute.jit
    def wait(self, consumer, tensors, turn, panel: cutlass.Constexpr):
        """Wait until a panel has come; the tile is number `turn` of the consumer's."""
        *_, loaded = tensors
        parity = self.plan.pipeline.parity(turn)
        cute.arch.mbarrier_wait(loaded + self.buffer(consumer, panel), parity)

    def read(self, consumer, tensors, panel, part):
        """The operand's values for a part of a panel, (None, m64, S columns), in registers."""
        sO, *_ = tensors
        ldmatrix, thread = self.make_ldmatrix(), cute.arch.thread_idx()[0] % WARPGROUP
        tO = lane_rows(self.plan, ldmatrix.get_slice(thread).partition_S(sO))
        values = cute.make_rmem_tensor((size(self.plan.fragment[0]),), self.dtype)
        cute.copy(ldmatrix, tO[(*part, self.buffer(consumer, panel))], values)
        return values

    def make_ldmatrix(self):
        """ldmatrix by four warps: 64 × S elements at a time."""
        atom = self.plan.ldmatrix
        op = warp.LdMatrix8x8x16bOp(atom.transposed, atom.matrices)
        return tiled_copy(self.plan, op, self.dtype)
