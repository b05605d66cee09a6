"""Expressions of the algebra, as typed on the command line."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

import layouts
from layouts import ComposedLayout, Layout, LayoutError, Swizzle
from layouts.notation.expression import EXCLUDED, evaluate, operations
from layouts.notation.reader import Reader
from layouts.values.symbols import symbols

TILE = ComposedLayout(Swizzle(3, 3, 3), 0, Layout((8, 64), (64, 1)))


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("composition(Swizzle(3,3,3), (8,64):(64,1))", TILE),
        ("Swizzle(3,3,3) @ (8,64):(64,1)", TILE),
        ("S<3,3,3> o 0 o (8,64):(64,1)", TILE),
        ("composition(Layout((6, 2), (8, 2)), (4,3):(3,1))", Layout(((2, 2), 3), ((24, 2), 8))),
        ("logical_divide((4,8):(8,1), (2:1, None))", Layout(((2, 2), 8), ((8, 16), 1))),
        ("logical_divide((4,8):(8,1), <2:1,_>)", Layout(((2, 2), 8), ((8, 16), 1))),
        ("logical_divide((4,2,3):(2,1,8), 4:2)", Layout(((2, 2), (2, 3)), ((4, 1), (2, 8)))),
        ("zipped_divide((8,64):(64,1), (4,16))[0]", Layout((4, 16), (64, 1))),
        ("coalesce(coalesce((2,(1,6)):(1,(6,2))))", Layout(12)),
        ("complement((2,2):(1,6), cotarget=24)", Layout((3, 2), (2, 12))),
        ("make_layout(4:2, 3:1)", Layout((4, 3), (2, 1))),
        ("size((4,8))", 32),
        ("Swizzle(3,3,3)(64)", 72),
        ("((4,8):(8,1))(1, 5)", 13),
        ("Layout((4,8),(8,1))((1,5))", 13),
        ("local_tile((128,64):(64,1), (32,16), (1,2))[1]", 2080),
        ("compatible((4,6), (4,(2,3)))", True),
        (
            "ComposedLayout(Swizzle(3,3,3), 0, 8:64, unit=16)",
            ComposedLayout(Swizzle(3, 3, 3), 0, Layout(8, 64), 16),
        ),
        ("wavefronts(32:16, 'ldmatrix.x4')", layouts.wavefronts(Layout(32, 16), "ldmatrix.x4")),
        ('instruction(name="ldmatrix.x4")', layouts.instruction("ldmatrix.x4")),
        ("instruction(ldmatrix.x4)", layouts.instruction("ldmatrix.x4")),
        ("mma('m16n8k16', 'bf16')", layouts.mma("m16n8k16", "bf16")),
        (
            "banks((8,64):(64,1), 'ldmatrix.x1', lanes=8:1)",
            layouts.banks(Layout((8, 64), (64, 1)), "ldmatrix.x1", lanes=Layout(8)),
        ),
        (
            "swizzle_for(8:64, [ldmatrix.x1, 'stmatrix.x1'])",
            layouts.swizzle_for(Layout(8, 64), ["ldmatrix.x1", "stmatrix.x1"]),
        ),
        ("named((4,8):(1,4), 'm', 'k')", layouts.named(Layout((4, 8)), "m", "k")),
        ("make_ordered_layout((4,8), LayoutRight)", Layout((4, 8), (8, 1))),
        ("TMEM", layouts.TMEM),
        ("MMA", layouts.MMA),
        ("2*(3+4) - 1", 13),
        ("(4 // 3, 7 % 4)", (1, 3)),
        ("_", None),
    ],
)
def test_an_expression_equals_the_same_python(expression, value):
    assert evaluate(expression) == value


def test_a_long_expression_is_shown_around_the_place():
    for expression in ("-" * 20_000 + "(4,8)x", "tensor<" * 5_000, "4:1 o " * 5_000, "(" * 5_000):
        with pytest.raises(LayoutError) as caught:
            evaluate(expression)
        message, shown, caret = str(caught.value).splitlines()
        assert max(map(len, (message, shown, caret))) < 200
        assert shown[len(caret) - 1 :] in ("", expression[-1:]) or "…" in shown


def test_a_lone_name_is_no_symbol_and_brings_no_sympy(monkeypatch):
    monkeypatch.delattr(Reader, "symbol")
    with pytest.raises(LayoutError, match=r"did you mean composition\?"):
        evaluate("compositio")


def test_an_unknown_name_is_a_positive_integer():
    m, n = symbols("m n")
    assert evaluate("(8*m,n):(1,8*m)") == Layout((8 * m, n), (1, 8 * m))


def test_expressions_know_every_public_operation():
    assert {*layouts.__all__} - {*EXCLUDED} <= {*operations()}
    assert not {*EXCLUDED} & {*operations()}


@pytest.mark.parametrize(
    ("expression", "words", "column"),
    [
        ("compos(4:1)", "no operation compos; did you mean composition", 0),
        ("coalesce((4,8):(1,4)", "expected ',' or '\\)'", 20),
        ("size(4, 5, 6)", "size\\(x, mode\\) does not take these", 0),
        ("size()", "missing a required argument: 'x'", 0),
        ("make_layout(4:1, composition((4,3):(1,100), 4:3))", "has no layout", 17),
        ("size", "is an operation: write size", 0),
        ("(1,2) + 3", "between integers", 6),
        ("size((4,8), mode=7)", "mode 7", 0),
        ("size((4,8), mode=0, mode=1)", "mode is given twice", 20),
        ("4 // 0", "cannot be computed", 2),
        ("((4,8):(8,1))[2]", "mode 2", 0),
        ("((4,8):(8,1))[0,1]", "it must be one integer", 0),
        ("(4,8)[7]", "it has 2 entries", 0),
        ("(4,8):(8,1)[1]", "'\\[' must follow a layout in parentheses", 11),
        ("(4,8):(8,1)(3)", "'\\(' must follow a layout in parentheses", 11),
        ("L[7]", "'\\[' must follow a layout in parentheses", 1),
        ("'(4,8)'", "omit the quotation marks", 0),
        ("coalesce((4,'a'))", "must be a Layout", 0),
        ("coalesce('(4,8):(8,1)')", "must be a Layout", 0),
        ("budget(5)", "no operation budget", 0),
        ("Proof(4:1, 2, 3)", "no operation Proof", 0),
        ("ceiling((8,8):(3,4))", "ceiling takes a number or an expression of symbols, not", 0),
        ("Mod(8:1, 2)", "Mod takes a number or an expression of symbols, not 8:1", 0),
        ("stmatrx", r"there is no operation stmatrx; did you mean stmatrix\?", 0),
        ("  m ", "there is no operation m", 0),
        ("mma(m16n8k16, bf16)", "bf16 is a symbol here, and 'bf16' would be a string", 0),
        ("explain(compositon, 4:1, 2:1)", r"symbol here.*; did you mean composition\?", 0),
        ("instruction('ldmatirx.x4')", r"of the table; did you mean ldmatrix\.x4\?", 0),
        ("ldmatrix.x4", "only an argument of an operation is a string", 0),
        ("((4,'a'))", "omit the quotation marks", 4),
        ("os.system(1)", "only an argument", 0),
        ("Layout.__init__(4)", "only an argument", 0),
        ("size(Layout.__init__(4))", "expected ',' or '\\)'", 20),
        ("make_tensor(4, 4:1)", "no operation make_tensor", 0),
        ("tensor<tensor<4:1>>", "not another tensor", 7),
        ("__import__(4)", "no operation __import__", 0),
    ],
)
def test_a_wrong_expression_raises_and_marks_the_place(expression, words, column):
    with pytest.raises(LayoutError, match=words) as caught:
        evaluate(expression)
    *_, shown, caret = str(caught.value).splitlines()
    assert shown == f"    {expression}"
    if column:
        assert caret == " " * (4 + column) + "^"


WORDS = "composition coalesce S<3,3,3> size o m None 4 8 0 ( ) : , [ ] < > @ * // - E = unit ? F3"


@given(st.lists(st.sampled_from(WORDS.split()), max_size=12), st.sampled_from(["", " "]))
def test_any_text_parses_or_raises_layout_error(words, blank):
    with suppress(LayoutError):
        evaluate(blank.join(words))


def test_a_default_is_for_operations_that_have_it_and_are_not_given_it():
    assert evaluate("table((2,4):(4,1))", unit=8).unit == 8
    assert evaluate("table((2,4):(4,1), unit=32)", unit=8).unit == 32
    assert evaluate("table((2,4):(4,1), 32)", unit=8).unit == 32
    assert evaluate("size((2,4))", unit=8) == 8


@pytest.mark.parametrize("before", [0, 29, 30, 31, 500])
@pytest.mark.parametrize("after", [0, 59, 60, 5000])
def test_a_message_quotes_what_is_around_the_place_of_a_long_expression(before, after):
    with pytest.raises(LayoutError) as caught:
        evaluate("1" + "+1" * before + " ] " + "2" * after)
    *_, quoted, caret = str(caught.value).splitlines()
    assert len(quoted) < 180
    assert quoted[caret.index("^")] == "]"
