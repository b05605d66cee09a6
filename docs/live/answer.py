"""What the live pages ask: as it is, this file runs under Pyodide, and in the tests."""

from __future__ import annotations

import json
from typing import Any

import layouts
from layouts import INSTRUCTIONS, ComposedLayout, Layout, LayoutError, banks, size
from layouts.expression import evaluate
from layouts.shown import drawable, facts, picture, words

ROWS, COLUMNS = 64, 64  # the most that a page shows
UNIT = 16  # bits of an offset, where the layout does not say


def instructions() -> str:
    """The names of the accesses that a page offers."""
    return json.dumps(list(INSTRUCTIONS))


def show(expression: str, access: str = "", lanes: str = "") -> str:
    """The value of an expression, as JSON: its table, its facts, the cost of an access; or why not.

    `lanes` is an expression too, (lane) → index of a coordinate; without it lane after lane goes
    down the first column.
    """
    try:
        value = evaluate(expression)
        seen = picture(value, limit=max(ROWS, COLUMNS))
        layout = drawable(value)
        # a picture has no text of its own
        answer: dict[str, Any] = {"text": "" if value is seen else words(value), "facts": []}
        if seen is not None:
            answer |= {"html": seen.html(), "svg": seen.svg(), "latex": seen.latex()}
        if layout is not None:
            answer["facts"] = facts(layout)
            if access:
                answer["banks"] = cost(layout, access, lanes)
    except LayoutError as error:
        return json.dumps({"error": str(error)})
    return json.dumps(answer)


def cost(layout: Layout | ComposedLayout, access: str, lanes: str = "") -> str:
    """The wavefronts of an access, and two lanes that collide; or why it cannot be made."""
    try:
        asked = evaluate(lanes) if lanes.strip() else Layout(INSTRUCTIONS[access].lanes)
        unit = getattr(layout, "unit", None) or UNIT
        if not isinstance(asked, Layout):
            return f"lanes are {words(asked)}: they must be a layout, lane → index of a coordinate"
        if max(map(asked, range(size(asked)))) >= size(layout):
            return f"{words(layout)} has {size(layout)} coordinates: {access} asks for more lanes"
        report = banks(layout, access, lanes=asked, unit=unit)
    except LayoutError as error:
        return str(error)
    return f"{report} ({unit} bits an element)"


def judge(expression: str, check: str) -> str:
    """Whether an answer to a puzzle is right, as JSON; where it is not, why."""
    try:
        answer = evaluate(expression)
        verdict = eval(check, {**vars(layouts), "answer": answer})
    except LayoutError as error:
        return json.dumps({"right": False, "why": str(error)})
    except (TypeError, AttributeError, IndexError) as error:
        return json.dumps(
            {"right": False, "why": f"this is no layout of the kind asked for: {error}"}
        )
    why = "" if verdict else f"{words(answer)} is a layout, but not that one"
    return json.dumps({"right": bool(verdict), "why": why})
