"""Named modes: a coordinate by name is the layout's own, and the names stay with their modes."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layouts import (
    F2,
    ComposedLayout,
    E,
    Layout,
    LayoutError,
    NamedLayout,
    Swizzle,
    composition,
    from_linear_layout,
    idx2crd,
    logical_divide,
    logical_product,
    named,
    size,
    symbols,
    zipped_divide,
)

SHAPES = st.tuples(*[st.sampled_from([1, 2, 4, 6, (2, 2), (2, 3)])] * 3)
SWIZZLES = st.sampled_from([None, Swizzle(1, 0, 2), Swizzle(2, 1, -2)])


@st.composite
def named_layouts(draw):
    layout, swizzle = Layout(draw(SHAPES)), draw(SWIZZLES)
    return named(layout if swizzle is None else ComposedLayout(swizzle, 4, layout), "m", "n", "k")


@given(named_layouts(), st.permutations(["m", "n", "k"]))
def test_a_coordinate_by_name_is_the_layout_s(x, order):
    for index in range(size(x.shape)):
        at = dict(zip("mnk", idx2crd(index, x.shape), strict=True))
        assert x(**{name: at[name] for name in order}) == x.layout(index) == x(index)
        part = x(m=at["m"])
        assert part.names == ("n", "k")
        rest = part(n=at["n"], k=at["k"])
        if isinstance(x.layout, Layout):
            rest += x.layout((at["m"], 0, 0))
        assert rest == x.layout(index)
        assert x.select(*order)(**at) == x.layout(index)


@given(named_layouts())
def test_operations_by_name_are_those_by_mode(x):
    layout = x.layout
    assert x.logical_divide(n=2).layout == logical_divide(layout, (None, 2, None))
    assert x.composition(k=1, m=1).layout == composition(layout, (1, None, 1))
    tile, rest = x.zipped_divide(n=1, k=1)
    assert [tile.layout, rest.layout] == list(zipped_divide(layout, (None, 1, 1)))
    assert {y.names for y in (tile, rest, x.logical_divide(n=2), x.composition(k=1))} == {x.names}
    assert pickle.loads(pickle.dumps(x)) == x == eval(repr(x))


def test_a_layout_prints_its_names():
    tile = ComposedLayout(Swizzle(3, 3, 3), 64, Layout(((2, 4), 64), ((64, 128), 1)))
    m = symbols("m")
    assert str(named(tile, "row", "column")) == (
        "S<3,3,3> o 64 o (row:(2,4), column:64):((64,128),1)"
    )
    assert str(named(m=m, k=8)) == "(m:m, k:8):(1,m)"
    assert str(named(i=8)) == str(named(Layout(8), "i")) == "(i:8):(1)"
    assert str(named(Layout((4, 8), (E(0), E(1))), "m", "k")) == "(m:4, k:8):(1@0,1@1)"


def test_a_rank_of_one_and_other_strides():
    assert named(Layout(8, 2), "i")(i=3) == 6
    assert named(Layout(8, 2), "i")().names == ("i",)
    assert named(Layout((4, 8), (E(0), E(1))), "m", "k")(k=5, m=1) == (1, 5)
    assert named(Layout((4, 2), (F2(1), F2(5))), "m", "k")(m=1, k=1) == 4
    assert named(m=4, k=8).logical_product(k=2).layout == logical_product(Layout((4, 8)), (None, 2))


def test_a_linear_layout_by_its_dimensions():
    bases = {"register": [[0, 1], [8, 0]], "lane": [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]}
    fragment = named(from_linear_layout(bases), *bases)
    assert str(fragment) == "(register:(2,2), lane:(4,8)):((16,8),(32,1))"
    assert fragment(lane=5, register=3) == 9 + 16 * 3


X = named(m=4, k=8)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: X(n=1), "has no mode 'n': its modes are m, k"),
        (lambda: X["n"], "has no mode 'n'"),
        (lambda: X.select("k", "n"), "has no mode 'n'"),
        (lambda: X.logical_divide(n=2), "has no mode 'n'"),
        (lambda: X(1, m=1), "not both"),
        (lambda: X(m=-1, k=0), "coordinate -1"),
        (lambda: X(m=(None, 1)), "must be a whole coordinate"),
        (lambda: X.select("m", "m"), r"a name of its own, not \(m, m\)"),
        (lambda: named(Layout((4, 8)), "m"), "has 2 modes"),
        (lambda: named(Layout((4, 8)), "m", "1k"), "'1k' must be an identifier"),
        (lambda: named(Layout((4, 8)), "m", 1), "1 must be an identifier"),
        (lambda: named(Layout((4, 8)), m=4), "not both"),
        (lambda: named(4, "m"), "takes a Layout or a ComposedLayout"),
        (lambda: named(m=4, k=Layout(8)), "extents, or layouts, by name"),
        (lambda: NamedLayout(Layout((4, 8)), 7), "7 must be an identifier"),
    ],
)
def test_what_has_no_name_is_refused(call, words):
    with pytest.raises(LayoutError, match=words):
        call()
