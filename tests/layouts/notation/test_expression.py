"""Expressions of the algebra, as typed on the command line."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

import layouts
from layouts import ComposedLayout, Layout, LayoutError, Swizzle
from layouts.notation.expression import EXCLUDED, evaluate, operations
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
        ("2*(3+4) - 1", 13),
        ("(4 // 3, 7 % 4)", (1, 3)),
        ("_", None),
    ],
)
def test_an_expression_equals_the_same_python(expression, value):
    assert evaluate(expression) == value


def test_an_unknown_name_is_a_positive_integer():
    m, n = symbols("m n")
    assert evaluate("(8*m,n):(1,8*m)") == Layout((8 * m, n), (1, 8 * m))


def test_expressions_know_every_public_operation():
    for name in layouts.__all__:
        if callable(getattr(layouts, name)) and name not in EXCLUDED:
            assert name in operations()


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
        ("4 // 0", "cannot be computed", 2),
        ("((4,8):(8,1))[2]", "mode 2", 0),
        ("((4,8):(8,1))[0,1]", "it must be one integer", 0),
        ("(4,8)[7]", "it has 2 entries", 0),
        ("(4,8):(8,1)[1]", "'\\[' must follow a layout in parentheses", 11),
        ("(4,8):(8,1)(3)", "'\\(' must follow a layout in parentheses", 11),
        ("L[7]", "'\\[' must follow a layout in parentheses", 1),
        ("'(4,8)'", "omit the quotation marks", 0),
        ("coalesce((4,'a'))", "omit the quotation marks", 12),
        ("coalesce('(4,8):(8,1)')", "it takes a Layout", 0),
        ("budget(5)", "no operation budget", 0),
        ("os.system(1)", "expected", 0),
        ("Layout.__init__(4)", "cannot be read", 6),
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
