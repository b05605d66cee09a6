"""What the command line and the pages show of a value: its table, its facts, its text."""

from __future__ import annotations

from typing import Any

from ..errors import LayoutError
from ..proof.injective import Injective
from ..proof.prove import Statement, prove
from ..values.layout import Layout, cosize
from ..values.swizzle import ComposedLayout, Swizzle
from ..values.tuples import is_int, leaves, size, text
from . import Table, table


def picture(value: Any, **given: Any) -> Table | None:
    """The table of a value, or None if it has none.

    `given` holds arguments of `table`: unit, show, banks, limit.  Raises `LayoutError` if there are
    any and the value is a table already.

    >>> from layouts import Swizzle
    >>> picture(Swizzle(1, 0, 1)).panels[0].title, picture(7)
    ('S<1,0,1> o 0 o (2,2):(2,1)', None)
    """
    if isinstance(value, Table):
        if given:
            raise LayoutError(
                f"{', '.join(given)}: the value is a table already; give it to table(...) instead"
            )
        return value
    layout = drawable(value)
    if layout is None or not all(map(is_int, leaves(layout.shape))):
        return None
    return table(layout, **given)


def drawable(value: Any) -> Layout | ComposedLayout | None:
    """The layout that draws `value`: the compact one for a shape, blocks for a swizzle; or None."""
    if isinstance(value, (Layout, ComposedLayout)):
        return value
    if isinstance(value, Swizzle):  # rows count the bits that are read, columns those that change
        columns, rows = 1 << abs(value.shift), 1 << value.bits
        domain = Layout((rows, columns), (columns << value.base, 1 << value.base))
        return ComposedLayout(value, 0, domain)
    if isinstance(value, tuple) and value and all(map(is_int, leaves(value))):
        return Layout(value)
    return None


def facts(layout: Layout | ComposedLayout) -> list[str]:
    """Size, cosize, and whether the layout is injective, with the reason."""
    facts = [f"size {size(layout)}, cosize {_cosize(layout)}"]
    try:
        facts.append(str(prove(Injective(layout))))
    except LayoutError as error:
        facts.append(f"injectivity not decided: {error}")
    return facts


def _cosize(layout: Layout | ComposedLayout) -> Any:
    try:
        bound = cosize(layout)
    except (LayoutError, TypeError):
        return "not defined"
    return text(bound)


def words(value: Any) -> str:
    """A value as CuTe prints it, `None` as an underscore; the answer to a statement.

    Raises `Undecided` for a statement that is neither proved nor refuted.
    """
    if isinstance(value, Statement):
        return str(prove(value))
    if isinstance(value, tuple):
        return f"({','.join(map(words, value))})"
    return "_" if value is None else str(value)
