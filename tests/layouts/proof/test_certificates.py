"""A false certificate, and a true one of another statement, does not verify."""

from fractions import Fraction

import pytest
import sympy

from layouts import (
    F2,
    Bijective,
    ComplementLaws,
    ComposedLayout,
    CompositionLaw,
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
    SwizzleInvolution,
    parse,
    prove,
    symbols,
)
from layouts.proof.agreement import agree
from layouts.proof.certificates import (
    AsOne,
    Bijection,
    Certificate,
    Chain,
    Division,
    Exhaustive,
    Farkas,
    FullRank,
    Growing,
    Injection,
    NoDifference,
    SameBits,
    SameDigits,
    SameFloors,
    SameFunction,
    Swizzled,
)
from layouts.proof.law_bases import AllOf

CHAIN = prove(Bijective(Layout((4, 8), (8, 1)))).certificates[0]


def shows(claim, witness):
    return Certificate(claim, witness).verify()


def claimed(statement, *witnesses):
    """Whether a proof of `statement` by these witnesses is accepted."""
    certificates = tuple(Certificate(None, witness) for witness in witnesses)
    return Proof(statement, True, (), None, certificates).verify()


def denied(statement, *found):
    """Whether a refutation of `statement` by this counterexample is accepted."""
    return Proof(statement, False, (), Counterexample(*found)).verify()


# ------------------------------------------------------------------------------------ orders, bits


def test_a_false_order_does_not_verify():
    assert CHAIN.verify()
    assert not shows(Bijection((Layout((4, 8), (9, 1)),), 0), CHAIN.witness)
    for order in ((1,), (0, 1), (1, 0, 0), (1, -2), (True, False), (1.0, 0.0), None, ((1, 0),)):
        assert not shows(CHAIN.claim, Chain(order))
    assert not shows(Injection((Layout((4, 8), (1, 3)),)), Growing((0, 1)))


def test_a_witness_of_another_claim_does_not_verify():
    layout = (Layout((4, 8), (1, 5)),)
    assert shows(Injection(layout), Growing((0, 1)))
    for witness in (Chain((0, 1)), FullRank(), Swizzled(Growing((0, 1))), None, 3, "Growing"):
        assert not shows(Injection(layout), witness)


def test_columns_that_depend_on_each_other_do_not_verify():
    assert shows(Injection((Layout((2, 2), (F2(1), F2(3))),)), FullRank())
    assert not shows(Injection((Layout((2, 2, 2), (F2(1), F2(3), F2(2))),)), FullRank())
    assert not shows(Injection((Layout((2, 2), (1, 3)),)), FullRank())  # their sum carries
    assert shows(Injection((Layout((2, 3), (3, 2)),)), NoDifference())
    assert not shows(Injection((Layout((2, 4), (3, 1)),)), NoDifference())


def test_a_layout_whose_modes_cut_bits_is_not_linear_in_them():
    law = LeftInverseLaw(Layout(4, F2(4)), Layout((3, 4, 2), (0, F2(1), 0)))  # R(L(3)) is 0
    for witness in (SameBits(), SameFloors(), Exhaustive()):
        assert not claimed(law, witness)
    proof = prove(law)
    assert proof.counterexample == Counterexample(3, 3, 0, 3)
    assert proof.verify()


# ------------------------------------------------------------------------------------------ digits


def test_false_digits_do_not_verify():
    same = prove(CompositionLaw(Layout((6, 2), (8, 2)), Layout((4, 3), (3, 1)))).certificates[1]
    assert same.verify()
    for broken in broken_digits(same.witness):
        assert not shows(same.claim, broken)
    left, right, count = same.claim._fields()
    assert not shows(SameFunction(left, right, count + 1), same.witness)
    assert not shows(SameFunction((Layout((6, 2), (8, 3)), left[1]), right, count), same.witness)


def broken_digits(witness):
    """The witness of a composition with one thing changed."""
    digits, (first, second), right = witness._fields()
    (quotient,) = second.quotients
    for other in ((2, 2, 4), (4, 3, 1), (2, 2), (-2, -2, 3), (2, 2, 3.0), (Fraction(2), 2, 3)):
        yield SameDigits(other, (first, second), right)
    for other in ((1, *quotient[1:]), quotient[:-1], (*quotient[:-1], 1)):
        yield SameDigits(digits, (first, Division(second.modes, (other,))), right)
    yield SameDigits(digits, (first, Division(second.modes[::-1], second.quotients)), right)
    yield SameDigits(digits, (first,), right)
    yield SameDigits(digits, (first, second, second), right)


def test_fractional_quotients_do_not_verify():
    """With x0 = 3*(x0/3) + 0 the digit would vanish from the remainder."""
    false = SameFunction((Layout((3, 2), (0, 3)),), (Layout(6),), 6)
    third = sympy.Rational(1, 3)
    identity = Division(((6, 1),), ())
    modes = ((3, 0), (2, 3))
    for quotient in ((0, third), (0, Fraction(1, 3)), (0, 1 / 3)):
        assert not shows(false, SameDigits((6,), (Division(modes, (quotient,)),), (identity,)))


def test_negative_digits_and_remainders_do_not_verify():
    """With x0 < -2 and x1 < -3 there would be 6 indices, and every remainder would stay low."""
    false = SameFunction((Layout((2, 3), (0, 1)),), (Layout((2, 3), (1, 0)),), 6)
    for digits in ((-2, -3), (2, 3), (6,), (1, 6), (-6, -1)):
        for quotient in ((0, 0, 1), (0, 1, 0), (0, -1, 1), (0, 0, 0)):
            divisions = [
                (Division(modes, (quotient[: len(digits) + 1],)),)
                for modes in (((2, 0), (3, 1)), ((2, 1), (3, 0)))
            ]
            assert not shows(false, SameDigits(digits, *divisions))
    minus = Division(((-2, 1), (1, -2)), ((0, -1),))  # the identity, with an extent of -2
    assert not shows(
        SameFunction((Layout(6),), (Layout(6),), 6), SameDigits((6,), (minus,), (minus,))
    )


# -------------------------------------------------------------------------- theorems, enumeration


def test_false_multipliers_do_not_verify():
    for lemma in prove(SwizzleInvolution()).certificates[:2]:
        assert lemma.verify()
        for multipliers in ((1, 1, 0), (1, 1, -1), (1, 1), (0.5, 0.5, 0.5), (True, True, True)):
            assert not shows(lemma.claim, Farkas(multipliers))


def test_a_false_claim_is_not_shown_by_enumeration():
    eight, twice = (Layout(8),), (Layout((4, 2), (1, 0)),)
    assert shows(Bijection(eight, 0), Exhaustive())
    assert shows(SameFunction(eight, twice, 4), Exhaustive())
    assert not shows(SameFunction(eight, twice, 5), Exhaustive())
    assert not shows(Injection(twice), Exhaustive())
    assert not shows(Bijection(eight, 1), Exhaustive())
    assert not shows(Bijection((Layout(8, 2),), 0), Exhaustive())
    assert not shows(Bijection((Layout(1 << 40, 2),), 0), Exhaustive())  # and at once


# -------------------------------------------------------- a true certificate of another statement


def test_a_certificate_of_another_layout_is_not_enough():
    assert claimed(Bijective(Layout((4, 8), (8, 1))), CHAIN.witness)
    assert not claimed(Bijective(Layout((4, 8), (1, 4))), CHAIN.witness)
    assert not claimed(Bijective(Layout((4, 8), (8, 1))))
    assert not claimed(Bijective(Layout((4, 8), (8, 1))), CHAIN.witness, CHAIN.witness)


def test_a_bijection_onto_other_offsets_is_not_enough():
    assert not claimed(Bijective(Layout((4, 8), (8, 1)), 4), CHAIN.witness)
    (swizzled,) = prove(Bijective(parse("S<3,3,3> o 0 o (8,64):(64,1)"))).certificates
    assert not claimed(Bijective(parse("S<3,3,3> o 64 o (8,64):(64,1)")), swizzled.witness)


def test_another_layout_of_fewer_indices_is_not_enough():
    chain = ComposedLayout(Layout((4, 2), (1, 0)), 0, Layout(8))
    assert not claimed(Injective(chain), AsOne(Layout(4), SameFloors(), Growing((0,))))
    assert not claimed(Injective(chain), AsOne(Layout(8), SameFloors(), Growing((0,))))


def test_agreement_on_the_indices_of_the_shorter_layout_is_not_enough():
    assert shows(SameFunction((Layout(8),), (Layout(16),), 8), SameFloors())
    assert not claimed(Equivalent(Layout(8), Layout(16)), SameFloors())
    assert not claimed(Equivalent(Layout(8), Layout(16)), None, SameFloors())


def test_a_composition_of_another_shape_is_not_enough():
    a, b = Layout(8), Layout((2, 4))
    same = agree((a, b), (Layout(8),), 8).witness
    assert shows(SameFunction((a, b), (Layout(8),), 8), same)
    assert not claimed(CompositionLaw(a, b, Layout(8)), same)
    assert not claimed(CompositionLaw(a, b, Layout(8)), None, same)
    assert claimed(CompositionLaw(a, b, Layout((2, 4))), None, same)


def test_a_result_with_more_modes_or_another_swizzle_is_not_enough():
    layout, more = Layout((8, 8)), Layout(((4, 2), 8, 2), ((1, 4), 8, 64))
    proof = prove(DivideLaw(layout, (4, None)))
    assert proof.verify()
    assert not Proof(DivideLaw(layout, (4, None), more), *proof._fields()[1:]).verify()
    assert not prove(DivideLaw(layout, (4, None), more))
    tile = ComposedLayout(Swizzle(1, 0, 2), 0, Layout(8))
    product = prove(ProductLaw(tile, 2, tile.over(Layout((8, 2)))))
    assert product.verify()
    other = ComposedLayout(Swizzle(1, 0, 1), 0, Layout((8, 2)))
    assert not Proof(ProductLaw(tile, 2, other), *product._fields()[1:]).verify()
    assert prove(ProductLaw(tile, 2, other)).verify()  # its refutation


def test_a_complement_of_coordinates_that_repeats_itself_is_refuted():
    layout, twice = Layout((5, 1), (E(0), E(1))), Layout((2, 2), (5 * E(0), 0))
    proof = prove(ComplementLaws(layout, None, twice))
    assert not proof
    assert proof.verify()


def test_what_an_operation_refuses_is_not_proved_by_what_it_needs():
    injective = Layout((2, 3), (2, 5))  # no layout is its left inverse, though it is injective
    assert claimed(Injective(injective), Growing((0, 1)))
    assert not claimed(LeftInverseLaw(injective), None, Growing((0, 1)))
    assert not claimed(LeftInverseLaw(injective), Growing((0, 1)))


# --------------------------------------------------------------------------------- counterexamples


def test_an_invented_counterexample_does_not_verify():
    injective = Injective(Layout((4, 2), (1, 2)))
    assert denied(injective, (2, 4), ((2, 0), (0, 1)), 2, 2)
    for index, coords, left in (
        ((2, 3), ((2, 0), (3, 0)), 2),
        ((2, 2), ((2, 0), (2, 0)), 2),
        ((2, 4), ((2, 0), (0, 1)), 3),
        ((2, 4), ((2, 0), (1, 1)), 2),
        ((4, 2), ((0, 1), (2, 0)), 2),
        ((2, 12), ((2, 0), (0, 3)), 2),
        (2, (2, 0), 2),
        (None, None, 2),
    ):
        assert not denied(injective, index, coords, left, left)
    equivalent = Equivalent(Layout((4, 2), (1, 4)), Layout(8))
    for found in ((3, (3, 0), 3, 4), (8, (0, 2), 8, 9), (-1, (3, 0), 3, -1), (2.5, 2, 2, 3)):
        assert not denied(equivalent, *found)
    sizes = Equivalent(Layout(4), Layout(8))
    assert denied(sizes, 4, 4, None, 4)
    assert not denied(sizes, 4, 4, None, 7)
    assert not denied(sizes, 3, 3, None, 3)
    assert not denied(Bijective(Layout(8)), 3, 3, 9, 7)
    assert not denied(CompositionLaw(Layout(8), Layout(4)), 2, 2, 2, 3)
    assert not denied(ComplementLaws(Layout(4), 8), None, None, 1, 2)


def test_a_refusal_is_refuted_only_where_no_layout_can_be():
    law = CompositionLaw(Layout((4, 3), (1, 100)), Layout(4, 3))
    assert denied(law, 3, 3, 201, 105)
    for found in ((3, 3, 201, 104), (2, 2, 102, 100), (1, 1, 3, 4), (4, 4, 300, 140)):
        assert not denied(law, *found)


def test_symbols_of_a_counterexample_are_whole_and_complete():
    m, n = symbols("m n")
    law = Equivalent(Layout((m, n), (1, m + 1)), Layout(m * n, 1))
    proof = prove(law)
    found = proof.counterexample
    assert proof.verify()
    for values in (
        (),
        (("m", 1),),
        (("m", 0), ("n", 2)),
        (("m", 1), ("n", 2.0)),
        (*found.symbols, ("k", 1)),
    ):
        assert not denied(law, *found._fields()[:4], values)


class Nothing(Injective):
    """A statement that claims nothing: it looks like one about any layout."""

    __slots__ = ()

    def claims(self):
        return []

    def with_results(self):
        return Bijective(Layout(2, 2))


def test_only_statements_of_this_library_verify():
    """A class from elsewhere says what it likes, wherever it stands in a statement."""
    false = Nothing(Layout(4, 0))
    assert not claimed(false)
    assert not claimed(AllOf((false,)))
    assert denied(false.with_results(), 1, 1, 2, 1)
    assert not denied(false, 1, 1, 2, 1)
    forged = AllOf(())
    object.__setattr__(forged, "statements", [false])
    assert not claimed(forged)
    assert not claimed(type("Anything", (), {"claims": lambda self: []})())
    Nothing.__module__, Nothing.__name__ = Injective.__module__, "Injective"
    assert not claimed(false)
    assert claimed(AllOf(()))
    with pytest.raises(LayoutError, match="not a statement"):
        AllOf((Layout(4),))


def test_what_makes_no_sense_is_false_and_does_not_raise():
    for witness in (None, object(), Chain(None), SameDigits(None, None, None), AsOne(1, 2, 3)):
        for statement in (
            Bijective(Layout(8)),
            Injective(Layout(4, E(0))),
            Equivalent(Layout(8), Layout((4, 2))),
            RightInverseLaw(Layout(8)),
        ):
            assert not claimed(statement, witness)
    assert not Proof(None, True, (), None, ()).verify()
    forged = Bijective(Layout(8))
    object.__setattr__(forged, "layout", "a layout")
    assert not Proof(forged, True, (), None, (CHAIN,)).verify()
    assert not Proof(Bijective(Layout(8)), True, (), None, None).verify()
    assert not Proof(Bijective(Layout(8)), 1, (), None, (Certificate(None, Chain((0,))),)).verify()
    assert not Proof(Bijective(Layout(8)), False, (), "none").verify()
