"""The algebra: operations that make layouts from layouts.

Each gives a result only if it provably satisfies the law in its docstring; otherwise it raises
`LayoutError` with the condition that fails and the smallest index that shows it.  Where C++ CuTe
and the CuTe DSL are right, the result is structurally theirs.

A tiler is what the right operand of a by-mode operation may be: a Layout, an integer n (for n:1),
or a tuple of tilers, one per mode; None leaves a mode whole.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from .collision import collision
from .compose import compose
from .errors import LayoutError
from .layout import Layout, cosize, make_layout
from .modes import Mode, assembled, flat_modes, merged
from .swizzle import ComposedLayout, Swizzle
from .tuples import IntTuple, compact_col_major, leaves, size

#: A Layout, an integer, None, or a tuple of tilers.
Tiler: TypeAlias = Any
AnyLayout = TypeVar("AnyLayout", Layout, ComposedLayout)

__all__ = [
    "coalesce",
    "complement",
    "composition",
    "logical_divide",
    "right_inverse",
    "zipped_divide",
]


# --------------------------------------------------------------------------------- coalesce


def coalesce(layout: AnyLayout, profile: IntTuple = None) -> AnyLayout:
    """The same function of the index with the fewest modes (C++ ``coalesce``; whitepaper 3.2).

    ``R(i) == L(i)`` for every i below ``size(L) == size(R)``.  With a `profile`, each mode that
    faces a leaf of it is coalesced by itself; what the leaves are does not matter, except that None
    leaves a mode as it is.  Modes beyond the profile stay.

    >>> print(coalesce(Layout((2, (1, 6)), (1, (6, 2)))))
    12:1
    >>> print(coalesce(Layout((2, (1, 6)), (1, (6, 2))), (1, 1)))
    (2,6):(1,2)
    """
    if isinstance(layout, ComposedLayout):
        return layout.over(coalesce(layout.outer, profile))
    if isinstance(profile, tuple):
        return _by_mode("coalesce", layout, profile, _coalesce_unless_none, keep_rest=True)
    return assembled(merged([mode for mode in flat_modes(layout) if mode[0] != 1]))


def _coalesce_unless_none(layout: Layout, profile: IntTuple) -> Layout:
    return layout if profile is None else coalesce(layout, profile)


# ------------------------------------------------------------------------------ composition


def composition(a: Any, b: Tiler) -> Any:
    """The layout that goes through `b`, then through `a` (C++ ``composition``; whitepaper 3.3).

    ``R(c) == A(B(c))`` for every coordinate c of B, and the shape of R refines that of B.  A tuple
    of tilers composes mode by mode and drops the modes of A beyond it; None passes a mode whole.
    A swizzle, or a composed layout, after a layout gives a composed layout.

    Raises `LayoutError` if no layout is A(B(c)), with the smallest index that shows it.

    >>> print(composition(Layout((6, 2), (8, 2)), Layout((4, 3), (3, 1))))
    ((2,2),3):((24,2),8)
    >>> print(composition(Layout((8, 64), (64, 1)), (4, None)))
    (4,64):(64,1)
    >>> print(composition(Swizzle(3, 3, 3), Layout((8, 64), (64, 1))))
    S<3,3,3> o 0 o (8,64):(64,1)
    """
    if isinstance(a, Swizzle):
        return _swizzled(a, b)
    if isinstance(a, ComposedLayout):
        return a.over(_composed_layout(a.outer, b))
    if isinstance(b, ComposedLayout):
        return _after_composed(a, b)
    return _composed_layout(a, b)


def _swizzled(a: Swizzle, b: Any) -> Any:
    if not isinstance(b, Layout):
        raise LayoutError(f"composition of {a} with {b!r}: a swizzle goes after a Layout")
    return ComposedLayout(a, 0, b) if a.bits else b


def _after_composed(a: Layout, b: ComposedLayout) -> ComposedLayout:
    if isinstance(b.inner, Swizzle):
        raise LayoutError(
            f"composition of {a} with {b}: a layout after a swizzle is neither a layout nor a "
            f"composed layout; compose the layouts first, and swizzle last"
        )
    return ComposedLayout(_composed_layout(a, b.inner), b.offset, b.outer)


def _composed_layout(a: Layout, b: Tiler) -> Layout:
    if not isinstance(a, Layout):
        raise LayoutError(f"composition: {a!r} is no Layout, Swizzle or ComposedLayout")
    if isinstance(b, tuple):
        return _by_mode("composition", a, b, _composed_layout, keep_rest=False)
    if b is None:
        return a
    return compose(a, _as_layout(b))


def _as_layout(tiler: Any) -> Layout:
    if isinstance(tiler, Layout):
        return tiler
    if type(tiler) is int:
        return Layout(tiler)
    raise LayoutError(
        f"tiler {tiler!r}: it must be a Layout, an integer, None, or a tuple of these, one per mode"
    )


def _by_mode(
    name: str,
    layout: Layout,
    tilers: tuple[Tiler, ...],
    operation: Callable[[Layout, Tiler], Layout],
    keep_rest: bool,
) -> Layout:
    """`operation` on each mode and its tiler; the modes beyond the tilers are kept or dropped."""
    modes = _modes_for(name, layout, tilers)
    done = map(operation, modes, tilers)
    return make_layout(*done, *(modes[len(tilers) :] if keep_rest else ()))


def _modes_for(name: str, layout: Layout, tilers: tuple[Tiler, ...]) -> list[Layout]:
    if len(tilers) > len(layout):
        raise LayoutError(
            f"{name}: {len(tilers)} tilers for the {len(layout)} modes of {layout}; give at most "
            f"one per mode"
        )
    return list(layout)


# ------------------------------------------------------------------------------- complement


def complement(layout: Layout, cotarget: int | None = None) -> Layout:
    """The layout of the offsets where copies of `layout` go to fill what it leaves out.

    Every offset below ``size(filter(L)) * size(R)``, which is at least `cotarget`, is the sum of
    exactly one offset of L and one of R, and R grows with its index (C++ ``complement``; whitepaper
    3.4).  `cotarget` defaults to ``cosize(L)``.  Modes of stride 0 take no part.

    Raises `LayoutError` unless the strides, in rising order, are each a multiple of the extent
    times the stride before: if not, two indices collide, or no copies fill the gaps.

    >>> print(complement(Layout((2, 2), (1, 6)), 24), complement(Layout(4, 2)))
    (3,2):(2,12) 2:1
    """
    if not isinstance(layout, Layout):
        raise LayoutError(f"complement of {layout}: only a Layout has one")
    target = cosize(layout) if cotarget is None else cotarget
    if type(target) is not int or target < 1:
        raise LayoutError(f"complement: cotarget {target!r} must be an integer of at least 1")
    gaps, reach = [], 1
    for extent, stride in _filtered(layout):
        if stride % reach:
            raise _no_complement(layout, stride, reach)
        gaps.append((stride // reach, reach))
        reach = extent * stride
    gaps.append((-(-target // reach), reach))
    return assembled(merged([gap for gap in gaps if gap[0] != 1]))


def _filtered(layout: Layout) -> list[Mode]:
    """The merged modes that move the offset, by rising stride (C++ ``filter``, sorted)."""
    modes = merged([mode for mode in flat_modes(layout) if mode[0] != 1 and mode[1] != 0])
    return sorted(modes, key=lambda mode: (mode[1], mode[0]))


def _no_complement(layout: Layout, stride: int, reach: int) -> LayoutError:
    moving = assembled(_filtered(layout))
    pair = collision(moving)
    why = "no copies of it fill its gaps"
    if pair is not None:
        why = f"it has the offset {moving(pair[0])} more than once"
    return LayoutError(
        f"complement of {layout}: {why}, since the stride {stride} is no multiple of {reach}; by "
        f"rising stride, each stride must be a multiple of the extent times the stride before it"
    )


# ----------------------------------------------------------------------------------- divide


def logical_divide(layout: AnyLayout, tiler: Tiler) -> AnyLayout:
    """`layout` with each tiled mode as (tile, rest): inside a tile, and from tile to tile.

    For a Layout B, ``R((t, r)) == A(B(t) + complement(B, size(A))(r))`` (C++ ``logical_divide``).
    A tuple of tilers divides mode by mode; None, and modes beyond the tuple, stay as they are.

    >>> print(logical_divide(Layout((4, 2, 3), (2, 1, 8)), Layout(4, 2)))
    ((2,2),(2,3)):((4,1),(2,8))
    >>> print(logical_divide(Layout((8, 64), (64, 1)), (4, None)))
    ((4,2),64):((64,256),1)
    """
    if isinstance(layout, ComposedLayout):
        return layout.over(logical_divide(layout.outer, tiler))
    if tiler is None:
        return layout
    if isinstance(tiler, tuple):
        return _by_mode("logical_divide", layout, tiler, logical_divide, keep_rest=True)
    tile = _as_layout(tiler)
    return _composed_layout(layout, make_layout(tile, complement(tile, size(layout))))


def zipped_divide(layout: AnyLayout, tiler: Tiler) -> AnyLayout:
    """`layout` as ((tile modes), (rest modes)): `logical_divide` with the halves gathered.

    ``R[0] == composition(A, tiler)``, and ``R(0, r)`` is where tile r starts (C++
    ``zipped_divide``).  Modes beyond a tuple of tilers join the rest; None takes the whole mode
    into the tile.

    >>> print(zipped_divide(Layout((8, 64), (64, 1)), (4, 16)))
    ((4,16),(2,4)):((64,1),(256,16))
    """
    if isinstance(layout, ComposedLayout):
        return layout.over(zipped_divide(layout.outer, tiler))
    return make_layout(*_tile_and_rest(layout, tiler))


def _tile_and_rest(layout: Layout, tiler: Tiler) -> tuple[Layout, Layout]:
    if tiler is None:
        return layout, Layout(1, 0)
    if not isinstance(tiler, tuple):
        tile, rest = logical_divide(layout, tiler)
        return tile, rest
    modes = _modes_for("zipped_divide", layout, tiler)
    pairs = [_tile_and_rest(*pair) for pair in zip(modes, tiler, strict=False)]
    tiles, rests = [tile for tile, _ in pairs], [rest for _, rest in pairs]
    return make_layout(*tiles), make_layout(*rests, *modes[len(tiler) :])


# ---------------------------------------------------------------------------------- inverse


def right_inverse(layout: Layout) -> Layout:
    """The layout that finds the index of an offset: ``L(R(i)) == i`` for every i below ``size(R)``.

    R reaches as far as whole modes of ``coalesce(L)`` follow on from stride 1; if L is injective no
    right inverse reaches further (C++ ``right_inverse``).

    >>> print(right_inverse(Layout((4, 8), (8, 1))), right_inverse(Layout((2, 4), (0, 1))))
    (8,4):(4,1) 4:2
    """
    if not isinstance(layout, Layout):
        raise LayoutError(f"right_inverse of {layout}: only a Layout has one here")
    modes = flat_modes(coalesce(layout))
    places = leaves(compact_col_major(tuple(extent for extent, _ in modes)))
    by_stride = sorted(zip(modes, places, strict=True), key=lambda pair: pair[0][1])
    reach, chain = 1, []
    for (extent, stride), place in by_stride:
        if stride == reach and extent != 1:
            chain.append((extent, place))
            reach *= extent
    return assembled(merged(chain))
