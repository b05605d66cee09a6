"""The epilogue in a plan: what threads load of its operands, by C's thread-value layout.

An operand is a layout over C. A thread that holds an output needs the operand's element at its row
and column. `TVLayout.projection` of C's layout on the operand's modes says which ones it loads.
"""

from __future__ import annotations

from collections.abc import Iterator

from cutedsl_gemm.kernels.epilogue.cost import cost
from cutedsl_gemm.kernels.epilogue.expression import PLAIN, Epilogue, Operand
from cutedsl_gemm.kernels.plan.tv_layout import TVLayout
from layouts import Equivalent, Layout, Proof, composition, make_layout, prove, right_inverse, size


def whole_tile_problems(epilogue: Epilogue) -> Iterator[str]:
    """What kernels that store whole results, of one product, cannot do.

    >>> list(whole_tile_problems(Epilogue(accumulators=2)))
    ['its epilogue takes 2 accumulators; this kernel multiplies by one B: take one of sm90']
    """
    if epilogue.accumulators != 1:
        yield (
            f"its epilogue takes {epilogue.accumulators} accumulators; this kernel multiplies by "
            "one B: take one of sm90"
        )
    for i, result in enumerate(epilogue.results):
        if result.reduction is not None:
            yield (
                f"result {i} of its epilogue is the {result.reduction} over {result.over}; this "
                "kernel stores whole results: take one of sm90, or reduce the whole result after it"
            )


def operand_proofs(epilogue: Epilogue, c: TVLayout, bm: int) -> Iterator[Proof]:
    """Each value of a thread meets the operand's element at its own row and column.

    That is (thread, value) → offset in the operand's tile, found in two ways: by row and column of
    C, and by the register that holds what the thread has loaded.
    """
    for operand in _tensors(epilogue):
        m, n = int("M" in operand.modes), bm * int("N" in operand.modes)
        loaded = c.projection(operand.modes)
        registers = Layout(size(loaded.registers), c.threads)  # behind those of the thread before
        held = composition(loaded.offsets(m, n), (None, right_inverse(loaded.registers)))
        at = make_layout(
            Layout(c.threads), composition(registers, c.projected_registers(operand.modes))
        )
        yield prove(Equivalent(c.offsets(m, n), composition(held, at)))


def explain_lines(epilogue: Epilogue, c: TVLayout) -> Iterator[tuple[str, str]]:
    """The results, the operands, and which element of an operand's tile each thread loads."""
    if epilogue == PLAIN:
        return
    yield "epilogue", ""
    yield from epilogue.listing()
    yield "cost", str(cost(epilogue))
    for operand in _tensors(epilogue):
        loaded = c.projection(operand.modes)
        for mode, layout in (("M", loaded.rows), ("N", loaded.columns)):
            if mode in operand.modes:
                yield f"{operand.name}", f"{layout}   (thread, value) → {mode.lower()}"


def _tensors(epilogue: Epilogue) -> Iterator[Operand]:
    return (operand for operand in epilogue.operands if not operand.by_value)
