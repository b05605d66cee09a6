"""python -m cutedsl_gemm demo | explain | hierarchy | build | ladder | bench | wavefronts"""

import argparse
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryFile

SHAPES = "sweep", "curve", "squares", "weights", "split"  # bench.SHAPES, without importing torch
RANDOM, ODD, DECODE, EPILOGUES = "random", "odd", "decode", "epilogues"
DRAWN = RANDOM, ODD  # whose shapes are drawn
LISTED = DECODE, EPILOGUES  # of a table of their own
DRAWINGS = ".svg", ".png", ".pdf"


def parser() -> argparse.ArgumentParser:
    """The commands and their options. Files are checked before anything is measured."""
    found = argparse.ArgumentParser(
        prog="python -m cutedsl_gemm",
        description="GEMM for Hopper, built from the layouts of its plan.",
    )
    commands = found.add_subparsers(dest="command", required=True)
    commands.add_parser("demo", help="the library in one run, on any machine")
    explain = commands.add_parser("explain", help="the plan that gemm runs for M, N and K")
    for extent in "MNK":
        explain.add_argument(extent, type=count)
    explain.add_argument("--kernel", metavar="NAME", help="one of cutedsl_gemm.KERNELS")
    explain.add_argument(
        "--tile", type=count, nargs=3, metavar=("BM", "BN", "BK"), help="default: the model chooses"
    )
    explain.add_argument("--invariant", action="store_true", help="gemm(…, invariant=True)")
    explain.add_argument(
        "--pipeline",
        action="store_true",
        help="instead, when the kernel touches its data: its steps, a proof, a timeline",
    )
    tiles = commands.add_parser("hierarchy", help="block, warp and thread tiles of a kernel")
    tiles.add_argument("kernel", nargs="?", help="one of cutedsl_gemm.KERNELS")
    tiles.add_argument("--svg", type=file, metavar="FILE", help="write the drawing to FILE")
    build = commands.add_parser("build", help="precompile every kernel that gemm can choose")
    build.add_argument(
        "--folder", type=folder, metavar="F", help="write there, not to the cache; F can be shipped"
    )
    ladder = commands.add_parser("ladder", help="time every kernel, from naive to pingpong")
    ladder.add_argument("--size", type=size, metavar="N", help="use N×N×N for all kernels")
    ladder.add_argument("--csv", type=file, metavar="FILE", help="also write the table to FILE")
    ladder.add_argument("--plot", type=drawing, metavar="FILE", help="also draw: .svg, .png, .pdf")
    bench = commands.add_parser("bench", help="compare gemm with torch.mm, quack and Triton")
    bench.add_argument(
        "--shapes", choices=(*SHAPES, *DRAWN, *LISTED), default="sweep", help="default: sweep"
    )
    bench.add_argument("--seed", type=int, metavar="S", help=f"of --shapes {' or '.join(DRAWN)}")
    bench.add_argument("--count", type=count, metavar="N", help="how many of these shapes to draw")
    bench.add_argument(
        "--invariant",
        action="store_true",
        default=None,
        help=f"of --shapes {' or '.join(DRAWN)}: gemm(…, invariant=True)",
    )
    bench.add_argument("--sustained", action="store_true", help="at the power limit, not in bursts")
    bench.add_argument("--csv", type=file, metavar="FILE", help="also write the table to FILE")
    bench.add_argument("--plot", type=drawing, metavar="FILE", help="also draw: .svg, .png, .pdf")
    counters = commands.add_parser("wavefronts", help="compare the bank model with GPU counters")
    counters.add_argument("--markdown", type=file, metavar="FILE", help="write the table to FILE")
    return found


def file(name: str) -> Path:
    """A file that can be written."""
    path = Path(name)
    if path.is_dir() or not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f"{name} must be a file in an existing folder")
    try:
        TemporaryFile(dir=path.parent).close()
    except OSError as error:
        raise argparse.ArgumentTypeError(f"{name} cannot be written: {error.strerror}") from None
    return path


def folder(name: str) -> Path:
    """A folder that can be written to; created if it does not exist."""
    path = Path(name)
    try:
        path.mkdir(parents=True, exist_ok=True)
        TemporaryFile(dir=path).close()
    except OSError as error:
        raise argparse.ArgumentTypeError(
            f"{name} cannot be a folder to write to: {error.strerror}"
        ) from None
    return path


def size(text: str) -> int:
    """An extent that every kernel accepts."""
    if not text.isdecimal() or int(text) < 8 or int(text) % 8:
        raise argparse.ArgumentTypeError(f"{text} must be a positive multiple of 8")
    return int(text)


def count(text: str) -> int:
    """How many shapes to draw, or an extent."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} must be a positive integer")
    return int(text)


def drawing(name: str) -> Path:
    """A file that matplotlib can draw."""
    path = file(name)
    if path.suffix not in DRAWINGS:
        raise argparse.ArgumentTypeError(f"{name} must end in {', '.join(DRAWINGS)}")
    if find_spec("matplotlib") is None:
        raise argparse.ArgumentTypeError("plots need matplotlib: pip install matplotlib")
    return path


def main() -> None:
    """Run the command; exit status 2, with a message, if it cannot run here."""
    arguments = parser()
    options = arguments.parse_args()
    try:
        if options.command in ("demo", "explain", "hierarchy", "build"):
            run_anywhere(options)
        else:
            run_on_gpu(options)
    except Refused as error:
        arguments.exit(2, f"{options.command}: {error}\n")


class Refused(Exception):
    """The command cannot run here; the message gives the reason."""


def run_anywhere(options: argparse.Namespace) -> None:
    """The commands that need no GPU."""
    if options.command == "demo":
        from cutedsl_gemm.measure import demo

        demo.main()
    elif options.command == "explain":
        try:
            print(explanation(options))
        except ValueError as error:
            raise Refused(error) from None
    elif options.command == "build":
        from cutedsl_gemm.select import precompile

        precompile.main(options.folder)
    else:
        from cutedsl_gemm.measure import hierarchy

        try:
            chosen = hierarchy.hierarchy_of(options.kernel)
        except ValueError as error:
            raise Refused(error) from None
        hierarchy.main(chosen, options.svg)


def explanation(options: argparse.Namespace) -> str:
    """The plan for a row-major A and B, or its pipeline; ValueError if there is none."""
    import torch

    from cutedsl_gemm.api import plan_for
    from cutedsl_gemm.kernels.pipeline.report import report
    from cutedsl_gemm.kernels.sm90.plan import Sm90Plan
    from cutedsl_gemm.select.explain import explain
    from cutedsl_gemm.select.registry import named

    dtype = named(options.kernel).requirements.dtypes[0]
    a = torch.empty(options.M, options.K, dtype=dtype)
    b = torch.empty(options.K, options.N, dtype=dtype)
    tile = tuple(options.tile) if options.tile else None
    if not options.pipeline and options.kernel is None:
        return explain(a, b, tile=tile, invariant=options.invariant)
    plan = plan_for(a, b, tile=tile, kernel=options.kernel, invariant=options.invariant)
    if not options.pipeline:
        return plan.explain()
    if not isinstance(plan, Sm90Plan):
        raise Refused(f"--pipeline: {plan.name} has no pipeline; the sm90 kernels have one")
    return f"{plan.explain().splitlines()[0]}\n\n{report(plan.pipeline)}"


def run_on_gpu(options: argparse.Namespace) -> None:
    """The commands that measure a GPU."""
    import torch

    if not torch.cuda.is_available():
        raise Refused("needs a CUDA GPU; none was found")
    if options.command == "bench":
        run_bench(options)
    elif options.command == "ladder":
        from cutedsl_gemm.measure import ladder

        ladder.main(options.size, options.csv, options.plot)
    else:
        from cutedsl_gemm.measure import wavefronts

        wavefronts.main(options.markdown)


def run_bench(options: argparse.Namespace) -> None:
    """bench over named shapes, drawn ones, or those of decoding and of epilogues."""
    given = {name: vars(options)[name] for name in ("count", "seed", "invariant")}
    given = {name: value for name, value in given.items() if value is not None}
    if options.sustained and options.shapes in (*DRAWN, *LISTED):
        raise Refused(f"--sustained is for named shapes; omit it with --shapes {options.shapes}")
    if given and options.shapes not in DRAWN:
        raise Refused(f"--{next(iter(given))} is for --shapes {' or '.join(DRAWN)}")
    if options.shapes in DRAWN:
        from cutedsl_gemm.measure import distribution, odd_shapes, random_shapes

        drawn = random_shapes if options.shapes == RANDOM else odd_shapes
        distribution.main(drawn.POPULATION, **given, file=options.csv, drawing=options.plot)
    elif options.shapes in LISTED:
        from cutedsl_gemm.measure import decode, epilogues

        if options.plot is not None:
            raise Refused(f"--plot does not draw --shapes {options.shapes}; omit it, or take --csv")
        {DECODE: decode, EPILOGUES: epilogues}[options.shapes].main(options.csv)
    else:
        from cutedsl_gemm.measure import bench

        bench.main(options.shapes, options.sustained, options.csv, options.plot)


if __name__ == "__main__":
    main()
