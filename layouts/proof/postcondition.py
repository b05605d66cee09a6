"""What an operation promises of its result, as a statement that `prove` decides.

>>> from layouts import Layout, prove, zipped_divide
>>> proof = prove(postcondition(zipped_divide, Layout((8, 64), (64, 1)), (4, 16)))
>>> bool(proof), proof.verify()
(True, True)

An operation that arranges modes does to a layout what it does to the layout of its indices,
``I = Layout(L.shape)``: there it gives the layout P of the indices that it takes, and its result is
L after P.  So the result is right exactly if it is this function of the index.

    R = zipped_divide(L, T)     the tiles and rests of logical_divide(L, T), in another order
    R = select(L, modes)        L after select(I, modes)
    R = filter(L)               L after the places of the modes that move
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import gcd
from typing import Any

from .. import algebra
from ..algebra import gf2
from ..algebra.as_layout import as_layout
from ..algebra.by_mode import flat, tiled, tiler_layout, zipped
from ..algebra.partition import get_flat_coord
from ..errors import LayoutError, check_call
from ..values.arith import ceil_div, divided, equal, less
from ..values.layout import (
    Layout,
    cosize,
    flatten,
    joined,
    make_identity_layout,
    make_ordered_layout,
)
from ..values.modes import assembled, has_xor_strides, placed
from ..values.stride import F2, ArithTuple
from ..values.swizzle import ComposedLayout, Swizzle, layout_for, outer_layout
from ..values.tuples import index_strides, leaves, size, unflatten
from .certificates import component
from .equivalence import Equivalent
from .injective import Injective
from .law_bases import AllOf
from .laws import (
    ComplementLaws,
    CompositionLaw,
    DivideLaw,
    LeftInverseLaw,
    ProductLaw,
    RightInverseLaw,
    Same,
)
from .prove import Statement

__all__ = ["postcondition"]


def postcondition(operation: Callable[..., Any], *operands: Any, result: Any = None) -> Statement:
    """The statement that `operation` returned what it promises for `operands`.

    `operation` is one of the algebra: the divides, the products, `coalesce`, `upcast` and so on.
    `result` is a result to check instead of what the operation returns.  The statement is about all
    indices, and about all values of symbols.

    Raises `LayoutError` if the operation refuses the operands, or promises nothing that a statement
    says.

    >>> from layouts import Layout, coalesce, prove, tile_to_shape
    >>> print(prove(postcondition(coalesce, Layout((2, (1, 6)), (1, (6, 2))))))
    proved: (2,(1,6)):(1,(6,2)) and 12:1 are the same function of the index
      as sums of floor(i/P), (2,(1,6)):(1,(6,2)) and 12:1 are both i
    >>> bool(prove(postcondition(tile_to_shape, Layout((8, 8), (9, 1)), (16, 32))))
    True
    """
    promise = PROMISES.get(operation) if callable(operation) else None
    if promise is None:
        name = getattr(operation, "__name__", repr(operation))
        raise LayoutError(
            f"postcondition of {name}: it takes one of "
            f"{', '.join(sorted(each.__name__ for each in PROMISES))}"
        )
    check_call(operation, operands)
    found: Statement = promise(operation(*operands) if result is None else result, *operands)
    return found


def _after(layout: Any, indices: Layout, result: Any, offset: Any = 0) -> Statement:
    """``result(i) == layout(offset + indices(i))`` for every i."""
    return Equivalent(ComposedLayout(layout, offset, indices), result)


# --------------------------------------------------------------------------- composition, inverses


def _composition(result: Any, a: Any, b: Any) -> Statement:
    """A tuple of tilers composes mode by mode; None keeps a mode."""
    if b is None:
        return Equivalent(a, result)
    if not isinstance(b, tuple):
        return CompositionLaw(a, b, result)
    parts = [_composition(*each) for each in zip(result, a, b, strict=False)]
    return AllOf((Same("rank", len(b), len(result)), *parts))


def _left_inverse(result: Any, layout: Any) -> Statement:
    """With modes of stride 0, the inverse of L on the indices that are 0 in them."""
    moving = _moving_places(layout)
    if equal(size(moving), size(layout)):
        return LeftInverseLaw(layout, result)
    return _after(_composed(result, layout), moving, moving)


def _moving_places(layout: Any) -> Layout:
    """The indices of `layout` that are 0 in its modes, or its bits, of stride 0."""
    if isinstance(layout, ComposedLayout) and not isinstance(layout.inner, Swizzle):
        found = as_layout(layout)
        if found is None:
            bits = gf2.placed_columns(layout)
            return assembled([(2, place) for place, column in bits if column])
        layout = found[1]
    outer = outer_layout(layout)
    places = [(s, place) for s, d, place in placed(outer.modes) if d != 0 and s != 1]
    return assembled(places)


def _composed(after: Any, before: Any) -> ComposedLayout:
    """The function ``after(before(c))``, whatever the two are."""
    if isinstance(before, Layout):
        return ComposedLayout(after, 0, before)
    inner = before.inner.layout if isinstance(before.inner, Swizzle) else before.inner
    return ComposedLayout(_composed(after, inner), before.offset, before.outer)


def _nullspace(result: Any, layout: Any) -> Statement:
    """L is L(0) at every index that N gives, and N gives each once."""
    constant = _plus(layout, layout(0), Layout(size(result), 0))
    return AllOf((_after(layout, result, constant), Injective(result)))


def _max_common_layout(result: Any, a: Any, b: Any) -> Statement:
    """The result is a right inverse of both."""
    return AllOf((RightInverseLaw(a, result), RightInverseLaw(b, result)))


# ------------------------------------------------------------------------------ divides, products


def _gathered(
    name: str, gather: Any, result: Any, layout: Any, tiler: Any, *, operation: Any, law: Any
) -> Statement:
    """The halves of the logical operation, gathered."""
    logical = operation(layout, tiler)
    indices = gather(name, lambda halves, _: halves, Layout(logical.shape), tiler)
    return AllOf((law(layout, tiler, logical), _after(logical, indices, result)))


_cut = partial(_gathered, operation=algebra.logical_divide, law=DivideLaw)
_repeated = partial(_gathered, operation=algebra.logical_product, law=ProductLaw)


def _blocked(result: Any, block: Any, tiler: Any, name: str = "blocked_product") -> Statement:
    """Each mode of the block with that of its copies; first the copies if it is raked."""
    rank = max(len(block), len(tiler_layout(tiler)))
    block, tiler = _padded(block, rank), _padded(tiler_layout(tiler), rank)
    logical = algebra.logical_product(block, tiler)
    pairs = zip(*Layout(logical.shape), strict=True)
    turned = name == "raked_product"
    indices = joined(joined(reversed(pair) if turned else pair) for pair in pairs)
    return AllOf((ProductLaw(block, tiler, logical), _after(logical, indices, result)))


def _padded(layout: Any, rank: int) -> Any:
    """`layout` with modes 1:0 up to `rank`."""
    if isinstance(layout, ComposedLayout):
        return layout.over(_padded(layout.outer, rank))
    return joined([*layout, *[Layout(1, 0)] * (rank - len(layout))])


def _tile_to_shape(result: Any, block: Any, shape: Any, order: Any = None) -> Statement:
    """The copies are those of a blocked product, and each mode has the size of that of `shape`."""
    sizes = tuple(size(mode) for mode in shape) if isinstance(shape, tuple) else (size(shape),)
    own = [size(mode) for mode in block] + [1] * (len(sizes) - len(block))
    copies = tuple(divided(*pair)[0] for pair in zip(sizes, own, strict=True))
    places = tuple(range(len(copies))) if order is None else order
    tiler = make_ordered_layout(copies, places) if isinstance(shape, tuple) else Layout(*copies)
    same = Same("size of each mode", sizes, tuple(size(mode) for mode in result))
    return AllOf((same, _blocked(result, block, tiler)))


# ----------------------------------------------------------------------------- modes and parts


def _same_function(result: Any, layout: Any, *_: Any) -> Statement:
    return Equivalent(layout, result)


def _filter(result: Any, layout: Any, profile: Any = None) -> Statement:
    """L at the places of its modes that move; with a profile, mode by mode."""
    if isinstance(profile, tuple):
        whole = [*profile, *[None] * (len(layout) - len(profile))]
        parts = map(_filter, result, layout, whole)
        return AllOf((Same("rank", len(layout), len(result)), *parts))
    outer = outer_layout(layout)
    return _after(layout, _moving_places(outer), result)


def _select(result: Any, layout: Any, modes: Any) -> Statement:
    """Where a mode is taken twice, its indices in L would add up and carry: the modes are named."""
    taken = [modes] if isinstance(modes, int) else [*modes]
    if len({*taken}) == len(taken):
        return _after(layout, algebra.select(Layout(layout.shape), modes), result)
    pairs = zip(taken, outer_layout(result), strict=True)
    parts = (Equivalent(outer_layout(layout)[mode], found) for mode, found in pairs)
    return AllOf((Same("rank", len(taken), len(result)), *parts))


def _dice(result: Any, coord: Any, layout: Any) -> Statement:
    shape = layout_for("postcondition of dice", layout).shape
    return _after(layout, algebra.dice(coord, Layout(shape)), result)


def _slice(result: Any, coord: Any, layout: Any) -> Statement:
    """The offset of the other entries is dropped; a composed layout holds it."""
    if isinstance(layout_for("postcondition of slice_", layout), ComposedLayout):
        return _slice_and_offset((result, 0), coord, layout)
    return _after(layout, algebra.slice_(coord, Layout(layout.shape)), result)


def _slice_and_offset(result: Any, coord: Any, layout: Any) -> Statement:
    return _part(partial(algebra.slice_and_offset, coord), layout, *result)


def _local_tile(result: Any, layout: Any, tiler: Any, coord: Any, proj: Any = None) -> Statement:
    """The tile at `coord` of a zipped divide."""
    if proj is not None:
        tiler, coord = (
            tuple(x for x, kept in zip(entries, proj, strict=True) if kept is not None)
            for entries in (tiler, coord)
        )
    tiles = algebra.zipped_divide(layout, tiler)
    if isinstance(coord, tuple):
        coord = (*coord, *[None] * (len(tiles[1]) - len(coord)))
    return _of_tiles(result, layout, tiler, (_all_of(tiles[0]), coord))


def _local_partition(
    result: Any, layout: Any, tile: Any, index: Any, proj: Any = None
) -> Statement:
    """The entry of a thread in every tile of a zipped divide."""
    tile = tile if proj is None else algebra.dice(proj, tile)
    tiler = tuple(size(mode) for mode in tile)
    rest = algebra.zipped_divide(layout, tiler)[1]
    coord = get_flat_coord(tile, index), _all_of(rest)
    return _of_tiles(result, layout, tiler, coord)


def _all_of(mode: Any) -> Any:
    """The coordinate that keeps every mode."""
    return (None,) * len(mode) if isinstance(mode.shape, tuple) else None


def _of_tiles(result: Any, layout: Any, tiler: Any, coord: Any) -> Statement:
    tiles = algebra.zipped_divide(layout, tiler)
    part = _slice_and_offset((result.layout, result.offset), coord, tiles)
    return AllOf((postcondition(algebra.zipped_divide, layout, tiler), part))


def _part(part_of: Any, layout: Any, part: Any, offset: Any) -> Statement:
    """``offset + part(i) == layout(start + indices(i))``, where ``part_of(I)`` gives the indices
    and where they start, which may be beyond the last extent; the sum is an XOR over XOR strides.
    """
    indices, start = part_of(Layout(layout.shape, index_strides(layout.shape)))
    _check_inside(layout, *part_of(make_identity_layout(layout.shape)))
    return _after(layout, indices, _plus(layout, offset, part), start)


def _check_inside(layout: Any, part: Layout, start: Any) -> None:
    """Raise `LayoutError` unless no coordinate of a part reaches beyond its extent in `layout`;
    what lies beyond has no index."""
    identity = make_identity_layout(layout.shape)
    for extent, stride in identity.modes:
        if not isinstance(stride, ArithTuple):
            return  # one mode, which has no end
        ((path, _),) = stride.terms
        at = start
        for k in path:
            at = at[k] if isinstance(at, tuple) and k < len(at) else 0
        modes = component(part, path).modes
        if not less(at + sum((s - 1) * d for s, d in modes), extent):
            raise LayoutError(
                f"postcondition of a part of {layout}: the part reaches beyond the extent {extent} "
                f"of a mode, where coordinates have no index"
            )


def _plus(layout: Any, offset: Any, part: Any) -> Any:
    """``offset + part(c)``, where both are offsets of `layout`."""
    if isinstance(offset, tuple):
        if any(leaves(offset)):
            raise LayoutError(f"postcondition of a part of {layout}: its offset is a coordinate")
        return part
    if equal(offset, 0):
        return part
    if isinstance(part, Layout) and has_xor_strides(part):
        top = 1 << (cosize(part) - 1).bit_length()  # one more bit, always set, adds the offset
        return ComposedLayout(Layout((top, 2), (F2(1), F2(offset))), top, part)
    return ComposedLayout(Layout(1, 1), offset, part)


# --------------------------------------------------------------------------------- units and bits


def _upcast(result: Any, layout: Any, n: int) -> Statement:
    """The first element of unit c is at ``n * R(c)``."""
    if n == 1:
        return Equivalent(layout, result)
    whole, units = (leaves(x.shape) for x in (layout, result))
    if len(whole) != len(units):
        raise LayoutError(f"postcondition of a cast of {layout}: {result} has other modes")
    modes = [
        (count, place * ceil_div(extent, count))
        for (extent, _, place), count in zip(
            placed((extent, 0) for extent in whole), units, strict=True
        )
    ]
    shape, stride = (unflatten([mode[k] for mode in modes], result.shape) for k in (0, 1))
    starts = ComposedLayout(layout, 0, Layout(shape, stride))
    return Equivalent(_composed(Layout(1, n), result), starts)


def _downcast(result: Any, layout: Any, n: int) -> Statement:
    """The elements are units of n parts."""
    return _upcast(layout, result, n)


def _recast(result: Any, layout: Any, old_bits: int, new_bits: int) -> Statement:
    """Cast down to the greatest common unit, then up."""
    common = gcd(old_bits, new_bits)
    parts = algebra.downcast(layout, old_bits // common)
    down = _downcast(parts, layout, old_bits // common)
    return AllOf((down, _upcast(result, parts, new_bits // common)))


def _bits(columns: Any, layout: Any) -> Statement:
    """The layout is that of the columns."""
    shape = (2,) * len(columns)
    return Equivalent(Layout(shape, tuple(map(F2, columns))), layout)


def _from_bits(result: Any, columns: Any, shape: Any = None) -> Statement:
    return _bits(tuple(columns), result)


PROMISES: dict[Any, Callable[..., Any]] = {
    algebra.blocked_product: _blocked,
    algebra.coalesce: _same_function,
    algebra.complement: lambda r, layout, cotarget=None: ComplementLaws(layout, cotarget, r),
    algebra.composition: _composition,
    algebra.dice: _dice,
    algebra.downcast: _downcast,
    algebra.filter: _filter,
    algebra.flat_divide: partial(_cut, "flat_divide", flat),
    algebra.flat_product: partial(_repeated, "flat_product", flat),
    algebra.from_bits: _from_bits,
    algebra.group_modes: _same_function,
    algebra.left_inverse: _left_inverse,
    algebra.local_partition: _local_partition,
    algebra.local_tile: _local_tile,
    algebra.logical_divide: lambda r, layout, tiler: DivideLaw(layout, tiler, r),
    algebra.logical_product: lambda r, layout, tiler: ProductLaw(layout, tiler, r),
    algebra.max_common_layout: _max_common_layout,
    algebra.nullspace: _nullspace,
    algebra.raked_product: partial(_blocked, name="raked_product"),
    algebra.recast: _recast,
    algebra.right_inverse: lambda r, layout: RightInverseLaw(layout, r),
    algebra.select: _select,
    algebra.slice_: _slice,
    algebra.slice_and_offset: _slice_and_offset,
    algebra.tile_to_shape: _tile_to_shape,
    algebra.tiled_divide: partial(_cut, "tiled_divide", tiled),
    algebra.tiled_product: partial(_repeated, "tiled_product", tiled),
    algebra.to_bits: _bits,
    algebra.upcast: _upcast,
    algebra.zipped_divide: partial(_cut, "zipped_divide", zipped),
    algebra.zipped_product: partial(_repeated, "zipped_product", zipped),
    flatten: _same_function,
}
