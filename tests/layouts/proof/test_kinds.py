"""`prove` over every kind of layout: the right answer, which verifies, or `Undecided`."""

import pytest

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
    RightInverseLaw,
    Swizzle,
    logical_product,
    prove,
    symbols,
)
from layouts.proof.agreement import Undecided

M, N = symbols("m n")
XOR = Layout((2, 4), (F2(1), F2(6)))
SWIZZLED = ComposedLayout(Swizzle(1, 0, 2), 0, Layout((4, 2)))
LIFTED = ComposedLayout(Swizzle(1, 0, 2), 8, Layout((4, 2)))
COORDINATES = Layout((4, 3), (E(0), E(1)))
SYMBOLIC = Layout((M, 2), (2, 1))

KINDS = (
    Layout((4, 2), (2, 1)),
    XOR,
    SWIZZLED,
    LIFTED,
    COORDINATES,
    SYMBOLIC,
    Layout((3, 2), (0, F2(1))),
)


@pytest.mark.parametrize("layout", KINDS, ids=str)
@pytest.mark.parametrize("other", [XOR, LIFTED, COORDINATES, SYMBOLIC], ids=str)
def test_laws_of_all_kinds_are_decided_or_undecided(layout, other):
    statements = [
        lambda: Injective(layout),
        lambda: Bijective(layout, 8),
        lambda: Equivalent(layout, other),
        lambda: CompositionLaw(layout, other),
        lambda: CompositionLaw(layout, Layout(4), Layout(4, F2(1))),
        lambda: RightInverseLaw(layout),
        lambda: LeftInverseLaw(layout),
        lambda: LeftInverseLaw(layout, other),
        lambda: DivideLaw(layout, other),
        lambda: ProductLaw(layout, other),
        lambda: ComplementLaws(layout, 64),
        lambda: ComplementLaws(layout, 64, other),
    ]
    decided = 0
    for statement in statements:
        try:
            proof = prove(statement())
        except LayoutError:  # a statement that cannot be made, or Undecided
            continue
        assert proof.verify(), str(proof)
        decided += 1
    assert decided >= 2


def test_right_answers_of_each_kind():
    true = [
        Injective(COORDINATES),
        Injective(Layout((M, 4 * N), (E(0), E(1)))),
        Injective(Layout((2, 3), (E(0) + E(1), 2 * E(0)))),
        Bijective(LIFTED, 8),
        ComplementLaws(XOR, 16),
        ComplementLaws(SWIZZLED, 16),
        LeftInverseLaw(XOR),
        LeftInverseLaw(SWIZZLED),
        RightInverseLaw(SWIZZLED),
        DivideLaw(SWIZZLED, 2),
        ProductLaw(SWIZZLED, 2),
        CompositionLaw(Layout((4, 8), (8, 1)), COORDINATES),
    ]
    for statement in true:
        proof = prove(statement)
        assert proof
        assert proof.verify(), str(proof)


def test_refutations_of_each_kind_name_what_can_be_computed_again():
    false = [
        (
            Injective(Layout((2, 4), (E(0), E(0)))),
            Counterexample((1, 2), ((1, 0), (0, 1)), (1,), (1,)),
        ),
        (Bijective(COORDINATES), Counterexample(0, (0, 0), (0, 0), 11)),
        (Injective(Layout((7, 2), (0, F2(1)))), Counterexample((0, 1), ((0, 0), (1, 0)), 0, 0)),
        (LeftInverseLaw(Layout((5, 2), (0, F2(1)))), None),
        (LeftInverseLaw(Layout((2, 2), (1, 1))), Counterexample((1, 2), ((1, 0), (0, 1)), 1, 1)),
        (ComplementLaws(Layout((2, 2), (1, 1))), Counterexample((1, 2), ((1, 0), (0, 1)), 1, 1)),
        (Equivalent(Layout((2, 2), (0, F2(1))), Layout((2, 2), (E(0, 1), E(0, 1)))), None),
        (ProductLaw(SWIZZLED, 2, LIFTED), None),
        (DivideLaw(Layout(8), 2, Layout((2, 2, 2))), None),
    ]
    for statement, found in false:
        proof = prove(statement)
        assert not proof
        assert found is None or proof.counterexample == found
        assert proof.verify(), str(proof)


def test_a_law_whose_operation_refuses_for_another_reason_is_undecided():
    with pytest.raises(Undecided):
        prove(LeftInverseLaw(COORDINATES))
    with pytest.raises(Undecided):
        prove(RightInverseLaw(LIFTED))
    with pytest.raises(LayoutError, match=r"only|takes integers|gives coordinates"):
        prove(CompositionLaw(Swizzle(1, 0, 1), COORDINATES, COORDINATES))


def test_the_product_of_a_padded_tile_is_proved():
    padded = Layout((64, 64), (72, 1))
    proof = prove(ProductLaw(padded, 4, logical_product(padded, 4)))
    assert proof
    assert proof.verify()
