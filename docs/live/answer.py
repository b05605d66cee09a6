"""What the live pages ask: as it is, this file runs under Pyodide, and in the tests.

An answer is JSON. Where it needs sympy, and sympy is not there, it is `{"needs": "sympy"}`: the
page brings it, and asks again.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeAlias

import layouts
from layouts import (
    INSTRUCTIONS,
    ComposedLayout,
    Layout,
    LayoutError,
    Table,
    banks,
    instruction,
    size,
)
from layouts.draw.cells import Panel
from layouts.notation.expression import evaluate
from layouts.draw.summary import drawable, facts, picture, words
from layouts.values.tuples import is_int, leaves

MOST = 64  # rows, and columns, that a page shows of a panel
MOST_CELLS = 16_384  # of all panels: 2 MB of HTML
MOST_LANES = 1024
UNIT = 16  # bits of an offset, where the layout does not say

AnyLayout: TypeAlias = Layout | ComposedLayout


def answered(question: Callable[..., dict[str, Any]]) -> Callable[..., str]:
    """The answer as JSON, whatever happens: an error is a sentence."""

    @wraps(question)
    def asked(*args: str) -> str:
        try:
            found = question(*args)
        except LayoutError as error:
            missing = error.__cause__
            known = isinstance(missing, ModuleNotFoundError)
            found = {"needs": missing.name} if known else {"error": str(error)}
        except ModuleNotFoundError as error:
            found = {"needs": error.name}
        except Exception as error:  # of a value that nobody foresaw
            found = {"error": f"{type(error).__name__}: {error}"}
        return json.dumps(found)

    return asked


@answered
def instructions() -> dict[str, Any]:
    """The names of the accesses that a page offers."""
    return {"names": list(INSTRUCTIONS)}


@answered
def show(expression: str, access: str = "", lanes: str = "") -> dict[str, Any]:
    """The value of an expression: its table, its facts, the cost of an access; or why not.

    `lanes` is an expression too, (lane) → index of a coordinate; without it the lanes go down the
    rows, piece after piece.
    """
    value = evaluate(expression)
    layout = drawable(value)
    seen = picture(value) if isinstance(value, Table) else picture(value, limit=MOST)
    # a picture has no text of its own
    answer: dict[str, Any] = {"text": "" if value is seen else words(value), "facts": []}
    if seen is not None:
        seen = within(seen)
        answer |= {"html": seen.html(), "svg": seen.svg(), "latex": seen.latex()}
    if layout is not None:
        answer["facts"] = facts(layout)
    if access:
        answer["banks"] = costs(value, access, lanes)
    return answer


def costs(value: Any, access: str, lanes: str) -> str:
    """A line for each layout of a picture, or the one of a layout."""
    if isinstance(value, Table):
        drawn = [(name, cost(one, value.unit, access, lanes)) for name, one in value.layouts]
        return "\n".join(f"{name}: {said}" for name, said in drawn)
    layout = drawable(value)
    return "" if layout is None else cost(layout, None, access, lanes)


def within(table: Table) -> Table:
    """`table` with no more cells than a page can show; what is left out is said."""
    if sum(len(panel.cells) * len(panel.cells[0]) for panel in table.panels) <= MOST_CELLS:
        return table
    panels = [
        Panel(
            panel.title,
            (*panel.notes, f"cut to {MOST} rows and columns: give it a limit, to choose"),
            tuple(row[:MOST] for row in panel.cells[:MOST]),
            panel.row_ends[:MOST],
            panel.column_ends[:MOST],
        )
        for panel in table.panels[: MOST_CELLS // MOST**2]
    ]
    return Table(tuple(panels), table.legend, table.colours, table.layouts, table.unit)


def cost(layout: AnyLayout, unit: int | None, access: str, lanes: str = "") -> str:
    """The wavefronts of an access, and two lanes that collide; or why it cannot be made."""
    if not all(map(is_int, leaves(layout.shape))):
        return f"{words(layout)} has symbols: give them values, to count what an access costs"
    unit = unit or getattr(layout, "unit", None) or UNIT
    if type(layout(0)) is not int:
        return f"{words(layout)} gives coordinates, and no addresses"
    try:
        asked = evaluate(lanes) if lanes.strip() else rows_first(layout, access, unit)
        if not isinstance(asked, Layout) or type(asked(0)) is not int:
            return f"lanes are {words(asked)}: they must be a layout, lane → index of a coordinate"
        if size(asked) > MOST_LANES:
            return f"lanes are {words(asked)}: they are {size(asked)}, and a block has {MOST_LANES}"
        if max(map(asked, range(size(asked)))) >= size(layout):
            return f"{words(layout)} has {size(layout)} coordinates: {access} asks for more lanes"
        report = banks(layout, access, lanes=asked, unit=unit)
    except LayoutError as error:
        return str(error)
    return f"{report} ({unit} bits an element)"


def rows_first(layout: AnyLayout, access: str, unit: int) -> Layout:
    """Lane after lane down the rows, then down them again a piece further on.

    A row runs along memory: it is a column where the layout's columns do.
    """
    how = instruction(access)
    count, width = how.lanes, max(1, how.width * 8 // unit)
    modes = [size(mode) for mode in layout]
    if len(modes) != 2 or min(modes) == 1:
        return Layout(count, width)
    rows, columns = modes
    if layout(0, 1) - layout(0, 0) != 1 and abs(layout(1, 0) - layout(0, 0)) == 1:
        across = min(count, columns)
        return Layout((across, -(-count // across)), (rows, width))
    down = min(count, rows)
    return Layout((down, -(-count // down)), (1, rows * width))


@answered
def judge(expression: str, checks: str) -> dict[str, Any]:
    """Whether an answer to a puzzle is right; where it is not, which condition does not hold.

    `checks` is JSON: pairs of a condition in Python and what to say where it fails, with values in
    braces.
    """
    answer = evaluate(expression)
    names = {**vars(layouts), "answer": answer}
    for condition, said in json.loads(checks):
        try:
            holds = bool(eval(condition, names))
        except (LayoutError, TypeError, AttributeError, IndexError, ValueError):
            return {"right": False, "why": f"{words(answer)} is not of the kind asked for"}
        if not holds:
            return {"right": False, "why": eval(f"f{said!r}", names)}
    return {"right": True, "why": ""}
