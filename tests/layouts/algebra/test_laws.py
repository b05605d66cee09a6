"""The laws of the algebra on random layouts, held against brute force.

Strides are drawn mostly from products of the extents, so that most pairs are admissible; where an
operation refuses, brute force must find that there was nothing to return.
"""

import re
from itertools import product as cartesian

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from layouts import (
    ComposedLayout,
    Layout,
    LayoutError,
    Swizzle,
    coalesce,
    compatible,
    complement,
    composition,
    congruent,
    cosize,
    crd2idx,
    downcast,
    flatten,
    idx2crd,
    left_inverse,
    local_tile,
    logical_divide,
    logical_product,
    make_layout,
    make_ordered_layout,
    parse,
    rank,
    right_inverse,
    size,
    upcast,
    zipped_divide,
)
from layouts.algebra.complement import covers, period
from layouts.values.tuples import leaves, unflatten

EXTENTS = st.sampled_from([1, 2, 2, 2, 3, 4, 4, 5, 6, 8])
SHAPES = st.recursive(
    EXTENTS, lambda shape: st.lists(shape, min_size=1, max_size=3).map(tuple), max_leaves=4
)
MANY = settings(max_examples=5 * settings().max_examples // 2)


@st.composite
def layouts(draw, shapes=SHAPES):
    """Layouts: half of them compact in some order, or nearly; the others with strides at random."""
    shape = draw(shapes)
    extents = leaves(shape)
    if draw(st.booleans()):
        strides, stride = [0] * len(extents), draw(st.sampled_from([1, 1, 1, 2, 3, 4]))
        for k in draw(st.permutations(range(len(extents)))):
            strides[k] = stride
            stride *= extents[k] * draw(st.sampled_from([1, 1, 1, 1, 2, 3]))
    else:
        some = st.sampled_from([0, 1, 2, 3, 4, 5, 6, 8, 12, 16, 24])
        strides = [draw(some) for _ in extents]
    return Layout(shape, unflatten(strides, shape))


def offsets(layout, count=None):
    return [layout(i) for i in range(size(layout) if count is None else count)]


# ---------------------------------------------------------------------------------- Layout


@given(layouts())
@MANY
def test_index_and_coordinate_agree(layout):
    for index in range(size(layout)):
        coord = idx2crd(index, layout.shape)
        assert congruent(coord, layout.shape)
        assert crd2idx(coord, layout.shape) == index
        assert layout(coord) == layout(index)
    assert cosize(layout) == max(offsets(layout)) + 1
    assert sum(cosize(mode) - 1 for mode in layout) == cosize(layout) - 1


@given(layouts())
def test_text_round_trips(layout):
    assert parse(str(layout)) == layout
    assert eval(repr(layout)) == layout


@given(layouts())
def test_flatten_keeps_the_function(layout):
    assert offsets(flatten(layout)) == offsets(layout)


@given(st.lists(EXTENTS, min_size=1, max_size=4).map(tuple), st.randoms(use_true_random=False))
def test_ordered_layouts_are_bijections_with_rising_strides(shape, random):
    order = random.sample(range(10), len(shape))
    layout = make_ordered_layout(shape, order=tuple(order))
    assert sorted(offsets(layout)) == list(range(size(shape)))
    moving = [(place, d) for place, s, d in zip(order, shape, layout.stride, strict=True) if s > 1]
    assert [d for _, d in sorted(moving)] == sorted(d for _, d in moving)


# -------------------------------------------------------------------------------- coalesce


@given(layouts())
@MANY
def test_coalesce_keeps_the_function_with_the_fewest_modes(layout):
    result = coalesce(layout)
    assert offsets(result) == offsets(layout)
    assert coalesce(result) == result
    assert rank(result) == fewest_modes(offsets(layout))


def fewest_modes(values):
    """The modes that a list of offsets needs: 1, and one for each place where its slope changes."""
    sizes = [d for d in range(1, len(values) + 1) if len(values) % d == 0]
    best = {len(values): 0}  # extent left to explain, in steps: modes so far
    for left in reversed(sizes):
        if left not in best:
            continue
        stride = len(values) // left
        for extent in (s for s in sizes if s > 1 and left % s == 0):
            step = values[stride] if stride < len(values) else 0
            if all(values[i * stride] == i * step for i in range(extent)):
                after = left // extent
                best[after] = min(best.get(after, 99), best[left] + 1)
    return max(best[1], 1)


@given(layouts(st.lists(SHAPES, min_size=1, max_size=3).map(tuple)), st.data())
def test_coalesce_by_mode_keeps_each_mode(layout, data):
    profile = tuple(data.draw(st.sampled_from([1, None, 7])) for _ in layout)
    result = coalesce(layout, profile)
    for before, after, flag in zip(layout, result, profile, strict=True):
        assert after == (before if flag is None else coalesce(before))


# ----------------------------------------------------------------------------- composition


@given(layouts(), layouts())
@settings(max_examples=10 * settings().max_examples)
@example(Layout((8, 8), (8, 1)), Layout(6, 3))  # a digit carries, and yet there is a layout
@example(Layout((4, 3), (1, 100)), Layout((2, 2), (3, 3)))
def test_composition_is_exact(a, b):
    try:
        result = composition(a, b)
    except LayoutError:
        assert not composable(a, b)
        return
    assert offsets(result) == [a(offset) for offset in offsets(b)]
    assert compatible(b.shape, result.shape)


@given(layouts(), st.integers(2, 24), st.integers(1, 9))
@MANY
def test_a_refused_composition_names_the_smallest_index(a, extent, stride):
    b = Layout(extent, stride)
    try:
        composition(a, b)
    except LayoutError as refusal:
        index = int(re.search(r"at index (\d+),", str(refusal)).group(1))
        values = [a(offset) for offset in offsets(b)]
        spreads = [spread(split, values) for split in factorizations(extent)]
        assert any(values[:index] == other[:index] for other in spreads)
        assert not any(values[: index + 1] == other[: index + 1] for other in spreads)


def composable(a, b):
    """Whether some layout is A(B(c)), found by trying all ways to split each extent of B."""
    modes = zip(leaves(b.shape), leaves(b.stride), strict=True)
    values = [[a(i * stride) for i in range(extent)] for extent, stride in modes]
    for leaf in values:
        if not any(leaf == spread(split, leaf) for split in factorizations(len(leaf))):
            return False
    sums = [sum(coord) for coord in cartesian(*reversed(values))]
    return sums == [a(offset) for offset in offsets(b)]


def factorizations(n):
    """All tuples of factors above 1 with product n."""
    if n == 1:
        yield ()
    for first in range(2, n + 1):
        if n % first == 0:
            for rest in factorizations(n // first):
                yield (first, *rest)


def spread(split, values):
    """The offsets of the layout with shape `split` whose strides are read off `values`."""
    places = [1]
    for extent in split:
        places.append(places[-1] * extent)
    strides = tuple(values[place] for place in places[:-1])
    return offsets(Layout(split, strides)) if split else [0]


@given(layouts(st.tuples(SHAPES, SHAPES)), st.data())
@MANY
def test_composition_by_mode_composes_each_mode(layout, data):
    tilers = tuple(data.draw(st.one_of(st.none(), EXTENTS, layouts(EXTENTS))) for _ in layout)
    tilers = tilers[: data.draw(st.integers(1, 2))]
    try:
        result = composition(layout, tilers)
    except LayoutError:
        assume(False)
    assert len(result) == len(tilers)
    for mode, tiler, composed in zip(layout, tilers, result, strict=False):
        inner = mode if tiler is None else Layout(tiler) if isinstance(tiler, int) else tiler
        expected = offsets(mode) if tiler is None else [mode(offset) for offset in offsets(inner)]
        assert offsets(composed) == expected


@given(layouts(), layouts(), layouts())
def test_composition_is_associative(a, b, c):
    try:
        left, right = composition(composition(a, b), c), composition(a, composition(b, c))
    except LayoutError:
        assume(False)
    assume(cosize(c) <= size(b))  # beyond its size, A o B goes on otherwise than A(B(i)) does
    assert offsets(left) == offsets(right)


SWIZZLES = st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(-4, 4)).filter(
    lambda t: t[0] == 0 or abs(t[2]) >= t[0]
)


@given(SWIZZLES, st.integers(0, 40), layouts(), layouts())
def test_composition_after_a_swizzle(bits, offset, outer, b):
    composed = ComposedLayout(Swizzle(*bits), offset, outer)
    try:
        result = composition(composed, b)
    except LayoutError:
        assume(False)
    assert offsets(result) == [composed(i) for i in offsets(b)]
    assert max(offsets(result)) < cosize(result)
    assert parse(str(composed)) == composed


# ------------------------------------------------------------------------------ complement


@given(layouts(), st.integers(1, 200))
@settings(max_examples=10 * settings().max_examples)
def test_complement_is_disjoint_and_ordered_and_fills_all_gaps_that_can_be_filled(layout, cotarget):
    own = sorted(set(offsets(layout)))
    moving = size(tuple(s for s, d in layout.modes if d))
    try:
        result = complement(layout, cotarget)
    except LayoutError:
        assert moving != len(own)  # it is not injective
        return
    places = offsets(result)
    assert places == sorted({*places})
    taken = sorted(a + b for a in own for b in places)
    assert moving == len(own)
    assert len({*taken}) == len(taken)
    covering = taken == list(range(len(taken)))
    assert covering == covers(layout) == tileable(own)
    assert period(make_layout(layout, result)) >= cotarget
    assert max(taken) < period(make_layout(layout, result))
    if covering:
        assert len(taken) >= cotarget


def tileable(own):
    """Whether shifted copies of `own`, each put at the first gap, ever fill a whole interval."""
    filled, gap = set(), 0
    while True:
        copy = {gap + offset for offset in own}
        if copy & filled:
            return False
        filled |= copy
        while gap in filled:
            gap += 1
        if gap == len(filled):
            return True


# ---------------------------------------------------------------------------------- divide


@given(layouts(), layouts())
@settings(max_examples=4 * settings().max_examples)
def test_logical_divide_is_composition_with_the_tile_and_its_complement(layout, tiler):
    try:
        rest = complement(tiler, size(layout))
    except LayoutError:
        assume(False)
    try:
        result = logical_divide(layout, tiler)
    except LayoutError:
        assert not composable(
            layout, Layout((tiler.shape, rest.shape), (tiler.stride, rest.stride))
        )
        return
    expected = [layout(tiler(t) + rest(r)) for r in range(size(rest)) for t in range(size(tiler))]
    assert offsets(result) == expected
    assert (size(result[0]), size(result[1])) == (size(tiler), size(rest))


@given(layouts(st.tuples(SHAPES, SHAPES, SHAPES)), st.data())
@MANY
def test_zipped_divide_gathers_the_halves_of_logical_divide(layout, data):
    tilers = tuple(data.draw(st.one_of(EXTENTS, layouts(EXTENTS))) for _ in layout)
    tilers = tilers[: data.draw(st.integers(1, 3))]
    try:
        halves, zipped = logical_divide(layout, tilers), zipped_divide(layout, tilers)
    except LayoutError:
        assume(False)
    assert zipped[0] == composition(layout, tilers)
    for k in range(3):
        half = halves[k]
        if k < len(tilers):
            assert (zipped[0][k], zipped[1][k]) == (half[0], half[1])
        else:
            assert zipped[1][k] == half


@given(st.tuples(EXTENTS, EXTENTS), st.tuples(EXTENTS, EXTENTS), st.data())
def test_local_tiles_partition_a_matrix(tile, rests, data):
    shape = (tile[0] * rests[0], tile[1] * rests[1])
    matrix = data.draw(layouts(st.just(shape)))
    found = []
    for coord in cartesian(range(rests[0]), range(rests[1])):
        layout, offset = local_tile(matrix, tile, coord)
        for i, j in cartesian(range(tile[0]), range(tile[1])):
            at = (coord[0] * tile[0] + i, coord[1] * tile[1] + j)
            assert offset + layout(i, j) == matrix(at)
            found.append(at)
    assert sorted(found) == sorted(cartesian(range(shape[0]), range(shape[1])))


# --------------------------------------------------------------------------------- inverse


@given(layouts())
@MANY
def test_right_inverse_finds_the_index_of_an_offset(layout):
    result = right_inverse(layout)
    assert [layout(i) for i in offsets(result)] == list(range(size(result)))
    if len(set(offsets(layout))) == size(layout):  # injective: none reaches further
        assert size(result) not in offsets(layout)


# ------------------------------------------------------------ products, units and inverses


@given(layouts(), layouts())
@MANY
def test_logical_product_is_the_block_at_every_copy(block, copies):
    try:
        result = logical_product(block, copies)
    except LayoutError:
        assume(False)
    places = complement(block, size(block) * cosize(copies))
    expected = [b + places(c) for c in offsets(copies) for b in offsets(block)]
    assert offsets(result) == expected
    assert len(set(expected)) == len(set(offsets(block))) * len(set(offsets(copies)))


@given(layouts())
@MANY
def test_left_inverse_finds_the_index_again(layout):
    try:
        inverse = left_inverse(layout)
    except LayoutError:
        return
    assert [layout(inverse(x)) for x in offsets(layout)] == offsets(layout)


@given(layouts(), st.sampled_from([2, 3, 4, 8]))
@MANY
def test_upcast_undoes_downcast(layout, n):
    assume(len(set(offsets(layout))) == size(layout))
    try:
        down = downcast(layout, n)
    except LayoutError:
        assume(False)
    assert offsets(upcast(down, n)) == offsets(layout)
    assert sorted(offsets(down)) == sorted(n * x + r for x in offsets(layout) for r in range(n))


POWERS = st.lists(st.sampled_from([1, 2, 4, 8]), min_size=1, max_size=3).map(tuple)


@given(SWIZZLES, layouts(POWERS))
@MANY
def test_inverses_of_swizzled_layouts(bits, outer):
    swizzled = ComposedLayout(Swizzle(*bits), 0, outer)
    right = right_inverse(swizzled)
    assert [swizzled(i) for i in offsets(right)] == list(range(size(right)))
    if len(set(offsets(outer))) == size(outer):
        try:
            left = left_inverse(swizzled)
        except LayoutError:
            assume(False)
        assert [left(x) for x in offsets(swizzled)] == list(range(size(outer)))


@given(SWIZZLES, layouts())
@MANY
def test_a_layout_after_a_swizzle_is_exact(bits, layout):
    result = composition(layout, Swizzle(*bits))
    assert offsets(result) == [layout(Swizzle(*bits)(i)) for i in range(size(layout))]
