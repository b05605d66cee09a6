"""``python -m layouts EXPR``: evaluate an expression of the algebra, draw it, print its facts.

python -m layouts "S<3,3,3> o 0 o (8,64):(64,1)"
python -m layouts "logical_divide((8,8):(8,1), <4:1,2:1>)" --svg tiles.svg
python -m layouts "compare(naive=(8,64):(64,1), padded=(8,64):(72,1))" --show bank
python -m layouts "sectors(32:1)" --unit 32
python -m layouts stmatrix      lanes, addresses and banks of an epilogue: naive, padded, swizzled
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from pathlib import Path
from typing import Any

from . import __version__
from .draw import Table
from .draw.summary import answer, facts, words
from .errors import LayoutError
from .notation.expression import operations

#: The options that write a file; each is a method of `Table`.
WRITERS = ("svg", "html", "latex")

#: Words that stand for an expression.
REPORTS = {"stmatrix": "staging_report()"}


def main(arguments: list[str] | None = None) -> int:
    """Prints the value of the expression on the command line; returns 0, or 2 after an error."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # what an encoding lacks, such as × in cp1252
    options = _parser().parse_args(arguments)
    try:
        _show(REPORTS.get(options.expression, options.expression), options)
        print(end="", flush=True)
    except LayoutError as error:
        print(error, file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader, such as head, has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        print(f"{error.filename or 'the output'}: {error.strerror}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    names = ", ".join(name for name in sorted(operations()) if name[0].islower())
    parser = argparse.ArgumentParser(
        prog="python -m layouts",
        description="Draw a layout, or evaluate an operation on layouts.",
        epilog=f"Operations: {names}.",
    )
    add = parser.add_argument
    add("--version", action="version", version=f"layouts {__version__}")
    add(
        "expression",
        metavar="EXPR",
        help="a layout, or an expression such as composition(S<3,3,3>, (8,64):(64,1)), or the word "
        "stmatrix: banks of an epilogue's stores",
    )
    add(
        "--unit",
        type=int,
        metavar="BITS",
        help="bits of one offset of a layout without a unit of its own: 8 for bytes (default 16); "
        "an operation that takes a unit gets it",
    )
    add(
        "--banks",
        type=int,
        metavar="BYTES",
        help="bytes per colour (there are 8 colours; default 16)",
    )
    add("--show", choices=("offset", "byte", "bank"), help="what a cell shows (default offset)")
    add(
        "--width",
        type=_columns,
        metavar="COLUMNS",
        help="split wide tables (default: the terminal's)",
    )
    for name in WRITERS:
        add(f"--{name}", type=_file, metavar="FILE", help=f"also write the table as {name.upper()}")
    return parser


def _columns(text: str) -> int:
    """The argument of --width."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} must be a number of columns, 1 or more")
    return int(text)


def _file(text: str) -> Path:
    """The argument of an option that writes a file."""
    if not text:
        raise argparse.ArgumentTypeError("the name of the file is empty")
    return Path(text)


def _show(expression: str, options: argparse.Namespace) -> None:
    asked = {name: getattr(options, name) for name in ("unit", "banks", "show")}
    given = {name: x for name, x in asked.items() if x is not None}
    found = answer(expression, **given)
    value, layout = found.value, found.layout
    left = {name: x for name, x in given.items() if name not in found.taken}
    drawn = found.picture(**(left if isinstance(value, Table) else given))
    if drawn is None and left:
        raise LayoutError(
            f"--{', --'.join(left)}: the value has no table, and the operations of the expression "
            f"do not take it, or have it already"
        )
    if drawn is None:
        print(layout if layout is not None else words(value))
    else:
        print(drawn.text(width=options.width))
    if layout is not None:
        print("", *facts(layout), sep="\n")
    _write(value, drawn, options)


def _write(value: Any, drawn: Table | None, options: argparse.Namespace) -> None:
    for name in WRITERS:
        file = getattr(options, name)
        if file is None:
            continue
        if drawn is None:
            what = words(value)
            what = "a report" if "\n" in what else what
            raise LayoutError(f"--{name}: {what} has no table to write")
        file.write_text(getattr(drawn, name)(), encoding="utf-8")
        print(f"wrote {file}")


if __name__ == "__main__":
    sys.exit(main())
