"""The answers to the live pages. The same file runs under Pyodide and in the tests.

An answer is JSON. If it needs sympy, and sympy is not loaded, it is `{"needs": "sympy"}`; the page
then asks a Python that has sympy.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from pkgutil import walk_packages
from typing import Any, TypeAlias

import layouts
from layouts import (
    INSTRUCTIONS,
    ComposedLayout,
    Layout,
    LayoutError,
    Table,
    banks,
    explain,
    instruction,
    size,
)
from layouts.draw.cells import Panel
from layouts.draw.summary import Answer, facts, picture, words
from layouts.draw.summary import answer as ask
from layouts.hardware.fragment import Drawn
from layouts.notation.expression import evaluate, read
from layouts.values.tuples import is_int, leaves
from layouts.values.unit import unit_of

MOST = 64  # rows, and columns, of a panel on a page
MOST_CELLS = 16_384  # of all panels: 2 MB of HTML
MOST_OF_ANSWER = 16  # rows, and columns, of the table of an answer
MOST_LANES = 1024  # threads of a block
MOST_CHARACTERS = 1_200  # of a message

AnyLayout: TypeAlias = Layout | ComposedLayout


def prepare() -> None:
    """Imports all that an answer may use: for a snapshot of Python's memory."""
    for module in walk_packages(layouts.__path__, "layouts."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    for access in ("", *INSTRUCTIONS):
        show("S<3,3,3> o 0 o (8,64):(64,1)", access)
    steps("composition((6,2):(8,2), (4,3):(3,1))")
    show("compositoin((4,8), 2)")


def answered(question: Callable[..., dict[str, Any]]) -> Callable[..., str]:
    """The answer as JSON, whatever happens: an error becomes its message."""

    @wraps(question)
    def asked(*args: str) -> str:
        try:
            found = question(*args)
        except LayoutError as error:
            missing = error.__cause__
            known = isinstance(missing, ModuleNotFoundError)
            found = {"needs": missing.name} if known else {"error": shortened(str(error))}
        except ModuleNotFoundError as error:
            found = {"needs": error.name}
        except Exception as error:  # an input that no test foresaw
            found = {"error": shortened(f"{type(error).__name__}: {error}")}
        return json.dumps(found)

    return asked


def shortened(message: str) -> str:
    """A message of a length that can be read: its beginning, and its end, where a caret may be."""
    left_out = len(message) - MOST_CHARACTERS
    if left_out <= 0:
        return message
    end = MOST_CHARACTERS // 3
    return f"{message[: 2 * end]} … ({left_out} characters) … {message[-end:]}"


@answered
def show(expression: str, access: str = "", lanes: str = "", unit: str = "") -> dict[str, Any]:
    """The value of an expression: its table, its facts, and the wavefronts of an access.

    `lanes` is an expression too, lane → index of a coordinate; by default the lanes read down the
    rows, one vector of each, and then the next vectors.  `unit` are the bits of an element.
    """
    given = {"unit": int(unit)} if unit else {}
    found = ask(expression, **given)
    table = table_of(found, given)
    shown: dict[str, Any] = {"text": text_beside(found.value), "facts": []}
    if table is not None:
        shown["html"] = table.html(page=True)
    if found.layout is not None:
        shown["facts"] = [shortened(fact) for fact in facts(found.layout)]
    if access:
        shown["banks"] = shortened(costs(found, given.get("unit"), access, lanes))
    return shown


@answered
def drawing(expression: str, unit: str, form: str) -> dict[str, Any]:
    """The table of an expression as ``"svg"`` or ``"latex"``."""
    given = {"unit": int(unit)} if unit else {}
    return {"text": getattr(table_of(ask(expression, **given), given), form)()}


def table_of(found: Answer, given: dict[str, int]) -> Table | None:
    """The table of an answer, no larger than a page can show."""
    is_table = isinstance(found.value, Table)  # it has its own unit and limit
    table = found.picture(**({} if is_table else {"limit": MOST, **given}))
    return None if table is None else within(table)


def text_beside(value: Any) -> str:
    """The text that goes with a value's table; nothing if the value prints as its table."""
    is_picture = isinstance(value, Table) or type(value).__str__ is Drawn.__str__
    return "" if is_picture else words(value)


@answered
def steps(expression: str) -> dict[str, Any]:
    """The steps of an expression that is one operation; empty if `explain` has none."""
    asked = read(expression)[1].asked
    try:
        return {"text": str(explain(asked[0], *asked[1]))} if asked else {}
    except LayoutError:
        return {}


def costs(found: Answer, unit: int | None, access: str, lanes: str) -> str:
    """The cost of an access to a layout, or a line for each layout of a table."""
    if isinstance(found.value, Table):
        table = found.value
        costs = [(name, cost(one, table.unit, access, lanes)) for name, one in table.layouts]
        return "\n".join(f"{name}: {message}" for name, message in costs)
    return "" if found.layout is None else cost(found.layout, unit, access, lanes)


def within(table: Table) -> Table:
    """`table` with no more cells than a page can show; a note says what is missing."""
    if sum(len(panel.cells) * len(panel.cells[0]) for panel in table.panels) <= MOST_CELLS:
        return table
    panels = [
        Panel(
            panel.title,
            (*panel.notes, f"cut to {MOST} rows and columns: choose fewer with limit="),
            tuple(row[:MOST] for row in panel.cells[:MOST]),
            panel.row_ends[:MOST],
            panel.column_ends[:MOST],
            panel.shape,
            panel.at,
            tuple(row[:MOST] for row in panel.elements[:MOST]),
            panel.counts,
        )
        for panel in table.panels[: MOST_CELLS // MOST**2]
    ]
    return Table(tuple(panels), table.legend, table.colours, table.layouts, table.unit)


def cost(layout: AnyLayout, unit: int | None, access: str, lanes: str = "") -> str:
    """The wavefronts of an access, and two lanes that conflict; or why it cannot be made."""
    if not all(map(is_int, leaves(layout.shape))):
        return f"{words(layout)} has symbols: give them values to count wavefronts"
    if type(layout(0)) is not int:
        return f"{words(layout)} gives coordinates, not addresses"
    try:
        unit = unit_of(layout, unit)
        of_lane = evaluate(lanes) if lanes.strip() else rows_first(layout, access, unit)
        given = f"lanes {words(of_lane)}"
        if not isinstance(of_lane, Layout) or type(of_lane(0)) is not int:
            return f"{given}: they must be a layout, lane → index of a coordinate"
        if size(of_lane) > MOST_LANES:
            return f"{given}: there are {size(of_lane)}, and a block has at most {MOST_LANES}"
        if max(map(of_lane, range(size(of_lane)))) >= size(layout):
            return f"{words(layout)} has {size(layout)} coordinates, too few for {access}"
        report = banks(layout, access, lanes=of_lane, unit=unit)
    except LayoutError as error:
        return str(error)
    return str(report)


def rows_first(layout: AnyLayout, access: str, unit: int) -> Layout:
    """lane → index: down the rows, one vector of each, then down them again at the next vectors.

    Rows are contiguous in memory: they are the layout's columns if those are contiguous.
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
def judge(expression: str, checks: str, shown: str = "") -> dict[str, Any]:
    """Whether an answer to a puzzle is right; if not, the message of the condition that fails.

    `checks` is JSON: pairs of a condition in Python and its message, with values in braces. Below
    the verdict, the page shows the picture of the expression, or the table that `shown`, in Python
    too, makes of the answer.
    """
    asked = ask(expression)
    answer = asked.value
    if not isinstance(answer, AnyLayout):
        return {"right": False, "why": f"{words(answer)} is not a layout, such as (2,4):(4,1)"}
    why = failed(answer, json.loads(checks))
    return {"right": not why, "why": why, "html": drawn(asked, shown)}


def drawn(asked: Answer, shown: str = "") -> str:
    """The picture of an answer to a puzzle; empty if there is none."""
    try:
        names = {**vars(layouts), "answer": asked.value}
        table = eval(shown, names) if shown else asked.picture(limit=MOST_OF_ANSWER)
    except LayoutError:  # for instance, a thread-value layout that leaves its tile
        table = picture(asked.value, limit=MOST_OF_ANSWER)
    return "" if table is None else table.html(page=True)


def failed(answer: AnyLayout, checks: list[tuple[str, str]]) -> str:
    """The message of the first condition that an answer fails; empty if it fails none."""
    names = {**vars(layouts), "answer": answer}
    for condition, message in checks:
        try:
            if not eval(condition, names):
                return str(eval(f"f{message!r}", names))
        except LayoutError as error:
            return str(error)
        except (TypeError, AttributeError, IndexError, ValueError):
            return f"{words(answer)} has other modes than those asked for"
    return ""
