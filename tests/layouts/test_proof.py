"""Proofs and refutations, held against computing every offset."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layouts import (
    Bijective,
    ComposedLayout,
    ConflictFree,
    Injective,
    Layout,
    LayoutError,
    Swizzle,
    parse,
    prove,
    size,
    wgmma_accumulator,
)
from layouts.collision import collision
from layouts.proof import Counterexample

EXTENTS = st.lists(st.integers(1, 6), min_size=1, max_size=4)


@st.composite
def layouts(draw):
    """Layouts of which about a third are bijective, a third injective, and a third neither."""
    extents = tuple(draw(EXTENTS))
    if draw(st.integers(0, 2)) == 0:
        return Layout(extents, tuple(draw(st.integers(0, 12)) for _ in extents))
    strides, stride = [0] * len(extents), 1
    for k in draw(st.permutations(range(len(extents)))):
        strides[k] = stride
        stride *= extents[k]
        stride += draw(st.sampled_from([0, 0, 0, 0, 1, 2]))
    return Layout(extents, tuple(strides))


SWIZZLES = st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(-3, 3)).filter(
    lambda t: t[0] == 0 or abs(t[2]) >= t[0]
)


@st.composite
def composed(draw):
    inner = draw(st.one_of(SWIZZLES.map(lambda t: Swizzle(*t)), layouts()))
    return ComposedLayout(inner, draw(st.sampled_from([0, 0, 0, 1, 4])), draw(layouts()))


def check_injective(layout):
    proof = prove(Injective(layout))
    offsets = [layout(i) for i in range(size(layout))]
    assert bool(proof) == (len(set(offsets)) == len(offsets))
    assert proof.verify()
    if not proof:
        check_collision(layout, offsets, proof.counterexample)


def check_collision(layout, offsets, found):
    first, second = found.index
    assert first < second
    assert found.left == found.right == offsets[first] == offsets[second]
    assert [layout(coord) for coord in found.coordinate] == [found.left] * 2


def check_bijective(layout, start=0):
    proof = prove(Bijective(layout, start))
    offsets = [layout(i) for i in range(size(layout))]
    wanted = range(start, start + len(offsets))
    assert bool(proof) == (sorted(offsets) == list(wanted))
    assert proof.verify()
    if not proof and isinstance(proof.counterexample.index, tuple):
        check_collision(layout, offsets, proof.counterexample)
    elif not proof:
        found = proof.counterexample
        assert found.index == next(i for i, offset in enumerate(offsets) if offset not in wanted)
        assert layout(found.coordinate) == offsets[found.index] == found.left


@given(layouts())
@settings(max_examples=500)
def test_layouts_are_decided(layout):
    check_injective(layout)
    check_bijective(layout)


@given(composed())
@settings(max_examples=500)
def test_composed_layouts_are_decided(layout):
    check_injective(layout)
    check_bijective(layout)
    check_bijective(layout, layout.offset)


def test_a_trillion_offsets_are_decided_at_once():
    big = Layout((1 << 20, 1 << 20), (1 << 20, 1))
    assert prove(Bijective(big))
    assert prove(Bijective(ComposedLayout(Swizzle(3, 4, 3), 0, big)))
    assert prove(Injective(Layout((1 << 25, 1 << 25), (1, (1 << 25) + 1))))
    assert collision(Layout((1 << 25, 1 << 25), (1, (1 << 25) - 1))) == ((1 << 25) - 1, 1 << 25)


def test_a_certificate_is_read_by_a_person():
    accumulator, tile = wgmma_accumulator(128), parse("S<3,3,3> o 0 o (128,64):(64,1)")
    first, *steps = str(prove(Bijective(accumulator))).splitlines()
    assert first == f"proved: {accumulator} is a bijection onto the offsets 0 to 8191"
    assert " ".join(step.strip() for step in steps) == (
        "by rising stride its modes 8:1 2:8 4:16 2:64 4:128 16:512 are a chain: each stride is the "
        "number of offsets that the modes before it fill, 1 -> 8 -> 16 -> 64 -> 128 -> 512 -> "
        "8192, so that each offset is met once"
    )
    assert prove(Bijective(tile)).reason == (
        "(128,64):(64,1): by rising stride its modes 64:1 128:64 are a chain: each stride is the "
        "number of offsets that the modes before it fill, 1 -> 64 -> 8192, so that each offset is "
        "met once",
        "S<3,3,3> is its own inverse, and permutes each aligned block of 64 offsets in itself; "
        "8192 = 128 * 64",
    )


def test_a_refutation_names_coordinates_or_the_offset():
    proof = prove(Bijective(parse("(8,64):(72,1)")))
    assert proof.counterexample == Counterexample(71, (7, 8), 512, 511)
    assert "no coordinate has the offset 64; the coordinate (7,8), index 71, has" in str(proof)
    proof = prove(Injective(parse("S<3,3,3> o 0 o ((4,2),8):((1,3),64)")))
    assert proof.counterexample == Counterexample((3, 4), (((3, 0), 0), ((0, 1), 0)), 3, 3)
    assert str(proof).endswith("coordinates ((3,0),0) and ((0,1),0) both have the offset 3")


def test_injective_without_a_growing_chain():
    proof = prove(Injective(Layout((2, 2), (2, 3))))  # I4: values 0, 2, 3, 5
    assert proof
    proof = prove(Injective(Layout((3, 2), (2, 3))))  # values 0, 2, 4, 3, 5, 7
    assert "no difference of two coordinates" in str(proof)


def test_conflict_free():
    tile = parse("S<3,3,3> o 0 o (8,64):(64,1)")
    proof = prove(ConflictFree(tile[0], 16, unit=16))
    assert proof
    assert "at every base" in str(proof)
    assert proof.verify()
    proof = prove(ConflictFree(tile.outer[0], 16, unit=16))
    assert proof.counterexample.index == (0, 1)
    assert proof.verify()
    assert str(proof).startswith("refuted: 8 lanes that access 16 bytes each at 8:64")


def test_statements_and_proofs_are_values():
    statement = Bijective(Layout(8))
    assert statement == Bijective(Layout(8)) != Injective(Layout(8))
    assert prove(statement) == prove(statement)
    assert {prove(statement), prove(Bijective(Layout(8)))} == {prove(statement)}
    assert eval(repr(prove(statement)), dict(vars(__import__("layouts")))) == prove(statement)


def test_what_is_out_of_reach_says_so():
    with pytest.raises(LayoutError, match="too many to look at"):
        prove(Injective(ComposedLayout(Layout((3, 5), (1, 7)), 1, Layout(1 << 23))))
