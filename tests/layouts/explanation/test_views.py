"""Pictures of operations: cells belong together as the law of the operation says."""

from inspect import signature

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import layouts as algebra
from layouts import (
    ComposedLayout,
    Layout,
    LayoutError,
    Swizzle,
    composition,
    cosize,
    size,
    symbols,
)
from layouts.explanation import views
from layouts.explanation.steps import EXPLAINERS

FEWER = settings(max_examples=max(settings().max_examples // 3, 10))
EXTENT = st.sampled_from([1, 2, 2, 3, 4, 6])


@st.composite
def layouts(draw):
    """Layouts of up to three modes, compact or padded, in any order; some modes repeat."""
    extents = draw(st.lists(EXTENT, min_size=1, max_size=3))
    strides, stride = [0] * len(extents), 1
    for k in draw(st.permutations(range(len(extents)))):
        strides[k] = stride if draw(st.integers(0, 9)) else 0
        stride *= extents[k] * draw(st.sampled_from([1, 1, 2]))
    return Layout(tuple(extents), tuple(strides))


def views_of(name, *arguments):
    """The views of an operation; None if it refuses."""
    operation = getattr(algebra, name)
    try:
        return views.views_of(operation, arguments, operation(*arguments))
    except LayoutError:
        return None


def tied(shown):
    """element → for each view the cells that stand for it."""
    found = {}
    for k, view in enumerate(shown.views):
        for i in range(size(view.layout)):
            for element in view.elements(i):
                found.setdefault(element, [[] for _ in shown.views])[k].append(i)
    return found


def value(view, i):
    return view.layout(i) + view.offset


def check_same_offset(shown):
    """Cells of L and R that belong together show the same offset."""
    whole, part = shown.views
    for mine, theirs in tied(shown).values():
        assert len({value(whole, i) for i in mine} | {value(part, i) for i in theirs}) == 1


TILERS = st.one_of(
    EXTENT, layouts(), st.tuples(EXTENT, EXTENT), st.tuples(EXTENT, st.none()), st.tuples(EXTENT)
)


@given(layouts(), TILERS, st.sampled_from(["logical", "zipped", "tiled", "flat"]))
@FEWER
def test_a_divide_shows_each_tile_in_its_parent(layout, tiler, kind):
    shown = views_of(f"{kind}_divide", layout, tiler)
    if shown is None:
        return
    check_same_offset(shown)
    a, _ = shown.views
    groups = {shown.group(element) for i in range(size(layout)) for element in a.elements(i)}
    assert groups == set(range(len(groups)))  # tiles are numbered


@given(layouts(), layouts())
@FEWER
def test_a_composition_shows_which_cell_of_a_each_index_selects(a, b):
    shown = views_of("composition", a, b)
    if shown is None:
        return
    of_a, _, of_r = shown.views
    assert len(tied(shown)) == size(b)
    for element, (selected, mine, result) in tied(shown).items():
        assert mine == result == [element]
        assert all(i == b(element) and value(of_a, i) == value(of_r, element) for i in selected)
        assert selected or b(element) >= size(a)


@given(layouts())
@FEWER
def test_a_complement_shows_every_offset_as_a_sum(layout):
    shown = views_of("complement", layout, 2 * cosize(layout) + 1)
    if shown is None:
        return
    of_l, of_r, _ = shown.views
    for offset, (mine, theirs, memory) in tied(shown).items():
        assert [value(of_l, a) + value(of_r, b) for a in mine for b in theirs][:1] == [offset]
        assert len(memory) == (offset < 2 * cosize(layout) + 1)


@given(layouts(), st.sampled_from(["right_inverse", "left_inverse"]))
@FEWER
def test_an_inverse_shows_both_ways(layout, name):
    shown = views_of(name, layout)
    if shown is None:
        return
    _, inverse = shown.views
    for offset, (indices, offsets) in tied(shown).items():
        assert {layout(i) for i in indices} <= {offset}
        assert offsets == [offset]
        assert value(inverse, offset) in indices


@given(layouts(), layouts(), st.sampled_from(["logical", "zipped", "tiled", "flat"]))
@FEWER
def test_a_product_shows_the_block_in_each_copy(block, copies, kind):
    check_copies(views_of(f"{kind}_product", block, copies), size(block))


@given(layouts(), layouts(), st.sampled_from(["blocked_product", "raked_product"]))
@FEWER
def test_a_product_side_by_side_shows_the_block_in_each_copy(block, copies, name):
    check_copies(views_of(name, block, copies), size(block))


@given(layouts(), st.lists(EXTENT, min_size=3, max_size=3))
@FEWER
def test_tile_to_shape_shows_the_block_in_each_copy(block, counts):
    shape = tuple(n * size(mode) for n, mode in zip(counts, block, strict=False))
    check_copies(views_of("tile_to_shape", block, shape), size(block))


def check_copies(shown, block):
    """Every copy has all cells of the block, each as far from its first as in the block."""
    if shown is None:
        return
    a, *_, r = shown.views
    copies = {}
    for element, cells in tied(shown).items():
        (of_a,), (of_r,) = cells[0], cells[-1]
        assert of_r == element
        copies.setdefault(shown.group(element), {})[of_a] = value(r, of_r) - value(a, of_a)
    for found in copies.values():
        assert len(found) == block
        assert len(set(found.values())) == 1


@given(layouts(), st.sampled_from([(8, 16), (16, 8), (16, 64), (32, 8), (16, 24)]))
@FEWER
def test_recast_shows_the_elements_of_one_unit(layout, widths):
    shown = views_of("recast", layout, *widths)
    if shown is None:
        return
    for cells in tied(shown).values():
        assert cells[0] or cells[1]
    wide = max(widths)
    for view, bits in zip(shown.views, widths, strict=True):
        for i in range(size(view.layout)):
            (unit,) = view.elements(i)
            if max(widths) % min(widths) == 0:
                assert unit == value(view, i) * bits // wide


@given(layouts(), st.data())
@FEWER
def test_parts_are_shown_in_place(layout, data):
    at = tuple(data.draw(st.sampled_from([None, *range(size(mode))])) for mode in layout)
    kept = data.draw(st.permutations(range(len(layout))))[: data.draw(st.integers(1, len(layout)))]
    index = data.draw(st.integers(0, 3))
    calls = [
        ("slice_", (at, layout)),
        ("slice_and_offset", (at, layout)),
        ("dice", (at, layout)),
        ("select", (layout, kept)),
        ("group_modes", (layout, 0, len(layout))),
        ("coalesce", (layout,)),
        ("filter", (layout,)),
    ]
    for name, arguments in calls:
        for whole in (layout, composition(Swizzle(1, 0, 2), layout)):
            given = tuple(whole if x is layout else x for x in arguments)
            check_same_offset(views_of(name, *given))
    for name, argument in [("local_tile", (2, 2)), ("local_partition", Layout((2, 2)))]:
        shown = views_of(name, layout, argument, index)
        if shown is not None:
            check_same_offset(shown)


#: What is explained without a picture: coordinates, bits, a number, and modes that are no part.
WITHOUT = "ComposedLayout Layout Swizzle append crd2crd crd2idx from_bits idx2crd max_common_vector"
WITHOUT += " prepend replace to_bits"


def test_every_other_operation_that_is_explained_has_a_picture():
    without = EXPLAINERS.keys() - views.VIEWERS.keys()
    assert {operation.__name__ for operation in without} == {*WITHOUT.split()}
    assert views.VIEWERS.keys() <= EXPLAINERS.keys()


def test_a_mode_of_size_1_has_a_coordinate_too():
    check_same_offset(views_of("logical_divide", Layout((2, 1)), (1, 1)))
    check_same_offset(views_of("zipped_divide", Layout((2, (1, 1))), (1, 1)))


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("local_tile", (Layout((4, 4)), (2, 2), symbols("m n"))),
        ("local_partition", (Layout((4, 4)), Layout((2, 2)), symbols("m"))),
        ("slice_", ((symbols("m"), None), Layout((4, 4)))),
        ("slice_and_offset", ((symbols("m"), None), Layout((4, 4)))),
    ],
)
def test_a_part_at_a_symbolic_coordinate_has_no_picture(name, arguments):
    assert views_of(name, *arguments) is None


def test_the_last_tile_has_cells_that_stand_for_nothing():
    _, r = views_of("zipped_divide", Layout((3, 4)), (2, 2)).views
    assert [r.elements(i) for i in range(6)] == [(0,), (1,), (3,), (4,), (2,), ()]


STRANGE = (
    None,
    4,
    "x",
    Layout(symbols("m")),
    Layout((4, 4), (symbols("m"), 1)),
    Layout((2, 2), (3, 4)),
    Layout((4, 4), (algebra.E(0), algebra.E(1))),
    Layout((4, 2), (algebra.F2(1), algebra.F2(5))),
    Layout(1 << 40),
    Layout(()),
    Swizzle(1, 0, 1),
    ComposedLayout(Swizzle(2, 0, 3), 4, Layout((4, 8))),
    ComposedLayout(Layout((2, 2), (2, 1)), 0, Layout((2, 2))),
    (2, None),
)


@pytest.mark.parametrize("name", sorted(operation.__name__ for operation in views.VIEWERS))
def test_whatever_is_asked_has_views_or_none(name):
    plain, takes = Layout((4, 4)), signature(getattr(algebra, name))
    for strange in STRANGE:
        for arguments in [(strange,), (plain, strange), (strange, 2), (strange, plain)]:
            try:
                takes.bind(*arguments)
            except TypeError:  # too many arguments, or too few
                continue
            shown = views_of(name, *arguments)
            if shown is not None:
                group = shown.group or int
                assert all(type(group(element)) is int for element in tied(shown))


def test_what_no_tile_holds_stands_for_nothing():
    a, _ = views_of("logical_divide", Layout(16), Layout((2, 2), (3, 4))).views
    assert [i for i in range(16) if not a.elements(i)] == [1, 2, 5, 6, 9, 10, 13, 14]
