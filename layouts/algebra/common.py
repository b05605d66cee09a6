"""What two layouts have in common: the largest vectors that one copy may move between them.

The coordinates of both are cut into vectors.  Within a vector, the offsets of A and those of B rise
by 1 together.  Three ways find the largest, the first that applies:

    modes      layouts of integers or symbols whose extents divide one another
    bits       layouts that are linear over XOR, swizzled ones among them
    offsets    all others, if they are few: every pair of offsets is compared
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from math import gcd
from typing import Any

from ..errors import LayoutError
from ..values.arith import divided, divides, equal, less
from ..values.elimination import preimages
from ..values.layout import Layout, layout_of
from ..values.modes import Mode, from_columns, without_ones
from ..values.offsets import all_offsets, offsets_at, steps_of_a_value
from ..values.steps import too_many
from ..values.stride import kind_of
from ..values.swizzle import ComposedLayout, Swizzle, gives_coordinates, layout_for, outer_layout
from ..values.symbols import has_symbols
from ..values.tuples import size
from .as_layout import as_layout
from .coalesce import coalesce
from .composition import composition
from .gf2 import matrix
from .inverse import right_inverse

__all__ = ["max_common_layout", "max_common_vector"]


def max_common_layout(
    a: Layout | ComposedLayout, b: Layout | ComposedLayout
) -> Layout | ComposedLayout:
    """The layout R of the indices of the first common vector (C++ ``max_common_layout``).

    ``A(R(i)) == B(R(i)) == i`` for every i below ``size(R)``, which is `max_common_vector`, or 1 if
    no such layout exists.  Raises `LayoutError` if A or B takes index 0 to another offset than 0.

    >>> a, b = Layout((4, (2, 4)), (1, (4, 16))), Layout((4, 8), (1, 4))
    >>> print(max_common_layout(a, b), max_common_layout(Layout((4, 8), (8, 1)), b))
    8:1 1:0
    """
    a, b = layout_of(a), layout_of(b)
    count = max_common_vector(a, b)
    for each in (a, b):
        if each(0) != 0:
            raise LayoutError(
                f"max_common_layout of {each}: it maps index 0 to {each(0)}, so the offset 0 is "
                f"not common; take the layout without its offset"
            )
    a, b = _as_layout_if_one(a), _as_layout_if_one(b)
    bits = None if has_symbols((a, b)) else _matrices(a, b)
    if bits is not None:
        return from_columns(_common_indices(*bits, most=count.bit_length() - 1))
    inverse = right_inverse(b)
    parts = (_first(inverse, part) for part in _divisors(count))
    return next((r for r in parts if r is not None and _agree(a, b, r)), Layout(1, 0))


def max_common_vector(a: Layout | ComposedLayout, b: Layout | ComposedLayout) -> Any:
    """The number of elements in the largest vectors that are contiguous in both layouts (C++).

    One copy may move so many.  The indices that A and B both have can be cut into vectors; in each,
    the offsets of A and those of B rise by 1 together.  This is about every vector, not about the
    first alone, and neither layout needs to begin at offset 0.  So a swizzle limits the result to
    the elements that it keeps together, and an offset that is not aligned to them limits it more.
    With symbols, the result is the largest that is proved, and so it is if neither modes nor bits
    decide and the pairs of offsets are more than the `budget` allows.  Where several indices have
    one pair of offsets, there may be a larger vector.

    Of a tensor, it is about the layout.  Raises `LayoutError` if A or B gives coordinates.

    >>> max_common_vector(Layout((4, (2, 4)), (1, (4, 16))), Layout((4, 8), (1, 4)))
    8
    >>> tile = Layout((8, 64), (64, 1))
    >>> swizzled = ComposedLayout(Swizzle(3, 3, 3), 0, tile)
    >>> max_common_vector(swizzled, tile), max_common_vector(swizzled, swizzled)
    (8, 512)
    """
    a, b = layout_of(a), layout_of(b)
    for each in (a, b):
        if gives_coordinates(layout_for("max_common_vector", each)):
            raise LayoutError(f"max_common_vector of {each}: it gives coordinates, not offsets")
    a, b = _as_layout_if_one(a), _as_layout_if_one(b)
    proved, most = _by_modes(a, b)
    if proved is most or has_symbols((a, b)):
        return proved
    bits = _matrices(a, b)
    if bits is not None:
        return 1 << sum(1 for _ in _common_indices(*bits))
    count = min(size(a), size(b))
    few = not too_many(count * _steps_of_a_pair(a, b))
    return _by_offsets(a, b, count) if few else proved


def _steps_of_a_pair(a: Any, b: Any) -> int:
    """The steps, in the sense of `budget`, that it takes to compute and compare two offsets."""
    return steps_of_a_value(a) + steps_of_a_value(b) + 2


def _as_layout_if_one(layout: Any) -> Any:
    """A composed layout as the layout that it is, if it is one."""
    found = as_layout(layout) if isinstance(layout, ComposedLayout) else None
    return layout if found is None or not equal(found[0], 0) else found[1]


# ----------------------------------------------------------------------------------- modes


def _by_modes(a: Any, b: Any) -> tuple[Any, Any]:
    """A vector that is proved, and the largest that there may be, or None.

    The layouts under the swizzles have the chain of the modes that begin with stride 1 in both and
    go on in both.  A swizzle keeps its aligned runs together.
    """
    shared = _shared_modes(outer_layout(a), outer_layout(b))
    if shared is None:
        return 1, None
    reach: Any = 1
    while True:
        found = next((m for m in shared if equal(m[1], reach) and equal(m[2], reach)), None)
        if found is None:
            break
        shared.remove(found)
        reach = reach * found[0]
    proved = _kept(a, [d for _, d, _ in shared], _kept(b, [d for _, _, d in shared], reach))
    # under a swizzle or an offset, vectors may begin elsewhere than in the outer layout
    plain = isinstance(a, Layout) and isinstance(b, Layout)
    return (reach, reach) if plain and equal(proved, reach) else (proved, None)


def _shared_modes(a: Layout, b: Layout) -> list[tuple[Any, Any, Any]] | None:
    """The modes (extent, stride in A, stride in B) of the indices that both have; None if an extent
    is not proved to divide another, or if the strides are not integers."""
    if kind_of(a.modes) is not None or kind_of(b.modes) is not None:
        return None
    shared = []
    first, second = without_ones(a)[::-1], without_ones(b)[::-1]
    while first and second:
        (s, d), (t, e) = first.pop(), second.pop()
        if divides(s, t):
            shared.append((s, d, e))
            _push(second, divided(t, s)[0], e * s)
        elif divides(t, s):
            shared.append((t, d, e))
            _push(first, divided(s, t)[0], d * t)
        else:
            return None
    return shared


def _push(modes: list[Mode], extent: Any, stride: Any) -> None:
    """Put back what remains of a mode."""
    if not equal(extent, 1):
        modes.append((extent, stride))


def _kept(layout: Any, steps: list[Any], vector: Any) -> Any:
    """How much of vectors of the outer layout are vectors of the layout; `steps` are the strides
    from vector to vector."""
    if isinstance(layout, Layout):
        return vector
    if not isinstance(layout.inner, Swizzle):
        return 1
    if layout.inner.bits == 0:
        return vector
    bounds = (1 << layout.inner.base, layout.offset, *steps)
    if all(type(x) is int for x in (vector, *bounds)):
        return gcd(vector, *bounds)
    return vector if all(divides(vector, x) for x in bounds) else 1


# ------------------------------------------------------------------------------------ bits

#: A layout as ``L(i) == start ^ (XOR of column j for the set bits j of i)``.
Bits = tuple[int, list[int]]


def _matrices(a: Any, b: Any) -> tuple[Bits, Bits] | None:
    """A and B on the indices that both have, if both are linear over XOR there."""
    try:
        bits = min(size(a), size(b)).bit_length() - 1
        return (a(0), list(matrix(a)[:bits])), (b(0), list(matrix(b)[:bits]))
    except LayoutError:
        return None


def _common_indices(a: Bits, b: Bits, most: int | None = None) -> Iterator[int]:
    """For bit 0, 1, ... of the offset: the index that sets it alone, in A and in B.

    They go on as long as that bit is the same in A and B at every index.
    """
    width = max(column.bit_length() for _, columns in (a, b) for column in (0, *columns))
    both = [x << width | y for x, y in zip(a[1], b[1], strict=True)]
    wanted = [1 << bit + width | 1 << bit for bit in range(width if most is None else most)]
    for bit, index in enumerate(preimages(wanted, both)):
        differs = [x ^ y for x, y in zip((a[0], *a[1]), (b[0], *b[1]), strict=True)]
        if index is None or (most is None and any(x >> bit & 1 for x in differs)):
            return
        yield index


# --------------------------------------------------------------------------------- offsets


def _by_offsets(a: Any, b: Any, count: int) -> int:
    """The largest number that divides the length of every run of pairs of offsets that rise by 1
    together, all of them at as many indices."""
    indices = list(range(count))
    own, other = offsets_at(a, indices), offsets_at(b, indices)
    beyond = max(own) + 2  # keys are consecutive only where the offsets rise together
    indices_of = Counter((x - y) * beyond + x for x, y in zip(own, other, strict=True))
    pairs = pairwise(sorted(indices_of.items()))
    ends = [k for k, ((key, n), after) in enumerate(pairs, 1) if after != (key + 1, n)]
    return gcd(*ends, len(indices_of))


# ---------------------------------------------------------------------------------- the first


def _divisors(count: Any) -> Iterator[Any]:
    """The numbers that divide `count`, falling; of a symbol, itself."""
    if type(count) is not int:
        yield count
        return
    for part in range(1, count + 1):
        if count % part == 0:
            yield count // part


def _first(inverse: Any, count: Any) -> Layout | ComposedLayout | None:
    """The first `count` indices of `inverse` as a layout, or None."""
    try:
        if less(size(inverse), count):
            return None
        found: Layout | ComposedLayout = composition(inverse, Layout(count))
        return found
    except LayoutError:
        return None


def _agree(a: Any, b: Any, found: Any) -> bool:
    """Whether ``A(R(i)) == B(R(i)) == i``."""
    return _undoes(a, found) and _undoes(b, found)


def _undoes(layout: Any, found: Any) -> bool:
    """Whether ``L(R(i)) == i``, by modes, or else at every index."""
    try:
        through = coalesce(composition(layout, found))
    except LayoutError:
        through = None
    if isinstance(through, Layout) and kind_of(through.modes) is None:
        (extent, stride), *others = through.modes
        return not others and (equal(extent, 1) or equal(stride, 1))
    count = size(found)
    few = type(count) is int and not too_many(count * _steps_of_a_pair(layout, found))
    return few and offsets_at(layout, all_offsets(found)) == list(range(count))
