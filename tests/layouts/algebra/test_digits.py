"""Layouts read digit by digit: composition and the reader of the proofs find the same digits."""

import random

import pytest

from layouts import Layout, composition, symbols
from layouts.algebra.digits import extended_modes, form_of, read_through
from layouts.proof.digits import Carry, read

m, n = symbols("m n")
NUMBERS = [1, 2, 3, 4, 6, 8, 12]
SYMBOLIC = [2, 4, m, 4 * m, n, 8 * m * n]


def layout(rng, numbers):
    extents = tuple(rng.choice(numbers) for _ in range(rng.randint(1, 3)))
    return Layout(extents, tuple(rng.choice([0, *numbers]) for _ in extents))


@pytest.mark.parametrize("numbers", [NUMBERS, SYMBOLIC], ids=["numbers", "symbols"])
def test_composition_and_proof_read_the_same_digits(numbers):
    rng, read_to_the_end = random.Random(12), 0
    for _ in range(400):
        a, b = layout(rng, numbers), layout(rng, numbers)
        modes = [mode for mode in b.modes if mode[0] != 1]
        form = form_of(modes)
        carry = read_through(extended_modes(a), form)
        extents = tuple(extent for extent, _ in modes)
        if carry is not None:
            with pytest.raises(Carry):
                read((a, Layout(extents, tuple(stride for _, stride in modes))), extents)
            continue
        digits, readings = read((a, Layout(extents, tuple(d for _, d in modes))), extents)
        assert digits == tuple(digit.extent for digit in form)
        after = readings[-1].after
        assert all(own == digit.stride for own, digit in zip(after[1:], form, strict=True))
        assert after[0] == 0
        read_to_the_end += 1
    assert read_to_the_end > 50


def test_an_offset_takes_part_in_a_carry():
    read((Layout((4, 2), (1, 8)), 1, Layout(3)), (3,))
    with pytest.raises(Carry):
        read((Layout((4, 2), (1, 8)), 2, Layout(3)), (3,))


def test_where_a_digit_carries_there_may_be_a_layout_by_coincidence():
    a, b = Layout((4, 4, 4), (0, 0, 1)), Layout(6, 6)
    assert read_through(extended_modes(a), form_of(b.modes)) == (30, 16)
    assert composition(a, b) == Layout((3, 2), (0, 1))
