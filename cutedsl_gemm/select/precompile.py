"""Precompile every kernel that gemm can choose, on a machine without a GPU too.

Kernels for a C that TMA cannot store, such as one whose N is not a multiple of 8, are compiled when
they are first needed.

The folder can be shipped: point CUTEDSL_GEMM_CACHE_DIR at it on the machine that runs the kernels.
It may be read-only there, unless a call needs a kernel that it does not contain. It serves one
release of this library, of the CuTe DSL and of TVM-FFI, on one processor architecture.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

from rich.console import Console
from rich.progress import track

from cutedsl_gemm import copies
from cutedsl_gemm.kernels.compile import build, cache
from cutedsl_gemm.kernels.plan.kernel_plan import Plan
from cutedsl_gemm.select.candidate import plans


def compile_all(plans: Iterable[Plan]) -> Iterator[Path]:
    """The libraries of the plans, each as soon as it is compiled; one process for each core.

    A library that the cache folder already contains is not compiled again.
    """
    cores = len(os.sched_getaffinity(0))
    spawn = get_context("spawn")  # a fork of a process with threads may hang
    with ProcessPoolExecutor(cores, mp_context=spawn, initializer=_quiet) as pool:
        try:
            for library in as_completed([pool.submit(build.make, plan) for plan in plans]):
                yield library.result()
        finally:
            pool.shutdown(cancel_futures=True)


def compiled_with_bar(plans: Collection[Plan]) -> list[Path]:
    """The libraries of the plans; a bar on stderr shows how many are compiled."""
    console = Console(stderr=True)
    return [*track(compile_all(plans), "compiling", total=len(plans), console=console)]


def _quiet() -> None:
    """Hide the spinner of a worker process: the parent shows one bar for all."""
    sys.stderr = io.StringIO()


def main(folder: Path | None = None) -> None:
    """Compile every default plan into `folder`, or into the cache folder, and show a bar."""
    if folder is not None:
        os.environ[cache.VARIABLE] = str(folder.absolute())  # worker processes inherit it
    every: list[Plan] = [*plans(), *copies.plans()]
    sizes = [path.stat().st_size for path in compiled_with_bar(every)]
    print(f"{len(sizes)} kernels, {sum(sizes) / 1e6:.1f} MB, in {cache.folder()}")
