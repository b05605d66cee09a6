"""The commands and their arguments. What a command is given is checked before it starts."""

from __future__ import annotations

import argparse
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from layouts import __version__
from layouts.errors import did_you_mean

SHAPES = "sweep", "curve", "squares", "weights", "split"  # bench.SHAPES, without importing torch
RANDOM, ODD, BATCHES = "random", "odd", "batches"
DECODE, EPILOGUES, EXPERTS, GATHERED, HOST = "decode", "epilogues", "experts", "gathered", "host"
DRAWN = RANDOM, ODD, BATCHES  # whose shapes are drawn
OF_DRAWN = f"{RANDOM}, {ODD} or {BATCHES}"
LISTED = DECODE, EPILOGUES, EXPERTS, GATHERED, HOST  # of a table of their own
DRAWINGS = ".svg", ".png", ".pdf"
DTYPES = "bfloat16", "float16", "float32"
LARGEST = 32768  # three matrices of float32 and what checks them take 17 GB and more


class Parser(argparse.ArgumentParser):
    """A parser that suggests the nearest choice for an unknown word."""

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            error.message += did_you_mean(str(value), map(str, action.choices or ()))
            raise


def parser() -> argparse.ArgumentParser:
    """The parser of `python -m cutedsl_gemm`."""
    found = Parser(
        prog="python -m cutedsl_gemm",
        description="GEMM for Hopper, built from the layouts of its plan.",
    )
    found.add_argument("--version", action="version", version=f"cutedsl_gemm {__version__}")
    commands = found.add_subparsers(dest="command", metavar="COMMAND")
    commands.add_parser("demo", help="the library in one run, on any machine")
    commands.add_parser("doctor", help="what is installed, what runs here, and how to fix the rest")
    _explain(commands.add_parser("explain", help="the plan that gemm runs for M, N and K"))
    tiles = commands.add_parser("hierarchy", help="block, warp and thread tiles of a kernel")
    tiles.add_argument("kernel", nargs="?", help="one of cutedsl_gemm.KERNELS")
    tiles.add_argument("--svg", type=file, metavar="FILE", help="write the drawing to FILE")
    build = commands.add_parser("build", help="precompile gemm's kernels that have no epilogue")
    build.add_argument(
        "--folder", type=folder, metavar="F", help="write there, not to the cache; F can be shipped"
    )
    ladder = commands.add_parser("ladder", help="time every kernel, from naive to pingpong")
    ladder.add_argument("--size", type=size, metavar="N", help="use N×N×N for all kernels")
    ladder.add_argument("--csv", type=file, metavar="FILE", help="also write the table to FILE")
    ladder.add_argument("--plot", type=drawing, metavar="FILE", help="also draw: .svg, .png, .pdf")
    _bench(commands.add_parser("bench", help="compare gemm with torch.mm, quack and Triton"))
    counters = commands.add_parser("wavefronts", help="compare the bank model with GPU counters")
    counters.add_argument("--markdown", type=file, metavar="FILE", help="write the table to FILE")
    return found


def _explain(explain: argparse.ArgumentParser) -> None:
    for extent in "MNK":
        explain.add_argument(extent, type=positive)
    add = explain.add_argument
    add("--kernel", metavar="NAME", help="one of cutedsl_gemm.KERNELS (default: the model chooses)")
    add(
        "--tile",
        type=positive,
        nargs=3,
        metavar=("BM", "BN", "BK"),
        help="default: as for --kernel",
    )
    add("--dtype", choices=DTYPES, help="of A and B; default: the first that the kernel takes")
    add("--a-major", choices=("k", "m"), default="k", help="A's contiguous mode (default: k, rows)")
    add("--b-major", choices=("n", "k"), default="n", help="B's contiguous mode (default: n, rows)")
    add("--invariant", action="store_true", help="gemm(…, invariant=True)")
    add(
        "--pipeline",
        action="store_true",
        help="print the kernel's pipeline instead: its steps, a proof, a timeline",
    )


def _bench(bench: argparse.ArgumentParser) -> None:
    add = bench.add_argument
    add("--shapes", choices=(*SHAPES, *DRAWN, *LISTED), default="sweep", help="default: sweep")
    add("--seed", type=int, metavar="S", help=f"of --shapes {OF_DRAWN}")
    add("--count", type=positive, metavar="N", help="how many of these shapes to draw")
    add(
        "--invariant",
        action="store_true",
        default=None,
        help=f"of --shapes {OF_DRAWN}: gemm(…, invariant=True)",
    )
    add("--sustained", action="store_true", help="at the power limit, not in bursts")
    add("--csv", type=file, metavar="FILE", help="also write the table to FILE")
    add("--plot", type=drawing, metavar="FILE", help="also draw: .svg, .png, .pdf")


def file(name: str) -> Path:
    """A file that can be written."""
    path = Path(name)
    if not name or path.is_dir() or not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f"{name!r} must be a file in an existing folder")
    try:
        if path.is_file():
            path.open("ab").close()
        elif not path.exists():  # a pipe's reader would leave if it were opened twice
            TemporaryFile(dir=path.parent).close()
    except OSError as error:
        raise argparse.ArgumentTypeError(f"{name!r} cannot be written: {error.strerror}") from None
    return path


def folder(name: str) -> Path:
    """A folder that can be written to; created if it does not exist."""
    if not name.strip():
        raise argparse.ArgumentTypeError(
            f"{name!r} must be the name of a folder; '.' is the current one"
        )
    path = Path(name)
    try:
        path.mkdir(parents=True, exist_ok=True)
        TemporaryFile(dir=path).close()
    except OSError as error:
        raise argparse.ArgumentTypeError(
            f"{name!r} cannot be a folder to write to: {error.strerror}"
        ) from None
    return path


def size(text: str) -> int:
    """An extent that every kernel accepts, and whose matrices fit on a GPU."""
    if not text.isdecimal() or not 8 <= int(text) <= LARGEST or int(text) % 8:
        raise argparse.ArgumentTypeError(f"{text!r} must be a multiple of 8, from 8 to {LARGEST}")
    return int(text)


def positive(text: str) -> int:
    """A count, or an extent."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} must be a positive integer")
    return int(text)


def drawing(name: str) -> Path:
    """A file that matplotlib can draw."""
    path = file(name)
    if path.suffix not in DRAWINGS:
        raise argparse.ArgumentTypeError(f"{name!r} must end in {', '.join(DRAWINGS)}")
    if find_spec("matplotlib") is None:
        raise argparse.ArgumentTypeError("plots need matplotlib: pip install matplotlib")
    return path
