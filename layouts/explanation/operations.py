"""More of what `explain` writes: halves gathered, blocks side by side, inverses, other units.

>>> from layouts import explain, upcast
>>> print(explain(upcast, Layout((4, 8), (8, 1)), 2))
upcast((4,8):(8,1), 2) = (4,4):(4,1)
  a unit holds 2 elements of L = (4,8):(8,1), mode by mode:
    4:8  each step goes over 4 units: 4:4
    8:1  2 elements are in one unit: 4:1
  check R(i) == L(first element of unit i) / 2: 0 4 8 12 1 5 9 13 2 6 10 14 3 7 11 15 on both
      sides, for all 16 indices
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import gcd
from typing import Any

from .. import algebra
from ..values.arith import divided, divides, equal
from ..values.layout import Layout, joined, make_ordered_layout
from ..values.swizzle import ComposedLayout, Swizzle
from ..values.symbols import free_symbols
from ..values.tuples import idx2crd, leaves, place_values, size, text, unflatten
from .steps import (
    check_values,
    each_mode,
    elsewhere,
    inside,
    modes_of,
    rising,
    spelled_modes,
)

__all__ = ["LESSONS"]


def _in_outer(board: list[str], op: Any, layout: Any, *args: Any) -> bool:
    """Whether `layout` is composed, so that all happens in its outer layout."""
    if not isinstance(layout, ComposedLayout):
        return False
    board.append(f"{layout.inner} and the offset {layout.offset} stay; the outer layout:")
    inside(board, op, layout.outer, *args)
    return True


# --------------------------------------------------------------------- gathered, side by side


def _gathered(
    logical: Any, told: str, board: list[str], result: Any, layout: Any, tiler: Any
) -> None:
    found = inside(board, logical, layout, tiler)
    if result is not None:
        board.append(f"of {text(found)} {told}: {text(result)}")


def _side_by_side(
    op: Any, raked: bool, board: list[str], result: Any, block: Any, tiler: Any
) -> None:
    """Blocked and raked: the halves of a product, mode k beside mode k."""
    if _in_outer(board, op, block, tiler):
        return
    copies = tiler if isinstance(tiler, Layout) else Layout(tiler)
    rank = max(len(block), len(copies))
    both = inside(
        board,
        algebra.logical_product,
        *(_filled(board, layout, rank) for layout in (block, copies)),
    )
    if result is None:
        return
    pairs = [pair[::-1] if raked else pair for pair in zip(*both, strict=True)]
    for k, pair in enumerate(pairs):
        board.append(f"mode {k} has, inner first, {pair[0]} and {pair[1]}")
    beside = joined(map(joined, pairs))
    board.append(f"side by side: {beside}" + (f"; coalesced by mode, {result}" if raked else ""))
    if not free_symbols(both):
        halves = slice(None, None, -1 if raked else 1)

        def product(i: int) -> Any:
            coords = [coord[halves] for coord in idx2crd(i, beside.shape)]
            return both(*zip(*coords, strict=True))

        said = f"R(({'b,a' if raked else 'a,b'}), ...) == P((a, ...), (b, ...))"
        check_values(board, said, product, result, size(result))


def _filled(board: list[str], layout: Layout, rank: int) -> Layout:
    """`layout` as a tuple of modes, with modes 1:0 up to `rank`."""
    filled = joined([*layout, *[Layout(1, 0)] * (rank - len(layout))])
    if filled != layout:
        board.append(f"{layout} is filled up to {rank} modes: {filled}")
    return filled


def _tile_to_shape(
    board: list[str], result: Any, block: Any, shape: Any, order: Any = None
) -> None:
    target = shape if isinstance(shape, tuple) else (shape,)
    own = [size(mode) for mode in block] + [1] * (len(target) - len(block))
    copies = []
    if len(own) > len(target):
        return
    for k, (extent, count) in enumerate(zip(target, own, strict=True)):
        times, left = divided(size(extent), count)
        if not equal(left, 0):
            board.append(f"mode {k}: {count} of the block do not divide {text(extent)}")
            return
        copies.append(times)
        board.append(f"mode {k}: {text(extent)} takes {times} copies of {count}")
    places = Layout(copies[0])
    if isinstance(shape, tuple):
        places = make_ordered_layout(tuple(copies), order or tuple(range(len(copies))))
        said = "leftmost fastest" if order is None else f"in the order {text(order)}"
        board.append(f"the copies are counted {said}: {places}")
    inside(board, algebra.blocked_product, block, places)


# ------------------------------------------------------------------------ left out, inverted


def _filter(board: list[str], result: Any, layout: Any, profile: Any = None) -> None:
    if isinstance(profile, tuple):
        board.append("each mode that the profile has is filtered by itself")
        each_mode(board, algebra.filter, list(layout), [p if p is None else 1 for p in profile])
        return
    moving = [(s, d) for s, d in modes_of(layout) if not (type(d) is int and d == 0)]
    board.append(f"the modes that move the offset: {spelled_modes(moving)}")
    if moving:
        extents, strides = zip(*moving, strict=True)
        inside(board, algebra.coalesce, Layout(extents, strides))


def _nullspace(board: list[str], result: Any, layout: Any) -> None:
    if not elsewhere(board, layout, "by elimination, or as that of the layout under a swizzle"):
        places = place_values([extent for extent, _ in modes_of(layout)])
        for (extent, stride), place in zip(modes_of(layout), places, strict=True):
            if type(stride) is int and stride == 0:
                board.append(
                    f"  {extent}:0 does not move, and counts in {place}s: {extent}:{place}"
                )
        board.append(f"R = {result}")
    if result is not None and not free_symbols((layout, result)):
        check_values(
            board,
            "L(R(i)) == L(0)",
            lambda i: layout(result(i)),
            lambda i: layout(0),
            size(result),
        )


def _left_inverse(board: list[str], result: Any, layout: Any) -> None:
    if not elsewhere(board, layout, "by elimination, or by the inverse of the swizzle"):
        flat = inside(board, algebra.coalesce, layout)
        places = place_values([extent for extent, _ in modes_of(flat)])
        index_of = dict(zip(modes_of(flat), places, strict=True))
        by_stride = rising([mode for mode in index_of if mode[1] != 0])
        board.append(f"by rising stride: {spelled_modes(by_stride)}")
        for k, (extent, stride) in enumerate(by_stride):
            place = index_of[extent, stride]
            here = f"  {extent}:{stride} counts in {place}s of the index: offset {stride} goes to"
            after = by_stride[k + 1][1] if k + 1 < len(by_stride) else None
            reach = "and so on" if after is None else f"up to the next stride, {after}"
            board.append(f"{here} {place}, {reach}")
            if after is not None and not divides(stride, after):
                board.append(f"  {after} is no multiple of {stride}: all layouts are tried")
        board.append(f"R = {text(result)}")
    if result is not None and not free_symbols((layout, result)):
        check_values(
            board,
            "L(R(L(i))) == L(i)",
            lambda i: layout(result(layout(i))),
            layout,
            size(layout),
        )


def _common(board: list[str], result: Any, a: Any, b: Any) -> None:
    inverse = inside(board, algebra.right_inverse, b)
    if inverse is None or result is None:
        return
    count = result if type(result) is int else size(result)
    board.append(f"A(R(i)) == i, A = {a}, holds for the first {count}: these they have in common")
    if not free_symbols((a, b)):
        check_values(board, "A(R(i)) == i", lambda i: a(inverse(i)), int, count)


# -------------------------------------------------------------------------------------- units


def _upcast(board: list[str], result: Any, layout: Any, n: int) -> None:
    if _swizzle_recast(board, result, algebra.upcast, layout, n):
        return
    if n == 1 or elsewhere(board, layout, "bit by bit"):
        return
    board.append(f"a unit holds {n} elements of L = {layout}, mode by mode:")
    held = []
    parts = modes_of(result) if result is not None else ()
    for (extent, stride), (s, d) in zip(modes_of(layout), parts, strict=bool(parts)):
        once = equal(s, extent)
        held.append(1 if once else (extent if equal(s, 1) else divided(extent, s)[0]))
        said = f"each step goes over {d} units" if once else f"{held[-1]} elements are in one unit"
        board.append(f"  {extent}:{stride}  {said}: {s}:{d}")
    if result is not None and not free_symbols(layout):

        def first(i: int) -> int:
            coord = zip(leaves(idx2crd(i, result.shape)), held, strict=True)
            at = [x * count for x, count in coord]
            return int(layout(unflatten(at, layout.shape))) // n

        check_values(
            board, f"R(i) == L(first element of unit i) / {n}", first, result, size(result)
        )


def _downcast(board: list[str], result: Any, layout: Any, n: int) -> None:
    if _swizzle_recast(board, result, algebra.downcast, layout, n):
        return
    if n == 1 or elsewhere(board, layout, "bit by bit"):
        return
    board.append(f"an element of L = {layout} has {n} parts, which lie in a mode of stride 1:")
    longer = []
    parts = modes_of(result) if result is not None else ()
    for (extent, stride), (s, d) in zip(modes_of(layout), parts, strict=bool(parts)):
        longer.append(n if equal(d, stride) and not equal(s, extent) else 1)
        said = f"gets {n} times as long" if longer[-1] > 1 else f"steps {n} times as far"
        board.append(f"  {extent}:{stride}  {said}: {s}:{d}")
    if result is not None and not free_symbols(layout):

        def part(i: int) -> int:
            coord = list(zip(leaves(idx2crd(i, result.shape)), longer, strict=True))
            at = unflatten([x // count for x, count in coord], layout.shape)
            rest = sum(x % count for x, count in coord)
            return int(n * layout(at) + rest)

        check_values(board, f"R({n}*c + r) == {n}*L(c) + r", part, result, size(result))


def _swizzle_recast(board: list[str], result: Any, op: Any, layout: Any, n: int) -> bool:
    """Whether `layout` is composed, so that swizzle, offset and outer layout change together."""
    if not isinstance(layout, ComposedLayout):
        return False
    up = op is algebra.upcast
    change = f"{'/' if up else '*'} {n}"
    if result is not None and isinstance(layout.inner, Swizzle):
        board.append(
            f"{layout.inner} moves the same bytes as {result.inner} on offsets {change}, and "
            f"{layout.offset} {change} = {result.offset}; the outer layout:"
        )
    inside(board, op, layout.outer, n)
    return True


def _recast(board: list[str], result: Any, layout: Any, old_bits: int, new_bits: int) -> None:
    common = gcd(old_bits, new_bits)
    old, new = old_bits // common, new_bits // common
    board.append(
        f"units of {old_bits} and {new_bits} bits have {common} bits in common: {old} in an old "
        f"one, {new} in a new one"
    )
    parts = inside(board, algebra.downcast, layout, old) if old > 1 else layout
    if parts is not None and new > 1:
        inside(board, algebra.upcast, parts, new)


TILES, REST = "the tiles are gathered in mode 0", "the rests"
BLOCKS, COPIES = "the blocks are gathered in mode 0", "the copies"

#: The name of an operation -> who explains it.
LESSONS: dict[str, Callable[..., Any]] = {
    "blocked_product": partial(_side_by_side, algebra.blocked_product, False),
    "downcast": _downcast,
    "filter": _filter,
    "flat_divide": partial(
        _gathered, algebra.logical_divide, "every tile mode comes first, then every rest"
    ),
    "flat_product": partial(
        _gathered, algebra.logical_product, "every block mode comes first, then every copy"
    ),
    "left_inverse": _left_inverse,
    "max_common_layout": _common,
    "max_common_vector": _common,
    "nullspace": _nullspace,
    "raked_product": partial(_side_by_side, algebra.raked_product, True),
    "recast": _recast,
    "tile_to_shape": _tile_to_shape,
    "tiled_divide": partial(_gathered, algebra.logical_divide, f"{TILES}, {REST} follow"),
    "tiled_product": partial(_gathered, algebra.logical_product, f"{BLOCKS}, {COPIES} follow"),
    "upcast": _upcast,
    "zipped_divide": partial(_gathered, algebra.logical_divide, f"{TILES}, {REST} in mode 1"),
    "zipped_product": partial(_gathered, algebra.logical_product, f"{BLOCKS}, {COPIES} in mode 1"),
}
