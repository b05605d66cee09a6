"""to_bits and from_bits: layouts as bit matrices, out and in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layouts import (
    F2,
    ComposedLayout,
    E,
    Layout,
    LayoutError,
    Swizzle,
    composition,
    from_bits,
    right_inverse,
    size,
    symbols,
    to_bits,
    wgmma_accumulator,
)
from layouts.algebra import gf2


def values(layout):
    return [layout(index) for index in range(size(layout.shape))]


def images(columns):
    return [gf2.image(index, columns) for index in range(1 << len(columns))]


def no_bit_twice(stride):
    used = [step for mode in stride for step in mode if step]
    return len(set(used)) == len(used)


@st.composite
def linear_layouts(draw):
    """Layouts without carries, of nested shapes, XOR strides, and swizzled ones."""
    counts = draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
    strides = st.sampled_from([0, *(1 << bit for bit in range(10))])
    stride = draw(
        st.tuples(*(st.tuples(*[strides] * count) for count in counts)).filter(no_bit_twice)
    )
    layout = Layout(tuple((2,) * count for count in counts), stride)
    wrap = draw(st.sampled_from(["plain", "swizzle", "xor", "inverse"]))
    bits, base = draw(st.integers(1, 3)), draw(st.integers(0, 3))
    swizzle = Swizzle(bits, base, draw(st.integers(bits, 5)) * draw(st.sampled_from([1, -1])))
    if wrap == "plain":
        return layout
    swizzled = ComposedLayout(swizzle, 0, layout)
    if wrap == "xor":
        return from_bits([column ^ column >> 1 for column in to_bits(swizzled)], layout.shape)
    return right_inverse(swizzled) if wrap == "inverse" else swizzled


@given(linear_layouts())
def test_from_bits_of_to_bits_is_the_same_function(layout):
    columns = to_bits(layout)
    assert values(layout) == images(columns)
    for shape in (None, layout.shape):
        again = from_bits(columns, shape)
        assert to_bits(again) == columns
        assert values(again) == values(layout)


@given(st.lists(st.integers(0, 255), max_size=6), st.booleans())
def test_every_matrix_is_a_layout(columns, nested):
    shape = ((2,) * len(columns),) if nested and columns else None
    layout = from_bits(columns, shape)
    assert to_bits(layout) == tuple(columns)
    assert values(layout) == images(columns)
    strides = [c for c in columns if c]
    if sum(strides) == images(columns)[-1] == max(images(columns)):  # no two share a bit
        assert isinstance(layout, Layout)
        assert all(type(stride) is int for _, stride in layout.modes)


@given(
    st.integers(0, 3),
    st.integers(0, 4),
    st.integers(1, 5),
    st.booleans(),
    st.permutations(range(8)),
)
def test_a_swizzle_after_integer_strides_is_recognised(bits, base, distance, negative, order):
    if distance < bits:
        return
    swizzle = Swizzle(bits, base, -distance if negative else distance)
    layout = ComposedLayout(swizzle, 0, Layout((2,) * 8, tuple(1 << bit for bit in order)))
    found = from_bits(to_bits(layout))
    assert values(found) == values(layout)
    plain = found.outer if isinstance(found, ComposedLayout) else found
    assert not any(isinstance(stride, F2) for _, stride in plain.modes)


@pytest.mark.parametrize("swizzle", [Swizzle(1, 3, 3), Swizzle(2, 3, 3), Swizzle(3, 3, 3)])
def test_the_hardware_s_swizzles_come_back_as_they_were(swizzle):
    tile = ComposedLayout(swizzle, 0, Layout((64, 64), (64, 1)))
    assert from_bits(to_bits(tile), (64, 64)) == tile


def test_a_swizzle_of_two_swizzles_that_is_none_has_xor_strides():
    chain = composition(Swizzle(1, 0, 2), Swizzle(1, 1, 3))
    assert from_bits(to_bits(Layout(chain.shape, chain.stride))) == chain


def test_fragments_are_bit_matrices():
    for n in (16, 64, 256):
        fragment = wgmma_accumulator(n)
        assert from_bits(to_bits(fragment), fragment.shape) == fragment


def test_a_composed_layout_that_is_linear_by_chance_is_decided():
    doubled = ComposedLayout(Layout((4, 4), (4, 1)), 0, Layout((4, 4), (4, 1)))
    assert to_bits(doubled) == (1, 2, 4, 8)
    with pytest.raises(LayoutError, match=r"at index 3 is 0, and the XOR .* is 3"):
        to_bits(ComposedLayout(Layout((3, 8), (1, 0)), 0, Layout(4)))


M = symbols("m")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: to_bits(Layout((3, 4))), "the extent 3 must be a power of two"),
        (lambda: to_bits(Layout((3, 2), (0, F2(1)))), "the extent 3 must be a power of two"),
        (lambda: to_bits(Layout((M, 4))), "the extent m must be a power of two, not a symbol,"),
        (lambda: to_bits(Layout((2, 4), (M, 1))), "its value m must be an integer"),
        (lambda: to_bits(Layout((2, 2), (E(0), E(1)))), r"index 0 is \(0, 0\), a coordinate"),
        (lambda: to_bits(Layout((4, 4), (1, 2))), "at index 6 is 4, .* at 2 and 4 is 0"),
        (
            lambda: to_bits(Layout((1 << 20, 2), (1, 1 << 19))),
            "at index 1572864 is 1048576, .* at 524288 and 1048576 is 0",
        ),
        (lambda: to_bits(ComposedLayout(Swizzle(1, 0, 2), 8, Layout(8))), "index 0 is 8, not 0"),
        (lambda: to_bits(Swizzle(1, 0, 2)), "takes a Layout or a ComposedLayout"),
        (lambda: from_bits([1, -2]), "column -2 must be"),
        (lambda: from_bits([1, True]), "column True must be"),
        (lambda: from_bits(["1"]), "column '1' must be"),
        (lambda: from_bits(7), "columns 7 must be a list"),
        (lambda: from_bits([1, 2], (4, 2)), "has 8 indices; 2 columns need 4"),
        (lambda: from_bits([1, 2], (4, 0)), "shape"),
        (lambda: from_bits([1, 2, 4], 6), "the extent 6 must be a power of two"),
    ],
)
def test_what_is_no_bit_matrix_is_refused(call, words):
    with pytest.raises(LayoutError, match=words):
        call()
