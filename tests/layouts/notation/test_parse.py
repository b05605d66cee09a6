"""Reading what CuTe prints."""

import sys
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layouts import ComposedLayout, Layout, LayoutError, Swizzle, parse, symbols
from layouts.notation.expression import evaluate
from layouts.values.stride import F2, E

M, N = symbols("m n")
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
    ("text", "value"),
    [
        ("Swizzle<3,4,3>", Swizzle(3, 4, 3)),
        ("Layout((4, 8), (8, 1))", ROW_MAJOR),
        ("Layout(((2, 4), 8))", Layout(((2, 4), 8))),
        ("ComposedLayout(Swizzle(3, 3, 3), 0, Layout((8, 64), (64, 1)))", TILE),
        ("((4,8):(8,1))", ROW_MAJOR),
        ("(4:1,_)", (Layout(4), None)),
        ("(_128:_1,_64:_1)", (Layout(128), Layout(64))),  # a tiler, in C++
        ("<4:1,2:1>", (Layout(4), Layout(2))),
        ("[4:1;2:1]", (Layout(4), Layout(2))),  # a tiler, in the DSL
        ("ptr[16b](0x7feee1fffbe0) o (_2,_2):(_1,_32)", Layout((2, 2), (1, 32))),
        ("gmem_ptr[32b](0x7f00) o (8,4):(4,1)", Layout((8, 4), (4, 1))),
        ("subptr[4b](0x7f00.4) o (_8,_4):(_4,_1)", Layout((8, 4), (4, 1))),
        ("smem_subptr[4b](0x7f00.0) o (_8,_4):(_4,_1)", Layout((8, 4), (4, 1))),
        ("tmem_[32b](0x0000.0000) o (_128,_64):(_65536,_1)", Layout((128, 64), (65536, 1))),
        ("GMMA::DescriptorIterator o (_1,_1,_4):(_0,_0,_2)", Layout((1, 1, 4), (0, 0, 2))),
        ("UMMA::DescriptorIterator o (_1,_1,_4):(_0,_0,_2)", Layout((1, 1, 4), (0, 0, 2))),
        ("counting_iter(0) o (4,8):(8,1)", ROW_MAJOR),
        ("counting_iter(_0) o (_4,_8):(_8,_1)", ROW_MAJOR),
        ("tensor<ptr<f16, smem, align<128>> o (4,8):(8,1)>", ROW_MAJOR),
        ('!cute.layout<"(4,8):(8,1)">', ROW_MAJOR),
        ('!cute.composed_layout<"S<3,3,3> o 0 o (8,64):(64,1)">', TILE),
        ("1@0", E(0)),
        ("E<0,1>", E(0, 1)),
        ("1@1@0", E(0, 1)),  # C++ and the DSL print the path from the inside out
        ("(4,8):(1@1,1@0)", Layout((4, 8), (E(1), E(0)))),
        ("(8,(2,3)):(1@0,(1@0@1,1@1@1))", Layout((8, (2, 3)), (E(0), (E(1, 0), E(1, 1))))),
        ("8:1@0+2@1", Layout(8, E(0) + 2 * E(1))),
        ("Layout((8, 16), (E(0), 2 * E(1)))", Layout((8, 16), (E(0), 2 * E(1)))),
        ("tensor<(0,(0,0)) o 3:1@0@1>", Layout(3, E(1, 0))),
        ("ArithTuple(0,_0) o ((_64,_128),4):((_1@0,_1@1),_64@0)",
         Layout(((64, 128), 4), ((E(0), E(1)), 64 * E(0)))),
        ("(4,2):(F1,F5)", Layout((4, 2), (F2(1), F2(5)))),
        ("(8*m,n):(1,8*m)", Layout((8 * M, N), (1, 8 * M))),
        ("8*m**2:1", Layout(8 * M**2, 1)),
        ("(-m + n,4):(1,2)", Layout((N - M, 4), (1, 2))),
        ("(4*(m + 1),m**2):(1,m*n)", Layout((4 * (M + 1), M**2), (1, M * N))),
    ],
)  # fmt: skip
def test_parse_reads_what_cute_and_pycute_print(text, value):
    assert parse(text) == value
    if isinstance(value, (Layout, ComposedLayout)):
        assert parse(str(value)) == value
        assert parse(repr(value)) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Layout<Shape<_4,_8>,Stride<_8,_1>>", ROW_MAJOR),
        ("Layout<Shape<_4,_8>,Stride<Int<8>,C<1>>>", ROW_MAJOR),
        ("cute::Layout<cute::tuple<_2, cute::C<4> >, cute::tuple<cute::C<4>, cute::C<1> > >",
         Layout((2, 4), (4, 1))),
        ("Layout<Shape<Shape<_2,_2>,_8>>", Layout(((2, 2), 8))),
        ("Layout<_8,_2>", Layout(8, 2)),
        ("Layout<Shape<_8>>", Layout((8,))),
        ("Shape<_4,Shape<_2,_8>>", (4, (2, 8))),
        ("Tile<Layout<_4,_1>,_8>", (Layout(4), 8)),
        ("ComposedLayout<Swizzle<3,3,3>,_0,Layout<Shape<_8,_64>,Stride<_64,_1>>>", TILE),
        ("cute::ComposedLayout<cute::Swizzle<3, 4, 3>, cute::smem_ptr_flag_bits<16>, cute::Layout<"
         "cute::tuple<cute::C<8>, cute::C<64> >, cute::tuple<cute::C<64>, cute::C<1> > > >",
         ComposedLayout(Swizzle(3, 3, 3), 0, Layout((8, 64), (64, 1)), unit=16)),
    ],
)  # fmt: skip
def test_parse_reads_the_types_of_cpp(text, value):
    assert parse(text) == value


@pytest.mark.parametrize(
    ("text", "swizzle", "offset"),
    [
        ("Sw<1,4,3> o smem_ptr[16b](unset) o (_64,_16):(_16,_1)", Swizzle(1, 3, 3), 0),
        ("Sw<3,4,3>_smem_ptr[16b](0x7f8800000400) o\n\t(_64,_16):(_16,_1)", Swizzle(3, 3, 3), 0),
        ("Sw<3,4,3>_smem_ptr[16b](0x410) o (_64,_16):(_16,_1)", Swizzle(3, 3, 3), 8),
        ("Sw<3,4,3>_smem_ptr[16b](0x80) o (_64,_16):(_16,_1)", Swizzle(3, 3, 3), 64),
        ("Sw<3,4,3>_smem_ptr[16b](0x480) o (_64,_16):(_16,_1)", Swizzle(3, 3, 3), 64),
        ("Sw<0,4,3> o smem_ptr[16b](unset) o (_64,_16):(_16,_1)", Swizzle(0, 3, 3), 0),
        ("tensor<ptr<f16, smem, align<1024>, S<3,4,3>> o (64,16):(16,1)>", Swizzle(3, 3, 3), 0),
    ],
)
def test_a_swizzle_on_a_pointer_acts_on_bytes(text, swizzle, offset):
    value = parse(text)
    assert value == ComposedLayout(swizzle, offset, Layout((64, 16), (16, 1)), unit=16)
    on_bytes = swizzle.recast(16, 8)
    for coord in [(0, 0), (5, 3), (63, 15)]:
        assert 2 * value(coord) == on_bytes(2 * (offset + 16 * coord[0] + coord[1]))


@pytest.mark.parametrize("bits", [4, 8, 16, 32])
@pytest.mark.parametrize("swizzle", ["3,4,3", "2,4,3", "1,5,-2", "2,4,-3", "0,4,3"])
def test_a_swizzle_acts_on_the_sum_of_the_address_and_the_offset(swizzle, bits):
    on_bytes = parse(f"S<{swizzle}>")
    for address in range(0, 1 << 12, 16 + bits // 8):
        address -= address * 8 % bits // 8
        value = parse(f"Sw<{swizzle}>_smem_ptr[{bits}b]({address:#x}) o 128:1")
        start = 8 * address - bits * value.offset
        for index in range(0, 128, 5):
            at = 8 * address + bits * index
            moved = 8 * on_bytes(at // 8) + at % 8
            assert start + bits * value(index) == moved


@pytest.mark.parametrize(("bits", "address"), [(16, 0x81), (32, 0x82), (128, 0x88)])
def test_an_address_inside_an_element_is_refused(bits, address):
    with pytest.raises(LayoutError, match=f"must be a multiple of {bits} bits"):
        parse(f"Sw<3,4,3>_smem_ptr[{bits}b]({address:#x}) o 128:1")


def test_the_address_of_a_subbyte_pointer_counts_bits():
    value = parse("Sw<3,4,3>_smem_subptr[4b](0x81.4) o 64:1")
    assert value == ComposedLayout(Swizzle(3, 5, 3), 2 * 0x81 + 1, Layout(64), unit=4)


def test_an_element_of_0_bits_is_refused():
    with pytest.raises(LayoutError, match="unit 0"):
        parse("Sw<3,4,3>_smem_ptr[0b](0x80) o 128:1")


def test_elements_of_32_and_8_bits():
    assert parse("Sw<3,4,3> o smem_ptr[32b](unset) o (_8,_32):(_32,_1)").inner == Swizzle(3, 2, 3)
    assert parse("tensor<ptr<f8E4M3FN, smem, align<1024>, S<3,4,3>> o 8:1>").inner == Swizzle(
        3, 4, 3
    )


@pytest.mark.parametrize(
    "text",
    [
        "(?{div=8},8):(1,?{div=8})",
        "(?,8):(1,8)",
        "(4,?{i64 div=4}):(1,4)",
        "Layout<Shape<_4,int>,Stride<_1,_4>>",
    ],
)
def test_a_runtime_value_raises_with_advice(text):
    with pytest.raises(LayoutError, match="write the number, or a symbol such as m, or 8\\*m"):
        parse(text)


@pytest.mark.parametrize(
    ("text", "words", "column"),
    [
        ("", "expected an integer", 0),
        ("(4,,8):(8,1)", "expected an integer", 3),
        ("(4,8:(8,1)", "the same nesting", 3),
        ("(4,8):_", "_ is no stride", 6),
        ("(4,8):None", "is no stride", 6),
        ("(4,8):", "expected an integer", 6),
        ("(4,8", "expected ',' or '\\)'", 4),
        ("(4,8))", "expected ':' or 'o'", 5),
        ("(4,8):(8,1) x", "the end", 12),
        ("(4,8):(8,-1)", "no negative", 9),
        ("4.5:1", "cannot be read", 0),
        ("S<3,3>", "expected ", 1),
        ("S<3,3,3> o 0", "a composed layout is written", 11),
        ("S<3,3,3> o 0 o S<3,3,3>", "a composed layout is written", 15),
        ("1:1 o 1 o 1:1 o 1:1", "a composed layout is written", 16),
        ("(4,8) o 0 o 8:1", "a composed layout is written", 12),
        ("(4,8):(8)", "the same nesting", 0),
        ("(0,8):(8,1)", "at least 1", 0),
        ("4:1 o S<3,0,1> o 4:1", "at least BBits", 6),
        ("Layout(4,1,1)", "too many positional", 0),
        ("Layot(4)", "did you mean Layout", 0),
        ("coalesce(4:1)", "no operation coalesce", 0),
        ("tensor<4:1", "expected '>'", 10),
        ("tensor<(1,2) o (8,6):(1@0,1@1)>", "counts from \\(1,2\\)", 15),
        ("ptr<f16, smem, align<128>>", "a layout after the pointer", 26),
        ("GMMA::DescriptorIterator", "a layout after the pointer", 24),
        ("counting_iter(5) o 8:1", "counts from \\(5\\)", 19),
        ("Layout<Shape<_4,_8>,_1>", "the same nesting", 0),
        ("Layout<Shape<_4,_8>", "expected ',' or '>'", 19),
        ("1@x", "written 1@0", 1),
        ("9**9**9", "the end", 4),
        ("9**999", "at most 64", 0),
        ("-m:1 + -4", "no negative", 7),
        ("m + (1,2)", "between integers", 2),
        ("(4\t,8", "expected ','", 5),
        ("(" * 99, "more than 60 parentheses", 63),
    ],
)
def test_errors_mark_the_place(text, words, column):
    with pytest.raises(LayoutError, match=words) as caught:
        parse(text)
    *_, shown, caret = str(caught.value).splitlines()
    assert shown == f"    {text}".replace("\t", " ")
    assert caret == " " * (4 + column) + "^"


@pytest.mark.parametrize("text", ["(4,8):(8)", "(0,8):(8,1)", "S<3,0,1>", "(4,8) o 0 o 8:1"])
def test_an_invalid_layout_raises(text):
    with pytest.raises(LayoutError):
        parse(text)


@given(st.text(alphabet="0123456789()<>[]:,;_ oSwEF@*+-?{}=mn.'\n", max_size=16))
def test_any_text_parses_or_raises_layout_error(text):
    with suppress(LayoutError):
        parse(text)


def test_parse_takes_only_text():
    with pytest.raises(LayoutError, match="expected a string"):
        parse((4, 8))


m, n = symbols("m n")
SWIZZLED = ComposedLayout(Swizzle(3, 3, 3), 0, Layout((8, 64), (64, 1)))
PRINTED = [
    ComposedLayout(SWIZZLED, 5, Layout((4, 4))),
    ComposedLayout(ComposedLayout(SWIZZLED, 2, Layout(9)), 3, Layout((2, 2))),
    ComposedLayout(ComposedLayout(Layout(8), 0, Layout(8, 3)), 3, Layout(2)),
    ComposedLayout(Layout((4, 8), (8, 1)), 8 * m + 1, Layout((2, 2))),
    ComposedLayout(Swizzle(2, 0, -3), m // 8 + m % 4, Layout((4, m), (m, 1))),
    ComposedLayout(Swizzle(1, 0, 1), 0, Layout((4, 2), (F2(1), F2(5)))),
    Layout((4, 8), (m * E(0), E(1, 0))),
    Layout((4, 8), ((2 * m + 1) * E(0), n * E(1))),
    Layout((4, 8), ((m // 8 + 1) * E(0), (m % 4) * E(1, 1) + m * n * E(1, 0))),
    Layout((-(-m // 8), m % 8 + 1, n), (m - n + 7, m**2, m // 8)),
    Layout(((), 4), ((), 1)),
    Swizzle(2, 0, -3),
]


@pytest.mark.parametrize("value", PRINTED, ids=str)
def test_parse_inverts_str_and_repr(value):
    assert parse(str(value)) == value
    assert parse(repr(value)) == value


def test_repr_keeps_an_inner_unit():
    swizzled = ComposedLayout(Swizzle(3, 3, 3), 0, Layout((8, 64), (64, 1)), unit=16)
    value = ComposedLayout(swizzled, 5, Layout((4, 4)))
    assert parse(repr(value)) == value


@pytest.mark.parametrize("text", ["-" * 5000 + "1", "--4:1", "(--m,-(-4)):1"])
def test_signs_without_a_meaning_are_refused(text):
    with pytest.raises(LayoutError):
        parse(text)


def test_two_signs_cancel():
    assert parse("(4,n--m):(1,4)") == parse("(4,n+m):(1,4)")


@pytest.mark.parametrize("text", ["(m/2):1", "7/8:1", "floor(m,n,2):1", "m@n", "m/0", "Mod(8):1"])
def test_fractions_and_wrong_calls_raise(text):
    with pytest.raises(LayoutError):
        parse(text)


def test_a_quotient_of_integers_is_an_integer():
    assert type(parse("8/2:1").shape) is int


def test_integers_divide_without_sympy(monkeypatch):
    monkeypatch.setitem(sys.modules, "sympy", None)
    assert evaluate("(8/2,size((4,8))/4):(8/1,1)") == Layout((4, 8), (8, 1))
    with pytest.raises(LayoutError, match="1 / 0 is not a number"):
        evaluate("1/0")
    assert evaluate("(7/2*2, floor(7/2), ceiling(7/2), Mod(7, 4), 8/(4/3))") == (7, 3, 4, 3, 6)
    with pytest.raises(LayoutError, match=r"must be an integer"):
        evaluate("7/2:1")
    with pytest.raises(LayoutError, match=r"a symbol needs sympy, .* pip install") as refused:
        evaluate("m:1")
    assert isinstance(refused.value.__cause__, ImportError)
