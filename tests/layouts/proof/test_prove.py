"""`prove`: proofs as values, what is out of reach, and statements with symbols."""

import pytest

from layouts import (
    Access,
    Bijective,
    ComplementLaws,
    ComposedLayout,
    CompositionLaw,
    ConflictFree,
    E,
    Equivalent,
    Injective,
    Layout,
    LayoutError,
    NoSwizzle,
    ProductLaw,
    RightInverseLaw,
    Swizzle,
    SwizzleInvolution,
    Undecided,
    budget,
    equivalent,
    prove,
    substitute,
    symbols,
)


def test_statements_and_proofs_are_values():
    statement = Bijective(Layout(8))
    assert statement == Bijective(Layout(8)) != Injective(Layout(8))
    assert prove(statement) == prove(statement)
    assert {prove(statement), prove(Bijective(Layout(8)))} == {prove(statement)}
    assert eval(repr(statement), dict(vars(__import__("layouts")))) == statement


@pytest.mark.parametrize(
    "statement",
    [
        Injective(Layout((4, 8), (7, 1))),
        Bijective(Layout(4)),
        Equivalent(Layout(4), Layout(5)),
        CompositionLaw(Layout(8, 2), Layout(4, 3)),
        ConflictFree(Layout(8, 64)),
        NoSwizzle(Layout((8, 64), (64, 1)), (Access(16, Layout(8)),)),
        SwizzleInvolution(),
    ],
    ids=lambda statement: type(statement).__name__,
)
def test_a_statement_is_a_question_and_has_no_truth_value(statement):
    assert str(statement) == f"is it true that {statement.sentence()}?"
    for ask in (bool, lambda asked: not asked, lambda asked: asked or None):
        with pytest.raises(LayoutError, match=r"is a question: prove\(...\) answers it"):
            ask(statement)
    proof = prove(statement)
    answer = "proved" if proof else "refuted"
    assert str(proof).startswith(f"{answer}: {statement.sentence()}"[:90])


@pytest.mark.parametrize("other", [None, 3, "Injective", Layout(4), Injective, prove])
def test_prove_takes_a_statement_alone(other):
    with pytest.raises(LayoutError, match=r"is not a statement; pass one, such as Injective\(lay"):
        prove(other)


def test_what_is_out_of_reach_says_how_many_indices_were_tried_and_how_to_try_more():
    chain = ComposedLayout(Layout((3, 5), (1, 7)), 1, Layout(1 << 23))
    with (
        budget(3000),
        pytest.raises(Undecided, match=r"The first 1500 of 8388608 indices .* layouts\.budget\("),
    ):
        prove(Injective(chain))
    tile = Layout((1000, 520), (520, 1))
    unread = Swizzle(3, 3, 30) @ tile
    both = r"S<3,3,30> o \(1000,520\):\(520,1\) and \(1000,520\):\(520,1\) agree at the first 1000 "
    with budget(3000), pytest.raises(Undecided, match=both + r"of 520000 .* layouts\.budget\("):
        prove(Equivalent(unread, tile))


def test_a_difference_at_one_of_the_first_indices_refutes_also_where_there_are_too_many():
    tile = Layout((1000, 520), (520, 1))
    with budget(30):  # ten indices of two stages and one
        proof = prove(Equivalent(Swizzle(3, 3, 3) @ tile, tile))
    assert not proof
    assert proof.counterexample.index == 8
    assert proof.verify()


def test_a_refuted_equivalence_writes_its_sides_as_its_sentence_does():
    tile = Layout((8, 64), (64, 1))
    (reason,) = prove(Equivalent(Swizzle(3, 3, 3) @ tile, tile)).reason
    assert reason == (
        "at index 1, coordinate (1,0), S<3,3,3> o 0 o (8,64):(64,1) is 72 and (8,64):(64,1) is 64"
    )


def test_a_collision_of_the_first_indices_refutes_also_where_there_are_too_many():
    halves = ComposedLayout(Layout((3, 5), (1, 1)), 0, Layout(1 << 40))
    for statement in (Injective(halves), Bijective(halves)):
        with budget(16):  # eight indices of two stages
            proof = prove(statement)
        assert not proof
        assert proof.verify()


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
    assert prove(false[1])  # d >= 1: the second stride is at least m


def test_what_symbols_leave_open_names_the_inequality():
    m = symbols("m")
    statement = CompositionLaw(Layout((m + 8, 3), (1, m + 8)), Layout(4, 3), Layout(4, 3))
    assert prove(statement)  # coalesces
    statement = Injective(Layout((2, 3, 5), (m * m + 1, 3 * m * m + 1, 11 * m * m + m)))
    proof = prove(statement)
    assert proof.verify()
    with pytest.raises(LayoutError, match=r"not decided.*carry: 3\*m >= 1000.*small"):
        prove(CompositionLaw(Layout((1000, 3), (1, 100)), Layout(4, m), Layout(4, m)))


def test_what_holds_only_where_an_extent_is_at_least_1_is_not_proved():
    """`verify` takes no extent of 0, as m - 1 is for m = 1."""
    m = symbols("m")
    for left, right in (
        (Layout((4, m - 1), (1, 0)), Layout((4, m - 1), (1, 0))),
        (Layout((m - 1, 4), (1, m - 1)), Layout(4 * m - 4)),
    ):
        with pytest.raises(Undecided, match="m - 1 is not shown to be at least 1"):
            prove(Equivalent(left, right))
    assert prove(Injective(Layout((4, m - 1), (1, 4)))).verify()


def test_small_values_are_tried_with_the_results_that_the_symbols_gave():
    # for m = 1 the complement is 32:2, since a mode of extent 1 bounds nothing; (2,16):(2,5) has
    # disjoint and ordered offsets as well
    m = symbols("m")
    law = ProductLaw(Layout((m, 2), (5, 1)), Layout((2, 4, 4), (4, 1, 8)))
    for value in (1, 2, 3):
        assert prove(substitute(law.with_results(), {m: value}))
    other = ProductLaw(*law._fields()[:2], substitute(law.result(), {m: 2}))
    assert not prove(other)
    assert prove(other).verify()


def test_the_same_stages_are_applied_to_the_same_values():
    m, n = symbols("m n")
    inner = ComposedLayout(Swizzle(3, 0, 3), 32, Layout((4 * m, 2), (n, 1)))
    proof = prove(
        Equivalent(
            ComposedLayout(inner, 3, Layout((8, 4), (1, 8))), ComposedLayout(inner, 3, Layout(32))
        )
    )
    assert proof
    assert proof.verify()
    halves = Layout((2, 4), (0, 1))  # what differs before it may agree after it
    assert equivalent(
        ComposedLayout(halves, 0, Layout(4, 2)), ComposedLayout(halves, 0, Layout((2, 2), (2, 4)))
    )
    assert equivalent(
        ComposedLayout(halves, 0, Layout(4, 2)), ComposedLayout(halves, 1, Layout((2, 2), (2, 4)))
    )


def test_indices_of_slow_kinds_take_more_steps():
    a = ComposedLayout(Layout((5, 1000, 3), (E(0), 5 * E(0), E(1))), 8, Layout((60_000, 7)))
    with pytest.raises(Undecided, match="The first 41943 of 420000 indices"):
        prove(Injective(a))
