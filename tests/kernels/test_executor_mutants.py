"""A plan that is wrong anywhere is refused by its executor, or gives a wrong answer.

`check` is not called: the executor by itself must notice. Each case is a plan of the ladder with
one change. C has several tiles each way, the last ones cut, and K has more k-tiles than stages.
"""

from dataclasses import fields, replace

import pytest

from cutedsl_gemm.kernels.plan.raster import Raster
from cutedsl_gemm.kernels.plan.tv_layout import TVLayout, load_layout
from cutedsl_gemm.kernels.simt.rungs import block1d, block2d, coalesced, naive, shared
from cutedsl_gemm.kernels.sm70.plan import volta884
from cutedsl_gemm.kernels.sm80.accumulator import accumulator
from cutedsl_gemm.kernels.sm80.operand import tile_smem
from cutedsl_gemm.kernels.sm80.rungs import (
    ahead,
    ldmatrix_x4,
    mma_k8,
    multistage,
    swizzled,
    wide,
)
from layouts import Layout, make_layout
from tests.kernels.ladder import exact, wrong


class Order(Raster):
    """A raster with a fault."""

    def __init__(self, fault):
        super().__init__(2)
        object.__setattr__(self, "fault", fault)

    def __call__(self, index, tiles_m, tiles_n, minimum=min):
        return self.fault(*super().__call__(index, tiles_m, tiles_n, minimum), tiles_m, tiles_n)


FAULTS = {
    "forgets the last row": lambda m, n, tiles_m, tiles_n: (min(m, tiles_m - 2), n),
    "forgets one tile": lambda m, n, tiles_m, tiles_n: (m, n) if m + n else (0, 1),
    "changes M and N": lambda m, n, tiles_m, tiles_n: (n, m),
    "leaves C": lambda m, n, tiles_m, tiles_n: (m + 1, n),
}


def like(plan, **methods):
    """The same plan, of a class with other properties or methods."""
    cls = type(plan.__class__.__name__, (plan.__class__,), methods)
    return cls(**{field.name: getattr(plan, field.name) for field in fields(plan)})


def with_a(plan, **change):
    return replace(plan, a=replace(plan.a, **change))


def once(copy):
    """The copy whose threads load their first line again and again."""
    rows = copy.rows.stride[0], (0, copy.rows.stride[1][1])
    columns = copy.columns.stride[0], (0, copy.columns.stride[1][1])
    return TVLayout(Layout(copy.rows.shape, rows), Layout(copy.rows.shape, columns))


def overlapping(plan):
    """The stages of both operands in one place."""

    def smem(operand):
        return operand.mma_smem.over(make_layout(*operand.mma_smem.outer, Layout(plan.stages, 0)))

    return like(plan, staged_smem=property(lambda self: (smem(self.a), smem(self.b))))


def fewer_steps(plan):
    return like(plan, steps=property(lambda self: self.tile[2] // self.step[2] - 1))


MUTANTS = {}
for name, order in ((name, Order(fault)) for name, fault in FAULTS.items()):
    for plan in (mma_k8(), multistage(), wide(b_major="K"), volta884()):
        MUTANTS[f"{plan.name} {name}"] = replace(plan, raster=order)
    for plan in (coalesced(), block2d()):
        MUTANTS[f"{plan.name} {name}"] = like(plan, tile_coord=staticmethod(order))
WIDE, VECTORS, LINES = wide(b_major="K"), volta884().fragment_copies, block1d().c.rows.shape
EXCHANGED = TVLayout(
    Layout(VECTORS["A"].rows.shape, ((0, 0, 32, 8, 64), (0, (1, 16)))), VECTORS["A"].columns
)
TURNED = accumulator(swizzled().tile, (4, 1))
MUTANTS |= {
    # Stages and steps.
    "sm80 loads fragments ahead of the only stage": replace(ahead(), stages=1),
    "sm70 loads fragments ahead of the only stage": replace(volta884(), stages=1),
    "sm80 stages overlap": overlapping(multistage()),
    "sm80 stages overlap, fragments ahead": overlapping(wide(b_major="K")),
    "sm70 stages overlap": overlapping(volta884()),
    "sm80 a step is left out": fewer_steps(swizzled()),
    "sm80 a step is left out, fragments ahead": fewer_steps(ahead()),
    "sm70 a step is left out": fewer_steps(volta884()),
    "sm80 a step of 32": replace(swizzled(), step=(32, 16, 32)),
    "sm80 a step of twice the rows": replace(swizzled(), step=(64, 16, 16)),
    "sm80 a step of eight matrices": replace(swizzled(), step=(32, 64, 16)),
    "sm70 a step of eight": replace(volta884(), step=(128, 64, 8)),
    "sm70 a step of two": replace(volta884(), step=(128, 64, 2)),
    "sm70 a step of half the rows": replace(volta884(), step=(64, 64, 4)),
    "sm80 a shorter k-tile": replace(swizzled(), tile=(128, 128, 48)),
    "sm80 a longer k-tile": replace(swizzled(), tile=(128, 128, 128)),
    "sm80 a smaller tile": replace(swizzled(), tile=(64, 128, 64)),
    # Copies and shared memory.
    "sm80 a copy leaves lines out": with_a(swizzled(), copy=once(swizzled().a.copy)),
    "sm80 stages, a copy leaves lines out": with_a(multistage(), copy=once(multistage().a.copy)),
    "sm70 a copy leaves lines out": with_a(volta884(), copy=once(volta884().a.copy)),
    "simt a copy leaves lines out": with_a(shared(), copy=once(load_layout(32, 32, "K", 512, 1))),
    "sm80 fewer threads copy": with_a(swizzled(), copy=load_layout(64, 64, "K", 128, 8)),
    "sm80 written by another swizzle": with_a(swizzled(), smem=tile_smem(128, 64, "K")),
    "sm80 B is not permuted": replace(WIDE, b=replace(WIDE.b, smem=WIDE.b.mma_smem)),
    "sm80 no line of B is a column": replace(WIDE, accumulator=WIDE.c),
    "sm80 a buffer of fewer rows": with_a(swizzled(), mma_smem=tile_smem(64, 64, "K")),
    "sm80 ldmatrix across rows": replace(swizzled(), a_major="MN"),
    "sm70 written by another swizzle": with_a(volta884(), smem=tile_smem(128, 32, "MN")),
    "simt two elements in one place": with_a(shared(), smem=Layout((32, 32), (16, 1))),
    # Registers.
    "sm80 fragment": replace(swizzled(), fragment=Layout(swizzled().fragment.shape)),
    "sm80 warps in a column": replace(swizzled(), c=TURNED, accumulator=TURNED),
    "sm80 other warps": replace(swizzled(), warps=(4, 1)),
    "sm80 warps and step": replace(swizzled(), warps=(4, 1), step=(64, 8, 16)),
    "sm80 values exchanged": replace(
        ldmatrix_x4(), fragment=Layout(((2, 4), ((2, 1), 8)), ((1, 4), ((2, 16), 16)))
    ),
    "sm80 values left out": replace(ldmatrix_x4(), fragment=ldmatrix_x4().fragment[0]),
    "sm70 fragment": replace(volta884(), fragment=Layout(volta884().fragment.shape)),
    "sm70 operands exchanged": like(
        volta884(),
        fragment_copies=property(lambda self: dict(zip("BA", VECTORS.values(), strict=True))),
    ),
    "sm70 quad pairs exchanged": like(
        volta884(), fragment_copies=property(lambda self: VECTORS | {"A": EXCHANGED})
    ),
    "simt C transposed": replace(naive(), c=TVLayout(naive().c.rows, naive().c.rows)),
    "simt every thread multiplies the same rows of A": like(
        block1d(),
        fragment=lambda self, name: {"A": Layout((512, 8), (0, 1))}.get(
            name, block1d().fragment(name)
        ),
    ),
    "simt a thread has one row": replace(
        block1d(), c=TVLayout(Layout(LINES, ((0, 8), (0, (0, 0)))), block1d().c.columns)
    ),
}


def extents(plan):
    """M, N and K."""
    bm, bn, bk = plan.tile
    return 3 * bm - 8, 2 * bn - 8, 5 * bk + (8 if bk > 8 else 0)


@pytest.mark.parametrize("name", MUTANTS)
def test_a_plan_with_a_fault_is_refused_or_gives_a_wrong_answer(name):
    plan = MUTANTS[name]
    assert wrong(plan, *extents(plan))


@pytest.mark.parametrize("plan", [naive(), block2d(), volta884(), WIDE], ids=lambda plan: plan.name)
def test_a_plan_without_a_fault_is_right(plan):
    assert exact(plan, *extents(plan))
