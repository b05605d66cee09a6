"""A layout repeated: `logical_product`, and its halves gathered as those of the divides.

logical_product   (block, copies), by mode ((block, copies), ...)
blocked_product   ((block, copies), (block, copies), ...)    copies side by side
raked_product     ((copies, block), (copies, block), ...)    copies interleaved
"""

from __future__ import annotations

from collections.abc import Callable
from types import NoneType
from typing import Any

from ..errors import LayoutError
from ..values.arith import divided, divides
from ..values.layout import Layout, cosize, joined, make_ordered_layout, trusted
from ..values.modes import extended, from_columns, has_xor_strides
from ..values.stride import F2, ArithTuple, kind_of
from ..values.swizzle import AnyLayout, ComposedLayout, layout_for
from ..values.tuples import IntTuple, checked, product, size, text, unflatten
from .by_mode import Halving, Tiler, flat, logical, tiled, tiler_layout, zipped
from .coalesce import coalesce
from .complement import copies_of
from .composition import composition
from .gf2 import placed_columns

__all__ = [
    "blocked_product",
    "flat_product",
    "logical_product",
    "raked_product",
    "tile_to_shape",
    "tiled_product",
    "zipped_product",
]


def logical_product(layout: AnyLayout, tiler: Tiler) -> AnyLayout:
    """(A, copies of A arranged by the layout B): ``R((a, b)) == A(a) + A*(B(b))``.

    A* is the complement of A with at least cosize(B) offsets: there copies of A fit between and
    beyond each other, so no two of them have an offset in common (C++ ``logical_product``).  A may
    be padded.  A tuple of tilers multiplies mode by mode; None, and modes beyond the tuple, stay as
    they are.  Of a composed layout, the outer layout is repeated.  If A or B has XOR strides, the
    sum is the XOR, and the result is a composed layout where no layout has these values.

    Raises `LayoutError` if A has no complement.

    >>> print(logical_product(Layout((2, 2), (4, 1)), Layout(6)))
    ((2,2),(2,3)):((4,1),(2,8))
    >>> print(logical_product(Layout((64, 64), (72, 1)), 4))
    ((64,64),4):((72,1),4608)
    >>> print(logical_product(Layout((2, 5), (5, 1)), (3, None)))
    ((2,3),5):((5,1),1)
    """
    return _multiplied(logical, "logical_product", layout, tiler)


def zipped_product(layout: AnyLayout, tiler: Tiler) -> AnyLayout:
    """((block modes), (copy modes)): `logical_product` with the halves gathered (C++).

    >>> print(zipped_product(Layout((2, 5), (1, 2)), Layout((3, 4))))
    ((2,5),(3,4)):((1,2),(10,30))
    """
    return _multiplied(zipped, "zipped_product", layout, tiler)


def tiled_product(layout: AnyLayout, tiler: Tiler) -> AnyLayout:
    """((block modes), copies, copies, ...) (C++ ``tiled_product``).

    >>> print(tiled_product(Layout((2, 5), (5, 1)), Layout((3, 4))))
    ((2,5),3,4):((5,1),10,30)
    """
    return _multiplied(tiled, "tiled_product", layout, tiler)


def flat_product(layout: AnyLayout, tiler: Tiler) -> AnyLayout:
    """(block, block, ..., copies, copies, ...) (C++ ``flat_product``).

    >>> print(flat_product(Layout((2, 5), (5, 1)), Layout((3, 4))))
    (2,5,3,4):(5,1,10,30)
    """
    return _multiplied(flat, "flat_product", layout, tiler)


def blocked_product(block: AnyLayout, tiler: Layout) -> AnyLayout:
    """Copies of `block` side by side: mode k is (block mode k, tiler mode k).

    ``R((a, b)) == A(a) + A*(B(b))`` with the coordinates zipped by mode.  The operand of lower rank
    is padded with modes 1:0 (C++ ``blocked_product``; not coalesced, as in the DSL).

    Raises `LayoutError` as `logical_product` does, and unless `tiler` is a Layout or an integer.

    >>> print(blocked_product(Layout((2, 5), (5, 1)), Layout((3, 4), (1, 3))))
    ((2,3),(5,4)):((5,10),(1,30))
    """
    return _multiplied(_blocked, "blocked_product", block, tiler)


def raked_product(block: AnyLayout, tiler: Layout) -> AnyLayout:
    """Copies of `block` interleaved: mode k is (tiler mode k, block mode k), coalesced.

    (C++ ``raked_product``; coalesced by mode, as in the DSL and older C++.)

    Raises `LayoutError` as `blocked_product` does.

    >>> print(raked_product(Layout((2, 5), (5, 1)), Layout((3, 4), (1, 3))))
    ((3,2),(4,5)):((10,5),(30,1))
    """
    return _multiplied(_raked, "raked_product", block, tiler)


def tile_to_shape(block: AnyLayout, shape: IntTuple, order: IntTuple = None) -> AnyLayout:
    """Copies of `block` that fill `shape`, arranged in `order` (C++ ``tile_to_shape``).

    Mode k of the result has the size of mode k of `shape`.  `order` is as in `make_ordered_layout`;
    by default the leftmost mode is fastest.  Raises `LayoutError` unless the size of each mode of
    `block` divides that of the mode of `shape`.

    >>> print(tile_to_shape(Layout((2, 2)), (6, 8)), tile_to_shape(Layout((2, 2)), (6, 8), (1, 0)))
    ((2,3),(2,4)):((1,4),(2,12)) ((2,3),(2,4)):((1,16),(2,4))
    """
    target = shape if isinstance(shape, tuple) else (shape,)
    extents = [product(checked(mode, "shape", 1)) for mode in target]
    if not isinstance(block, (Layout, ComposedLayout)) or len(block) > len(extents):
        raise LayoutError(
            f"tile_to_shape: {block} must be a layout of at most {len(extents)} modes"
        )
    own = [size(mode) for mode in block] + [1] * (len(extents) - len(block))
    for k, (extent, count) in enumerate(zip(extents, own, strict=True)):
        if not divides(count, extent):
            raise LayoutError(
                f"tile_to_shape: mode {k} of {text(shape)} has the size {extent}, which is not a "
                f"multiple of {count}, the size of that mode of {block}"
            )
    copies = tuple(divided(extent, count)[0] for extent, count in zip(extents, own, strict=True))
    if not isinstance(shape, tuple):
        return blocked_product(block, Layout(copies[0]))
    places = tuple(range(len(copies))) if order is None else order
    return blocked_product(block, make_ordered_layout(copies, places))


# ------------------------------------------------------------------------------------ parts


def _multiplied(
    gather: Callable[..., Layout], name: str, layout: AnyLayout, tiler: Tiler
) -> AnyLayout:
    """The gathered blocks and copies; of a composed layout, those of its outer layout."""
    if isinstance(layout, ComposedLayout):
        return layout.over(_multiplied(gather, name, layout.outer, tiler))
    layout_for(name, layout)
    copies = None if isinstance(tiler, (tuple, NoneType)) else tiler_layout(tiler)
    if copies is not None and _xors(layout, copies):
        _check_numbers(layout, copies)
        indices = gather(name, _block_and_copy_indices, layout, copies)
        found: AnyLayout = composition(_bits(layout, copies), indices)
        return found
    return gather(name, _block_and_copies, layout, tiler)


def _block_and_copies(layout: Layout, copies: Layout) -> Any:
    """(A, copies of A arranged by the layout `copies`)."""
    _check_numbers(layout, copies)
    if _xors(layout, copies):
        return composition(_bits(layout, copies), _block_and_copy_indices(layout, copies))
    return joined([layout, composition(copies_of(layout, cosize(copies)), copies)])


def _check_numbers(layout: Layout, copies: Layout) -> None:
    """Raises `LayoutError` if `copies` gives coordinates."""
    if kind_of(copies.modes) is ArithTuple:
        raise LayoutError(
            f"product of {layout} with {copies}: the tiler must give integers, the numbers of the "
            f"copies; take composition(A, tiler), where A is the layout of the coordinates"
        )


def _blocked(name: str, operation: Halving, block: Layout, tiler: Any) -> Layout:
    """Each mode of the block before that of its copies, both padded to one rank."""
    if isinstance(tiler, (tuple, NoneType)):
        raise LayoutError(
            f"{name}: the tiler {tiler!r} must be a Layout or an integer, as in Layout((2, 2)): it "
            f"places all copies"
        )
    copies = tiler_layout(tiler)
    rank = max(len(block), len(copies))
    if rank == 1 and not isinstance(block.shape, tuple):
        return joined([operation(block, copies)])
    own, places = operation(_padded(block, rank), _padded(copies, rank))
    return joined(map(joined, zip(own, places, strict=True)))


def _raked(name: str, operation: Halving, block: Layout, tiler: Any) -> Layout:
    """Each mode of the block after that of its copies, coalesced."""
    turned = [joined([copies, own]) for own, copies in _blocked(name, operation, block, tiler)]
    return coalesce(joined(turned), (1,) * len(turned))


def _padded(layout: Layout, rank: int) -> Layout:
    return joined([*layout, *[Layout(1, 0)] * (rank - len(layout))])


# -------------------------------------------------------------------------------------- XOR


def _xors(layout: Layout, copies: Layout) -> bool:
    """Whether the block or the tiler has XOR strides."""
    return has_xor_strides(layout) or has_xor_strides(copies)


def _bits(layout: Layout, copies: Layout) -> Layout:
    """A and A* as one layout, linear over XOR: the index of a block's element, then of a copy."""
    count = cosize(copies)
    places = extended(copies_of(layout, count), count)
    return from_columns([column for each in (layout, places) for _, column in placed_columns(each)])


def _block_and_copy_indices(layout: Layout, copies: Layout) -> Layout:
    """(A, copies of A) as indices of `_bits`."""
    step: int = 1
    own: list[Any] = []
    for extent, stride in layout.modes:
        own.append(step if stride else 0)
        step *= extent if stride else 1
    others = [stride * step for _, stride in copies.modes]
    if has_xor_strides(copies):
        own = [F2(stride) if stride else 0 for stride in own]
    block = trusted(layout.shape, unflatten(own, layout.shape))
    return joined([block, trusted(copies.shape, unflatten(others, copies.shape))])
