"""What the command line and the pages show of a value: its table, its facts, its text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..errors import LayoutError
from ..explanation.steps import Explanation
from ..explanation.views import views_of
from ..hardware.fragment import Drawn
from ..hardware.instructions import Instruction
from ..notation.expression import read
from ..proof.injective import Injective
from ..proof.prove import Statement, prove
from ..values.layout import Layout, cosize
from ..values.swizzle import ComposedLayout, Swizzle
from ..values.tuples import is_int, leaves, size, text
from ..values.value import Value
from . import Table, table
from .fragments import fragments
from .operation import operation
from .panels import blocks_of


class Answer(Value):
    """What a page, or the command line, shows of an expression.

    `value`   of the expression
    `layout`  the layout that draws it, or None: the compact one for a shape that is written out,
              blocks for a swizzle
    `asked`   the operation and its arguments, if the expression is one call
    `taken`   the names of the defaults that an operation took
    """

    __slots__ = __match_args__ = ("value", "layout", "asked", "taken")
    value: Any
    layout: Layout | ComposedLayout | None
    asked: tuple[Callable[..., Any], tuple[Any, ...]] | None
    taken: frozenset[str]

    def __init__(
        self,
        value: Any,
        layout: Layout | ComposedLayout | None,
        asked: tuple[Callable[..., Any], tuple[Any, ...]] | None,
        taken: frozenset[str],
    ) -> None:
        self._set(value, layout, asked, taken)

    def picture(self, **given: Any) -> Table | None:
        """The layouts of the operation, or else the value, as a table; see the function `picture`.

        >>> [panel.title for panel in answer("composition(8:2, 4:2)").picture().panels]
        ['A = 8:2', 'B = 4:2', 'R = A∘B = 4:4']
        """
        views = views_of(*self.asked, self.value) if self.asked else None
        drawn = self.value if self.layout is None else self.layout
        return operation(views, **given) or picture(drawn, **given)


def answer(expression: str, **defaults: Any) -> Answer:
    """The answer to an expression; `defaults` and errors are those of `evaluate`.

    A tuple is the shape of a layout only if it is written out: a result may be a coordinate.

    >>> print(answer("(4,8)").layout, answer("idx2crd(21, (4,8))").layout)
    (4,8):(1,4) None
    """
    value, reader = read(expression, **defaults)
    is_shape = reader.is_literal and _is_shape(value)
    layout = Layout(value) if is_shape else drawable(value)
    return Answer(value, layout, reader.asked, frozenset(reader.taken))


def _is_shape(value: Any) -> bool:
    extents = leaves(value) if isinstance(value, tuple) else ()
    return extents != () and all(is_int(extent) and extent >= 1 for extent in extents)


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
    if isinstance(value, Drawn):
        if {*given} & {"show", "banks"}:
            raise LayoutError(f"{value.heading}: it has no offsets; omit show and banks")
        return fragments(value, **{name: x for name, x in given.items() if name == "limit"})
    if isinstance(value, Explanation):
        return operation(value.views(), **given)
    layout = drawable(value)
    if layout is None or not all(map(is_int, leaves(layout.shape))):
        return None
    return table(layout, **given)


def drawable(value: Any) -> Layout | ComposedLayout | None:
    """The layout that draws `value`, blocks for a swizzle; or None."""
    if isinstance(value, (Layout, ComposedLayout)):
        return value
    return blocks_of(value) if isinstance(value, Swizzle) else None


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
    """A value as CuTe prints it, `None` as an underscore; the answer to a statement; the names of
    a table, one on a line; an instruction in one line, since its text is its picture.

    Raises `Undecided` for a statement that is neither proved nor refuted.
    """
    if isinstance(value, (Drawn, Instruction)):
        return value.heading
    if isinstance(value, Statement):
        return str(prove(value))
    if isinstance(value, Mapping):
        return "\n".join(map(words, value))
    if isinstance(value, tuple):
        return f"({','.join(map(words, value))})"
    return "_" if value is None else str(value)
