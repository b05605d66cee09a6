"""What the picture of an operation shows: its layouts side by side, and what ties their cells.

Each cell of a `View` stands for elements, which are numbers.  Cells of all views that share an
element belong together, such as an index of B and the place of A that it selects.  `Views.group`
gives an element its colour.

Each operation registers its views with `shows`, in the file that has its steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import zip_longest
from typing import Any, TypeAlias, TypeVar

from ..errors import LayoutError
from ..values.layout import Layout
from ..values.swizzle import ComposedLayout
from ..values.symbols import free_symbols
from ..values.tuples import IntTuple, crd2idx, is_inside, is_int, leaves, size
from ..values.value import Value

__all__ = [
    "MOST",
    "VIEWERS",
    "ElementsOf",
    "View",
    "Views",
    "by_element",
    "column_of",
    "drawable",
    "has_integer_offsets",
    "index",
    "in_place",
    "index_at",
    "same_index",
    "shows",
    "tied",
    "views_of",
]

#: index of a cell → the elements that it stands for.
ElementsOf: TypeAlias = "Callable[[int], tuple[int, ...]]"

#: An operation → the function that gives its views; None if it has none.
VIEWERS: dict[Callable[..., Any], Callable[..., Views | None]] = {}

#: The most cells of a layout whose elements are found.
MOST = 1 << 14

F = TypeVar("F", bound=Callable[..., "Views | None"])


def index(i: int) -> tuple[int, ...]:
    """The elements of a cell that stands for its own index."""
    return (i,)


class View(Value):
    """One of the layouts: cell i shows ``offset + layout(i)`` and stands for ``elements(i)``.

    `counts` is what the number of a cell is, with {} for the number.
    """

    __slots__ = __match_args__ = ("name", "layout", "elements", "offset", "counts")
    name: str
    layout: Layout | ComposedLayout
    elements: ElementsOf
    offset: Any
    counts: str

    def __init__(
        self,
        name: str,
        layout: Layout | ComposedLayout,
        elements: ElementsOf = index,
        offset: Any = 0,
        counts: str = "offset {}",
    ) -> None:
        self._set(name, layout, elements, offset, counts)


class Views(Value):
    """Layouts side by side.

    `group`    element → the number of its colour, which is taken mod 8; None if colours are those
               of banks
    `colours`  what a colour stands for, such as "tile"; "" if all that are coloured have one colour
    `coloured` what the coloured cells are, if not all are
    """

    __slots__ = __match_args__ = ("views", "group", "colours", "coloured")
    views: tuple[View, ...]
    group: Callable[[int], int] | None
    colours: str
    coloured: str

    def __init__(
        self,
        views: Iterable[View],
        group: Callable[[int], int] | None = None,
        colours: str = "",
        coloured: str = "",
    ) -> None:
        self._set(tuple(views), group, colours, coloured)


def shows(*operations: Callable[..., Any]) -> Callable[[F], F]:
    """Register a function as the one that gives the views of `operations`.

    It is called with the result and the arguments, all of whose layouts have integer extents.
    """

    def register(viewer: F) -> F:
        VIEWERS.update(dict.fromkeys(operations, viewer))
        return viewer

    return register


def views_of(
    operation: Callable[..., Any], arguments: tuple[Any, ...], result: Any
) -> Views | None:
    """The views of ``operation(*arguments)``, which gave `result`; None if it has none.

    >>> from layouts import coalesce, explain
    >>> [view.name for view in explain(coalesce, Layout((2, 4))).views().views]
    ['L', 'R']
    """
    viewer = VIEWERS.get(operation)
    if viewer is None or result is None:
        return None
    try:
        return viewer(result, *arguments)
    except LayoutError:  # offsets have a layout, and the indices that they belong to have none
        return None


def drawable(*layouts: Any) -> bool:
    """Whether all are layouts of integer extents with few enough cells to find their elements.

    >>> drawable(Layout((4, 8))), drawable(Layout((4, 8)), (4, 8)), drawable(Layout(1 << 20))
    (True, False, False)
    """
    return all(
        isinstance(each, (Layout, ComposedLayout))
        and all(map(is_int, leaves(each.shape)))
        and size(each) <= MOST
        for each in layouts
    )


def has_integer_offsets(*layouts: Any) -> bool:
    """Whether all offsets are integers: neither coordinates nor symbols.

    >>> from layouts import make_identity_layout, symbols
    >>> m = symbols("m")
    >>> [has_integer_offsets(x) for x in (Layout(4), Layout(4, m), make_identity_layout((2, 2)))]
    [True, False, False]
    """
    return all(is_int(each(0)) and not free_symbols(each) for each in layouts)


def tied(elements: Iterable[tuple[int, int]]) -> ElementsOf:
    """The elements of cells, from pairs (cell, element); a cell without a pair has none.

    >>> of_cell = tied([(0, 5), (2, 6), (0, 7)])
    >>> of_cell(0), of_cell(1), of_cell(2)
    ((5, 7), (), (6,))
    """
    found: dict[int, list[int]] = {}
    for cell, element in elements:
        found.setdefault(cell, []).append(element)
    return lambda cell: tuple(found.get(cell, ()))


def by_element(indices: Callable[[int], Any], shape: IntTuple) -> ElementsOf:
    """The elements of the cells of a rearranged layout of `shape`.

    `indices` is the same operation on the layout of coordinates, or of indices.  What lies beyond
    the shape, in the last tile of a mode that a tile does not divide, is no element.

    >>> from layouts import make_identity_layout, zipped_divide
    >>> tiles = zipped_divide(make_identity_layout((3, 4)), (2, 2))
    >>> [by_element(tiles, (3, 4))(i) for i in range(6)]
    [(0,), (1,), (3,), (4,), (2,), ()]
    """
    count = size(shape)

    def elements(cell: int) -> tuple[int, ...]:
        at = indices(cell)
        if isinstance(at, tuple):
            return index_at(at, shape)
        return (at,) if at < count else ()

    return elements


def index_at(coord: IntTuple, shape: IntTuple) -> tuple[int, ...]:
    """The index of a coordinate of `shape`, if it is one; entries that it lacks are 0.

    >>> index_at((1, 2), (2, 3)), index_at((1, 3), (2, 3)), index_at((1,), (2, (1, 1)))
    ((5,), (), (1,))
    """
    return (crd2idx(_whole(coord, shape), shape),) if is_inside(coord, shape) else ()


def _whole(coord: IntTuple, shape: IntTuple) -> IntTuple:
    """`coord` with all entries: a sum of steps ends with the last mode that it steps along."""
    if not isinstance(coord, tuple):
        return coord
    return tuple(_whole(x, extent) for x, extent in zip_longest(coord, shape, fillvalue=0))


def column_of(layout: Layout | ComposedLayout) -> tuple[Callable[[int], int], str]:
    """The group of an index of `layout`: its column, or of a single mode the index; with a name."""
    rows = size(layout, 0)
    if len(layout) > 1:
        return (lambda i: int(i // rows)), "column of R"
    return (lambda i: i), "index of R"


def same_index(result: Any, layout: Any, *arguments: Any) -> Views | None:
    """L and R whose cells with the same index belong together."""
    if not drawable(layout, result):
        return None
    return Views([View("L", layout), View("R", result)], lambda i: i, "index")


def in_place(layout: Any, found: tuple[Any, Any], elements: ElementsOf) -> Views | None:
    """L with the cells of a part of it in colour, and the part; `found` is the part and the offset
    at which it starts.  None if symbols say which cells they are."""
    part, offset = found
    if not drawable(layout, part) or free_symbols(elements(0)):
        return None
    taken = tied((i, i) for cell in range(size(part)) for i in elements(cell))
    views = (View("L", layout, taken), View("R", part, elements, offset))
    return Views(views, lambda _: 0, coloured="the cells of R")
