"""Time of products that overlap with collectives, compared with torch's and with the product alone.

One process for each GPU of this machine. The providers are measured in turn: a moment of rest, a
few launches to warm up, then ten in a row, timed by CUDA events. The time is that of the slowest
rank, the median of the rounds. Each result is checked against a product in float32; before it, the
memory of the results and of what other ranks send is filled with NaN.

M is that of all ranks' rows, and N and K are those of each rank's product.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing
from rich.console import Console
from rich.table import Table
from torch import Tensor

from cutedsl_gemm.api import gemm
from cutedsl_gemm.distributed import symmetric
from cutedsl_gemm.distributed.all_gather import gathered_plan
from cutedsl_gemm.distributed.collectives import all_gather_gemm, gemm_reduce_scatter
from cutedsl_gemm.distributed.overlap import waited
from cutedsl_gemm.distributed.reduce_scatter import scattered_plan
from cutedsl_gemm.inputs.problem import Problem
from cutedsl_gemm.kernels.plan.kernel_plan import KernelPlan
from cutedsl_gemm.measure.bench import check, machine, normal
from cutedsl_gemm.measure.report import OURS, Shape, write_csv
from cutedsl_gemm.select.choose import choose
from cutedsl_gemm.select.precompile import compiled_with_bar
from cutedsl_gemm.select.timing import HOLD, TIMED, WARM_UP, Launch, timed

GATHER, SCATTER = "all-gather → product", "product → reduce-scatter"
SHAPES: dict[str, list[Shape]] = {
    GATHER: [
        (8192, 8192, 8192),
        (8192, 14336, 8192),
        (4096, 7168, 4096),
        (16384, 4096, 8192),
        (2048, 3584, 8192),
    ],
    SCATTER: [
        (8192, 8192, 4096),
        (8192, 14336, 4096),
        (4096, 7168, 4096),
        (16384, 4096, 8192),
        (2048, 3584, 8192),
    ],
}
MM, ALONE, ASYNC_TP = "torch.mm", "gemm alone", "async-TP"
COLLECTIVE, ONE_AFTER_THE_OTHER = "NCCL alone", "NCCL and torch.mm"
PROVIDERS = MM, ALONE, COLLECTIVE, ONE_AFTER_THE_OTHER, ASYNC_TP, OURS
CHECKED = ONE_AFTER_THE_OTHER, ASYNC_TP, OURS
REST, ROUNDS = 0.1, 5  # seconds


@dataclass(frozen=True)
class Sample:
    """Seconds of each provider for one M, N and K."""

    operation: str
    mnk: Shape
    seconds: dict[str, float]

    def over(self, provider: str) -> float:
        """The time of ours over that of a provider."""
        return self.seconds[OURS] / self.seconds[provider]


def gather_launches(mnk: Shape, group: str) -> dict[str, Callable[[], Tensor]]:
    """The launches of all-gather → product on this rank."""
    m, n, k = mnk
    a, b, whole = normal(m // dist.get_world_size(), k), normal(n, k).mT, normal(m, k)
    gather = torch.ops._c10d_functional.all_gather_into_tensor

    def async_tp() -> Tensor:
        symm_mem = torch.ops.symm_mem
        result: Tensor = symm_mem.fused_all_gather_matmul(a, [b], 0, group)[1][0]
        return result

    ranks = dist.get_world_size()
    return {
        MM: lambda: torch.mm(whole, b),
        ALONE: lambda: gemm(whole, b),
        COLLECTIVE: lambda: waited(gather(a, ranks, group)),
        ONE_AFTER_THE_OTHER: lambda: torch.mm(waited(gather(a, ranks, group)), b),
        ASYNC_TP: async_tp,
        OURS: lambda: all_gather_gemm(a, b),
        "float32": lambda: torch.mm(waited(gather(a, ranks, group)).float(), b.float()),
    }


def scatter_launches(mnk: Shape, group: str) -> dict[str, Callable[[], Tensor]]:
    """The launches of product → reduce-scatter on this rank."""
    m, n, k = mnk
    a, b, partial_sum = normal(m, k), normal(n, k).mT, normal(m, n)
    ranks = dist.get_world_size()
    reduce = torch.ops._c10d_functional.reduce_scatter_tensor

    def async_tp() -> Tensor:
        result: Tensor = torch.ops.symm_mem.fused_matmul_reduce_scatter(a, b, "sum", 0, group)
        return result

    return {
        MM: lambda: torch.mm(a, b),
        ALONE: lambda: gemm(a, b),
        COLLECTIVE: lambda: waited(reduce(partial_sum, "sum", ranks, group)),
        ONE_AFTER_THE_OTHER: lambda: waited(reduce(torch.mm(a, b), "sum", ranks, group)),
        ASYNC_TP: async_tp,
        OURS: lambda: gemm_reduce_scatter(a, b),
        "float32": lambda: waited(reduce(torch.mm(a.float(), b.float()), "sum", ranks, group)),
    }


LAUNCHES = {GATHER: gather_launches, SCATTER: scatter_launches}


def measure(cases: Sequence[tuple[str, Shape]]) -> Iterator[Sample]:
    """The samples, on each rank of the default group."""
    group = dist.distributed_c10d._get_default_group().group_name
    for operation, mnk in cases:
        launches = LAUNCHES[operation](mnk, group)
        expected = launches.pop("float32")()
        for name, launch in launches.items():
            launch()  # compiles and loads the kernel
            if name in CHECKED:
                poison(expected)
                check(f"{operation} by {name}", mnk, launch(), expected)
        del expected
        yield Sample(operation, mnk, _seconds(launches))


def poison(expected: Tensor) -> None:
    """Fill what ranks send to each other, and what the allocator gives next, with NaN."""
    torch.cuda.synchronize()
    dist.barrier()
    for use in ("gather", "scatter"):
        buffer = symmetric.known_buffer(symmetric.resolve(None), expected.device, use)
        if buffer is not None:
            buffer.memory[symmetric.FLAGS_BYTES :].fill_(0xFF)
    torch.full_like(expected, torch.nan, dtype=torch.bfloat16)
    torch.cuda.synchronize()
    dist.barrier()


def _seconds(launches: dict[str, Launch]) -> dict[str, float]:
    """Seconds per launch of each provider, on the slowest rank."""
    times: dict[str, list[float]] = {name: [] for name in launches}
    for _ in range(ROUNDS):
        for name, launch in launches.items():
            time.sleep(REST)
            dist.barrier()
            timed(launch, WARM_UP)
            torch.cuda._sleep(HOLD)  # the host runs ahead: what it enqueues is not measured
            found = torch.tensor([timed(launch, TIMED)], device="cuda")
            dist.all_reduce(found, dist.ReduceOp.MAX)
            times[name].append(found.item())
    return {name: statistics.median(found) for name, found in times.items()}


def table(samples: Sequence[Sample]) -> Table:
    """A row for each sample: µs, and the time of ours over that of the others."""
    shown = Table(title=f"{machine()}: µs; (the time of {OURS} over it)")
    for column in ("operation", "M", "N", "K"):
        shown.add_column(column)
    for column in PROVIDERS:
        shown.add_column(column, justify="right")
    for each in samples:
        cells = (f"{1e6 * each.seconds[name]:.0f} ({each.over(name):.3f})" for name in PROVIDERS)
        shown.add_row(each.operation, *map(str, each.mnk), *cells)
    return shown


def write(samples: Sequence[Sample], file: Path) -> None:
    """The samples as CSV: operation, M, N, K, microseconds of each provider."""
    rows = []
    for each in samples:
        times = (f"{1e6 * each.seconds[name]:.2f}" for name in PROVIDERS)
        rows.append((each.operation, *each.mnk, *times))
    write_csv(file, ("operation", "M", "N", "K", *(f"{name}, µs" for name in PROVIDERS)), rows)


def _plans(ranks: int) -> Iterator[KernelPlan]:
    """The plans of all kernels of ours that are measured."""
    for mnk in SHAPES[GATHER]:
        problem = Problem.dense(*mnk)
        yield from (choose(problem), gathered_plan(ranks, problem))
    for mnk in SHAPES[SCATTER]:
        problem = Problem.dense(*mnk)
        yield from (choose(problem), scattered_plan(ranks, problem))


def _rank(rank: int, ranks: int, store: str, file: Path | None) -> None:
    torch.cuda.set_device(rank)
    files = dist.FileStore(store, ranks)
    device = torch.device("cuda", rank)
    dist.init_process_group("nccl", store=files, rank=rank, world_size=ranks, device_id=device)
    samples = []
    for each in measure([(name, mnk) for name, shapes in SHAPES.items() for mnk in shapes]):
        samples.append(each)
        if rank == 0:
            Console(width=200).print(table(samples[-1:]))
    if rank == 0:
        Console(width=200).print(table(samples))
        if file is not None:
            write(samples, file)
    dist.destroy_process_group()


def main(file: Path | None = None) -> None:
    """Measure on all GPUs of this machine, two or more; print the table, and write it as CSV."""
    ranks = torch.cuda.device_count()
    compiled_with_bar({*_plans(ranks)})
    with tempfile.TemporaryDirectory() as folder:
        arguments = ranks, str(Path(folder, "store")), file
        torch.multiprocessing.spawn(_rank, arguments, nprocs=ranks)
