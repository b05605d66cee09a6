"""What a layout is: its value at an index, computed from its fields alone.

A value is an int, or a `Counter` of coordinates: what each path steps.  Both add, and two
coordinates that differ only in entries of 0 are equal.
"""

from __future__ import annotations

from collections import Counter
from itertools import product as cartesian
from math import prod
from typing import Any

from layouts import F2, ArithTuple, ComposedLayout, Layout, Swizzle


def leaves(t: Any) -> list[Any]:
    """The leaves of nested tuples, from left to right."""
    return [leaf for branch in t for leaf in leaves(branch)] if isinstance(t, tuple) else [t]


def modes(layout: Layout) -> list[tuple[Any, Any]]:
    """The pairs (extent, stride) of the leaves."""
    return list(zip(leaves(layout.shape), leaves(layout.stride), strict=True))


def size(x: Any) -> int:
    """The number of indices of a layout or a shape."""
    if isinstance(x, ComposedLayout):
        return size(x.outer)
    return prod(leaves(x.shape if isinstance(x, Layout) else x))


def is_xor(layout: Any) -> bool:
    """Whether a layout has XOR strides."""
    return isinstance(layout, Layout) and any(isinstance(d, F2) for _, d in modes(layout))


def is_coordinates(layout: Any) -> bool:
    """Whether a layout has coordinate strides."""
    if isinstance(layout, ComposedLayout):
        return is_coordinates(layout.inner)
    return isinstance(layout, Layout) and any(isinstance(d, ArithTuple) for _, d in modes(layout))


def times(factor: int, stride: Any) -> Any:
    """A multiple of a stride; an XOR stride is multiplied without carry, and stays one."""
    if isinstance(stride, F2):
        total = 0
        for bit in range(factor.bit_length()):
            if factor >> bit & 1:
                total ^= stride.value << bit
        return F2(total)
    if isinstance(stride, ArithTuple):
        return Counter({path: factor * step for path, step in stride.terms if factor * step})
    return factor * stride


def plus(a: Any, b: Any) -> Any:
    """The sum of two multiples of strides of one layout."""
    if isinstance(a, F2) or isinstance(b, F2):
        return F2((a.value if isinstance(a, F2) else a) ^ (b.value if isinstance(b, F2) else b))
    if isinstance(a, Counter) or isinstance(b, Counter):
        total = Counter(a if isinstance(a, Counter) else {})
        for path, step in (b if isinstance(b, Counter) else {}).items():
            total[path] += step
        return Counter({path: step for path, step in total.items() if step})
    return a + b


def digits(index: int, extents: list[int]) -> list[int]:
    """The digits of an index, leftmost fastest; the last one is unbounded."""
    found = []
    for extent in extents[:-1]:
        found.append(index % extent)
        index //= extent
    return [*found, index] if extents else []


def value(f: Any, index: int) -> Any:
    """A layout, a swizzle or a composed layout at an index, which may be beyond the size."""
    if isinstance(f, Swizzle):
        return swizzled(f, index)
    if isinstance(f, ComposedLayout):
        return value(f.inner, f.offset + value(f.outer, index))
    return plain(total(f, index))


def total(f: Layout, index: int) -> Any:
    """The sum of strides at an index; an XOR stride stays one, to be added on."""
    pairs, result = modes(f), 0
    for digit, (_, stride) in zip(digits(index, [s for s, _ in pairs]), pairs, strict=True):
        result = plus(result, times(digit, stride))
    return result


def plain(x: Any) -> Any:
    """A sum of strides as a value."""
    return x.value if isinstance(x, F2) else x


def moves(stride: Any) -> bool:
    """Whether a stride is not 0."""
    return bool(times(1, stride)) if isinstance(stride, (F2, ArithTuple)) else stride != 0


def at_steps(f: Any, steps: Any) -> Any:
    """A layout at the coordinate whose entry at each path is what `steps` says, and else 0."""
    if isinstance(f, ComposedLayout):
        return value(f.inner, f.offset + at_steps(f.outer, steps))
    result: Any = 0
    for path, index in (steps if isinstance(steps, Counter) else {(): steps}).items():
        mode = f
        for k in path:
            mode = part(mode, k)
        result = plus(result, total(mode, index))
    return plain(result)


def swizzled(swizzle: Swizzle, offset: int) -> int:
    """The bits ``M + max(0, -S) + k`` XORed with the bits ``M + max(0, S) + k``, for k < B."""
    result = offset
    for k in range(swizzle.bits):
        read = swizzle.base + max(0, swizzle.shift) + k
        change = swizzle.base + max(0, -swizzle.shift) + k
        result ^= (offset >> read & 1) << change
    return result


def index_of(coord: Any, shape: Any) -> int:
    """The index of a coordinate inside a shape."""
    if not isinstance(coord, tuple) or not isinstance(shape, tuple):
        return coord
    total, place = 0, 1
    for c, s in zip(coord, shape, strict=True):
        total += place * index_of(c, s)
        place *= size(s)
    return total


def values(f: Any, count: int | None = None) -> list[Any]:
    """The values at all indices, or at the first `count`."""
    return [value(f, i) for i in range(size(f) if count is None else count)]


def coords(sizes: list[int]) -> list[tuple[int, ...]]:
    """All coordinates of a flat shape, leftmost fastest."""
    return [c[::-1] for c in cartesian(*map(range, reversed(sizes)))]


def as_value(x: Any) -> Any:
    """What the library gives for a value, as this file writes it: a tuple becomes a `Counter`."""
    if isinstance(x, tuple):
        return Counter({path: step for path, step in _steps(x, ()) if step})
    return x


def _steps(x: Any, path: tuple[int, ...]) -> list[tuple[tuple[int, ...], Any]]:
    if isinstance(x, tuple):
        return [pair for k, branch in enumerate(x) for pair in _steps(branch, (*path, k))]
    return [(path, x)]


def part(layout: Any, mode: int) -> Any:
    """Mode `mode` of a layout, as the library's `Layout` or `ComposedLayout`."""
    if isinstance(layout, ComposedLayout):
        return ComposedLayout(layout.inner, layout.offset, part(layout.outer, mode))
    if not isinstance(layout.shape, tuple):
        return layout
    return Layout(layout.shape[mode], layout.stride[mode])


def rank(layout: Any) -> int:
    """The number of modes."""
    shape = layout.shape
    return len(shape) if isinstance(shape, tuple) else 1
