"""A layout after one whose strides are coordinates, brought back to integer strides.

Such a B gives coordinates of A.  A coordinate of A is an index of A as long as no entry of it runs
over its mode.  So the modes of A are first extended as far as B reaches; then each step of a
coordinate is a step of the index.
"""

from __future__ import annotations

from typing import Any

from ..errors import LayoutError
from ..values.arith import less
from ..values.layout import Layout, trusted
from ..values.modes import extended_shape, has_xor_strides
from ..values.stride import ArithTuple, Path, paths_of
from ..values.tuples import product, unflatten

__all__ = ["as_indices"]


def as_indices(a: Layout, b: Layout) -> tuple[Layout, Layout]:
    """(A', B') with ``A'(B'(c)) == A(B(c))``, where B has coordinate strides and B' integers.

    A' is A with modes so long that no coordinate that B reaches runs over its own.

    >>> from layouts import E
    >>> a, b = as_indices(Layout((8, 16), (16, 1)), Layout((4, 4), (E(1), 2 * E(0))))
    >>> print(a, b)
    (8,16):(16,1) (4,4):(8,2)
    """
    highest = sum(((s - 1) * d for s, d in b.modes), ArithTuple())
    reached = dict.fromkeys(paths_of(d for _, d in b.modes), 0) | dict(highest.terms)
    long_enough = trusted(_extended(a, a.shape, reached, ()), a.stride)
    steps = {path: _index_step(long_enough.shape, path) for path in reached}
    strides = [
        sum(value * steps[path] for path, value in d.terms) if isinstance(d, ArithTuple) else d
        for _, d in b.modes
    ]
    return long_enough, trusted(b.shape, unflatten(strides, b.shape))


def _extended(a: Layout, shape: Any, reached: dict[Path, Any], at: Path) -> Any:
    """`shape`, which is at path `at` of A, with its last extents as long as coordinates reach."""
    if at in reached:
        highest = reached[at]
        if less(highest, product(shape)):
            return shape
        return extended_shape(shape, highest + 1, power_of_two=has_xor_strides(a))
    inside = [path for path in reached if path[: len(at)] == at]
    if not inside:
        return shape
    if not isinstance(shape, tuple) or any(path[len(at)] >= len(shape) for path in inside):
        raise LayoutError(
            f"composition with {a}: it has no mode {max(inside)}, and the coordinates step that one"
        )
    return tuple(_extended(a, mode, reached, (*at, k)) for k, mode in enumerate(shape))


def _index_step(shape: Any, path: Path) -> Any:
    """What a step of 1 of the coordinate at `path` adds to the index into `shape`."""
    if not path:
        return 1
    return product(shape[: path[0]]) * _index_step(shape[path[0]], path[1:])
