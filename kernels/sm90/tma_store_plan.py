"""TmaStorePlan: C is stored through shared memory, by stmatrix and TMA, one panel at a time.

`stmatrix_rows` is the row address of each lane. `panel_store` is the bank report of all stores into
a panel; its proof is that of ConflictFree (layouts/hardware/conflict_free.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from cutedsl_gemm.kernels.plan import tma
from cutedsl_gemm.kernels.plan.checks import BITS, count_problem, shape_problem
from cutedsl_gemm.kernels.sm90.operand import ROW
from cutedsl_gemm.kernels.sm90.plan import BY_DESCRIPTOR, Sm90Plan
from layouts import (
    BankReport,
    ComposedLayout,
    Layout,
    LayoutError,
    Proof,
    banks,
    composition,
    cosize,
    make_layout,
    size,
    stmatrix,
    wgmma_accumulator,
)
from layouts.hardware.row_addresses import row_addresses

# (thread, value) → m + 64 * n: what four warps' stmatrix.x4 stores, 16 columns of a wgmma
STMATRIX_TV = wgmma_accumulator(16)


@dataclass(frozen=True)
class TmaStorePlan(Sm90Plan):
    """A GEMM that stages C in shared memory for TMA, in panels of 64 columns."""

    # (8, R/64, 4, BN/64) = (stmatrix, m64, 16 columns, panel) → accumulator value
    fragment: Layout
    stmatrix_tv: Layout  # (thread, value) → m + 64 * n of the (64, 16) tile of one stmatrix.x4
    staging: ComposedLayout  # (R, 64) → element offset: a panel of C in shared memory
    c_stages: int  # panels that a consumer may have in flight

    @property
    def panels(self) -> int:
        """Panels of 64 columns in a tile."""
        return self.tile[1] // ROW

    @property
    def panel_bytes(self) -> int:
        """Bytes of one panel of C in shared memory."""
        return cosize(self.staging) * BITS // 8

    @property
    def staged_panels(self) -> int:
        """Panels of C in shared memory, of all consumers."""
        return self.consumers * self.c_stages

    @property
    def epilogue_smem_bytes(self) -> int:
        return self.staged_panels * self.panel_bytes

    @property
    def epilogue_smem(self) -> str:
        return f"{self.staged_panels} panels × {self.panel_bytes:,}"

    @property
    def buffers(self) -> dict[str, ComposedLayout]:
        return {**super().buffers, "C panel": self.staging}

    @property
    def stmatrix_rows(self) -> Layout:
        """The row address of each lane: (lane, warp, m64, 16 columns) → m + R * n in a panel.

        A lane gives stmatrix the address of the first of eight elements along n. Which lane
        addresses which row follows from `stmatrix_tv` (layouts/hardware/row_addresses.py).
        """
        values = composition(Layout((64, 16), (1, self.rows)), self.stmatrix_tv)
        (lane, warp, _), _ = row_addresses(stmatrix(4), values)
        m64, columns16 = Layout(self.rows // 64, 64), Layout(ROW // 16, 16 * self.rows)
        return make_layout(lane, warp, m64, columns16)

    @property
    def panel_store(self) -> BankReport:
        """The bank report of one consumer's stmatrix stores into a whole panel of C."""
        return banks(self.staging, "stmatrix.x4", lanes=self.stmatrix_rows)

    def proofs(self) -> tuple[Proof, ...]:
        return *super().proofs(), self.panel_store.proof()

    def explain_lines(self) -> Iterator[tuple[str, str]]:
        yield from super().explain_lines()
        yield "stmatrix", f"{self.stmatrix_tv}   (thread, value) → m + 64n of 64×16"
        yield "C panel", f"{self.staging}   ({self.rows}, 64)"
        report = self.panel_store
        yield "", f"{report.access} at {report.addresses}   (lane, warp, m64, 16 columns)"
        yield "", _cost(report)
        yield "", f"read by TMA, {BY_DESCRIPTOR}"

    def device_code(self) -> Any:
        """The kernel of the plan's schedule."""
        if self.schedule == "single":
            from cutedsl_gemm.kernels.sm90.single import Single

            return Single(self)
        if self.schedule == "pingpong":
            from cutedsl_gemm.kernels.sm90.pingpong import Pingpong

            return Pingpong(self)
        from cutedsl_gemm.kernels.sm90.cooperative import Cooperative

        return Cooperative(self)

    def problems(self) -> Iterator[str]:
        yield from super().problems()
        yield from shape_problem("C panel", self.staging, (self.rows, ROW))
        yield from _staging_problems(self.staging)
        yield from count_problem("c_stages", self.c_stages, 1)
        if self.panels % self.c_stages:
            yield (
                f"c_stages is {self.c_stages}; it must divide the {self.panels} panels of a tile, "
                "so that every tile begins with the same one"
            )

    def required(self) -> Iterator[tuple[str, object, str]]:
        yield from super().required()
        why = "as wgmma leaves its registers, and stmatrix takes them (PTX ISA, Matrix Fragments)"
        yield "fragment", fragment(self.rows, self.tile[1]), why
        yield "stmatrix_tv", STMATRIX_TV, why
        yield "splits", 1, "since a block stores final sums; to split K, take `split`"


def fragment(rows: int, bn: int) -> Layout:
    """(stmatrix, m64, 16 columns, panel) → value of the accumulator.

    >>> print(fragment(128, 128))
    (8,2,4,2):(1,64,8,32)
    """
    return Layout((8, rows // 64, ROW // 16, bn // ROW), (1, bn // 2, 8, ROW // 2))


def _cost(report: BankReport) -> str:
    """The wavefronts of an access, the ideal, and how that was decided."""
    found, proof = report.wavefronts, report.proof()
    how = "by rank over GF(2)" if found.ranks else "lane by lane"
    base = ", at every base" if found.every_base else ""
    why = f"proved {how}{base}" if proof else f"refuted: {proof.reason[0]}"
    name = type(proof.statement).__name__
    return f"{found.count} wavefronts, ideal {found.ideal}; {name} {why}"


def _staging_problems(staging: ComposedLayout) -> Iterator[str]:
    rows = composition(staging, (None, Layout(8)))  # stmatrix writes rows of eight elements
    for m in range(size(rows[0])):
        offsets = [rows(m, n) for n in range(8)]
        if offsets != list(range(offsets[0], offsets[0] + 8)) or offsets[0] % 8:
            yield (
                f"C panel: eight elements of row {m} have the offsets {offsets}; "
                "stmatrix writes a row as 16 contiguous bytes at a multiple of 16 "
                "(PTX ISA, stmatrix); take a layout contiguous in columns "
                "whose swizzle keeps the low 3 bits"
            )
            return
    try:
        tma.boxes(staging, contiguous=1)
    except LayoutError as error:
        yield f"C panel: {error}"
