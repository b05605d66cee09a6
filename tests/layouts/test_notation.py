"""Reading what CuTe prints."""

import pytest

from layouts import ComposedLayout, Layout, LayoutError, Swizzle, parse

ROW_MAJOR = Layout((4, 8), (8, 1))
TILE = ComposedLayout(Swizzle(3, 3, 3), 0, Layout((8, 64), (64, 1)))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("(4,8):(8,1)", ROW_MAJOR),
        ("(_4,_8):(_8,_1)", ROW_MAJOR),  # C++
        ("(4, 8):(8, 1)", ROW_MAJOR),  # pycute
        (" ( 4 , 8 ) : ( 8 , 1 ) ", ROW_MAJOR),
        ("4:1", Layout(4)),
        ("_4:_1", Layout(4)),
        ("(4):(1)", Layout((4,))),
        ("(4,):(1,)", Layout((4,))),
        ("():()", Layout(())),
        ("((2,(3,4)),5):((1,(2,6)),24)", Layout(((2, (3, 4)), 5))),
        ("(4,8)", (4, 8)),
        ("((2,4),8)", ((2, 4), 8)),
        ("_8", 8),
        ("S<3,4,3>", Swizzle(3, 4, 3)),
        ("Sw<3,4,3>", Swizzle(3, 4, 3)),
        ("SW_3_4_3", Swizzle(3, 4, 3)),
        ("S<2,0,-3>", Swizzle(2, 0, -3)),
        ("S<3,3,3> o 0 o (8,64):(64,1)", TILE),
        ("Sw<3,3,3> o _0 o (_8,_64):(_64,_1)", TILE),
        ("SW_3_3_3 o 0 o (8, 64):(64, 1)", TILE),
        ("S<3,3,3> ∘ 0 ∘ (8,64):(64,1)", TILE),
        ("S<3,3,3> o (8,64):(64,1)", TILE),
        ("S<3,3,3>o0o(8,64):(64,1)", TILE),
        ("S<2,0,-3 o 0 o 8:1", ComposedLayout(Swizzle(2, 0, -3), 0, Layout(8))),  # the DSL's
        ("(4,8):(8,1) o 2 o 8:3", ComposedLayout(ROW_MAJOR, 2, Layout(8, 3))),
    ],
)
def test_parse(text, value):
    assert parse(text) == value
    assert parse(str(value)) == value


@pytest.mark.parametrize(
    ("text", "words", "column"),
    [
        ("", "expected an integer", 0),
        ("(4,,8):(8,1)", "expected an integer", 3),
        ("(4,8:(8,1)", "expected ',' or '\\)'", 4),
        ("(4,8):", "expected an integer", 6),
        ("(4,8", "expected ',' or '\\)'", 4),
        ("(4,8))", "expected ':' or 'o'", 5),
        ("(4,8):(8,1) x", "cannot be read", 12),
        ("(4,8):(8,-1)", "cannot be read", 9),
        ("4.5:1", "cannot be read", 1),
        ("S<3,3>", "cannot be read", 0),
        ("S<3,3,3> o 0", "a composed layout is written", 12),
        ("S<3,3,3> o 0 o S<3,3,3>", "a composed layout is written", 23),
        ("1:1 o 1 o 1:1 o 1:1", "a composed layout is written", 19),
    ],
)
def test_errors_mark_the_place(text, words, column):
    with pytest.raises(LayoutError, match=words) as caught:
        parse(text)
    *_, shown, caret = str(caught.value).splitlines()
    assert shown == f"    {text}"
    assert caret == " " * (4 + column) + "^"


@pytest.mark.parametrize("text", ["(4,8):(8)", "(0,8):(8,1)", "S<3,0,1>", "(4,8) o 0 o 8:1"])
def test_what_is_read_must_be_a_layout(text):
    with pytest.raises(LayoutError):
        parse(text)
