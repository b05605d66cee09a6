"""Precompile every kernel that gemm can choose without an epilogue, on a machine without a GPU too.

Kernels with an epilogue, those of batches, those with a raster that only `tune=True` tries, and
those for a C that TMA cannot store (N is not a multiple of 8, for example) are compiled when they
are first needed.

The folder can be shipped: point CUTEDSL_GEMM_CACHE_DIR at it on the machine that runs the kernels.
It may be read-only there: a process compiles for itself what the folder lacks. It serves one
release of this library, of the CuTe DSL and of TVM-FFI, on one processor architecture.
"""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing import active_children, get_context
from pathlib import Path

from cutedsl_gemm.kernels.compile import build, cache
from cutedsl_gemm.kernels.compile.progress import track
from cutedsl_gemm.kernels.copies.plan import copy_plans
from cutedsl_gemm.kernels.plan.kernel_plan import Plan
from cutedsl_gemm.select.candidate import plans

TERMINATED = 128 + signal.SIGTERM  # exit status, as shells have it


def compile_all(plans: Iterable[Plan]) -> Iterator[Path]:
    """The libraries of the plans, each as soon as it is compiled; one process for each core.

    A library that the cache folder already contains is not compiled again. If the caller stops
    early, or is interrupted, the processes end at once.
    """
    cores = len(os.sched_getaffinity(0))
    spawn = get_context("spawn")  # a fork of a process with threads may hang
    with ProcessPoolExecutor(cores, mp_context=spawn, initializer=_quiet) as pool:
        others, finished = {*active_children()}, False
        try:
            for library in as_completed(_submit(pool, plans)):
                yield library.result()
            finished = True
        finally:
            if not finished:
                pool.shutdown(wait=False, cancel_futures=True)
                workers = {*active_children()} - others
                for worker in workers:
                    worker.terminate()
                for worker in workers:
                    worker.join()


def _submit(pool: ProcessPoolExecutor, plans: Iterable[Plan]) -> list[Future[Path]]:
    """The compilations, in processes that a Ctrl-C does not reach; this process ends them.

    They start here, and inherit the blocked signal.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return [pool.submit(build.make, plan) for plan in plans]
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def compiled_with_bar(plans: Collection[Plan]) -> list[Path]:
    """The libraries of the plans; stderr shows how many are compiled."""
    return [*track(compile_all(plans), f"compiling {len(plans)} kernels", len(plans))]


def _quiet() -> None:
    """Hide the progress of a worker process: the parent shows that of all."""
    sys.stderr = io.StringIO()


@contextmanager
def _until_terminated() -> Iterator[None]:
    """SIGTERM ends the body as an exception, so that worker processes end, too."""
    if threading.current_thread() is not threading.main_thread():  # which alone may handle signals
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def main(folder: Path | None = None) -> None:
    """Compile every default plan into `folder`, or into the cache folder, and show the progress.

    VersionError, LibraryError or CacheError if kernels cannot be compiled, linked or written.
    """
    if folder is not None:
        os.environ[cache.VARIABLE] = str(folder.absolute())  # worker processes inherit it
    build.check()
    try:
        every: list[Plan] = [*plans(), *copy_plans()]
        with _until_terminated():
            sizes = [path.stat().st_size for path in compiled_with_bar(every)]
    finally:
        cache.sweep()
    print(f"{len(sizes)} kernels, {sum(sizes) / 1e6:.1f} MB, in {cache.folder()}")
