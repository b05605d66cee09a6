"""What `explain` writes of a swizzle or a layout applied to an index.

>>> from layouts import explain
>>> print(explain(Layout((4, 8), (8, 1)), 6))
((4,8):(8,1))(6) = 17
  6 in (4,8), leftmost fastest, is (2,1)
  (2,1) times (8,1): 2*8 + 1*1 = 17
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..errors import LayoutError
from ..proof.certificates import stages_of
from ..values.layout import Layout
from ..values.swizzle import ComposedLayout, Swizzle
from ..values.tuples import coordinate, idx2crd, is_int, leaves, text
from .steps import Explanation, Lines, explains


@explains(Swizzle)
def _swizzle(swizzle: Swizzle, *offset: int) -> Explanation:
    """The bits of an offset, those that are read, where they are added, and the sum."""
    if len(offset) != 1 or not is_int(offset[0]):
        raise LayoutError(f"explain({swizzle}, ...): a swizzle takes one integer, not {offset}")
    x = int(offset[0])
    result = swizzle(x)
    width = max(x.bit_length(), swizzle.source.bit_length(), swizzle.target.bit_length(), 1)
    read = x & swizzle.source
    moved = read >> swizzle.shift if swizzle.shift >= 0 else read << -swizzle.shift
    column = max(len(str(x)), len(str(result)), 4) + 4
    rows = [
        ("bit", _cells(range(width - 1, -1, -1))),
        (str(x), _bits(x, width, -1)),
        ("read", f"{_bits(x, width, swizzle.source)}  {_range(swizzle.source)}"),
        (
            "onto",
            f"{_bits(moved, width, swizzle.target)}  {_range(swizzle.target)}: added without carry",
        ),
        (str(result), _bits(result, width, -1)),
    ]
    lines = [f"{name:<{column}} {cells}".rstrip() for name, cells in rows]
    lines.append(f"check: applied again, it gives {swizzle(result)} back")
    return Explanation(f"{swizzle}({x})", tuple(lines), result)


def _cells(entries: Iterable[int]) -> str:
    return " ".join(str(entry % 10) for entry in entries)


def _bits(x: int, width: int, mask: int) -> str:
    """The bits of `x` that are in `mask`, blanks elsewhere."""
    return " ".join(
        str(x >> bit & 1) if mask >> bit & 1 else " " for bit in range(width - 1, -1, -1)
    )


def _range(mask: int) -> str:
    if not mask:
        return "no bits"
    low, high = (mask & -mask).bit_length() - 1, mask.bit_length() - 1
    return f"bit {low}" if low == high else f"bits {low} to {high}"


@explains(ComposedLayout, Layout)
def _layout(layout: Any, *coord: Any) -> Explanation:
    """A coordinate or an index, digit by digit; a composed layout, stage by stage."""
    at = coordinate(coord[0] if len(coord) == 1 else coord)
    if any(hasattr(entry, "ndim") for entry in leaves(at)):
        raise LayoutError(f"explain({layout}, ...): it takes one index or coordinate, not an array")
    result = layout(at)
    lines: Lines = []
    value: Any = at
    for stage in reversed(stages_of(layout)):
        if isinstance(stage, Layout):
            value = _offset(lines, stage, value)
        elif isinstance(stage, Swizzle):
            steps = _swizzle(stage, value)
            lines += [steps.heading(), *(f"  {line}" for line in steps.lines)]
            value = steps.result
        else:
            lines.append(f"plus the offset: {value} + {stage} = {value + stage}")
            value = value + stage
    return Explanation(f"({layout})({text(at)})", tuple(lines), result)


def _offset(lines: Lines, layout: Layout, at: Any) -> Any:
    coord = idx2crd(at, layout.shape)
    if coord != at:
        lines.append(f"{text(at)} in {text(layout.shape)}, leftmost fastest, is {text(coord)}")
    pairs = zip(leaves(coord), leaves(layout.stride), strict=True)
    terms = " + ".join(f"{x}*{text(d)}" for x, d in pairs)
    value = layout(at)
    lines.append(f"{text(coord)} times {text(layout.stride)}: {terms} = {text(value)}")
    return value
