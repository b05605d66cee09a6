"""What `explain` writes of to_bits and from_bits.

>>> from layouts import explain, from_bits
>>> print(explain(from_bits, [9, 18, 1, 2, 4], (4, 8)))
from_bits([9, 18, 1, 2, 4], <4,8>) = S<2,0,3> o 0 o (4,8):(8,1)
  the value at index 2**j, in bits:
     1 -> 01001
     2 -> 10010
     4 -> 00001
     8 -> 00010
    16 -> 00100
  S<2,0,3> takes these to 8 16 1 2 4, and no two of them share a bit: they are the integer strides
      under the swizzle
  check R(i) == XOR of the columns of i's bits: 0 9 18 27 1 8 19 26 2 11 16 25 3 10 17 24 4 13 22
      31 5 12 23 30 ... on both sides, for all 32 indices
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import algebra
from ..algebra.gf2 import image
from ..values.modes import has_xor_strides
from ..values.swizzle import ComposedLayout
from ..values.tuples import size
from .checks import check_values
from .steps import Lines, explains


@explains(algebra.to_bits)
def _to_bits(lines: Lines, result: Any, layout: Any) -> None:
    if result is not None:
        _columns(lines, result)
        formula = "L(i) == XOR of the columns of i's bits"
        check_values(lines, formula, lambda i: image(i, result), layout, size(layout.shape))


@explains(algebra.from_bits)
def _from_bits(lines: Lines, result: Any, columns: Sequence[int], shape: Any = None) -> None:
    columns = tuple(columns)
    _columns(lines, columns)
    if isinstance(result, ComposedLayout):
        plain = " ".join(str(result.inner(column)) for column in columns)
        lines.append(
            f"{result.inner} takes these to {plain}, and no two of them share a bit: they are the "
            f"integer strides under the swizzle"
        )
    elif has_xor_strides(result):
        lines.append("several share a bit, whatever swizzle is undone: they are XOR strides")
    else:
        lines.append("no two share a bit: they are integer strides")
    formula = "R(i) == XOR of the columns of i's bits"
    check_values(lines, formula, lambda i: image(i, columns), result, size(result.shape))


def _columns(lines: Lines, columns: Sequence[int]) -> None:
    lines.append("the value at index 2**j, in bits:")
    width = max((column.bit_length() for column in columns), default=1)
    place = len(str(1 << max(len(columns) - 1, 0)))
    lines += [f"  {1 << j:{place}} -> {column:0{width}b}" for j, column in enumerate(columns)]
