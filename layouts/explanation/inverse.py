"""What `explain` writes of the inverses, the nullspace, and what two layouts have in common.

>>> from layouts import explain, right_inverse
>>> print(explain(right_inverse, Layout((4, 8), (8, 1))))
right_inverse((4,8):(8,1)) = (8,4):(4,1)
  the modes from left to right: 4:8 8:1
    4:8  is the first mode
    8:1  has the stride 1, but 4:8 would continue with 32: a mode of its own
  place values in the index of L: 1 for 4:8, 4 for 8:1
    stride 1: the mode 8:1, whose place value is 4, gives 8:4
    stride 8: the mode 4:8, whose place value is 1, gives 4:1
    no mode has the stride 32: R has the size 32
  R = 8:4 4:1, coalesced (8,4):(4,1)
  check L(R(i)) == i: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 ... on both
      sides, for all 32 indices
"""

from __future__ import annotations

from typing import Any

from .. import algebra
from ..proof.equivalence import Equivalent
from ..values.arith import ascending, divides, equal
from ..values.layout import Layout
from ..values.modes import Mode
from ..values.swizzle import ComposedLayout
from ..values.symbols import free_symbols, plain
from ..values.tuples import place_values, size, text
from .by_mode import coalesced, listed, merged
from .checks import check, check_values
from .steps import Lines, by_other_means, explains, substep
from .views import View, Views, drawable, has_integer_offsets, shows, tied


@explains(algebra.right_inverse)
def _right_inverse(lines: Lines, result: Any, layout: Any) -> None:
    if by_other_means(lines, layout, "by elimination, or by the inverse of the swizzle"):
        return
    modes = merged(lines, layout.modes)
    placed = list(zip(modes, map(plain, place_values([s for s, _ in modes])), strict=True))
    names = ", ".join(f"{place} for {s}:{text(d)}" for (s, d), place in placed)
    lines.append(f"place values in the index of L: {names or 'none'}")
    reach: Any = 1
    chain: list[Mode] = []
    while True:
        found = next((pair for pair in placed if equal(pair[0][1], reach)), None)
        if found is None:
            lines.append(f"  no mode has the stride {reach}: R has the size {reach}")
            break
        placed.remove(found)
        (extent, _), place = found
        lines.append(
            f"  stride {reach}: the mode {extent}:{reach}, whose place value is {place}, gives "
            f"{extent}:{place}"
        )
        chain.append((extent, place))
        reach = plain(reach * extent)
    coalesced(lines, chain, result)
    if result is not None:
        _check_right_inverse(lines, layout, result)


def _check_right_inverse(lines: Lines, layout: Any, result: Any) -> None:
    if free_symbols((layout, result)):
        both = ComposedLayout(layout, 0, result)
        check(lines, Equivalent(both, Layout(plain(size(result)), 1)), "L(R(i)) == i")
    else:
        check_values(lines, "L(R(i)) == i", lambda i: layout(result(i)), int, size(result))


@explains(algebra.left_inverse)
def _left_inverse(lines: Lines, result: Any, layout: Any) -> None:
    if not by_other_means(lines, layout, "by elimination, or by the inverse of the swizzle"):
        _offsets_to_places(lines, substep(lines, algebra.coalesce, layout))
        lines.append(f"R = {text(result)}")
    if result is not None and not free_symbols((layout, result)):
        check_values(
            lines,
            "L(R(L(i))) == L(i)",
            lambda i: layout(result(layout(i))),
            layout,
            size(layout),
        )


def _offsets_to_places(lines: Lines, flat: Layout) -> None:
    """Where R takes each stride of L: to the place value of its mode."""
    places = map(plain, place_values([extent for extent, _ in flat.modes]))
    place_of = dict(zip(flat.modes, places, strict=True))
    by_stride = ascending([mode for mode in place_of if mode[1] != 0], lambda mode: mode[1])
    lines.append(f"by rising stride: {listed(by_stride)}")
    for k, (extent, stride) in enumerate(by_stride):
        place = place_of[extent, stride]
        after = by_stride[k + 1][1] if k + 1 < len(by_stride) else None
        reach = "and so on" if after is None else f"up to the next stride, {after}"
        lines.append(
            f"  {extent}:{stride} has the place value {place}: R maps the offset {stride} to "
            f"{place}, {reach}"
        )
        if after is not None and not divides(stride, after):
            lines.append(f"  {after} is not a multiple of {stride}: all layouts are tried")


@explains(algebra.nullspace)
def _nullspace(lines: Lines, result: Any, layout: Any) -> None:
    how = "by elimination, or as that of the layout under a swizzle"
    if not by_other_means(lines, layout, how):
        places = map(plain, place_values([extent for extent, _ in layout.modes]))
        for (extent, stride), place in zip(layout.modes, places, strict=True):
            if type(stride) is int and stride == 0:
                lines.append(
                    f"  {extent}:0 does not change the offset; its place value is {place}: "
                    f"{extent}:{place}"
                )
        lines.append(f"R = {result}")
    if result is not None and not free_symbols((layout, result)):
        check_values(
            lines,
            "L(R(i)) == L(0)",
            lambda i: layout(result(i)),
            lambda i: layout(0),
            size(result),
        )


@explains(algebra.max_common_layout)
def _common_layout(lines: Lines, result: Any, a: Any, b: Any) -> None:
    count = substep(lines, algebra.max_common_vector, a, b)
    if count is None or result is None:
        return
    lines.append(f"R has the indices of the first vector: {text(result)}")
    if not free_symbols((a, b)):
        check_values(lines, "A(R(i)) == i", lambda i: a(result(i)), int, size(result))
        check_values(lines, "B(R(i)) == i", lambda i: b(result(i)), int, size(result))


@explains(algebra.max_common_vector)
def _common_vector(lines: Lines, result: Any, a: Any, b: Any) -> None:
    lines.append(
        f"the indices of A = {a} and B = {b} are cut into vectors, in which the offsets of both "
        f"rise by 1 together"
    )
    if result is not None:
        lines.append(f"every vector has {result} elements, or a multiple of that")


# --------------------------------------------------------------------------------- pictures


@shows(algebra.right_inverse, algebra.left_inverse)
def _both_ways(result: Any, layout: Any) -> Views | None:
    """An index of L with an offset, and the offset as an index of R with that index."""
    if not drawable(layout, result) or not has_integer_offsets(layout):
        return None
    reached = {layout(i) for i in range(size(layout))}
    count = size(result)
    views = (
        View("L", layout, lambda i: (layout(i),) if layout(i) < count else ()),
        View("R", result, lambda o: (o,) if o in reached else (), counts="index {} of L"),
    )
    return Views(views, lambda offset: offset, "offset of L")


@shows(algebra.nullspace)
def _at_offset_0(result: Any, layout: Any) -> Views | None:
    """The indices of L that have the offset of index 0."""
    if not drawable(layout, result):
        return None
    taken = {result(i) for i in range(size(result))}
    views = (
        View("L", layout, lambda i: (i,) if i in taken else ()),
        View("R", result, lambda i: (result(i),), counts="index {} of L"),
    )
    return Views(views, lambda _: 0, coloured="the indices of R")


@shows(algebra.max_common_layout)
def _in_both(result: Any, a: Any, b: Any) -> Views | None:
    """The indices of the first vector, in A and in B."""
    if not drawable(a, b, result):
        return None
    taken = tied((result(i), result(i)) for i in range(size(result)))
    views = (
        View("A", a, taken),
        View("B", b, taken),
        View("R", result, lambda i: (result(i),), counts="index {} of A and B"),
    )
    return Views(views, lambda _: 0, coloured="the first vector")
