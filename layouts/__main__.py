"""``python -m layouts EXPR``: evaluate an expression of the algebra, show it, say what it is.

python -m layouts "S<3,3,3> o 0 o (8,64):(64,1)"
python -m layouts "logical_divide((8,8):(8,1), <4:1,2:1>)" --svg tiles.svg
python -m layouts "compare(naive=(8,64):(64,1), padded=(8,64):(72,1))" --banks 16 --unit 16
python -m layouts stmatrix      lanes, addresses and banks of an epilogue: naive, padded, swizzled
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from .draw import Table, table
from .errors import LayoutError
from .expression import evaluate, operations
from .layout import Layout, cosize
from .proof import Injective, prove
from .swizzle import ComposedLayout, Swizzle
from .tuples import is_int, leaves, size, text

#: The options that write a file, and the method of `Table` that makes its text.
WRITERS = ("svg", "html", "latex")

#: Words that stand for an expression.
REPORTS = {"stmatrix": "staging_report()"}


def main(arguments: list[str] | None = None) -> int:
    """Show the value of the expression on the command line; 0, or 2 if it has none."""
    options = _parser().parse_args(arguments)
    try:
        _show(evaluate(REPORTS.get(options.expression, options.expression)), options)
        sys.stdout.flush()
    except LayoutError as error:
        print(error, file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        print(f"{error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    names = ", ".join(name for name in sorted(operations()) if name[0].islower())
    parser = argparse.ArgumentParser(
        prog="python -m layouts",
        description="Show a layout, or what an operation makes of layouts.",
        epilog=f"Operations: {names}.",
    )
    add = parser.add_argument
    add("expression", metavar="EXPR", help="composition(S<3,3,3>, (8,64):(64,1)), or any layout")
    add("--unit", type=int, metavar="BITS", help="bits of one offset: 8 for bytes (default 16)")
    add("--banks", type=int, metavar="BYTES", help="bytes that have one hue of 8 (default 16)")
    add("--show", choices=("offset", "byte", "bank"), help="what a cell holds (default offset)")
    add("--width", type=int, metavar="COLUMNS", help="cut wide tables (default: the terminal's)")
    for name in WRITERS:
        add(f"--{name}", metavar="FILE", help=f"also write the table as {name.upper()}")
    return parser


def _show(value: Any, options: argparse.Namespace) -> None:
    layout = _drawable(value)
    picture = value if isinstance(value, Table) else None
    if layout is not None and all(map(is_int, leaves(layout.shape))):
        given = {name: getattr(options, name) for name in ("unit", "banks", "show")}
        picture = table(layout, **{name: x for name, x in given.items() if x is not None})
    if picture is None:
        print(layout if layout is not None else _words(value))
    else:
        print(picture.text(width=options.width))
    if layout is not None:
        print("", *_facts(layout), sep="\n")
    _write(value, picture, options)


def _drawable(value: Any) -> Layout | ComposedLayout | None:
    """`value` as a layout: of a shape the compact one, of a swizzle its runs; or None."""
    if isinstance(value, (Layout, ComposedLayout)):
        return value
    if isinstance(value, Swizzle):  # rows are the bits that are read, columns those that change
        runs, rows = 1 << abs(value.shift), 1 << value.bits
        domain = Layout((rows, runs), (runs << value.base, 1 << value.base))
        return ComposedLayout(value, 0, domain)
    if isinstance(value, tuple) and value and all(map(is_int, leaves(value))):
        return Layout(value)
    return None


def _facts(layout: Layout | ComposedLayout) -> list[str]:
    """Size, cosize, and whether an offset is taken twice, with the reason."""
    facts = [f"size {size(layout)}, cosize {_cosize(layout)}"]
    try:
        facts.append(str(prove(Injective(layout))))
    except LayoutError as error:
        facts.append(f"not decided whether it is injective: {error}")
    return facts


def _cosize(layout: Layout | ComposedLayout) -> Any:
    try:
        bound = cosize(layout)
    except (LayoutError, TypeError):
        return "not defined"
    return text(bound)


def _words(value: Any) -> str:
    """A value that is no layout, as CuTe would print it."""
    if isinstance(value, tuple):
        return f"({','.join(map(_words, value))})"
    return "_" if value is None else str(value)


def _write(value: Any, picture: Table | None, options: argparse.Namespace) -> None:
    for name in WRITERS:
        file = getattr(options, name)
        if file is None:
            continue
        if picture is None:
            raise LayoutError(f"--{name}: {_words(value)} has no table to write")
        Path(file).write_text(getattr(picture, name)(), encoding="utf-8")
        print(f"wrote {file}")


if __name__ == "__main__":
    sys.exit(main())
