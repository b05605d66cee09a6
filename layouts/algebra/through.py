"""Composition where a stride is no integer, brought back to `compose`.

A layout with XOR strides is linear in the bits of its index, so cut into modes of extent 2 it is
read through as any other: what carries there is what XOR does not add.  A layout whose strides are
coordinates gives a coordinate of A, which is an index of A where no coordinate runs over its mode.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Any

from ..errors import LayoutError
from ..values.arith import ceil_div, less
from ..values.layout import Layout, trusted
from ..values.modes import assembled, bits, from_columns, merged, xors
from ..values.stride import F2, ArithTuple, Path, kind, paths_of
from ..values.tuples import leaves, product, size, unflatten
from .compose import compose, compose_modes

__all__ = ["as_indices", "compose_xor"]


# --------------------------------------------------------------------------------------- XOR


def compose_xor(a: Layout, b: Layout) -> Layout | None:
    """``R(c) == A(B(c))`` where A or B may have XOR strides; None where it is no layout.

    >>> print(compose_xor(Layout((4, 2), (F2(1), F2(5))), Layout((2, 4), (4, 1))))
    (2,4):(F5,F1)
    >>> print(compose_xor(Layout((4, 8), (8, 1)), Layout((4, 2), (F2(1), F2(5)))))
    (4,2):(F8,F9)
    """
    if not xors(b):
        return _read_by(a, b)
    union, columns = 0, []
    for stride, _ in _columns(b):
        columns.append(stride)
        union |= stride
    used = [1 << k for k in range(union.bit_length()) if union >> k & 1]
    images = _images(a, used)
    if images is None:
        return None
    found = [
        reduce(lambda total, bit: total + images[bit], [u for u in used if u & column], 0)
        for column in columns
    ]
    return _hung(b, found)


def _columns(layout: Layout) -> list[tuple[int, int]]:
    """The pairs (column, leaf) of a layout with XOR strides, one for each bit of its index."""
    return [
        (int(d) << bit, leaf)
        for leaf, (s, d) in enumerate(layout.modes)
        for bit in range(s.bit_length() - 1)
    ]


def _images(a: Layout, used: list[int]) -> dict[int, Any] | None:
    """What A gives for each of the bits `used`, if A is linear over XOR on these; None if not."""
    through = _read_by(a, assembled([(2, bit) for bit in used]))
    if through is None:
        return None
    strides = [through.value(1 << k) for k in range(len(used))]
    if all(type(stride) is int for stride in strides):
        if sum(strides) != reduce(or_, strides, 0):
            return None
        strides = [F2(stride) if stride else 0 for stride in strides]
    if kind(strides) is not F2 and any(strides):
        return None
    return dict(zip(used, strides, strict=True))


def _read_by(a: Layout, b: Layout) -> Layout | None:
    """A(B(c)) for a B of integers and an A of any kind, or None."""
    if xors(a):
        return _through_bits(a, b)
    try:
        return compose(a, b)
    except LayoutError:
        return None


def _through_bits(a: Layout, b: Layout) -> Layout | None:
    """`compose` for an A with XOR strides, cut into bits as far as B reaches; the rest is 0."""
    if any(type(x) is not int for mode in b.modes for x in mode):
        raise LayoutError(f"composition of {a} with {b}: XOR strides take integers known now")
    reach = sum((s - 1) * d for s, d in b.modes)
    *modes, (last, stride) = a.modes
    places = reach.bit_length() - size(a).bit_length() + 1
    endless = max(last, 1) << max(places, 0)
    if any(s & (s - 1) for s, d in b.modes if d):
        return None  # an extent that is no power of two has no XOR stride
    found = compose_modes([*bits(modes), *bits([(endless, stride)]), (2, 0)], b)
    return _tidied(b, found) if isinstance(found, Layout) else None


def _tidied(b: Layout, result: Layout) -> Layout:
    """`result`, whose shape refines that of `b`, with the modes in each leaf of `b` merged."""
    places, found = iter(result.modes), []
    for extent, _ in b.modes:
        own, seen = [], 1
        while seen < extent:
            own.append(next(places))
            seen *= own[-1][0]
        if extent == 1:
            next(places)
        found.append(assembled(merged(own)))
    shape = unflatten([part.shape for part in found], b.shape)
    return Layout(shape, unflatten([part.stride for part in found], b.shape))


def _hung(b: Layout, strides: list[Any]) -> Layout:
    """`b` with the strides of its bits replaced, as integers where they share no bit."""
    whole = from_columns([int(stride) for stride in strides])
    modes = bits(whole.modes) if xors(whole) else [(2, int(stride)) for stride in strides]
    places, found = iter(modes), []
    for extent, _ in b.modes:
        own = [next(places) for _ in range(extent.bit_length() - 1)]
        found.append(assembled(merged(own)))
    shape = unflatten([part.shape for part in found], b.shape)
    return Layout(shape, unflatten([part.stride for part in found], b.shape))


# ------------------------------------------------------------------------------- coordinates


def as_indices(a: Layout, b: Layout) -> tuple[Layout, Layout]:
    """(A', B') with ``A'(B'(c)) == A(B(c))``, where B has coordinate strides and B' integers.

    A' is A with room in each mode for the coordinates that B reaches, so that none runs over.

    >>> from layouts import E
    >>> a, b = as_indices(Layout((8, 16), (16, 1)), Layout((4, 4), (E(1), 2 * E(0))))
    >>> print(a, b)
    (8,16):(16,1) (4,4):(8,2)
    """
    bound = sum(((s - 1) * d for s, d in b.modes), ArithTuple())
    bounds = dict.fromkeys(paths_of(d for _, d in b.modes), 0) | dict(bound.terms)
    roomy = trusted(_with_room(a, a.shape, bounds, ()), a.stride)
    starts = {path: _start(roomy.shape, path) for path in bounds}
    strides = [
        sum(value * starts[path] for path, value in d.terms) if isinstance(d, ArithTuple) else d
        for _, d in b.modes
    ]
    return roomy, trusted(b.shape, unflatten(strides, b.shape))


def _with_room(a: Layout, shape: Any, bounds: dict[Path, Any], at: Path) -> Any:
    """`shape` with its last extents enlarged where a coordinate reaches beyond."""
    if at in bounds:
        return _enlarged(a, shape, bounds[at])
    inside = [path for path in bounds if path[: len(at)] == at]
    if not inside:
        return shape
    if not isinstance(shape, tuple) or any(path[len(at)] >= len(shape) for path in inside):
        raise LayoutError(
            f"composition with {a}: it has no mode {max(inside)}, and the coordinates step that one"
        )
    return tuple(_with_room(a, mode, bounds, (*at, k)) for k, mode in enumerate(shape))


def _enlarged(a: Layout, shape: Any, bound: Any) -> Any:
    extents = leaves(shape)
    if not extents or less(bound, product(shape)):
        return shape
    last = ceil_div(bound + 1, product(extents[:-1]))
    if xors(a):
        last = 1 << (last - 1).bit_length()
    return unflatten((*extents[:-1], last), shape)


def _start(shape: Any, path: Path) -> Any:
    """The index of a step of 1 at `path`."""
    if not path:
        return 1
    return product(shape[: path[0]]) * _start(shape[path[0]], path[1:])
