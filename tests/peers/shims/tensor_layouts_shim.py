"""tensor-layouts with its operations replaced by this library's, as a plugin of pytest.

Its classes stay: a layout goes through this library and comes back as one of theirs.  Names, orders
of arguments and what an integer tiler means are theirs.
"""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Callable
from typing import Any

import layouts as L

importlib.metadata.version = lambda _: "fetched"  # it is not installed

import tensor_layouts as T  # noqa: E402
import tensor_layouts.analysis  # noqa: E402
import tensor_layouts.layout_utils  # noqa: E402
import tensor_layouts.tensor  # noqa: E402

# ---------------------------------------------------------------------------------- conversion


def ours(x: Any) -> Any:
    """One of their values as one of this library's."""
    if isinstance(x, T.Swizzle):
        return L.Swizzle(x.bits, x.base, x.shift)
    if isinstance(x, T.Layout):
        layout = L.Layout(x.shape, x.stride)
        return layout if x.swizzle is None else L.ComposedLayout(ours(x.swizzle), 0, layout)
    if isinstance(x, T.ComposedLayout):
        return _composed(ours(x.outer), x.preoffset, ours(x.inner))
    if isinstance(x, list):
        return tuple(map(ours, x))
    return tuple(map(ours, x)) if isinstance(x, tuple) else x


def _composed(function: Any, offset: int, inner: Any) -> L.ComposedLayout:
    """``function(offset + inner(c))``."""
    if isinstance(inner, L.Layout):
        return L.ComposedLayout(function, offset, inner)
    under = inner.inner.layout if isinstance(inner.inner, L.Swizzle) else inner.inner
    return L.ComposedLayout(_composed(function, offset, under), inner.offset, inner.outer)


def theirs(x: Any) -> Any:
    """One of this library's values as one of theirs."""
    if isinstance(x, L.Swizzle):
        return T.Swizzle(x.bits, x.base, x.shift)
    if isinstance(x, L.Layout) and not any(isinstance(d, L.F2) for _, d in x.modes):
        return T.Layout(x.shape, x.stride)
    if isinstance(x, L.Layout):  # they have no XOR strides
        return T.ComposedLayout(x, T.Layout(x.shape))
    if isinstance(x, L.ComposedLayout):
        outer = theirs(x.outer)
        if isinstance(x.inner, L.Swizzle) and x.offset == 0 and isinstance(outer, T.Layout):
            return T.Layout(outer.shape, outer.stride, swizzle=theirs(x.inner))
        return T.ComposedLayout(theirs(x.inner), outer, x.offset)
    return tuple(map(theirs, x)) if isinstance(x, tuple) else x


def through(operation: Callable[..., Any]) -> Callable[..., Any]:
    """An operation of this library on their values.

    They have two forms for a swizzle over a layout, and this library has one.  The result has the
    form of the arguments.
    """

    def converted(*arguments: Any) -> Any:
        result = theirs(operation(*map(ours, arguments)))
        composed = any(isinstance(x, T.ComposedLayout) for x in arguments)
        return _as_two(result) if composed else result

    return converted


def _as_two(x: Any) -> Any:
    """A swizzle over a layout as two functions, one after the other."""
    if isinstance(x, T.Layout) and x.swizzle is not None:
        return T.ComposedLayout(x.swizzle, T.Layout(x.shape, x.stride))
    return tuple(map(_as_two, x)) if isinstance(x, tuple) else x


# ---------------------------------------------------------------------------------- operations


def _value(layout: Any, *coord: Any) -> Any:
    """A layout called: at a coordinate, or sliced where that has None."""
    at = coord[0] if len(coord) == 1 else coord
    if isinstance(layout, T.Layout) and T.has_none(at):
        return layout if at is None else _slice_and_offset(at, layout)[0]
    return layout if at is None else theirs(ours(layout)(ours(at)))


def _slice_and_offset(coord: Any, layout: Any) -> Any:
    """Their slice of a swizzled layout comes with its offset, added before the swizzle."""
    if isinstance(layout, T.Layout) and layout.swizzle is not None:
        part, offset = L.slice_and_offset(ours(coord), L.Layout(layout.shape, layout.stride))
        return T.Layout(part.shape, part.stride, swizzle=layout.swizzle), offset
    return through(L.slice_and_offset)(coord, layout)


def _compose(a: Any, b: Any) -> Any:
    """What comes after a swizzle of theirs is a function of its own."""
    result = through(L.composition)(a, b)
    swizzled = isinstance(b, T.Swizzle) or getattr(b, "swizzle", None) is not None
    return _as_two(result) if swizzled else result


def _coalesce(layout: Any, profile: Any = None) -> Any:
    """Their None in a profile coalesces a mode, as any leaf does here."""
    by_mode = isinstance(profile, tuple) and set(profile) == {None}
    return theirs(L.coalesce(ours(layout), (1,) * len(profile) if by_mode else profile))


def _idx2crd(index: Any, shape: Any) -> Any:
    return L.idx2crd(ours(index), getattr(shape, "shape", shape))


def _tile_to_shape(layout: Any, target_shape: Any, order: Any = None) -> Any:
    """Their order lists the modes, the fastest first."""
    places = None if order is None else tuple(order.index(k) for k in range(len(order)))
    return theirs(L.tile_to_shape(ours(layout), ours(target_shape), places))


def _flatten(x: Any) -> Any:
    """Their tuple of an integer has it as its one entry."""
    return through(L.flatten)((x,) if type(x) is int else x)


def _crd2crd(coord: Any, target: Any, source: Any = None) -> Any:
    return L.crd2crd(ours(coord), ours(target if source is None else source), ours(target))


SAME = (
    *("size", "cosize", "congruent", "weakly_congruent", "compatible", "crd2idx"),
    *("complement", "logical_divide", "zipped_divide", "tiled_divide", "flat_divide"),
    *("logical_product", "zipped_product", "tiled_product", "flat_product", "blocked_product"),
    *("raked_product", "right_inverse", "left_inverse", "nullspace", "max_common_layout"),
    *("max_common_vector", "upcast", "downcast"),
)
REPLACED = {
    **{name: through(getattr(L, name)) for name in SAME},
    "compose": _compose,
    "coalesce": _coalesce,
    "flatten": _flatten,
    "slice_and_offset": _slice_and_offset,
    "idx2crd": _idx2crd,
    "crd2crd": _crd2crd,
    "tile_to_shape": _tile_to_shape,
}

for _module in [m for name, m in sys.modules.items() if name.startswith("tensor_layouts.")] + [T]:
    for _name, _operation in REPLACED.items():
        if hasattr(_module, _name):
            setattr(_module, _name, _operation)
T.Layout.__call__ = _value
T.ComposedLayout.__call__ = _value
