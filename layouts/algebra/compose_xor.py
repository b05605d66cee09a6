"""A layout after another, where one has XOR strides.

A mode with an XOR stride is linear in the bits of its coordinate.  Cut into modes of extent 2
(`bit_modes`), such a layout is read through digit by digit as any other layout is; a digit carries
where XOR does not add.  Modes of stride 0 stay whole: their extents may be any integers.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Any

from ..errors import LayoutError
from ..values.layout import Layout, cosize
from ..values.modes import (
    assembled,
    bit_modes,
    column_strides,
    extended,
    has_xor_strides,
    merged,
    refined,
)
from ..values.stride import F2, kind
from .compose_integers import compose
from .digits import form_of, modes_of_leaves, read_through

__all__ = ["compose_xor"]


def compose_xor(a: Layout, b: Layout) -> Layout | None:
    """``R(c) == A(B(c))`` where A or B may have XOR strides; None where no layout is that.

    >>> print(compose_xor(Layout((4, 2), (F2(1), F2(5))), Layout((2, 4), (4, 1))))
    (2,4):(F5,F1)
    >>> print(compose_xor(Layout((4, 8), (8, 1)), Layout((4, 2), (F2(1), F2(5)))))
    (4,2):(F8,F9)
    """
    if not has_xor_strides(b):
        return _after_integers(a, b)
    columns = [int(stride) for _, stride in bit_modes(b.modes) if stride]
    union = reduce(or_, columns, 0)
    used = [1 << k for k in range(union.bit_length()) if union >> k & 1]
    images = _images(a, used)
    if images is None:
        return None
    strides = [sum((images[bit] for bit in used if bit & column), 0) for column in columns]
    return _of_bits(b, [int(stride) for stride in strides])


def _after_integers(a: Layout, b: Layout) -> Layout | None:
    """A(B(c)) where B has integer strides, or None."""
    if has_xor_strides(a):
        return _xor_after_integers(a, b)
    try:
        return compose(a, b)
    except LayoutError:
        return None


def _xor_after_integers(a: Layout, b: Layout) -> Layout | None:
    """A(B(c)) where A has XOR strides: its bits, as many as B reaches, are its modes."""
    if any(type(x) is not int for mode in b.modes for x in mode):
        raise LayoutError(f"composition of {a} with {b}: XOR strides take integers known now")
    form = form_of(b.modes)
    if read_through([*bit_modes(extended(a, cosize(b)).modes), (None, 0)], form) is not None:
        return None
    leaves = []
    for leaf in modes_of_leaves(form, len(b.modes)):
        modes = merged([mode for mode in leaf if mode[0] != 1])
        leaves.append([(extent, stride or 0) for extent, stride in modes])  # F0 is written 0
    return refined(b.shape, leaves)


def _images(a: Layout, used: list[int]) -> dict[int, Any] | None:
    """What A gives for each of the bits `used`, if A is linear over XOR on these; None if not."""
    on_bits = _after_integers(a, assembled([(2, bit) for bit in used]))
    if on_bits is None:
        return None
    strides = [on_bits.value(1 << k) for k in range(len(used))]
    if all(type(stride) is int for stride in strides):
        if sum(strides) != reduce(or_, strides, 0):
            return None
        strides = [F2(stride) if stride else 0 for stride in strides]
    if kind(strides) is not F2 and any(strides):
        return None
    return dict(zip(used, strides, strict=True))


def _of_bits(b: Layout, columns: list[int]) -> Layout:
    """`b` with the column of each bit of an XOR stride replaced, in their order."""
    bits = iter([(2, stride) for stride in column_strides(columns)])
    parts = [[next(bits) if d else (s, d) for s, d in bit_modes([mode])] for mode in b.modes]
    return refined(b.shape, [merged(part) for part in parts])
