"""Layout as a value and as a function."""

import copy
import pickle
import random
import subprocess
import sys
from collections import Counter
from contextlib import suppress

import numpy as np
import pytest
import sympy
import torch

from layouts import (
    F2,
    ComposedLayout,
    E,
    Layout,
    LayoutError,
    Swizzle,
    cosize,
    crd2idx,
    flatten,
    idx2crd,
    make_counting_tensor,
    make_layout,
    make_ordered_layout,
    rank,
    size,
)
from layouts.values.tuples import leaves, map_leaves

TABLE = [
    (Layout(8), 8, 8),
    (Layout(8, 2), 8, 15),
    (Layout((4, 8)), 32, 32),
    (Layout((4, 8), (8, 1)), 32, 32),
    (Layout((4, 8), (16, 1)), 32, 56),
    (Layout((4, (2, 3)), (0, (1, 5))), 24, 12),
    (Layout(()), 1, 1),
    (Layout(1), 1, 1),
]


@pytest.mark.parametrize(("layout", "sizes", "cosizes"), TABLE)
def test_size_and_cosize(layout, sizes, cosizes):
    assert (size(layout), cosize(layout)) == (sizes, cosizes)
    assert cosize(layout) == max(layout(i) for i in range(sizes)) + 1


@pytest.mark.parametrize(("layout", "sizes", "cosizes"), TABLE)
def test_repr_evaluates_and_values_copy(layout, sizes, cosizes):
    assert eval(repr(layout)) == layout
    assert copy.deepcopy(layout) == pickle.loads(pickle.dumps(layout)) == layout
    assert hash(copy.copy(layout)) == hash(layout)


def test_an_index_counts_coordinates_with_the_leftmost_fastest():
    layout = Layout((4, (2, 3)), (6, (3, 1)))
    offsets = [layout(i, (j, k)) for k in range(3) for j in range(2) for i in range(4)]
    assert [layout(index) for index in range(24)] == offsets
    assert layout(1, (1, 2)) == layout((1, (1, 2))) == layout(1, 5) == 11


def test_the_last_mode_goes_on_beyond_the_size():
    assert Layout((4, 8), (8, 1))(32) == 8
    assert Layout((2, (2, 2)), (1, (2, 9)))(9) == 1 + 2 * 9


def test_default_strides_are_compact_and_0_for_an_extent_of_1():
    assert Layout((4, 1, (2, 1, 3))).stride == (1, 0, (4, 0, 8))  # as C++ and the DSL
    assert Layout(1).stride == 0


def test_modes():
    layout = Layout((4, (2, 3)), (6, (3, 1)))
    assert [str(mode) for mode in layout] == ["4:6", "(2,3):(3,1)"]
    assert (len(layout), layout[1][0], layout[-1]) == (2, Layout(2, 3), layout[1])
    assert (len(Layout(8, 2)), Layout(8, 2)[0], rank(Layout(()))) == (1, Layout(8, 2), 0)
    assert bool(Layout(()))
    with pytest.raises(LayoutError, match="its modes are 0 to 1"):
        layout[2]


@pytest.mark.parametrize(
    ("shape", "stride", "words"),
    [
        ((4, 0), None, "at least 1"),
        ((4, -1), None, "at least 1"),
        (4, -1, "at least 0"),  # C8: negative strides
        (4.0, None, "float"),
        (True, None, "bool"),
        ("4", None, "str"),
        ([4, 8], None, "list"),
        ((4, None), None, "NoneType"),
        (np.ones(3, int), None, "ndarray"),
        ((4, 8), (1,), "same nesting"),
        ((4, 8), 1, "same nesting"),
        (4, (1,), "same nesting"),
        ((4, (2, 2)), (1, 4), "same nesting"),
    ],
)
def test_what_is_no_layout_is_refused_with_a_sentence(shape, stride, words):
    with pytest.raises(LayoutError, match=words):
        Layout(shape, stride)


def test_numpy_integers_become_ints():
    layout = Layout((np.int64(4), np.uint8(8)), (np.int32(8), 1))
    assert layout == Layout((4, 8), (8, 1))
    assert all(type(entry) is int for entry in layout.shape + layout.stride)


class Four(int):
    pass


@pytest.mark.parametrize(
    "four",
    [4.0, np.float64(4), np.float32(4), b"\x04", np.int64(4).tobytes(), bytearray(b"\x04"), "4"],
    ids=repr,
)
def test_a_layout_that_was_made_before_is_not_taken_for_one_of_equal_floats_or_bytes(four):
    kept = [Layout((4, 1), (1, 4)), Layout((np.int64(4), 1), (1, 4)), Layout(4, 1)]
    assert all(kept)
    for shape, stride in [((four, 1), (1, 4)), ((4, 1), (1, four)), (four, 1), (4, four)]:
        with pytest.raises(LayoutError):
            Layout(shape, stride)


def test_a_layout_that_was_made_before_is_not_taken_for_one_of_true_and_lists():
    Layout((4, 1), (1, 4)), Layout((), ())
    for shape, stride in [((4, True), (1, 4)), ((4, 1), (True, 4)), ([4, 1], [1, 4]), ([], [])]:
        with pytest.raises(LayoutError):
            Layout(shape, stride)


def test_other_kinds_of_integers_become_ints_whatever_was_made_before():
    for four in (np.int64(4), np.uint8(4), Four(4)):
        layout = Layout((four, 1), (1, four))
        assert layout == Layout((4, 1), (1, 4))
        assert {type(x) for mode in layout.modes for x in mode} == {int}


NESTED = ((2, 3), (4, (5, 6)), 7)
LEAVES = [(0, 0), (0, 1), (1, 0), (1, 1, 0), (1, 1, 1), (2,)]


def replaced(t, path, leaf):
    """`t` with `leaf` in place of what is at `path`."""
    if not path:
        return leaf
    return (*t[: path[0]], replaced(t[path[0]], path[1:], leaf), *t[path[0] + 1 :])


@pytest.mark.parametrize("leaf", [True, -1, 4.0, "4", None, [4], (4,), (2, 2), {}], ids=repr)
@pytest.mark.parametrize("path", LEAVES, ids=repr)
def test_a_leaf_that_is_no_extent_or_stride_is_refused_wherever_it_is(path, leaf):
    with pytest.raises(LayoutError):
        Layout(replaced(NESTED, path, leaf), NESTED)
    with pytest.raises(LayoutError):
        Layout(NESTED, replaced(NESTED, path, leaf))
    with pytest.raises(LayoutError):
        Layout(replaced(NESTED, path, 0), NESTED)
    assert Layout(NESTED, replaced(NESTED, path, 0))


def test_tuples_nested_more_than_sixty_deep_are_refused():
    shapes = [2]
    for _ in range(5000):
        shapes.append((shapes[-1],))
    assert Layout(shapes[60], shapes[60]).modes == ((2, 2),)
    for shape in (shapes[61], shapes[5000]):
        for parts in [(shape,), (shape, shape), (shape, 1), (2, shape)]:
            with pytest.raises(LayoutError, match="60 deep"):
                Layout(*parts)


@pytest.mark.parametrize("shape", [8, (), (4,), (4, 1), NESTED, ((), (2, ()))], ids=repr)
def test_the_modes_are_the_leaves_whoever_made_the_layout(shape):
    made = Layout(shape)
    modes = tuple(zip(leaves(shape), leaves(made.stride), strict=True))
    assert made.modes == made.modes == modes
    assert make_layout(*made).modes == flatten(made).modes == modes
    assert Layout(shape, made.stride).modes == pickle.loads(pickle.dumps(made)).modes == modes


def test_equality_is_structural_and_with_anything():
    layout = Layout((4, 8))
    assert layout == Layout((4, 8), (1, 4))
    assert hash(layout) == hash(Layout((4, 8), (1, 4)))
    assert layout != Layout((8, 4))
    assert layout != Layout(32)  # the same function, another structure
    assert layout != "(4,8):(1,4)"
    assert layout not in (None, 1, (4, 8))
    match layout:
        case Layout(shape, stride):
            assert (shape, stride) == ((4, 8), (1, 4))


def test_a_layout_never_changes():
    with pytest.raises(AttributeError, match="is frozen"):
        Layout(4).shape = 5
    with pytest.raises(AttributeError, match="is frozen"):
        del Layout(4).shape


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "int64", "uint64"])
def test_numpy_arrays_elementwise_and_in_64_bits(dtype):
    layout = Layout((8, 64), (6400, 1))
    index = np.arange(100, dtype=dtype)
    assert layout(index).tolist() == [layout(i) for i in range(100)]
    assert layout(np.arange(8)[:, None], np.arange(64)).shape == (8, 64)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int32, torch.int64])
def test_torch_tensors_elementwise_and_in_64_bits(dtype):
    layout = Layout(((2, 4), 64), ((6400, 100), 1))
    index = torch.arange(200, dtype=dtype)
    assert layout(index).tolist() == [layout(i) for i in range(200)]
    assert layout(torch.arange(8)[:, None], torch.arange(64)).shape == (8, 64)


def test_stride_0_still_gives_an_array():
    assert Layout((4, 2), (0, 0))(np.arange(8)).tolist() == [0] * 8


def test_symbols_are_taken_as_they_are():
    m, n = sympy.symbols("m n", integer=True, positive=True)
    layout = Layout((8 * m, n), (n, 1))
    assert (str(layout), layout(3, 4), size(layout)) == ("(8*m,n):(n,1)", 3 * n + 4, 8 * m * n)
    assert Layout((m, n)).stride == (1, m)
    assert eval(repr(layout), {"Layout": Layout, "m": m, "n": n}) == layout


class Traced:
    """A kernel-time integer: it has arithmetic; comparing it or taking its truth value fails."""

    def __init__(self, name):
        self.name = name

    def _combined(self, other, sign):
        return Traced(f"({self}{sign}{other})")

    def __add__(self, other):
        return self._combined(other, "+")

    def __mul__(self, other):
        return self._combined(other, "*")

    def __floordiv__(self, other):
        return self._combined(other, "/")

    def __mod__(self, other):
        return self._combined(other, "%")

    __radd__, __rmul__ = __add__, __mul__

    def __str__(self):
        return self.name

    def __repr__(self):
        return self.name

    def __bool__(self):
        raise TypeError("kernel time")

    __eq__ = __lt__ = __gt__ = __le__ = __ge__ = __ne__ = __bool__
    __hash__ = None


def test_kernel_time_integers_are_never_compared():
    m, i = Traced("m"), Traced("i")
    layout = Layout((m, (4, 1)))
    assert str(layout) == "(m,(4,1)):(1,(m,0))"
    assert repr(layout) == "Layout((m, (4, 1)), (1, (m, 0)))"
    assert str(Layout((8, m), (m, 1))(i, 3)) == "((i*m)+3)"
    assert str(Layout((4, 8))(i)) == "(((i%4)*1)+((i/4)*4))"


def test_make_layout_concatenates_layouts_or_takes_shape_and_stride():
    a, b = Layout(4, 2), Layout((2, 3))
    assert make_layout(a, b) == Layout((4, (2, 3)), (2, (1, 2)))
    assert make_layout(b) == Layout(((2, 3),), ((1, 2),))
    assert make_layout() == Layout(())
    assert (
        make_layout((4, 8), (8, 1)) == make_layout((4, 8), stride=(8, 1)) == Layout((4, 8), (8, 1))
    )
    assert make_layout((4, 8)) == Layout((4, 8))
    with pytest.raises(LayoutError, match="layouts alone"):
        make_layout(a, (2, 3))


@pytest.mark.parametrize(
    ("shape", "order", "stride"),
    [
        ((2, 3, 4), (0, 1, 2), (1, 2, 6)),
        ((2, 3, 4), (2, 1, 0), (12, 4, 1)),
        ((2, 3, 4), (1, 7, 3), (1, 8, 2)),
        ((2, (3, 4)), (1, (2, 0)), (4, (8, 1))),
        ((2, (3, 4)), (1, 0), (12, (1, 3))),
        ((2, 1, 4), (2, 1, 0), (4, 0, 1)),
        (6, 0, 1),
    ],
)
def test_make_ordered_layout(shape, order, stride):
    assert make_ordered_layout(shape, order) == Layout(shape, stride)


@pytest.mark.parametrize("order", [(0, 0, 1), (0, 1), (0, 1, (2, 3)), (0, 1, "2")])
def test_orders_that_say_nothing_are_refused(order):
    with pytest.raises(LayoutError, match="order"):
        make_ordered_layout((2, 3, 4), order)


def test_flatten_keeps_the_function():
    nested = Layout((4, (2, (3, 2))), (6, (3, (1, 24))))
    assert flatten(nested) == Layout((4, 2, 3, 2), (6, 3, 1, 24))
    assert all(flatten(nested)(i) == nested(i) for i in range(60))
    assert (flatten(Layout(8)), flatten(8), flatten((8,))) == (Layout(8), 8, (8,))


def test_flatten_takes_what_has_a_layout_too():
    nested, flat = Layout((4, (2, 3)), (6, (3, 1))), Layout((4, 2, 3), (6, 3, 1))
    swizzled = ComposedLayout(Swizzle(1, 0, 2), 4, nested, unit=16)
    assert flatten(swizzled) == swizzled.over(flat)
    assert flatten(make_counting_tensor(nested)).layout == flat


@pytest.mark.parametrize("value", ["abc", 1.0, None, True, [1], np.arange(3), Swizzle(1, 0, 1)])
def test_flatten_refuses_what_has_no_parentheses(value):
    with pytest.raises(LayoutError, match="flatten of"):
        flatten(value)


def test_a_million_nested_coordinates_in_one_call():
    layout = Layout(((4, 8, 4), (2, 2, 16)), ((128, 1, 16), (64, 8, 512)))
    offsets = layout(np.arange(128)[:, None], np.arange(64))
    assert sorted(offsets.ravel().tolist()) == list(range(8192))


def test_import_loads_the_standard_library_alone():
    code = (
        "import sys; before = set(sys.modules); import layouts; "
        "print(sorted({m.split('.')[0] for m in set(sys.modules) - before} "
        "- set(sys.stdlib_module_names)))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "['layouts']"


SWIZZLED = ComposedLayout(Swizzle(3, 3, 3), 0, Layout((4, 8)))


@pytest.mark.parametrize("library", [np.array, torch.tensor])
@pytest.mark.parametrize("function", [Layout((4, 8)), Swizzle(3, 3, 3), SWIZZLED], ids=str)
def test_negative_entries_of_an_array_raise(function, library):
    for wrong in ([3, -1], -1):
        with pytest.raises(LayoutError, match=r"with -1|coordinate -1"):
            function(library(wrong))
    if isinstance(function, Layout):
        with pytest.raises(LayoutError, match="array with -1"):
            function(2, library([3, -1]))
    with pytest.raises(LayoutError, match="as a 64-bit integer"):
        function(np.array([2**63], dtype=np.uint64))
    for wrong in ([True], [1.0], [1j]):
        with pytest.raises(LayoutError, match="must be integers"):
            function(library(wrong))
    assert function(library([0])).tolist() == [0]
    assert function(np.int32(1)) == 1
    assert type(function(np.int32(1))) is int


@pytest.mark.parametrize(
    ("layout", "at"),
    [
        (Layout((4, 8), (1, 2**60)), (np.array([3]), np.array([20]))),
        (Layout(4, 2**61), np.array([3, 9])),
        (Layout(4, 2**61), torch.tensor([3, 9])),
    ],
    ids=str,
)
def test_an_array_beyond_the_size_raises_where_its_offsets_need_more_than_63_bits(layout, at):
    with pytest.raises(LayoutError, match="would wrap around"):
        layout(*at) if isinstance(at, tuple) else layout(at)


@pytest.mark.parametrize("library", [np.asarray, torch.tensor])
@pytest.mark.parametrize(
    "function",
    [
        Layout(4, 1 << 63),
        Layout(1, 1 << 63),
        Layout((1 << 70, 2), (1, 1)),
        Layout((1 << 70, 2), (0, 1)),
        ComposedLayout(Swizzle(1, 0, 2), 1 << 63, Layout(4)),
        pytest.param(lambda c: crd2idx(c, (1 << 70, 2), (0, 1)), id="crd2idx with strides"),
        pytest.param(lambda c: crd2idx(c, (1 << 70, 2)), id="crd2idx"),
        pytest.param(lambda c: idx2crd(c, (1 << 70, 2)), id="idx2crd"),
    ],
    ids=str,
)
def test_an_array_never_meets_a_number_of_more_than_63_bits(library, function):
    with pytest.raises(LayoutError, match="would wrap around; pass integers one by one"):
        function(library([1, 2]))
    assert function(1) is not None


#: Extents, strides and entries, of which some, or their sums and products, need more than 63 bits.
WIDE = [1, 2, 3, 8, 1 << 31, 1 << 61, (1 << 62) + 5, 1 << 63, 1 << 70]
POWERS = [1, 2, 4, 1 << 31, 1 << 62, 1 << 70]


def a_wide_layout(rng):
    shape = rng.choice([(0,), (0, 0), (0, 0, 0), ((0, 0), 0), (0, (0, 0))])
    kind = rng.choice([int, F2, lambda d: d * E(rng.randrange(2))])
    extents = POWERS if kind is F2 else WIDE
    strides = [0, 1, 3, 1 << 31, 1 << 61, 1 << 63]
    return Layout(
        map_leaves(lambda _: rng.choice(extents), shape),
        map_leaves(lambda _: kind(d) if (d := rng.choice(strides)) else 0, shape),
    )


@pytest.mark.parametrize("library", [np.asarray, torch.tensor])
def test_values_at_arrays_are_those_at_their_entries_or_refused(library):
    rng, outcomes = random.Random(0), Counter()
    entries = [0, 1, 2, 3, 20, 1 << 31, 1 << 61, (1 << 63) - 1]
    for _ in range(1500):
        with suppress(LayoutError):  # coordinates do not compose
            function = layout = a_wide_layout(rng)
            if rng.random() < 0.5:
                inner = rng.choice([a_wide_layout(rng), Swizzle(1, 0, 2), Swizzle(2, 3, -5)])
                function = ComposedLayout(inner, rng.choice([0, 3, *WIDE]), layout)
        arrays = [rng.choices(entries, k=3) for _ in range(len(layout))]
        at = arrays if rng.random() < 0.5 else arrays[:1]
        try:
            values = function(*map(library, at))
        except LayoutError as refused:
            outcomes[str(refused).partition("would wrap around")[1]] += 1
            continue
        outcomes["answered"] += 1
        for k in range(3):
            here = map_leaves(lambda x, k=k: int(x[k]) if getattr(x, "ndim", 0) else x, values)
            assert here == function(*(array[k] for array in at))
    assert outcomes.keys() == {"answered", "would wrap around"}
    assert min(outcomes.values()) > 100
