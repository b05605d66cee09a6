"""A false certificate, and a true one of another statement, does not verify."""

from layouts import (
    Bijective,
    CompositionLaw,
    Counterexample,
    Equivalent,
    Injective,
    Layout,
    Proof,
    SwizzleInvolution,
    parse,
    prove,
)
from layouts.proof.agreement import agree
from layouts.proof.certificates import (
    Bijection,
    Chain,
    Exhaustive,
    Farkas,
    Injection,
    SameDigits,
    SameFloors,
    SameFunction,
)
from layouts.proof.digits import Reading, Step

CHAIN = prove(Bijective(Layout((4, 8), (8, 1)))).certificates[0]


def test_a_false_chain_does_not_verify():
    assert CHAIN.verify()
    assert not Chain(Layout((4, 8), (9, 1)), CHAIN.order).verify()
    assert not Chain(CHAIN.layout, (1,)).verify()


def test_false_digits_do_not_verify():
    law = prove(CompositionLaw(Layout((6, 2), (8, 2)), Layout((4, 3), (3, 1))))
    (same,) = law.certificates
    assert same.verify()
    for broken in broken_digits(same):
        assert not broken.verify()


def broken_digits(same):
    """The certificate of a composition with one number changed."""
    yield SameDigits(same.count + 1, same.digits, same.left, same.right)
    yield SameDigits(same.count, (4, 3, 1), same.left, same.right)
    last = same.left[-1]
    (step,) = last.steps
    other = Step(step.extent, step.stride, step.quotient, (1, *step.remainder[1:]))
    yield SameDigits(
        same.count,
        same.digits,
        (same.left[0], Reading(last.stage, last.before, last.modes, (other,), last.after)),
        same.right,
    )
    wrong = Reading(Layout((6, 2), (8, 3)), last.before, last.modes, last.steps, last.after)
    yield SameDigits(same.count, same.digits, (same.left[0], wrong), same.right)


def test_false_multipliers_do_not_verify():
    for lemma in prove(SwizzleInvolution()).certificates[:2]:
        assert lemma.verify()
        assert not Farkas(lemma.name, lemma.constraints, (1, 1, 0)).verify()
        assert not Farkas(lemma.name, lemma.constraints, (1, 1, -1)).verify()


def test_a_false_exhaustive_certificate_does_not_verify():
    eight, twice = (Layout(8),), (Layout((4, 2), (1, 0)),)
    assert Exhaustive(Bijection(eight, 0)).verify()
    assert Exhaustive(SameFunction(eight, twice, 4)).verify()
    assert not Exhaustive(SameFunction(eight, twice, 5)).verify()
    assert not Exhaustive(Injection(twice)).verify()
    assert not Exhaustive(Bijection(eight, 1)).verify()
    assert not Exhaustive(Bijection((Layout(8, 2),), 0)).verify()


def claimed(statement, certificates):
    return Proof(statement, True, (), None, tuple(certificates)).verify()


def test_a_certificate_of_another_layout_is_not_enough():
    assert claimed(Bijective(CHAIN.layout), [CHAIN])
    assert not claimed(Bijective(Layout((4, 8), (1, 4))), [CHAIN])


def test_a_bijection_onto_other_offsets_is_not_enough():
    assert not claimed(Bijective(CHAIN.layout, 4), [CHAIN])
    swizzled = prove(Bijective(parse("S<3,3,3> o 0 o (8,64):(64,1)"))).certificates
    assert not claimed(Bijective(parse("S<3,3,3> o 64 o (8,64):(64,1)")), swizzled)


def test_agreement_on_the_indices_of_the_shorter_layout_is_not_enough():
    first_eight = SameFloors(Layout(8), Layout(16), 8)
    assert first_eight.verify()
    assert not claimed(Equivalent(Layout(8), Layout(16)), [first_eight])


def test_a_composition_of_another_shape_is_not_enough():
    a, b = Layout(8), Layout((2, 4))
    same = agree((a, b), (Layout(8),), 8).certificate
    assert same.verify()
    assert not claimed(CompositionLaw(a, b, Layout(8)), [same])


def test_a_false_counterexample_does_not_verify():
    proof = prove(Injective(Layout((4, 2), (1, 2))))
    assert proof.verify()
    for index, left in (((2, 3), 2), ((2, 2), 2), ((2, 4), 3)):
        found = Counterexample(index, None, left, left)
        assert not Proof(proof.statement, False, (), found).verify()
