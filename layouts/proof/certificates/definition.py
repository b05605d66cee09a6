"""What layouts mean: the value of a chain of them at an index.

The search for a proof and the check of it share this file, and nothing else.

A chain is a tuple of stages, the last one applied first: ``(Swizzle, 4, L)`` is Swizzle(4 + L(i)).
Its indices are those of its last stage, a layout.  Everything is read from the shapes and the
strides; what a layout has computed beforehand is not trusted.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

from ...values.layout import Layout
from ...values.stride import F2, ArithTuple, evaluated
from ...values.swizzle import ComposedLayout, Swizzle
from ...values.tuples import unflatten
from ...values.value import Value
from .numbers import Malformed, least, whole

__all__ = [
    "Stages",
    "check_chain",
    "check_made",
    "component",
    "coordinate",
    "evaluate",
    "exact",
    "gives_coordinates",
    "index_count",
    "is_still",
    "is_xor",
    "modes_of",
    "shown",
    "stages_of",
    "step",
    "steps",
    "swizzled_bits",
]

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


# -------------------------------------------------------------------------------------- values


def evaluate(stages: Sequence[Any], index: int) -> Any:
    """The value of `stages` at `index`: a layout digit by digit, a swizzle bit by bit.

    >>> evaluate((Swizzle(1, 0, 2), 4, Layout(8)), 1)
    4
    """
    (value,) = _values(stages, [index])
    return value


def step(stages: Sequence[Any], index: int) -> Any:
    """`evaluate`, with coordinates as a sum of `E`, which two layouts share if they have the same
    coordinates except for zeros at the end.

    >>> from layouts import E
    >>> step((Layout((4, 2), (E(0), E(1))),), 3), step((Layout(4, E(0)),), 3)
    (3 * E(0), 3 * E(0))
    """
    (value,) = steps(stages, [index])
    return value


def steps(stages: Sequence[Any], indices: Iterable[int]) -> list[Any]:
    """`step` at many indices.

    >>> steps((Swizzle(1, 0, 2), Layout(8)), range(8))
    [0, 1, 2, 3, 5, 4, 7, 6]
    """
    first = stages[0]
    if not isinstance(first, Layout):
        return _values(stages, indices)
    return [_step(total) for total in _sums(first, _values(stages[1:], indices))]


def _step(total: Any) -> Any:
    if isinstance(total, F2):
        return total.value
    return 0 if isinstance(total, ArithTuple) and not total else total


def _values(stages: Sequence[Any], indices: Iterable[int]) -> list[Any]:
    values: list[Any] = list(indices)
    for stage in reversed(stages):
        if isinstance(stage, Layout):
            values = _all_shown(stage, _sums(stage, values))
        elif isinstance(stage, Swizzle):
            added = swizzled_bits(stage)
            values = [_swizzle(value, added) for value in values]
        else:
            values = [value + stage for value in values]
    return values


def _sums(layout: Layout, indices: list[Any]) -> list[Any]:
    """The sums of digits times strides at indices or coordinates; the last digit has no end."""
    modes = modes_of(layout)
    if any(isinstance(at, tuple) for at in indices):
        return [_at(at, layout.shape, layout.stride) for at in indices]
    if is_xor(layout):
        return [F2(total) for total in _xors(modes, indices)]
    totals: list[Any] = [0] * len(indices)
    for extent, d in modes[:-1]:
        totals = [total + at % extent * d for total, at in zip(totals, indices, strict=True)]
        indices = [at // extent for at in indices]
    last = modes[-1][1]
    return [total + at * last for total, at in zip(totals, indices, strict=True)]


def _xors(modes: list[tuple[Any, Any]], indices: list[int]) -> list[int]:
    """The XORs of ``d << k`` for the bits k of the digits, d the XOR stride of the mode."""
    totals = [0] * len(indices)
    for place, (extent, stride) in enumerate(modes):
        digits = indices if place + 1 == len(modes) else [at % extent for at in indices]
        if not is_still(stride):
            shifts = range(max(digits, default=0).bit_length())
            for k, step in [(k, stride.value << k) for k in shifts]:
                pairs = zip(totals, digits, strict=True)
                totals = [total ^ step if digit >> k & 1 else total for total, digit in pairs]
        indices = [at // extent for at in indices]
    return totals


def _at(at: Any, shape: Any, stride: Any) -> Any:
    """The sum at one index or coordinate."""
    if not isinstance(at, tuple):
        return _sums(Layout(shape, stride), [at])[0]
    if not isinstance(shape, tuple):
        raise Malformed(f"coordinate {at} of an extent")
    return sum(map(_at, _filled(at, shape), shape, stride), start=0)


def _filled(at: tuple[Any, ...], shape: tuple[Any, ...]) -> tuple[Any, ...]:
    """`at` with zeros for the coordinates at the end that it leaves out."""
    if len(at) > len(shape):
        raise Malformed(f"coordinate {at} of the shape {shape}")
    return at + (0,) * (len(shape) - len(at))


def shown(layout: Layout, total: Any) -> Any:
    """A sum of strides as `layout` gives it: an integer, or a tuple of coordinates."""
    (value,) = _all_shown(layout, [total])
    return value


def _all_shown(layout: Layout, totals: list[Any]) -> list[Any]:
    if not gives_coordinates(layout):
        return [total.value if isinstance(total, F2) else total for total in totals]
    strides = [stride for _, stride in modes_of(layout)]
    sums = [total if isinstance(total, ArithTuple) else ArithTuple() for total in totals]
    return [evaluated(total, strides) for total in sums]


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


# --------------------------------------------------------------------------------- shapes, modes


def modes_of(layout: Layout) -> list[tuple[Any, Any]]:
    """The modes (extent, stride) of `layout`, flattened; at least one.

    >>> modes_of(Layout((2, (4, 3)), (1, (2, 8)))), modes_of(Layout((), ()))
    ([(2, 1), (4, 2), (3, 8)], [(1, 0)])
    """
    return _pairs(layout.shape, layout.stride) or [(1, 0)]


def _pairs(shape: Any, stride: Any) -> list[tuple[Any, Any]]:
    if not isinstance(shape, tuple):
        return [(shape, stride)]
    return [pair for mode in zip(shape, stride, strict=True) for pair in _pairs(*mode)]


def index_count(layout: Layout) -> Any:
    """The number of indices of `layout`, its size.

    >>> index_count(Layout((2, (4, 3))))
    24
    """
    count: Any = 1
    for extent, _ in modes_of(layout):
        count *= extent
    return count


def coordinate(index: int, shape: Any) -> Any:
    """The coordinate of `index` in `shape`, the leftmost mode fastest, the last one unbounded.

    >>> coordinate(21, (4, (2, 8)))
    (1, (1, 2))
    """
    return _coordinate(index, shape, True)[0]


def _coordinate(index: int, shape: Any, is_last: bool) -> tuple[Any, int]:
    """The coordinate in `shape`, and what is left of `index` after it."""
    if not isinstance(shape, tuple):
        return (index, 0) if is_last else (index % shape, index // shape)
    entries = []
    for k, mode in enumerate(shape):
        entry, index = _coordinate(index, mode, is_last and k == len(shape) - 1)
        entries.append(entry)
    return tuple(entries), index


def gives_coordinates(layout: Layout) -> bool:
    """Whether the values of `layout` are coordinates."""
    return any(isinstance(d, ArithTuple) for _, d in modes_of(layout))


def is_xor(layout: Layout) -> bool:
    """Whether `layout` has an XOR stride."""
    return any(isinstance(d, F2) for _, d in modes_of(layout))


def component(layout: Layout, path: Any) -> Layout:
    """The component at `path` of a layout with coordinate strides.

    >>> from layouts import E
    >>> print(component(Layout((4, 8), (E(0), 2 * E(1))), (1,)))
    (4,8):(0,2)
    """
    pairs = _pairs(layout.shape, layout.stride)
    strides = [0 if is_still(d) else dict(d.terms).get(path, 0) for _, d in pairs]
    return Layout(layout.shape, unflatten(strides, layout.shape))


def is_still(stride: Any) -> bool:
    """Whether `stride` is the int 0, which goes with strides of any kind."""
    return type(stride) is int and stride == 0


# ------------------------------------------------------------------------------ what is a chain


def check_chain(stages: Stages) -> None:
    """Raise `Malformed` unless `stages` is a chain: layouts, swizzles, and offsets from 0 up.

    The last stage is a layout.  Only a layout takes the coordinates that another gives.
    """
    if type(stages) is not tuple or not stages or type(stages[-1]) is not Layout:
        raise Malformed(f"{stages!r} does not end with a layout")
    for stage in stages:
        if type(stage) in (Layout, Swizzle):
            check_made(stage)
        else:
            least(stage, 0)
    for stage, inner in pairwise(stages):
        if type(stage) is not Layout and type(inner) is Layout and gives_coordinates(inner):
            raise Malformed(f"{inner} gives coordinates, and {stage} takes integers")


def check_made(x: Any) -> None:
    """Raise `Malformed` unless every value in `x` is of a class of this library and is what its
    constructor makes of its fields: so its numbers are checked, nothing that it has computed
    beforehand is another, and a statement claims what its class says."""
    if isinstance(x, Value):
        _check_class(type(x))
        fields = x._fields()
        check_made(fields)
        if not exact(_held(x), _held(type(x)(*fields))):
            raise Malformed(f"a {type(x).__name__} is not what its constructor makes")
        if isinstance(x, ArithTuple):
            _check_steps(x)
    elif isinstance(x, tuple):
        for entry in x:
            check_made(entry)


#: How the names of the modules of this library begin.
_LIBRARY = __name__.partition(".")[0] + "."


def _check_class(kind: type) -> None:
    """Raise `Malformed` unless `kind` is a class that a module of this library defines.

    A subclass from elsewhere may answer what it likes: a statement that claims nothing would hold.
    """
    module = kind.__module__
    if not module.startswith(_LIBRARY) or getattr(sys.modules[module], kind.__name__) is not kind:
        raise Malformed(f"{kind} is no class of {_LIBRARY[:-1]}")


def _check_steps(steps: ArithTuple) -> None:
    """Raise `Malformed` unless each term is a path of numbers from 0 up, and a number."""
    for path, number in steps.terms:
        whole(number)
        if type(path) is not tuple or not path or not all(type(k) is int and k >= 0 for k in path):
            raise Malformed(f"{path!r} is the path of no coordinate")


#: What layouts and swizzles compute from their fields and keep.
_KEPT = {Layout: ("modes",), Swizzle: ("source", "target")}


def _held(x: Value) -> tuple[Any, ...]:
    """Everything that a value holds."""
    return (*x._fields(), *(getattr(x, name) for name in _KEPT.get(type(x), ())))


def exact(a: Any, b: Any) -> bool:
    """Whether two values are equal and of the same types: 1, True and 1.0 are three values.

    >>> exact((1, (2, None)), (1, (2, None))), exact((1,), (True,))
    (True, False)
    """
    if hasattr(a, "free_symbols") and hasattr(b, "free_symbols"):
        return a is b or bool(whole(a) == whole(b))
    if type(a) is not type(b):
        return False
    if isinstance(a, Value):
        a, b = a._fields(), b._fields()
    if type(a) is tuple:
        return len(a) == len(b) and all(map(exact, a, b))
    return bool(a == b)
