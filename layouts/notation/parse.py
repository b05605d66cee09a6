"""`parse` reads layouts as CuTe prints them.

    (4,8):(8,1)                          shape:stride, as the DSL and this package print it
    (_4,_8):(_8,_1)                      C++, whose static integers have an underscore
    (4, 8):(8, 1)                        pycute, with blanks
    Layout((4, 8), (8, 1))               ``repr``, here and elsewhere
    S<3,4,3>   Sw<3,4,3>   SW_3_4_3      a swizzle, as the DSL, C++ and pycute print it
    S<3,3,3> o 0 o (8,64):(64,1)         a composed layout: inner o offset o outer
    Sw<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)
                                         C++, a swizzle on the bytes of a pointer to 16-bit elements
    tensor<ptr<f16, smem, align<128>, S<3,4,3>> o (8,64):(64,1)>    the same, as the DSL prints it
    tmem_[32b](0x0000.0000) o (_128,_64):(_65536,_1)   GMMA::DescriptorIterator o (_1,_4):(_0,_2)
    smem_subptr[4b](0x400.0) o (_8,_64):(_64,_1)   counting_iter(0) o (_4,_8):(_8,_1)
                                         C++ tensors: their layouts, without the pointer
    Layout<Shape<_4,_8>,Stride<_8,_1>>   a C++ type, also with cute::, tuple and C<4> or Int<4>
    (4,8):(1@1,1@0)   E<0>               strides that are coordinates
    (4,2):(F1,F5)                        strides that XOR, as PyCuTe prints them
    (4,8)   (4:1,_)                      a shape alone; a tiler
    (8*m,n):(1,8*m)                      positive integer symbols, and what sympy prints of them:
                                         floor(m/8), ceiling(m/8), Mod(m, 8)

``str`` prints the first form of each, so ``parse(str(x)) == x``; a unit is not printed.  In
16*(m + 1)*(n + 1), sympy multiplies the number into the first sum.  `reader` has the grammar.
"""

from __future__ import annotations

from typing import Any

from .names import CONSTRUCTORS
from .reader import Reader

__all__ = ["parse"]


def parse(expression: str) -> Any:
    """The Layout, Swizzle, ComposedLayout or integer tuple that `expression` spells.

    ``A o B`` has offset 0.  A swizzle before a pointer acts on bytes; the result is the same
    function on elements, with their width as its unit.  C++ prints a pointer's address as it is
    before the swizzle; it becomes the offset, without the bits above those that the swizzle uses.

    Raises `LayoutError` if `expression` cannot be read, or spells an invalid layout or the address
    of no element; a caret marks the place.

    >>> parse("(_4,_8):(_8,_1)"), parse("((2,4),8)")
    (Layout((4, 8), (8, 1)), ((2, 4), 8))
    >>> parse("Sw<3,3,3> o _0 o (_8,_64):(_64,_1)") == parse("S<3,3,3> o (8,64):(64,1)")
    True
    >>> parse("Sw<1,4,3> o smem_ptr[16b](unset) o (_64,_16):(_16,_1)")
    ComposedLayout(Swizzle(1, 3, 3), 0, Layout((64, 16), (16, 1)), unit=16)
    >>> parse("(4,8):(8,1")
    Traceback (most recent call last):
    layouts.errors.LayoutError: parse: expected ',' or ')'
        (4,8):(8,1
                  ^
    """
    return Reader(expression, CONSTRUCTORS, "parse: ").read()
