"""Layouts whose index is read as bits, with modes of stride 0 of any extent.

A mode of stride 0 has no bits, so its extent may be any integer.  Each result is compared with its
definition at every index.
"""

import random

import pytest
from hypothesis import settings

from layouts import (
    F2,
    ComposedLayout,
    Layout,
    LayoutError,
    Swizzle,
    complement,
    composition,
    cosize,
    downcast,
    left_inverse,
    logical_divide,
    nullspace,
    right_inverse,
    size,
    slice_and_offset,
    substitute,
    symbols,
    upcast,
)
from layouts.algebra.gf2 import matrix

CASES = 6 * settings().max_examples  # of the profile


def offsets(layout):
    return [layout(i) for i in range(size(layout))]


# -------------------------------------------------------------------- the four that were wrong


def test_a_layout_after_a_swizzled_broadcast_keeps_its_size():
    swizzled = ComposedLayout(Swizzle(1, 0, -1), 0, Layout((3, 2), (0, 2)))
    result = composition(Layout(4, 3), swizzled)
    assert offsets(result) == [0, 0, 0, 6, 6, 6]


def test_a_broadcast_mode_of_extent_3_keeps_its_place_in_a_composition():
    result = composition(Layout((3, 8), (0, F2(1))), Layout(4, 2))
    assert offsets(result) == [0, 0, 1, 2]


def test_upcast_keeps_a_broadcast_mode_of_extent_3():
    assert upcast(Layout((3, 4), (0, F2(2))), 2) == Layout((3, 4), (0, F2(1)))


def test_left_inverse_of_an_xor_stride_beside_a_broadcast_mode():
    layout = Layout((5, 2), (0, F2(1)))
    assert left_inverse(layout) == right_inverse(layout) == Layout(2, 5)


# -------------------------------------------------------------------------- and their class


def test_a_matrix_needs_a_size_that_is_a_power_of_two():
    for layout in (Layout((3, 2), (0, F2(1))), Layout((3, 2), (0, 1))):
        with pytest.raises(LayoutError, match="power of two"):
            matrix(layout)
    with pytest.raises(LayoutError, match="not a bit matrix"):
        matrix(ComposedLayout(Layout((3, 2), (0, F2(1))), 0, Layout(4)))


def test_nullspace_of_bits_that_vanish_beside_a_broadcast_mode():
    assert nullspace(Layout((3, 2, 2, 2), (0, F2(1), F2(2), F2(3)))) == Layout((3, 2), (1, 21))
    with pytest.raises(LayoutError, match="share bits"):
        nullspace(Layout((3, 2, 2, 2), (0, F2(1), F2(1), F2(1))))


def an_xor_layout(rng):
    """XOR strides and modes of stride 0, the latter of any extent, some modes of extent 1."""
    shape = [rng.choice((1, 2, 2, 3, 4, 5, 6, 8)) for _ in range(rng.randint(1, 4))]
    columns = (1, 2, 4, 8, 3, 5, 6, 9, 18)
    strides = [0 if s & (s - 1) or rng.random() < 0.3 else F2(rng.choice(columns)) for s in shape]
    return Layout(tuple(shape), tuple(strides))


def an_integer_layout(rng):
    shape = [rng.choice((1, 2, 3, 4, 4, 8)) for _ in range(rng.randint(1, 3))]
    return Layout(tuple(shape), tuple(rng.choice((0, 1, 2, 3, 4, 8, 12)) for _ in shape))


def a_swizzled_layout(rng):
    bits = rng.randint(1, 2)
    swizzle = Swizzle(bits, rng.randint(0, 2), rng.choice((-1, 1)) * rng.randint(bits, 3))
    outer = rng.choice((an_xor_layout, an_integer_layout))(rng)
    return ComposedLayout(swizzle, rng.choice((0, 0, 1, 8)), outer)


def cases(seed, *generators):
    rng = random.Random(seed)
    return [[rng.choice(each)(rng) for each in generators] for _ in range(CASES)]


ANY = (an_xor_layout, an_xor_layout, an_integer_layout, a_swizzled_layout)


def attempt(operation, *arguments):
    try:
        return operation(*arguments)
    except LayoutError:
        return None


def test_composition_with_broadcast_modes():
    for a, b in cases(1, ANY, ANY):
        result = attempt(composition, a, b)
        if result is not None:
            assert offsets(result) == [a(x) for x in offsets(b)], (a, b)
            assert cosize(result) > max(offsets(result))


def test_inverses_and_nullspace_with_broadcast_modes():
    for (layout,) in cases(2, ANY):
        values = offsets(layout)
        right, left = attempt(right_inverse, layout), attempt(left_inverse, layout)
        null = attempt(nullspace, layout)
        if right is not None:
            assert [layout(i) for i in offsets(right)] == [*range(size(right))], layout
        if left is not None:
            assert [layout(left(x)) for x in values] == values, layout
        if null is not None:
            assert sorted(offsets(null)) == [i for i, x in enumerate(values) if x == values[0]]


def test_casts_with_broadcast_modes():
    rng = random.Random(3)
    for (layout,) in cases(3, ANY):
        n = rng.choice((2, 3, 4, 8))
        up, down = attempt(upcast, layout, n), attempt(downcast, layout, n)
        if up is not None:
            assert {*offsets(up)} == {x // n for x in offsets(layout)}, (layout, n)
        if down is not None:
            assert sorted({*offsets(down)}) == sorted(
                {n * x + r for x in offsets(layout) for r in range(n)}
            ), (layout, n)


def test_divides_of_xor_layouts_are_not_refused():
    """If the tile has a complement, A(B(t) + rest(r)) is at least a composed layout."""
    for layout, tile in cases(4, (an_xor_layout,), (an_integer_layout, an_xor_layout)):
        rest = attempt(complement, tile, size(layout))
        if rest is None or size(rest) * size(tile) > 500:
            continue
        xor = any(isinstance(stride, F2) for _, stride in tile.modes)
        expected = [layout(t ^ r if xor else t + r) for r in offsets(rest) for t in offsets(tile)]
        assert offsets(logical_divide(layout, tile)) == expected, (layout, tile)


# ------------------------------------------------- refused before, though there is a layout


def test_upcast_holds_a_mode_whole_if_it_fits_into_a_unit():
    assert upcast(Layout(2, 4), 6) == Layout(1, 1)
    assert upcast(Layout((2, 8), (3, 8)), 8) == Layout((1, 8), (1, 1))


def test_upcast_of_a_swizzle_that_changes_no_offset_that_occurs():
    swizzled = ComposedLayout(Swizzle(1, 0, 2), 0, Layout((4, 2), (1, 8)))
    assert offsets(upcast(swizzled, 2)) == [0, 1, 4, 5]


def test_upcast_of_xor_strides_that_share_no_bit_by_any_integer():
    assert upcast(Layout(2, F2(6)), 3) == Layout(2, 2)
    assert downcast(Layout(2, F2(1)), 3) == Layout(6, 1)


def test_a_tile_that_the_modes_of_an_xor_layout_do_not_divide_stays_composed():
    layout = Layout((3, 2), (0, F2(5)))
    divided = logical_divide(layout, 2)
    assert offsets(divided) == offsets(layout)
    nested = logical_divide(Layout(((5, 8), 2), ((0, F2(2)), 0)), (4, None))
    assert str(nested) == "((5,8),2):((0,F2),0) o 0 o ((4,10),2):((1,4),40)"


def test_left_inverse_refuses_symbols_that_may_overlap():
    m, n = symbols("m n")
    with pytest.raises(LayoutError, match="not proved"):
        left_inverse(Layout((2, m), (1, n)))  # n = 1: the offset 1 occurs twice
    assert left_inverse(Layout((2, m), (1, 2 * n))) == Layout((2 * n, m), (1, 2))


def test_left_inverse_of_bits_that_do_not_move():
    xors = Layout((2, 2, 2), (F2(1), 0, F2(2)))
    for layout in (
        ComposedLayout(xors, 0, Layout((4, 2), (1, 4))),
        ComposedLayout(xors, 0, Layout((2, 4), (4, 1))),
        ComposedLayout(xors, 4, Layout((2, 2))),
        ComposedLayout(Layout((4, 2), (1, 0)), 0, Layout(8)),
    ):
        inverse = left_inverse(layout)
        assert all(layout(inverse(layout(i))) == layout(i) for i in range(size(layout)))


def test_symbols_beside_xor_strides_are_answered_or_refused():
    m = symbols("m")
    broadcast = Layout((3 * m, 4), (0, F2(1)))
    assert left_inverse(broadcast) == right_inverse(broadcast) == Layout(4, 3 * m)
    assert nullspace(broadcast) == Layout(3 * m, 1)
    swizzled = ComposedLayout(Swizzle(2, 1, -3), 4 * m, Layout(4))
    assert composition(Layout(1, 4), swizzled).offset == 4 * m
    linear = ComposedLayout(Layout((4, m), (1, 8)), m, Layout((4, 2), (F2(8), F2(1))))
    with pytest.raises(LayoutError, match="known now"):
        slice_and_offset((None, m), linear)
    swizzled = ComposedLayout(Swizzle(2, 1, -3), m, Layout(2, F2(5)))
    inverse = left_inverse(swizzled)
    for value in range(1, 30):
        layout, undo = (substitute(each, {m: value}) for each in (swizzled, inverse))
        assert [undo(offset) for offset in offsets(layout)] == [0, 1]
    part, _ = slice_and_offset(
        (None, 1, None), ComposedLayout(Swizzle(1, 0, 2), 0, Layout((4 * m, 4, 2), (0, F2(5), 0)))
    )
    assert part.offset == 5
