"""The laws as statements: proofs and refutations, held against computing every value."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layouts import (
    F2,
    ComplementLaws,
    ComposedLayout,
    CompositionLaw,
    Counterexample,
    DivideLaw,
    Equivalent,
    Layout,
    LayoutError,
    LeftInverseLaw,
    ProductLaw,
    RightInverseLaw,
    Swizzle,
    equivalent,
    prove,
    size,
)
from layouts.proof.copies import with_copies

SWIZZLES = st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(-3, 3)).filter(
    lambda t: t[0] == 0 or abs(t[2]) >= t[0]
)

SMALL = st.lists(st.sampled_from([1, 2, 2, 3, 4, 4, 5, 6]), min_size=1, max_size=3)
MANY = settings(max_examples=6 * settings().max_examples)


@st.composite
def tidy(draw):
    """Layouts whose strides are mostly products of extents: pairs of them often agree."""
    extents = draw(SMALL)
    strides, stride = [0] * len(extents), draw(st.sampled_from([1, 1, 1, 2, 3]))
    for k in draw(st.permutations(range(len(extents)))):
        strides[k] = stride
        stride *= extents[k] * draw(st.sampled_from([1, 1, 1, 1, 2]))
    return Layout(tuple(extents), tuple(strides))


def values(layout):
    return [layout(i) for i in range(size(layout))]


@st.composite
def pairs(draw):
    """Two layouts that are often equivalent: the second is the first, regrouped or disturbed."""
    a = draw(tidy())
    modes = [m for s, d in zip(a.shape, a.stride, strict=True) for m in cut(draw, s, d)]
    if draw(st.booleans()):
        k = draw(st.integers(0, len(modes) - 1))
        modes[k] = (modes[k][0], modes[k][1] + draw(st.integers(0, 1)))
    return a, Layout(tuple(s for s, _ in modes), tuple(d for _, d in modes))


def cut(draw, extent, stride):
    first = draw(st.sampled_from([d for d in range(1, extent + 1) if extent % d == 0]))
    return [(first, stride), (extent // first, stride * first)]


def check_law(proof, left, right, count):
    """The proof agrees with brute force; its certificate or counterexample verifies."""
    differ = [i for i in range(count) if left(i) != right(i)]
    assert bool(proof) == (not differ)
    assert proof.verify()
    if differ:
        found = proof.counterexample
        assert (found.index, found.left, found.right) == (
            differ[0],
            left(found.index),
            right(found.index),
        )


@given(pairs())
@MANY
def test_equivalent(pair):
    a, b = pair
    check_law(equivalent(a, b), a, b, size(a))
    check_law(equivalent(b, a), b, a, size(a))


@given(tidy(), tidy(), SWIZZLES, SWIZZLES, st.sampled_from([0, 0, 0, 8, 3]), st.booleans())
@MANY
def test_equivalent_under_swizzles(a, b, s, t, offset, same):
    one = ComposedLayout(Swizzle(*s), offset, a)
    other = ComposedLayout(Swizzle(*(s if same else t)), offset, a if size(a) != size(b) else b)
    check_law(equivalent(one, other), one, other, size(a))


@given(tidy(), tidy(), st.sampled_from([0, 0, 1, 5]))
@MANY
def test_composition_law(a, b, offset):
    proof = prove(CompositionLaw(a, b))
    if proof:
        r = proof.statement.result()
        check_law(proof, lambda i: a(b(i)), r, size(b))
        assert proof.verify()
    inner = ComposedLayout(a, offset, b)
    given_ = Layout(b.shape, tuple(a(d) for d in b.stride))  # right if nothing carries
    check_law(prove(Equivalent(inner, given_)), inner, given_, size(b))
    check_law(prove(CompositionLaw(a, b, given_)), lambda i: a(b(i)), given_, size(b))


@given(tidy(), tidy())
@MANY
def test_divide_and_complement_laws(a, t):
    for law in (
        DivideLaw(a, t),
        ProductLaw(a, t),
        ComplementLaws(t, size(a)),
        ComplementLaws(t),
        RightInverseLaw(a),
        LeftInverseLaw(a),
    ):
        proof = prove(law)
        assert bool(proof) == has_result(law)
        assert not proof or proof.verify()


def has_result(law):
    try:
        law.result()
    except LayoutError:
        return False
    return True


def test_a_wrong_result_is_refuted():
    a, b = Layout((4, 3), (1, 100)), Layout(4, 3)  # C1: what C++ and the DSL return
    proof = prove(CompositionLaw(a, b, Layout((2, 2), (3, 100))))
    assert proof.counterexample == Counterexample(2, 2, 102, 100)
    assert "does not refine" in str(prove(CompositionLaw(a, Layout((2, 2), (1, 2)), Layout(4))))
    proof = prove(CompositionLaw(a, b, Layout(4, 3)))
    assert proof.counterexample == Counterexample(2, 2, 102, 6)
    assert proof.verify()
    wrong = prove(DivideLaw(Layout((8, 8), (1, 8)), (4, None), Layout(((4, 2), 8), ((1, 4), 9))))
    assert wrong.counterexample == Counterexample(1, 1, 8, 9)
    assert wrong.verify()
    wrong = prove(ComplementLaws(Layout((2, 2), (1, 6)), 24, Layout((3, 2), (2, 6))))
    assert not wrong
    assert wrong.verify()
    wrong = prove(RightInverseLaw(Layout((4, 8), (8, 1)), Layout((8, 4), (1, 8))))
    assert wrong.counterexample == Counterexample(1, (1, 0), 8, 1)


def test_what_has_no_layout_is_refuted_with_the_reason():
    proof = prove(CompositionLaw(Layout((4, 3), (1, 100)), Layout(4, 3)))  # C1
    assert not proof
    assert "at index 3" in str(proof)
    assert proof.counterexample == Counterexample(3, 3, 201, 105)
    assert proof.verify()


def test_sizes_and_the_domain():
    proof = equivalent(Layout(4), Layout(8))
    assert proof.counterexample == Counterexample(4, 4, None, 4)
    assert proof.verify()
    proof = equivalent(Layout((4, 1), (1, 0)), Layout(4))  # C4: they differ beyond the domain
    assert proof
    assert "at index 4 the first is 0, the second 4" in str(proof)


def test_a_billion_indices_at_once():
    big = Layout((1 << 10, 1 << 20), (1 << 20, 1))
    assert prove(CompositionLaw(big, Layout((1 << 20, 1 << 10), (1 << 10, 1)))).verify()
    assert prove(DivideLaw(big, (32, 64))).verify()
    found = equivalent(big, Layout(((1 << 9, 2), 1 << 20), ((1 << 20, (1 << 29) + 1), 1)))
    assert found.counterexample.index == 512
    assert found.verify()


@pytest.mark.parametrize("law", [LeftInverseLaw, RightInverseLaw])
def test_an_inverse_must_be_a_layout(law):
    with pytest.raises(LayoutError):
        law(Layout(4, 0), 0)


def test_the_copies_of_a_composed_layout_are_its_sums():
    plain = ComposedLayout(Layout((3, 4), (4, 1)), 5, Layout(12))
    for layout in (
        plain,
        ComposedLayout(plain, 2, Layout((3, 2), (4, 1))),
        ComposedLayout(Swizzle(1, 0, 2), 0, Layout((3, 4), (8, 1))),
        ComposedLayout(Swizzle(2, 0, 2), 3, Layout((4, 2), (F2(3), F2(5)))),
    ):
        for starts in (Layout(3, 100), Layout((2, 3), (7, 1)), Layout(1, 0)):
            both, count = with_copies(layout, starts), size(layout)
            assert [both(i) for i in range(count * size(starts))] == [
                layout(i) + starts(j) for j in range(size(starts)) for i in range(count)
            ]
