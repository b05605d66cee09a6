"""The SIMT ladder: five fp32 GEMMs without tensor cores, each the one before with one change.

naive → coalesced → shared → block1d → block2d. Two device files serve all five: `direct` reads its
operands from global memory, `staged` copies them into shared memory first. The rest is layouts.

To add a rung, decorate a function with `SimtRung` that returns `replace(below.recipe, …)`, and add
it to `RUNGS`: the registry, the ladder and its page take it from there (docs/add-a-kernel.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from cutedsl_gemm.kernels.epilogue.expression import PLAIN, Epilogue
from cutedsl_gemm.kernels.plan.rung import Rung
from cutedsl_gemm.kernels.plan.tv_layout import TVLayout, load_layout
from cutedsl_gemm.kernels.simt.plan import Operand, SimtPlan
from layouts import Layout
from layouts.hardware.descriptor import Major

VECTOR = 4  # elements of a 16-byte access, the widest of a thread


@dataclass(frozen=True)
class Recipe:
    """What a rung decides, whatever the majors are."""

    tile: tuple[int, int, int]  # (BM, BN, BK)
    c: TVLayout  # the outputs of each thread
    copy_width: int = 0  # elements that a copy into shared memory moves at a time; 0: no copies


class SimtRung(Rung[Recipe]):
    """Called, it makes the checked plan of its recipe."""

    def __call__(
        self,
        a_major: Major = "K",
        b_major: Major = "MN",
        epilogue: Epilogue = PLAIN,
        dtype: str = "float32",
    ) -> SimtPlan:
        """The checked plan for operands of these majors. PlanError unless they are of float32."""
        recipe, a, b = self.recipe, None, None
        bm, bn, _ = recipe.tile
        if recipe.copy_width:
            # Lanes read neighbouring columns of B: K-major, one element of padding keeps them in
            # different banks.
            a = _operand(recipe, bm, a_major, padding=0)
            b = _operand(recipe, bn, b_major, padding=1)
        name = f"simt_{self.__name__}"
        plan = SimtPlan(name, recipe.tile, a_major, b_major, recipe.c, a, b, dtype, epilogue)
        return plan.check()


def _operand(recipe: Recipe, rows: int, major: Major, padding: int) -> Operand:
    """A tile (rows, BK): in shared memory as in global; for wide accesses, see `block2d`."""
    bk, width = recipe.tile[2], recipe.copy_width
    if width == 1 and major == "K":
        smem = Layout((rows, bk), (bk + padding, 1))
    else:
        smem = Layout((rows, bk), (1, rows + (VECTOR if width > 1 and major == "K" else 0)))
    return Operand(load_layout(rows, bk, major, recipe.c.threads, width), smem)


@SimtRung
def naive() -> Recipe:
    """One thread an output; neighbouring threads compute neighbouring rows.

    Costs: in row-major A and C, each access of a warp touches 32 lines of memory, one a lane.

    >>> print(naive().c.rows, naive().c.columns)
    ((32,32),(1,(1,1))):((1,0),(0,(0,0))) ((32,32),(1,(1,1))):((0,1),(0,(0,0)))
    """
    x, y = (Layout(((32, 32), (1, (1, 1))), (step, (0, (0, 0)))) for step in ((1, 0), (0, 1)))
    return Recipe((32, 32, 1), TVLayout(x, y))


@SimtRung
def coalesced() -> Recipe:
    """New: the two layouts of `naive` swap; neighbouring threads compute neighbouring columns.

    Gains: a warp reads one element of A, which all lanes share, and 128 contiguous bytes of B; it
    writes 128 contiguous bytes of C. Costs: nothing.

    >>> coalesced().c == TVLayout(naive().c.columns, naive().c.rows)
    True
    """
    below = naive.recipe
    return replace(below, c=TVLayout(below.c.columns, below.c.rows))


@SimtRung
def shared() -> Recipe:
    """New: the block copies 32×32 tiles of A and B into shared memory, each element once.

    Gains: an element is read from global memory once a block, not once a thread: 32 times less.
    Costs: 8 KB of shared memory, and two barriers each 32 steps of K.
    """
    return replace(coalesced.recipe, tile=(32, 32, 32), copy_width=1)


@SimtRung
def block1d() -> Recipe:
    """New: a thread computes eight outputs, one below the other; 512 threads, a 64×64 tile.

    Gains: an element of B, once in a register, serves eight FMAs: 9 loads from shared memory for 8
    FMAs instead of 16. Costs: registers.
    """
    shape = ((64, 8), (8, (1, 1)))
    rows, columns = Layout(shape, ((0, 8), (1, (0, 0)))), Layout(shape, ((1, 0), (0, (0, 0))))
    return replace(shared.recipe, tile=(64, 64, 8), c=TVLayout(rows, columns))


@SimtRung
def block2d() -> Recipe:
    """New: a thread computes 8×8 outputs, as 2×2 squares of 4×4; every access moves 16 bytes.

    Gains: four loads from shared memory bring 16 elements for 64 FMAs. Costs: about 120
    registers a thread, and addresses that are multiples of 16 bytes. An operand is MN-major in
    shared memory, so that four rows are 16 bytes. If it is K-major in global memory, its columns
    are padded by 4 elements, so that the lanes that store one vector use different banks.
    """
    lanes, warps = (8, 4), (2, 4)  # along N, along M
    shape = ((*lanes, *warps), ((4, 2), (4, 2)))
    rows = Layout(shape, ((0, 4, 0, 16), ((1, 64), (0, 0))))
    columns = Layout(shape, ((4, 0, 32, 0), ((0, 0), (1, 64))))
    return replace(block1d.recipe, tile=(128, 128, 8), c=TVLayout(rows, columns), copy_width=VECTOR)


RUNGS: tuple[SimtRung, ...] = (naive, coalesced, shared, block1d, block2d)
