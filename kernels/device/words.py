"""Words of several elements that lie anywhere between aligned ones, in device code."""

import cutlass.cute as cute
from cutlass import Uint32, select_

REGISTER = 4  # bytes


def word(pointer, count):
    """`count` elements at a pointer that is a multiple of their size."""
    return cute.make_tensor(pointer, cute.make_layout(count))


def gmem_word(address, dtype, count):
    """`count` elements at an address in global memory that is a multiple of their size."""
    align = count * dtype.width // 8
    return word(cute.make_ptr(dtype, address, cute.AddressSpace.gmem, assumed_align=align), count)


def funnel_shift(words, shift, shifted):
    """The word that starts `shift` bytes inside two neighbouring words (elements, 2).

    Registers are views of elements. The DSL gives a vector of one register the stride 0, so
    that all elements of a view of it would be the first.
    """
    registers, shifted = (cute.recast_tensor(each, Uint32) for each in (words, shifted))
    count = cute.size(shifted)
    values = [registers[i] for i in range(2 * count)]
    step = count // 2
    while step:  # by so many registers, if that bit of the shift is set
        far = (shift & (step * REGISTER)) != 0
        values = [
            Uint32(select_(far, values[i + step], values[i])) for i in range(len(values) - step)
        ]
        step //= 2
    bits = (shift & (REGISTER - 1)) * 8
    for i in range(count):
        shifted[i] = cute.arch.shf(values[i], values[i + 1], bits, "r")
