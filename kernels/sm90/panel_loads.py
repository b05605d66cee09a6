"""Matrices of the epilogue come by TMA, into the panels in which results are staged.

When   before the products of a tile    wait until TMA has read the buffers │ load the first panels
       after the products, a panel      wait until it is full │ ldmatrix │ evaluate │ stmatrix │
                                        store │ wait until TMA has read it │ load a later panel
       The first loads come while the consumer multiplies, and in `pingpong` while it waits for its
       turn; the later ones while the panels in between, if any, are evaluated.

Where  the layout, the boxes and the rows that lanes address are those of the results: ldmatrix
       gives a thread the elements that its stmatrix overwrites. A warp reads its own rows only.
       `PanelPlan.operand_read` proves that ldmatrix is free of bank conflicts.
"""

import cutlass
import cutlass.cute as cute
from cutlass import Int64
from cutlass.cute.nvgpu import cpasync, warp

from cutedsl_gemm.kernels.device import lower
from cutedsl_gemm.kernels.device.tile import matrix_of
from cutedsl_gemm.kernels.plan.smem import staged_layout
from cutedsl_gemm.kernels.plan.tma import EVICT_FIRST
from cutedsl_gemm.kernels.sm90.panel_fragments import issues_tma, lane_rows, tiled_copy
from layouts import size
from layouts.hardware.facts import WARPGROUP


class PanelLoads:
    """One warp of a consumer issues the loads, and all of its threads read the panels."""

    def __init__(self, plan):
        self.plan = plan
        self.operands = plan.planned_epilogue.operands
        self.dtypes = [lower.DTYPES[self.operands[i].dtype] for i in plan.staged_operands]

    def source(self, i, operand):
        """The TMA load atom, and operand i, (M, N) or ((M, L), N), as TMA sees it."""
        load, panel = cpasync.CopyBulkTensorTileG2SOp(), self.tiler(i)
        return cpasync.make_tiled_tma_atom(
            load, operand, lower.smem_layout(self.plan.staging), panel
        )

    def tiler(self, i):
        """The tiler of a panel of operand i."""
        panel = self.plan.panel_rows, self.plan.panel_columns
        return self.plan.gmem_tiler(panel) if self.operands[i].batched else panel

    def tensors(self, storage, loaded, operands):
        """For each operand, its panels (R, P, staged_panels), the atom, and the operand in panels.

        Then the mbarriers, one for each panel of a consumer's part of a tile.
        """
        plan, found = self.plan, []
        layout = staged_layout(plan.staging, plan.staged_panels)
        for i, dtype in zip(plan.staged_operands, self.dtypes, strict=True):
            tma, gO = operands[i]
            sO = lower.smem_tensor(storage, layout, dtype)
            found.append((sO, tma, cute.local_tile(gO, self.tiler(i), (None, None))))
        return *found, loaded

    def of_matrix(self, tensors, matrix):
        """The `tensors` for one of the matrices of a batch."""
        *found, loaded = tensors
        pairs = zip(found, self.plan.staged_operands, strict=True)
        of_matrix = (
            (sO, tma, matrix_of(gO, matrix) if self.operands[i].batched else gO)
            for (sO, tma, gO), i in pairs
        )
        return *of_matrix, loaded

    def mbarrier(self, loaded, consumer, panel):
        """The mbarrier of a panel, of all operands."""
        return loaded + (consumer * self.plan.panels + panel)

    def first(self, consumer, tensors, m, n):
        """Load as many panels of a tile as there are buffers for."""
        self.issue(consumer, tensors, m, n, range(self.plan.panel_stages))

    def after(self, consumer, tensors, m, n, panel):
        """Load the panel that takes the buffers of one that is stored, if the tile has it."""
        later = panel + self.plan.panel_stages
        if later < self.plan.panels:
            self.issue(consumer, tensors, m, n, [later])

    @cute.jit
    def issue(self, consumer, tensors, m, n, panels: cutlass.Constexpr):
        """Load `panels` of tile column n, in row m of panels, when TMA has read their buffers."""
        plan, (*operands, loaded) = self.plan, tensors
        # (box, staged_panels), (box, row of panels, panel)
        parts = [(tma, *lower.tma_partition(tma, sO, gO)) for sO, tma, gO in operands]
        of_all = len(parts) * plan.panel_bytes
        if issues_tma():
            cute.arch.cp_async_bulk_wait_group(0, read=True)
            for panel in panels:
                full = self.mbarrier(loaded, consumer, panel)
                with cute.arch.elect_one():
                    cute.arch.mbarrier_arrive_and_expect_tx(full, of_all)
                for slot, (tma, sO, gO) in enumerate(parts):
                    cute.copy(
                        tma,
                        gO[None, m, n * plan.panels + panel],
                        sO[None, plan.staged_panel(consumer, panel, slot)],
                        tma_bar_ptr=full,
                        cache_policy=Int64(EVICT_FIRST),  # it is read once
                    )

    @cute.jit
    def wait(self, consumer, tensors, tiles_done, panel: cutlass.Constexpr):
        """Wait until each operand's panel has come, after `tiles_done` of the consumer's tiles."""
        *_, loaded = tensors
        parity = self.plan.pipeline.parity(tiles_done)
        cute.arch.mbarrier_wait(self.mbarrier(loaded, consumer, panel), parity)

    def read(self, consumer, tensors, panel, part):
        """By operand, its values for a part of a panel, (None, m64, S columns), in registers."""
        *operands, _ = tensors
        thread, found = cute.arch.thread_idx()[0] % WARPGROUP, {}
        for slot, (sO, *_) in enumerate(operands):
            ldmatrix = self.make_ldmatrix(self.dtypes[slot])
            tO = lane_rows(self.plan, ldmatrix.get_slice(thread).partition_S(sO))
            values = cute.make_rmem_tensor((size(self.plan.fragment[0]),), self.dtypes[slot])
            cute.copy(ldmatrix, tO[(*part, self.plan.staged_panel(consumer, panel, slot))], values)
            found[self.plan.staged_operands[slot]] = values
        return found

    def make_ldmatrix(self, dtype):
        """ldmatrix by four warps: 64 × S elements at a time."""
        atom = self.plan.ldmatrix
        op = warp.LdMatrix8x8x16bOp(atom.transposed, atom.matrices)
        return tiled_copy(self.plan, op, dtype)
