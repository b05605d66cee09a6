"""Layouts whose modes have names.

A `NamedLayout` is a layout beside the names of its modes.  Coordinates, modes and tilers are given
by name, and the names stay with the modes:

>>> from layouts import Layout
>>> A = named(Layout((4, 8), (8, 1)), "m", "k")
>>> print(A, A(m=1, k=5), A["k"])
(m:4, k:8):(8,1) 13 8:1
>>> tile, rest = A.zipped_divide(m=2, k=4)
>>> print(tile, rest, A.logical_divide(k=4))
(m:2, k:4):(8,1) (m:2, k:2):(16,4) (m:4, k:(4,2)):(8,(1,4))

It is a view: `layout` is the layout itself, for every other operation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..errors import LayoutError
from ..values.layout import Layout, has_none, make_layout
from ..values.swizzle import ComposedLayout, layout_for, outer_layout
from ..values.tuples import IntTuple, text
from ..values.value import Value
from .by_mode import Tiler
from .composition import composition
from .divide import logical_divide, zipped_divide
from .product import logical_product

__all__ = ["NamedLayout", "named"]


class NamedLayout(Value):
    """A Layout or a ComposedLayout, and a name for each of its modes.  Made by `named`.

    Raises `LayoutError` unless `names` are as many different identifiers as `layout` has modes.

    >>> str(NamedLayout(Layout(((2, 2), 8)), ("m", "k")))
    '(m:(2,2), k:8):((1,2),4)'
    """

    __slots__ = __match_args__ = ("layout", "names")
    layout: Any
    names: tuple[str, ...]

    def __init__(self, layout: Layout | ComposedLayout, names: tuple[str, ...]) -> None:
        names = tuple(names) if isinstance(names, (tuple, list)) else (names,)
        self._set(layout_for("NamedLayout", layout), names)
        for name in names:
            if not isinstance(name, str) or not name.isidentifier():
                raise LayoutError(f"NamedLayout: the name {name!r} must be an identifier")
        if len(set(names)) != len(names) or len(names) != len(layout):
            raise LayoutError(
                f"NamedLayout: {layout} has {len(layout)} modes; give each a name of its own, not "
                f"({', '.join(names)})"
            )

    @property
    def shape(self) -> IntTuple:
        """The shape of the layout."""
        return self.layout.shape

    def __call__(self, /, *coord: Any, **at: Any) -> Any:
        """The offset at a coordinate by name, or at an index or a coordinate as for the layout.

        Modes that are not named stay: the result is then the named layout of these.  A slice of a
        Layout drops the offset of the others, as `Layout.__call__` does.

        >>> A = named(m=4, k=8)
        >>> print(A(m=1, k=5), A(k=5, m=1), A(1, 5), A(21), A(k=5))
        21 21 21 21 (m:4):(1)
        """
        if coord:
            if at:
                raise LayoutError(f"{self}: give a coordinate, or coordinates by name, not both")
            return self.layout(*coord)
        found = self._by_name(at)
        for name, entry in zip(self.names, found, strict=True):
            if entry is not None and has_none(entry):
                raise LayoutError(f"{self}: {name}={entry} must be a whole coordinate, or None")
        kept = tuple(name for name, x in zip(self.names, found, strict=True) if x is None)
        part = self.layout(found if isinstance(self.shape, tuple) else found[0])
        return NamedLayout(part, kept) if kept else part

    def __getitem__(self, name: str) -> Any:
        """The mode `name`, a layout: its coordinates with all others 0."""
        return self.layout[self._place(name)]

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Any:
        """The names, from left to right."""
        return iter(self.names)

    def select(self, *names: str) -> NamedLayout:
        """These modes, in this order (C++ ``select``).

        >>> print(named(m=4, n=2, k=8).select("k", "m"))
        (k:8, m:4):(8,1)
        """
        modes = tuple(self._outer()[self._place(name)] for name in names)
        return self._over(make_layout(*modes), names)

    def composition(self, /, **tilers: Tiler) -> NamedLayout:
        """`composition` of each mode with its tiler; a mode that is not named stays whole.

        >>> print(named(m=4, k=8).composition(k=Layout(4, 2)))
        (m:4, k:4):(1,8)
        """
        return self._by_mode(composition, tilers)

    def logical_divide(self, /, **tilers: Tiler) -> NamedLayout:
        """`logical_divide`: each mode that is named becomes (tile, rest)."""
        return self._by_mode(logical_divide, tilers)

    def logical_product(self, /, **tilers: Tiler) -> NamedLayout:
        """`logical_product`: each mode that is named becomes (block, copies), by itself."""
        return self._by_mode(logical_product, tilers)

    def zipped_divide(self, /, **tilers: Tiler) -> tuple[NamedLayout, NamedLayout]:
        """The two modes of `zipped_divide`: the tile, and where the tiles are.

        A mode that is not named is whole in the tile.  If this is a Layout, its offset is the sum:

        >>> A = named(m=4, k=8)
        >>> tile, rest = A.zipped_divide(k=4)
        >>> print(tile, rest, A(m=3, k=6) == tile(m=3, k=2) + rest(m=0, k=1))
        (m:4, k:4):(1,4) (m:1, k:2):(0,16) True
        """
        tile, rest = zipped_divide(self.layout, self._by_name(tilers))
        return NamedLayout(tile, self.names), NamedLayout(rest, self.names)

    def __str__(self) -> str:
        outer = self._outer()
        shapes = zip(self.names, outer.shape, strict=True)
        shape = ", ".join(f"{name}:{text(extent)}" for name, extent in shapes)
        inner = str(self.layout).removesuffix(str(getattr(self.layout, "outer", self.layout)))
        return f"{inner}({shape}):{text(outer.stride)}"

    def _repr_html_(self) -> str | None:
        found: str | None = self.layout._repr_html_()
        return found

    # ---------------------------------------------------------------------------- by name

    def _outer(self) -> Layout:
        """The Layout that has the modes; one mode is a tuple too."""
        outer = outer_layout(self.layout)
        return outer if isinstance(outer.shape, tuple) else make_layout(outer)

    def _over(self, outer: Layout, names: tuple[str, ...]) -> NamedLayout:
        composed = isinstance(self.layout, ComposedLayout)
        return NamedLayout(self.layout.over(outer) if composed else outer, names)

    def _place(self, name: str) -> int:
        if not isinstance(name, str) or name not in self.names:
            raise LayoutError(f"{self} has no mode {name!r}: its modes are {', '.join(self.names)}")
        return self.names.index(name)

    def _by_name(self, entries: Mapping[str, Any]) -> tuple[Any, ...]:
        """One entry for each mode, None for those that are not named."""
        found: list[Any] = [None] * len(self.names)
        for name, entry in entries.items():
            found[self._place(name)] = entry
        return tuple(found)

    def _by_mode(self, operation: Callable[..., Any], tilers: Mapping[str, Any]) -> NamedLayout:
        return NamedLayout(operation(self.layout, self._by_name(tilers)), self.names)


def named(layout: Any = None, /, *names: str, **modes: Any) -> NamedLayout:
    """A layout whose modes have names.

    ``named(L, "m", "k")`` names the modes of L, a Layout or a ComposedLayout.  ``named(m=4, k=8)``
    is compact, the first mode fastest; ``named(m=A, k=B)`` has the layouts A and B as its modes.

    Raises `LayoutError` as `NamedLayout` and `make_layout` do, or if extents and layouts are mixed.

    >>> from layouts import Swizzle, composition
    >>> print(named(m=4, k=8), named(m=Layout(4, 8), k=Layout(8, 1)))
    (m:4, k:8):(1,4) (m:4, k:8):(8,1)
    >>> print(named(composition(Swizzle(3, 3, 3), Layout((8, 64), (64, 1))), "row", "column"))
    S<3,3,3> o 0 o (row:8, column:64):(64,1)
    """
    if layout is not None:
        if modes:
            raise LayoutError(f"named: give {layout} and names, or modes by name, not both")
        return NamedLayout(layout, names)
    given = tuple(modes.values())
    layouts = [isinstance(mode, Layout) for mode in given]
    if any(layouts):
        if not all(layouts):
            raise LayoutError(f"named: give extents, or layouts, by name, not both: {text(given)}")
        return NamedLayout(make_layout(*given), tuple(modes))
    return NamedLayout(Layout(given), tuple(modes))
