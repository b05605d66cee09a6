"""The fragments of A and B: what mma takes of a thread, and the rows that ldmatrix's lanes address.

    k-tile (rows, BK) ─ ldmatrix ▶ (thread, value) ─ mma.m16n8

The DSL makes both from the tiled MMA; here they are layouts, for the executor and the bank model. A
test compares them with the DSL's.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from cutedsl_gemm.kernels.plan.checks import PlanError
from cutedsl_gemm.kernels.sm80.plan import Sm80Plan
from layouts import (
    Layout,
    MatrixAtom,
    MmaAtom,
    composition,
    ldmatrix,
    make_layout,
    mma,
)
from layouts.hardware.lane_addresses import row_addresses

Name: TypeAlias = Literal["A", "B"]


def atom(plan: Sm80Plan) -> MmaAtom:
    """The plan's mma; its fragments are the same for bf16."""
    return mma(f"m16n8k{plan.step[2]}", "f16")


def load_atom(plan: Sm80Plan, name: Name) -> MatrixAtom:
    """The ldmatrix of an operand; it transposes the matrices of an MN-major one.

    >>> from cutedsl_gemm.kernels.sm80.rungs import swizzled
    >>> [load_atom(swizzled(), name).instruction for name in ("A", "B")]
    ['ldmatrix.x4', 'ldmatrix.x2.trans']
    """
    mode = "AB".index(name)
    return ldmatrix(plan.matrices_per_ldmatrix[mode], plan.smem_majors[mode] == "MN")


def fragment(plan: Sm80Plan, name: Name) -> Layout:
    """(thread, value) → row + rows * k of a k-tile: what the mma of a thread's warp take.

    The values of an mma are neighbours, then come those of the other mma of the step, of the other
    steps along the rows, and of the other steps along K. Warps with the same rows hold the same.

    >>> from cutedsl_gemm.kernels.sm80.rungs import swizzled
    >>> print(fragment(swizzled(), "A"))
    (((4,8),(2,2)),((2,2,2),(1,4,4))):(((256,1),(16,0)),((128,8,1024),(32,32,2048)))
    """
    mode = "AB".index(name)
    rows, step, count = plan.tile[mode], plan.step[mode], plan.warps[mode]
    (*extents, k), operands = atom(plan).shape, (atom(plan).a, atom(plan).b)
    height = extents[mode]  # of one mma
    if step % (height * count) or rows % step or not plan.steps:
        raise PlanError(
            f"{plan.name}: {name} has {rows} rows, and step is {plan.step}: a step must have a "
            f"multiple of {height * count} rows, for {count} warps, and {name} whole steps"
        )
    lanes, values = composition(Layout((height, k), (1, rows)), operands[mode])
    warps = Layout(plan.warps, tuple(height * (other == mode) for other in range(2)))
    repeats = Layout(
        (step // (height * count), rows // step, plan.steps), (height * count, step, k * rows)
    )
    return make_layout(make_layout(lanes, warps), make_layout(values, repeats))


def ldmatrix_rows(plan: Sm80Plan, name: Name) -> Layout:
    """(lane, warp, instruction) → row + rows * k where the row of eight elements begins.

    Lanes that supply no address are left out.

    >>> from cutedsl_gemm.kernels.sm80.rungs import swizzled
    >>> print(ldmatrix_rows(swizzled(), "A"))
    ((8,(2,2)),(2,2),(4,4)):((1,(8,1024)),(16,0),(32,2048))
    """
    return row_addresses(load_atom(plan, name), fragment(plan, name))[0]
