"""Injective and Bijective, held against computing every offset."""

from hypothesis import given, settings
from hypothesis import strategies as st

from layouts import (
    F2,
    Bijective,
    ComposedLayout,
    CompositionLaw,
    Counterexample,
    E,
    Injective,
    Layout,
    Swizzle,
    equivalent,
    parse,
    prove,
    size,
    wgmma_accumulator,
)
from layouts.algebra.injectivity import collision

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
@settings(max_examples=5 * settings().max_examples)
def test_layouts_are_decided(layout):
    check_injective(layout)
    check_bijective(layout)


@given(composed())
@settings(max_examples=5 * settings().max_examples)
def test_composed_layouts_are_decided(layout):
    check_injective(layout)
    check_bijective(layout)
    check_bijective(layout, layout.offset)


@given(
    st.lists(st.tuples(st.sampled_from([1, 2, 4, 8]), st.integers(0, 63)), min_size=1, max_size=3)
)
@settings(max_examples=2 * settings().max_examples)
def test_xor_strides_are_decided(modes):
    layout = Layout(tuple(s for s, _ in modes), tuple(F2(d) for _, d in modes))
    check_injective(layout)
    check_bijective(layout)


def test_coordinates_are_decided():
    assert prove(Injective(Layout((4, 8), (E(0), E(1))))).verify()
    assert not prove(Injective(Layout((4, 8), (E(0), E(0)))))
    for wrong, index in ((3 * E(0), 2), (2 * E(1), 2)):
        proof = equivalent(Layout((4, 8), (E(0), E(1))), Layout((2, 2, 8), (E(0), wrong, E(1))))
        assert proof.counterexample.index == index
        assert proof.verify()
    assert prove(CompositionLaw(Layout((4, 8), (E(0), E(1))), Layout((8, 4), (4, 1)))).verify()
    swizzled = ComposedLayout(Swizzle(1, 0, 2), 0, Layout(8))
    assert equivalent(Layout((4, 2), (F2(1), F2(5))), swizzled).verify()


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
        "in the order 8:1 2:8 4:16 2:64 4:128 16:512 the modes form a chain: each stride is the "
        "product of the extents before it, 1 -> 8 -> 16 -> 64 -> 128 -> 512 -> 8192, so each "
        "offset occurs exactly once"
    )
    assert prove(Bijective(tile)).reason == (
        "(128,64):(64,1): in the order 64:1 128:64 the modes form a chain: each stride is the "
        "product of the extents before it, 1 -> 64 -> 8192, so each offset occurs exactly once",
        "S<3,3,3> is its own inverse and permutes each aligned block of 64 offsets; "
        "8192 = 128 * 64",
    )


def test_a_refutation_names_coordinates_or_the_offset():
    proof = prove(Bijective(parse("(8,64):(72,1)")))
    assert proof.counterexample == Counterexample(71, (7, 8), 512, 511)
    assert "no coordinate has the offset 64; coordinate (7,8), index 71, has" in str(proof)
    proof = prove(Injective(parse("S<3,3,3> o 0 o ((4,2),8):((1,3),64)")))
    assert proof.counterexample == Counterexample((3, 4), (((3, 0), 0), ((0, 1), 0)), 3, 3)
    assert str(proof).endswith("coordinates ((3,0),0) and ((0,1),0) both have the offset 3")


def test_injective_without_a_growing_chain():
    proof = prove(Injective(Layout((2, 2), (2, 3))))  # I4: values 0, 2, 3, 5
    assert proof
    proof = prove(Injective(Layout((3, 2), (2, 3))))  # values 0, 2, 4, 3, 5, 7
    assert "no nonzero difference of two coordinates" in str(proof)
