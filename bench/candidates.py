"""Plans compared with torch.mm: the measurements to which select/model.py is fitted.

    python bench/candidates.py --csv FILE [--seed 9113] [--count 600] [--kinds KIND...]
                               [--slack 1.35] [--tried] [--dry]

Half of the cases are bench's random shapes: 400 of `--count 600`. The others are rare among them:
products of few tiles, shapes of language models, decoding, gradients (whose operands are not
contiguous along K), products with an epilogue, and batches. All shapes that bench names are in
every pool, too. `--kinds` keeps only the kinds that it names: those of KINDS, and "batch".
Measuring ends after `--seconds`.

A case runs the ten candidates that the model expects to be the fastest, and six more of those that
it expects to take at most `--slack` times as long as the first. `--tried` adds plans that are not
candidates. Plans run in CUDA graphs, in turn with torch.mm, and outputs are checked. A time of
decoding is the geometric mean of hot and cold weights, as bench has them. Needs an H100; `--dry`
only prints how much would run.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import math
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from random import Random

import torch
from torch import Tensor

from cutedsl_gemm.calls.fused import composed
from cutedsl_gemm.inputs.problem import TMA, Problem
from cutedsl_gemm.inputs.request import Function, request
from cutedsl_gemm.kernels.compile import build
from cutedsl_gemm.kernels.device.occupancy import multiprocessors
from cutedsl_gemm.kernels.epilogue.derivative import in_product, with_stored
from cutedsl_gemm.kernels.epilogue.expression import PLAIN
from cutedsl_gemm.kernels.epilogue.trace import trace
from cutedsl_gemm.kernels.plan.checks import PlanError
from cutedsl_gemm.kernels.sm90.rungs import cooperative, pingpong, split
from cutedsl_gemm.measure import batches, epilogues
from cutedsl_gemm.measure.bench import SHAPES, check, normal
from cutedsl_gemm.measure.decode import HOT_LAUNCHES, WEIGHTS, copies
from cutedsl_gemm.measure.layers import LAYERS, SWIGLU, Layer
from cutedsl_gemm.measure.providers import CUBLAS
from cutedsl_gemm.measure.random_shapes import MULTIPLES, draw, multiple
from cutedsl_gemm.measure.report import Shape
from cutedsl_gemm.select import precompile
from cutedsl_gemm.select.candidate import CANDIDATES, FILL, Candidate, Maker
from cutedsl_gemm.select.costs import Majors
from cutedsl_gemm.select.model import Estimate, best, ranking, takes
from cutedsl_gemm.select.timing import Launch, launches_of_a_graph, race, timed

SECONDS, ROUNDS = 0.2e-3, 3  # of a graph; how often it is replayed
FIRST, FURTHER, MOST_TRIED = 10, 6, 8  # plans of a case
FIRST_SEED = 9113  # smaller ones are pools of bench/runs.csv.xz
CHECKED = 1 << 24  # elements of C at most: larger ones are not checked
# (N, K) of weights, in addition to those of bench.
MODELS = (
    *((2048, 2048), (16384, 2048), (5120, 2048), (6144, 2048), (1024, 4096), (12288, 4096)),
    *((22016, 4096), (4096, 11008), (3584, 3584), (5120, 5120), (3072, 8192), (2560, 9728)),
    *((19456, 2560), (896, 4864), (128256, 2048)),
)
TOKENS = 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 8192, 16384
DECODED = 1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256  # rows
FLOPS = 3e12  # of a case at most
NAMED: tuple[Shape, ...] = (
    *itertools.chain(*SHAPES.values()),
    *((n, n, n) for n in (1280, 1536, 2560, 5120, 7168, 10240)),
    *((768, 768, 8192), (256, 8192, 8192), (50304, 4096, 768), (6144, 6144, 40), (8448, 9216, 32)),
    *((8192, 14336, 4096), (8192, 28672, 8192), (8192, 8192, 4096), (16384, 4096, 8192)),
    *((1024, 4096, 4096), (512, 4096, 4096), (4096, 7168, 4096), (2048, 3584, 8192)),
)
WITH_EPILOGUES = *epilogues.SHAPES, epilogues.LARGEST, (8192, 8192, 2048), (4096, 14336, 4096)


@dataclass(frozen=True)
class Kind:
    """How A and B lie in memory, and the epilogue of their product."""

    majors: Majors = ("K", "K")
    epilogue: Function = PLAIN
    accumulators: int = 1  # N counts the columns of all of them
    row: bool = False  # whether the epilogue reads a bias, a row vector
    matrices: tuple[str, ...] = ()  # that it reads


def of_layer(layer: Layer) -> Kind:
    """The product of a layer that bench has, too."""
    return Kind(
        epilogue=layer.epilogue,
        accumulators=2 if layer.gated else 1,
        row=layer.operand == "bias",
        matrices=("c",) if layer.operand == "c" else (),
    )


SLOPES = in_product(with_stored(trace(SWIGLU.epilogue, accumulators=2)))
# By the column `kind`: a product, and the gradients of its A and B; layers with an epilogue.
KINDS = {
    "": Kind(),
    "of_x": Kind(("K", "MN")),
    "of_w": Kind(("MN", "MN")),
    **dict(
        zip(("bias", "gelu_tanh", "gelu", "addmm", "swiglu"), map(of_layer, LAYERS), strict=True)
    ),
    # Of the gate and the value of a SwiGLU, in the product that makes the gradient of its result.
    "slopes": Kind(
        ("K", "MN"), SLOPES, matrices=tuple(operand.name for operand in SLOPES.operands)
    ),
}
BATCH = "batch"  # of `--kinds`: batches of the first two kinds
EPILOGUES = tuple(name for name, kind in KINDS.items() if kind.epilogue is not PLAIN)
CLUSTERS = (2, 1), (1, 2), (4, 1), (1, 4), (8, 1), (1, 8), (2, 2), (4, 2), (2, 4)
TILES: dict[Maker, dict[int, range]] = {  # BM → BN
    pingpong: {64: range(16, 257, 8), 128: range(16, 193, 8), 192: range(64, 129, 8)},
    cooperative: {128: range(64, 257, 8), 192: range(96, 257, 8), 256: range(96, 193, 8)},
}


def tried() -> Iterator[Candidate]:
    """All legal plans of some families, candidates or not, with operands swapped or not."""
    for swapped, cluster in itertools.product((False, True), ((1, 1), *CLUSTERS)):
        plans = [
            Candidate(maker, (bm, bn, 64), 1, cluster, swapped)
            for maker, tiles in TILES.items()
            for bm, bns in tiles.items()
            for bn in bns
        ]
        plans += [
            Candidate(pingpong, (bm, bn, 128), 1, cluster, swapped)
            for bm, bn in itertools.product((64, 128), range(16, 137, 8))
        ]
        plans += [
            Candidate(split, (bm, bn, bk), FILL, cluster, swapped)
            for bm, bn, bk in itertools.product((64, 128, 192), range(16, 257, 8), (64, 128))
        ]
        yield from filter(exists, plans)


def exists(candidate: Candidate) -> bool:
    """Whether the candidate is a legal plan."""
    try:
        candidate.plan(Problem.dense(64, 64, 64))
    except PlanError:
        return False
    return True


@dataclass(frozen=True)
class Case:
    """A shape, the kind of its product, whether its weights are also measured cold, and a batch."""

    mnk: Shape
    name: str = ""  # of its kind
    decoding: bool = False
    batch: int = 1  # how many such products

    @property
    def kind(self) -> Kind:
        return KINDS[self.name]

    def matrices(self, tensor: Callable[..., Tensor]) -> tuple[Tensor, Tensor]:
        """A and B; `tensor` makes a contiguous one."""
        (m, n, k), batch = self.mnk, (self.batch,) if self.batch > 1 else ()
        of_a, of_b = self.kind.majors
        a = tensor(*batch, m, k) if of_a == "K" else tensor(*batch, k, m).mT
        return a, tensor(*batch, n, k).mT if of_b == "K" else tensor(*batch, k, n)

    def parts(self, b: Tensor) -> Tensor:
        """B as gemm takes it: (K, N), or (2, K, N / 2) for an epilogue of two accumulators."""
        count = self.kind.accumulators
        return b if count == 1 else b.mT.unflatten(0, (count, -1)).mT

    def operands(self, matrix: Callable[[int, int], Tensor]) -> dict[str, Tensor]:
        """What the epilogue reads."""
        m, n, _ = self.mnk
        found = {name: matrix(m, n) for name in self.kind.matrices}
        return found | ({"bias": matrix(1, n)[0]} if self.kind.row else {})

    @cached_property
    def problem(self) -> Problem:
        empty = partial(torch.empty, dtype=torch.bfloat16)  # on the CPU, where it takes no memory
        a, b = self.matrices(empty)
        b = self.parts(b)
        return request(a, b, self.kind.epilogue, self.operands(empty), TMA).problem(a, b, TMA)

    def plans(self, slack: float, others: Sequence[Candidate], random: Random) -> list[Candidate]:
        """What runs: the fastest candidates by the model, some further ones, and some others."""
        ranked = sorted(ranking(self.problem), key=lambda each: each.seconds)
        limit = slack * next(each.seconds for each in ranked if self._takes(each))
        near = self._within(limit, ranked)
        first, rest = near[:FIRST], near[FIRST:]
        tried = self._within(limit, ranking(self.problem, others)) if others else []
        return first + random.sample(rest, min(FURTHER, len(rest))) + tried[:MOST_TRIED]

    def _within(self, limit: float, estimates: Sequence[Estimate]) -> list[Candidate]:
        """The candidates with a plan that are expected to take `limit` seconds at most."""
        near = (each for each in estimates if each.seconds <= limit)
        return [each.candidate for each in near if self._takes(each)]

    def _takes(self, estimate: Estimate) -> bool:
        return takes(self.problem, estimate.candidate)


def few_tiles(random: Random) -> Shape:
    """A shape of few tiles and a K of 384 to 131072."""
    q = random.choice(MULTIPLES)
    ends = (64, 1024), random.choice(((64, 1024), (512, 4096))), (384, 131072)
    m, n, k = (multiple(q, *each, random.random()) for each in ends)
    return m, n, k


def with_epilogues(count: int, random: Random, models: Sequence[Shape]) -> Iterator[Case]:
    """`count` cases with an epilogue: half of them shapes of language models, half random."""
    shapes = draw(count - count // 2, random.getrandbits(31))
    for mnk in [*random.choices(models, k=count // 2), *shapes]:
        m, n, k = mnk
        yield Case((m, n // 16 * 16 or 16, k), random.choice(EPILOGUES))  # N of two accumulators


def of_batches(count: int, seed: int) -> Iterator[Case]:
    """`count` random batches that TMA reads and stores in place."""
    for each in filter(batches.in_place, batches.draw(2 * count, seed)):
        name = "" if each.b_major == "K" else "of_x"
        yield Case(each.mnk, name, batch=each.batch)


def cases(count: int, seed: int) -> list[Case]:
    """Random shapes, those that are rare among them, and named ones, mixed; each once."""
    random = Random(seed)
    weights = *WEIGHTS, *MODELS
    models = [(random.choice(TOKENS), *random.choice(weights)) for _ in range(count // 8)]
    decoded = [(random.choice(DECODED), *random.choice(weights)) for _ in range(count // 8)]
    found = [
        *map(Case, NAMED),
        *map(Case, draw(count * 2 // 3, seed)),
        *(Case(few_tiles(random)) for _ in range(count // 8)),
        *map(Case, models),
        *(Case(mnk, decoding=True) for mnk in decoded),
    ]
    for kind in ("of_x", "of_w"):
        found += [Case(mnk, kind) for mnk in draw(count // 24, random.getrandbits(31))]
        found += [
            Case((m, k, n) if kind == "of_x" else (n, k, m), kind)
            for m, n, k in models[: count // 24]
        ]
    found += with_epilogues(count // 8, random, models)
    found += itertools.starmap(Case, itertools.product(WITH_EPILOGUES, EPILOGUES))
    found += itertools.islice(of_batches(count // 8, random.getrandbits(31)), count // 8)
    within = (each for each in found if 2 * each.batch * math.prod(each.mnk) <= FLOPS)
    distinct = [*dict.fromkeys(within)]
    random.shuffle(distinct)
    return distinct


def measure(case: Case, plans: Sequence[Candidate]) -> Iterator[tuple[str, float, str]]:
    """A plan's name, its seconds per launch, and what is wrong with its output.

    The first is torch.mm, or torch.bmm, without an epilogue.
    """
    a, b = case.matrices(normal)
    if case.kind.epilogue is not PLAIN:
        b *= len(b) ** -0.5  # the sums are of the size of the operands
    bs = [b, *(b.clone() for _ in range(1, copies(*b.shape[-2:]) if case.decoding else 1))]
    product, epilogue = a @ b, case.problem.epilogue
    given = case.operands(normal)
    operands = [given[operand.name] for operand in epilogue.operands]
    sums = product.float().chunk(epilogue.accumulators, dim=-1)
    expected = composed(epilogue, sums, operands, a.dtype)
    outs = [torch.empty_like(each) for each in expected]
    products: list[Callable[[Tensor], object]] = [lambda b: torch.matmul(a, b, out=product)]
    wrong = [""]
    for candidate in plans:
        plan = candidate.plan(case.problem)
        launch = partial(_launch, case, build.load(plan), a, (*operands, *outs))
        products.append(partial(launch, multiprocessors(a.device, plan)))
        for out in outs:
            out.fill_(torch.nan)
        products[-1](b)
        wrong.append("")
        if product.numel() <= CHECKED:
            try:
                for out, each in zip(outs, expected, strict=True):
                    check(candidate.name, case.mnk, out, each.float())
            except RuntimeError as error:
                wrong[-1] = str(error)
    seconds = seconds_of(products, [b], HOT_LAUNCHES if case.decoding else 1)
    if len(bs) > 1:
        cold = seconds_of(products, bs)  # L2 keeps next to nothing of them
        seconds = [*map(statistics.geometric_mean, zip(seconds, cold, strict=True))]
    names = CUBLAS, *(each.name for each in plans)
    yield from zip(names, seconds, wrong, strict=True)


def _launch(
    case: Case,
    kernel: Callable[..., object],
    a: Tensor,
    others: Sequence[Tensor],
    sms: int,
    b: Tensor,
) -> None:
    kernel(a, case.parts(b), *others, sms)


def seconds_of(
    products: Sequence[Callable[[Tensor], object]], bs: Sequence[Tensor], least: int = 1
) -> list[float]:
    """Seconds of a product of each, by all of `bs`; a graph has `least` launches or more.

    Some plans of few rows fall into step after ten launches, and are slower from then on.
    """

    def all_of(product: Callable[[Tensor], object]) -> Launch:
        return lambda: [product(b) for b in bs]

    launches = [*map(all_of, products)]
    count = max(least, launches_of_a_graph(timed(launches[0], 3), SECONDS))
    return [each / len(bs) for each in race(launches, rounds=ROUNDS, count=count)]


def main() -> None:
    """Compile on all cores, then measure case after case until the time is over."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--csv", type=Path)
    parser.add_argument("--seed", type=int, default=FIRST_SEED)
    parser.add_argument("--count", type=int, default=600)
    parser.add_argument("--kinds", nargs="+", choices=(*KINDS, BATCH), default=[*KINDS, BATCH])
    parser.add_argument("--slack", type=float, default=1.35)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--tried", action="store_true")
    parser.add_argument("--dry", action="store_true")
    options = parser.parse_args()
    if options.csv is None and not options.dry:
        parser.error("--csv FILE is required, unless --dry")
    if options.seed < FIRST_SEED:
        parser.error(
            f"--seed is {options.seed}: it names the pool, and must be {FIRST_SEED} or more"
        )
    start = time.monotonic()
    for seed in (3, 4):  # the second is warm, and new to the cache
        problems = [Problem.dense(*mnk) for mnk in draw(200, seed)]
        began = time.perf_counter()
        for problem in problems:
            best(problem)
        print(f"choice: {(time.perf_counter() - began) / 200 * 1e6:.1f} µs a shape")
    others = [each for each in tried() if each not in CANDIDATES] if options.tried else []
    drawn = [
        case
        for case in cases(options.count, options.seed)
        if (BATCH if case.batch > 1 else case.name) in options.kinds
    ]
    random = Random(options.seed)
    asked = [(case, case.plans(options.slack, others, random)) for case in drawn]
    kernels = {each.plan(case.problem) for case, plans in asked for each in plans}
    runs = sum(len(plans) for _, plans in asked)
    print(f"{len(asked)} cases, {runs} runs, {len(kernels)} kernels")
    if options.dry:
        return
    for number, _ in enumerate(precompile.compile_all(kernels), 1):
        if number % 20 == 0 or number == len(kernels):
            print(f"compiled {number} at {time.monotonic() - start:.0f} s", flush=True)
    with options.csv.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(("pool", "L", "M", "N", "K", "kind", "plan", "µs", "wrong"))
        for number, (case, plans) in enumerate(asked):
            if time.monotonic() - start > options.seconds:
                print(f"out of time after {number} cases", file=sys.stderr)
                break
            for name, seconds, wrong in measure(case, plans):
                times = f"{1e6 * seconds:.4g}"
                extents = case.batch, *case.mnk
                writer.writerow((options.seed, *extents, case.name, name, times, wrong))
                if wrong:
                    print(wrong, file=sys.stderr)
            stream.flush()
            if number % 100 == 0:
                print(f"case {number} at {time.monotonic() - start:.0f} s", flush=True)
    print(f"done at {time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main()
