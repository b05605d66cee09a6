"""What `explain` writes of the products.

>>> from layouts import Layout, blocked_product, explain
>>> steps = explain(blocked_product, Layout((2, 2)), Layout((3, 4)))
>>> for line in steps.lines[-4:-1]:
...     print(line)
mode 0 has, inner first, 2:1 and 3:4
mode 1 has, inner first, 2:2 and 4:12
side by side: ((2,3),(2,4)):((1,4),(2,12))
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from .. import algebra
from ..algebra.complement import copies_of, covers, period
from ..values.arith import divided, equal
from ..values.layout import Layout, cosize, joined, make_ordered_layout
from ..values.stride import F2, ArithTuple, kind_of
from ..values.swizzle import ComposedLayout, outer_layout
from ..values.symbols import free_symbols, plain
from ..values.tuples import crd2idx, idx2crd, is_int, size, text
from .by_mode import each_mode, gathered, in_outer
from .checks import check_values
from .steps import Lines, explains, substep
from .views import View, Views, drawable, shows, tied


@explains(algebra.logical_product)
def _logical_product(lines: Lines, result: Any, layout: Any, tiler: Any) -> None:
    if isinstance(tiler, tuple):
        lines.append("a tuple of tilers multiplies mode by mode")
        each_mode(lines, algebra.logical_product, list(layout), tiler)
        lines.append(f"side by side: {text(result)}")
        return
    if tiler is None:
        lines.append(f"no tiler: {layout} stays as it is")
        return
    if isinstance(layout, ComposedLayout):
        lines.append(f"the outer layout of {layout} is repeated; the rest stays")
        return
    copies = tiler if isinstance(tiler, Layout) else Layout(tiler)
    if kind_of(copies.modes) is ArithTuple:
        return
    count = cosize(copies)
    target = _target(layout, count)
    lines.append(
        f"B = {copies} has offsets below {text(count)}, and A = {layout} has {size(layout)} "
        f"entries; A* is the complement of A up to {target}, which has at least as many:"
    )
    starts = substep(lines, algebra.complement, layout, target)
    if starts is None:
        return
    if any(kind_of(each.modes) is F2 for each in (layout, copies)):
        lines.append(f"copy k of A is that XORed with A*(B(k)), A* = {starts}: {text(result)}")
        return
    lines.append(f"copy k of A starts at A*(B(k)), A* = {starts}:")
    substep(lines, algebra.composition, starts, copies)
    lines.append(f"A, and where its copies start: {text(result)}")
    if result is not None and not free_symbols((layout, copies)):
        block = size(layout)
        check_values(
            lines,
            "R(a, b) == A(a) + A*(B(b))",
            lambda i: layout.value(i % block) + starts.value(copies(i // block)),
            result.value,
            size(result),
        )


def _target(layout: Layout, count: Any) -> Any:
    """Up to where the complement of `layout` has at least `count` offsets."""
    if kind_of(layout.modes) is not None or covers(layout):
        return plain(size(layout) * count)
    return plain(period(joined([layout, copies_of(layout, count)])))


explains(algebra.zipped_product)(
    gathered(algebra.logical_product, "the blocks go to mode 0, the copies to mode 1")
)
explains(algebra.tiled_product)(
    gathered(algebra.logical_product, "the blocks go to mode 0, the copies follow as modes")
)
explains(algebra.flat_product)(
    gathered(algebra.logical_product, "all modes of blocks come first, then all modes of copies")
)


# ---------------------------------------------------------------------------- side by side


@explains(algebra.blocked_product)
def _blocked(lines: Lines, result: Any, block: Any, tiler: Any) -> None:
    _side_by_side(algebra.blocked_product, lines, result, block, tiler)


@explains(algebra.raked_product)
def _raked(lines: Lines, result: Any, block: Any, tiler: Any) -> None:
    _side_by_side(algebra.raked_product, lines, result, block, tiler)


def _side_by_side(
    op: Callable[..., Any], lines: Lines, result: Any, block: Any, tiler: Any
) -> None:
    """The halves of a logical product, mode k beside mode k; the copies first if raked."""
    if in_outer(lines, op, block, tiler):
        return
    raked = op is algebra.raked_product
    copies = tiler if isinstance(tiler, Layout) else Layout(tiler)
    rank = max(len(block), len(copies))
    operands = (_extended(lines, layout, rank) for layout in (block, copies))
    both = substep(lines, algebra.logical_product, *operands)
    if result is None:
        return
    halves = outer_layout(both)
    pairs = [pair[::-1] if raked else pair for pair in zip(*halves, strict=True)]
    for k, pair in enumerate(pairs):
        lines.append(f"mode {k} has, inner first, {pair[0]} and {pair[1]}")
    beside: Any = joined(map(joined, pairs))
    if isinstance(both, ComposedLayout):
        beside = both.over(beside)
    lines.append(f"side by side: {beside}" + (f"; coalesced by mode, {result}" if raked else ""))
    if not free_symbols(both):
        _check_side_by_side(lines, raked, both, beside, result)


def _check_side_by_side(lines: Lines, raked: bool, both: Any, beside: Any, result: Any) -> None:
    halves = slice(None, None, -1 if raked else 1)

    def product(i: int) -> Any:
        coords = [coord[halves] for coord in idx2crd(i, beside.shape)]
        return both(*zip(*coords, strict=True))

    formula = f"R(({'b,a' if raked else 'a,b'}), ...) == P((a, ...), (b, ...))"
    check_values(lines, formula, product, result, size(result))


def _extended(lines: Lines, layout: Layout, rank: int) -> Layout:
    """`layout` as a tuple of modes, with modes 1:0 up to `rank`."""
    extended = joined([*layout, *[Layout(1, 0)] * (rank - len(layout))])
    if extended != layout:
        count = "1 mode" if rank == 1 else f"{rank} modes"
        lines.append(f"{layout} is extended to {count}: {extended}")
    return extended


@explains(algebra.tile_to_shape)
def _tile_to_shape(lines: Lines, result: Any, block: Any, shape: Any, order: Any = None) -> None:
    target = shape if isinstance(shape, tuple) else (shape,)
    own = [size(mode) for mode in block] + [1] * (len(target) - len(block))
    counts = []
    if len(own) > len(target):
        return
    for k, (extent, each) in enumerate(zip(target, own, strict=True)):
        count, rest = divided(size(extent), each)
        if not equal(rest, 0):
            lines.append(f"mode {k}: the block's extent {each} does not divide {text(extent)}")
            return
        counts.append(count)
        lines.append(f"mode {k}: {text(extent)} takes {count} copies of {each}")
    if not isinstance(shape, tuple):
        copies = Layout(counts[0])
    else:
        copies = make_ordered_layout(tuple(counts), order or tuple(range(len(counts))))
        how = "leftmost fastest" if order is None else f"in the order {text(order)}"
        lines.append(f"the copies are counted {how}: {copies}")
    substep(lines, algebra.blocked_product, block, copies)


# --------------------------------------------------------------------------------- pictures

#: index of R → (index of the block, number of the copy).
Halves: TypeAlias = "Callable[[int], tuple[int, int]]"


@shows(algebra.logical_product)
def _logical_copies(result: Any, block: Any, tiler: Any) -> Views | None:
    if isinstance(tiler, tuple):
        return _copies(result, block, tiler, _by_mode(result, block))
    return _copies(result, block, tiler, _one_by_one(block))


@shows(algebra.zipped_product, algebra.tiled_product, algebra.flat_product)
def _gathered_copies(result: Any, block: Any, tiler: Any) -> Views | None:
    return _copies(result, block, tiler, _one_by_one(block))


@shows(algebra.blocked_product)
def _blocked_copies(result: Any, block: Any, tiler: Any) -> Views | None:
    return _copies(result, block, tiler, _by_mode(result, block))


@shows(algebra.raked_product)
def _raked_copies(result: Any, block: Any, tiler: Any) -> Views | None:
    return _copies(result, block, tiler, _by_mode(result, block, raked=True))


@shows(algebra.tile_to_shape)
def _tiled_copies(result: Any, block: Any, shape: Any, order: Any = None) -> Views | None:
    return _copies(result, block, None, _by_mode(result, block))


def _copies(result: Any, block: Any, copies: Any, halves: Halves) -> Views | None:
    """The block, B if it is a layout, and R with the copies in colours.

    A cell of A stands for itself in every copy, and a cell of B for all of its copy.
    """
    if not drawable(block, result):
        return None
    parts = [halves(i) for i in range(size(result))]
    views = [View("A", block, tied((a, i) for i, (a, _) in enumerate(parts)))]
    if is_int(copies) or drawable(copies):
        arranged = copies if isinstance(copies, (Layout, ComposedLayout)) else Layout(copies)
        views.append(View("B", arranged, tied((b, i) for i, (_, b) in enumerate(parts))))
    return Views([*views, View("R", result)], lambda i: parts[i][1], "copy of A")


def _one_by_one(block: Any) -> Halves:
    """The copies follow each other."""
    return lambda i: (i % size(block), i // size(block))


def _by_mode(result: Any, block: Any, raked: bool = False) -> Halves:
    """Mode k of R has mode k of the block, and of the copies: the copies first if `raked`."""
    extents = tuple(map(size, result))
    of_block = (*map(size, block), *[1] * (len(result) - len(block)))
    of_copies = tuple(whole // own for whole, own in zip(extents, of_block, strict=True))

    def halves(i: int) -> tuple[int, int]:
        inner = of_copies if raked else of_block
        digits = [divmod(x, n) for x, n in zip(idx2crd(i, extents), inner, strict=True)]
        outside, inside = (tuple(digit[k] for digit in digits) for k in (0, 1))
        a, b = (outside, inside) if raked else (inside, outside)
        return crd2idx(a, of_block), crd2idx(b, of_copies)

    return halves
