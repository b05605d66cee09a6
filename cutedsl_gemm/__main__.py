"""python -m cutedsl_gemm COMMAND; `command_line.parser` lists the commands."""

from __future__ import annotations

import argparse
import errno
import io
import os
import sys
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from cutedsl_gemm.command_line import (
    BATCHES,
    DECODE,
    DRAWN,
    EPILOGUES,
    EXPERTS,
    GATHERED,
    HOST,
    LISTED,
    ODD,
    OF_DRAWN,
    RANDOM,
    parser,
)
from cutedsl_gemm.kernels.compile.cache import CacheError
from cutedsl_gemm.kernels.compile.library import LibraryError
from cutedsl_gemm.kernels.compile.sass import ToolError
from cutedsl_gemm.kernels.compile.versions import VersionError, installation

ANYWHERE = "demo", "doctor", "explain", "hierarchy", "build"  # commands that need no GPU
INTERRUPTED = 130  # exit status, as shells have it


class Refused(Exception):
    """The command cannot run here; the message gives the reason."""


def main() -> None:
    """Run the command; exit status 2, with a message, if it cannot run here."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # what an encoding lacks, such as × in ASCII
    arguments = parser()
    options = arguments.parse_args()
    if options.command is None:
        arguments.print_help(sys.stderr)
        sys.exit(2)
    try:
        (run_anywhere if options.command in ANYWHERE else run_on_gpu)(options)
        print(end="", flush=True)
    except (Refused, CacheError, LibraryError, ToolError, VersionError) as error:
        arguments.exit(2, f"{options.command}: {error}\n")
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] in ("layouts", "cutedsl_gemm"):
            raise
        missing = f"needs {error.name}, which is not installed: {installation()}"
        arguments.exit(2, f"{options.command}: {missing}\n")
    except BrokenProcessPool:
        told = (
            "a process that compiled was killed, perhaps for lack of memory (each takes 0.5 GB); "
            "what is compiled is kept: run the command again on fewer cores, with taskset -c 0-3"
        )
        arguments.exit(2, f"{options.command}: {told}\n")
    except KeyboardInterrupt:
        kept = "; what is compiled is kept, and the same command goes on from there"
        told = f"stopped{kept if options.command == 'build' else ''}"
        arguments.exit(INTERRUPTED, f"{options.command}: {told}\n")
    except BrokenPipeError:  # the reader, such as head, has closed the pipe
        _discard_output()
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        what = "what it prints" if _is_full() else "what it writes"
        arguments.exit(2, f"{options.command}: {what} does not fit: {error.strerror}\n")


def _is_full() -> bool:
    """Whether the output is full; then what Python would flush at its exit is discarded."""
    try:
        print(end="", flush=True)
    except OSError:
        _discard_output()
        return True
    return False


def _discard_output() -> None:
    """Discard what is buffered: Python would try to flush it at its exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def run_anywhere(options: argparse.Namespace) -> None:
    """The commands that need no GPU."""
    if options.command == "demo":
        from cutedsl_gemm.measure import demo

        demo.main()
    elif options.command == "doctor":
        from cutedsl_gemm import doctor

        doctor.main()
    elif options.command == "build":
        from cutedsl_gemm.select import precompile

        precompile.main(options.folder)
    elif options.command == "explain":
        try:
            print(explanation(options))
        except (TypeError, ValueError) as error:
            raise Refused(error) from None
    else:
        from cutedsl_gemm.measure import hierarchy

        try:
            chosen = hierarchy.hierarchy_of(options.kernel)
        except ValueError as error:
            raise Refused(error) from None
        hierarchy.main(chosen, options.svg)


def explanation(options: argparse.Namespace) -> str:
    """The plan for A and B, or its pipeline; TypeError or ValueError if there is none."""
    from cutedsl_gemm.api import plan_for
    from cutedsl_gemm.explanation import explain
    from cutedsl_gemm.inputs.problem import dtype_name
    from cutedsl_gemm.kernels.pipeline.report import report
    from cutedsl_gemm.kernels.sm90.plan import Sm90Plan
    from cutedsl_gemm.select.registry import named

    kernel = named(options.kernel)
    dtypes = {dtype_name(each): each for each in kernel.requirements.dtypes}
    if options.dtype not in (None, *dtypes):
        raise Refused(f"--dtype is {options.dtype}: {kernel.name} takes {' and '.join(dtypes)}")
    dtype = dtypes[options.dtype or next(iter(dtypes))]
    a = _matrix(options.M, options.K, dtype, options.a_major == "k")
    b = _matrix(options.K, options.N, dtype, options.b_major == "n")
    given = {"tile": options.tile, "invariant": options.invariant}
    if not options.pipeline and options.kernel is None:
        return explain(a, b, **given)
    plan = plan_for(a, b, kernel=options.kernel, **given)
    if not options.pipeline:
        return plan.explain()
    if not isinstance(plan, Sm90Plan):
        raise Refused(f"--pipeline: {plan.name} has no pipeline; the sm90 kernels have one")
    return f"{plan.explain().splitlines()[0]}\n\n{report(plan.pipeline)}"


def _matrix(rows: int, columns: int, dtype: Any, row_major: bool) -> Any:
    """A matrix without memory."""
    import torch

    from cutedsl_gemm.inputs.problem import MAX_EXTENT

    if max(rows, columns) > MAX_EXTENT:
        raise Refused(f"M, N and K must be at most {MAX_EXTENT}, and one is {max(rows, columns)}")
    shape = (rows, columns) if row_major else (columns, rows)
    made = torch.empty(shape, dtype=dtype, device="meta")
    return made if row_major else made.mT


def run_on_gpu(options: argparse.Namespace) -> None:
    """The commands that measure a GPU."""
    import torch

    if not torch.cuda.is_available():
        raise Refused("needs a CUDA GPU; none was found (python -m cutedsl_gemm doctor says why)")
    if options.command == "bench":
        run_bench(options)
    elif options.command == "ladder":
        from cutedsl_gemm.measure import ladder

        ladder.main(options.size, options.csv, options.plot)
    else:
        from cutedsl_gemm.measure import wavefronts

        wavefronts.main(options.markdown)


def run_bench(options: argparse.Namespace) -> None:
    """bench over named shapes, drawn ones, or those of a table of their own."""
    import torch

    given = {name: vars(options)[name] for name in ("count", "seed", "invariant")}
    given = {name: value for name, value in given.items() if value is not None}
    if options.sustained and options.shapes in (*DRAWN, *LISTED):
        raise Refused(f"--sustained is for named shapes; omit it with --shapes {options.shapes}")
    if given and options.shapes not in DRAWN:
        raise Refused(f"--{next(iter(given))} is for --shapes {OF_DRAWN}")
    if options.shapes in DRAWN:
        from cutedsl_gemm.measure import batches, distribution, odd_shapes, random_shapes

        drawn: Any = {RANDOM: random_shapes, ODD: odd_shapes, BATCHES: batches}
        population = drawn[options.shapes].POPULATION
        distribution.main(population, **given, file=options.csv, drawing=options.plot)
    elif options.shapes in LISTED:
        from cutedsl_gemm.measure import decode, epilogues, experts, gathered, host

        if options.plot is not None:
            raise Refused(f"--plot does not draw --shapes {options.shapes}; omit it, or take --csv")
        if options.shapes == GATHERED and (gpus := torch.cuda.device_count()) < 2:
            raise Refused(f"--shapes {GATHERED} needs two GPUs or more, and torch sees {gpus}")
        measured: Any = {
            DECODE: decode,
            EPILOGUES: epilogues,
            EXPERTS: experts,
            GATHERED: gathered,
            HOST: host,
        }
        measured[options.shapes].main(options.csv)
    else:
        from cutedsl_gemm.measure import bench

        bench.main(options.shapes, options.sustained, options.csv, options.plot)


if __name__ == "__main__":
    main()
