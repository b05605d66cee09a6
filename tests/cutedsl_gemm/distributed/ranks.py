"""Processes that stand for the ranks of a job: gloo on the CPU, or nccl, joined through a file."""

from __future__ import annotations

import functools
import multiprocessing
import os
import time
import traceback
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.tensor  # the server imports it once, for all ranks

SECONDS = 60  # of all ranks, on a busy machine


def run(
    body: Callable[..., None],
    ranks: int,
    store: Path,
    *arguments: Any,
    backend: str = "gloo",
    seconds: float = SECONDS,
) -> None:
    """Call body(*arguments) in each rank. AssertionError with what each rank that failed says.

    Where a rank fails, its connections close, and gloo ends the others with an error. With nccl,
    each rank has the GPU of its number.
    """
    context = _server()
    queue = context.Queue()
    given = body, ranks, str(store), arguments, backend, seconds, queue
    processes = [context.Process(target=_rank, args=(rank, *given)) for rank in range(ranks)]
    for each in processes:
        each.start()
    deadline = time.monotonic() + seconds
    for each in processes:
        each.join(max(0.0, deadline - time.monotonic()))
    late = [rank for rank, each in enumerate(processes) if each.is_alive()]
    for rank in late:
        processes[rank].kill()
        processes[rank].join()
    failures = [f"rank {rank} did not end in {seconds} seconds" for rank in late]
    while not queue.empty():
        failures.append("rank {}: {}".format(*queue.get()))
    failures += [
        f"rank {rank} ended with exit code {each.exitcode}"
        for rank, each in enumerate(processes)
        if each.exitcode and rank not in late
    ]
    assert not failures, "\n".join(failures)


@functools.cache
def _server() -> Any:
    """A process that has imported torch, of which each rank is a fork: torch forks badly itself."""
    context = multiprocessing.get_context("forkserver")
    preloaded = "tests.cutedsl_gemm.distributed.ranks", "cutedsl_gemm.distributed.sharding"
    context.set_forkserver_preload([*preloaded])
    return context


def _rank(
    rank: int,
    body: Callable[..., None],
    ranks: int,
    store: str,
    arguments: Any,
    backend: str,
    seconds: float,
    queue: Any,
) -> None:
    torch.set_num_threads(1)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    limit = timedelta(seconds=seconds / 2)
    try:
        if backend == "nccl":
            torch.cuda.set_device(rank)
        files = dist.FileStore(store, ranks)
        dist.init_process_group(backend, store=files, rank=rank, world_size=ranks, timeout=limit)
        body(*arguments)
        dist.destroy_process_group()
    except BaseException:
        queue.put((rank, traceback.format_exc()))
        queue.close()
        queue.join_thread()
        os._exit(1)  # closes the connections at once
