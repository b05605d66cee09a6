"""Explanations: what is written is what the operation does."""

import builtins
import copy
import pickle
import re

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import layouts as algebra
from layouts import (
    ComposedLayout,
    Layout,
    LayoutError,
    Swizzle,
    coalesce,
    complement,
    composition,
    explain,
    filter,
    idx2crd,
    local_partition,
    local_tile,
    logical_divide,
    logical_product,
    parse,
    right_inverse,
    size,
    symbols,
    table,
    tile_to_shape,
    zipped_divide,
)
from layouts.values.stride import F2, E
from layouts.values.tuples import text as written

EXTENTS = st.lists(st.sampled_from([1, 2, 2, 3, 4, 6, 8]), min_size=1, max_size=3)
MANY = settings(max_examples=3 * settings().max_examples)
FEWER = settings(max_examples=3 * settings().max_examples // 5, deadline=None)


@st.composite
def layouts(draw):
    extents = draw(EXTENTS)
    strides, stride = [0] * len(extents), draw(st.sampled_from([1, 1, 1, 2, 3]))
    for k in draw(st.permutations(range(len(extents)))):
        strides[k] = stride if draw(st.integers(0, 9)) else 0
        stride *= extents[k] * draw(st.sampled_from([1, 1, 1, 2]))
    return Layout(tuple(extents), tuple(strides))


def check(op, *args):
    """The text of an explanation, whose result is the operation's and whose checks all hold."""
    steps = explain(op, *args)
    text = str(steps)
    result, refusal = outcome(op, *args)
    assert steps.result == result
    heading = "has no result" if refusal is not None else f"= {written(result)}"
    assert text.splitlines()[0].endswith(heading)
    if refusal is not None:
        assert re.sub(r"\s+", " ", refusal) in re.sub(r"\s+", " ", text)
    assert "FAILS" not in text
    assert "refuted" not in text
    return text


def outcome(op, *args):
    try:
        return op(*args), None
    except LayoutError as error:
        return None, str(error)


def after(text, start):
    """The text after `start` in the last line that begins with it."""
    lines = [line.strip() for line in text.splitlines()]
    return [line[len(start) :].strip() for line in lines if line.startswith(start)][-1]


def modes(layout):
    flat = coalesce(layout) if size(layout) == 1 else layout
    return " ".join(f"{s}:{d}" for s, d in flat.modes if s != 1)


@given(layouts(), layouts())
@MANY
def test_composition(a, b):
    text = check(composition, a, b)
    if "each digit becomes a mode" in text:
        digits = after(text, "each digit becomes a mode with its weight as stride:")
        result = composition(a, b)
        assert coalesce(parse_modes(digits)) == coalesce(result)


def parse_modes(written):
    pairs = [tuple(map(int, mode.split(":"))) for mode in written.split()]
    return Layout(tuple(s for s, _ in pairs), tuple(d for _, d in pairs))


@given(layouts())
@MANY
def test_coalesce(layout):
    text = check(coalesce, layout)
    assert after(text, "what remains:") in (modes(coalesce(layout)), "none, which is 1:0")


@given(layouts(), st.sampled_from([None, 24, 96, 7]))
@MANY
def test_complement(layout, cotarget):
    check(complement, layout, *([] if cotarget is None else [cotarget]))


@given(layouts())
@MANY
def test_right_inverse(layout):
    text = check(right_inverse, layout)
    steps, result = after(text, "R = ").split(", coalesced ")
    assert coalesce(parse_modes(steps if steps[0].isdigit() else "1:0")) == parse(result)
    assert parse(result) == right_inverse(layout) or "the operation goes further" in text


@given(layouts(), layouts())
@MANY
def test_divide_and_product(a, b):
    for op in (logical_divide, logical_product):
        check(op, a, b)
        check(op, a, (2,))
    check(zipped_divide, a, (2,))


@given(st.integers(0, 4095), st.integers(0, 3), st.integers(0, 4), st.integers(-4, 4))
@MANY
def test_swizzle(x, bits, base, shift):
    if bits and abs(shift) < bits:
        return
    swizzle = Swizzle(bits, base, shift)
    steps = explain(swizzle, x)
    assert steps.result == swizzle(x)
    rows = [line.split() for line in steps.lines]
    width = len(rows[0]) - 1
    for row, value in ((rows[1], x), (rows[4], swizzle(x))):
        assert int(row[0]) == value == int("".join(row[1 : 1 + width]), 2)
    assert steps.lines[-1] == f"check: applied again, it gives {x} back"


def test_the_carry_is_named():
    text = check(composition, Layout((4, 3), (1, 100)), Layout(4, 3))  # C1
    assert "carry: 9 >= 4" in text
    assert "A(B(i)) = 0 3 102 201" in text


def test_a_composed_layout_is_applied_stage_by_stage():
    steps = explain(parse("S<3,3,3> o 8 o (8,64):(64,1)"), 1, 0)
    assert steps.result == 64
    assert steps.lines[:3] == (
        "(1,0) times (64,1): 1*64 + 0*1 = 64",
        "plus the offset: 64 + 8 = 72",
        "S<3,3,3>(72) = 64",
    )


def test_swizzled_operands():
    tile = ComposedLayout(Swizzle(3, 3, 3), 0, Layout((8, 64), (64, 1)))
    for op, argument in ((coalesce, None), (logical_divide, (4, 16)), (composition, (4, None))):
        check(op, tile, *([] if argument is None else [argument]))
    check(composition, Swizzle(3, 3, 3), Layout((8, 64), (64, 1)))


def test_symbols():
    m, n = symbols("m n")
    text = check(composition, Layout((8 * m, n), (n, 1)), Layout((4, 2 * m), (1, 4)))
    assert "proved for all values of the symbols" in text
    text = check(logical_divide, Layout((8 * m, n), (n, 1)), (8, None))
    assert "proved for all values of the symbols" in text
    check(coalesce, Layout((m, n), (1, m)))
    check(complement, Layout(4), 8 * m)
    check(right_inverse, Layout((m, n), (n, 1)))
    text = check(composition, Layout((m, n), (n, 1)), Layout(4, 3))
    assert "carry: 9 >= m is not ruled out" in text


def test_what_cannot_be_explained_says_so():
    def coalesce(layout):
        return layout

    others = (table(Layout((2, 4))), [coalesce], "coalesce", None)
    for op in (size, coalesce, builtins.filter, Layout, Swizzle, *others):
        with pytest.raises(LayoutError, match=r"^explain: [\w ]+ is none of"):
            explain(op, Layout(8))


@pytest.mark.parametrize(
    "result", [Layout((2, 4)), Swizzle(3, 3, 3), Swizzle(3, 3, 3) @ Layout(64)]
)
def test_a_result_alone_is_not_explained_but_the_operation_and_its_arguments_are(result):
    with pytest.raises(
        LayoutError, match=r"as in explain\(composition, A, B\), or a layout and an"
    ):
        explain(result)


def test_an_index_of_numpy_is_explained_as_that_of_python():
    for layout in (Layout((4, 8)), composition(Swizzle(1, 0, 2), Layout((4, 8)))):
        assert str(explain(layout, numpy.int64(6))) == str(explain(layout, 6))
        assert str(explain(layout, (numpy.int64(2), 1))) == str(explain(layout, (2, 1)))
        with pytest.raises(LayoutError, match="one index or coordinate, not an array"):
            explain(layout, numpy.arange(3))


@pytest.mark.parametrize(
    "steps",
    [explain(composition, Layout((4, 8)), Layout((2, 2))), explain(Swizzle(1, 0, 1), 3)],
    ids=str,
)
def test_a_copy_of_an_explanation_has_its_picture(steps):
    for made in (copy.copy(steps), copy.deepcopy(steps), pickle.loads(pickle.dumps(steps))):
        assert made == steps
        assert made._repr_html_() == steps._repr_html_()


OF_ONE = ["filter", "nullspace", "left_inverse", "right_inverse", "coalesce", "complement"]
OF_A_TILER = [
    f"{how}_{what}"
    for how in ("logical", "zipped", "tiled", "flat")
    for what in ("divide", "product")
]
OF_UNITS = [
    ("upcast", (2,)),
    ("upcast", (4,)),
    ("downcast", (3,)),
    ("recast", (16, 32)),
    ("recast", (16, 24)),
]
SWIZZLED = ComposedLayout(Swizzle(2, 1, 3), 16, Layout((8, (4, 2)), (8, (1, 4))), unit=16)


@pytest.mark.parametrize("name", OF_ONE)
@given(layout=layouts())
@FEWER
def test_operations_on_one_layout(name, layout):
    check(getattr(algebra, name), layout)


@pytest.mark.parametrize("name", [*OF_A_TILER, "blocked_product", "raked_product"])
@given(layout=layouts(), tiler=layouts())
@FEWER
def test_divides_and_products_by_a_layout(name, layout, tiler):
    check(getattr(algebra, name), layout, tiler)


@pytest.mark.parametrize("name", OF_A_TILER)
@given(
    layout=layouts(), tilers=st.lists(st.sampled_from([None, 1, 2, 4, Layout(2, 2)]), max_size=3)
)
@FEWER
def test_divides_and_products_by_a_tuple_of_tilers(name, layout, tilers):
    check(getattr(algebra, name), layout, tuple(tilers))


@pytest.mark.parametrize(("name", "factors"), OF_UNITS)
@given(layout=layouts())
@FEWER
def test_units(name, factors, layout):
    check(getattr(algebra, name), layout, *factors)


@given(layouts(), layouts())
@FEWER
def test_what_is_common(a, b):
    check(algebra.max_common_layout, a, b)
    check(algebra.max_common_vector, a, b)


@given(layouts(), st.lists(st.integers(1, 9), min_size=1, max_size=3), st.booleans())
@FEWER
def test_tile_to_shape(block, shape, backwards):
    order = tuple(range(len(shape)))[::-1] if backwards else None
    check(algebra.tile_to_shape, block, tuple(shape), order)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [(name, ()) for name in OF_ONE]
    + [(name, (2,)) for name in [*OF_A_TILER, "blocked_product", "raked_product"]]
    + [("upcast", (2,)), ("downcast", (2,)), ("recast", (16, 8)), ("recast", (16, 32))],
)
def test_operations_on_a_swizzled_layout(name, arguments):
    check(getattr(algebra, name), SWIZZLED, *arguments)


@pytest.mark.parametrize("columns", [[8, 1, 2], [1, 2, 5], [1, 3, 2], []])
def test_bit_matrices(columns):
    layout = algebra.from_bits(columns)
    check(algebra.to_bits, layout)
    check(algebra.to_bits, Layout((3, 4)))
    kind = "swizzle" if isinstance(layout, ComposedLayout) else "integer"
    kind = "XOR strides" if columns == [1, 3, 2] else kind
    assert kind in check(algebra.from_bits, columns)


def test_every_operation_of_the_algebra_is_explained():
    from layouts.algebra import __all__ as names
    from layouts.explanation.steps import EXPLAINERS

    operations = {getattr(algebra, name) for name in {*names} - {"Tile", "gf2"}}
    assert operations <= EXPLAINERS.keys()


@pytest.mark.parametrize(
    ("a", "b", "line"),
    [
        (Swizzle(1, 0, 1), Layout(8), "is a composed layout"),
        (Swizzle(1, 0, 1), Swizzle(1, 0, 1), "is a swizzle"),
        (Swizzle(1, 0, 1), Swizzle(1, 1, 1), "is a layout"),
        (Layout(8), None, "None keeps A whole"),
    ],
    ids=str,
)
def test_the_composition_is_said_to_be_what_it_is(a, b, line):
    assert explain(composition, a, b).lines[-1].endswith(line)


def test_a_refused_composition_is_not_said_to_be_anything():
    swizzled = ComposedLayout(Swizzle(1, 0, 1), 0, Layout(4))
    for b in (Layout(8, E(0)), "a"):
        (line,) = explain(composition, swizzled, b).lines
        assert line.startswith("refused: ")
    (line,) = explain(composition, Layout(4), "a").lines
    assert line.startswith("refused: tiler 'a'")


STRANGE = [
    4,
    None,
    Swizzle(1, 0, 1),
    Layout((4, 4), (E(0), E(1))),
    Layout((4, 2), (F2(1), F2(5))),
]


@pytest.mark.parametrize("other", [None, 2, 2.0, (2, None), (2, 2, 2), *STRANGE[2:]], ids=str)
@pytest.mark.parametrize("strange", STRANGE, ids=str)
@pytest.mark.parametrize("name", [*OF_ONE, *OF_A_TILER, "composition", "blocked_product"])
def test_what_has_other_strides_or_none_is_explained_or_refused(name, strange, other):
    arguments = (strange,) if name in OF_ONE else (strange, other)
    check(getattr(algebra, name), *arguments)


@st.composite
def at_a_coordinate(draw):
    """A layout and a coordinate of it, some of whose entries are left open."""
    layout = draw(layouts())
    entries = [draw(st.sampled_from([None, *range(size(mode))])) for mode in layout]
    return layout, tuple(entries)


@given(at_a_coordinate(), st.sampled_from(["slice_", "dice", "slice_and_offset"]))
@MANY
def test_parts_at_a_coordinate(layout_and_coord, name):
    layout, coord = layout_and_coord
    op = getattr(algebra, name)
    for whole in (layout, composition(Swizzle(2, 0, 3), layout)):
        steps = explain(op, coord, whole)
        assert steps.result == op(coord, whole)
        assert "FAILS" not in str(steps)


@given(layouts(), st.lists(st.integers(1, 4), min_size=1, max_size=3), st.integers(0, 40))
@MANY
def test_tiles_and_partitions(layout, tiler, index):
    tiler = tuple(tiler[: len(layout)])
    threads = Layout(tiler)
    calls = [("local_tile", (layout, tiler, index)), ("local_tile", (layout, tiler, (index % 2,)))]
    calls += [("local_partition", (layout, threads, index % size(threads)))]
    for name, args in calls:
        op = getattr(algebra, name)
        steps = explain(op, *args)
        assert steps.result == outcome(op, *args)[0]
        assert "FAILS" not in str(steps)


@given(EXTENTS, st.integers(0, 500), st.booleans())
@MANY
def test_coordinates(extents, index, nested):
    shape = (tuple(extents), 4) if nested else tuple(extents)
    coord = algebra.idx2crd(index, shape)
    assert f"check crd2idx({written(coord)}" in str(explain(algebra.idx2crd, index, shape))
    assert str(explain(algebra.crd2idx, coord, shape)).endswith(f"= {index}")
    steps = explain(algebra.crd2crd, coord, shape, (3, 7))
    inside = index < min(size(shape), 21)
    assert steps.result == (algebra.idx2crd(index, (3, 7)) if inside else None)


@pytest.mark.parametrize(
    ("operation", "arguments"),
    [
        (composition, (Layout((4, 8)), Layout((2, 2), (E(0), E(1))))),
        (composition, (Layout((4, 8), (F2(1), F2(4))), Layout((2, 2), (E(0), E(1))))),
        (composition, (Layout((), ()), Layout(1, 0))),
        (composition, (Layout((4, 8), (8, 1)), Layout((2, 4), (F2(9), F2(2))))),
        (composition, (Layout(1, E(0)), Layout(2, F2(1)))),
        (composition, (Layout(symbols("m")), Layout((2, symbols("m")), (F2(1), 0)))),
        (local_partition, (Layout(1, E(1)), Layout((), ()), 0)),
        (filter, (ComposedLayout(Swizzle(1, 0, 2), 0, Layout(8)),)),
        (idx2crd, (0, ())),
        (tile_to_shape, (Layout((), ()), ())),
        (local_tile, (Layout((4, 4), (E(0), E(1))), (2, 2), (1, 0))),
        (local_tile, (Layout((8, 4), (F2(3), F2(8))), (2, 2), (1, 0))),
        (local_partition, (Layout(4 * symbols("m")), Layout(2), 1)),
        (local_partition, (Layout(1, F2(1)), Layout((3,), (0,)), 0)),
    ],
)
def test_every_kind_of_stride_is_explained(operation, arguments):
    explanation = explain(operation, *arguments)
    assert "FAILS" not in str(explanation)
    assert explanation.result == attempt(operation, *arguments)


def attempt(operation, *arguments):
    """The result, or None if the operation refuses."""
    try:
        return operation(*arguments)
    except LayoutError:
        return None
