"""``python -m layouts "S<3,3,3> o 0 o (8,64):(64,1)"`` shows a layout as a table."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from .draw import table
from .errors import LayoutError
from .layout import Layout
from .notation import parse
from .swizzle import ComposedLayout, Swizzle


def main(arguments: list[str] | None = None) -> int:
    """Print the table of the layout on the command line; 0, or 2 if it cannot be read or drawn."""
    parser = argparse.ArgumentParser(prog="python -m layouts", description="Show a layout.")
    parser.add_argument(
        "layout", help="as CuTe prints it: (4,8):(8,1), S<3,3,3> o 0 o (8,64):(64,1)"
    )
    parser.add_argument("--unit", type=int, help="bits of one offset: 8 for bytes (default 16)")
    options = parser.parse_args(arguments)
    try:
        print(table(_drawable(parse(options.layout)), unit=options.unit))
    except LayoutError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def _drawable(value: Any) -> Layout | ComposedLayout:
    """`value` as a layout; a shape alone is laid out compactly."""
    if isinstance(value, Swizzle):
        raise LayoutError(
            f"{value} is a swizzle: write the layout it is composed with, {value} o 0 o ..."
        )
    return value if isinstance(value, (Layout, ComposedLayout)) else Layout(value)


if __name__ == "__main__":
    sys.exit(main())
