"""The value of a layout, a swizzle or a chain of them at an index, computed from the definition.

A chain is a tuple of stages, the last one applied first: ``(Swizzle, 4, L)`` is Swizzle(4 + L(i)).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from ...values.layout import Layout
from ...values.stride import F2
from ...values.swizzle import ComposedLayout, Swizzle

__all__ = ["Stages", "evaluate", "index_count", "is_xor", "modes_of", "stages_of", "swizzled_bits"]

#: Layouts, swizzles and offsets; the last one is applied first.
Stages: TypeAlias = "tuple[Any, ...]"


def stages_of(layout: Any) -> Stages:
    """A layout or a composed layout as a chain.

    >>> stages_of(ComposedLayout(Swizzle(1, 0, 2), 4, Layout(8)))
    (Swizzle(1, 0, 2), 4, Layout(8, 1))
    """
    if not isinstance(layout, ComposedLayout):
        return (layout,)
    offset = () if type(layout.offset) is int and layout.offset == 0 else (layout.offset,)
    return (*stages_of(layout.inner), *offset, *stages_of(layout.outer))


def evaluate(stages: Sequence[Any], index: int) -> Any:
    """The value of `stages` at `index`: a layout digit by digit, a swizzle bit by bit.

    >>> evaluate((Swizzle(1, 0, 2), 4, Layout(8)), 1)
    4
    """
    value: Any = index
    for stage in reversed(stages):
        if isinstance(stage, Layout):
            value = stage._evaluated(_offset(modes_of(stage), value))
        elif isinstance(stage, Swizzle):
            value = _swizzle(value, swizzled_bits(stage))
        else:
            value = value + stage
    return value


def _offset(modes: Sequence[tuple[Any, Any]], index: int) -> Any:
    total: Any = 0
    for extent, stride in modes[:-1]:
        total, index = total + index % extent * stride, index // extent
    return total + index * modes[-1][1]


def _swizzle(value: int, added: dict[int, int]) -> int:
    for target, source in added.items():
        old, read = value >> target & 1, value >> source & 1
        value += ((old + read) % 2 - old) << target
    return value


def swizzled_bits(swizzle: Swizzle) -> dict[int, int]:
    """For each bit that the swizzle changes, the bit that it adds.

    >>> swizzled_bits(Swizzle(2, 0, 3))
    {0: 3, 1: 4}
    """
    lowest = swizzle.base + max(0, -swizzle.shift)
    return {j: j + swizzle.shift for j in range(lowest, lowest + swizzle.bits)}


def modes_of(layout: Layout) -> list[tuple[Any, Any]]:
    """The modes (extent, stride) of `layout`, flattened; at least one.

    >>> modes_of(Layout((2, (4, 3)), (1, (2, 8)))), modes_of(Layout((), ()))
    ([(2, 1), (4, 2), (3, 8)], [(1, 0)])
    """

    def pairs(shape: Any, stride: Any) -> Iterator[tuple[Any, Any]]:
        if not isinstance(shape, tuple):
            yield shape, stride
        else:
            for s, d in zip(shape, stride, strict=True):
                yield from pairs(s, d)

    return list(pairs(layout.shape, layout.stride)) or [(1, 0)]


def index_count(layout: Layout) -> Any:
    """The number of indices of `layout`, its size.

    >>> index_count(Layout((2, (4, 3))))
    24
    """
    count: Any = 1
    for extent, _ in modes_of(layout):
        count *= extent
    return count


def is_xor(layout: Layout) -> bool:
    """Whether `layout` has an XOR stride."""
    return any(isinstance(d, F2) for _, d in modes_of(layout))
