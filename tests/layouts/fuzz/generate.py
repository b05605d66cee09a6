"""Random layouts of every kind, tilers, coordinates, and values of symbols.

Each generator takes a `random.Random`.  The kinds of strides are integers, XOR strides, coordinates
and symbols, and layouts composed of two functions.  Any of them may have modes of stride 0 of any
extent, modes of extent 1 with any stride, ragged extents, nested modes, and an offset.
"""

from __future__ import annotations

from random import Random
from typing import Any

from layouts import F2, ComposedLayout, E, Layout, Swizzle, symbols

from .model import leaves, rank, size

EXTENTS = (1, 1, 2, 2, 2, 3, 3, 4, 4, 5, 6, 7, 8, 12)
POWERS = (1, 2, 2, 2, 4, 4, 8, 16)
MOST = 120  # elements of a layout, so that brute force takes a millisecond


# ------------------------------------------------------------------------------------- shapes


def profile(rng: Random, extents: list[Any]) -> Any:
    """The extents in nested tuples; a single one may be an integer."""
    if len(extents) == 1 and rng.random() < 0.5:
        return extents[0]
    modes: list[Any] = []
    rest = list(extents)
    while rest:
        count = 1 if rng.random() < 0.7 else rng.randint(1, min(3, len(rest)))
        head, rest = rest[:count], rest[count:]
        nested = count > 1 or rng.random() < 0.07
        modes.append(tuple(head) if nested else head[0])
    if len(modes) > 2 and rng.random() < 0.1:
        modes = [tuple(modes[:2]), *modes[2:]]
    return tuple(modes)


def fill(shape: Any, strides: Any) -> Any:
    """`strides` in the nesting of `shape`."""
    return (
        tuple(fill(mode, strides) for mode in shape) if isinstance(shape, tuple) else next(strides)
    )


def some_extents(rng: Random, choices: tuple[int, ...], most: int = MOST) -> list[int]:
    """One to five extents of at most `most` elements together; rarely none."""
    if rng.random() < 0.01:
        return []
    found: list[int] = []
    for _ in range(rng.choice((1, 1, 2, 2, 2, 3, 3, 4, 5))):
        extent = rng.choice(choices)
        found.append(extent if size(tuple(found)) * extent <= most else 1)
    return found


def laid_out(rng: Random, extents: list[Any], strides: list[Any]) -> Layout:
    """The layout of these modes, nested at random."""
    shape = profile(rng, extents)
    return Layout(shape, fill(shape, iter(strides)))


# ------------------------------------------------------------------------------------- layouts


def integers(rng: Random, most: int = MOST) -> Layout:
    """Integer strides: compact in any order, with gaps, with stride 0, or anything."""
    extents = some_extents(rng, rng.choice((EXTENTS, EXTENTS, POWERS)), most)
    if rng.random() < 0.2:
        return laid_out(
            rng, extents, [rng.choice((0, 1, 2, 3, 4, 5, 6, 8, 9, 12, 16, 17, 32)) for _ in extents]
        )
    strides, stride = [0] * len(extents), rng.choice((1, 1, 1, 1, 2, 3, 4))
    gaps = rng.choice(((1,), (1, 1, 2), (1, 2, 3)))
    padding = rng.choice((0, 0, 0, 1))
    for k in rng.sample(range(len(extents)), len(extents)):
        strides[k] = stride
        if rng.random() < 0.12:
            strides[k] = 0
            continue
        stride = stride * extents[k] * rng.choice(gaps) + padding
    return laid_out(rng, extents, strides)


def xors(rng: Random, most: int = MOST) -> Layout:
    """XOR strides on extents that are powers of two, with modes of stride 0 of any extent."""
    extents, strides = [], []
    bit = rng.choice((0, 0, 0, 1, 2))
    for _ in some_extents(rng, POWERS):
        still = rng.random() < 0.25
        extent = rng.choice(EXTENTS if still else POWERS)
        if size(tuple(extents)) * extent > most:
            continue
        stride = rng.choice((1 << bit, 1 << bit, rng.randint(0, 31), rng.choice((1, 2, 4, 8))))
        bit += extent.bit_length() - 1
        extents.append(extent)
        strides.append(rng.choice((0, F2(0))) if still else F2(stride))
    if not any(isinstance(d, F2) for d in strides):
        extents, strides = [*extents, 2], [*strides, F2(rng.choice((1, 2, 3)))]
    order = (
        rng.sample(range(len(extents)), len(extents)) if rng.random() < 0.4 else range(len(extents))
    )
    return laid_out(rng, [extents[k] for k in order], [strides[k] for k in order])


def coordinates(rng: Random, most: int = MOST) -> Layout:
    """Strides that are coordinates: an identity, multiples of it, sums, stride 0."""
    extents = some_extents(rng, EXTENTS, most)
    if rng.random() < 0.3:
        shape = profile(rng, extents)
        return Layout(shape, _basis(shape, ()))
    paths = rng.choice((((0,), (1,)), ((0,),), ((0, 0), (0, 1), (1,)), ((0,), (1,), (2,))))
    strides: list[Any] = []
    for _ in extents:
        step = E(*rng.choice(paths)) * rng.choice((1, 1, 1, 2, 3, 4))
        if rng.random() < 0.15:
            step = step + E(*rng.choice(paths)) * rng.choice((1, 2))
        strides.append(0 if rng.random() < 0.12 else step)
    return laid_out(rng, extents, strides)


def _basis(shape: Any, path: tuple[int, ...]) -> Any:
    if isinstance(shape, tuple):
        return tuple(_basis(mode, (*path, k)) for k, mode in enumerate(shape))
    return E(*path) if path else E(0)


def swizzle(rng: Random) -> Swizzle:
    """A swizzle of few bits; its shift may be negative."""
    bits = rng.choice((0, 1, 1, 2, 2, 3))
    shift = rng.randint(max(bits, 1), max(bits, 1) + 2)
    return Swizzle(bits, rng.choice((0, 0, 1, 2, 3)), rng.choice((shift, shift, -shift)))


def offset(rng: Random) -> int:
    return 0 if rng.random() < 0.6 else rng.choice((1, 2, 3, 4, 8, 16, 21, 32))


def a_unit(rng: Random) -> int | None:
    return rng.choice((None, None, 8, 16))


def swizzles(rng: Random, most: int = MOST) -> ComposedLayout:
    """A swizzle after an offset and a layout of integers or XOR strides."""
    outer = rng.choice(OUTER)(rng, most)
    return ComposedLayout(swizzle(rng), offset(rng), outer, a_unit(rng))


def composed(rng: Random, most: int = MOST) -> ComposedLayout:
    """A layout, or a composed layout, after an offset and a layout."""
    outer = rng.choice(OUTER)(rng, most)
    inner = rng.choice((integers, integers, integers, xors, xors, swizzles, coordinates, symbolic))(
        rng, 64
    )
    return ComposedLayout(inner, offset(rng), outer, a_unit(rng))


M, N = symbols("m n")


def symbolic(rng: Random, most: int = MOST) -> Layout:
    """Extents and strides with symbols: compact in any order, padded, or one stride of its own."""
    del most
    choices = (M, N, 2 * M, 4 * M, 8 * N, M + 1, 1, 2, 4, 3)
    extents = [rng.choice(choices) for _ in range(rng.choice((1, 1, 2, 2, 3)))]
    strides, stride = [0] * len(extents), rng.choice((1, 1, 1, 2, M))
    for k in rng.sample(range(len(extents)), len(extents)):
        strides[k] = rng.choice((stride, stride, stride, stride, 0, 1, N))
        stride = stride * extents[k] * rng.choice((1, 1, 1, 2)) + rng.choice((0, 0, 0, 0, 1))
    return laid_out(rng, extents, strides)


#: What a composed layout has as its outer layout.
OUTER = (*(integers,) * 6, *(xors,) * 3, symbolic)


def with_coordinates_and_symbols(rng: Random) -> Layout:
    """Symbols as extents, coordinates as strides."""
    shape = profile(rng, [rng.choice((M, N, 4 * M, 4)) for _ in range(rng.randint(1, 3))])
    return Layout(shape, _basis(shape, ()))


# -------------------------------------------------------------------- sizes that a user writes


def large(rng: Random) -> Any:
    """A tile or a matrix as a kernel has them, and layouts of many modes: to be timed."""
    side = rng.choice((64, 128, 256, 512, 1024))
    pick = rng.random()
    if pick < 0.3:
        return Layout(
            (side, side), rng.choice(((1, side), (side, 1), (side + 8, 1), (1, side + 1)))
        )
    if pick < 0.6:
        tile = Layout((side, 64), rng.choice(((64, 1), (1, side), (72, 1))))
        return ComposedLayout(
            Swizzle(rng.randint(1, 3), rng.randint(0, 4), 3), 0, tile, a_unit(rng)
        )
    count = rng.choice((12, 20, 28))
    if pick < 0.8:  # random modes
        extents = tuple(rng.choice((2, 2, 3, 4)) for _ in range(count))
        return Layout(extents, tuple(rng.randint(0, 4**10) for _ in extents))
    order, strides = rng.sample(range(count), count), [0] * count
    for bit, k in enumerate(order):
        strides[k] = 1 << bit
    return Layout((2,) * count, tuple(F2(d) if pick < 0.9 else d for d in strides))


# ------------------------------------------------------------------------- what laws ask for


def any_layout(rng: Random, most: int = MOST) -> Any:
    """A layout or a composed layout of any kind."""
    pick = rng.random()
    if pick < 0.012:
        wide = pick < 0.003 and most == MOST
        return large(rng) if wide else with_coordinates_and_symbols(rng)
    kinds = (
        integers,
        integers,
        integers,
        xors,
        xors,
        swizzles,
        swizzles,
        coordinates,
        composed,
        symbolic,
    )
    return rng.choice(kinds)(rng, most)


def a_layout(rng: Random, most: int = MOST) -> Layout:
    """A layout that is not composed, of any kind."""
    return rng.choice((integers, integers, xors, coordinates, symbolic))(rng, most)


def small(rng: Random, most: int = 24) -> Any:
    """A layout of few elements, mostly of integers: what tiles or repeats another layout."""
    most = rng.choice((most // 4, most))
    return integers(rng, most) if rng.random() < 0.6 else any_layout(rng, most)


def of_shape(rng: Random, shape: Any) -> Layout:
    """A compact layout of a shape, its modes in any order, some of them XORed or broadcast."""
    extents = leaves(shape)
    strides: list[Any] = [0] * len(extents)
    stride, xor = 1, all(type(s) is int and s & (s - 1) == 0 for s in extents)
    xor = xor and rng.random() < 0.4
    for k in (
        rng.sample(range(len(extents)), len(extents)) if rng.random() < 0.6 else range(len(extents))
    ):
        still = rng.random() < 0.08
        strides[k] = 0 if still else F2(stride) if xor else stride
        stride = stride if still else stride * extents[k]
    return Layout(shape, fill(shape, iter(strides)))


def a_factor(rng: Random) -> int:
    return rng.choice((1, 2, 2, 3, 4, 4, 6, 8, 16))


def tiler(rng: Random, layout: Any) -> Any:
    """A tiler for a layout: an integer, a layout, None, or a tuple of these."""
    pick = rng.random()
    if pick < 0.25:
        return rng.choice((a_factor(rng), size_divisor(rng, size(layout)), rng.choice((M, 2 * M))))
    if pick < 0.65:
        return small(rng)
    if pick < 0.70:
        return None
    count = rng.randint(0, rank(layout)) if rng.random() < 0.9 else rank(layout) + 1
    return tuple(_tiler_of_mode(rng) for _ in range(count))


def _tiler_of_mode(rng: Random) -> Any:
    pick = rng.random()
    if pick < 0.5:
        return a_factor(rng)
    if pick < 0.8:
        return integers(rng, 8)
    if pick < 0.9:
        return None
    return rng.choice((xors(rng, 8), small(rng), (2, 2), M))


def even_tiler(rng: Random, layout: Any) -> Any:
    """A tuple of integers, most of which divide the size of their mode."""
    sizes = map(size, _shape_modes(layout))
    return tuple(size_divisor(rng, s) if rng.random() < 0.8 else a_factor(rng) for s in sizes)


def threads(rng: Random) -> Layout:
    """A compact layout of a few threads."""
    extents = [rng.choice((1, 2, 2, 3, 4)) for _ in range(rng.choice((1, 2, 2)))]
    order = rng.sample(range(len(extents)), len(extents))
    strides, stride = [0] * len(extents), 1
    for k in order:
        strides[k], stride = stride, stride * extents[k]
    return laid_out(rng, extents, strides)


def size_divisor(rng: Random, count: Any) -> int:
    if type(count) is not int or count > 4096:
        return 4
    return rng.choice([d for d in range(1, count + 1) if count % d == 0])


def shape_for(rng: Random, layout: Any) -> Any:
    """A shape that copies of a layout may fill."""
    sizes = [size(leaves_of_mode) for leaves_of_mode in _shape_modes(layout)]
    wide = [s * rng.choice((1, 1, 2, 3, 4)) for s in sizes]
    wide += [rng.choice((1, 2, 3))] * rng.choice((0, 0, 0, 1))
    if rng.random() < 0.1:
        wide = [rng.choice((2, 3, 4, 8)) for _ in wide]
    return wide[0] if len(wide) == 1 and rng.random() < 0.5 else tuple(wide)


def _shape_modes(layout: Any) -> list[Any]:
    return list(layout.shape) if isinstance(layout.shape, tuple) else [layout.shape]


def order_for(rng: Random, shape: Any) -> Any:
    """An order of the modes of a shape, or None."""
    if rng.random() < 0.5 or not isinstance(shape, tuple):
        return None
    return tuple(rng.sample(range(len(shape)), len(shape)))


def coordinate(rng: Random, shape: Any, underscores: float = 0.0, beyond: float = 0.1) -> Any:
    """A coordinate of a shape; entries are None with the given probability."""
    if rng.random() < underscores:
        return None
    if isinstance(shape, tuple) and rng.random() < 0.9:
        return tuple(coordinate(rng, mode, underscores, beyond) for mode in shape)
    count = size(shape)
    count = count if type(count) is int else 4
    return rng.randrange(count) if rng.random() > beyond else rng.randrange(3 * count)


def index(rng: Random, layout: Any) -> int:
    count = size(layout)
    return rng.randrange(2 * count + 2) if type(count) is int else rng.randrange(40)
