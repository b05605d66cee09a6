"""Inverses and the nullspace.

A swizzle is linear over XOR, and so is a layout of powers of two whose strides do not carry.  The
inverse of one after the other comes from elimination over GF(2); it is a layout with XOR strides.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import combinations, pairwise
from math import isqrt
from typing import Any

from ..errors import LayoutError, Undecided
from ..values.arith import ascending, divided, divides, equal, less
from ..values.elimination import eliminated, kernel, preimages, reduced, solved
from ..values.layout import Layout, cosize
from ..values.modes import (
    Mode,
    assembled,
    extended,
    from_columns,
    has_xor_strides,
    merged,
    placed,
    without_ones,
)
from ..values.steps import Steps
from ..values.swizzle import ComposedLayout, Swizzle, gives_coordinates, layout_for
from ..values.symbols import plain
from ..values.tuples import size
from .as_layout import as_layout
from .coalesce import coalesce
from .composition import composition
from .gf2 import matrix, placed_columns
from .injectivity import collision

__all__ = [
    "left_inverse",
    "nullspace",
    "right_inverse",
]

# ------------------------------------------------------------------------------------ right


def right_inverse(layout: Layout | ComposedLayout) -> Layout | ComposedLayout:
    """The layout from offsets to indices: ``L(R(i)) == i`` for every i below ``size(R)``.

    R reaches as far as whole modes of ``coalesce(L)`` continue from stride 1; if L is injective, no
    right inverse reaches further (C++ ``right_inverse``).  For a swizzled layout of powers of two,
    R covers the offsets up to the first bit that elimination cannot reach.  For another swizzled
    layout, it reaches as far as the swizzle stays inside the right inverse of the layout under it.

    >>> print(right_inverse(Layout((4, 8), (8, 1))), right_inverse(Layout((2, 4), (0, 1))))
    (8,4):(4,1) 4:2
    >>> print(right_inverse(ComposedLayout(Swizzle(1, 0, 2), 0, Layout((2, 4), (4, 1)))))
    (4,2):(F2,F3)
    """
    layout = _integers("right_inverse", layout)
    if isinstance(layout, ComposedLayout) or has_xor_strides(layout):
        return _right_inverse_xor(layout)
    modes = _placed_modes(layout)
    reach: Any = 1
    chain: list[Mode] = []
    while True:
        found = next((mode for mode in modes if equal(mode[1], reach)), None)
        if found is None:
            return assembled(merged(chain))
        chain.append((found[0], found[2]))
        reach = reach * found[0]


def _placed_modes(layout: Layout) -> list[tuple[Any, Any, Any]]:
    """`placed` modes of ``coalesce(layout)`` with strides other than 0."""
    return [mode for mode in placed(without_ones(coalesce(layout))) if mode[1] != 0]


def _right_inverse_xor(layout: Layout | ComposedLayout) -> Layout | ComposedLayout:
    if layout(0) != 0:
        raise LayoutError(
            f"right_inverse of {layout}: index 0 has the offset {layout(0)}, and every right "
            f"inverse maps 0 to 0; take the inverse of the layout without its offset"
        )
    try:
        bits = placed_columns(layout)
    except LayoutError:
        return _right_inverse_swizzled(layout)
    found = []
    for index in preimages([1 << k for k in range(len(bits))], [column for _, column in bits]):
        if index is None:
            break
        found.append(index)
    return _indices(bits, from_columns(found))


def _indices(bits: list[tuple[int, int]], inverse: Layout) -> Layout | ComposedLayout:
    """`inverse`, whose values number the bits of a layout, with the places of the bits instead."""
    places = assembled(merged([(2, place) for place, _ in bits]))
    found: Layout | ComposedLayout = coalesce(composition(places, inverse))
    return found


def _right_inverse_swizzled(layout: Any) -> Layout | ComposedLayout:
    """``R(i) = L'(S(i))`` where L' is the right inverse of the layout under the swizzle S."""
    if not isinstance(layout, ComposedLayout) or not isinstance(layout.inner, Swizzle):
        return right_inverse(_plain("right_inverse", layout)[1])
    swizzle, plain = layout.inner, right_inverse(layout.outer)
    count = size(plain)
    if type(count) is not int and not divides(swizzle.block, count):
        raise LayoutError(
            f"right_inverse of {layout}: it is not proved that the swizzle permutes the first "
            f"{count} offsets, which its layout has; write {swizzle.block}*m for their number"
        )
    if type(count) is int and count % swizzle.block and count > swizzle.source & -swizzle.source:
        whole = count // swizzle.block * swizzle.block
        count = next((i for i in range(whole, count) if swizzle(i) >= count), count)
    found: Layout | ComposedLayout = composition(plain, ComposedLayout(swizzle, 0, Layout(count)))
    return found


# ------------------------------------------------------------------------------------- left


def left_inverse(layout: Layout | ComposedLayout) -> Layout | ComposedLayout:
    """The layout that undoes L: ``R(L(i)) == i`` for every i below ``size(L)``.

    If L has modes of stride 0, R gives the index that is 0 in them: ``L(R(L(i))) == L(i)`` (C++
    ``left_inverse``).  At offsets that L does not take, the value of R is unspecified.  The left
    inverse of a swizzled layout has XOR strides, or is a composed layout.

    Raises `LayoutError` if L is not injective apart from modes of stride 0, or if no layout is the
    inverse.

    >>> print(left_inverse(Layout((4, 8), (1, 5))), left_inverse(Layout((2, 3), (2, 12))))
    (5,8):(1,4) (2,6,3):(0,1,2)
    >>> print(left_inverse(Layout((2, 2), (2, 3))))
    (2,3):(1,1)
    """
    layout = _integers("left_inverse", layout)
    if isinstance(layout, ComposedLayout) or has_xor_strides(layout):
        return _left_inverse_xor(layout)
    modes = ascending(_placed_modes(layout), lambda mode: mode[1])
    if not modes:
        return Layout(1, 0)
    found: list[Mode] = [(modes[0][1], 0)]
    for (extent, stride, place), (_, following, _) in pairwise(modes):
        if not divides(stride, following) or not less(extent * stride - 1, following):
            return _searched_left_inverse(layout, modes)
        found.append((divided(following, stride)[0], place))
    found.append((modes[-1][0], modes[-1][2]))
    return assembled(merged([mode for mode in found if mode[0] != 1]))


def _left_inverse_xor(layout: Layout | ComposedLayout) -> Layout | ComposedLayout:
    try:
        bits = [(place, column) for place, column in placed_columns(layout) if column]
    except LayoutError:
        return _left_inverse_composed(layout)
    start, columns = plain(layout(0)), [column for _, column in bits]
    top = max(value.bit_length() for value in (start, *columns, 1))
    pairs = eliminated(columns)
    if not all(value for _, value in pairs):
        raise LayoutError(
            f"left_inverse of {layout}: it is not injective, even without its modes of stride 0: "
            f"an XOR of its columns {', '.join(map(str, columns))} is 0"
        )
    taken = {value.bit_length() - 1 for _, value in pairs}
    pairs += [(0, 1 << bit) for bit in range(top) if bit not in taken]
    pairs.sort(key=lambda pair: pair[1], reverse=True)
    found = [solved(1 << bit, pairs) or 0 for bit in range(top)]
    constant = solved(start, pairs) or 0
    if not constant:
        return _indices(bits, from_columns(found))
    # R(x) = R'(x) ^ constant: the offset always sets one more bit, whose column is the constant
    inverse = _indices(bits, from_columns([*found, constant]))
    return ComposedLayout(inverse, 1 << top, Layout(1 << top))


def _left_inverse_composed(layout: Layout | ComposedLayout) -> Layout | ComposedLayout:
    """``R(x) = L'(S(x) - o)`` where L' is the left inverse of the layout under the swizzle S.

    L' is made periodic by a mode of stride 0.  Then o is subtracted by adding ``-o`` modulo the
    period.
    """
    if isinstance(layout, ComposedLayout) and isinstance(layout.inner, Swizzle):
        undo, offset, under = layout.inner.layout, layout.offset, layout.outer
    else:
        offset, under = _plain("left_inverse", layout)
        if offset == 0:
            return left_inverse(under)
        undo = Layout(2)
    plain, count = left_inverse(under), cosize(layout)
    if type(count) is int or not has_xor_strides(undo):
        undo = extended(undo, count)
    if offset == 0:
        return ComposedLayout(plain, 0, undo)
    if not isinstance(plain, Layout):
        raise LayoutError(f"left_inverse of {layout}: the layout under the swizzle has none")
    whole = extended(plain, cosize(under))
    periodic = assembled([*whole.modes, (2, 0)])
    return ComposedLayout(periodic, -offset % size(whole), undo)


#: The most pairs (offset, index) that the search for a left inverse starts from.
POINTS = 20_000


def _searched_left_inverse(layout: Layout, modes: list[tuple[Any, Any, Any]]) -> Layout:
    """A left inverse whose modes are not those of L, found by an exhaustive search."""
    if any(type(x) is not int for mode in modes for x in mode):
        raise LayoutError(
            f"left_inverse of {layout}: it is not proved that each stride, in rising order, is a "
            f"multiple of the stride before it and at least the extent times that stride"
        )
    own = assembled([(extent, stride) for extent, stride, _ in modes])
    pair = collision(own)
    if pair is not None:
        raise LayoutError(
            f"left_inverse of {layout}: it is not injective, even without its modes of stride 0: "
            f"the offset {own(pair[0])} occurs more than once, so it does not determine its index"
        )
    places = assembled([(extent, place) for extent, _, place in modes])
    steps = Steps(f"left_inverse of {layout}")
    steps.take(size(own) if size(own) > POINTS else 1)
    points = [(own(i), places(i)) for i in range(min(size(own), POINTS))]
    found = _through_points(points, steps) if size(own) <= POINTS else None
    if found is None:
        decided = size(own) <= POINTS
        why = "no layout is its inverse" if decided else "the search for an inverse was given up"
        offsets = ", ".join(f"{own(i)} -> {places(i)}" for i in range(min(size(own), 6)))
        raise (LayoutError if decided else Undecided)(
            f"left_inverse of {layout}: {why}; it would map {offsets}, ..., but not every stride, "
            f"in rising order, is a multiple of the stride before it"
        )
    return assembled(merged(found))


def _through_points(points: list[tuple[int, int]], steps: Steps) -> list[Mode] | None:
    """Modes of a layout that maps x to y for each pair (x, y), the last unbounded; or None.

    The extents are prime, except for the last: other modes are several of these.
    """
    steps.take(len(points))
    moved = [(x, y) for x, y in points if x]
    if any(y < 0 or (not x and y) for x, y in points):
        return None
    if not moved:
        return []
    slope, remainder = divmod(moved[0][1], moved[0][0])
    top = max(x for x, _ in points)
    if not remainder and all(y == slope * x for x, y in moved):
        return [(top + 1, slope)]
    for extent in _primes(top, steps):
        steps.take(len(points))
        for stride in _strides(points, extent):
            higher: dict[int, int] = {}
            for taken, (x, y) in enumerate(points):
                remaining = y - x % extent * stride
                if higher.setdefault(x // extent, remaining) != remaining:
                    steps.take(taken + 1)
                    break
            else:
                steps.take(len(points))
                found = _through_points(sorted(higher.items()), steps)
                if found is not None:
                    return [(extent, stride), *found]
    return None


def _primes(most: int, steps: Steps) -> Iterator[int]:
    """The primes up to `most`; every number that is tried takes two steps."""
    found: list[int] = []
    for number in range(2, most + 1):
        steps.take(2)
        if all(number % prime for prime in found[: bisect_right(found, isqrt(number))]):
            found.append(number)
            yield number


def _strides(points: list[tuple[int, int]], extent: int) -> range:
    """The candidate strides of a first mode of `extent`.

    Two points that differ only in this mode leave one candidate at most.  If every x is a multiple
    of the extent, any stride would do.
    """
    if all(x % extent == 0 for x, _ in points):
        return range(1)
    for (x, y), (other, z) in pairwise(points):
        if x // extent == other // extent:
            stride, remainder = divmod(z - y, other - x)
            return range(stride, stride + 1) if not remainder and stride >= 0 else range(0)
    return range(max(y for _, y in points) + 1)


def _plain(name: str, layout: Layout | ComposedLayout) -> tuple[Any, Layout]:
    """The offset and the layout that a composed layout is; `name` is the operation, in errors."""
    found = as_layout(layout) if isinstance(layout, ComposedLayout) else None
    if found is None:
        raise LayoutError(
            f"{name} of {layout}: it takes a layout, a swizzled layout, or a composed layout that "
            f"is one layout"
        )
    return found


# -------------------------------------------------------------------------------- nullspace


def nullspace(layout: Layout | ComposedLayout) -> Layout:
    """The layout N of the indices that L maps to ``L(0)`` (C++ ``nullspace``).

    ``L(N(i)) == L(0)`` for every i below ``size(N)``, and N gives each such index once.

    >>> print(nullspace(Layout((2, 4, 3), (0, 1, 0))), nullspace(Layout((4, 8))))
    (2,3):(1,8) 1:0
    >>> from layouts import F2
    >>> print(nullspace(Layout((2, 2, 2), (F2(1), F2(2), F2(3)))))
    2:7
    """
    layout_for("nullspace", layout)
    if isinstance(layout, ComposedLayout):
        if isinstance(layout.inner, Swizzle):
            return nullspace(layout.outer)
        found = as_layout(layout)
        return _nullspace_xor(layout, layout.outer) if found is None else nullspace(found[1])
    if has_xor_strides(layout):
        return _nullspace_xor(layout, layout)
    zeros = [mode for mode in placed(layout.modes) if mode[1] == 0]
    return assembled([(extent, place) for extent, _, place in zeros])


def _nullspace_xor(layout: Layout | ComposedLayout, domain: Layout) -> Layout:
    """The kernel of the bits, and the modes of stride 0.

    If the size is no power of two, an index is a sum, and no XOR, of the places of its bits.
    """
    bits = placed_columns(layout)
    count = size(domain)
    if type(count) is int and count & (count - 1) == 0:
        return from_columns(kernel(matrix(layout)))
    null = reduced(kernel(column for _, column in bits))
    if any(one & other for one, other in combinations(null, 2)):
        raise LayoutError(
            f"nullspace of {layout}: the sums that vanish share bits, and its size {count} is not "
            f"a power of two; take the nullspace without the modes of stride 0"
        )
    modes = [(extent, place) for extent, stride, place in placed(domain.modes) if not stride]
    for vector in null:
        modes.append((2, sum(place for k, (place, _) in enumerate(bits) if vector >> k & 1)))
    kept = [mode for mode in modes if mode[0] != 1]
    return assembled(merged(ascending(kept, lambda mode: mode[1])))


def _integers(name: str, layout: Any) -> Any:
    """`layout`, if its values are integers; `name` is the operation, in errors."""
    if gives_coordinates(layout_for(name, layout)):
        raise LayoutError(
            f"{name} of {layout}: its values must be integers; take that of composition(A, L), "
            f"where A is the layout of the coordinates"
        )
    return layout
