"""What `explain` writes of indices and coordinates.

>>> from layouts import explain
>>> print(explain(idx2crd, 21, (2, (2, 8))))
idx2crd(21, <2,<2,8>>) = (1,(0,5))
  21 = 10*2 + 1: digit 1, quotient 10
  10 = 5*2 + 0: digit 0, quotient 5
  8 is the last extent and takes the quotient: 5
  nested like (2,(2,8)): (1,(0,5))
  check crd2idx((1,(0,5)), (2,(2,8))) = 21
"""

from __future__ import annotations

from typing import Any

from ..values.symbols import free_symbols
from ..values.tuples import crd2crd, crd2idx, idx2crd, index_strides, leaves, text
from .steps import Lines, explains, substep


@explains(idx2crd)
def _idx2crd(lines: Lines, result: Any, idx: Any, shape: Any) -> None:
    if isinstance(idx, tuple) or free_symbols((idx, shape)):
        lines.append(f"each entry of {text(idx)} is an index into its mode of {text(shape)}")
        return
    if shape == ():
        lines.append("the shape () has one coordinate, ()")
        return
    *extents, last = leaves(shape)
    rest = idx
    for extent in extents:
        quotient, digit = divmod(rest, extent)
        lines.append(f"{rest} = {quotient}*{extent} + {digit}: digit {digit}, quotient {quotient}")
        rest = quotient
    lines.append(f"{last} is the last extent and takes the quotient: {rest}")
    lines.append(f"nested like {text(shape)}: {text(result)}")
    lines.append(f"check crd2idx({text(result)}, {text(shape)}) = {crd2idx(result, shape)}")


@explains(crd2idx)
def _crd2idx(lines: Lines, result: Any, coord: Any, shape: Any, stride: Any = None) -> None:
    if stride is None:
        stride = index_strides(shape)
        lines.append(f"the place values of {text(shape)}, leftmost fastest: {text(stride)}")
    whole = _down_to_leaves(lines, coord, shape)
    terms = zip(leaves(whole), leaves(stride), strict=True)
    products = " + ".join(f"{text(x)}*{text(d)}" for x, d in terms)
    lines.append(f"each entry times its stride: {products} = {text(result)}")


def _down_to_leaves(lines: Lines, coord: Any, shape: Any) -> Any:
    """`coord` nested as `shape` is: an integer in place of a tuple is an index into it."""
    if not isinstance(shape, tuple):
        return coord
    if not isinstance(coord, tuple):
        whole = idx2crd(coord, shape)
        lines.append(f"{coord} is an index into {text(shape)}: {text(whole)}")
        return whole
    return tuple(_down_to_leaves(lines, *pair) for pair in zip(coord, shape, strict=True))


@explains(crd2crd)
def _crd2crd(lines: Lines, result: Any, coord: Any, source: Any, target: Any) -> None:
    substep(lines, idx2crd, substep(lines, crd2idx, coord, source), target)
