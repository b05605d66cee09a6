"""Functions of offsets one after the other: composed layouts of composed layouts, of XOR strides,
of offsets that reach beyond a size.  Each was wrong once, or is like one that was."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layouts import (
    Bijective,
    ComposedLayout,
    E,
    Injective,
    Layout,
    LayoutError,
    Swizzle,
    composition,
    idx2crd,
    left_inverse,
    max_common_layout,
    max_common_vector,
    prove,
    size,
    slice_and_offset,
)
from layouts.values.stride import F2

MANY = settings(max_examples=3 * settings().max_examples, deadline=None)
POWERS = st.lists(st.sampled_from([1, 2, 2, 4, 8]), min_size=1, max_size=3).map(tuple)
EXTENTS = st.lists(st.sampled_from([1, 2, 3, 4, 5, 8]), min_size=1, max_size=3).map(tuple)
SWIZZLES = st.builds(
    lambda bits, base, more, sign: Swizzle(bits, base, sign * (bits + more)),
    *(st.integers(0, 3), st.integers(0, 3), st.integers(0, 2), st.sampled_from([1, -1])),
)


def strided(shapes, strides):
    return shapes.flatmap(
        lambda shape: st.tuples(*[strides] * len(shape)).map(lambda stride: Layout(shape, stride))
    )


LINEAR = strided(POWERS, st.one_of(st.just(0), st.integers(1, 40).map(F2)))
PLAIN = strided(EXTENTS, st.sampled_from([0, 1, 2, 3, 4, 8, 16, 10**9]))
OFFSETS = st.sampled_from([0, 0, 1, 3, 8, 64])
FUNCTIONS = st.recursive(
    st.one_of(SWIZZLES, LINEAR, PLAIN),
    lambda inner: st.builds(ComposedLayout, inner, OFFSETS, st.one_of(LINEAR, PLAIN)),
    max_leaves=3,
)
COMPOSED = st.builds(ComposedLayout, FUNCTIONS, OFFSETS, st.one_of(LINEAR, PLAIN))


@given(st.one_of(COMPOSED, LINEAR, PLAIN), st.one_of(COMPOSED, LINEAR, PLAIN))
@MANY
def test_a_composition_of_any_two_is_one_after_the_other_at_every_index(a, b):
    try:
        found = composition(a, b)
    except LayoutError:
        return
    assert [found(i) for i in range(size(b))] == [a(b(i)) for i in range(size(b))]


def test_a_swizzle_after_xor_strides_holds_for_offsets_beyond_their_size():
    a, b = ComposedLayout(Swizzle(1, 3, 1), 0, Layout(2, F2(16))), Layout(6, 3)
    assert [composition(a, b)(i) for i in range(6)] == [a(3 * i) for i in range(6)]


@given(COMPOSED, st.data())
@MANY
def test_a_slice_of_a_composed_layout_keeps_what_is_fixed(layout, data):
    index = data.draw(st.integers(0, size(layout) - 1))
    coord = idx2crd(index, layout.shape)
    mask = tuple(None if data.draw(st.booleans()) else at for at in coord)
    part, offset = slice_and_offset(mask, layout)
    assert offset == 0
    coords = [idx2crd(i, layout.shape) for i in range(size(layout))]
    kept = [c for c in coords if all(m is None or m == at for m, at in zip(mask, c, strict=True))]
    assert [part(i) for i in range(size(part))] == [layout(c) for c in kept]


def test_what_a_slice_fixes_is_added_to_xor_strides_without_carry():
    layout = ComposedLayout(Layout(4, 4), 3, Layout((2, 2, 4), (F2(23), F2(3), F2(6))))
    part, _ = slice_and_offset((1, 1, None), layout)
    assert [part(k) for k in range(4)] == [layout(1, 1, k) for k in range(4)]
    part, offset = slice_and_offset((1, 1, None), layout.outer)
    assert [part(k) ^ offset for k in range(4)] == [layout.outer(1, 1, k) for k in range(4)]


@given(COMPOSED)
@MANY
def test_proofs_about_nested_composed_layouts_agree_with_looking(layout):
    values = [layout(i) for i in range(size(layout))]
    assert bool(prove(Injective(layout))) == (len(set(values)) == len(values))
    assert bool(prove(Bijective(layout))) == (sorted(values) == list(range(len(values))))


@given(st.one_of(COMPOSED, LINEAR))
@MANY
def test_an_array_of_indices_gives_what_each_index_gives(layout):
    indices = np.arange(size(layout))
    values = np.broadcast_to(layout(indices), indices.shape)
    assert values.tolist() == [layout(int(i)) for i in indices]


def test_an_array_of_coordinates_goes_through_coordinate_strides_and_0():
    rows, columns = np.arange(4)[:, None], np.arange(8)[None, :]
    i, j = Layout((4, 8), (E(0), 0))(rows, columns), Layout((4, 8), (F2(5), 0))(rows, columns)
    assert np.broadcast_to(i[0], (4, 8))[3, 7] == 3
    assert j.shape == (4, 8)
    assert j[3, 7] == 15


def test_nothing_is_common_where_index_0_has_an_offset():
    shifted = ComposedLayout(Swizzle(2, 0, 2), 64, Layout((4, 4)))
    with pytest.raises(LayoutError, match="without its offset"):
        max_common_layout(shifted, Layout(16))
    assert max_common_vector(shifted, Layout(16)) == 1


@pytest.mark.parametrize(
    "layout",
    [Layout((4, 3, 2), (16, 12, 10**12)), Layout((6, 4, 4), (16, 10**12, 6))],
    ids=str,
)
def test_a_left_inverse_that_is_not_found_soon_is_given_up(layout):
    with pytest.raises(LayoutError, match="was given up"):
        left_inverse(layout)
