"""Bad input: what is not a layout, a coordinate or a statement raises `LayoutError`.

Nothing else is raised: no AssertionError, no RecursionError, nothing from inside.
"""

import re

import numpy as np
import pytest
import sympy

import layouts
from layouts import (
    ComposedLayout,
    E,
    Layout,
    LayoutError,
    Swizzle,
    copy,
    explain,
    ldmatrix,
    make_copy_atom,
    make_counting_tensor,
    make_tensor,
    parse,
    prove,
    slice_,
    symbols,
)
from layouts.values import tuples
from layouts.values.stride import F2
from layouts.values.tuples import DEEPEST

m = symbols("m")


@pytest.mark.parametrize(
    "leaf",
    [sympy.Symbol("x"), m / 2, -m, sympy.pi, sympy.Rational(7, 2), sympy.oo, m + 0.5],
    ids=str,
)
def test_an_expression_that_may_be_no_integer_is_no_extent_stride_or_offset(leaf):
    for make in (
        lambda: Layout(leaf),
        lambda: Layout(4, leaf),
        lambda: Layout(4, leaf * E(0)),
        lambda: ComposedLayout(Swizzle(1, 0, 1), leaf, Layout(4)),
    ):
        with pytest.raises(LayoutError):
            make()


def test_what_sympy_knows_to_be_an_integer_is_taken():
    assert Layout((m // 8, m % 8 + 1)).shape == (m // 8, m % 8 + 1)
    assert type(Layout(sympy.Integer(4)).shape) is int


@pytest.mark.parametrize("step", [1.5 * E(0), -1 * E(0), F2(m), F2(np.array([1]))], ids=str)
def test_a_step_by_no_integer_is_no_stride(step):
    with pytest.raises(LayoutError):
        Layout(4, step)


def test_an_xor_stride_of_a_numpy_integer_is_that_of_an_int():
    assert Layout(2, F2(np.int64(3)))(1) == 3
    with pytest.raises(LayoutError):
        F2(3) * -1


@pytest.mark.parametrize("fields", [(3, 10**12, 3), (10**10, 0, 10**10), (1, 0, 10**12)])
def test_a_swizzle_of_bits_that_no_offset_has_takes_no_memory(fields):
    with pytest.raises(LayoutError, match="above"):
        Swizzle(*fields)


@pytest.mark.parametrize("entry", [1.0, -1, True, "1"])
def test_the_fixed_entries_of_a_slice_are_coordinates(entry):
    for refused in (
        lambda: slice_((None, entry), Layout((4, 8))),
        lambda: layouts.dice((None, entry), Layout((4, 8))),
        lambda: Layout((4, 8))(None, entry),
        lambda: ComposedLayout(Swizzle(1, 0, 1), 0, Layout((4, 8)))(None, entry),
    ):
        with pytest.raises(LayoutError):
            refused()


@pytest.mark.parametrize("value", [4.5, None, "ab", (2, 4.5), [4], {4}, (4, None)], ids=str)
def test_what_is_no_shape_has_no_size(value):
    with pytest.raises(LayoutError):
        layouts.size(value)


@pytest.mark.parametrize(
    "name", ["right_inverse", "left_inverse", "max_common_vector", "upcast", "recast"]
)
def test_a_layout_of_coordinates_has_no_inverse_and_no_other_unit(name):
    identity = Layout((4, 8), (E(0), E(1)))
    arguments = {"max_common_vector": (identity,), "upcast": (2,), "recast": (16, 8)}.get(name, ())
    with pytest.raises(LayoutError, match=r"coordinates|stride 1"):
        getattr(layouts, name)(identity, *arguments)


@pytest.mark.parametrize("block", [Layout((4, 2)), Layout((4, 2), (F2(1), F2(5)))])
def test_copies_are_numbered_by_integers_whatever_the_block(block):
    coordinates = Layout((4, 4), (E(0), E(1)))
    for tiler in (coordinates, (coordinates, None)):
        with pytest.raises(LayoutError, match="the tiler must give integers"):
            layouts.logical_product(block, tiler)


def test_what_is_no_statement_is_not_proved():
    for refused in (lambda: prove(4), lambda: prove("x"), lambda: layouts.equivalent(4, 4)):
        with pytest.raises(LayoutError):
            refused()


def test_numpy_and_sympy_integers_are_tilers_cotargets_factors_and_modes():
    eight = Layout(8)
    for two, sixty_four in ((np.int64(2), np.int64(64)), (sympy.Integer(2), sympy.Integer(64))):
        assert layouts.logical_divide(eight, two) == layouts.logical_divide(eight, 2)
        assert layouts.complement(eight, sixty_four) == layouts.complement(eight, 64)
        assert layouts.upcast(eight, two) == layouts.upcast(eight, 2)
    assert Layout((4, 8))[np.int64(1)] == Layout((4, 8))[1]
    with pytest.raises(LayoutError):
        Layout((4, 8))[True]


#: Calls of an integer, and one that each takes.
OF_AN_INTEGER = {
    "a mode": (lambda n: layouts.size(Layout((4, 8)), n), 1),
    "a path": (lambda n: layouts.rank((4, (2, 8)), [n, n]), 1),
    "a selected mode": (lambda n: layouts.select(Layout((4, 8)), [n]), 1),
    "a swizzle": (lambda n: Swizzle(n, n, n), 2),
    "columns": (lambda n: layouts.from_bits([n, 1]), 2),
    "bases": (lambda n: layouts.LinearLayout({"lane": [[n]]}, {"m": 2 * n}), 4),
    "a tiler": (lambda n: layouts.CompositionLaw(Layout(8), n), 4),
    "a budget": (lambda n: layouts.budget(n).steps, 100),
    "flatten": (layouts.flatten, 4),
    "a mode of a tile": (layouts.make_tiled_mma(layouts.universal_fma()).get_tile_size, 1),
    "a width": (lambda n: layouts.make_copy_atom(n, n), 16),
    "bytes": (layouts.instruction, 16),
    "sectors": (lambda n: layouts.sectors(Layout(32, 2), n), 4),
    "lanes": (lambda n: layouts.Instruction("", n, n), 4),
    "a width in a statement": (lambda n: prove(layouts.ConflictFree(Layout(32), n)), 2),
    "a vector": (lambda n: layouts.NoSwizzle(Layout((8, 8)), (layouts.Access(2),), 16, n), 4),
    "matrices": (layouts.ldmatrix, 4),
    "columns of wgmma": (lambda n: layouts.wgmma(n, "bf16"), 64),
    "a descriptor": (lambda n: layouts.WgmmaDescriptor("K", n, n, n, n), 16),
    "repetitions": (lambda n: layouts.tcgen05_ld("32x32b", n), 4),
    "staged columns": (layouts.staging_report, 32),
}


@pytest.mark.parametrize("name", OF_AN_INTEGER)
def test_an_integer_of_numpy_is_that_of_python(name):
    call, n = OF_AN_INTEGER[name]
    assert repr(call(np.int64(n))) == repr(call(n))
    with pytest.raises(LayoutError):
        call(float(n))
    with pytest.raises(LayoutError):
        call(True)


def nested(depth, leaf=2):
    for _ in range(depth):
        leaf = (leaf,)
    return leaf


def test_what_is_as_deep_as_it_may_be_goes_through_every_operation():
    deepest = Layout(nested(DEEPEST))
    assert deepest(1) == 1
    assert parse(str(deepest)) == parse(repr(deepest)) == deepest
    for name in layouts.algebra.__all__:
        for arguments in ((deepest,), (deepest, 2), (deepest, deepest)):
            outcome(getattr(layouts, name, None), *arguments)


@pytest.mark.parametrize("depth", [DEEPEST + 1, 300])
def test_what_is_deeper_is_refused_wherever_it_stands(depth):
    deep, none, flat = nested(depth), nested(depth, None), Layout((4, 8))
    composed = ComposedLayout(Swizzle(1, 0, 1), 0, flat)
    with pytest.raises(LayoutError):
        Layout(deep)
    public = {*layouts.algebra.__all__, *tuples.__all__} & {*layouts.__all__}
    functions = [getattr(layouts, name) for name in sorted(public)]
    applied = [flat, composed, Swizzle(1, 0, 1), flat.__getitem__, flat.__eq__]
    some = [(deep,), (none,), (deep, deep), (flat, deep), (deep, flat), (none, flat), (deep, 4)]
    for arguments in [*some, (4, deep), (4, deep, deep), (flat, flat, deep)]:
        for function in functions + applied:
            outcome(function, *arguments)
        for function in functions:
            outcome(explain, function, *arguments)


def outcome(function, *arguments):
    """A result, None for a `LayoutError`, or True for Python's own refusal of a call."""
    try:
        return function(*arguments)
    except LayoutError:
        return None
    except TypeError as error:
        if not any(word in str(error) for word in ("argument", "callable", "iterable")):
            raise


def test_an_array_of_coordinates_beyond_64_bits_is_refused():
    """numpy would wrap around without a word."""
    wide = Layout((4, 8), (1 << 62, 1))
    at = np.array([3])
    for function in (
        wide,
        Layout((4, 8), ((1 << 62) * E(0), E(1))),
        Layout((4, 8), (F2(1 << 62), F2(1))),
        Swizzle(2, 0, -62),
        ComposedLayout(Swizzle(1, 0, 1), 1 << 62, Layout(4, 1 << 62)),
        ComposedLayout(Layout(4, 1 << 40), 1 << 30, Layout(4)),
        lambda c: layouts.crd2idx(c, wide.shape, wide.stride),
    ):
        with pytest.raises(LayoutError, match="would wrap around"):
            function(at)
    assert wide(3) == 3 << 62
    assert Layout((4, 8), (1 << 59, 1))(at) == 3 << 59


@pytest.mark.parametrize("path", [(1 << 62,), (-1,), (True,), (m,), ()], ids=str)
def test_what_is_no_path_to_a_coordinate_is_refused(path):
    with pytest.raises(LayoutError, match="mode"):
        E(*path)
    with pytest.raises(LayoutError):
        Layout((2, 3), ((2, 2) * E(0), E(1)))


def test_arguments_that_are_no_layouts_are_refused_by_name():
    L = Layout((4, 8), (8, 1))
    for call in (
        lambda: layouts.Injective(4),
        lambda: layouts.Bijective(None),
        lambda: layouts.Bijective(L, -1),
        lambda: layouts.Bijective(L, ()),
        lambda: explain(Swizzle(1, 0, 1), 1, 2),
        lambda: layouts.CompositionLaw(L, L, 3),
        lambda: layouts.ProductLaw(L, L, m - 1),
        lambda: layouts.DivideLaw(L, 4, "4"),
        lambda: layouts.postcondition(np.array(3), L),
        lambda: layouts.postcondition(slice_, None, None),
        lambda: layouts.wavefronts(0, 8),
        lambda: layouts.sectors(4, 4),
        lambda: layouts.sectors(Layout(1 << 64, 0), 4),
        lambda: layouts.swizzle_for(Layout((16, m), (64, 1)), [layouts.Access(8, Layout(8))]),
        lambda: layouts.table_tv(Layout((1 << 20, 1 << 20)), (1 << 20, 1 << 20)),
        lambda: layouts.table_tv(Layout((2, 2)), (m, 4)),
        lambda: layouts.crd2idx((0, (2,)), (1, (12,)), (E(0, 1), (6,))),
        lambda: layouts.crd2idx((10, 1), (16, 4), (F2(8), m)),
        lambda: layouts.unflatten(True, (2, 3)),
        lambda: layouts.make_ordered_layout((1, 3), (m, 1)),
        lambda: layouts.compatible((2,), ((2, L),)),
    ):
        with pytest.raises(LayoutError):
            call()
    assert not explain(layouts.recast, L, F2(3), 4).result


def test_a_huge_extent_that_does_not_divide_is_refused_at_once():
    with pytest.raises(LayoutError, match=f"element {1 << 62} is misaligned"):
        layouts.upcast(Layout((1 << 62) + 1), 2)
    with pytest.raises(LayoutError, match="element 3 is misaligned"):
        layouts.upcast(Layout(10**30, 3), 10)


@pytest.mark.parametrize("tiler", [(2, 2), (Layout(2), None), None], ids=str)
@pytest.mark.parametrize("name", ["blocked_product", "raked_product"])
@pytest.mark.parametrize("strides", [(1, 2), (F2(1), F2(2))], ids=str)
def test_a_product_side_by_side_takes_one_layout_of_copies(name, tiler, strides):
    with pytest.raises(LayoutError, match=rf"{name}: the tiler .* must be a Layout or an integer"):
        getattr(layouts, name)(Layout((2, 2), strides), tiler)


TILE = Layout((4, 8))
TENSOR = make_counting_tensor(TILE)
DATA = make_tensor(np.arange(32), TILE)

ADVICE = {
    "a list as a shape": (lambda: Layout([2, [4, 8]]), "write a tuple, (2, (4, 8))"),
    "a list of strides": (lambda: Layout((2, 4), [4, 1]), "write a tuple, (4, 1)"),
    "a list as a coordinate": (lambda: TILE([1, 5]), "write a tuple, (1, 5)"),
    "a list as an order": (
        lambda: layouts.make_ordered_layout((2, 4), [1, 0]),
        "write a tuple, (1, 0)",
    ),
    "a layout written out": (lambda: Layout("8:1"), "parse('8:1') reads a layout"),
    "a coordinate as a mode": (lambda: TILE[1, 5], "L(1, 5) is the offset at a coordinate"),
    "a slice": (lambda: TENSOR[1, :], "a whole mode is None, as in T[1, None]"),
    "an ellipsis": (lambda: TENSOR[..., 1], "Ellipsis is an ellipsis: a whole mode is None"),
    "a slice that is set": (lambda: DATA.__setitem__((1, slice(None)), 3), "a whole mode is None"),
    "an array that is copied": (
        lambda: copy(np.arange(32), DATA),
        "an ndarray and must be",
    ),
    "a layout that is copied": (lambda: copy(TILE, TILE), "Layout and must be a Tensor"),
    "an atom that is none": (lambda: copy(3, DATA, DATA), "3 is an int and must be a CopyAtom"),
    "a type of elements": (lambda: make_copy_atom(ldmatrix(4), "f16"), "value_bits 'f16' must be"),
    "Python's filter": (lambda: layouts.filter(None, [0, 1]), "Python's own is builtins.filter"),
    "an access without lanes": (
        lambda: layouts.banks(Layout((64, 64), (64, 1)), "ldmatrix.x4"),
        "for a tile give lanes=, lane → index of a coordinate",
    ),
}


@pytest.mark.parametrize("mistake", ADVICE)
def test_an_error_says_what_to_write(mistake):
    refused, advice = ADVICE[mistake]
    with pytest.raises(LayoutError, match=re.escape(advice)):
        refused()


def test_an_access_with_lanes_is_not_told_to_give_them():
    with pytest.raises(LayoutError, match=r"must be a multiple of the bytes accessed$"):
        layouts.banks(TILE, "ldmatrix.x4", lanes=Layout(32))
