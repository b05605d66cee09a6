"""Parts of a layout: the tile of a thread block, and the elements of a thread."""

# Annotations are evaluated here: as strings, those of a NamedTuple take 2 ms to import.
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

from ..errors import LayoutError
from ..values.arith import ascending, ceil_div, divides
from ..values.layout import Layout, has_none
from ..values.modes import has_xor_strides
from ..values.steps import Steps
from ..values.stride import kind_of
from ..values.swizzle import ComposedLayout, Swizzle
from ..values.symbols import remainder
from ..values.tuples import (
    IntTuple,
    added,
    crd2idx,
    is_inside,
    is_int,
    is_unknown_int,
    size,
    text,
    unflatten,
)
from .by_mode import Tiler
from .divide import zipped_divide
from .on_tensors import on_tensor
from .slice import dice, slice_and_offset

__all__ = ["Tile", "local_partition", "local_tile"]


class Tile(NamedTuple):
    """A part of a layout: coordinate c of the part has the offset ``offset + layout(c)``.

    In C++ a tensor's pointer holds the offset (``slice_and_offset`` gives the pair in this order).
    """

    layout: Any
    offset: Any

    def __call__(self, *coord: IntTuple) -> Any:
        """``offset + layout(c)`` at an index or a coordinate; with None in it, the `Tile` of those
        modes.

        >>> tile = local_tile(Layout((128, 64), (64, 1)), (32, 16), (1, 2))
        >>> tile(0), tile(3, 1), tile(3, None)
        (2080, 2273, Tile(layout=Layout((16,), (1,)), offset=2272))
        """
        at = coord[0] if len(coord) == 1 else coord
        if not has_none(at):
            return added(self.offset, self.layout(at))
        part = part_at(at, self.layout)
        return Tile(part.layout, added(self.offset, part.offset))


def local_tile(layout: Any, tiler: Tiler, coord: IntTuple, proj: IntTuple = None) -> Any:
    """Tile `coord` of `layout` divided by `tiler`, as a `Tile`; of a tensor, a tensor (C++).

    ``offset + tile(t) == zipped_divide(layout, tiler)(t, coord)``.  An integer `coord` is the index
    of the tile among all tiles.  A rest mode where a tuple `coord` has None, or no entry, is kept
    after the modes of the tile.  `proj` drops the modes where it is None from both `tiler` and
    `coord`: C++ ``Step<_1, X, _1>`` is ``(1, None, 1)``.  The tile of a composed layout is a
    composed layout that holds the offset before its swizzle; `Tile.offset` is then 0.

    Raises `LayoutError` where `zipped_divide` does, if `coord` has more modes than the rest, or if
    there is no such tile.

    >>> tile = local_tile(Layout((128, 64), (64, 1)), (32, 16), (1, 2))
    >>> print(tile.layout, tile.offset)
    (32,16):(64,1) 2080
    >>> tiles = local_tile(Layout((128, 64), (64, 1)), (32, 128, 16), (1, 9, None), (1, None, 1))
    >>> print(tiles.layout, tiles.offset)
    (32,16,4):(64,1,16) 2048
    """
    if proj is not None:
        tiler, coord = _projected(tiler, proj), _projected(coord, proj)
    divided = zipped_divide(layout, tiler)
    tile, rest = divided.shape
    whole = (None,) * len(tile) if isinstance(tile, tuple) else None
    coord = _filled(coord, rest)
    if not is_inside(coord, rest):
        shown = text(coord).replace("None", "_")
        raise LayoutError(f"local_tile of {layout}: tile {shown} is outside {text(rest)}")
    return part_at((whole, coord), divided)


def local_partition(layout: Any, tile: Any, index: Any, proj: IntTuple = None) -> Any:
    """The elements of `layout` that thread `index` has, as a `Tile`; of a tensor, a tensor (C++).

    `layout` is divided into tiles with the shape of `tile`, which maps an element of a tile to its
    thread.  The result has the thread's element of every tile, one mode for each mode of `layout`:
    ``offset + part(r) == zipped_divide(layout, shape)(t, r)`` where ``tile(t) == index``.  `proj`
    drops modes of `tile` where it is None, as in `local_tile`.

    Raises `LayoutError` where `zipped_divide` does, and unless `tile` has thread `index` once.
    Where `index` is a symbol, each stride of `tile` in rising order must be a multiple of the
    extent times the stride before it.

    >>> part = local_partition(Layout((8, 16), (16, 1)), Layout((4, 8), (8, 1)), 9)
    >>> print(part.layout, part.offset)
    (2,2):(64,8) 17
    """
    if not isinstance(tile, Layout) or kind_of(tile.modes) is not None:
        raise LayoutError(f"local_partition: {tile!r} must be a Layout that gives thread indices")
    if proj is not None:
        tile = dice(proj, tile)
    divided = zipped_divide(layout, tuple(size(mode) for mode in tile))
    tiles = divided.shape[1]
    whole = (None,) * len(tiles) if isinstance(tiles, tuple) else None
    return part_at((get_flat_coord(tile, index), whole), divided)


#: The swizzle that changes nothing: a layout after it holds its offset.
IDENTITY = Swizzle(0, 0, 0)


def part_at(coord: IntTuple, layout: Any) -> Any:
    """`slice_and_offset` as a `Tile`, whose offset is added; of a tensor, the tensor.

    XOR strides combine with the offset of the fixed entries by XOR.  Where that is no sum, the tile
    is a composed layout that holds the offset.

    >>> from layouts import F2
    >>> print(part_at((None, 1), Layout((4, 4), (8, 1))).offset)
    1
    >>> part = part_at((None, 1), Layout((2, 4), (F2(1), F2(3))))
    >>> part.offset, [part.layout(i) for i in range(2)]
    (0, [3, 2])
    """
    if not isinstance(layout, (Layout, ComposedLayout)):
        return on_tensor("a slice", partial(part_at, coord), layout)
    if isinstance(layout, ComposedLayout) or not has_xor_strides(layout):
        return Tile(*slice_and_offset(coord, layout))
    part, _ = slice_and_offset(coord, ComposedLayout(IDENTITY, 0, layout))
    return Tile(part.outer, part.offset) if part.inner == IDENTITY else Tile(part, 0)


def get_flat_coord(threads: Layout, index: Any) -> tuple[Any, ...]:
    """The coordinate of thread `index` in `threads`, one index a mode (C++ ``get_flat_coord``).

    ``threads(get_flat_coord(threads, i)) == i``, and the digit of a leaf of stride 0 is 0.

    Raises `LayoutError` if no coordinate has the value `index`, or if several have.  A symbol is
    taken for the index of a thread.  With symbols, each stride in rising order must be a multiple
    of the extent times the stride before it; the digit of a leaf is then ``i // stride % extent``.

    >>> get_flat_coord(Layout((32, 2, 2), (1, 64, 32)), 69)
    (5, 1, 0)
    >>> get_flat_coord(Layout((4, 8), (1, 5)), 6)
    (1, 1)
    """
    if not is_int(index) and not is_unknown_int(index):
        raise LayoutError(f"thread {index!r}: it must be the index of a thread of {threads}")
    if is_int(index) and index < 0:
        raise LayoutError(f"thread {index}: the threads of {threads} count from 0")
    moving = [k for k, (extent, stride) in enumerate(threads.modes) if extent != 1 and stride != 0]
    rising = ascending(moving, key=lambda k: threads.modes[k][1])
    if not is_int(index) or any(type(x) is not int for mode in threads.modes for x in mode):
        return _coord_by_division(threads, rising, index)
    found = _coords_by_search(threads, rising, int(index))
    if not found:
        raise LayoutError(f"thread {index}: {threads} has no such thread")
    if len(found) > 1:
        raise LayoutError(
            f"thread {index}: {threads} has it at several coordinates, such as {text(found[0])} "
            f"and {text(found[1])}; give each thread one, by other strides"
        )
    return found[0]


def _coords_by_search(threads: Layout, rising: list[int], index: int) -> list[tuple[int, ...]]:
    """Up to two coordinates whose offset is `index`; only the leaves `rising` have digits.

    The search goes from the largest stride down.  It keeps what is left of `index` where the
    smaller strides can reach it, with the first two ways to that rest.
    """
    steps = Steps(f"the coordinate of thread {index} in {threads}")
    ways: dict[int, list[dict[int, int]]] = {index: [{}]}
    reach = sum((threads.modes[k][0] - 1) * threads.modes[k][1] for k in rising)
    for k in reversed(rising):
        extent, stride = threads.modes[k]
        reach -= (extent - 1) * stride
        before, ways = ways, {}
        for rest, found in before.items():
            least, most = max(0, ceil_div(rest - reach, stride)), min(extent - 1, rest // stride)
            for digit in range(least, most + 1):
                steps.take()
                here = ways.setdefault(rest - digit * stride, [])
                here += [{**digits, k: digit} for digits in found[: 2 - len(here)]]
    return [_coord(threads, digits) for digits in ways.get(0, [])]


def _coord_by_division(threads: Layout, rising: list[int], index: Any) -> tuple[Any, ...]:
    """The coordinate whose digits are ``index // stride % extent``.

    Raises `LayoutError` unless each stride is a multiple of the extent times the stride before it.
    """
    modes = threads.modes
    for k, following in pairwise(rising):
        (extent, stride), (_, larger) = modes[k], modes[following]
        if not divides(extent * stride, larger):
            raise LayoutError(
                f"thread {index} of {threads}: with symbols, its stride {larger} must be a "
                f"multiple of {extent} * {stride}, the extent times the stride before it; give "
                f"integers, or threads without padding"
            )
    coord = _coord(threads, {k: remainder(index // modes[k][1], modes[k][0]) for k in rising})
    if is_int(index) and threads(*coord) != index:
        raise LayoutError(f"thread {index}: it is not proved that {threads} has such a thread")
    return coord


def _coord(threads: Layout, digits: dict[int, Any]) -> tuple[Any, ...]:
    """The coordinate, one index a mode, with these digits at the leaves, and 0 at the others."""
    nested = unflatten([digits.get(k, 0) for k in range(len(threads.modes))], threads.shape)
    entries = nested if isinstance(nested, tuple) else (nested,)
    pairs = zip(entries, threads, strict=True)
    return tuple([crd2idx(entry, mode.shape) for entry, mode in pairs])


def _projected(t: IntTuple, proj: IntTuple) -> IntTuple:
    """The entries of `t` where `proj` is not None (C++ ``dice``)."""
    if not isinstance(t, tuple) or not isinstance(proj, tuple) or len(t) != len(proj):
        raise LayoutError(f"proj {proj!r} must be a tuple with one entry for each of {t!r}")
    return tuple(entry for entry, keep in zip(t, proj, strict=True) if keep is not None)


def _filled(coord: IntTuple, rest: IntTuple) -> IntTuple:
    """`coord` with None for the modes of the shape `rest` beyond it; an index as it is."""
    count = len(rest) if isinstance(rest, tuple) else 1
    if coord is not None and not isinstance(coord, tuple):
        return coord
    entries = coord if isinstance(coord, tuple) else (coord,)
    if len(entries) > count:
        raise LayoutError(
            f"coord {text(coord)} has {len(entries)} entries and there are {count} modes of "
            f"tiles, {text(rest)}; give at most one per mode"
        )
    filled = (*entries, *(None,) * (count - len(entries)))
    return filled if isinstance(rest, tuple) else filled[0]
