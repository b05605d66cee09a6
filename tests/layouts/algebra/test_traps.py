"""Cases that other libraries get wrong, with the right answers; test_algebra.py and
test_swizzle.py have more.  Numbered as in studies/algebra.md, section 3."""

from inspect import signature
from itertools import product as cartesian
from time import process_time

import pytest

import layouts
from layouts import (
    F2,
    ComposedLayout,
    E,
    Layout,
    LayoutError,
    Swizzle,
    algebra,
    blocked_product,
    budget,
    coalesce,
    complement,
    composition,
    cosize,
    dice,
    downcast,
    idx2crd,
    left_inverse,
    logical_divide,
    logical_product,
    make_layout,
    max_common_layout,
    max_common_vector,
    nullspace,
    parse,
    raked_product,
    recast,
    right_inverse,
    size,
    slice_,
    slice_and_offset,
    substitute,
    symbols,
    upcast,
    wavefronts,
    zipped_divide,
)
from layouts.algebra import gf2


def check(result, expected):
    assert str(result) == expected


def offsets(layout):
    return [layout(i) for i in range(size(layout))]


# ------------------------------------------------------------------- composition and divide


@pytest.mark.parametrize("arguments", [(4, -1), ((4, -2), (1, 4)), ((0, 3),), ((4, 3), (1, -10))])
def test_c8_negative_strides_and_empty_extents_are_refused(arguments):
    with pytest.raises(LayoutError, match="at least"):
        Layout(*arguments)


def test_c8_a_negative_index_is_refused():
    with pytest.raises(LayoutError, match="from 0 up"):
        Layout((4, 3), (1, 10))(-1)


def test_c9_only_the_size_of_a_cotarget_counts():
    assert complement(Layout((2, 2), (1, 6)), (4, 6)) == complement(Layout((2, 2), (1, 6)), 24)
    check(complement(Layout(4, 2), (16, 3)), "(2,6):(1,8)")
    check(complement(Layout(4, 2), Layout((16, 3))), "(2,6):(1,8)")


def test_c7_zipped_divide_with_none():
    check(zipped_divide(Layout((3, 8)), (None, 4)), "((3,4),(1,2)):((1,3),(0,12))")


# --------------------------------------------------------------------------------- inverses


def test_i3_left_inverse_of_a_padded_layout():
    layout = Layout((4, 8), (1, 5))
    check(left_inverse(layout), "(5,8):(1,4)")
    assert [left_inverse(layout)(x) for x in offsets(layout)] == list(range(32))


def test_i4_left_inverse_where_the_strides_are_no_chain():
    layout = Layout((2, 2), (2, 3))  # 0, 2, 3, 5
    assert [left_inverse(layout)(x) for x in (0, 2, 3, 5)] == [0, 1, 2, 3]
    with pytest.raises(LayoutError, match="no layout is its inverse"):
        left_inverse(Layout((2, 3), (3, 2)))


def test_i5_left_inverse_of_what_is_not_injective_is_refused():
    with pytest.raises(LayoutError, match="offset 2 occurs more than once"):
        left_inverse(Layout((2, 3), (2, 1)))
    check(left_inverse(Layout((3, 7), (0, 0))), "1:0")
    check(left_inverse(Layout((4, 2), (0, 3))), "(3,2):(0,4)")


# --------------------------------------------------------------------------- divide, product


def test_d2_logical_product_by_an_integer():
    check(logical_product(Layout(4), 3), "(4,3):(1,4)")


def test_d3_blocked_product_of_a_block_with_gaps():
    check(
        blocked_product(Layout((2, 2), (4, 1)), Layout((2, 4), (1, 2))),
        "((2,2),(2,4)):((4,2),(1,8))",
    )
    with pytest.raises(LayoutError, match="has no layout"):
        blocked_product(Layout(4, 2), Layout(3, 1))
    check(blocked_product(Layout((2, 2)), Layout(3)), "((2,3),(2,1)):((1,4),(2,0))")  # padded


def test_d4_raked_product_is_coalesced_by_mode_as_in_the_dsl():
    result = raked_product(Layout((2, 2), (4, 1)), Layout((2, 4), (1, 2)))
    check(result, "(4,(4,2)):(2,(8,1))")
    check(raked_product(Layout((2, 2)), Layout(3)), "((3,2),2):((4,1),2)")


def test_d5_a_tile_of_size_1_has_stride_0_and_the_rest_is_a_function():
    tile, rest = logical_divide(Layout((4, 6), (6, 1)), Layout(1, 0))
    assert offsets(tile) == [0]
    assert offsets(rest) == offsets(Layout((4, 6), (6, 1)))


# ------------------------------------------------------------------------------------ units


def test_upcast_refuses_what_does_not_fall_into_units():
    with pytest.raises(LayoutError, match="element 1 is misaligned"):
        upcast(Layout(4, 3), 2)
    with pytest.raises(LayoutError, match="the layout is not injective"):
        upcast(Layout((2, 2), (1, 1)), 2)


TILE = ComposedLayout(Swizzle(3, 3, 3), 0, Layout((8, 64), (64, 1)))


@pytest.mark.parametrize(("old", "new"), [(16, 256), (16, 512), (8, 128), (48, 16), (16, 48)])
def test_a_swizzle_that_has_no_equivalent_is_refused_in_the_units_of_its_layout(old, new):
    with pytest.raises(LayoutError) as of_the_swizzle:
        TILE.inner.recast(old, new)
    with pytest.raises(LayoutError) as of_the_layout:
        recast(ComposedLayout(TILE.inner, 0, TILE.outer, old), old, new)
    assert str(of_the_layout.value) == str(of_the_swizzle.value)


@pytest.mark.parametrize(
    ("operation", "n", "words"),
    [
        (upcast, 16, "by 16: its swizzle changes bits inside one unit"),
        (upcast, 3, "by 3: a swizzle needs a power of two"),
        (downcast, 3, "by 3: a swizzle needs a power of two"),
    ],
)
def test_a_swizzle_without_a_unit_is_refused_without_bits(operation, n, words):
    with pytest.raises(LayoutError) as refused:
        operation(TILE, n)
    assert str(refused.value).startswith(f"{operation.__name__} of {TILE} {words}")


@pytest.mark.parametrize("n", [3, 32])
def test_downcast_refuses_parts_of_a_bit(n):
    with pytest.raises(LayoutError, match=f"its unit of 16 bits must be a multiple of {n}"):
        downcast(ComposedLayout(Swizzle(0, 0, 0), 0, Layout(8), 16), n)


def test_downcast_needs_a_mode_of_stride_1():
    with pytest.raises(LayoutError, match="no mode has stride 1"):
        downcast(Layout((4, 8), (16, 2)), 2)
    check(downcast(Layout((4, 8), (1, 1)), 2), "(8,8):(1,2)")  # the DSL lengthens both


def test_s5_no_operation_drops_the_swizzle():
    tile = parse("S<3,3,3> o 0 o (8,64):(64,1)")
    check(upcast(tile, 2), "S<3,2,3> o 0 o (8,32):(32,1)")
    check(downcast(tile, 2), "S<3,4,3> o 0 o (8,128):(128,1)")
    check(dice((1, None), tile), "S<3,3,3> o 0 o (8):(64)")
    check(recast(tile, 16, 8), "S<3,4,3> o 0 o (8,128):(128,1)")
    with pytest.raises(LayoutError):
        make_layout(tile, Layout(4))


def test_s7_upcast_refuses_to_forget_a_bit():
    with pytest.raises(LayoutError, match="bits inside one"):
        upcast(parse("S<3,3,3> o 0 o (8,64):(64,1)"), 16)


def test_recast_checks_the_unit_and_the_offset():
    tile = ComposedLayout(Swizzle(3, 3, 3), 1, Layout((8, 64), (64, 1)), unit=16)
    with pytest.raises(LayoutError, match="its unit is 16 bits"):
        recast(tile, 8, 16)
    with pytest.raises(LayoutError, match="offset must be a multiple of 2"):
        recast(tile, 16, 32)
    assert recast(tile, 16, 8).unit == 8


# ------------------------------------------------------------------------------------- size


def test_size_cosize_and_len():
    layout = Layout((3, 7, 2))
    assert (len(layout), size(layout)) == (3, 42)
    assert idx2crd(42, (3, 7, 2)) == (0, 0, 2)  # the last mode is not wrapped
    with pytest.raises(LayoutError):
        cosize(Layout(4, -1))


# --------------------------------------------------------------------------------- swizzles


def test_s3_a_layout_after_a_swizzle_is_pushed_through_only_where_that_is_right():
    a, swizzle = Layout((4, 2), (1, 5)), Swizzle(1, 0, 1)
    result = composition(a, swizzle)
    assert offsets(result) == [a(swizzle(i)) for i in range(8)]  # C++ has 7 for 6
    check(composition(Layout((4, 2), (2, 1)), Swizzle(1, 0, 2)), "S<1,0,-1> o 0 o (4,2):(2,1)")


def test_s3_right_inverse_of_a_swizzled_layout():
    layout = composition(Swizzle(1, 0, 1), Layout((4, 3), (3, 1)))
    inverse = right_inverse(layout)
    assert size(inverse) == 12
    assert [layout(i) for i in offsets(inverse)] == list(range(12))


def test_s4_a_slice_of_a_swizzled_layout_keeps_its_offset():
    tile = parse("S<3,3,3> o 0 o (8,64):(64,1)")
    part = tile(3, None)
    check(part, "S<3,3,3> o 192 o (64):(1)")
    assert [part(j) for j in range(64)] == [tile(3, j) for j in range(64)]
    assert slice_((3, None), tile) == part
    assert slice_and_offset((3, None), tile) == (part, 0)
    row = parse("S<3,4,3> o 0 o (10,2):(2,1)")  # the DSL aborts on this one
    assert [row(None, 1)(i) for i in range(10)] == [row(i, 1) for i in range(10)]


def test_s6_a_swizzle_as_a_layout_permutes_whole_blocks():
    layout = Swizzle(2, 0, 3).layout
    assert sorted(offsets(layout)) == list(range(size(layout)))
    assert [layout(x) for x in range(500)] == [Swizzle(2, 0, 3)(x) for x in range(500)]


def test_s6_inverses_and_complement_of_a_composed_layout_with_an_offset():
    layout = ComposedLayout(Swizzle(2, 0, 3), 32, Layout((4, 8), (8, 1)))
    with pytest.raises(LayoutError, match="index 0 has the offset 32"):
        right_inverse(layout)
    with pytest.raises(LayoutError, match="index 0 has the offset 32"):
        complement(layout)
    inverse = left_inverse(layout)
    assert [inverse(x) for x in offsets(layout)] == list(range(32))
    odd = ComposedLayout(Swizzle(2, 0, 3), 5, Layout((3, 5), (5, 1)))
    assert [left_inverse(odd)(x) for x in offsets(odd)] == list(range(15))


def test_s6_what_the_dsl_has_not_for_composed_layouts():
    tile = parse("S<3,3,3> o 0 o (8,64):(64,1)")
    check(complement(tile, 1024), "2:512")
    check(nullspace(tile), "1:0")
    assert max_common_vector(tile, tile) == 512


def test_one_copy_moves_no_more_between_a_swizzled_and_a_plain_layout_than_the_swizzle_keeps():
    plain = Layout((8, 64), (64, 1))  # its first row is contiguous in both; the others are not
    tile = composition(Swizzle(3, 3, 3), plain)
    assert max_common_vector(tile, plain) == max_common_vector(plain, tile) == 8
    check(max_common_layout(tile, plain), "8:8")
    other = composition(Swizzle(2, 4, 3), plain)
    assert max_common_vector(tile, other) == 8
    for offset, vector in ((0, 8), (64, 8), (512, 8), (4, 4), (6, 2), (9, 1)):
        shifted = ComposedLayout(Swizzle(3, 3, 3), offset, plain)  # C++ says 8 for all of these
        assert max_common_vector(shifted, plain) == vector


def test_a_composed_layout_that_is_a_layout_has_the_vectors_of_that_at_once():
    plain = Layout((4, 2, 16, 6, 4, 10, 2, 16), (1, 4, 1920, 80, 480, 8, 30720, 61440))
    with budget(1000):
        for inner in (Swizzle(0, 3, -3), Layout(2**20)):
            tile = ComposedLayout(inner, 0, plain)
            assert max_common_vector(tile, tile) == size(plain)
            assert max_common_layout(tile, plain) == max_common_layout(plain, plain)


def test_a_vector_is_contiguous_wherever_it_begins_not_only_at_the_first():
    a, b = Layout((3, 2), (1, 10)), Layout((2, 3), (1, 10))  # 0 1 2 10 11 12, 0 1 10 11 20 21
    assert max_common_vector(a, b) == 1  # 2 in C++


def test_common_vectors_of_large_layouts_take_no_time():
    large = Layout((1024, 1024), (1024, 1))
    for layout in (large, Layout((1024, 1024), (1032, 1))):
        swizzled = composition(Swizzle(3, 3, 3), layout)
        begun = process_time()
        assert max_common_vector(swizzled, layout) == 8
        assert max_common_vector(swizzled, swizzled) == (1 << 20 if layout is large else 8)
        assert process_time() - begun < 0.3  # 43 s before
    assert size(max_common_layout(large, large)) == 1 << 20


def test_s8_a_layout_that_carries_is_no_bit_matrix():
    with pytest.raises(LayoutError, match="carry"):
        gf2.matrix(Layout((4, 4), (1, 3)))


def test_s8_sixteen_contiguous_bytes_a_lane_are_free_of_conflicts():
    assert wavefronts(Layout(32, 16), 16, 8).conflict_free


def test_swizzles_of_different_shifts_compose():
    both = composition(Swizzle(2, 0, 3), Swizzle(1, 1, 2))
    assert [both(x) for x in range(256)] == [
        Swizzle(2, 0, 3)(Swizzle(1, 1, 2)(x)) for x in range(256)
    ]
    assert composition(Swizzle(3, 3, 3), Swizzle(3, 3, 3)) == Swizzle(0, 3, 3)
    assert composition(Swizzle(1, 3, 3), Swizzle(1, 4, 3)) == Swizzle(2, 3, 3)


def test_xor_strides_need_powers_of_two_and_one_kind():
    with pytest.raises(LayoutError, match="power of two"):
        Layout(3, F2(1))
    with pytest.raises(LayoutError, match="another kind"):
        Layout((2, 2), (F2(1), 2))


def test_the_inverse_of_an_xor_layout_reaches_every_offset():
    layout = Layout((8, 8), (F2(1), F2(13)))  # PyCuTe's chain stops at 8 of 64
    inverse = right_inverse(layout)
    assert size(inverse) == 64
    assert [layout(i) for i in offsets(inverse)] == list(range(64))
    assert coalesce(layout) == layout


NO_LAYOUTS = [None, -1, 2.5, "x", True, (4, -1), [1, 2], {}, E(0), F2(3), Layout((2, 2), (1, 1))]
OPERATIONS = [getattr(layouts, name) for name in algebra.__all__ if name not in ("Tile", "gf2")]


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.__name__)
def test_bad_input_is_refused_with_a_sentence(operation):
    needed = [p for p in signature(operation).parameters.values() if p.default is p.empty]
    for arguments in cartesian(NO_LAYOUTS, repeat=len(needed)):
        try:
            operation(*arguments)
        except LayoutError as refusal:
            assert " " in str(refusal)  # noqa: PT017


def test_a_layout_after_a_composed_one_that_gives_coordinates_takes_them_as_coordinates():
    rows = ComposedLayout(Layout(4, E(1)), 0, Layout((2, 2), (2, 1)))
    assert offsets(composition(Layout((8, 4), (1, 10)), rows)) == [0, 20, 10, 30]
    with pytest.raises(LayoutError, match="it has no mode"):
        composition(Layout(1, 1), ComposedLayout(Layout(1, E(3)), 0, Layout(2, 1)))


def test_symbols_beside_xor_strides_are_refused_or_answered():
    m = layouts.symbols("m")
    with pytest.raises(LayoutError, match="a power of two known now"):
        composition(Layout((1,), (F2(1),)), Layout(m, E(0)))
    swizzled = ComposedLayout(Swizzle(1, 0, 2), 0, Layout(m))
    with pytest.raises(LayoutError, match="not proved that the swizzle permutes"):
        right_inverse(swizzled)
    assert right_inverse(ComposedLayout(Swizzle(1, 0, 2), 0, Layout(8 * m))).shape == 8 * m


def test_a_layout_after_a_composed_one_of_symbols_takes_every_offset():
    m = layouts.symbols("m")
    a, b = Layout((4, 3), (1, 100)), ComposedLayout(Layout(4), 0, Layout(m))
    result = substitute(composition(a, b), {m: 9})
    assert offsets(result) == [a(i) for i in range(9)]


def test_the_cosize_of_a_composed_layout_of_symbols_bounds_it():
    m = layouts.symbols("m")
    for inner in (Layout((4, 3), (1, 100)), Layout(8, 2), Swizzle(1, 0, 2), Layout((2, 2), (7, 1))):
        composed = ComposedLayout(inner, 3, Layout(4 * m))
        for count in (1, 2, 5):
            bound = substitute(cosize(composed), {m: count})
            assert bound > max(offsets(substitute(composed, {m: count})))


def test_a_composed_layout_whose_inner_function_joins_offsets_has_no_complement():
    joined = ComposedLayout(Layout((4, 5), (F2(1), 0)), 0, Layout((2,), (F2(4),)))
    assert offsets(joined) == [0, 0]
    with pytest.raises(LayoutError, match="not injective"):
        complement(joined)


def test_a_left_inverse_of_xor_strides_that_are_not_independent_is_refused():
    with pytest.raises(LayoutError, match="not injective, even without its modes of stride 0"):
        left_inverse(Layout((2, 2), (F2(1), F2(1))))
    assert offsets(left_inverse(Layout((2, 3), (F2(1), 0)))) == [0, 1]


def test_coordinates_at_an_index_that_is_a_symbol_times_zero():
    n = layouts.symbols("n")
    assert ComposedLayout(Layout((1, 1), (E(0, 1), 0)), 0, Layout(1, n))(1) is not None


def test_an_xor_stride_times_a_symbol_is_refused():
    n = layouts.symbols("n")
    with pytest.raises(LayoutError, match="the bits of an integer known now"):
        ComposedLayout(Layout(1, F2(3)), 0, Layout(1, n))(1)


@pytest.mark.parametrize(
    ("a", "b", "vector"),
    [
        (ComposedLayout(Layout((5, 4, 5), (0, 1, 8)), 0, Layout(6, 7)), Layout(3), 3),
        (ComposedLayout(Swizzle(1, 0, 1), 2, Layout(2, 2)), Layout(2), 2),
    ],
)
def test_vectors_that_the_outer_layout_does_not_have(a, b, vector):
    """An inner layout, or a swizzle with an offset, can make neighbours of other elements."""
    assert max_common_vector(a, b) == vector


def test_the_common_layout_where_a_symbol_may_be_smaller_than_the_vector():
    n, m = symbols("n m")
    one, other = (Layout((8 * n, 2 * m, 4), (0, stride, 1)) for stride in (0, 1))
    assert size(max_common_layout(one, other)) == 1


def test_the_common_layout_of_an_xor_layout_over_a_symbol():
    """Its outer offsets are SymPy's integers, which have no bits to look up."""
    over_a_symbol = ComposedLayout(Layout(1, F2(1)), 0, Layout(1, symbols("n")))
    assert max_common_layout(over_a_symbol, Layout((), ())) == Layout(1, 0)
