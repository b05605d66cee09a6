"""The executor of the sm80 plans: data goes where the plan's layouts send it, on the CPU.

    global ─ copies of A, B ▶ swizzled shared memory ─ ldmatrix rows ▶ registers ─ mma ▶ registers
           ─ fragment, copy of C ▶ global

What an instruction does comes from the instruction, not from the plan, so that a wrong plan gives a
wrong answer here too: ldmatrix reads 16 contiguous bytes at the address of each lane, whatever the
layout says of the elements inside them, and mma takes its operands and leaves its accumulator where
the PTX ISA says. The warps are the units that multiply.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from cutedsl_gemm.kernels.executor import executor, thread_values
from cutedsl_gemm.kernels.executor.blocks import Registers, Staged, multiply
from cutedsl_gemm.kernels.plan.checks import refuse, shape_problem
from cutedsl_gemm.kernels.sm80.fragments import Name, atom, ldmatrix_rows, load_atom
from cutedsl_gemm.kernels.sm80.plan import Sm80Plan
from layouts import ComposedLayout, Layout, MmaAtom, size
from layouts.hardware.atoms import MATRIX_COLUMNS


@executor
def gemm(
    plan: Sm80Plan,
    a: Tensor,
    b: Tensor,
    out: Tensor | tuple[Tensor, ...],
    operands: Sequence[Tensor | float] = (),
) -> Iterator[float]:
    """out (M, N) = the epilogue of a (M, K) · b (K, N) on CPU tensors; K > 0.

    Yields once per k-tile.
    """
    loads = (
        staged(plan, "A", ldmatrix_reads(plan, "A")),
        staged(plan, "B", ldmatrix_reads(plan, "B")),
    )
    held = accumulators(plan, atom(plan), Layout(plan.threads), loads[0].shape[1])
    yield from multiply(plan, a, b, out, operands, loads, held)


def staged(plan: Sm80Plan, name: Name, reads: Tensor) -> Staged:
    """An operand through the plan's stages; `reads` are those of each step."""
    mode = "AB".index(name)
    operand, stages = (plan.a, plan.b)[mode], plan.staged_smem[mode].outer[2]
    for smem in (operand.smem, operand.mma_smem):
        refuse(plan.name, shape_problem(name, smem, (plan.tile[mode], plan.tile[2])))
    return Staged(operand.copy, operand.smem, [*reads], stages, plan.prefetch_fragments)


def accumulators(
    plan: Sm80Plan, mma: MmaAtom, units: Layout | ComposedLayout, rows: int
) -> Registers:
    """(thread, value of C) → the unit that holds it, and its row and column in the unit.

    `units` maps a thread to its number in the mma + threads of the mma * its unit. A unit has
    `rows` rows; mma tiles that are stacked along M have neighbouring registers.
    """
    refuse(plan.name, _register_problems(plan))
    (height, width, _), threads = mma.shape, size(mma.c[0])
    thread, value = thread_values(plan.c.rows)
    register, at = plan.fragment(value), units(thread)
    first, repeat = register % size(mma.c[1]), register // size(mma.c[1])
    place = mma.c(at % threads, first)  # m + height * n
    row = repeat % (rows // height) * height + place % height
    column = repeat // (rows // height) * width + place // height
    return at // threads, row, column


def _register_problems(plan: Sm80Plan) -> Iterator[str]:
    """Which values of C have no register, or are in that of another row of A or of B."""
    if size(plan.fragment) != plan.c.values:
        yield f"fragment is {plan.fragment}; it must take the {plan.c.values} values of a thread"
    every, held, c = thread_values(plan.c.rows), plan.accumulator, plan.c
    for name, operand, of_mma, of_c in (
        ("A", plan.a, held.rows, c.rows),
        ("B", plan.b, held.columns, c.columns),
    ):
        if not torch.equal(operand.mma_smem(of_mma(*every), 0), operand.smem(of_c(*every), 0)):
            yield (
                f"accumulator is {held} and c is {c}: a value must be of one row of {name} in both"
            )


def ldmatrix_reads(plan: Sm80Plan, name: Name) -> Tensor:
    """(step, warp, row of the warp, k) → element of a stage that mma takes there."""
    mode = "AB".index(name)
    smem, load, mma = (plan.a, plan.b)[mode].mma_smem, load_atom(plan, name), atom(plan)
    rows, operand = ldmatrix_rows(plan, name), (mma.a, mma.b)[mode]
    lane, warp, instruction = map(size, rows)
    address = smem(rows(torch.arange(size(rows)))).view(instruction, warp, lane)
    lanes, values = thread_values(load.fragment)
    element = load.fragment(lanes, values)  # column + 8 * supplying lane
    # (instruction, warp, lane, value)
    loaded = address[..., element // MATRIX_COLUMNS] + element % MATRIX_COLUMNS
    held = loaded.permute(1, 2, 0, 3).flatten(2)  # (warp, lane, value)
    held = held.unflatten(2, (plan.steps, -1, size(operand[1])))  # value: (step, mma, of the mma)
    return operand_rows(held.permute(2, 0, 3, 1, 4), operand, mma.shape[2])


def operand_rows(held: Tensor, operand: Layout, k: int) -> Tensor:
    """(step, unit, mma, thread, value) of an operand of mma, as (step, unit, row of it, k)."""
    matrices = torch.empty(*held.shape[:3], size(operand), dtype=held.dtype)
    matrices[..., operand(*thread_values(operand))] = held
    return matrices.unflatten(3, (k, -1)).mT.flatten(2, 3)
