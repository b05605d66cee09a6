"""Every operation on random layouts (2,400 in CI), compared with brute force.

Each result satisfies the law of the operation at every index.  Where an operation raises, brute
force confirms, within its limits, that there was nothing to return.
"""

import random
from collections import Counter
from functools import reduce
from itertools import product as cartesian
from math import gcd, prod
from operator import xor

import pytest
from hypothesis import settings

from layouts import (
    F2,
    ComposedLayout,
    E,
    Layout,
    LayoutError,
    Swizzle,
    blocked_product,
    coalesce,
    complement,
    composition,
    cosize,
    crd2idx,
    dice,
    downcast,
    filter,
    flat_divide,
    flat_product,
    idx2crd,
    left_inverse,
    local_partition,
    logical_divide,
    logical_product,
    make_layout_like,
    make_ordered_layout,
    max_common_layout,
    max_common_vector,
    nullspace,
    raked_product,
    recast,
    right_inverse,
    size,
    slice_,
    slice_and_offset,
    substitute,
    symbols,
    tile_to_shape,
    tiled_divide,
    tiled_product,
    upcast,
    zipped_divide,
    zipped_product,
)
from layouts.algebra.partition import get_flat_coord
from layouts.values.tuples import leaves, map_leaves, unflatten

CASES = 24 * settings().max_examples  # of the profile


# ------------------------------------------------------------------------------- generators


def a_shape(rng, modes=3, extents=(1, 2, 2, 3, 4, 4, 5, 6, 8), nested=0.25):
    shape = tuple(
        a_shape(rng, 2, extents, 0) if rng.random() < nested else rng.choice(extents)
        for _ in range(rng.randint(1, modes))
    )
    return shape[0] if rng.random() < 0.25 else shape


def compact(rng, shape, gaps=(1, 1, 1, 2, 3)):
    """A layout of `shape`, its modes in random order, some with unused offsets between them."""
    extents = leaves(shape)
    strides, stride = [0] * len(extents), rng.choice((1, 1, 1, 2, 3))
    for k in rng.sample(range(len(extents)), len(extents)):
        strides[k], stride = stride, stride * extents[k] * rng.choice(gaps)
    return Layout(shape, unflatten(strides, shape))


def a_layout(rng, **options):
    shape = a_shape(rng, **options)
    if rng.random() < 0.65:
        layout = compact(rng, shape)
        if rng.random() < 0.2:
            layout = Layout(shape, map_leaves(lambda d: d * rng.randint(0, 1), layout.stride))
        return layout
    return Layout(shape, map_leaves(lambda _: rng.choice((0, 1, 2, 3, 4, 6, 8, 12, 16)), shape))


POWERS = (1, 2, 2, 4, 4, 8)


def a_swizzle(rng):
    bits = rng.randint(0, 2)
    return Swizzle(bits, rng.randint(0, 2), rng.choice((-1, 1)) * rng.randint(max(bits, 1), 3))


def an_xor_layout(rng, modes=3):
    shape = a_shape(rng, modes, POWERS)
    return Layout(
        shape, map_leaves(lambda _: F2(rng.choice((0, 1, 2, 4, 8, 16, 3, 5, 9, 6, 18))), shape)
    )


def a_composed(rng):
    outer = compact(rng, a_shape(rng, 2, rng.choice((POWERS, (1, 2, 3, 4, 6)))), (1, 1, 1, 2))
    return ComposedLayout(a_swizzle(rng), rng.choice((0, 0, 0, 1, 8, 32)), outer)


def any_layout(rng):
    return rng.choice((a_layout, a_layout, an_xor_layout, a_composed))(rng)


def a_layout_or_xor(rng, modes=3):
    return rng.choice((a_layout, a_layout, an_xor_layout))(rng, modes=modes)


def cases(seed, *generators, count=CASES):
    """`count` tuples of random arguments."""
    rng = random.Random(seed)
    return [tuple(generator(rng) for generator in generators) for _ in range(count)]


def offsets(layout):
    return [layout(i) for i in range(size(layout))]


def coords(layout):
    return list(cartesian(*(range(size(mode)) for mode in reversed(list(layout)))))


def attempt(operation, *arguments):
    """The result, or None if the operation raises `LayoutError`."""
    try:
        return operation(*arguments)
    except LayoutError:
        return None


# --------------------------------------------------------------------- one layout at a time


def test_coalesce_filter_and_likes():
    for (layout,) in cases(1, a_layout):
        assert offsets(coalesce(layout)) == offsets(layout)
        assert sorted({*offsets(filter(layout))}) == sorted({*offsets(layout)})
        times = size(layout) // size(filter(layout))
        if len({*offsets(filter(layout))}) == size(filter(layout)):
            assert all(offsets(layout).count(x) % times == 0 for x in offsets(filter(layout))[:5])
        like = make_layout_like(layout)
        moved = [
            (d, e, s)
            for s, d, e in zip(
                *map(leaves, (layout.shape, layout.stride, like.stride)), strict=True
            )
        ]
        assert sorted({*offsets(like)}) == list(range(prod(s for d, _, s in moved if d)))
        assert all(
            (e > f) == (d > c) or 1 in (s, t) or 0 in (c, d)
            for d, e, s in moved
            for c, f, t in moved
            if c != d
        )


def test_coalesce_of_xor_and_composed_layouts():
    for (layout,) in cases(2, any_layout):
        assert offsets(coalesce(layout)) == offsets(layout)
        assert cosize(layout) > max(offsets(layout))


def test_nullspace_has_the_indices_that_go_to_0():
    for (layout,) in cases(3, lambda rng: rng.choice((a_layout, an_xor_layout, a_layout))(rng)):
        found = offsets(nullspace(layout))
        assert sorted(found) == [i for i, x in enumerate(offsets(layout)) if x == 0]


def test_right_inverse():
    for (layout,) in cases(4, any_layout):
        inverse = attempt(right_inverse, layout)
        values = offsets(layout)
        if inverse is None:
            assert 0 not in values
            continue
        assert [layout(i) for i in offsets(inverse)] == list(range(size(inverse)))
        plain = not isinstance(layout, ComposedLayout)
        if len({*values}) == len(values) and plain and not is_xor(layout):
            assert size(inverse) not in values


def is_xor(layout):
    return isinstance(layout, Layout) and any(isinstance(d, F2) for d in leaves(layout.stride))


def test_right_inverse_of_swizzled_bijections_is_whole():
    rng = random.Random(5)
    for _ in range(CASES):
        layout = compact(rng, a_shape(rng, 3, POWERS), (1,))
        if cosize(layout) != size(layout):
            continue
        swizzle = a_swizzle(rng)
        swizzled = composition(swizzle, layout)
        inverse = right_inverse(swizzled)
        if {*offsets(swizzled)} == {*range(size(layout))}:
            assert size(inverse) == size(layout)
        assert [swizzled(i) for i in offsets(inverse)] == list(range(size(inverse)))


def test_left_inverse():
    refused = 0
    for (layout,) in cases(6, any_layout):
        values = offsets(layout)
        inverse = attempt(left_inverse, layout)
        if inverse is None:
            moved = (
                offsets(filter(layout))
                if isinstance(layout, Layout) and not is_xor(layout)
                else values
            )
            if len({*moved}) == len(moved):
                refused += 1
                assert not has_left_inverse(layout)
            continue
        assert all(layout(inverse(x)) == x for x in values)
        if len({*values}) == len(values):
            assert [inverse(x) for x in values] == list(range(size(layout)))
    assert refused < 0.2 * CASES


def has_left_inverse(layout):
    """Whether a layout of up to three modes is the left inverse; for small ones only."""
    if isinstance(layout, ComposedLayout) or is_xor(layout):
        return True
    reach, values = cosize(layout), offsets(layout)
    if reach > 20 or len({*values}) < len(values):
        return False
    for first, second in cartesian(range(1, reach + 1), repeat=2):
        for strides in cartesian(range(size(layout)), repeat=3):
            if all(Layout((first, second, reach), strides)(x) == i for i, x in enumerate(values)):
                return True
    return False


def test_complement_of_any():
    for layout, target in cases(7, any_layout, lambda rng: rng.randint(1, 80)):
        rest = attempt(complement, layout, target)
        if rest is None:
            continue
        own, places = sorted({*offsets(layout)}), offsets(rest)
        assert places == sorted({*places})
        sums = {a ^ b if is_xor(layout) else a + b for a in own for b in places}
        if len(sums) < len(own) * len(places):
            assert isinstance(layout, ComposedLayout)
            sums = {a ^ b for a in own for b in places}
        assert len(sums) == len(own) * len(places)
        if is_xor(layout):
            assert sums == {*range(len(sums))}
            assert len(sums) >= target


@pytest.mark.parametrize("n", [2, 3, 4, 8])
def test_upcast_and_downcast(n):
    for (layout,) in cases(8 + n, a_layout_or_xor, count=700):
        up, down = attempt(upcast, layout, n), attempt(downcast, layout, n)
        if up is not None:
            assert {x // n for x in offsets(layout)} == {*offsets(up)}
            ratio = [
                s // t
                for s, t in zip(
                    leaves(layout.shape), [size(m) for m in refined(up, layout)], strict=True
                )
            ]
            for i in range(size(layout)):
                at = idx2crd(i, leaves(layout.shape))
                group = tuple(c // k for c, k in zip(at, ratio, strict=True))
                assert flat(up, layout)(group) == layout(i) // n
        if down is not None:
            assert size(down) == n * size(layout)
            expected = {n * x + r for x in offsets(layout) for r in range(n)}
            assert {*offsets(down)} == expected
            if up is not None and len({*offsets(layout)}) == size(layout):
                assert offsets(upcast(down, n)) == offsets(layout)


def refined(layout, original):
    """The modes of `layout` that stand for the leaves of `original`."""
    shape, stride = layout.shape, layout.stride

    def walk(s, d, o):
        if isinstance(o, tuple):
            return [x for args in zip(s, d, o, strict=True) for x in walk(*args)]
        return [Layout(s, d)]

    return walk(shape, stride, original.shape)


def flat(layout, original):
    modes = refined(layout, original)
    return lambda coord: reduce(
        xor if is_xor(layout) else lambda a, b: a + b,
        [m(c) for m, c in zip(modes, coord, strict=True)],
    )


def test_recast_of_swizzled_layouts_moves_the_same_bytes():
    for (layout,) in cases(20, a_composed):
        for old, new in ((16, 8), (8, 16), (16, 32), (32, 8), (8, 32)):
            result = attempt(
                recast, ComposedLayout(layout.inner, layout.offset, layout.outer, old), old, new
            )
            if result is None:
                continue
            small = min(old, new)
            before = {x * old // small + r for x in offsets(layout) for r in range(old // small)}
            after = {x * new // small + r for x in offsets(result) for r in range(new // small)}
            assert before == after or (new > old and before <= after)
            assert result.unit == new


def test_slices_and_dices():
    rng = random.Random(21)
    for _ in range(CASES):
        layout = any_layout(rng)
        shape = layout.shape if isinstance(layout.shape, tuple) else (layout.shape,)
        layout = layout if isinstance(layout.shape, tuple) else None
        if layout is None:
            continue
        coord = tuple(None if rng.random() < 0.5 else rng.randrange(size(mode)) for mode in shape)
        part, offset = slice_and_offset(coord, layout)
        free = [size(mode) for mode, at in zip(shape, coord, strict=True) if at is None]
        for chosen in cartesian(*map(range, free)):
            entries = iter(chosen)
            whole = tuple(next(entries) if at is None else at for at in coord)
            assert layout(whole) == (
                offset ^ part(chosen) if xors_of(layout) else offset + part(chosen)
            )
        assert size(part) * size(dice(coord, layout)) == size(layout)
        if None in coord:
            assert slice_(coord, layout) == layout(*coord) == part


def xors_of(layout):
    return isinstance(layout, Layout) and is_xor(layout)


# ------------------------------------------------------------------------------ composition


def test_composition_of_any_two():
    answered = 0
    for a, b in cases(30, any_layout, any_layout):
        result = attempt(composition, a, b)
        if result is None:
            assert not is_xor(a) if isinstance(a, Layout) else True
            continue
        answered += 1
        assert offsets(result) == [a(x) for x in offsets(b)], (str(a), str(b), str(result))
        assert size(result) == size(b)
        assert cosize(result) > max(offsets(result))
    assert answered > 0.6 * CASES


def test_a_layout_or_swizzle_after_a_swizzle():
    pushed = 0
    for a, swizzle in cases(31, a_layout, a_swizzle):
        result = composition(a, swizzle)
        assert offsets(result) == [a(swizzle(i)) for i in range(size(a))]
        pushed += isinstance(result, ComposedLayout) and isinstance(result.inner, Swizzle)
    assert pushed > 0.2 * CASES


def test_chains_of_swizzles():
    rng = random.Random(32)
    for _ in range(CASES):
        first, second, third = (a_swizzle(rng) for _ in range(3))
        some = rng.sample(range(1 << 10), 12)
        chain = composition(first, second)
        assert [chain(x) for x in some] == [first(second(x)) for x in some]
        for whole in (composition(third, chain), composition(chain, third)):
            below = size(whole) if isinstance(whole, (Layout, ComposedLayout)) else 1 << 10
            inside = [x for x in some if x < below]
            orders = [(third, first, second), (first, second, third)]
            expected = [[f(g(h(x))) for x in inside] for f, g, h in orders]
            assert [whole(x) for x in inside] in expected


def test_composition_with_coordinate_strides():
    rng = random.Random(33)
    for _ in range(CASES):
        a = rng.choice((a_layout, an_xor_layout))(rng)
        rank = len(a)
        if not isinstance(a.shape, tuple):
            continue
        shape = a_shape(rng, 3, (1, 2, 2, 4))
        steps = [rng.choice((1, 1, 2, 3)) * E(rng.randrange(rank)) for _ in leaves(shape)]
        if rng.random() < 0.2:
            steps[0] = steps[0] + E(rng.randrange(rank))
        b = Layout(shape, unflatten(steps, shape))
        result = attempt(composition, a, b)
        if result is None:
            continue
        padded = [(*b(i), *(0,) * (rank - len(b(i)))) for i in range(size(b))]
        assert offsets(result) == [a(c) for c in padded], (str(a), str(b), str(result))


def test_divides_gather_the_halves():
    for layout, tiler in cases(
        40, any_layout, lambda rng: rng.choice((1, 2, 3, 4, a_layout(rng, modes=2)))
    ):
        halves = attempt(logical_divide, layout, tiler)
        if halves is None:
            continue
        tile = tiler if isinstance(tiler, Layout) else Layout(tiler)
        rest = complement(tile, size(layout))
        assert offsets(halves) == [
            layout(tile(t) + rest(r)) for r in range(size(rest)) for t in range(size(tile))
        ]
        zipped, tiled = zipped_divide(layout, tiler), tiled_divide(layout, tiler)
        assert (
            offsets(zipped)
            == offsets(tiled)
            == offsets(halves)
            == offsets(flat_divide(layout, tiler))
        )


def test_divides_by_mode():
    rng = random.Random(41)
    for _ in range(CASES):
        layout = any_layout(rng)
        if not isinstance(layout.shape, tuple):
            continue
        tilers = tuple(rng.choice((None, 1, 2, 2, 4)) for _ in range(rng.randint(1, len(layout))))
        zipped = attempt(zipped_divide, layout, tilers)
        if zipped is None:
            continue
        sizes = [size(mode) for mode in layout]
        tiles = [n if t is None else t for t, n in zip(tilers, sizes, strict=False)]
        rests = [1 if t is None else -(-n // t) for t, n in zip(tilers, sizes, strict=False)]
        rests += sizes[len(tilers) :]
        tiled, flat_ = tiled_divide(layout, tilers), flat_divide(layout, tilers)
        halves = logical_divide(layout, tilers)
        for at in cartesian(*map(range, tiles)):
            for place in cartesian(*map(range, rests)):
                ends = [p * t + a for a, t, p in zip(at, tiles, place, strict=False)]
                expected = layout((*ends, *place[len(tilers) :]))
                assert zipped(at, place) == tiled(at, *place) == flat_(*at, *place) == expected
        assert size(halves) == size(zipped)


# ---------------------------------------------------------------------------------- product


def test_logical_product_copies_without_overlap():
    for layout, tiler in cases(
        50, a_layout_or_xor, lambda rng: rng.choice((1, 2, 3, 6, a_layout_or_xor(rng, modes=2)))
    ):
        result = attempt(logical_product, layout, tiler)
        if result is None:
            continue
        copies = tiler if isinstance(tiler, Layout) else Layout(tiler)
        xors = is_xor(layout) or is_xor(copies)
        starts = {copies(b): result(0, b) for b in range(size(copies))}
        for b in range(size(copies)):
            for a in range(size(layout)):
                own, start = layout(a), starts[copies(b)]
                assert result(a, b) == (own ^ start if xors else own + start)
        assert [*starts.values()] == sorted(starts.values()) or sorted(starts) != [*starts]
        assert starts[0] == 0
        own, moved = {*offsets(layout)}, {*offsets(copies)}
        assert len({*offsets(result)}) == len(own) * len(moved)
        assert offsets(tiled_product(layout, tiler)) == offsets(zipped_product(layout, tiler))
        assert offsets(flat_product(layout, tiler)) == offsets(result)


def test_blocked_and_raked_products():
    for block, tiler in cases(51, a_layout_or_xor, lambda rng: a_layout_or_xor(rng, modes=2)):
        blocked, raked = (
            attempt(blocked_product, block, tiler),
            attempt(raked_product, block, tiler),
        )
        assert (blocked is None) == (raked is None)
        if blocked is None or size(blocked) > 200:
            continue
        rank = max(len(block), len(tiler))
        a = [size(mode) for mode in block] + [1] * (rank - len(block))
        b = [size(mode) for mode in tiler] + [1] * (rank - len(tiler))
        copied = logical_product(block, tiler)
        for at in cartesian(*map(range, a)):
            for copy in cartesian(*map(range, b)):
                expected = copied(crd2idx(at, tuple(a)), crd2idx(copy, tuple(b)))
                side = tuple(x + n * y for x, n, y in zip(at, a, copy, strict=True))
                between = tuple(y + n * x for x, n, y in zip(at, b, copy, strict=True))
                assert blocked(side) == raked(between) == expected


def test_tile_to_shape():
    rng = random.Random(52)
    for _ in range(CASES):
        block = compact(rng, a_shape(rng, 2, (1, 2, 3, 4)))
        rank = rng.randint(len(block), 3)
        own = [size(mode) for mode in block] + [1] * (rank - len(block))
        shape = tuple(n * rng.choice((1, 2, 3)) for n in own)
        order = tuple(rng.sample(range(rank), rank))
        result = attempt(tile_to_shape, block, shape, order)
        if result is None:
            continue
        assert tuple(map(size, result)) == shape
        counts = tuple(n // k for n, k in zip(shape, own, strict=True))
        copies = make_ordered_layout(counts, order)
        copied = logical_product(block, copies)
        for coord in cartesian(*map(range, shape)):
            inside = tuple(c % k for c, k in zip(coord, own, strict=True))
            place = tuple(c // k for c, k in zip(coord, own, strict=True))
            assert result(coord) == copied(crd2idx(inside, tuple(own)), crd2idx(place, counts))


# ------------------------------------------------------------------------------------ parts


def test_local_partition_gives_every_element_to_one_thread():
    rng = random.Random(60)
    for _ in range(CASES):
        tile = compact(rng, (rng.choice((1, 2, 4)), rng.choice((1, 2, 3))), (1,))
        if cosize(tile) != size(tile):
            continue
        shape = tuple(s * rng.choice((1, 2, 3)) for s in tile.shape)
        layout = compact(rng, shape)
        found = {}
        for thread in range(size(tile)):
            part, offset = local_partition(layout, tile, thread)
            t = next(c for c in cartesian(*map(range, tile.shape)) if tile(c) == thread)
            for r in cartesian(
                *map(range, [n // s for n, s in zip(shape, tile.shape, strict=True)])
            ):
                at = tuple(x + s * y for x, s, y in zip(t, tile.shape, r, strict=True))
                assert offset + part(r) == layout(at)
                found[at] = thread
        assert len(found) == size(layout)


def of_threads(rng):
    """A layout of threads, with gaps or with threads at several coordinates."""
    shape = a_shape(rng, extents=(1, 2, 3, 4))
    return Layout(shape, map_leaves(lambda _: rng.randrange(1, 10), shape))


def compact_threads(rng):
    return compact(rng, a_shape(rng))


def test_a_thread_is_found_at_its_only_coordinate():
    outcomes = set()
    for (threads,) in cases(62, of_threads):
        coords_of = {}
        for coord in cartesian(*(range(size(mode)) for mode in threads)):
            coords_of.setdefault(threads(*coord), []).append(coord)
        for index in range(cosize(threads) + 1):
            found = coords_of.get(index, [])
            outcomes.add(min(len(found), 2))
            if len(found) == 1:
                assert get_flat_coord(threads, index) == found[0]
                continue
            why = "at several coordinates" if found else "has no such thread"
            with pytest.raises(LayoutError, match=why):
                get_flat_coord(threads, index)
    assert outcomes == {0, 1, 2}


def test_a_symbolic_thread_is_found_where_every_thread_is_or_refused():
    rng, t = random.Random(63), symbols("t")
    for padded, chain in cases(64, of_threads, compact_threads, count=CASES // 20):
        assert attempt(get_flat_coord, chain, t) is not None
        for threads in (padded, chain):
            found = attempt(get_flat_coord, threads, t)
            if found is not None:
                index = threads(rng.randrange(size(threads)))
                assert substitute(found, {t: index}) == get_flat_coord(threads, index)


def test_a_padded_layout_of_threads_partitions_as_any_other():
    threads = Layout((4, 8), (1, 5))
    assert local_partition(Layout((8, 40)), threads, 6) == local_partition(
        Layout((8, 40)), Layout((4, 8)), 5
    )
    with pytest.raises(LayoutError, match=r"its stride 5 must be a multiple of 4 \* 1"):
        local_partition(Layout((8, 40)), threads, symbols("t"))


def test_common_vectors_are_contiguous_in_both_and_the_largest():
    longest = 0
    for a, b in cases(61, any_layout, any_layout):
        rng = random.Random(str(a))
        if rng.random() < 0.5 and isinstance(a, Layout) and not is_xor(a):
            b = rng.choice((a, make_layout_like(a), ComposedLayout(a_swizzle(rng), 0, a)))
        pairs = [*zip(offsets(a), offsets(b), strict=False)]
        vector = max_common_vector(a, b)
        if all(len({pair[k] for pair in pairs}) == len(pairs) for k in (0, 1)):
            assert vector == gcd(*run_lengths({*pairs}))
        assert is_cut_into(vector, pairs)
        if a(0) == b(0) == 0:
            common = attempt(max_common_layout, a, b)
            assert common is not None
            assert vector % size(common) == 0
            for layout in (a, b):
                assert [layout(i) for i in offsets(common)] == [*range(size(common))]
        longest = max(longest, vector)
    assert longest > 16


def is_cut_into(vector, pairs):
    """Whether the pairs are some number of runs of `vector` that rise by 1 in both."""
    left = Counter(pairs)
    for x, y in sorted(left):
        begins = left[x, y]
        for k in range(vector if begins else 0):
            left[x + k, y + k] -= begins
            if left[x + k, y + k] < 0:
                return False
    return True


def test_indices_that_share_a_pair_of_offsets_are_cut_into_vectors_too():
    overlapping = ComposedLayout(Swizzle(1, 0, 1), 2, Layout((4, 3), (1, 2)))
    pairs = [(offset, offset) for offset in offsets(overlapping)]
    assert sorted({*pairs}) == [(k, k) for k in range(2, 10)]  # a run of 8, of 12 indices
    vector = max_common_vector(overlapping, overlapping)
    assert vector > 1
    assert is_cut_into(vector, pairs)


def run_lengths(pairs):
    """The lengths of the longest runs of offsets that rise by 1 in both."""
    for x, y in pairs:
        if (x - 1, y - 1) not in pairs:
            yield next(n for n in range(1, len(pairs) + 1) if (x + n, y + n) not in pairs)
