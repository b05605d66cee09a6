"""On an H100: right against float64 in every major and dtype.

Into poisoned outputs, on streams, in graphs, under the sanitizers.
"""

import itertools
import json
import os
import random
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from cutedsl_gemm import copies, gemm, plan_for
from cutedsl_gemm.kernels.compile import build, cache
from cutedsl_gemm.kernels.copies.plan import WIDTHS, copy_plan
from cutedsl_gemm.kernels.device.occupancy import multiprocessors
from cutedsl_gemm.kernels.sm90 import execute
from cutedsl_gemm.kernels.sm90.rungs import cooperative, pingpong, single, split
from cutedsl_gemm.problem import Matrix, Problem
from cutedsl_gemm.select import tune
from cutedsl_gemm.select.candidate import CANDIDATES
from cutedsl_gemm.select.precompile import compiled_with_bar
from cutedsl_gemm.tensors import aligned_copy

pytestmark = pytest.mark.gpu

DTYPES = [torch.bfloat16, torch.float16]
MAJORS = list(itertools.product(("row", "column"), repeat=2))
LARGE = [(8448, 9216, 64), (8448, 9216, 256), (8448, 9216, 1984), (4096, 4096, 4096)]
SMALL = [(520, 264, 136), (8, 1000, 72)]


def matrix(rows, columns, order="row", dtype=torch.bfloat16):
    if order == "row":
        return torch.randn(rows, columns, device="cuda").to(dtype)
    return torch.randn(columns, rows, device="cuda").to(dtype).mT


def poisoned(m, n, dtype):
    return torch.full((m, n), torch.nan, dtype=dtype, device="cuda")


def error(c, a, b):
    truth = a.double() @ b.double()
    return float((c.double() - truth).norm() / truth.norm())


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("majors", MAJORS, ids="-".join)
@pytest.mark.parametrize("mnk", LARGE + SMALL, ids=str)
def test_relative_error_against_float64(mnk, majors, dtype):
    m, n, k = mnk
    a, b = matrix(m, k, majors[0], dtype), matrix(k, n, majors[1], dtype)
    out = poisoned(m, n, dtype)
    assert error(gemm(a, b, tile=(128, 128, 64), out=out), a, b) < 6e-3


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("majors", MAJORS, ids="-".join)
def test_a_hundred_random_shapes(majors, dtype):
    draw = random.Random(0)
    worst = {}
    for _ in range(100):
        m, n, k = (8 * draw.randint(1, 160) for _ in range(3))
        a, b = matrix(m, k, majors[0], dtype), matrix(k, n, majors[1], dtype)
        out = poisoned(m, n, dtype)
        worst[m, n, k] = error(gemm(a, b, out=out), a, b)
    assert max(worst.values()) < 6e-3, max(worst.items(), key=lambda item: item[1])


@pytest.mark.parametrize(
    "tile",
    [
        (64, 128, 64),
        (128, 192, 64),
        (192, 128, 64),
        (64, 256, 64),
        (128, 128, 128),
        (128, 176, 64),
        (128, 208, 64),
        (64, 16, 64),
    ],
    ids=str,
)
@pytest.mark.parametrize("majors", MAJORS, ids="-".join)
def test_other_tiles(tile, majors):
    a, b = matrix(1000, 392, majors[0]), matrix(392, 712, majors[1])
    out = poisoned(1000, 712, torch.bfloat16)
    assert error(gemm(a, b, tile=tile, out=out), a, b) < 6e-3


@pytest.mark.parametrize(
    ("m", "n", "k"),
    [(1, 8, 9), (1, 13, 8), (1, 1, 1), (8, 1, 16), (9, 8, 16), (16, 24, 1), (1, 4096, 4096)],
)
def test_extents_of_one(m, n, k):
    a = matrix(m, k, "row" if m == 1 or k % 8 == 0 else "column")
    b = matrix(k, n, "column" if n == 1 or k % 8 == 0 else "row")
    assert error(gemm(a, b), a, b) < 6e-3


@pytest.mark.parametrize(("m", "n", "k"), [(0, 8, 8), (8, 0, 8), (8, 8, 0)])
def test_empty_products_equal_those_of_torch(m, n, k):
    a, b = matrix(m, k), matrix(k, n)
    assert torch.equal(gemm(a, b), torch.mm(a, b))


def test_nothing_but_out_is_written():
    a, b, buffer = matrix(300, 136), matrix(136, 200), poisoned(400, 512, torch.bfloat16)
    out = buffer[:300, 64:264]
    gemm(a, b, out=out)
    assert error(out, a, b) < 6e-3
    assert int(buffer.isnan().sum()) == buffer.numel() - out.numel()


def test_out_may_be_column_major():
    a, b, out = matrix(304, 136), matrix(136, 200), matrix(304, 200, "column").fill_(torch.nan)
    assert error(gemm(a, b, out=out), a, b) < 6e-3


def test_the_executor_agrees_with_the_kernel():
    """Integer products are exact in both, so the results are equal."""
    a, b = (torch.randint(-3, 4, shape).to(torch.bfloat16) for shape in ((520, 136), (136, 264)))
    on_gpu, on_cpu = gemm(a.cuda(), b.cuda()), torch.empty(520, 264, dtype=torch.bfloat16)
    execute.gemm(plan_for(a, b), a, b, on_cpu)
    assert torch.equal(on_gpu.cpu(), on_cpu)


def test_runs_repeat_bit_for_bit():
    a, b = matrix(2000, 1000), matrix(1000, 3000)
    first = gemm(a, b)
    assert all(torch.equal(gemm(a, b), first) for _ in range(20))


def test_it_runs_on_the_current_stream():
    """On a side stream it waits for that stream, and no other stream waits."""
    a, b = matrix(1024, 1024), matrix(1024, 1024)
    gemm(a, b)
    stream, late = torch.cuda.Stream(), torch.empty_like(a)
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        torch.cuda._sleep(20_000_000)
        late.copy_(a)
        c = gemm(late, b)
    stream.synchronize()
    assert error(c, a, b) < 6e-3


CHAINS = [  # the second matrix is row-major
    (("sm90",), 512),
    (("sm90_split",), 128),
    (("sm90", "sm90_split", "sm90_single"), 1024),
    (
        (
            pingpong((64, 16, 64), b_major="MN"),
            pingpong(b_major="MN", cluster=(2, 1)),
            single(b_major="MN"),
        ),
        512,
    ),
    (
        (
            split((64, 128, 64), b_major="MN", splits=2, cluster=(2, 2)),
            cooperative(b_major="MN", cluster=(1, 4)),
        ),
        1024,
    ),
]


def launcher(kernel):
    """A function (a, b, out) of a kernel's name or a plan."""
    if isinstance(kernel, str):
        return lambda a, b, out: gemm(a, b, out=out, kernel=kernel)
    loaded = build.load(kernel)
    return lambda a, b, out: loaded(a, b, out, multiprocessors(out.device, kernel))


@pytest.mark.parametrize(("kernels", "extent"), CHAINS)
def test_an_overlapping_launch_waits_for_what_it_reads_and_overwrites(kernels, extent):
    """Each launch reads what the previous one wrote and overwrites what it read; on two streams."""
    order = torch.randperm(extent, device="cuda")
    step = torch.eye(extent, device="cuda", dtype=torch.bfloat16)[order]
    starts = [matrix(extent, 1024) for _ in range(2)]
    pairs = [(start.clone(), torch.empty_like(start)) for start in starts]
    streams = [torch.cuda.Stream() for _ in starts]
    torch.cuda.synchronize()
    launches = [launcher(kernel) for kernel in kernels]
    for _, launch in zip(range(120), itertools.cycle(launches)):
        for stream, (there, back) in zip(streams, pairs, strict=True):
            with torch.cuda.stream(stream):
                launch(step, there, back)
                launch(step, back, there)
    torch.cuda.synchronize()
    for start, (there, _) in zip(starts, pairs, strict=True):
        for _ in range(240):
            start = start[order]
        assert torch.equal(there, start)


def test_it_can_be_captured_in_a_graph():
    a, b, out = matrix(512, 256), matrix(256, 384), poisoned(512, 384, torch.bfloat16)
    gemm(a, b, out=out)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        gemm(a, b, out=out)
    a.copy_(matrix(512, 256))
    out.fill_(torch.nan)
    graph.replay()
    assert error(out, a, b) < 6e-3


def test_a_capture_refuses_to_compile_and_goes_on(monkeypatch, tmp_path):
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path))
    build.load.cache_clear()
    a, b, out = matrix(504, 248), matrix(248, 376), poisoned(504, 376, torch.bfloat16)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        with pytest.raises(RuntimeError, match="call gemm once with such tensors before"):
            gemm(a, b, out=out)
        out.zero_()
    graph.replay()
    assert not out.any()
    assert error(gemm(a, b, out=out), a, b) < 6e-3


CAPTURED = """
import torch
from cutedsl_gemm.kernels.compile import build
from cutedsl_gemm.kernels.device.occupancy import multiprocessors
from cutedsl_gemm.kernels.sm90.rungs import pingpong, split
plan = {plan}
build.make(plan)
a = torch.randint(-3, 4, (520, 136), device="cuda").bfloat16()
b = torch.randint(-3, 4, (264, 136), device="cuda").bfloat16().mT
c = torch.full((520, 264), torch.nan, device="cuda").bfloat16()
expected = (a.double() @ b.double()).bfloat16()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    build.load(plan)(a, b, c, multiprocessors(a.device, plan))
graph.replay()
assert torch.equal(c, expected)
"""


@pytest.mark.parametrize(
    "plan", ["pingpong()", "pingpong(cluster=(2, 1))", "split(splits=2, cluster=(2, 1))"]
)
def test_a_capture_loads_a_compiled_kernel_and_counts_its_clusters(plan):
    """In a process of its own, where nothing is loaded yet: what `gemm` does at a first call."""
    code = CAPTURED.format(plan=plan)
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-2000:]


def test_the_winner_of_a_race_is_right_and_stored(monkeypatch, tmp_path):
    monkeypatch.setattr(tune, "_file", lambda: tmp_path / "tuned.json")
    a, b, out = matrix(520, 1024), matrix(1024, 776), poisoned(520, 776, torch.bfloat16)
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        out.fill_(torch.nan)  # an empty graph is warned of
        with pytest.raises(RuntimeError, match="call gemm once before the capture"):
            gemm(a, b, tune=True)
    assert error(gemm(a, b, out=out, tune=True), a, b) < 6e-3
    (winner,) = json.loads((tmp_path / "tuned.json").read_text()).values()
    assert {*winner} == {"520×776×1024 bfloat16 K-N"}
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        gemm(a, b, tune=True)
    assert torch.equal(gemm(a, b, tune=True), out)
    column_major = matrix(520, 776, "column").fill_(torch.nan)
    assert error(gemm(a, b, out=column_major, tune=True), a, b) < 6e-3


def test_threads_that_first_meet_different_plans_compile_them_one_by_one(monkeypatch, tmp_path):
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path))
    build.load.cache_clear()
    a, b = matrix(1016, 328), matrix(328, 712)
    tiles = [(128, columns, 64) for columns in (64, 80, 112, 160)]
    with ThreadPoolExecutor(8) as pool:
        results = [*pool.map(lambda tile: gemm(a, b, tile=tile), 2 * tiles)]
    assert max(error(c, a, b) for c in results) < 6e-3


def test_threads_may_share_it():
    a, b = matrix(512, 256), matrix(256, 384)
    errors = []
    threads = [
        threading.Thread(target=lambda: errors.append(error(gemm(a, b), a, b))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(errors) == 8
    assert max(errors) < 6e-3


def test_a_tensor_without_memory_is_refused():
    a, b = matrix(16, 32), matrix(32, 24)
    gemm(a, b)
    a.untyped_storage().resize_(0)
    with pytest.raises(ValueError, match="a has no memory of its own"):
        gemm(a, b)


def test_a_remembered_call_checks_its_tensors():
    """The kernel's own checks refuse what the signature does not hold; the message is ours."""
    a, b, out = matrix(16, 32), matrix(32, 24), matrix(16, 24)
    gemm(a, b)
    gemm(a, b, out=out)
    askew = torch.ones(16 * 32 + 8, dtype=a.dtype, device="cuda")[1 : 16 * 32 + 1].view(16, 32)
    for wrong, message in (
        ((a, b.half()), "they must have one dtype"),
        ((a, b.cpu()), "they must be on one device"),
        ((a, b.float()), "b is torch.float32"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            gemm(*wrong)
    gemm(a, b, kernel="sm90")
    with pytest.raises(ValueError, match="a starts at address"):
        gemm(askew, b, kernel="sm90")
    for wrong, message in (
        (out.half(), "out is torch.float16"),
        (out.cpu(), "out is on cpu"),
        (matrix(24, 24)[:8], "out has shape"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            gemm(a, b, out=wrong)


@pytest.mark.parametrize(("m", "n", "k"), [(255, 129, 77), (1000, 50, 513), (3, 8, 5)])
def test_any_strides_and_addresses_are_right(m, n, k):
    wide_a, wide_b = matrix(2 * m + 1, 3 * k + 1), matrix(k + 1, 2 * n + 3)
    odd_a, odd_b = wide_a[1::2, 1::3], wide_b[1:, 1::2][:, :n]
    for a, b in ((odd_a, odd_b), (matrix(m, k), matrix(k, n)), (odd_a[:1].expand(m, k), odd_b)):
        result = gemm(a, b)
        assert result.is_contiguous()
        assert error(result, a, b) < 6e-3
        frame = torch.full((2 * m, n + 7), 7.0, device="cuda", dtype=a.dtype)
        out = frame[1::2, 3 : n + 3]
        assert torch.equal(gemm(a, b, out=out), result)
        out.fill_(7.0)
        assert bool((frame == 7.0).all())  # nothing else was written


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
def test_a_negative_out_is_refused_where_any_address_will_do():
    half = torch.zeros(16, 1, dtype=torch.complex32, device="cuda")
    a, b = matrix(16, 32, dtype=torch.float16), matrix(32, 1, dtype=torch.float16)
    gemm(a, b, out=half.imag)
    with pytest.raises(ValueError, match="out is a view with the negative bit set"):
        gemm(a, b, out=half.conj().imag)


def test_gradients_agree_with_torch():
    a, b = matrix(256, 136).requires_grad_(), matrix(136, 64).requires_grad_()
    gemm(a, b).backward(grad := matrix(256, 64))
    assert error(a.grad, grad, b.detach().mT) < 6e-3
    assert error(b.grad, a.detach().mT, grad) < 6e-3


def odd(rows, columns, gap, start, dtype):
    """A matrix of random bits in memory of its own, and that memory."""
    lead = columns + gap
    flat = torch.randint(-(2**15), 2**15, (start + rows * lead + 5,), device="cuda")
    flat = flat.to(torch.int16).view(dtype)
    return flat, flat.as_strided((rows, columns), (lead, 1), start)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_copies_are_exact_to_the_bit_and_write_nothing_else(dtype):
    draw = random.Random(0)
    for _ in range(200):
        pairs, expected = [], []
        for _ in range(draw.choice((1, 2))):
            rows, columns = (draw.randint(1, draw.choice((9, 80, 600))) for _ in range(2))
            _, source = odd(rows, columns, draw.randint(0, 9), draw.randint(0, 9), dtype)
            flat, target = odd(rows, columns, draw.randint(0, 9), draw.randint(0, 9), dtype)
            after = flat.clone()
            after.as_strided(target.shape, target.stride(), target.storage_offset()).copy_(source)
            expected.append((flat, after))
            pairs.append((source.mT, target.mT) if draw.random() < 0.5 else (source, target))
        copies.copy(*pairs)
        for flat, after in expected:
            assert torch.equal(flat.view(torch.int16), after.view(torch.int16)), pairs


@pytest.mark.parametrize("width", WIDTHS)
def test_words_of_every_width_copy_to_the_bit(width):
    run = build.load(copy_plan(tile=(16, 32 * width), width=width))
    for start, gap in itertools.product(range(width), repeat=2):
        _, source = odd(77, 131, gap, start, torch.bfloat16)
        flat, target = odd(77, 131, 3, gap, torch.bfloat16)
        after = flat.clone()
        after.as_strided(target.shape, target.stride(), target.storage_offset()).copy_(source)
        run(((source, target),))
        assert torch.equal(flat.view(torch.int16), after.view(torch.int16)), (start, gap)


def test_a_copied_product_can_be_captured_in_a_graph_on_a_side_stream():
    a, b, out = matrix(511, 257), matrix(257, 383), poisoned(511, 383, torch.bfloat16)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        gemm(a, b, out=out)
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        gemm(a, b, out=out)
    a.copy_(matrix(511, 257))
    out.fill_(torch.nan)
    graph.replay()
    assert error(out, a, b) < 6e-3


SANITIZED = """
import torch
from cutedsl_gemm.copies import copy
from cutedsl_gemm.kernels.compile import build
from cutedsl_gemm.kernels.sm90.rungs import cooperative, pingpong, single, split
from cutedsl_gemm.problem import Problem
from cutedsl_gemm.select.candidate import CANDIDATES
kinds = {(each.maker, each.cluster, each.swapped): each for each in CANDIDATES}
plans = (pingpong(), pingpong((128, 192, 64)), cooperative(c_stages=2), single(),
         cooperative((256, 192, 64)), split(splits=6), split((128, 64, 64), splits=16),
         pingpong((192, 64, 64)), pingpong((64, 192, 64)), cooperative((128, 128, 64)),
         split((256, 128, 64), splits=3), pingpong(cluster=(1, 2)),
         pingpong((128, 80, 64)), cooperative((128, 176, 64)), pingpong((64, 96, 64)),
         pingpong((64, 16, 64)), split((128, 176, 64), splits=3), cooperative((192, 192, 64)),
         split((128, 64, 64), splits=4, swapped=True), pingpong(cluster=(2, 2), swapped=True),
         split((128, 64, 64), splits=3, cluster=(2, 1)), split((64, 128, 64), splits=4),
         split((64, 24, 64), splits=8, cluster=(1, 4), swapped=True), cooperative((64, 128, 64)),
         *(each.plan(Problem.dense(64, 64, 64)) for each in kinds.values()))
anywhere = (pingpong(c_alignment=1), pingpong((64, 96, 64), cluster=(2, 1), c_alignment=1),
            pingpong((128, 48, 64), c_stages=1, c_alignment=1), single(c_alignment=1),
            cooperative((192, 144, 64), swapped=True, c_alignment=1),
            cooperative((256, 192, 64), c_alignment=1), split(splits=3, c_alignment=1),
            split((128, 24, 64), splits=2, swapped=True, c_alignment=1))
for m, n, k, start, chosen in (
    (520, 264, 136, 0, plans), (1000, 1800, 392, 0, plans), (1001, 1803, 392, 3, anywhere),
):
    a = torch.randn(m, k, device="cuda").bfloat16()
    b = torch.randn(n, k, device="cuda").bfloat16().mT
    for plan in chosen:
        c = torch.full((start + m * n,), torch.nan, device="cuda").bfloat16()[start:].view(m, n)
        build.load(plan)(a, b, c, 132)
        c = c.double()
        assert (c - a.double() @ b.double()).norm() < 6e-3 * c.norm()
for rows, columns in ((33, 77), (129, 513)):
    source = torch.randn(rows * columns + 3, device="cuda").bfloat16()[3:].view(rows, columns)
    target = torch.zeros(rows * columns + 1, device="cuda").bfloat16()[1:].view(rows, columns)
    copy((source, target), (source, aligned := torch.empty_like(source)))
    assert torch.equal(source, target) and torch.equal(source, aligned)
"""


@pytest.mark.parametrize("order", ["row", "column"])
@pytest.mark.parametrize("extent", [1, 129, 130, 132])
def test_memory_beside_out_is_not_written(extent, order):
    """A TMA store clips columns only to 16 bytes."""
    a, b = matrix(257, 64), matrix(64, extent, "column")
    frame = torch.full((512, 512), 7.0, device="cuda", dtype=a.dtype)
    frame = frame if order == "row" else frame.mT
    out = frame[8:265, 8 : 8 + extent]
    gemm(a, b, out=out)
    assert error(out, a, b) < 6e-3
    out.fill_(7.0)
    assert bool((frame == 7.0).all())


FAMILY = [
    single(),
    pingpong((64, 64, 128)),
    pingpong((128, 192, 64), "float16", c_stages=3),
    cooperative(c_stages=2),
    cooperative((256, 128, 64), "float16", "MN", "MN"),
    cooperative((256, 192, 64)),
    pingpong(cluster=(2, 1)),
    pingpong((128, 192, 64), "float16", "MN", "MN", cluster=(1, 2)),
    cooperative(c_stages=2, cluster=(2, 1)),
    cooperative((256, 128, 64), b_major="MN", cluster=(1, 2)),
    split((128, 128, 64), splits=6),
    split((128, 128, 64), "float16", "MN", "MN", splits=8),
    split((128, 64, 64), splits=16),
    split((256, 128, 64), splits=2),
    single((64, 48, 64), "float16", "MN", "MN"),
    pingpong((64, 16, 64)),
    pingpong((64, 80, 128), b_major="MN"),
    pingpong((128, 128, 32)),
    cooperative((128, 176, 96), a_major="MN"),
    pingpong((128, 96, 64), "float16", b_major="MN"),
    pingpong((128, 176, 64)),
    pingpong((128, 176, 64), c_stages=1),
    pingpong((192, 112, 64), a_major="MN", cluster=(1, 2)),
    pingpong((128, 160, 64), b_major="MN", cluster=(2, 1)),
    cooperative((128, 240, 64), c_stages=2),
    cooperative((256, 144, 64), b_major="MN"),
    cooperative((256, 176, 64), cluster=(2, 1)),
    cooperative((192, 176, 64)),
    cooperative((192, 192, 64), "float16", "MN", "MN"),
    cooperative((192, 160, 64), cluster=(2, 1)),
    split((192, 128, 64), splits=3),
    split((128, 176, 64), splits=3),
    split((128, 48, 64), "float16", "MN", "MN", splits=8),
    pingpong((128, 144, 64), a_major="MN", swapped=True),
    pingpong((64, 16, 128), "float16", swapped=True),
    pingpong((64, 8, 64), swapped=True),
    pingpong((128, 136, 64), b_major="MN", swapped=True),
    cooperative((192, 160, 64), "float16", "MN", "MN", swapped=True),
    split((128, 32, 64), splits=8, swapped=True),
    split((128, 80, 64), "float16", "MN", "MN", splits=3, swapped=True),
    pingpong(cluster=(2, 2)),
    pingpong((64, 192, 64), a_major="MN", b_major="MN", cluster=(1, 8)),
    pingpong((128, 160, 64), b_major="MN", cluster=(4, 2), swapped=True),
    cooperative((192, 160, 64), a_major="MN", cluster=(2, 4)),
    cooperative((128, 256, 64), "float16", cluster=(4, 1), swapped=True),
    cooperative((64, 128, 64)),
    cooperative((64, 256, 64), "float16", "MN", "MN", cluster=(1, 2), swapped=True),
    split((64, 128, 64), splits=4),
    split((64, 24, 64), "float16", splits=8, swapped=True),
    split((64, 16, 64), b_major="MN", splits=3, cluster=(1, 8), swapped=True),
    split((64, 256, 64), a_major="MN", splits=2, cluster=(1, 4)),
    split((128, 64, 64), splits=6, cluster=(2, 1)),
    split((128, 128, 64), "float16", "MN", "MN", splits=3, cluster=(2, 2)),
    split((192, 96, 64), splits=16, cluster=(4, 2)),
    split((128, 32, 64), splits=8, cluster=(2, 4), swapped=True),
]
DENSE = Problem.dense(64, 64, 64)
M_AND_N_MAJOR = Problem(DENSE.a.transposed, DENSE.b.transposed, "float16")
CHOSEN = [
    candidate.plan(problem)
    for candidate, problem in itertools.product(CANDIDATES, (DENSE, M_AND_N_MAJOR))
]


@pytest.mark.parametrize(
    "plan",
    dict.fromkeys([*FAMILY, *CHOSEN]),
    ids=lambda plan: f"{plan.schedule} {plan.tile} {plan.cluster}",
)
def test_every_plan_of_the_family_is_exact_on_integers_and_repeats_to_the_bit(plan):
    kernel, dtype = build.load(plan), getattr(torch, plan.dtype)
    for m, n, k in (
        (520, 264, 136),
        (264, 136, 4096),
        (8, 8, 8),
        (1000, 2048, 512),
        (16, 4096, 1096),
    ):
        a = torch.randint(-3, 4, (k, m) if plan.a_major == "MN" else (m, k), device="cuda")
        b = torch.randint(-2, 3, (k, n) if plan.b_major == "MN" else (n, k), device="cuda")
        a, b = a.to(dtype), b.to(dtype)
        a = a.mT if plan.a_major == "MN" else a
        b = b if plan.b_major == "MN" else b.mT
        for sms in (132, 132, 8):  # with 8, a block makes many tiles
            kernel(a, b, out := poisoned(m, n, dtype), sms)
            assert torch.equal(out, (a.double() @ b.double()).to(dtype))


ANYWHERE = [
    single((64, 48, 64), c_alignment=1),
    pingpong(c_alignment=1),
    pingpong((128, 192, 64), "float16", "MN", "MN", c_alignment=1),
    pingpong((64, 16, 64), c_alignment=1),
    pingpong((192, 80, 64), c_stages=1, c_alignment=1),
    pingpong((64, 96, 64), cluster=(4, 2), c_alignment=1),
    pingpong((128, 136, 64), b_major="MN", swapped=True, c_alignment=1),
    pingpong((192, 40, 64), c_stages=1, swapped=True, c_alignment=1),
    pingpong((128, 160, 64), "float16", cluster=(2, 2), swapped=True, c_alignment=1),
    cooperative(c_stages=2, c_alignment=1),
    cooperative((256, 192, 64), cluster=(1, 2), c_alignment=1),
    cooperative((64, 128, 64), c_alignment=1),
    cooperative((192, 144, 64), a_major="MN", swapped=True, c_alignment=1),
    split((128, 80, 64), splits=3, c_alignment=1),
    split((64, 128, 64), "float16", "MN", "MN", splits=4, cluster=(2, 1), c_alignment=1),
    split((128, 24, 64), splits=8, swapped=True, c_alignment=1),
]


@pytest.mark.parametrize(
    "plan", ANYWHERE, ids=lambda plan: f"{plan.kind} {plan.tile} {plan.cluster}"
)
def test_threads_store_rows_of_any_length_at_any_address_and_nothing_beside_them(plan):
    kernel, dtype = build.load(plan), getattr(torch, plan.dtype)
    for m, n, k, gap, start in (
        (520, 261, 136, 0, 0),
        (263, 137, 1096, 3, 1),
        (1001, 2047, 512, 0, 5),
        (17, 4099, 1096, 1, 3),
        (256, 256, 64, 1, 0),
        (2, 2, 8, 0, 1),
    ):
        a, b = torch.randint(-3, 4, (m, k)).to(dtype), torch.randint(-2, 3, (n, k)).to(dtype).mT
        a = aligned_copy((a if plan.a_major == "K" else a.mT.contiguous().mT).cuda())
        b = aligned_copy((b if plan.b_major == "K" else b.contiguous()).cuda())
        lead = n + gap
        frame = torch.full((start + m * lead + 5,), 7.0, dtype=dtype, device="cuda")
        out, expected = frame.as_strided((m, n), (lead, 1), start), frame.clone()
        expected.as_strided(out.shape, out.stride(), start).copy_(a.double() @ b.double())
        for sms in (132, 8):  # with 8, a block makes many tiles
            frame.fill_(7.0)
            kernel(a, b, out, sms)
            assert torch.equal(frame, expected), (m, n, k, gap, start, sms)


ROWS = 1, 2, 8, 17, 64, 65, 128, 129, 192, 256, 300, 512, 1000, 4096, 8192
WEIGHTS = [(4096, 4096), (1024, 14336), (12288, 1536), (776, 1280), (136, 8192)]  # (N, K)


def cancelling(m, n, k, dtype=torch.bfloat16):
    """A (M, K) and B (K, N) whose product is 0: the order of the sum alone gives its bits."""
    order = torch.randperm(k // 2, device="cuda")
    a, b = matrix(m, k // 2, dtype=dtype), matrix(n, k // 2, dtype=dtype)
    return torch.cat((a, a[:, order]), 1), torch.cat((b, -b[:, order]), 1).mT


def same_bits(one, other):
    return torch.equal(one.view(torch.int16), other.view(torch.int16))


@pytest.fixture(scope="module")
def invariant_plans():
    """Every plan that an invariant product of WEIGHTS may get, and FAMILY's."""
    majors = itertools.product(((64, 1), (1, 64)), repeat=2)
    kinds = itertools.product(majors, ("bfloat16", "float16"))
    problems = [
        Problem(Matrix((64, 64), a), Matrix((64, 64), b), dtype, invariant=True)
        for (a, b), dtype in kinds
    ]
    chosen = [
        candidate.plan(problem, candidate.raster(4096))
        for candidate, problem in itertools.product(CANDIDATES, problems)
        if candidate.invariant
    ]
    others = [plan for plan in FAMILY if plan.splits == 1]
    plans = list(dict.fromkeys(chosen + others))
    compiled_with_bar(plans)
    return plans


@pytest.mark.parametrize("nk", WEIGHTS, ids=str)
def test_plans_of_one_order_of_k_give_a_row_the_same_bits_whatever_m(nk, invariant_plans):
    n, k = nk
    by_dtype, wholes = {}, {}  # by dtype, and by dtype and order of K
    for dtype in DTYPES:
        a, b = cancelling(ROWS[-1], n, k, dtype)
        k_major, other = (a, b), (a.mT.contiguous().mT, b.contiguous())
        by_dtype[str(dtype)] = {"K": k_major, "MN": other}
    for plan in invariant_plans:
        kernel, of = build.load(plan), by_dtype[f"torch.{plan.dtype}"]
        a, b = of[plan.a_major][0], of[plan.b_major][1]
        for m in reversed(ROWS):
            kernel(a[:m], b, out := poisoned(m, n, a.dtype), 132)
            whole = wholes.setdefault((a.dtype, plan.k_order(k)), out)
            assert same_bits(out, whole[:m]), (m, plan)


def test_another_order_of_k_gives_other_bits():
    a, b = cancelling(64, 512, 8192)
    whole, in_parts = (poisoned(64, 512, a.dtype) for _ in range(2))
    build.load(pingpong())(a, b, whole, 132)
    build.load(split(splits=4))(a, b, in_parts, 132)
    assert not same_bits(whole, in_parts)


def test_equal_columns_of_b_give_equal_columns_of_c():
    """Every tile begins with k-tile 0, also where C has one row of tiles."""
    a, b = cancelling(64, 8, 8192)
    repeated = b.mT.repeat(512, 1).mT  # column-major
    build.load(pingpong())(a, repeated, out := poisoned(64, 4096, a.dtype), 132)
    assert same_bits(out, out[:, :8].repeat(1, 512))


@pytest.mark.parametrize("nk", [(4096, 4096), (1000, 4098)], ids=str)
def test_an_invariant_row_has_the_same_bits_in_every_batch(nk):
    n, k = nk
    a, b = cancelling(ROWS[-1], n, k)
    sizes = {*range(1, 400), *random.Random(0).sample(range(400, ROWS[-1]), 100), *ROWS}
    compiled_with_bar({plan_for(a[:m], b, invariant=True) for m in sizes})
    whole = gemm(a, b, invariant=True)
    for m in sorted(sizes):
        assert same_bits(gemm(a[:m], b, invariant=True), whole[:m]), m
    rows = torch.randperm(len(a), device="cuda")[:777]
    assert same_bits(gemm(a[rows], b, invariant=True), whole[rows])
    strange = a.clone()
    strange[1::2] = torch.nan
    assert same_bits(gemm(strange, b, invariant=True)[::2], whole[::2])


@pytest.mark.parametrize("tool", ["memcheck", "racecheck", "synccheck"])
def test_the_sanitizer_finds_nothing(tool):
    sanitizer = shutil.which("compute-sanitizer")
    if sanitizer is None:
        pytest.fail("compute-sanitizer is not on the PATH; it comes with the CUDA toolkit")
    run = subprocess.run(
        [
            *(sanitizer, "--tool", tool, "--error-exitcode", "9"),
            *("--report-api-errors", "no"),  # the DSL asks the driver for what it has not
            *(sys.executable, "-c", SANITIZED),
        ],
        env={**os.environ, "PYTORCH_NO_CUDA_MEMORY_CACHING": "1"},  # a tensor ends its memory
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-2000:]
