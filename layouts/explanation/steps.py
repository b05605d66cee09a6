"""`explain`: the steps of one operation as lines of text, and the table of what it explains.

The other files of this package register a function for each operation; it appends the steps to a
list of lines.  A step that is an operation itself is explained in turn, indented.  Every line is
computed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from textwrap import fill
from typing import Any, TypeAlias, TypeVar

from ..errors import LayoutError, check_call
from ..values.layout import Layout
from ..values.stride import kind_of
from ..values.swizzle import ComposedLayout, Swizzle
from ..values.tuples import shallow, text
from ..values.value import Report
from .views import Views, views_of

__all__ = ["EXPLAINERS", "Explanation", "Lines", "by_other_means", "explain", "explains", "substep"]

#: The lines of an explanation so far.
Lines: TypeAlias = "list[str]"

#: An operation, or the class of what is applied, and the function that explains it.
EXPLAINERS: dict[Callable[..., Any], Callable[..., Any]] = {}

#: What `explain` takes, for its errors.
FORMS = (
    "give the operation and its arguments, as in explain(composition, A, B), or a layout and an "
    "index, as in explain(L, 5)"
)

F = TypeVar("F", bound=Callable[..., Any])


def explains(*operations: Callable[..., Any]) -> Callable[[F], F]:
    """Register a function as the one that explains `operations`.

    For an operation it is called with the lines, the result or None, and the arguments.  For a
    class, such as Layout, it is called with the value and what that is applied to, and returns an
    `Explanation`.
    """

    def register(explainer: F) -> F:
        EXPLAINERS.update(dict.fromkeys(operations, explainer))
        return explainer

    return register


class Explanation(Report):
    """The steps of one operation; `str` writes them, `result` is what the operation returns.

    A notebook draws the layouts of the operation above the steps.
    """

    __slots__ = ("asked", "call", "lines", "result")
    __match_args__ = ("call", "lines", "result")
    call: str
    lines: tuple[str, ...]
    result: Any
    #: The operation, and its arguments.
    asked: tuple[Any, tuple[Any, ...]]

    def __init__(
        self,
        call: str,
        lines: tuple[str, ...],
        result: Any,
        asked: tuple[Any, tuple[Any, ...]] = (None, ()),
    ) -> None:
        self._set(call, lines, result)
        object.__setattr__(self, "asked", asked)

    def views(self) -> Views | None:
        """What a picture of the operation shows; None if it has no picture of its own.

        >>> from layouts import coalesce
        >>> [view.name for view in explain(coalesce, Layout((2, 4))).views().views]
        ['L', 'R']
        """
        return views_of(*self.asked, self.result)

    def heading(self) -> str:
        """The call, and its result."""
        return f"{self.call} " + (
            "has no result" if self.result is None else f"= {text(self.result)}"
        )

    def __str__(self) -> str:
        return "\n".join([self.heading(), *map(_wrapped, self.lines)])

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (*self._fields(), self.asked)

    def _repr_html_(self) -> str:
        from ..draw.operation import notebook  # pictures import this file

        return notebook(self)


def _wrapped(line: str) -> str:
    """`line`, indented by two; where it is too long it continues below, indented further."""
    margin = " " * (len(line) - len(line.lstrip()) + 2)
    return fill(line.lstrip(), 98, initial_indent=margin, subsequent_indent=margin + "    ")


def explain(op: Any, *args: Any) -> Explanation:
    """The steps of ``op(*args)``, for `op` an operation of the algebra, or a swizzle or layout
    applied to an index.

    An operation that refuses its arguments is explained as far as it goes, with the reason.  Raises
    `LayoutError` for any other `op`, for a tensor, and for more or fewer arguments than `op` takes.

    >>> print(explain(Swizzle(2, 0, 3), 10))
    S<2,0,3>(10) = 11
      bit      4 3 2 1 0
      10       0 1 0 1 0
      read     0 1        bits 3 to 4
      onto           0 1  bits 0 to 1: added without carry
      11       0 1 0 1 1
      check: applied again, it gives 10 back
    """
    if isinstance(op, (Swizzle, Layout, ComposedLayout)):
        if not args:
            raise LayoutError(f"explain({op}): {FORMS}")
        explanation: Explanation = EXPLAINERS[type(op)](op, *args)
        return explanation
    explainer, name = _explainer_of(op), op.__name__
    check_call(op, args)
    for given in args:
        if hasattr(given, "with_layout"):
            raise LayoutError(f"explain: {given!r} is a tensor; explain {name} of its layout")
    call = f"{name}({', '.join(map(_argument, shallow(args)))})"
    lines: Lines = []
    refusal = None
    try:
        result = op(*args)
    except LayoutError as error:
        result, refusal = None, str(error)
    try:
        if result is not None or isinstance(args[0], (Layout, ComposedLayout)):
            explainer(lines, result, *args)
    except LayoutError as error:
        if str(error) != refusal:
            lines.append(f"the steps end here: {error}")
    if refusal is not None:
        lines.append(f"refused: {refusal}")
    return Explanation(call, tuple(lines), result, (op, args))


def _explainer_of(op: Any) -> Callable[..., Any]:
    """The function that explains the operation `op`; a class stands for its values alone."""
    is_operation = callable(op) and isinstance(op, Hashable) and not isinstance(op, type)
    explainer = EXPLAINERS.get(op) if is_operation else None
    if explainer is None:
        name = getattr(op, "__name__", None)
        what = name if isinstance(name, str) else f"a value of type {type(op).__name__}"
        known = sorted(each.__name__ for each in EXPLAINERS if not isinstance(each, type))
        raise LayoutError(
            f"explain: {what} is none of {', '.join(known)} of this package, and no layout or "
            f"swizzle; {FORMS}"
        )
    return explainer


def _argument(x: Any) -> str:
    if isinstance(x, tuple):
        return f"<{','.join(map(_argument, x))}>"
    return "_" if x is None else text(x)


def substep(lines: Lines, op: Callable[..., Any], *args: Any) -> Any:
    """Explain an operation that is a step of another, indented; its result, or None."""
    steps = explain(op, *args)
    lines.append(steps.heading())
    lines += [f"  {line}" for line in steps.lines]
    return steps.result


def by_other_means(lines: Lines, layout: Any, how: str) -> bool:
    """Whether `layout` lacks integer strides to go through; then a line says how it is treated."""
    if isinstance(layout, Layout) and kind_of(layout.modes) is None:
        return False
    lines.append(f"for {layout} it is found {how}")
    return True
