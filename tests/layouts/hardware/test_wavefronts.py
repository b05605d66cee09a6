"""Wavefronts, compared with counting the words of every bank."""

import random
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layouts import (
    ComposedLayout,
    ConflictFree,
    Layout,
    LayoutError,
    Swizzle,
    ldmatrix,
    prove,
    size,
    wavefronts,
)
from layouts.hardware.instructions import INSTRUCTIONS, instruction

# --------------------------------------------------------------------------------- the model


def counted(addresses, width):
    """Wavefronts and phases by counting, for each phase, the words of each bank of 4 bytes.

    Accesses wider than a bank are conflict-free if each bank sees one word of each ``width`` bytes,
    which for aligned accesses is the same as one word of 4 bytes.
    """
    lanes = 128 // max(width, 4)
    total = 0
    for first in range(0, len(addresses), lanes):
        words = {
            a // 4 + k for a in addresses[first : first + lanes] for k in range(max(width // 4, 1))
        }
        total += max(sum(word % 32 == bank for word in words) for bank in range(32))
    return total


ROWS = Layout(8, 64)  # the rows of an (8, 64) tile of 16-bit elements


@pytest.mark.parametrize(
    ("lanes", "width", "count", "ideal"),
    [
        (ComposedLayout(Swizzle(0, 3, 3), 0, ROWS, unit=16), 16, 8, 1),  # naive rows of 128 bytes
        (ComposedLayout(Swizzle(0, 3, 3), 0, Layout(8, 72), unit=16), 16, 1, 1),  # padded
        (ComposedLayout(Swizzle(3, 3, 3), 0, ROWS, unit=16), 16, 1, 1),  # swizzled
        (ComposedLayout(Swizzle(3, 4, 3), 0, ROWS, unit=16), 16, 2, 1),  # bytes taken for elements
        (ComposedLayout(Swizzle(2, 3, 3), 0, Layout(8, 32), unit=16), 16, 1, 1),  # 64-byte rows
        (ComposedLayout(Swizzle(1, 3, 3), 0, Layout(8, 16), unit=16), 16, 1, 1),  # 32-byte rows
        (Layout(32, 4), 4, 1, 1),
        (Layout(32, 8), 4, 2, 1),
        (Layout(32, 128), 4, 32, 1),
        (Layout(32, 0), 4, 1, 1),  # a broadcast
        (Layout((4, 8), (0, 4)), 4, 1, 1),
        (Layout(32, 2), 2, 1, 1),
        (Layout(32, 1), 1, 1, 1),
        (Layout(32, 8), 8, 2, 2),  # two phases of 16 lanes
        (Layout(32, 16), 16, 4, 4),  # S8: four phases of 8 lanes, no conflict
        (Layout(32, 12), 4, 1, 1),  # an odd stride in words
        (Layout(24, 4), 4, 1, 1),
        (Layout(8, 144), 16, 1, 1),
        (Layout(128, 16), 16, 16, 16),  # four warps
    ],
    ids=str,
)
def test_wavefronts(lanes, width, count, ideal):
    unit = getattr(lanes, "unit", 8)
    found = wavefronts(lanes, width, unit)
    assert (found.count, found.ideal, found.conflict_free) == (count, ideal, count == ideal)
    assert counted([lanes(lane) * unit // 8 for lane in range(size(lanes))], width) == count


def check_witness(addresses, width, pair):
    first, second = pair
    word, phase = max(width, 4), 128 // max(width, 4)
    assert first // phase == second // phase
    a, b = addresses[first] // word, addresses[second] // word
    assert a != b
    assert a % phase == b % phase


@given(
    st.sampled_from([2, 4, 8, 16]),
    st.lists(st.integers(0, 10), min_size=5, max_size=5),
    st.sampled_from([Swizzle(0, 0, 0), Swizzle(3, 4, 3), Swizzle(2, 5, 2), Swizzle(3, 4, -4)]),
    st.integers(0, 7),
)
@settings(max_examples=5 * settings().max_examples)
def test_ranks_agree_with_counting_at_every_base(width, bits, swizzle, base):
    lanes = Layout((2,) * 5, tuple(width << bit for bit in bits))
    for offset in (0, base << 20):
        layout = ComposedLayout(swizzle, offset, lanes, unit=8)
        found = wavefronts(layout, width)
        addresses = [layout(lane) for lane in range(32)]
        if all((a ^ b) % width == 0 for a, b in combinations(addresses, 2)):
            assert found.count == counted(addresses, width)
        by_rank = len(set(bits)) == 5
        assert (found.ranks is not None) == by_rank
        assert found.every_base == (by_rank or swizzle.bits == 0)
        assert found.conflict_free == (found.count == found.ideal)
        if found.collision:
            check_witness(addresses, width, found.collision)


@given(
    st.sampled_from(sorted(INSTRUCTIONS)),
    st.lists(st.sampled_from([None, *range(9)]), min_size=5, max_size=6),
    st.sampled_from([Swizzle(0, 0, 0), Swizzle(3, 4, 3), Swizzle(2, 5, 2), Swizzle(3, 4, -4)]),
)
@settings(max_examples=5 * settings().max_examples)
def test_rank_and_lane_by_lane_agree_for_every_instruction(name, bits, swizzle):
    """If a column is 0, lanes share an address, and the phases of a load may double."""
    how = instruction(name)
    strides = tuple(0 if bit is None else how.width << bit for bit in bits)
    layout = ComposedLayout(swizzle, 0, Layout((2,) * len(bits), strides), unit=8)
    addresses = [layout(lane) for lane in range(size(layout))]
    if any(address % how.width for address in addresses):
        return
    by_rank, by_looking = wavefronts(layout, name), wavefronts(addresses, name)
    assert (by_rank.count, by_rank.ideal) == (by_looking.count, by_looking.ideal)
    assert by_rank.degree == by_looking.degree
    assert by_rank.conflicts == by_rank.count - by_rank.ideal


@pytest.mark.parametrize("name", sorted(INSTRUCTIONS))
def test_freedom_from_conflicts_is_proved_or_refuted_for_every_instruction(name):
    width = instruction(name).width
    for strides in ((1, 2, 4, 8, 16), (0, 1, 2, 4, 8), (1, 0, 2, 4, 16), (1, 32, 2, 4, 8)):
        lanes = Layout((2,) * 5, tuple(width * stride for stride in strides))
        proof = prove(ConflictFree(lanes, name, unit=8))
        assert bool(proof) == wavefronts(lanes, name, unit=8).conflict_free
        assert proof.verify(), str(proof)


def test_one_lane_outside_the_pattern_ends_merging():
    pairs = [lane // 2 * 16 for lane in range(32)]
    broken = [*pairs[:31], 0]
    count = {
        name: wavefronts(at, "ld.shared.v4.b32").count
        for name, at in (("pairs", pairs), ("broken", broken), ("half a warp", pairs[:16]))
    }
    assert count == {"pairs": 2, "broken": 4, "half a warp": 2}


@given(st.lists(st.integers(0, 40), min_size=5, max_size=5), st.integers(0, 99))
def test_without_a_swizzle_a_count_holds_at_every_base(strides, base):
    lanes = Layout((2, 2, 2, 2, 2), tuple(16 * stride for stride in strides))
    found = wavefronts(lanes, unit=8)
    moved = wavefronts([16 * base + lanes(lane) for lane in range(32)])
    if found.every_base and found.ranks is None:
        assert moved.count == found.count


def test_lane_by_lane_agrees_with_counting_at_random_addresses():
    rng = random.Random(1)
    for _ in range(300):
        width = rng.choice([1, 2, 4, 8, 16])
        addresses = [width * rng.randrange(64) for _ in range(rng.choice([8, 17, 32, 64]))]
        found = wavefronts(addresses, width)
        assert found.count == counted(addresses, width)
        assert not found.every_base
        if found.collision:
            check_witness(addresses, width, found.collision)


def test_ldmatrix_of_a_swizzled_tile_takes_one_wavefront_per_matrix():
    tile = ComposedLayout(Swizzle(3, 3, 3), 0, Layout((64, 64), (64, 1)), unit=16)
    lanes = tile @ Layout((8, 2, 2), (1, 8, 64 * 8))  # four matrices: 8 rows, 16 rows, 16 columns
    assert wavefronts(lanes).conflict_free
    assert wavefronts(lanes).count == ldmatrix(4).matrices


@pytest.mark.parametrize("stride", [2, 4, 8, 16, 32])
def test_rows_of_a_power_of_two_need_three_bits_from_at_least_the_bank_groups(stride):
    """Rows of `stride` 16-byte vectors: S<min(log2, 3), 4, max(3, log2)> frees a column."""
    log = stride.bit_length() - 1
    swizzle = Swizzle(min(log, 3), 4, max(3, log))
    rows = Layout(8, 16 * stride)
    assert wavefronts(ComposedLayout(swizzle, 0, rows), unit=8).conflict_free
    assert not wavefronts(rows, 16, unit=8).conflict_free


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((Layout(8, 16), 3), "1, 2, 4, 8 or 16 bytes"),
        ((Layout(8, 4), 16), "lane 1 accesses 16 bytes at byte 8 .offsets in elements of 16 bits."),
        ((ComposedLayout(Swizzle(3, 4, 3), 8, Layout(8, 16)), 16, 8), "lane 0 .* at byte 8"),
        ((ComposedLayout(Swizzle(3, 0, 7), 0, Layout(8, 128)), 16, 8), "lane 1 .* at byte 129"),
        (([0, 4, 6], 4), "lane 2 accesses 4 bytes at byte 6"),
        ((Layout(8, 16), 16, 4), "unit 4 bits"),
        ((ComposedLayout(Swizzle(3, 3, 3), 0, ROWS, unit=16), 16, 8), "has offsets in elements of"),
        (([0, 64], 16, 16), "a sequence has byte addresses"),
    ],
)
def test_impossible_accesses_raise(arguments, words):
    with pytest.raises(LayoutError, match=words):
        wavefronts(*arguments)


def test_the_text_of_a_report():
    free = "1 wavefront, conflict-free at every base"
    assert str(wavefronts(Layout(8, 16), unit=8)) == f"{free} (offsets in bytes)"
    assert str(wavefronts(Layout(8, 8))) == f"{free} (offsets in elements of 16 bits)"
    assert str(wavefronts([0, 128, 16], 16)) == (
        "2 wavefronts instead of 1 at these addresses: "
        "lanes 0 and 1 access different words of one bank (offsets in bytes)"
    )
