"""Coordinate and XOR strides: values, layouts, and the operations on them."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from layouts import (
    F2,
    ArithTuple,
    ComposedLayout,
    E,
    Layout,
    LayoutError,
    Swizzle,
    coalesce,
    composition,
    cosize,
    flat_divide,
    left_inverse,
    local_tile,
    logical_divide,
    make_identity_layout,
    make_layout,
    nullspace,
    right_inverse,
    size,
    slice_and_offset,
    symbols,
    zipped_divide,
)
from layouts.values.offsets import offsets_at


def offsets(layout):
    return [layout(i) for i in range(size(layout))]


# -------------------------------------------------------------------------------- coordinates


def test_coordinate_strides_are_values():
    assert E(0) == ArithTuple([((0,), 1)]) != E(1)
    assert E(0) + 2 * E(1) == 2 * E(1) + E(0)
    assert eval(repr(3 * E(1, 0) + E(0))) == 3 * E(1, 0) + E(0)
    assert (str(2 * E(1)), str(E(1, 0)), str(0 * E(1))) == ("2@1", "1@0@1", "0")
    assert len({E(0), 1 * E(0), E(0) + 0}) == 1
    for wrong in [(), (-1,), ("0",), (True,)]:
        with pytest.raises(LayoutError, match="mode"):
            E(*wrong)


def test_an_identity_layout_gives_coordinates():
    identity = make_identity_layout((8, (2, 4)))
    assert str(identity) == "(8,(2,4)):(1@0,(1@0@1,1@1@1))"
    assert (identity(3, 5), identity(3), identity(0)) == ((3, (1, 2)), (3, (0, 0)), (0, (0, 0)))
    assert str(make_identity_layout((2, 3))) == "(2,3):(1@0,1@1)"
    assert make_identity_layout(8)(3) == 3
    assert cosize(make_identity_layout((8, 16))) == (8, 16)


def test_arrays_of_coordinates():
    rows, columns = make_identity_layout((8, 16))(np.arange(128))
    assert (columns * 8 + rows).tolist() == list(range(128))
    rows, columns = make_identity_layout((8, 16))(torch.arange(8)[:, None], torch.arange(16))
    assert (rows.shape, columns.shape) == ((8, 1), (16,))


def test_the_algebra_of_tma_coordinates_is_the_same():
    identity = make_identity_layout((128, 64))
    tiles = zipped_divide(identity, (32, 16))
    assert str(tiles) == "((32,16),(4,4)):((1@0,1@1),(32@0,16@1))"
    assert tiles((3, 5), (2, 1)) == (67, 21)
    tile, start = local_tile(identity, (32, 16), (2, None))
    assert (str(tile), start) == ("(32,16,4):(1@0,1@1,16@1)", (64, 0))
    assert str(coalesce(Layout((2, 4), (E(0), 2 * E(0))))) == "8:1@0"
    assert str(composition(identity, Layout((4, 4), (2, 256)))) == "(4,4):(2@0,2@1)"
    assert slice_and_offset((3, None), identity) == (Layout((64,), (E(1),)), (3, 0))


def test_composition_goes_through_coordinates():
    matrix = Layout((8, 16), (16, 1))
    transposed = composition(matrix, Layout((16, 8), (E(1), E(0))))
    assert transposed == Layout((16, 8), (1, 16))
    diagonal = composition(matrix, Layout(8, E(0) + E(1)))
    assert diagonal == Layout(8, 17)
    beyond = composition(matrix, Layout((16, 16), (E(0), E(1))))  # mode 0 goes on, it does not wrap
    assert beyond == Layout((16, 16), (16, 1))
    with pytest.raises(LayoutError, match="no mode"):
        composition(matrix, Layout(4, E(2)))


def test_what_makes_no_sense_of_coordinates_is_refused():
    identity = make_identity_layout((8, 16))
    for operation in (right_inverse, left_inverse):
        with pytest.raises(LayoutError, match="integers"):
            operation(identity)
    with pytest.raises(LayoutError, match="another kind"):
        make_layout(Layout(8), Layout(4, E(0)))
    with pytest.raises(LayoutError, match="inside it"):
        Layout((4, 4), (E(0), E(0, 1)))
    with pytest.raises(LayoutError, match="gives integers"):
        ComposedLayout(Swizzle(1, 0, 1), 0, identity)


# ---------------------------------------------------------------------------------------- XOR


@given(st.integers(0, 1 << 12), st.integers(0, 1 << 12), st.integers(0, 1 << 12))
def test_xor_strides_are_a_ring(a, b, k):
    assert F2(a) + F2(b) == F2(a) ^ F2(b) == F2(a ^ b)
    assert F2(a) ^ 0 == 0 ^ F2(a) == F2(a)
    assert k * (F2(a) + F2(b)) == k * F2(a) + k * F2(b)
    assert int(F2(a) * b) == int(F2(b) * a)
    assert eval(repr(F2(a))) == F2(a)


def test_arrays_of_xor_offsets():
    layout = Swizzle(3, 0, 3).layout
    expected = [Swizzle(3, 0, 3)(x) for x in range(200)]
    assert layout(np.arange(200)).tolist() == layout(torch.arange(200)).tolist() == expected


def test_a_swizzled_tile_as_an_xor_layout():
    tile = composition(Swizzle(3, 3, 3), Layout((8, 64), (64, 1)))
    linear = composition(Swizzle(3, 3, 3).layout, tile.outer)
    assert str(linear) == "(8,64):(F72,F1)"
    assert offsets(linear) == offsets(tile)
    for divided in (logical_divide(linear, (4, 16)), flat_divide(linear, (4, 16))):
        assert sorted(offsets(divided)) == list(range(512))
    assert cosize(linear) == 512
    assert nullspace(linear) == Layout(1, 0)


def test_an_xor_layout_after_what_is_no_power_of_two_stays_composed():
    linear = Swizzle(1, 0, 2).layout
    result = composition(linear, Layout(5))
    assert isinstance(result, ComposedLayout)
    assert offsets(result) == [0, 1, 2, 3, 5]
    assert cosize(result) == 8
    by_mode = composition(Layout((4, 8), (F2(8), F2(1))), (3, 5))
    assert offsets(by_mode) == [8 * i ^ j for j in range(5) for i in range(3)]


def test_the_left_inverse_undoes_the_xor():
    layout = ComposedLayout(Swizzle(2, 0, 3), 64, Layout((4, 8), (8, 1)))
    inverse = left_inverse(layout)
    assert [inverse(x) for x in offsets(layout)] == list(range(32))
    inverse = left_inverse(composition(Swizzle(2, 0, 3), Layout((4, 8), (8, 1))))
    assert isinstance(inverse, Layout)


@pytest.mark.parametrize("value", [-1, 1.0, "1", True, (1,)])
def test_what_is_no_xor_stride_is_refused(value):
    with pytest.raises(LayoutError, match="XOR stride"):
        F2(value)


def test_a_symbol_times_an_xor_stride_is_refused():
    """sympy would take int(stride): 5 * F5 is 17 without carry, and 25 as a product of integers."""
    m = symbols("m")
    for call in (
        lambda: m * F2(5),
        lambda: F2(5) * m,
        lambda: Layout((8, 2), (F2(5), F2(64)))((m, 0)),
        lambda: Layout(8, F2(5))(m),
    ):
        with pytest.raises(LayoutError, match="known now"):
            call()
    assert m * E(0) == E(0) * m


def test_many_xors_at_once_are_those_one_by_one():
    indices = [0, 5, 2**20 + 3, 77, 1]
    for modes in (
        [(2, F2(5)), (1024, F2(3))],
        [(3, 0), (4, F2(7)), (5, 0), (1, F2(9)), (512, F2(2))],
        [(4, F2(1)), (3, 0)],
    ):
        layout = Layout(*zip(*modes, strict=True))
        assert offsets_at(layout, indices) == [layout(i) for i in indices]
    assert offsets_at(Layout(4, F2(1)), []) == []
