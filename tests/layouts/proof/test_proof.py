"""Proofs and refutations, held against computing every offset."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layouts import (
    F2,
    Bijective,
    ComplementLaws,
    ComposedLayout,
    CompositionLaw,
    ConflictFree,
    Counterexample,
    DivideLaw,
    E,
    Equivalent,
    Injective,
    Layout,
    LayoutError,
    LeftInverseLaw,
    ProductLaw,
    Proof,
    RightInverseLaw,
    Swizzle,
    SwizzleAlignment,
    SwizzleInvolution,
    equivalent,
    parse,
    prove,
    size,
    symbols,
    wgmma_accumulator,
)
from layouts.algebra.injectivity import collision
from layouts.proof.certificates import SameFloors
from layouts.values.symbols import substitute

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
    with pytest.raises(LayoutError, match="too many to enumerate"):
        prove(Injective(ComposedLayout(Layout((3, 5), (1, 7)), 1, Layout(1 << 23))))


# ------------------------------------------------------------------------------------- laws

SMALL = st.lists(st.sampled_from([1, 2, 2, 3, 4, 4, 5, 6]), min_size=1, max_size=3)
MANY = settings(max_examples=6 * settings().max_examples)


@st.composite
def tidy(draw):
    """Layouts whose strides are mostly products of extents, so that they often agree."""
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
    """The proof agrees with brute force; certificate and counterexample stand a second look."""
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


# --------------------------------------------------------------------------------- theorems


def test_theorems_for_all_swizzles():
    for theorem in (SwizzleInvolution(), SwizzleAlignment()):
        proof = prove(theorem)
        assert proof
        assert proof.verify()
        assert all(lemma.verify() for lemma in proof.certificates)
        assert "but their sum is -1" in str(proof)


@given(SWIZZLES)
def test_theorems_for_given_ones(parameters):
    swizzle = Swizzle(*parameters)
    assert prove(SwizzleInvolution(swizzle)).verify()
    assert prove(SwizzleAlignment(swizzle)).verify()
    period = 1 << swizzle.base + swizzle.bits + abs(swizzle.shift)
    for x in range(64):
        assert swizzle(swizzle(x)) == x
        assert swizzle(x) % (1 << swizzle.base) == x % (1 << swizzle.base)
        assert swizzle(x) // swizzle.block == x // swizzle.block
        assert swizzle(x + 3 * period) == swizzle(x) + 3 * period


# ------------------------------------------------------------------- certificates are checked


def test_a_false_certificate_does_not_verify():
    proof = prove(Bijective(Layout((4, 8), (8, 1))))
    (chain,) = proof.certificates
    assert not type(chain)(Layout((4, 8), (9, 1)), chain.order).verify()
    assert not type(chain)(chain.layout, (1,)).verify()
    moved = Proof(Bijective(Layout((4, 8), (1, 4))), True, (), None, proof.certificates)
    assert not moved.verify()  # a true certificate of another statement
    shifted = Proof(Bijective(proof.statement.layout, 4), True, (), None, proof.certificates)
    assert not shifted.verify()  # of the offsets from 0, not from 4, on
    first_eight = SameFloors(Layout(8), Layout(16), 8)
    assert first_eight.verify()
    assert not Proof(Equivalent(Layout(8), Layout(16)), True, (), None, (first_eight,)).verify()
    swizzled = prove(Bijective(parse("S<3,3,3> o 0 o (8,64):(64,1)"))).certificates
    beyond = Bijective(parse("S<3,3,3> o 64 o (8,64):(64,1)"))
    assert not Proof(beyond, True, (), None, swizzled).verify()
    law = prove(CompositionLaw(Layout((6, 2), (8, 2)), Layout((4, 3), (3, 1))))
    (same,) = law.certificates
    assert same.verify()
    for broken in broken_digits(same):
        assert not broken.verify()
    for lemma in prove(SwizzleInvolution()).certificates[:2]:
        assert not type(lemma)(lemma.name, lemma.constraints, (1, 1, 0)).verify()
        assert not type(lemma)(lemma.name, lemma.constraints, (1, 1, -1)).verify()


def broken_digits(same):
    """The certificate of a composition with one number changed."""
    kind = type(same)
    yield kind(same.count + 1, same.digits, same.left, same.right)
    yield kind(same.count, (4, 3, 1), same.left, same.right)
    last = same.left[-1]
    (step,) = last.steps
    other = type(step)(step.extent, step.stride, step.quotient, (1, *step.remainder[1:]))
    yield kind(
        same.count,
        same.digits,
        (same.left[0], type(last)(last.stage, last.before, last.modes, (other,), last.after)),
        same.right,
    )
    wrong = type(last)(Layout((6, 2), (8, 3)), last.before, last.modes, last.steps, last.after)
    yield kind(same.count, same.digits, (same.left[0], wrong), same.right)


def test_a_false_counterexample_does_not_verify():
    proof = prove(Injective(Layout((4, 2), (1, 2))))
    assert proof.verify()
    for index, left in (((2, 3), 2), ((2, 2), 2), ((2, 4), 3)):
        found = Counterexample(index, None, left, left)
        assert not Proof(proof.statement, False, (), found).verify()


# ---------------------------------------------------------------------------------- symbols


def test_statements_for_all_values_of_symbols():
    m, n, d, p = symbols("m n d p")
    true = [
        Bijective(Layout((m, n), (n, 1))),
        Bijective(Layout(((4, 8, 4), (2, 2, n)), ((128, 1, 16), (64, 8, 512)))),
        Bijective(ComposedLayout(Swizzle(3, 3, 3), 0, Layout((8 * m, 64), (64, 1)))),
        Injective(Layout((m, n), (1, m + p))),
        Equivalent(Layout((m, n), (d, m * d)), Layout(m * n, d)),
        Equivalent(
            ComposedLayout(Swizzle(2, 3, 3), 0, Layout((m, n), (1, m))),
            ComposedLayout(Swizzle(2, 3, 3), 0, Layout(m * n)),
        ),
        RightInverseLaw(Layout((m, n), (n, 1)), Layout((n, m), (m, 1))),
        CompositionLaw(Layout((8 * m, n), (n, 1)), Layout(4, 2 * m), Layout(4, 2 * m * n)),
        ComplementLaws(Layout((2, m), (1, 6)), 12 * m, Layout((3, 2), (2, 6 * m))),
    ]
    for statement in true:
        proof = prove(statement)
        assert proof
        assert proof.verify()
        for values_ in (
            {m: 1, n: 1, d: 1, p: 1},
            {m: 2, n: 3, d: 5, p: 1},
            {m: 3, n: 2, d: 7, p: 4},
        ):
            assert prove(substitute(statement, values_))


def test_statements_that_fail_for_some_values():
    m, n, d = symbols("m n d")
    false = [
        Equivalent(Layout((m, n), (d, m * d + 1)), Layout(m * n, d)),
        Injective(Layout((m, n), (1, m - 1 + d))),
        Bijective(Layout((m, n), (n, 2))),
        CompositionLaw(Layout((m, n), (1, 100)), Layout(4, 3), Layout(4, 3)),
    ]
    for statement in false[:1] + false[2:]:
        proof = prove(statement)
        assert not proof
        assert dict(proof.counterexample.symbols)
        assert proof.verify()
    assert prove(false[1])  # d >= 1, so that the second stride is at least m


def test_what_symbols_leave_open_names_the_inequality():
    m = symbols("m")
    statement = CompositionLaw(Layout((m + 8, 3), (1, m + 8)), Layout(4, 3), Layout(4, 3))
    assert prove(statement)  # coalesces
    statement = Injective(Layout((2, 3, 5), (m * m + 1, 3 * m * m + 1, 11 * m * m + m)))
    proof = prove(statement)
    assert proof.verify()
    away = (m - 2) ** 2 + 10  # never below 10, which the coefficients do not show
    with pytest.raises(LayoutError, match=r"not decided.*carry: 9 >= \(m - 2\)\*\*2 \+ 10.*small"):
        prove(CompositionLaw(Layout((away, 3), (1, 100)), Layout(4, 3), Layout(4, 3)))
