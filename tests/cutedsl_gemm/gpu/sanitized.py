"""What runs under compute-sanitizer: `python sanitized.py`, with `epilogues` or `planted`.

Right answers are computed on the CPU, since the sanitizer slows every kernel on the GPU.
"""

import sys

import torch
from epilogues import EXACT, batched_plan, check, exact_plan
from family import BATCHED, PERSISTENT
from on_gpu import integers, poisoned, product

from cutedsl_gemm.calls.copies import copy
from cutedsl_gemm.inputs.problem import Problem
from cutedsl_gemm.kernels.compile import build
from cutedsl_gemm.kernels.executor import empty_tensors
from cutedsl_gemm.kernels.sm90.rungs import cooperative, pingpong, single, split
from cutedsl_gemm.select.candidate import ALL_CANDIDATES

KINDS = {(each.maker, each.cluster, each.swapped, each.consumers): each for each in ALL_CANDIDATES}
PLANS = [
    *(pingpong(), pingpong((128, 192, 64)), cooperative(c_stages=2), single()),
    *(cooperative((256, 192, 64)), split(splits=6), split((128, 64, 64), splits=16)),
    *(pingpong((192, 64, 64)), pingpong((64, 192, 64)), cooperative((128, 128, 64))),
    *(split((256, 128, 64), splits=3), pingpong(cluster=(1, 2))),
    *(pingpong((128, 80, 64)), cooperative((128, 176, 64)), pingpong((64, 96, 64))),
    *(pingpong((64, 16, 64)), split((128, 176, 64), splits=3), cooperative((192, 192, 64))),
    *(split((128, 64, 64), splits=4, swapped=True), pingpong(cluster=(2, 2), swapped=True)),
    *(split((128, 64, 64), splits=3, cluster=(2, 1)), split((64, 128, 64), splits=4)),
    split((64, 24, 64), splits=8, cluster=(1, 4), swapped=True),
    *(cooperative((64, 128, 64)), cooperative((192, 224, 64)), split((192, 208, 64), splits=3)),
    *(each.plan(Problem.dense(64, 64, 64)) for each in KINDS.values()),
]
BY_THREADS = [
    *(pingpong(c_alignment=1), pingpong((64, 96, 64), cluster=(2, 1), c_alignment=1)),
    *(pingpong((128, 48, 64), c_stages=1, c_alignment=1), single(c_alignment=1)),
    cooperative((192, 144, 64), swapped=True, c_alignment=1),
    *(cooperative((256, 192, 64), c_alignment=1), split(splits=3, c_alignment=1)),
    split((128, 24, 64), splits=2, swapped=True, c_alignment=1),
]
# (plans, (M, N, K), the first element of C in its memory, multiprocessors): with few of these, a
# block makes many tiles.
CASES = [
    (PLANS, (520, 264, 136), 0, 3),
    (PLANS, (1000, 1800, 392), 0, 132),
    (BY_THREADS, (1001, 1803, 392), 3, 8),
    (PERSISTENT[::3], (520, 600, 200), 0, 3),
]
BATCHES = BATCHED[::4], (3, 264, 136, 200), 8  # plans, (L, M, N, K), multiprocessors
PLANTED = pingpong((128, 64, 64), "float16", c_alignment=1)
# (maker, epilogue) of `epilogues`
EPILOGUES = [
    *(("pingpong", name) for name in EXACT),
    *(("threads, swapped", name) for name in EXACT),
    *(("swapped in clusters", name) for name in ("bias and matrix", "reductions")),
    *(("cooperative", name) for name in ("bias and matrix", "results")),
    *(("single", name) for name in ("bias and matrix", "reductions")),
    *(("split, swapped", name) for name in ("matrices", "results")),
    *(("split, threads", name) for name in ("vectors", "bias and matrix")),
]
OF_BATCHES = [
    *(("pingpong", "vectors"), ("narrow panels", "bias and matrix"), ("swapped", "results")),
    *(("threads, swapped", "matrices"), ("cooperative", "reductions")),
]


def every():
    """All plans that run."""
    plans = [*PLANS, *BY_THREADS, *PERSISTENT[::3], *BATCHES[0], PLANTED]
    fused = [exact_plan(*each) for each in EPILOGUES]
    return [*dict.fromkeys([*plans, *fused, *(batched_plan(*each) for each in OF_BATCHES)])]


def check_products(plans, mnk, start, sms):
    """Every plan's product is exact; a tensor ends its memory."""
    m, n, k = mnk
    a, b = integers(m, k, device="cpu"), integers(k, n, "column", device="cpu")
    expected, a, b = product(a, b).cuda(), a.cuda(), b.cuda()
    for plan in plans:
        c = poisoned(1, start + m * n, a.dtype)[0, start:].view(m, n)
        build.load(plan)(a, b, c, max(sms, plan.cluster_size))
        if not torch.equal(c, expected):
            sys.exit(f"{plan}: wrong at {mnk} on {sms} multiprocessors")


def check_batches():
    """Every plan's batch is exact, of matrices of the plan's majors."""
    plans, (count, *mnk), sms = BATCHES
    for plan in plans:
        a, b, c = (each.cuda() for each in empty_tensors(plan, *mnk, count))
        for each in (a, b):
            each.copy_(integers(1, each.numel(), device="cpu").view(each.shape))
        build.load(plan)(a, b, c, max(sms, plan.cluster_size))
        if not torch.equal(c.cpu(), product(a.cpu(), b.cpu())):
            sys.exit(f"{plan}: wrong")


def check_epilogues():
    """Every epilogue is exact at a ragged shape."""
    for maker, name in EPILOGUES:
        plan, (function, _) = exact_plan(maker, name), EXACT[name]
        check(plan, function, ragged(plan), "cuda", sms=(3,))
    for maker, name in OF_BATCHES:
        plan, (function, _) = batched_plan(maker, name), EXACT[name]
        check(plan, function, (*ragged(plan), 3), "cuda", sms=(3,))


def ragged(plan):
    """A shape that no tile divides."""
    return (200, 152, 72) if plan.c_alignment > 1 else (201, 147, 71)


def check_copies():
    """A copy to an odd address, and one to an aligned matrix."""
    for rows, columns in ((33, 77), (129, 513)):
        source = integers(1, rows * columns + 3)[0, 3:].view(rows, columns)
        target = poisoned(1, rows * columns + 1, source.dtype)[0, 1:].view(rows, columns)
        copy((source, target), (source, aligned := torch.empty_like(source)))
        if not (torch.equal(source, target) and torch.equal(source, aligned)):
            sys.exit(f"a copy of {rows}×{columns} is wrong")


class Longer:
    """The memory of a float16 tensor as a matrix that is larger than this memory."""

    def __init__(self, tensor, shape):
        self.__cuda_array_interface__ = {
            "shape": shape,
            "typestr": "<f2",
            "data": (tensor.data_ptr(), False),
            "version": 3,
        }


def write_past_the_end():
    """A C of 256 rows in the memory of 128: what the sanitizer must find."""
    a, b = integers(256, 64, dtype=torch.float16), integers(64, 72, "column", dtype=torch.float16)
    memory = poisoned(128, 72, torch.float16)
    c = torch.as_tensor(Longer(memory, (256, 72)), device="cuda")
    build.load(PLANTED)(a, b, c, 132)
    torch.cuda.synchronize()


if __name__ == "__main__":
    if sys.argv[1:] == ["planted"]:
        write_past_the_end()
    elif sys.argv[1:] == ["epilogues"]:
        check_epilogues()
    else:
        for case in CASES:
            check_products(*case)
        check_batches()
        check_copies()
