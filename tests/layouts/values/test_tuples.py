"""Hierarchical tuples: nesting, sizes, and coordinates."""

import numpy as np
import pytest
import sympy

from layouts import (
    Layout,
    LayoutError,
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
from layouts.values.tuples import leaves, map_leaves, text

NESTED = ((2, (3, 4)), 5)


@pytest.mark.parametrize(
    ("t", "ranks", "depths", "sizes"),
    [(7, 1, 0, 7), ((), 0, 1, 1), ((7,), 1, 1, 7), ((2, 3), 2, 1, 6), (NESTED, 2, 3, 120)],
)
def test_rank_depth_and_size(t, ranks, depths, sizes):
    assert (rank(t), depth(t), size(t), product(t)) == (ranks, depths, sizes, sizes)


def test_a_mode_or_a_path_of_modes_can_be_asked():
    assert (size(NESTED, 0), size(NESTED, (0, 1)), size(NESTED, [0, 1, 0])) == (24, 12, 3)
    assert (rank(NESTED, 0), depth(NESTED, (0, 1)), size(Layout(NESTED), 1)) == (2, 1, 5)
    with pytest.raises(LayoutError, match="its modes are 0 to 1"):
        size(NESTED, 2)


def test_unflatten_hangs_leaves_on_a_profile():
    assert unflatten(leaves(NESTED), NESTED) == NESTED
    with pytest.raises(LayoutError, match="3 entries for the 4 leaves"):
        unflatten((1, 2, 3), NESTED)


def test_map_leaves_wants_congruent_tuples():
    assert map_leaves(lambda a, b: a - b, NESTED, NESTED) == ((0, (0, 0)), 0)
    with pytest.raises(LayoutError, match="same nesting"):
        map_leaves(lambda a, b: a, NESTED, (1, 2))


@pytest.mark.parametrize(
    ("a", "b", "same", "refines", "fits"),
    [
        (24, 24, True, True, True),
        (24, (4, 6), False, True, True),
        ((4, 6), 24, False, False, False),
        ((4, 6), (4, (2, 3)), False, True, True),
        ((4, 6), (4, (2, 2)), False, True, False),
        ((4, 6), (6, 4), True, True, False),
        ((4, 6), (4, 6, 1), False, False, False),
        ((), (), True, True, True),
    ],
)
def test_relations_of_shapes(a, b, same, refines, fits):
    assert (congruent(a, b), weakly_congruent(a, b), compatible(a, b)) == (same, refines, fits)
    assert congruent(Layout(a), Layout(b)) is same


def test_coordinates_and_indices_are_inverse():
    for index in range(size(NESTED)):
        assert crd2idx(idx2crd(index, NESTED), NESTED) == index


def test_the_last_mode_goes_on_beyond_the_shape():
    assert idx2crd(42, (3, 7, 2)) == (0, 0, 2)  # as C++; pycute wraps to (0, 0, 0)
    assert idx2crd(21, (2, (2, 3))) == (1, (0, 5))
    assert crd2idx((0, 0, 2), (3, 7, 2)) == 42
    for shape in ((1,), 1, (4, 1), (2, (3, 1))):  # a last extent of 1 counts, too, beyond its end
        assert all(crd2idx(idx2crd(index, shape), shape) == index for index in range(30))


@pytest.mark.parametrize(
    ("coord", "source", "target"),
    [
        ((4, 0), (4, 8), (8, 4)),
        ((0, (2, 0)), (4, (2, 4)), 32),
        (32, 32, (4, 9)),
        (31, 32, (4, 4)),
        (np.array([3, 40]), 32, (4, 8)),
    ],
    ids=str,
)
def test_crd2crd_refuses_a_coordinate_that_either_shape_lacks(coord, source, target):
    with pytest.raises(LayoutError, match=r"crd2crd: coordinate .* is outside"):
        crd2crd(coord, source, target)


def test_crd2crd_keeps_the_index():
    for index in range(24):
        coord = idx2crd(index, (4, 6))
        assert crd2idx(crd2crd(coord, (4, 6), (2, (3, 4))), (2, (3, 4))) == index


@pytest.mark.parametrize("coord", [-1, (0, -2), (0, (0, np.int64(-1)))])
def test_negative_coordinates_are_refused(coord):
    with pytest.raises(LayoutError, match="from 0 up"):
        Layout((4, (2, 8)))(coord)


@pytest.mark.parametrize(
    "coord", [1.5, "1", True, {1}, 2j, np.float32(1), np.array([0.5]), np.array([True])]
)
def test_what_is_no_integer_is_refused(coord):
    with pytest.raises(LayoutError, match="integer"):
        Layout((4, 8))(coord)


@pytest.mark.parametrize("coord", [(1, 2, 3), (1, (2, 3)), ((1, 2), 3)])
def test_coordinates_must_fit_the_shape(coord):
    with pytest.raises(LayoutError, match="coordinate"):
        Layout((4, 8))(coord)


@pytest.mark.parametrize(
    ("shape", "stride", "words"),
    [
        ((4, 8), (1,), "same nesting"),
        ((4, 8), 1, "same nesting"),
        ([4, 8], None, "list"),
        ((4, 0), None, "at least 1"),
        ((4, 8), (1, -1), "at least 0"),
    ],
)
def test_crd2idx_checks_shape_and_stride(shape, stride, words):
    with pytest.raises(LayoutError, match=words):
        crd2idx(0, shape, stride)


@pytest.mark.parametrize("shape", [[2, 3], (2, 0), 4.0])
def test_idx2crd_checks_its_shape(shape):
    with pytest.raises(LayoutError, match="shape"):
        idx2crd(3, shape)


def test_idx2crd_takes_a_coordinate_apart_further():
    assert idx2crd((3, 5), ((2, 2), 8)) == ((1, 1), 5)
    with pytest.raises(LayoutError, match="does not fit"):
        idx2crd((3, 5), 24)


def test_symbols_go_through():
    m, i = sympy.symbols("m i", integer=True, positive=True)
    assert crd2idx((i, 3), (m, 8)) == i + 3 * m
    assert product((m, (2, 3))) == 6 * m


def test_printing_has_parentheses_exactly_where_there_are_tuples():
    assert [text(t) for t in (4, (4,), (), NESTED)] == ["4", "(4)", "()", "((2,(3,4)),5)"]
