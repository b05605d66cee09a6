"""Triton's linear layouts, compared with the bases that Triton's own tests publish."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layouts import (
    ComposedLayout,
    Layout,
    LayoutError,
    LinearLayout,
    Swizzle,
    composition,
    equivalent,
    from_linear_layout,
    idx2crd,
    make_layout,
    mma,
    right_inverse,
    size,
    to_linear_layout,
    wgmma_accumulator,
)

LANE = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]

#: unittest/Dialect/TritonGPU/LinearLayoutConversionsTest.cpp: one tile of MMAv2_32x32; MMAv3_64x16.
MMA_V2 = {"register": [[0, 1], [8, 0]], "lane": LANE, "warp": [], "block": []}
MMA_V3 = {
    "register": [[0, 1], [8, 0], [0, 8]],
    "lane": LANE,
    "warp": [[16, 0], [32, 0]],
    "block": [],
}

#: CTADuplication, ShapeSmallerThanLayout: blocked layouts, some of which hold an element twice.
BLOCKED = [
    {"register": [], "lane": [[1], [2]], "warp": [[4], [8]], "block": [[16], [0]]},
    {"register": [[1], [2]], "lane": [[4], [0]], "warp": [[0], [0]], "block": []},
]

#: #ttg.nvmma_shared<{swizzlingByteWidth = 128, elementBitWidth = 16}>, as Triton logs it.
SHARED = """
 - offset=1 -> (0, 1)
   offset=2 -> (0, 2)
   offset=4 -> (0, 4)
   offset=8 -> (0, 8)
   offset=16 -> (0, 16)
   offset=32 -> (0, 32)
   offset=64 -> (1, 8)
   offset=128 -> (2, 16)
   offset=256 -> (4, 32)
where out dims are: [dim0 (size 8), dim1 (size 64)]"""


def warpgroup(accumulator):
    """(register, lane, warp, block) → element, of a fragment (thread, register)."""
    threads, registers = accumulator
    lane = composition(threads, Layout(32))
    warp = composition(threads, Layout(size(threads) // 32, 32))
    return make_layout(registers, lane, warp, Layout(1))


def test_mma_v2_and_v3_are_the_fragments_of_the_ptx_isa():
    v2 = from_linear_layout(MMA_V2, {"dim0": 16, "dim1": 8})
    assert equivalent(v2, warpgroup(mma("m16n8k16", "bf16").c))
    v3 = from_linear_layout(MMA_V3, {"dim0": 64, "dim1": 16})
    assert equivalent(v3, warpgroup(wgmma_accumulator(16)))
    names = ("register", "lane", "warp", "block")
    for fragment, bases, out in ((v2, MMA_V2, (16, 8)), (v3, MMA_V3, (64, 16))):
        sizes = dict(zip(("dim0", "dim1"), out, strict=True))
        assert to_linear_layout(fragment, names, sizes) == LinearLayout(bases, sizes)


@pytest.mark.parametrize("bases", BLOCKED)
def test_blocked_layouts_read_and_written(bases):
    layout = from_linear_layout(bases)
    (extent,) = [1 << max(b[0].bit_length() for found in bases.values() for b in found)]
    assert to_linear_layout(layout, bases, {"dim0": extent}) == LinearLayout(bases)


def test_triton_s_128_byte_swizzle_is_cute_s():
    layout = from_linear_layout(SHARED)
    assert layout == ComposedLayout(Swizzle(3, 0, -6), 0, Layout(((64, 8),), ((8, 1),)))
    tile = ComposedLayout(Swizzle(3, 3, 3), 0, Layout((8, 64), (64, 1)))
    assert equivalent(right_inverse(tile), layout)
    assert str(to_linear_layout(layout, ["offset"], {"dim0": 8, "dim1": 64})) == SHARED[1:]


def test_the_attribute_and_what_is_printed_are_read_alike():
    attribute = (
        "#linear = #ttg.linear<{register = [[0, 1], [8, 0]], "
        "lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [], block = []}>"
    )
    linear = LinearLayout(MMA_V2)
    assert str(linear).count("size 1 dimension") == 2
    for written in (attribute, str(linear), str(linear).replace(" (size 16)", ""), MMA_V2):
        assert from_linear_layout(written) == from_linear_layout(linear)
    assert eval(repr(linear)) == linear


@st.composite
def linear_layouts(draw):
    sizes = draw(st.lists(st.sampled_from([1, 2, 8, 16]), min_size=1, max_size=3))
    basis = st.tuples(*(st.integers(0, count - 1) for count in sizes))
    names = ["register", "lane", "warp"][: draw(st.integers(1, 3))]
    bases = {name: draw(st.lists(basis, max_size=3)) for name in names}
    return LinearLayout(bases, {f"dim{k}": count for k, count in enumerate(sizes)})


@given(linear_layouts())
def test_a_layout_gives_the_xor_of_the_bases(linear):
    layout = from_linear_layout(linear)
    sizes = tuple(count for _, count in linear.out_dims)
    names = [name for name, _ in linear.bases]
    flat = [basis for _, found in linear.bases for basis in found]
    for index in range(size(layout.shape)):
        expected = [0] * len(sizes)
        for j, basis in enumerate(flat):
            if index >> j & 1:
                expected = [a ^ b for a, b in zip(expected, basis, strict=True)]
        assert idx2crd(layout(index), sizes) == tuple(expected)
    assert to_linear_layout(layout, names, dict(linear.out_dims)) == linear
    assert from_linear_layout(str(linear)) == layout


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: from_linear_layout(" - lane=2 -> (0, 1)"), "with lane=1, lane=2, lane=4"),
        (lambda: from_linear_layout("lane: 4"), "line 'lane: 4' cannot be read"),
        (lambda: from_linear_layout("#ttg.linear<{lane = [[0, 1]}>"), "cannot be read"),
        (lambda: from_linear_layout({"lane": [[0, 1], [1]]}), r"basis \(1,\) must have 2 entries"),
        (lambda: from_linear_layout({"lane": [[-1]]}), "entry -1 of"),
        (lambda: from_linear_layout({"lane": 4}), "must have a list of bases"),
        (lambda: from_linear_layout(4), "must have a list of bases"),
        (lambda: from_linear_layout("\n"), "the text is empty"),
        (lambda: from_linear_layout({"lane": [[4]]}, {"m": 4}), "size 4 of m .* at least 8"),
        (lambda: from_linear_layout({"lane": [[4]]}, {"m": 12}), "size 12 of m"),
        (lambda: from_linear_layout({"lane": [[4]]}, 8), "out_dims 8 must be names"),
        (lambda: from_linear_layout({"lane": [[4]]}, [8]), "must be names with their sizes"),
        (lambda: to_linear_layout(Layout(8), ["a", "b"], {"m": 8}), "it has 1 modes"),
        (lambda: to_linear_layout(Layout(8), 4, {"m": 8}), "in_dims 4 must be the names"),
        (lambda: to_linear_layout(Layout(8, 2), ["a"], {"m": 8}), "takes the value 8"),
        (lambda: to_linear_layout(Layout(6), ["a"], {"m": 8}), "the extent 6"),
    ],
)
def test_what_is_no_linear_layout_is_refused(call, words):
    with pytest.raises(LayoutError, match=words):
        call()


@pytest.mark.parametrize(
    "make",
    [
        lambda: to_linear_layout(Layout((4, 8)), ["a", "a"], {"x": 32}),
        lambda: LinearLayout([("a", [[1]]), ("a", [[2]])]),
        lambda: LinearLayout({"a": [[1, 1]]}, [("x", 2), ("x", 2)]),
    ],
)
def test_a_name_that_stands_twice_is_refused(make):
    with pytest.raises(LayoutError, match="name of its own"):
        make()
