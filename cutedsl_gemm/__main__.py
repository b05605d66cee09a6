"""python -m cutedsl_gemm demo | hierarchy | build | ladder | bench | wavefronts"""

import argparse
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryFile

SHAPES = "sweep", "curve", "squares", "weights", "split"  # of bench, which loads torch
DRAWINGS = ".svg", ".png", ".pdf"


def parser() -> argparse.ArgumentParser:
    """What may be asked. Files are looked at before anything is measured."""
    found = argparse.ArgumentParser(
        prog="python -m cutedsl_gemm",
        description="GEMM for Hopper, built of the layouts that its plan shows.",
    )
    commands = found.add_subparsers(dest="command", required=True)
    commands.add_parser("demo", help="the whole idea, on any machine")
    tiles = commands.add_parser("hierarchy", help="block, warp and thread tiles of a kernel")
    tiles.add_argument("kernel", nargs="?", help="one of cutedsl_gemm.KERNELS")
    tiles.add_argument("--svg", type=file, metavar="FILE", help="draw them there, not here")
    build = commands.add_parser("build", help="all kernels gemm chooses, compiled ahead, anywhere")
    build.add_argument("--folder", type=folder, metavar="F", help="to ship; else the cache folder")
    ladder = commands.add_parser("ladder", help="every kernel, from naive to pingpong, on a GPU")
    ladder.add_argument("--size", type=size, metavar="N", help="N×N×N for all of them")
    ladder.add_argument("--plot", type=drawing, metavar="FILE", help="draw the tables there, too")
    bench = commands.add_parser("bench", help="speed beside torch.mm, quack and Triton, on an H100")
    bench.add_argument("--shapes", choices=SHAPES, default="sweep")
    bench.add_argument("--sustained", action="store_true", help="at the power limit, not in bursts")
    bench.add_argument("--csv", type=file, metavar="FILE", help="write the table there, too")
    bench.add_argument("--plot", type=drawing, metavar="FILE", help="draw it: .svg, .png, .pdf")
    counters = commands.add_parser("wavefronts", help="the bank model beside an H100's counters")
    counters.add_argument("--markdown", type=file, metavar="FILE", help="write the table there")
    return found


def file(name: str) -> Path:
    """A file that can be written."""
    path = Path(name)
    if path.is_dir() or not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f"{name} must be a file in a folder that is there")
    try:
        TemporaryFile(dir=path.parent).close()
    except OSError as error:
        raise argparse.ArgumentTypeError(f"{name} cannot be written: {error.strerror}") from None
    return path


def folder(name: str) -> Path:
    """A folder that can be written to, made where there is none."""
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
    """An extent that every rung takes, checked before the first of them is measured."""
    if not text.isdecimal() or int(text) < 8 or int(text) % 8:
        raise argparse.ArgumentTypeError(f"{text} must be a positive multiple of 8")
    return int(text)


def drawing(name: str) -> Path:
    """A file that matplotlib can draw."""
    path = file(name)
    if path.suffix not in DRAWINGS:
        raise argparse.ArgumentTypeError(f"{name} must end in {', '.join(DRAWINGS)}")
    if find_spec("matplotlib") is None:
        raise argparse.ArgumentTypeError("plots are drawn with matplotlib: pip install matplotlib")
    return path


def main() -> None:
    """Do what is asked; a sentence, and exit status 2, where it cannot be done."""
    asker = parser()
    asked = asker.parse_args()
    try:
        if asked.command in ("demo", "hierarchy", "build"):
            anywhere(asked)
        else:
            on_a_gpu(asked)
    except Refused as error:
        asker.exit(2, f"{asked.command}: {error}\n")


class Refused(Exception):
    """What is asked cannot be done here; the message says why."""


def anywhere(asked: argparse.Namespace) -> None:
    """The commands that need no GPU."""
    if asked.command == "demo":
        from cutedsl_gemm.measure import demo

        demo.main()
    elif asked.command == "build":
        from cutedsl_gemm.select import precompile as ahead

        ahead.main(asked.folder)
    else:
        from cutedsl_gemm.measure import hierarchy

        try:
            shown = hierarchy.shown(asked.kernel)
        except ValueError as error:
            raise Refused(error) from None
        hierarchy.main(shown, asked.svg)


def on_a_gpu(asked: argparse.Namespace) -> None:
    """The commands that measure one."""
    import torch

    if not torch.cuda.is_available():
        raise Refused("it measures a GPU, and torch sees none here")
    if asked.command == "bench":
        from cutedsl_gemm.measure import bench as speed

        speed.main(asked.shapes, asked.sustained, asked.csv, asked.plot)
    elif asked.command == "ladder":
        from cutedsl_gemm.measure import ladder as climb

        climb.main(asked.size, asked.plot)
    else:
        from cutedsl_gemm.measure import wavefronts

        wavefronts.main(asked.markdown)


if __name__ == "__main__":
    main()
