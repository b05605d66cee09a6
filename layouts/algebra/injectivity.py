"""Whether a layout is injective, decided without enumerating its indices."""

from __future__ import annotations

from ..values.layout import Layout
from ..values.modes import Mode, flat_modes
from ..values.tuples import crd2idx, unflatten

__all__ = ["collision"]


def collision(layout: Layout) -> tuple[int, int] | None:
    """Two indices with the same offset, or None if `layout` is injective; exact.

    Two coordinates have one offset if their difference x, which is not 0, has each ``|x_k| < s_k``
    and ``sum of x_k * d_k == 0``.  The search goes from the largest stride down: x_k must bring the
    sum within reach of the remaining modes, which in practice leaves one choice or two.

    >>> collision(Layout((4, 2), (1, 2))), collision(Layout((4, 8), (9, 1)))
    ((2, 4), None)
    """
    modes = flat_modes(layout)
    falling = sorted(range(len(modes)), key=lambda k: modes[k][1], reverse=True)
    found = _vanishing([modes[k] for k in falling], 0, False)
    if found is None:
        return None
    entry_of = dict(zip(falling, found, strict=True))
    x = [entry_of[k] for k in range(len(modes))]
    first, second = sorted((_index(x, layout), _index([-entry for entry in x], layout)))
    return first, second


def _index(x: list[int], layout: Layout) -> int:
    """The index of the coordinate with the positive entries of `x`, and 0 elsewhere."""
    coord = unflatten([max(entry, 0) for entry in x], layout.shape)
    return int(crd2idx(coord, layout.shape))


def _vanishing(modes: list[Mode], total: int, moved: bool) -> list[int] | None:
    """The remaining entries x of a difference that bring `total` to 0, or None.

    They are not all 0, unless an earlier entry is not 0 (`moved`).
    """
    if not modes:
        return [] if moved and total == 0 else None
    (extent, stride), rest = modes[0], modes[1:]
    reach = sum((s - 1) * d for s, d in rest)
    for x in _choices(extent, stride, total, reach):
        tail = _vanishing(rest, total + x * stride, moved or x != 0)
        if tail is not None:
            return [x, *tail]
    return None


def _choices(extent: int, stride: int, total: int, reach: int) -> range:
    """The x with ``|x| < extent`` and ``|total + x * stride| <= reach``."""
    if stride == 0:
        return range(extent - 1, -1, -1)
    low = max(-(extent - 1), -((total + reach) // stride))
    high = min(extent - 1, (reach - total) // stride)
    return range(low, high + 1)
