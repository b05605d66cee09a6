"""What a layout is made of, and what it is.

value        frozen values
tuples       hierarchical integer tuples: shapes, strides, coordinates
stride       strides that are not integers: coordinates and XOR
arith        arithmetic on extents and strides: division and comparison
symbols      polynomials in positive integer symbols
elimination  linear algebra over GF(2)
unit         the bits that one offset counts
major        LayoutLeft, LayoutRight
steps        how many steps a search may take: budget
layout       Layout
swizzle      Swizzle and ComposedLayout
modes        layouts as flat lists of modes
offsets      the values at many indices at once
"""

from .layout import (
    Layout,
    cosize,
    flatten,
    make_identity_layout,
    make_layout,
    make_layout_like,
    make_ordered_layout,
)
from .major import LayoutLeft, LayoutRight
from .steps import budget
from .stride import F2, ArithTuple, E
from .swizzle import ComposedLayout, Swizzle
from .symbols import substitute, symbols
from .tuples import (
    compatible,
    congruent,
    crd2crd,
    crd2idx,
    depth,
    idx2crd,
    product,
    rank,
    size,
    unflatten,
    weakly_congruent,
)

__all__ = [
    "ArithTuple",
    "ComposedLayout",
    "E",
    "F2",
    "Layout",
    "LayoutLeft",
    "LayoutRight",
    "Swizzle",
    "budget",
    "compatible",
    "congruent",
    "cosize",
    "crd2crd",
    "crd2idx",
    "depth",
    "flatten",
    "idx2crd",
    "make_identity_layout",
    "make_layout",
    "make_layout_like",
    "make_ordered_layout",
    "product",
    "rank",
    "size",
    "substitute",
    "symbols",
    "unflatten",
    "weakly_congruent",
]
