"""Fragments: what each thread of an instruction holds of a matrix, as a picture shows it."""

from __future__ import annotations

from ..values.layout import Layout
from ..values.value import Value

__all__ = ["Drawn", "Fragment"]


class Fragment(Value):
    """A matrix, or part of it, over the threads that hold it.

    `name`    of the matrix
    `layout`  (thread, value) → element
    `tile`    (row, column) → element
    """

    __slots__ = __match_args__ = ("name", "layout", "tile")
    name: str
    layout: Layout
    tile: Layout

    def __init__(self, name: str, layout: Layout, tile: Layout) -> None:
        self._set(name, layout, tile)


class Drawn(Value):
    """An instruction that prints as the picture of its fragments, and draws it in a notebook."""

    __slots__ = ()

    @property
    def heading(self) -> str:
        """The instruction in words, above the picture."""
        raise NotImplementedError

    @property
    def fragments(self) -> tuple[Fragment, ...]:
        """What the threads hold, matrix by matrix."""
        raise NotImplementedError

    def __str__(self) -> str:
        from ..draw.fragments import text  # pictures import this file

        return text(self)

    def _repr_html_(self) -> str:
        from ..draw.fragments import notebook

        return notebook(self)
