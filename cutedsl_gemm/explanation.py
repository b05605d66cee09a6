"""The plan that gemm chooses for two tensors, and the reasons, as text."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice

from torch import Tensor

from cutedsl_gemm.calls.call import Tile, check_flag
from cutedsl_gemm.inputs.operands import Value
from cutedsl_gemm.inputs.problem import TMA, Problem, round_up
from cutedsl_gemm.inputs.request import Function, epilogue_of, readable, request
from cutedsl_gemm.inputs.tensors import aligned
from cutedsl_gemm.kernels.sm90.launch_policy import pass_through_l2, uses_pdl
from cutedsl_gemm.kernels.sm90.plan import Sm90Plan
from cutedsl_gemm.select.candidate import candidate_of
from cutedsl_gemm.select.choose import checked_tile, choose
from cutedsl_gemm.select.costs import DRAM, SMS
from cutedsl_gemm.select.model import Estimate, estimate, possible

DENSE_PEAK = 989e12  # flops a second of an H100 SXM's tensor cores (NVIDIA's data sheet)
SHOWN = 3  # candidates


def explain(
    a: Tensor,
    b: Tensor,
    *,
    tile: Tile | None = None,
    invariant: bool = False,
    epilogue: Function | None = None,
    **operands: Value,
) -> str:
    """The plan that gemm runs on an H100: the candidates, the bounds and the layouts.

    `tile`, `invariant`, `epilogue` and the operands are those of gemm. Times are estimates of the
    model in `cutedsl_gemm.select.model`. The tensors may be on any device, "meta" included: nothing
    is computed. Raises as gemm does. `gemm.explain` is this function.

    >>> import torch
    >>> a = torch.empty(8448, 1984, dtype=torch.bfloat16, device="meta")
    >>> b = torch.empty(1984, 9216, dtype=torch.bfloat16, device="meta")
    >>> print(explain(a, b))  # doctest: +ELLIPSIS
    problem      C (8448, 9216) = A (8448, 1984) · B (1984, 9216), bfloat16
    card         NVIDIA H100 SXM, 132 multiprocessors: all times are estimates for it
    choice       pingpong 128×192×64, cluster 2×1, swapped, expected in ... µs, ... TFLOP/s
    candidates   1. pingpong 128×192×64, cluster 2×1, swapped ...
    ...
    bounds       tensor cores 312.4 µs at 989 TFLOP/s dense
    ...
    kernel       sm90 pingpong, bfloat16, fp32 accumulation, tile 128×192×64
    ...
    """
    tile = None if tile is None else checked_tile(tile)
    check_flag("invariant", invariant)
    function = epilogue_of(epilogue, operands, explain)
    asked = request(a, b, function, operands, TMA.with_meta)
    problem = asked.problem(a, b, TMA.with_meta, invariant, on_copies=True)
    read = {"A": aligned(a, TMA), "B": readable(a, b, TMA)}
    copied = [name for name, in_place in read.items() if not in_place]
    return "\n".join(f"{name:<12} {text}" for name, text in _lines(problem, tile, copied))


def _lines(problem: Problem, tile: Tile | None, copied: list[str]) -> Iterator[tuple[str, str]]:
    m, n, k = problem.mnk
    parts = problem.epilogue.accumulators
    batch = (problem.batch,) if problem.batch != 1 else ()
    of_b = (*batch, k, n) if parts == 1 else (parts, *batch, k, n)
    yield "problem", f"C {(*batch, m, n)} = A {(*batch, m, k)} · B {of_b}, {problem.dtype}"
    yield "card", f"NVIDIA H100 SXM, {SMS} multiprocessors: all times are estimates for it"
    if copied:
        launch = ", in one launch" if len(copied) > 1 and parts == 1 else ""
        why = "TMA reads rows that start at multiples of 16 bytes"
        yield "copies", f"{' and '.join(copied)}{launch}: {why}"
    if n % TMA.alignment:
        yield "stores", f"C: by threads; TMA stores rows of multiples of 16 bytes, and N is {n}"
    if problem.flops == 0:
        yield "choice", "no kernel: C is empty or zero"
        return
    if problem.invariant:
        yield "invariant", "K is not split: every output is summed in one order, whatever M and N"
    plan = choose(problem, tile)
    yield from _choice(problem, plan, given=tile is not None)
    yield from _launch(problem, plan)
    yield from _bounds(problem)
    yield from plan.explain_lines()


def _choice(problem: Problem, plan: Sm90Plan, given: bool) -> Iterator[tuple[str, str]]:
    candidate, ranked = candidate_of(plan), [*islice(possible(problem), SHOWN)]
    asked = ", as asked" if given else ""
    if candidate is None:
        tile = "×".join(map(str, plan.tile))
        yield "choice", f"tile {tile}{asked}; the model was fitted to other tiles"
        yield from _candidates(problem, ranked)
        return
    found = estimate(problem, candidate)
    yield "choice", f"{candidate.name}{asked}, expected in {_speed(problem, found)}"
    yield from _candidates(problem, ranked)
    yield from _times(problem, found)


def _candidates(problem: Problem, ranked: list[Estimate]) -> Iterator[tuple[str, str]]:
    width = max(len(found.candidate.name) for found in ranked)
    for number, found in enumerate(ranked, 1):
        first = "candidates" if number == 1 else ""
        yield first, f"{number}. {found.candidate.name:<{width}} {_speed(problem, found)}"


def _times(problem: Problem, found: Estimate) -> Iterator[tuple[str, str]]:
    candidate, k = found.candidate, problem.mnk[2]
    m, n = problem.mnk[0], problem.columns
    m, n = (n, m) if candidate.swapped else (m, n)
    (bm, bn, _), (down, across) = candidate.tile, candidate.cluster
    tiles_m, tiles_n = round_up(-(-m // bm), down), round_up(-(-n // bn), across)
    waves = "1 wave" if found.waves == 1 else f"{found.waves} waves"
    of_batch = f" × {problem.batch}" if problem.batch > 1 else ""
    yield "tiles", f"{tiles_m} × {tiles_n}{of_batch} = {found.tiles:,}, in {waves}"
    yield "", f"{found.busy_sms} of {SMS} multiprocessors work"
    reduction = f", reduction {_micro(found.reduction)}" if found.reduction else ""
    yield "time", f"launch {_micro(found.launch)}, epilogue {_micro(found.epilogue)}{reduction}"
    yield "", f"main loop {_micro(found.mainloop)} beside DRAM {_micro(found.dram)}"
    yield "", f"corrected by a factor of {found.correction:.2f}, from measurements"
    yield "k-tile", ", ".join(f"{name} {1e9 * s:.0f} ns" for name, s in found.k_tile.items())
    yield "", f"{found.bound} decides; rows start at multiples of {_alignments(problem)} bytes"
    moved = 2 * found.tiles * (bm + bn) * k
    gigabytes, rate = _figures(moved / 1e9, 3), _figures(moved / found.seconds / 1e12, 2)
    yield "L2", f"{gigabytes} GB of A and B to shared memory: {rate} TB/s"


def _launch(problem: Problem, plan: Sm90Plan) -> Iterator[tuple[str, str]]:
    """What the host decides of a launch."""
    m, n, k = problem.mnk
    rows, columns = plan.operand_rows(m, n)
    rows *= problem.batch
    early = uses_pdl(plan, rows, columns, k, SMS)
    yield "launch", f"starts {'before' if early else 'when'} the previous launch has ended"
    passing = plan.exchanged(pass_through_l2(plan, rows, columns, k))
    if large := [name for name, passes in zip("AB", passing, strict=True) if passes]:
        yield "", f"L2 evicts {' and '.join(large)} first: too large to stay, read by few tiles"


def _alignments(problem: Problem) -> str:
    """The alignments of A's and of B's rows, 128 being the most that matters."""
    a, b = problem.a.row_alignment, problem.b.row_alignment
    return f"{a}" if a == b else f"{a} (A) and {b} (B)"


def _bounds(problem: Problem) -> Iterator[tuple[str, str]]:
    """Lower bounds of the time: the peak rates of the tensor cores and of DRAM."""
    tensor, moved = problem.flops / DENSE_PEAK, problem.bytes
    bound = max(tensor, moved / DRAM)
    yield "bounds", f"tensor cores {_micro(tensor)} at {DENSE_PEAK / 1e12:.0f} TFLOP/s dense"
    yield "", f"DRAM {_micro(moved / DRAM)}: {_moved(problem)} once at {DRAM / 1e12:.2f} TB/s"
    yield "", f"at most {_tflops(problem, bound)} TFLOP/s"


def _moved(problem: Problem) -> str:
    """What is read and written."""
    operands = ", the operands" if problem.epilogue.operands else ""
    results = len(problem.epilogue.results)
    return f"A, B{operands} and {'C' if results == 1 else f'{results} results'}"


def _speed(problem: Problem, found: Estimate) -> str:
    return f"{_micro(found.seconds)}, {_tflops(problem, found.seconds)} TFLOP/s"


def _tflops(problem: Problem, seconds: float) -> str:
    return _figures(problem.flops / seconds / 1e12, 2)


def _micro(seconds: float) -> str:
    return f"{_figures(seconds * 1e6, 1, decimals=1)} µs"


def _figures(value: float, count: int, decimals: int = 0) -> str:
    """A positive number with at least `count` significant figures, never with an exponent.

    >>> _figures(99.6, 2), _figures(6604, 3), _figures(3.07e-5, 2), _figures(48.62, 1, decimals=1)
    ('100', '6604', '0.000031', '48.6')
    """
    places = count - 1 - math.floor(math.log10(value))
    return f"{value:.{max(decimals, places)}f}"
