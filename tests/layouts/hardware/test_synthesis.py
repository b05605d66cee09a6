"""Synthesis of swizzles and paddings, and proofs that there is none, compared with brute force."""

from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from layouts import (
    Access,
    ComposedLayout,
    Injective,
    Layout,
    LayoutError,
    NoSwizzle,
    ProductLaw,
    Swizzle,
    logical_product,
    padding_for,
    prove,
    size,
    swizzle_for,
    tile_to_shape,
    wavefronts,
    wgmma_accumulator,
)
from layouts.hardware.no_swizzle import EachCollides
from layouts.proof.certificates import Certificate

X4 = Access("ldmatrix.x4", Layout((16, 2), (1, 64 * 8)))


@pytest.mark.parametrize(
    ("row", "swizzle"),
    [
        (16, Swizzle(0, 4, 3)),
        (32, Swizzle(1, 4, 3)),
        (64, Swizzle(2, 4, 3)),
        (128, Swizzle(3, 4, 3)),
        (256, Swizzle(3, 4, 4)),
        (512, Swizzle(3, 4, 5)),
    ],
)
@pytest.mark.parametrize("unit", [8, 16, 32])
def test_swizzle_for_finds_the_hardware_s_swizzles(row, swizzle, unit):
    """SW32, SW64, SW128; beyond 128 bytes the same three bits, read from higher bits."""
    tile = Layout((64, row * 8 // unit), (row * 8 // unit, 1))
    choice = swizzle_for(tile, [Access("ldmatrix.x1", Layout(8))], unit=unit)
    assert choice.swizzle.recast(unit, 8) == swizzle
    assert choice.layout == ComposedLayout(choice.swizzle, 0, tile, unit)
    assert all(proof and proof.verify() for proof in choice.proofs)


@pytest.mark.parametrize("k", range(6))
def test_the_shift_of_a_row_stride_is_at_least_3(k):
    """S<min(log2 s, 3), 4, max(3, log2 s)> frees eight rows of s 16-byte vectors, s = 1 to 32."""
    rows = Layout(8, 16 << k)
    right = Swizzle(min(k, 3), 4, max(3, k))
    assert wavefronts(ComposedLayout(right, 0, rows), unit=8).conflict_free
    assert swizzle_for(rows, ["ldmatrix.x1"], unit=8).swizzle == right
    bits = min(k, 3)
    without_the_minimum = Swizzle(bits, 4, max(k, bits))  # the seed's closing formula: log2 s
    found = wavefronts(ComposedLayout(without_the_minimum, 0, rows), unit=8)
    assert found.degree == (2 if k in (1, 2) else 1)
    assert found.collision == ((0, 4) if k in (1, 2) else None)


@pytest.mark.parametrize("stride", [s for s in range(1, 33) if s & 1])
def test_odd_row_strides_need_no_swizzle(stride):
    assert swizzle_for(Layout(8, 16 * stride), ["ldmatrix.x1"], unit=8).swizzle.bits == 0


@pytest.mark.parametrize("stride", range(1, 33))
def test_the_swizzle_for_a_stride_is_the_smallest_without_conflicts(stride):
    rows = Layout(8, 16 * stride)
    choice = swizzle_for(rows, ["ldmatrix.x1"], unit=8)
    tried = every_swizzle(bits=3, bases=range(4, 8), shift=8)
    free = [s.bits for s in tried if wavefronts(ComposedLayout(s, 0, rows, unit=8)).conflict_free]
    assert bool(choice) == bool(free)
    if choice:
        assert choice.swizzle.bits == min(free)


def every_swizzle(bits, bases, shift):
    for b, base in product(range(bits + 1), bases):
        for s in range(max(b, 1), shift + 1):
            yield Swizzle(b, base, s)
            yield Swizzle(b, base, -s)


def test_the_fragment_determines_the_swizzle_of_the_epilogue():
    choice = swizzle_for(
        Layout((64, 64), (64, 1)), [Access("stmatrix.x4", values=wgmma_accumulator(64))], unit=16
    )
    assert choice.swizzle == Swizzle(3, 3, 3)
    assert choice.reports[0].wavefronts.count == 64


def test_the_swizzle_keeps_the_widest_access_aligned():
    tile = Layout((32, 32), (32, 1))
    column, row = Layout(32), Layout((8, 4), (32 * 4, 1))
    narrow = swizzle_for(tile, [Access("ld.shared.b32", column)], unit=32)
    assert narrow.swizzle == Swizzle(5, 0, 5)
    both = swizzle_for(
        tile, [Access("ld.shared.b32", column), Access("ld.shared.v4.b32", row)], unit=32
    )
    assert not both
    assert both.proofs[0].verify()


WIDE_AND_NARROW = [Access(4, Layout(32)), Access(16, Layout((4, 2), (1, 128)))]


def test_no_swizzle_names_the_bytes_that_a_swizzle_moves_as_a_whole():
    """Swizzle(3, 0, 5) frees both at these addresses, and splits 16 bytes in the rows from 4 on."""
    tile = Layout((32, 8), (8, 1))
    choice = swizzle_for(tile, WIDE_AND_NARROW, unit=32)
    assert not choice
    assert "that moves 16 bytes as a whole" in str(choice)
    assert choice.proofs[0].verify()
    narrow = swizzle_for(tile, WIDE_AND_NARROW, unit=32, vector_bytes=4)
    assert narrow.swizzle == Swizzle(3, 0, 5)
    assert all(report.conflict_free for report in narrow.reports)


def test_a_lane_s_bytes_stay_together_whatever_the_swizzle_moves():
    lower = [Access(4, Layout(32)), Access(16, Layout((4, 2), (8, 128)))]
    choice = swizzle_for(Layout((32, 8), (8, 1)), lower, unit=32, vector_bytes=4)
    (certificate,) = choice.proofs[0].certificates
    assert not choice
    assert (Swizzle(3, 0, 5), 1, (1,)) in certificate.witness.obstacles
    assert certificate.verify()


def test_no_swizzle_counts_the_bits_of_accesses_beyond_the_tile():
    beyond = swizzle_for(Layout((8, 8), (8, 1)), [Access(4, Layout((8, 4), (1, 32)))], unit=32)
    assert beyond.swizzle.shift > 2
    assert beyond.reports[0].conflict_free


def every_free_swizzle(tile, accesses, unit, vector_bytes):
    """Every swizzle that moves `vector_bytes` as a whole and frees the accesses, by definition."""
    base = max((vector_bytes * 8 // unit).bit_length() - 1, 0)
    offsets = [
        [where(lane) for lane in range(size(where))]
        for where in (access.addresses(tile, unit) for access in accesses)
    ]
    for swizzle in every_swizzle(bits=5, bases=range(base, 8), shift=11):
        if all(
            keeps_and_frees(swizzle, at, access, unit)
            for at, access in zip(offsets, accesses, strict=True)
        ):
            yield swizzle


def keeps_and_frees(swizzle, offsets, access, unit):
    """Whether each lane's bytes stay together, and no two lanes of a phase share a bank."""
    width = access.instruction.width
    units, word, lanes = max(width * 8 // unit, 1), max(width, 4), 128 // max(width, 4)
    moved = [swizzle(offset) for offset in offsets]
    for old, new in zip(offsets, moved, strict=True):
        if new * unit // 8 % width or any(swizzle(old + k) != new + k for k in range(1, units)):
            return False
    words = [offset * unit // 8 // word for offset in moved]
    phases = [set(words[lane : lane + lanes]) for lane in range(0, len(words), lanes)]
    return all(len(phase) == len({word % lanes for word in phase}) for phase in phases)


@st.composite
def accessed_tiles(draw):
    """A tile, one or two accesses of mixed widths to it, and the bits of its unit."""
    rows, columns = draw(st.sampled_from([8, 16, 32])), draw(st.sampled_from([4, 8, 24, 40, 64]))
    tile = Layout((rows, columns), draw(st.sampled_from([(columns, 1), (1, rows)])))
    unit = draw(st.sampled_from([8, 16, 32]))
    lanes = [Layout(32), Layout(8), Layout((4, 2), (1, rows * 4)), Layout((8, 4), (1, rows * 4))]
    lanes += [Layout((2, 16), (rows, 1)), Layout((4, 8), (rows, 1)), Layout((4, 2), (2, 8 * rows))]
    access = st.builds(Access, st.sampled_from([1, 2, 4, 8, 16]), st.sampled_from(lanes))
    return tile, draw(st.lists(access, min_size=1, max_size=2)), unit


@given(accessed_tiles(), st.sampled_from([None, 1, 4, 8]))
def test_a_swizzle_is_found_if_and_only_if_one_of_all_swizzles_frees_the_accesses(
    case, vector_bytes
):
    tile, accesses, unit = case
    try:
        choice = swizzle_for(tile, accesses, unit, vector_bytes)
    except LayoutError:
        assume(False)
    moved = vector_bytes or max(access.instruction.width for access in accesses)
    free = {swizzle.bits for swizzle in every_free_swizzle(tile, accesses, unit, moved)}
    assert bool(choice) == bool(free)
    assert all(proof.verify() for proof in choice.proofs)
    if choice:
        assert choice.swizzle.bits == min(free)


NONE = Layout((64, 48), (48, 1))
TWO = [Access("ldmatrix.x1", Layout(8)), Access("ldmatrix.x1", Layout((2, 4), (512, 2)))]


def test_a_tile_without_a_swizzle_has_a_proof_and_a_padding():
    choice = swizzle_for(NONE, TWO, unit=16)
    assert not choice
    assert choice.layout is None
    (proof,) = choice.proofs
    assert proof
    assert proof.verify()
    for swizzle in every_swizzle(bits=4, bases=range(3, 8), shift=9):
        under = ComposedLayout(swizzle, 0, NONE)
        for access in TWO:
            at = [2 * under(access.lanes(lane)) for lane in range(8)]
            if any(address % 16 for address in at) or not wavefronts(at).conflict_free:
                break
        else:
            pytest.fail(f"{swizzle} frees them")
    padding = choice.padding
    assert padding.layout == Layout((64, 48), (56, 1))
    assert (padding.pitch, padding.by) == (48, 8)
    assert all(report.proof().holds for report in padding.reports)
    tile = "(64,48):(48,1) (offsets in elements of 16 bits)"
    assert f"no swizzle of {tile} that moves 16 bytes as a whole frees" in str(choice)
    assert "pad every 48 by 8" in str(choice)
    assert str(choice).endswith("bytes of shared memory (offsets in elements of 16 bits)")


def test_a_certificate_with_a_wrong_pair_does_not_verify():
    proof = swizzle_for(NONE, TWO, unit=16).proofs[0]
    (certificate,) = proof.certificates
    (swizzle, number, (first, _)), *rest = certificate.witness.obstacles
    assert certificate.verify()
    for altered in (rest, [(swizzle, number, (first, first)), *rest], [(swizzle, 0, (0,)), *rest]):
        assert not Certificate(certificate.claim, EachCollides(tuple(altered))).verify()


def test_a_tile_can_have_neither_swizzle_nor_padding():
    accesses = [Access("ldmatrix.x1", Layout(8, 4)), Access("ldmatrix.x1", Layout(8, 1))]
    choice = swizzle_for(Layout((64, 32), (32, 1)), accesses, unit=16)
    assert not choice
    assert choice.padding is None
    assert "no padding" in str(choice)


def test_no_swizzle_is_refuted_by_a_swizzle():
    tile = Layout((64, 64), (64, 1))
    proof = prove(NoSwizzle(tile, (X4,), 16))
    assert not proof
    assert proof.counterexample.index == Swizzle(3, 3, 3)
    assert proof.verify()


def test_the_padding_is_the_smallest():
    tile = Layout((64, 64), (64, 1))
    padding = padding_for(tile, [X4], unit=16)
    assert (padding.layout, padding.bytes) == (Layout((64, 64), (72, 1)), 2 * (63 * 72 + 64))
    for by in range(1, 8):
        with pytest.raises(LayoutError, match="multiple of the bytes accessed"):
            wavefronts(Layout(8, 64 + by), 16, unit=16)
    nothing = padding_for(Layout((64, 8), (8, 1)), [Access("ldmatrix.x1", Layout(8))], unit=16)
    assert nothing.by == 0
    assert str(nothing) == (
        "no padding needed: (64,8):(8,1), 1024 bytes of shared memory "
        "(offsets in elements of 16 bits)"
    )


@pytest.mark.parametrize(
    "tile", [Layout(64, 1), Layout((64, 3), (1, 65)), Layout((32, 2), (1, 32))]
)
def test_a_tile_that_is_free_of_conflicts_needs_no_padding(tile):
    """Whatever its strides: none of the first two could be a pitch."""
    padding = padding_for(tile, [Access(4, Layout(32, 2))], unit=16)
    assert (padding.layout, padding.by) == (tile, 0)


def test_a_tile_whose_elements_share_memory_has_no_padding():
    assert padding_for(Layout((8, 8), (0, 0)), [Access(4, Layout(32))], unit=32) is None


@pytest.mark.parametrize("unit", [8, 16, 32])
@pytest.mark.parametrize("shape", [(64, 64), (8, 32), (128, 16)])
def test_a_padded_tile_can_be_repeated(shape, unit):
    tile = Layout(shape, (shape[1], 1))
    padding = padding_for(tile, [Access(16, Layout(8))], unit=unit)
    for copies in (2, 3):
        repeated = logical_product(padding.layout, copies)
        assert repeated[0] == padding.layout
        assert prove(ProductLaw(padding.layout, copies, repeated))
        assert prove(Injective(repeated))
    twice = tile_to_shape(padding.layout, (2 * shape[0], 2 * shape[1]))
    assert size(twice) == 4 * size(tile)
    assert prove(Injective(twice))


def test_one_access_is_taken_as_a_list_of_it_is():
    tile = Layout((64, 64), (64, 1))
    assert swizzle_for(tile, X4) == swizzle_for(tile, [X4])
    assert padding_for(tile, X4) == padding_for(tile, [X4])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: swizzle_for(Layout((64, 64)), []), "give at least one access"),
        (lambda: swizzle_for(Layout(32, 4), ["ld.shared.v4.b32"]), "lane 1 accesses 16 bytes"),
        (lambda: swizzle_for(Layout(8, 16), ["ldmatrix.x4"]), "lanes are missing"),
        (lambda: swizzle_for(ComposedLayout(Layout(8), 0, Layout(8)), [16]), "give the Layout of"),
        (lambda: swizzle_for("tile", [16]), "give the Layout of a tile"),
        (lambda: swizzle_for(Layout(8, 16), 16), "accesses 16 must be a list"),
        (lambda: padding_for(Layout(8, 16), np.array(3)), r"accesses array\(3\) must be a list"),
        (lambda: swizzle_for(Layout(8, 16), "ldmatrix.x1"), "'ldmatrix.x1' must be a list"),
        (lambda: NoSwizzle(Layout(8, 16), (16,), 8), "must be a Layout, and .* a tuple of Access"),
        (lambda: padding_for(Layout(8, 16), [3]), "width 3"),
        (lambda: swizzle_for(Layout(8, 16), [16], vector_bytes=3), "vector_bytes 3: it must be 1"),
    ],
)
def test_impossible_arguments_raise(call, words):
    with pytest.raises(LayoutError, match=words):
        call()
