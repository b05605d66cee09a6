"""Launches on an H100: on streams, behind one another, in CUDA graphs, from threads."""

import itertools
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from on_gpu import error, launcher, matrix, plan_of, poisoned, run_apart

from cutedsl_gemm import gemm
from cutedsl_gemm.kernels.compile import build, cache
from cutedsl_gemm.kernels.copies.plan import copy_plans
from cutedsl_gemm.kernels.sm90.rungs import cooperative, pingpong, single, split

pytestmark = pytest.mark.gpu


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


COLUMNS = 1024
CHAINS = [  # (kernels in turn, extent): the second matrix is row-major
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


def plans_of_chain(kernels, extent):
    named = [kernel for kernel in kernels if isinstance(kernel, str)]
    return [plan_of((extent, COLUMNS, extent), kernel=name) for name in named]


def permuted_in_turn(kernels, step, pairs, streams, turns):
    """So many turns of two launches on each stream: step · there → back, step · back → there.

    Each launch reads what the previous one wrote, and overwrites what it read.
    """
    for _, launch in zip(range(turns), itertools.cycle(map(launcher, kernels))):
        for stream, (there, back) in zip(streams, pairs, strict=True):
            with torch.cuda.stream(stream):
                launch(step, there, back)
                launch(step, back, there)


class Chains:
    """For two streams each: a matrix, its copy and a buffer; and the permutation of a launch."""

    def __init__(self, extent):
        self.order = torch.randperm(extent, device="cuda")
        self.step = torch.eye(extent, device="cuda", dtype=torch.bfloat16)[self.order]
        self.starts = [matrix(extent, COLUMNS) for _ in range(2)]
        self.pairs = [(start.clone(), torch.empty_like(start)) for start in self.starts]
        torch.cuda.synchronize()

    def permuted(self, launches):
        """Whether the copies are the matrices, permuted so many times."""
        torch.cuda.synchronize()
        order = torch.arange(len(self.order), device="cuda")
        for _ in range(launches):
            order = order[self.order]
        pairs = zip(self.starts, self.pairs, strict=True)
        return all(torch.equal(there, start[order]) for start, (there, _) in pairs)


@pytest.mark.compiles(plans=plans_of_chain)
@pytest.mark.parametrize(("kernels", "extent"), CHAINS)
def test_an_overlapping_launch_waits_for_what_it_reads_and_overwrites(kernels, extent):
    chains = Chains(extent)
    streams = [torch.cuda.Stream() for _ in chains.pairs]
    permuted_in_turn(kernels, chains.step, chains.pairs, streams, 120)
    assert chains.permuted(240)


@pytest.mark.compiles(plans=plans_of_chain)
@pytest.mark.parametrize(("kernels", "extent"), CHAINS)
def test_overlapping_launches_wait_in_the_two_branches_of_a_graph_too(kernels, extent):
    """Split-K's workspaces then come from the memory pool of the graph."""
    chains, turns, replays = Chains(extent), 30, 5
    here = torch.cuda.current_stream()
    permuted_in_turn(kernels, chains.step, chains.pairs, (here, here), len(kernels))  # loads them
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        trunk, branch = torch.cuda.current_stream(), torch.cuda.Stream()
        branch.wait_stream(trunk)
        permuted_in_turn(kernels, chains.step, chains.pairs, (trunk, branch), turns)
        trunk.wait_stream(branch)
    for _ in range(replays):
        graph.replay()
    assert chains.permuted(2 * (len(kernels) + turns * replays))


ROWS = 300
WIDTHS = 512, 511, 1000, 77, 4099, 264, 1096, 4096, 33, 2048, 9, 136
STEPS = [*itertools.pairwise((*WIDTHS, WIDTHS[0]))]


@pytest.mark.compiles(
    plans=lambda: (copy_plans(), [plan_of((ROWS, n, k)) for k, n in STEPS]),
)
def test_a_graph_of_many_products_of_any_width_is_exact_at_every_replay():
    """Each step selects columns of the last result: by split-K too, and by way of copies."""
    picks = [torch.randint(k, (n,), device="cuda") for k, n in STEPS]
    steps = [
        torch.eye(k, device="cuda", dtype=torch.bfloat16)[:, pick].contiguous()
        for (k, _), pick in zip(STEPS, picks, strict=True)
    ]
    first, laps = matrix(ROWS, WIDTHS[0]), 5

    def last():
        result = first
        for step in laps * steps:
            result = gemm(result, step)
        return result

    def expected():
        result = first
        for pick in laps * picks:
            result = result[:, pick]
        return result

    assert torch.equal(last(), expected())  # loads the kernels
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = last()
    for _ in range(5):
        first.copy_(matrix(ROWS, WIDTHS[0]))
        captured.fill_(torch.nan)
        graph.replay()
        assert torch.equal(captured, expected())


def assert_a_replay_reads_new_data(a, b, out):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        gemm(a, b, out=out)
    a.copy_(matrix(*a.shape))
    out.fill_(torch.nan)
    graph.replay()
    assert error(out, a, b) < 6e-3


def test_it_can_be_captured_in_a_graph():
    a, b, out = matrix(512, 256), matrix(256, 384), poisoned(512, 384, torch.bfloat16)
    gemm(a, b, out=out)
    assert_a_replay_reads_new_data(a, b, out)


def test_a_copied_product_can_be_captured_in_a_graph_on_a_side_stream():
    a, b, out = matrix(511, 257), matrix(257, 383), poisoned(511, 383, torch.bfloat16)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        gemm(a, b, out=out)
    stream.synchronize()
    assert_a_replay_reads_new_data(a, b, out)


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


FIRST = """
import threading, torch
from cutedsl_gemm.kernels.compile import build
from cutedsl_gemm.kernels.device.occupancy import multiprocessors
from cutedsl_gemm.kernels.sm90.rungs import pingpong
plan = pingpong(cluster=(2, 1))
a = torch.randint(-3, 4, (520, 136), device="cuda").bfloat16()
b = torch.randint(-3, 4, (264, 136), device="cuda").bfloat16().mT
c = torch.full((520, 264), torch.nan, device="cuda").bfloat16()
thread = threading.Thread(
    target=lambda: build.load(plan)(a, b, c, multiprocessors(a.device, plan))
)
thread.start()
thread.join()
assert torch.equal(c, (a.double() @ b.double()).bfloat16())
"""


def test_the_first_call_of_a_thread_may_launch_clusters():
    """As the first product of a backward pass does, in a thread that has no CUDA context yet."""
    status, output = run_apart(sys.executable, "-c", FIRST, seconds=90)
    assert status == 0, output[-2000:]


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
    status, output = run_apart(sys.executable, "-c", code, seconds=90)
    assert status == 0, output[-2000:]


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
