"""All kernels that gemm chooses by itself, compiled before they are asked for. Needs no GPU.

The folder can be shipped: set CUTEDSL_GEMM_CACHE_DIR to it where the kernels shall run. It is only
read there, as long as a call asks for none beside them, and it serves that release of this library,
of the CuTe DSL and of TVM-FFI, on that kind of processor.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

from rich.console import Console
from rich.progress import track

from cutedsl_gemm.kernels.compile import build, cache
from cutedsl_gemm.kernels.plan.kernel_plan import KernelPlan
from cutedsl_gemm.select.choose import plans


def make(asked: Iterable[KernelPlan]) -> Iterator[Path]:
    """The libraries of the plans, as they are ready, made by as many processes as there are cores.

    Those that are in the cache folder stay as they are.
    """
    cores = len(os.sched_getaffinity(0))
    spawn = get_context("spawn")  # a fork of a process with threads may hang
    with ProcessPoolExecutor(cores, mp_context=spawn, initializer=_quiet) as pool:
        try:
            for made in as_completed([pool.submit(build.make, plan) for plan in asked]):
                yield made.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _quiet() -> None:
    """One bar speaks for all processes."""
    sys.stderr = io.StringIO()


def main(folder: Path | None = None) -> None:
    """Compile every default plan into `folder`, or the cache folder; show a bar."""
    if folder is not None:
        os.environ[cache.VARIABLE] = str(folder.absolute())  # the processes read it, too
    asked = plans()
    bar = track(make(asked), "compiling", total=len(asked), console=Console(stderr=True))
    made = [path.stat().st_size for path in bar]
    print(f"{len(made)} kernels, {sum(made) / 1e6:.1f} MB, in {cache.folder()}")
