"""Products that overlap with collectives: those of torch's collectives and gemm, on any ranks.

Ranks are processes with gloo, whose collectives move the data; or threads that write each other's
memory, as GPUs do: they show which memory, in which order.
"""

import ctypes
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from weakref import WeakKeyDictionary

import pytest
import torch
import torch.distributed as dist

from cutedsl_gemm.distributed import all_gather, overlap, reduce_scatter, symmetric
from cutedsl_gemm.distributed.all_gather import gathered_plan
from cutedsl_gemm.distributed.collectives import all_gather_gemm, gemm_reduce_scatter
from cutedsl_gemm.distributed.reduce_scatter import PIECE_ROWS, scattered_plan
from cutedsl_gemm.distributed.symmetric import FLAGS_BYTES, SymmetricBuffer
from cutedsl_gemm.inputs.problem import Matrix, Problem
from cutedsl_gemm.kernels.plan.arguments import GatheredRows
from cutedsl_gemm.kernels.plan.checks import PlanError
from cutedsl_gemm.select.registry import DEFAULT
from tests.cutedsl_gemm.distributed.ranks import run

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


def draw(*shape, seed=0):
    """Small integers: products of bfloat16 are exact."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(-3, 4, shape, generator=generator).bfloat16()


def product(a, b):
    return (a.float() @ b.float()).bfloat16()


# --- processes with gloo


def results_and_gradients():
    rank, ranks = dist.get_rank(), dist.get_world_size()
    rows, a, b = slice(8 * rank, 8 * rank + 8), draw(8 * ranks, 16), draw(16, 24, seed=1)
    weight = b.mT.contiguous().mT.requires_grad_()  # column-major, as that of a layer is
    mine = a[rows].clone().requires_grad_()
    c, grad = all_gather_gemm(mine, weight), draw(8 * ranks, 24, seed=2)
    assert torch.equal(c, product(a, b))
    c.backward(grad)
    of_a, of_b = ranks * product(grad, b.mT)[rows], product(a.mT, grad)
    assert torch.equal(mine.grad, of_a)
    assert torch.equal(weight.grad, of_b)
    assert weight.grad.stride() == weight.stride()

    parts = [draw(8 * ranks, 16, seed=each) for each in range(ranks)]
    mine, weight = parts[rank].clone().requires_grad_(), b.clone().requires_grad_()
    c, grad = gemm_reduce_scatter(mine, weight), draw(8 * ranks, 24, seed=3)
    assert torch.equal(c, sum(product(each, b) for each in parts)[rows])
    c.backward(grad[rows])
    assert torch.equal(mine.grad, product(grad, b.mT))
    assert torch.equal(weight.grad, product(parts[rank].mT, grad))
    assert weight.grad.is_contiguous()
    with pytest.raises(ValueError, match=rf"the group has {ranks} ranks.*multiple of {ranks}"):
        gemm_reduce_scatter(draw(8 * ranks + 1, 16), b)
    with pytest.raises(ValueError, match="must be a ProcessGroup that has this rank"):
        all_gather_gemm(mine, b, dist.GroupMember.NON_GROUP_MEMBER)
    for multiplied in (all_gather_gemm, gemm_reduce_scatter):
        total = multiplied(mine, weight).float().sum()
        with pytest.raises(RuntimeError, match="have no gradients: omit create_graph"):
            torch.autograd.grad(total, weight, create_graph=True)
    with pytest.raises(TypeError, match="a is NoneType"):
        all_gather_gemm(None, b)


@pytest.mark.deep
@pytest.mark.parametrize("ranks", [2, 3])
def test_results_and_gradients_are_those_of_the_whole_product(ranks, tmp_path):
    run(results_and_gradients, ranks, tmp_path / "store")


def compiled_layers():
    whole = dist.distributed_c10d._get_default_group()

    def layers(x, up, down, group=whole):
        return gemm_reduce_scatter(all_gather_gemm(x, up, group).relu(), down)

    inputs = [draw(8, 16), draw(16, 24, seed=1), draw(24, 16, seed=2)]
    inputs = [each.requires_grad_() for each in inputs]
    expected = layers(*inputs)
    found = torch.compile(layers, backend="aot_eager", fullgraph=True)(*inputs)
    assert torch.equal(found, expected)
    grads = (torch.autograd.grad(each.sum(), inputs) for each in (found, expected))
    assert all(map(torch.equal, *grads))
    for name in ("all_gather_gemm", "all_gather_gemm_and_rows", "gemm_reduce_scatter"):
        arguments = draw(8, 16), draw(16, 24), whole.group_name
        torch.library.opcheck(getattr(torch.ops.cutedsl_gemm, name).default, arguments)
    torch.library.opcheck(torch.ops.cutedsl_gemm.product.default, arguments[:2])


def test_torch_compile_traces_both_operators_and_opcheck_passes(tmp_path):
    run(compiled_layers, 2, tmp_path / "store")


# --- threads that write each other's memory


GPUS, KERNELS = ThreadPoolExecutor(8), threading.local()


class Memory(SymmetricBuffer):
    """A rank's symmetric buffer, whose peers are threads: what no rank writes is NaN."""

    def __init__(self, rank, shared):
        self.rank, self.ranks, self.shared = rank, len(shared.memory), shared
        self.nbytes, self.prepared, self.handle = 0, {}, None
        self.copy_stream, KERNELS.running = None, []

    def allocate(self, bytes):
        memory = torch.full((bytes,), 0xFF, dtype=torch.uint8)
        memory[:FLAGS_BYTES] = 0
        self.shared.memory[self.rank], self.handle = memory, self

    def finish(self):
        self.shared.wait()

    def get_buffer(self, rank, shape, dtype, first):
        memory = self.shared.memory[rank].view(dtype)[first:]
        return memory[: torch.Size(shape).numel()].view(shape)

    def barrier(self):
        self.shared.wait()

    def begin(self):
        return None

    def copy_stream_waits_for(self, stream):
        pass

    def wait_for_copies(self, stream):
        pass

    def end(self, stream):
        while KERNELS.running:
            KERNELS.running.pop().result()


def copy(stream, target, source, bytes):
    ctypes.memmove(target, source, bytes)


def write_flag(stream, flag, epoch):
    ctypes.c_int32.from_address(flag).value = epoch
    time.sleep(0.1)  # who waits for it now reads what the flag stands for


def wait_for_count(stream, count, value):
    until = time.monotonic() + 30
    while ctypes.c_int32.from_address(count).value - value < 0:
        assert time.monotonic() < until


def wait_for_flags(flags, epoch):
    for i in range(flags.numel()):
        wait_for_count(None, flags.data_ptr() + 4 * i, epoch)


def kernel_on(kernel, plan, device):
    """In place of a kernel that talks with other GPUs: what it does with their memory."""

    def gather(gathered, b, own, arrived, out, rank, epoch, sms):
        for each in {*range(len(arrived))} - {rank}:
            wait_for_flags(arrived[each], epoch)
        time.sleep(0.2 * (rank == 0))  # it is slow to multiply what has come
        gathered.view(len(arrived), len(own), -1)[rank] = torch.nan  # not read from there
        plan.execute(gathered, b, out, exchange=GatheredRows(own, rank))

    def scatter(a, b, parts, arrived, partial, stored, mine, rank, epoch, sms):
        gpus, rows, n = parts.shape
        others = [(rank + step) % gpus for step in range(1, gpus)]
        whole = (a.float() @ b.float()).view(gpus, rows, n)
        for each in others:
            partial.view(gpus, rows, n)[each] = whole[each]
            pieces = partial[:rows].split(plan.piece_rows)
            stored[each] += torch.tensor([piece.numel() for piece in pieces], dtype=torch.int32)
        time.sleep(0.3 * (rank == 0))  # it is slow to add what has come
        for each in others:
            wait_for_flags(arrived[each], epoch)
        mine.copy_(sum((parts[each].float() for each in others), whole[rank]))

    def beside_the_host(*arguments):
        KERNELS.running.append(GPUS.submit(scatter, *arguments))

    return (beside_the_host if plan.scattered else gather), 132


@pytest.fixture
def threads(monkeypatch):
    """A function that calls body(rank, ranks) in a thread for each rank."""
    local = threading.local()
    monkeypatch.setattr(overlap, "kernel_on", kernel_on)
    monkeypatch.setattr(reduce_scatter, "wait_for_count", wait_for_count)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: None)

    def buffer(group, device, use, bytes=0):
        found = local.buffers[use]
        found.reserve(bytes)
        return found

    monkeypatch.setattr(overlap, "known_buffer", buffer)
    for module in (all_gather, reduce_scatter):
        monkeypatch.setattr(module, "may_overlap", lambda a: True)
        monkeypatch.setattr(module, "symmetric_buffer", buffer)
        monkeypatch.setattr(module, "copy", copy)
        monkeypatch.setattr(module, "write_flag", write_flag)

    def run_threads(body, ranks):
        uses = {}
        for use in ("gather", "scatter"):
            barrier = threading.Barrier(ranks, timeout=30)
            uses[use] = SimpleNamespace(memory=[None] * ranks, wait=barrier.wait)
        failures = []

        def rank_of(rank):
            local.buffers = {use: Memory(rank, shared) for use, shared in uses.items()}
            group = dist.ProcessGroup(rank, ranks)
            try:
                body(rank, ranks, group)
            except BaseException as error:
                failures.append(error)
                raise

        every = [threading.Thread(None, rank_of, str(rank), (rank,)) for rank in range(ranks)]
        for each in every:
            each.start()
        for each in every:
            each.join()
        assert not failures, failures

    return run_threads


SHAPES = [(128, 40, 24), (128, 40, 24), (64, 72, 16), (2112, 8, 8)]  # rows of a rank, K, N
RANKS = pytest.mark.parametrize(
    "ranks", [2, *(pytest.param(each, marks=pytest.mark.deep) for each in (3, 5))]
)


@RANKS
def test_each_rank_multiplies_the_rows_that_the_others_have_sent_to_it(threads, ranks):
    def body(rank, ranks, group):
        for call, (rows, k, n) in enumerate(SHAPES):
            a, b = draw(ranks * rows, k, seed=call), draw(n, k, seed=call + 9).mT
            time.sleep(0.01 * (rank == call % ranks))  # each is late once
            mine = a[rank * rows : (rank + 1) * rows].clone()
            b = b if rank else b.contiguous()
            c, every = all_gather.gather(mine, b, group, rows=call > 0)
            mine.fill_(torch.nan)  # the others have it
            assert torch.equal(c, product(a, b)), (rank, call)
            assert call == 0 or torch.equal(every, a), (rank, call)

    threads(body, ranks)


@RANKS
def test_parts_of_a_call_are_not_overwritten_by_the_next_whatever_its_shape(threads, ranks):
    """A rank that is slow to add what has come still finds it there."""

    def body(rank, ranks, group):
        for call, (rows, k, n) in enumerate(SHAPES):
            parts = [draw(ranks * rows, k, seed=9 * call + each) for each in range(ranks)]
            b = draw(n, k, seed=call).mT
            whole = sum(part.float() @ b.float() for part in parts)
            mine = whole[rank * rows : (rank + 1) * rows].bfloat16()
            found = gemm_reduce_scatter(parts[rank], b, group)
            assert torch.equal(found, mine), (rank, call)

    threads(body, ranks)


def test_a_rank_without_columns_sends_its_rows(threads):
    """The others wait for them."""

    def body(rank, ranks, group):
        a, b = draw(128 * ranks, 16), draw(16, 24 * rank)
        found, every = all_gather.gather(a[128 * rank : 128 * rank + 128], b, group, rows=True)
        assert torch.equal(found, product(a, b))
        assert torch.equal(every, a)

    threads(body, 2)


def test_a_rank_that_has_nothing_of_k_takes_part_in_the_sum(threads):
    def body(rank, ranks, group):
        parts, b = [draw(128 * ranks, 16), draw(128 * ranks, 0)], draw(16, 24, seed=1)
        found = gemm_reduce_scatter(parts[rank], b[: parts[rank].shape[1]], group)
        assert torch.equal(found, product(parts[0], b)[128 * rank : 128 * rank + 128])

    threads(body, 2)


def test_a_larger_buffer_keeps_nothing_that_calls_kept_of_the_smaller_one():
    """Views of the former memory: another GPU may have freed it."""
    buffer = Memory(0, SimpleNamespace(memory=[None], wait=lambda: None))
    buffer.reserve(64)
    buffer.prepared["call"] = buffer.get_buffer(0, [8], torch.uint8, FLAGS_BYTES)
    buffer.reserve(64)
    assert "call" in buffer.prepared
    buffer.reserve(65)
    assert not buffer.prepared


def test_epochs_wrap_around_as_an_int32():
    buffer = Memory(0, SimpleNamespace(memory=[None], wait=lambda: None))
    buffer.epoch = 2**31 - 2
    assert [buffer.next_epoch() for _ in range(3)] == [2**31 - 1, -(2**31), 1 - 2**31]


@pytest.mark.parametrize("captured", [False, True])
def test_ranks_do_not_write_each_others_memory_in_a_graph(monkeypatch, captured):
    """It would replay the epoch of its capture."""
    monkeypatch.setattr(overlap, "default_kernel", lambda device: SimpleNamespace(name=DEFAULT))
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: captured)
    assert overlap.may_overlap(SimpleNamespace(is_cuda=True, device=None)) == (not captured)


def test_calls_of_operands_at_other_addresses_are_prepared_apart():
    a, memory = draw(64, 16), draw(16 * 8 + 1)
    aligned, odd = (memory[start : start + 16 * 8].view(16, 8) for start in (0, 1))
    assert overlap.signature(a, aligned) != overlap.signature(a, odd)


def test_rows_that_no_tile_divides_and_odd_rows_of_k_go_through_collectives():
    for rows, k in ((65, 64), (64, 63), (0, 64)):
        a = torch.empty(rows, k)
        assert all_gather._gather_buffer(a, dist.ProcessGroup(0, 2)) is None


@pytest.mark.parametrize("rows", [64, 192, 4096])
def test_the_plan_has_whole_tiles_of_each_rank(rows):
    plan = gathered_plan(3, Problem.dense(3 * rows, 512, 512))
    assert plan.gathered
    assert rows % plan.cluster_tile[0] == 0
    with pytest.raises(PlanError, match="each of 3 ranks has 32 rows"):
        gathered_plan(3, Problem.dense(3 * 32, 512, 512))


@pytest.mark.parametrize("rows", [64, 192, 4096])
def test_flags_are_of_the_same_rows_whatever_the_plan_of_a_rank(rows):
    """Ranks whose a or b have other strides may take other plans."""
    m, n, k = 3 * rows, 512, 512
    for strides in (((k, 1), (1, k)), ((1, m), (n, 1))):
        a, b = map(Matrix, ((m, k), (k, n)), strides)
        plan = scattered_plan(3, Problem(a, b, "bfloat16"))
        assert plan.piece_rows == PIECE_ROWS
        assert rows % plan.cluster_tile[0] == 0


@pytest.mark.parametrize("group", [[0, 1], (None, 0), object()], ids=["ranks", "a pair", "any"])
def test_what_is_no_group_gets_a_message(group):
    with pytest.raises(TypeError, match=r"group is .*: it must be a ProcessGroup.*get_group"):
        symmetric.resolve(group)


class Reserved:
    """A buffer, without memory."""

    def __init__(self, group, device):
        self.handle = None

    def reserve(self, bytes):
        pass


@pytest.fixture
def reserved(monkeypatch):
    monkeypatch.setattr(symmetric, "SymmetricBuffer", Reserved)
    monkeypatch.setattr(symmetric, "_buffers", WeakKeyDictionary())


@pytest.mark.usefixtures("reserved")
def test_a_group_of_the_name_of_an_ended_one_has_a_buffer_of_its_own():
    """Names begin again after destroy_process_group, and the new group may have other ranks."""
    device, groups = torch.device("cpu"), [dist.ProcessGroup(0, 1) for _ in range(2)]
    buffers = [symmetric.symmetric_buffer(group, device, "gather", 8) for group in groups]
    assert buffers[0] is not buffers[1]
    for group, buffer in zip(groups, buffers, strict=True):
        assert symmetric.known_buffer(group, device, "gather") is buffer
        assert symmetric.symmetric_buffer(group, device, "gather", 16) is buffer
    assert symmetric.known_buffer(groups[0], device, "scatter") is None


@pytest.mark.usefixtures("reserved")
def test_the_memory_of_an_ended_group_is_free():
    device, group = torch.device("cpu"), dist.ProcessGroup(0, 1)
    buffer = weakref.ref(symmetric.symmetric_buffer(group, device, "gather", 8))
    del group
    assert buffer() is None
