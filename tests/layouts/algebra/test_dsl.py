"""The CuTe DSL as an oracle: what its own compiler returns for random layouts, on the CPU.

The DSL does layout algebra while it traces a ``@cute.jit`` function, which needs no GPU.  Where its
answer satisfies the law, ours must be the same text; it is wrong on a few, and refuses a few more.
"""

import random
from collections import Counter

import pytest
from hypothesis import settings

import layouts
from layouts import (
    E,
    Layout,
    LayoutError,
    Swizzle,
    complement,
    composition,
    idx2crd,
    make_layout,
    parse,
    size,
)
from layouts.values.tuples import leaves, map_leaves, unflatten

cutlass = pytest.importorskip("cutlass")
cute = pytest.importorskip("cutlass.cute")

#: The operations that take the complement of a block or of a tile.
COMPLEMENTED = {"complement", "tile_to_shape"} | {
    f"{how}_{what}"
    for how in ("logical", "zipped", "tiled", "flat", "blocked", "raked")
    for what in ("divide", "product")
}
CASES = 20 * max(25, settings().max_examples)  # of each kind, 2,000 in CI; 0.2 ms of tracing each


def random_layout(rng, nested=True, modes=None):
    shape = tuple(random_shape(rng, nested) for _ in range(modes or rng.randint(1, 3)))
    shape = rng.choice([shape, shape, shape, shape[0]])
    extents = leaves(shape)
    if rng.random() < 0.5:
        return Layout(shape, map_leaves(lambda _: rng.choice([0, 1, 2, 3, 4, 6, 8, 12, 16]), shape))
    strides, stride = [0] * len(extents), rng.choice([1, 1, 2])
    for k in rng.sample(range(len(extents)), len(extents)):
        strides[k] = stride if extents[k] > 1 else 0
        stride *= extents[k]
    return Layout(shape, unflatten(strides, shape))


def random_shape(rng, nested):
    if nested and rng.random() < 0.25:
        return tuple(random_shape(rng, False) for _ in range(rng.randint(1, 2)))
    return rng.choice([1, 2, 2, 3, 4, 4, 6, 8])


def random_tilers(rng, layout):
    kinds = [lambda: rng.choice([1, 2, 4]), lambda: random_layout(rng, nested=False, modes=1)]
    tilers = tuple(rng.choice(kinds)() for _ in layout)
    return tilers[: rng.randint(1, len(tilers))]


def random_cases(seed):
    """Operations and arguments.  Some have no result; on these the DSL may crash."""
    rng = random.Random(seed)
    for _ in range(CASES):
        a, b = random_layout(rng), random_layout(rng)
        tilers = random_tilers(rng, a)
        yield "coalesce", (a,)
        yield "coalesce", (a, tuple(1 for _ in a))
        yield "composition", (a, b)
        yield "composition", (a, tilers)
        yield "complement", (a, rng.randint(1, 100))
        yield "logical_divide", (a, b)
        yield "logical_divide", (a, tilers)
        yield "zipped_divide", (a, tilers)
        yield "right_inverse", (a,)
        yield "left_inverse", (a,)
        yield "nullspace", (a,)
        yield "filter", (a,)
        yield "make_layout_like", (a,)
        yield "tiled_divide", (a, tilers)
        yield "flat_divide", (a, tilers)
        small = random_layout(rng, modes=2)
        yield "logical_product", (a, small)
        yield "logical_product", (a, tilers)
        yield "zipped_product", (a, small)
        yield "tiled_product", (a, small)
        yield "flat_product", (a, small)
        yield "blocked_product", (a, small)
        yield "raked_product", (a, small)
        yield "max_common_layout", (a, b)
        yield "recast", (a, *rng.choice([(8, 16), (16, 8), (32, 8)]))
        last = rng.randint(1, len(a))
        yield "group_modes", (a, rng.randrange(last), last)
        yield "select", (a, rng.choices(range(len(a)), k=2))
        yield "append", (a, b)
        yield "prepend", (a, b, len(a) + rng.randint(0, 2))
        yield from slices(rng, a)
        yield from fillings(rng, a)


def slices(rng, layout):
    if isinstance(layout.shape, tuple):
        coord = tuple(rng.choice([None, rng.randrange(size(mode))]) for mode in layout)
        yield "slice_", (coord, layout)
        yield "dice", (coord, layout)


def fillings(rng, block):
    order = rng.sample(range(3), rng.randint(len(block), 3))
    order = tuple(sorted(order).index(place) for place in order)
    shape = [size(mode) for mode in block] + [1] * (len(order) - len(block))
    yield "tile_to_shape", (block, tuple(n * rng.choice([1, 2, 3]) for n in shape), order)


def interleaves(x):
    """Whether a mode begins before those of smaller strides end.  The DSL takes such a layout for
    one that is not injective: its complement has an extent of 0, and its product kills the process.
    """
    if isinstance(x, tuple):
        return any(map(interleaves, x))
    reach = 0
    for stride, extent in sorted((d, s) for s, d in getattr(x, "modes", ()) if s > 1 and d):
        if stride < reach:
            return True
        reach = stride * extent
    return False


def ours(cases):
    """The cases that have a result, and the results."""
    for name, arguments in cases:
        if name in COMPLEMENTED and any(map(interleaves, arguments)):
            continue
        try:
            yield name, arguments, getattr(layouts, name)(*arguments)
        except LayoutError:
            continue


def lowered(x, known=None):
    """`x` in the DSL; `known` caches layouts."""
    known = {} if known is None else known
    if isinstance(x, Layout):
        if x not in known:
            known[x] = cute.make_layout(x.shape, stride=x.stride)
        return known[x]
    return tuple(lowered(part, known) for part in x) if isinstance(x, tuple) else x


def asked(name, arguments, known):
    """The result of the DSL as text; None if it raises."""
    arguments = [lowered(argument, known) for argument in arguments]
    keywords = {}
    if name in ("slice_", "dice"):
        arguments.reverse()
    if name == "recast":
        name, arguments = "recast_layout", [arguments[2], arguments[1], arguments[0]]
    if name == "coalesce" and len(arguments) == 2:
        keywords = {"target_profile": arguments.pop()}
    try:
        return str(getattr(cute, name)(*arguments, **keywords))
    except Exception:
        return None


def answer_all(cases, answers):
    known = {}
    for name, arguments, result in cases:
        answers.append((name, arguments, result, asked(name, arguments, known)))


@cute.jit
def trace(cases: cutlass.Constexpr, answers: cutlass.Constexpr):
    answer_all(cases, answers)


def values(layout):
    return [layout(i) for i in range(size(layout))]


def right(name, arguments, result):
    """Whether `result` satisfies the law of the operation, by brute force."""
    a, *others = arguments
    b = others[0] if others else None
    if name in ("composition", "logical_divide"):
        return values(result) == through(name, a, b)
    if name == "left_inverse":
        return all(a(result(x)) == x for x in values(a))
    if name == "make_layout_like":
        moves = size(tuple(s for s, d in zip(*map(leaves, (a.shape, a.stride)), strict=True) if d))
        return sorted(set(values(result))) == list(range(moves))
    if name == "max_common_layout":
        same = [a(i) for i in values(result)] == list(range(size(result)))
        return same and layouts.max_common_vector(a, b) % size(result) == 0
    if name == "recast":
        old, new = others
        parts = max(old // new, 1)
        return len(values(result)) == len(values(a)) * old // new and set(values(result)) == {
            x * parts + r for x in values(a) for r in range(parts)
        }
    if name.endswith("product") and isinstance(b, Layout):
        places = complement(a, size(a) * layouts.cosize(b))
        copies = {places(x) for x in values(b)}
        return set(values(result)) == {x + y for x in values(a) for y in copies}
    if name == "logical_product":
        halves = list(zip(a, b, result, strict=False))
        return all(right(name, (mode, tiled(tiler)), half) for mode, tiler, half in halves)
    if name in ("select", "group_modes", "append", "prepend"):
        return True
    raise NotImplementedError(f"{name}{tuple(map(str, arguments))}")


def tiled(tiler):
    return Layout(tiler) if isinstance(tiler, int) else tiler


def through(name, a, b):
    """The values that a composition or a divide must have."""
    tilers = b if isinstance(b, tuple) else (b,)
    modes = list(a) if isinstance(b, tuple) else [a]
    if name == "logical_divide" and not isinstance(b, tuple):
        tilers = (make_layout(b, complement(b, size(a))),)
    tiles = list(map(tiled, tilers))
    sizes = tuple(map(size, tiles))
    coords = (idx2crd(i, sizes) for i in range(size(sizes)))
    return [sum(m(t(c)) for m, t, c in zip(modes, tiles, coord, strict=False)) for coord in coords]


def test_results_are_structurally_those_of_the_dsl():
    answers = []
    trace(list(ours(random_cases(seed=1))), answers)
    count, differ = Counter(), []
    for name, arguments, result, text in answers:
        if text is None:
            count[name, "refused by the DSL"] += 1
        elif text == str(result):
            count[name, "the same"] += 1
        elif right(name, arguments, result) and not right(name, arguments, parse(text)):
            count[name, "wrong in the DSL"] += 1
        else:
            differ.append(f"{name}{tuple(map(str, arguments))}: {result}, and the DSL {text}")
    assert not differ, "\n".join(differ[:20])
    for name in {name for name, _ in count}:
        others = count[name, "refused by the DSL"] + count[name, "wrong in the DSL"]
        assert count[name, "the same"] > 0.5 * CASES
        assert others < 0.15 * count[name, "the same"]


COORDINATES = [
    ("complement", (Layout(4, E(0)), 16)),
    ("complement", (Layout(4, E(1)), 16)),
    ("complement", (Layout((4, 8), (E(0), E(1))), 32)),
    ("complement", (Layout((4, 8), (E(0), E(1))), (8, 32))),
    ("complement", (Layout((4, 2), (E(0), 4 * E(0))), 32)),
    ("complement", (Layout(4, 2 * E(0)), 16)),
    ("logical_divide", (Layout((8, 16), (E(0), E(1))), Layout(4, E(0)))),
    ("logical_divide", (Layout((8, 16)), Layout(4, E(0)))),
    ("logical_product", (Layout((4, 8), (E(0), E(1))), Layout(3))),
    ("logical_product", (Layout((4, 8), (E(0), E(1))), (3, 2))),
    ("blocked_product", (Layout((4, 8), (E(0), E(1))), Layout((3, 2)))),
    ("tile_to_shape", (Layout((4, 8), (E(0), E(1))), (8, 16), (0, 1))),
]


@cute.jit
def trace_coordinates(found: cutlass.Constexpr):
    ask_coordinates(found)


def ask_coordinates(found):
    for name, arguments in COORDINATES:
        known = {x: in_dsl(x) for x in arguments if isinstance(x, Layout)}
        found.append(asked(name, arguments, known))


def in_dsl(layout):
    """A layout whose strides may be coordinates."""

    def stride(d):
        return d if isinstance(d, int) else d.terms[0][1] * cute.E(list(d.terms[0][0]))

    return cute.make_layout(layout.shape, stride=map_leaves(stride, layout.stride))


def test_layouts_of_coordinates_are_complemented_and_repeated_as_in_the_dsl():
    found = []
    trace_coordinates(found)
    results = [str(getattr(layouts, name)(*arguments)) for name, arguments in COORDINATES]
    assert results == found


@cute.jit
def trace_printing(found: cutlass.Constexpr):
    print_all(found)


def print_all(found):
    for swizzle in (Swizzle(3, 4, 3), Swizzle(2, 0, -3), Swizzle(0, 4, 3)):
        traced = cute.make_swizzle(swizzle.bits, swizzle.base, swizzle.shift)
        outer = Layout((8, (8, 8)), (64, (1, 8)))
        found.append((str(traced), swizzle))
        composed = cute.make_composed_layout(traced, 0, lowered(outer))
        found.append((str(composed), layouts.ComposedLayout(swizzle, 0, outer)))
    for shape in (4, (4,), ((4,), 8), ((4, 2), 8)):
        found.append((str(cute.make_layout(shape)), Layout(shape)))


def test_parse_reads_what_the_dsl_prints():
    found = []
    trace_printing(found)
    for text, value in found:
        assert parse(text) == value
        assert str(value).replace("-3>", "-3") == text  # the DSL loses the bracket after a minus


@cute.jit
def trace_kernel_time(n: cutlass.Int32, found: cutlass.Constexpr):
    use_kernel_time(n, found)


def use_kernel_time(n, found):
    """One Layout class serves Python integers and integers of kernel time."""
    row_major = Layout((128, n), (n, 1))
    found.append((str(row_major), str(Layout((n, 4)))))
    offset = row_major(3, n) + Layout((128, 64), (64, 1))(n)
    swizzled = composition(Swizzle(3, 3, 3), Layout((128, 64), (64, 1)))(n)
    tile = layouts.local_tile(Layout((128, 64), (64, 1)), (32, 32), (n, None))
    found.append(tuple(type(x).__name__ for x in (offset, swizzled, tile.offset)))
    found.append(str(tile.layout))


def test_kernel_time_integers_go_through():
    found = []
    trace_kernel_time(9, found)
    assert found == [("(128,?):(?,1)", "(?,4):(1,?)"), ("Int32",) * 3, "(32,32,2):(64,1,32)"]
