"""What `explain` writes of coordinates, and of the parts of a layout that stand at one.

>>> from layouts import explain, idx2crd
>>> print(explain(idx2crd, 21, (2, (2, 8))))
idx2crd(21, <2,<2,8>>) = (1,(0,5))
  21 = 10*2 + 1: 1, and 10 goes on
  10 = 5*2 + 0: 0, and 5 goes on
  8 is the last extent and takes what is left: 5
  hung on (2,(2,8)): (1,(0,5))
  check crd2idx((1,(0,5)), (2,(2,8))) = 21
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ..algebra.divide import zipped_divide
from ..algebra.slice import dice, shown, slice_, slice_and_offset
from ..values.layout import Layout
from ..values.swizzle import ComposedLayout
from ..values.symbols import free_symbols
from ..values.tuples import (
    crd2idx,
    idx2crd,
    is_int,
    leaves,
    place_values,
    shallow,
    size,
    text,
    unflatten,
)
from .steps import check_values, inside

__all__ = ["PART_LESSONS"]


def _idx2crd(board: list[str], result: Any, idx: Any, shape: Any) -> None:
    if isinstance(idx, tuple) or free_symbols((idx, shape)):
        board.append(f"each entry of {text(idx)} is an index into its mode of {text(shape)}")
        return
    *extents, last = leaves(shape)
    rest = idx
    for extent in extents:
        digit = rest % extent
        board.append(
            f"{rest} = {rest // extent}*{extent} + {digit}: {digit}, and {rest // extent} goes on"
        )
        rest //= extent
    board.append(f"{last} is the last extent and takes what is left: {rest}")
    board.append(f"hung on {text(shape)}: {text(result)}")
    board.append(f"check crd2idx({text(result)}, {text(shape)}) = {crd2idx(result, shape)}")


def _crd2idx(board: list[str], result: Any, coord: Any, shape: Any, stride: Any = None) -> None:
    if stride is None:
        stride = unflatten(place_values(leaves(shape)), shape)
        board.append(f"the strides that count {text(shape)}, leftmost fastest: {text(stride)}")
    whole = _down_to_leaves(board, coord, shape)
    terms = list(zip(leaves(whole), leaves(stride), strict=True))
    summed = " + ".join(f"{text(x)}*{text(d)}" for x, d in terms)
    board.append(f"each entry times its stride: {summed} = {text(result)}")


def _down_to_leaves(board: list[str], coord: Any, shape: Any) -> Any:
    """`coord` nested as `shape` is: an integer that faces a tuple is an index into it."""
    if not isinstance(shape, tuple):
        return coord
    if not isinstance(coord, tuple):
        whole = idx2crd(coord, shape)
        board.append(f"{coord} faces {text(shape)}, and is its index: {text(whole)}")
        return whole
    return tuple(_down_to_leaves(board, *pair) for pair in zip(coord, shape, strict=True))


def _crd2crd(board: list[str], result: Any, coord: Any, source: Any, target: Any) -> None:
    inside(board, idx2crd, inside(board, crd2idx, coord, source), target)


def _at(op: Any, board: list[str], result: Any, coord: Any, x: Any) -> None:
    """A slice, or what a slice leaves out."""
    if isinstance(x, ComposedLayout):
        board.append(f"{x.inner} stays; what is fixed goes to the offset; the outer layout:")
        inside(board, op, coord, x.outer)
        return
    if not isinstance(coord, tuple):
        board.append(f"{shown(coord)} stands for the whole of {text(x)}")
        return
    for k, (entry, mode) in enumerate(zip(coord, shallow(x), strict=True)):
        name = f"mode {k}, {text(mode)}"
        if entry is None:
            board.append(f"{name}: _ leaves it open")
        elif isinstance(entry, tuple):
            board.append(f"{name}: {shown(entry)} leaves open what _ stands for")
        else:
            at = f", where it has {text(mode(entry))}" if isinstance(mode, Layout) else ""
            board.append(f"{name}: fixed at {text(entry)}{at}")
    left, fixed = slice_(coord, x), dice(coord, x)
    board.append(f"open: {text(left)}; fixed: {text(fixed)}")


def _local_tile(
    board: list[str], result: Any, layout: Any, tiler: Any, at: Any, *proj: Any
) -> None:
    if proj or isinstance(layout, ComposedLayout):
        board.append(f"as of {_plainly(layout)} by zipped_divide, at {shown(at)}")
        return
    divided = inside(board, zipped_divide, layout, tiler)
    if result is None or divided is None:
        return
    tile, rest = divided
    board.append(f"the tile is {tile}; at {shown(at)} of {rest} it begins at {text(result.offset)}")
    if None not in leaves(at):
        _check_part(board, "offset + tile(t) == Z(t, c)", rest(at), tile, result)


def _local_partition(
    board: list[str], result: Any, layout: Any, tile: Any, index: Any, *proj: Any
) -> None:
    if proj or result is None or not is_int(index) or isinstance(layout, ComposedLayout):
        board.append(f"as of {_plainly(layout)} by zipped_divide, for thread {text(index)}")
        return
    shape = tuple(map(size, tile))
    places = (idx2crd(i, shape) for i in range(size(tile)))
    coord = next(place for place in places if tile(place) == index)
    board.append(f"thread {index} of {tile} is at {text(coord)}")
    threads, rest = inside(board, zipped_divide, layout, shape)
    board.append(f"it has {rest}, from {threads} at {text(coord)} = {text(threads(coord))} on")
    _check_part(board, "offset + part(r) == Z(t, r)", threads(coord), rest, result)


def _check_part(board: list[str], said: str, start: Any, part: Any, result: Any) -> None:
    check_values(
        board,
        said,
        lambda i: result.offset + result.layout(i),
        lambda i: start + part(i),
        size(part),
    )


def _plainly(layout: Any) -> str:
    return (
        f"{layout.outer}, before its swizzle,"
        if isinstance(layout, ComposedLayout)
        else text(layout)
    )


#: The name of an operation -> who explains it.
PART_LESSONS: dict[str, Callable[..., Any]] = {
    "crd2crd": _crd2crd,
    "crd2idx": _crd2idx,
    "dice": partial(_at, dice),
    "idx2crd": _idx2crd,
    "local_partition": _local_partition,
    "local_tile": _local_tile,
    "slice_": partial(_at, slice_),
    "slice_and_offset": partial(_at, slice_and_offset),
}
