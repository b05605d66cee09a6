"""What `explain` writes of upcast, downcast and recast.

>>> from layouts import Layout, explain, upcast
>>> print(explain(upcast, Layout((4, 8), (8, 1)), 2))
upcast((4,8):(8,1), 2) = (4,4):(4,1)
  a unit holds 2 elements of L = (4,8):(8,1), mode by mode:
    4:8  each step spans 4 units: 4:4
    8:1  2 elements are in one unit: 4:1
  check R(i) == L(first element of unit i) / 2: 0 4 8 12 1 5 9 13 2 6 10 14 3 7 11 15 on both
      sides, for all 16 indices
"""

from __future__ import annotations

from collections.abc import Callable
from math import gcd, lcm
from typing import Any

from .. import algebra
from ..values.arith import divided, equal
from ..values.swizzle import ComposedLayout, Swizzle
from ..values.symbols import free_symbols
from ..values.tuples import idx2crd, is_int, leaves, size, unflatten
from .checks import check_values
from .steps import Lines, by_other_means, explains, substep
from .views import View, Views, drawable, has_integer_offsets, shows


@explains(algebra.upcast)
def _upcast(lines: Lines, result: Any, layout: Any, n: int) -> None:
    if not is_int(n) or _in_composed(lines, result, algebra.upcast, layout, n):
        return
    if n == 1 or by_other_means(lines, layout, "bit by bit"):
        return
    lines.append(f"a unit holds {n} elements of L = {layout}, mode by mode:")
    held = []  # by mode: how many elements one unit holds
    modes = result.modes if result is not None else ()
    for (extent, stride), (s, d) in zip(layout.modes, modes, strict=bool(modes)):
        once = equal(s, extent)
        held.append(1 if once else (extent if equal(s, 1) else divided(extent, s)[0]))
        how = f"each step spans {d} units" if once else f"{held[-1]} elements are in one unit"
        lines.append(f"  {extent}:{stride}  {how}: {s}:{d}")
    if result is not None and not free_symbols(layout):

        def first(i: int) -> int:
            coord = zip(leaves(idx2crd(i, result.shape)), held, strict=True)
            at = [x * count for x, count in coord]
            return int(layout(unflatten(at, layout.shape))) // n

        formula = f"R(i) == L(first element of unit i) / {n}"
        check_values(lines, formula, first, result, size(result))


@explains(algebra.downcast)
def _downcast(lines: Lines, result: Any, layout: Any, n: int) -> None:
    if not is_int(n) or _in_composed(lines, result, algebra.downcast, layout, n):
        return
    if n == 1 or by_other_means(lines, layout, "bit by bit"):
        return
    lines.append(f"an element of L = {layout} has {n} parts, in a mode of stride 1:")
    longer = []  # by mode: how many times as long it becomes
    modes = result.modes if result is not None else ()
    for (extent, stride), (s, d) in zip(layout.modes, modes, strict=bool(modes)):
        longer.append(n if equal(d, stride) and not equal(s, extent) else 1)
        how = f"becomes {n} times as long" if longer[-1] > 1 else f"steps {n} times as far"
        lines.append(f"  {extent}:{stride}  {how}: {s}:{d}")
    if result is not None and not free_symbols(layout):

        def part(i: int) -> int:
            coord = list(zip(leaves(idx2crd(i, result.shape)), longer, strict=True))
            at = unflatten([x // count for x, count in coord], layout.shape)
            return int(n * layout(at) + sum(x % count for x, count in coord))

        check_values(lines, f"R({n}*c + r) == {n}*L(c) + r", part, result, size(result))


def _in_composed(lines: Lines, result: Any, op: Callable[..., Any], layout: Any, n: int) -> bool:
    """Whether `layout` is composed; then its swizzle, offset and outer layout change together."""
    if not isinstance(layout, ComposedLayout):
        return False
    change = f"{'/' if op is algebra.upcast else '*'} {n}"
    if result is not None and isinstance(layout.inner, Swizzle):
        lines.append(
            f"{layout.inner} moves the same bytes as {result.inner} on offsets {change}, and "
            f"{layout.offset} {change} = {result.offset}; the outer layout:"
        )
    substep(lines, op, layout.outer, n)
    return True


@explains(algebra.recast)
def _recast(lines: Lines, result: Any, layout: Any, old_bits: int, new_bits: int) -> None:
    if not (is_int(old_bits) and is_int(new_bits)):
        return
    common = gcd(old_bits, new_bits)
    old, new = old_bits // common, new_bits // common
    lines.append(
        f"units of {old_bits} and {new_bits} bits are made of parts of {common} bits: {old} in an "
        f"old one, {new} in a new one"
    )
    parts = substep(lines, algebra.downcast, layout, old) if old > 1 else layout
    if parts is not None and new > 1:
        substep(lines, algebra.upcast, parts, new)


@shows(algebra.upcast)
def _wider(result: Any, layout: Any, n: int) -> Views | None:
    return _units(result, layout, 1, n)


@shows(algebra.downcast)
def _narrower(result: Any, layout: Any, n: int) -> Views | None:
    return _units(result, layout, n, 1)


@shows(algebra.recast)
def _units(result: Any, layout: Any, old: int, new: int) -> Views | None:
    """The elements of L and of R that are in one unit, which holds whole ones of both."""
    if not drawable(layout, result) or not has_integer_offsets(layout):
        return None
    unit = lcm(old, new)
    views = (
        View("L", layout, lambda i: (layout(i) * old // unit,)),
        View("R", result, lambda i: (result(i) * new // unit,)),
    )
    return Views(views, lambda at: at, "wider element")
