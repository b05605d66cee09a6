"""Hierarchical integer tuples: the shapes, strides and coordinates of layouts.

An `IntTuple` is a leaf or a tuple of `IntTuple`s: ``8``, ``(4, 8)``, ``((2, 4), 8)``.  A leaf is a
Python int, or anything else with integer arithmetic: a sympy expression, or an integer that exists
only when a kernel runs.  Such a leaf is never compared and never turned into a bool.

Leaves of coordinates may also be arrays (numpy, torch).  The functions here use only ``+ * // %``
on leaves, so one call maps a whole array of coordinates.  Neither library is imported.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Container, Iterable, Iterator
from functools import partial, reduce
from itertools import starmap, zip_longest
from numbers import Integral, Number
from typing import Any, TypeAlias

from ..errors import LayoutError, brief, type_of
from .stride import F2, StepStride, kind, refusal
from .symbols import remainder

#: An integer (or something that computes like one), or a tuple of `IntTuple`.
IntTuple: TypeAlias = Any

__all__ = [
    "IntTuple",
    "added",
    "as_int",
    "check_array_bits",
    "check_product_bits",
    "compact_col_major",
    "compatible",
    "congruent",
    "crd2crd",
    "crd2idx",
    "depth",
    "idx2crd",
    "index_strides",
    "leaves",
    "map_leaves",
    "place_values",
    "product",
    "rank",
    "refused",
    "shape_of",
    "size",
    "text",
    "times",
    "unflatten",
    "weakly_congruent",
]


# ------------------------------------------------------------------------------------- leaves


def leaves(t: IntTuple) -> tuple[Any, ...]:
    """The leaves of `t` from left to right, always as a tuple (C++ ``flatten_to_tuple``).

    >>> leaves(((2, 4), 8)), leaves(8)
    ((2, 4, 8), (8,))
    """
    if not isinstance(t, tuple):
        return (t,)
    flat: list[Any] = []
    _append_leaves(t, flat)
    return tuple(flat)


def _append_leaves(t: tuple[IntTuple, ...], flat: list[Any]) -> None:
    for branch in t:
        if isinstance(branch, tuple):
            _append_leaves(branch, flat)
        else:
            flat.append(branch)


def unflatten(flat: Iterable[Any], profile: IntTuple) -> IntTuple:
    """The entries of `flat`, nested as `profile` is (C++ ``unflatten``).

    ``leaves(unflatten(f, p)) == f``.  Raises `LayoutError` unless there is one entry per leaf.

    >>> unflatten((1, 2, 8), ((2, 4), 8))
    ((1, 2), 8)
    """
    try:
        entries = tuple(flat)
    except TypeError:
        raise LayoutError(f"unflatten: {flat!r} must be entries, one per leaf") from None
    if len(entries) != len(leaves(shallow(profile))):
        raise LayoutError(
            f"unflatten: {len(entries)} entries for the {len(leaves(profile))} leaves of "
            f"{text(profile)}; give one entry per leaf"
        )
    return _unflatten(iter(entries), profile)


def _unflatten(entries: Iterator[Any], profile: IntTuple) -> IntTuple:
    if isinstance(profile, tuple):
        return tuple([_unflatten(entries, branch) for branch in profile])
    return next(entries)


def map_leaves(function: Callable[..., Any], t: IntTuple, *others: IntTuple) -> IntTuple:
    """`function` applied leaf by leaf to congruent tuples (C++ ``transform_leaf``).

    Raises `LayoutError` if the tuples are not congruent.

    >>> map_leaves(lambda s, d: s * d, ((2, 4), 8), ((1, 2), 8))
    ((2, 8), 64)
    """
    for other in others:
        if not congruent(t, other):
            raise LayoutError(f"{text(t)} and {text(other)} must have the same nesting of tuples")
    return unflatten(map(function, leaves(t), *map(leaves, others)), t)


def is_int(x: Any) -> bool:
    """Whether `x` is an integer known now, of Python or numpy; a bool is not."""
    return isinstance(x, Integral) and x is not True and x is not False


def as_int(x: Any) -> Any:
    """`x` as an int if it is an integer of numpy, whose arithmetic wraps around; else as it is.

    >>> import numpy as np
    >>> as_int(np.int64(4)), as_int(4), as_int("4"), as_int(True)
    (4, 4, '4', True)
    """
    return int(x) if type(x) is not int and is_int(x) else x


def is_one_of(x: Any, choices: Container[Any]) -> bool:
    """Whether `x` is an int or a string among `choices`; anything else, hashable or not, is none.

    >>> is_one_of(4, (1, 2, 4)), is_one_of("K", ("K", "MN")), is_one_of([4], {4: 0})
    (True, True, False)
    """
    return (is_int(x) or isinstance(x, str)) and x in choices


def is_symbolic(x: Any) -> bool:
    """Whether `x` is not an int but computes like one: a symbol, a kernel integer, an array."""
    operations = ("__add__", "__mul__", "__floordiv__", "__mod__")
    return not isinstance(x, (Number, str)) and all(hasattr(type(x), op) for op in operations)


def is_unknown_int(x: Any) -> bool:
    """Whether `x` is one integer that is not known now: a symbol, or a kernel integer.

    >>> import numpy as np
    >>> from layouts import symbols
    >>> is_unknown_int(symbols("m")), is_unknown_int(np.arange(3)), is_unknown_int(4)
    (True, False, False)
    """
    return is_symbolic(x) and not hasattr(type(x), "__iter__")


#: The deepest nesting of tuples; operations recurse into it.
DEEPEST = 60


def shallow(t: Any) -> Any:
    """`t`, if its tuples are nested at most `DEEPEST` deep; raises `LayoutError` otherwise.

    >>> shallow((4, (2, 8)))
    (4, (2, 8))
    """
    if isinstance(t, tuple):
        _check_depth(t, DEEPEST)
    return t


def _check_depth(t: tuple[Any, ...], deepest: int) -> None:
    if not deepest:
        raise LayoutError(f"tuples are nested more than {DEEPEST} deep, which no layout needs")
    for branch in t:
        if isinstance(branch, tuple):
            _check_depth(branch, deepest - 1)


def checked(t: IntTuple, what: str, least: int, deepest: int = DEEPEST) -> IntTuple:
    """`t`, if every leaf is an int of at least `least`, or a symbol; `what` names it in errors.

    >>> checked((4, (2, 0)), "stride", 0)
    (4, (2, 0))
    """
    if type(t) is int and t >= least:
        return t
    if isinstance(t, tuple):
        if not deepest:
            raise LayoutError(f"{what}: tuples are nested more than {DEEPEST} deep")
        for x in t:
            if type(x) is not int or x < least:
                return tuple([checked(branch, what, least, deepest - 1) for branch in t])
        return tuple(t)
    if is_int(t):
        if int(t) < least:
            raise LayoutError(f"{what} {t}: it must be at least {least}")
        return int(t)
    if is_unknown_int(t):
        return _expression(t, what, least)
    if isinstance(t, StepStride) and what == "stride":
        return t.checked(partial(checked, what=what, least=least)) or 0
    raise refused(what, t, f"an integer of at least {least}, an integer expression")


def refused(what: str, x: Any, leaf: str) -> LayoutError:
    """The error at `x`, which is neither a `leaf` nor a tuple of these; it says what to write.

    >>> str(refused("shape", [4, [2, 8]], "an integer"))
    'shape [4, [2, 8]] is a list: write a tuple, (4, (2, 8))'
    """
    must = f"it must be {leaf}, or a tuple of these"
    if isinstance(x, list):
        must = f"write a tuple, {_tupled(x)}"
    elif isinstance(x, str) and what in ("shape", "stride"):
        must = f"parse({x!r}) reads a layout that is written out"
    elif x is ... or isinstance(x, slice):
        must = "a whole mode is None, as in T[1, None]"
    return LayoutError(f"{what} {brief(x)} is {type_of(x)}: {must}")


def _tupled(x: Any) -> Any:
    return tuple(map(_tupled, x)) if isinstance(x, (list, tuple)) else x


def _expression(x: Any, what: str, least: int) -> Any:
    """`x`, if it is a kernel-time integer, or an expression that sympy knows to be an integer and
    does not know to be negative."""
    if hasattr(x, "free_symbols") and (not x.is_integer or x.is_negative):
        raise LayoutError(
            f"{what} {x}: it must be an integer of at least {least} whatever its symbols are; "
            f"make them with layouts.symbols('m'), and write M = 8*m for what 8 divides"
        )
    return x


# ------------------------------------------------------------------------- rank, depth, size


def shape_of(x: Any) -> IntTuple:
    """The shape of a layout, or an integer tuple as it is.

    >>> shape_of((4, 8))
    (4, 8)
    """
    return shallow(x) if isinstance(x, tuple) else x if type(x) is int else getattr(x, "shape", x)


def steps(mode: Any) -> tuple[int, ...]:
    """The path of `mode`, which is an int, a path already, or None for no step.

    >>> steps(None), steps(1), steps([0, 1])
    ((), (1,), (0, 1))
    """
    path = () if mode is None else tuple(mode) if isinstance(mode, (tuple, list)) else (mode,)
    if not all(map(is_int, path)):
        raise LayoutError(f"mode {mode!r}: it must be an integer, or a path of integers")
    return tuple(map(int, path))


def mode_of(x: Any, mode: int | Iterable[int] | None) -> IntTuple:
    """The shape of mode `mode` of `x`; a path such as ``(0, 1)`` leads into nested modes.

    >>> mode_of(((2, 4), 8), 0), mode_of(((2, 4), 8), [0, 1])
    ((2, 4), 4)
    """
    shape = shape_of(x)
    if mode is None:
        return shape
    for step in steps(mode):
        modes = shape if isinstance(shape, tuple) else (shape,)
        if not -len(modes) <= step < len(modes):
            raise LayoutError(f"mode {step} of {text(shape)}: its modes are 0 to {len(modes) - 1}")
        shape = modes[step]
    return shape


def rank(x: Any, mode: int | Iterable[int] | None = None) -> int:
    """The number of modes of a layout or tuple; an integer has one (C++ ``rank``).

    >>> rank(((2, 4), 8)), rank(8)
    (2, 1)
    """
    shape = mode_of(x, mode)
    return len(shape) if isinstance(shape, tuple) else 1


def depth(x: Any, mode: int | Iterable[int] | None = None) -> int:
    """How deeply the tuples of a layout or tuple are nested; an integer has depth 0 (C++).

    >>> depth(((2, 4), 8)), depth((2, 4)), depth(8)
    (2, 1, 0)
    """
    shape = mode_of(x, mode)
    return 1 + max(map(depth, shape), default=0) if isinstance(shape, tuple) else 0


def size(x: Any, mode: int | Iterable[int] | None = None) -> Any:
    """The number of coordinates of a layout or shape, or of one of its modes (C++ ``size``).

    >>> size((4, 8)), size((4, 8), 1), size(())
    (32, 8, 1)
    """
    return product(checked(shape_of(x) if mode is None else mode_of(x, mode), "shape", 1))


def product(t: IntTuple) -> Any:
    """The product of the leaves of `t` (C++ ``product``).

    >>> product(((2, 4), 8))
    64
    """
    if type(t) is int:
        return t
    try:
        found = _product(shallow(t), 1) if isinstance(t, tuple) else t
    except TypeError:
        found = None
    if type(found) is not int and not is_int(found) and not is_symbolic(found):
        raise LayoutError(f"product of {t!r}: it takes an integer, or a tuple of integers")
    return found


def _product(t: tuple[Any, ...], total: Any) -> Any:
    """`total` times the leaves of `t`, from left to right."""
    for branch in t:
        if type(branch) is int and type(total) is int:
            total *= branch
        elif isinstance(branch, tuple):
            total = _product(branch, total)
        else:
            total = times(total, branch)
    return total


def times(a: Any, b: Any) -> Any:
    """``a * b`` without multiplying by 0 or 1: kernel code has no ``1 * n``.

    >>> times(3, 4), times(1, "n"), times("n", 0)
    (12, 'n', 0)
    """
    if type(a) is int:
        if type(b) is int:
            return a * b
        if a == 0 or a == 1:
            return b if a else 0
    elif type(b) is int and (b == 0 or b == 1):
        return a if b else 0
    return a * b


def compact_col_major(shape: IntTuple, start: Any = 1) -> IntTuple:
    """The strides of a compact layout of `shape`, leftmost leaf fastest, the first one `start`.

    Leaf ``k`` gets ``start * s_0 * ... * s_(k-1)``.  An extent of 1 gets stride 0, as in C++
    ``compact_col_major`` and the DSL; so the layout equals the one traced in a kernel.

    >>> compact_col_major((4, (2, 3), 1))
    (1, (4, 8), 0)
    """
    if isinstance(shape, tuple):
        return _compact(shape, start)[0]
    return 0 if type(shape) is int and shape == 1 else start


def _compact(shape: tuple[IntTuple, ...], start: Any) -> tuple[tuple[IntTuple, ...], Any]:
    """`compact_col_major` of a tuple, and the stride after it."""
    strides = []
    for mode in shape:
        if type(mode) is int and mode > 1:
            strides.append(start)
            start *= mode
        elif isinstance(mode, tuple):
            nested, start = _compact(mode, start)
            strides.append(nested)
        else:
            strides.append(compact_col_major(mode, start))
            start = times(start, mode)
    return tuple(strides), start


def added(a: IntTuple, b: IntTuple) -> IntTuple:
    """The sum of two offsets: integers, or coordinates, of which one may lack trailing entries; an
    integer that is added to a coordinate is 0.

    >>> added(3, 4), added((1, (2, 3)), (4,)), added(0, (0, (0, 5)))
    (7, (5, (2, 3)), (0, (0, 5)))
    """
    if not isinstance(a, tuple) and not isinstance(b, tuple):
        return a + b
    entries = [x if isinstance(x, tuple) else () for x in (a, b)]
    return tuple(starmap(added, zip_longest(*entries, fillvalue=0)))


def place_values(extents: Iterable[Any], start: Any = 1) -> list[Any]:
    """What a step of each digit adds to the index, leftmost fastest: the products of the extents
    before it, times `start`.

    >>> place_values((4, 8, 2))
    [1, 4, 32]
    """
    values = []
    for extent in extents:
        values.append(start)
        start = times(start, extent)
    return values


def index_strides(shape: IntTuple) -> IntTuple:
    """The strides that give the index of a coordinate, also beyond the last extent: place values,
    nested as `shape` is.  Where an extent is 1, `compact_col_major` has 0.

    >>> index_strides((4, (8, 1)))
    (1, (4, 32))
    """
    return unflatten(place_values(leaves(shape)), shape)


# ---------------------------------------------------------------------------- relations


def congruent(a: Any, b: Any) -> bool:
    """Whether two tuples or layouts have the same nesting (C++ ``congruent``).

    >>> congruent((4, (2, 3)), (0, (1, 1))), congruent((4, 6), (4, (2, 3)))
    (True, False)
    """
    a, b = shape_of(a), shape_of(b)
    if not isinstance(a, tuple) or not isinstance(b, tuple):
        return not isinstance(a, tuple) and not isinstance(b, tuple)
    return len(a) == len(b) and all(map(congruent, a, b))


def weakly_congruent(a: Any, b: Any) -> bool:
    """Whether the profile of `b` refines that of `a`: each leaf of `a` faces a leaf or a tuple.

    Every coordinate into `a` then has the form of a coordinate into `b` (C++ ``weakly_congruent``).

    >>> weakly_congruent((4, 6), (4, (2, 3))), weakly_congruent((4, (2, 3)), (4, 6))
    (True, False)
    """
    a, b = shape_of(a), shape_of(b)
    if not isinstance(a, tuple):
        return True
    return isinstance(b, tuple) and len(a) == len(b) and all(map(weakly_congruent, a, b))


def compatible(a: Any, b: Any) -> bool:
    """Whether shape `b` refines shape `a`: each leaf of `a` is the size of its mode of `b`.

    Every coordinate of `a` is then also one of `b`, with the same index (C++ ``compatible``).

    >>> compatible((4, 6), (4, (2, 3))), compatible((4, 6), (4, (2, 4))), compatible(24, (4, 6))
    (True, False, True)
    """
    a, b = shape_of(a), shape_of(b)
    if not isinstance(a, tuple):
        return bool(a == product(checked(b, "shape", 0)))
    return isinstance(b, tuple) and len(a) == len(b) and all(map(compatible, a, b))


# ------------------------------------------------------------------------- coordinates


def coordinate(c: IntTuple, deepest: int = DEEPEST) -> IntTuple:
    """`c`, if it is a coordinate of ints from 0 up, symbols, or arrays of integers (made 64-bit).

    The entries of an array must be at least 0, too; those of `has_entries` are checked.

    >>> coordinate((1, (2, 3)))
    (1, (2, 3))
    """
    if type(c) is int and c >= 0:
        return c
    if getattr(c, "ndim", 0):  # 0 of NumPy's integers, too
        return _wide(c)
    if isinstance(c, tuple):
        if not deepest:
            raise LayoutError(f"coordinate: tuples are nested more than {DEEPEST} deep")
        return tuple([coordinate(x, deepest - 1) for x in c])
    if is_int(c):
        if int(c) < 0:
            raise LayoutError(f"coordinate {c}: a layout is a function on the integers from 0 up")
        return int(c)
    if is_symbolic(c):
        return _wide(c) if hasattr(c, "ndim") else c
    raise refused("coordinate", c, "an integer of at least 0, an array of integers")


#: The bits of an offset in an array; one more is the sign.
ARRAY_BITS = 63


def check_array_bits(c: IntTuple, highest: Callable[[], IntTuple], what: Any) -> None:
    """Raise `LayoutError` if there is an array in `c`, and numbers up to `highest()` do not fit in
    arrays; `what` is the function, for the error."""

    def check(most: Any) -> Any:
        if type(most) is int and most >> ARRAY_BITS:
            raise LayoutError(
                f"{what} of an array: its numbers reach {most}, and an array of 64-bit integers "
                f"would wrap around; pass integers one by one"
            )
        return most

    if any(hasattr(x, "ndim") for x in leaves(c)):
        for most in leaves(highest()):
            if isinstance(most, StepStride):
                most.checked(check)
            else:
                check(most)


def check_product_bits(coord: IntTuple, shape: IntTuple, stride: IntTuple, what: Any) -> None:
    """Raise `LayoutError` if `inner_product` of an array in `coord` needs more than 63 bits; `what`
    is the function, for the error."""
    check_array_bits(
        coord,
        lambda: (*_factors(coord, shape, stride), _highest_product(coord, shape, stride)),
        what,
    )


def _factors(coord: IntTuple, shape: IntTuple, stride: IntTuple) -> Iterator[Any]:
    """The numbers by which `inner_product` divides and multiplies the arrays in `coord`."""
    if isinstance(coord, tuple):
        if isinstance(shape, tuple):
            for entry, mode, step in zip(coord, shape, stride, strict=False):
                yield from _factors(entry, mode, step)
    elif hasattr(coord, "ndim"):
        if isinstance(shape, tuple):
            yield from map(product, shape[:-1])
            for mode, step in zip(shape, stride, strict=True):
                yield from _factors(coord, mode, step)
        else:
            yield stride


def _highest_product(coord: IntTuple, shape: IntTuple, stride: IntTuple) -> Any:
    """A number that `inner_product` does not exceed; of XOR strides, one with as many bits."""
    digits = _highest_digits(highest_entries(coord), shape)
    if kind(leaves(stride)) is not F2:
        return inner_product(digits, shape, stride)
    columns = [0]
    for digit, step in zip(leaves(digits), leaves(stride), strict=False):
        if type(digit) is int and digit and step != 0:
            columns.append(int(step) << digit.bit_length() - 1)
    return max(columns)


def _highest_digits(highest: IntTuple, shape: IntTuple) -> IntTuple:
    """The highest digit at each leaf of `shape` of an index up to `highest`.

    An array whose entries cannot be looked at is taken to be inside the shape.
    """
    if isinstance(highest, tuple):
        if isinstance(shape, tuple) and len(shape) == len(highest):
            return tuple(map(_highest_digits, highest, shape))
        return highest  # `inner_product` refuses it
    if hasattr(highest, "ndim"):
        return map_leaves(lambda extent: extent - 1, shape)
    if not isinstance(shape, tuple):
        return highest
    digits = []
    for mode in shape[:-1]:
        count = product(mode)
        known = type(count) is int and type(highest) is int
        digits.append(_highest_digits(min(highest, count - 1) if known else highest, mode))
        highest = highest // count if known else highest
    return (*digits, _highest_digits(highest, shape[-1])) if shape else ()


def has_entries(x: Any) -> bool:
    """Whether `x` is an array whose entries can be looked at: one of NumPy, or one of PyTorch on
    the CPU that is not traced.

    >>> import numpy as np, torch
    >>> has_entries(np.arange(3)), has_entries(torch.arange(3)), has_entries(3)
    (True, True, False)
    """
    if hasattr(x, "astype"):
        return True
    return type(x).__module__ == "torch" and x.device.type == "cpu"


def highest_entries(c: IntTuple) -> IntTuple:
    """`c` with the highest entry for each array of `has_entries`.

    >>> import numpy as np
    >>> highest_entries((np.array([3, 1]), (2, np.array([5]))))
    (3, (2, 5))
    """
    if isinstance(c, tuple):
        return tuple(map(highest_entries, c))
    return (int(c.max()) if 0 not in c.shape else 0) if has_entries(c) else c


def _wide(c: Any) -> Any:
    """`c`, an array converted to 64 bits: offsets in narrow integers could wrap around."""
    kind = getattr(c.dtype, "kind", None)  # PyTorch's have none, and are written torch.int32
    if kind not in ("i", "u") if kind else "int" not in str(c.dtype):
        raise LayoutError(f"coordinate array of {c.dtype}: its entries must be integers")
    wide = c.astype("int64", copy=False) if kind else c.long()
    if has_entries(wide) and 0 not in wide.shape and wide.min() < 0:
        raise LayoutError(
            f"coordinate array with {wide.min()} as a 64-bit integer: a layout is a function on "
            f"the integers from 0 up"
        )
    return wide


def crd2idx(coord: IntTuple, shape: IntTuple, stride: IntTuple | None = None) -> Any:
    """The offset of a coordinate: the inner product with `stride` (C++ ``crd2idx``).

    A leaf of `coord` that faces a tuple of extents is an index into it, leftmost fastest; the last
    extent is unbounded.  Without `stride` the result is the index, the inverse of `idx2crd`.
    Raises `LayoutError` on a leaf that is negative or not an integer, and if the profiles do not
    fit.

    >>> crd2idx((1, 5), (4, 8), (8, 1)), crd2idx(21, (4, 8), (8, 1)), crd2idx((1, 5), (4, 8))
    (13, 13, 21)
    """
    shape = checked(shape, "shape", 1)
    if stride is None:
        strides = index_strides(shape)
    else:
        strides = checked(stride, "stride", 0)
    if not congruent(shape, strides):
        raise LayoutError(
            f"shape {text(shape)} and stride {text(strides)} must have the same nesting of tuples"
        )
    at = coordinate(coord)
    try:
        check_product_bits(at, shape, strides, "crd2idx")
        return inner_product(at, shape, strides)
    except TypeError:  # strides of two kinds do not add
        why = refusal(leaves(shape), leaves(strides))
        raise LayoutError(f"shape {text(shape)} and stride {text(strides)}: {why}") from None


def inner_product(coord: IntTuple, shape: IntTuple, stride: IntTuple) -> Any:
    """`crd2idx` of a checked coordinate, shape and stride."""
    if not isinstance(shape, tuple):
        if isinstance(coord, tuple):
            raise LayoutError(f"coordinate {text(coord)}: the extent {shape} takes one integer")
        return coord * stride
    if not isinstance(coord, tuple):
        coord = _mode_indices(coord, shape)
    elif len(coord) != len(shape):
        raise LayoutError(
            f"coordinate {text(coord)} has {len(coord)} modes and the shape {text(shape)} has "
            f"{len(shape)}; give one integer, or one coordinate per mode"
        )
    terms = map(inner_product, coord, shape, stride)
    return reduce(operator.add, terms) if shape else 0


def idx2crd(idx: Any, shape: IntTuple) -> IntTuple:
    """The coordinate of an index into `shape`, leftmost leaf fastest (C++ ``idx2crd``).

    ``crd2idx(idx2crd(i, s), s) == i`` for every ``i``: the last leaf is unbounded.

    >>> idx2crd(21, (4, 8)), idx2crd(21, (2, (2, 8))), idx2crd(42, (3, 7, 2))
    ((1, 5), (1, (0, 5)), (0, 0, 2))
    """
    at, shape = coordinate(idx), checked(shape, "shape", 1)
    check_array_bits(
        at, lambda: tuple(_factors(at, shape, map_leaves(lambda _: 1, shape))), "idx2crd"
    )
    return _unravel(at, shape)


def crd2crd(coord: IntTuple, src_shape: IntTuple, dst_shape: IntTuple) -> IntTuple:
    """The coordinate into `dst_shape` with the index that `coord` has in `src_shape` (C++).

    Raises `LayoutError` where `crd2idx` and `idx2crd` do, and unless both shapes have the
    coordinate.

    >>> crd2crd((1, 5), (4, 8), (2, 16))
    (1, 10)
    """
    index = crd2idx(coord, src_shape)
    for c, shape in ((coord, src_shape), (index, dst_shape)):
        if not is_inside(c, shape):
            raise LayoutError(f"crd2crd: coordinate {text(c)} is outside {text(shape)}")
    return idx2crd(index, dst_shape)


def is_inside(coord: IntTuple, shape: IntTuple) -> bool:
    """Whether `shape` has the coordinate `coord`; of an array, every entry.

    An entry that is None, or a symbol, counts as inside.

    >>> is_inside((3, None), (4, 8)), is_inside((9, 0), (4, 8)), is_inside(32, (4, 8))
    (True, False, False)
    """
    if isinstance(coord, tuple) and isinstance(shape, tuple):
        return all(map(is_inside, coord, shape))
    extent = product(shape)
    if type(coord) is type(extent) is int:  # first: `is_int` takes a microsecond
        return 0 <= coord < extent
    coord = highest_entries(coord)
    return not (is_int(coord) and is_int(extent)) or 0 <= coord < extent


def _mode_indices(idx: Any, shape: tuple[IntTuple, ...]) -> tuple[Any, ...]:
    """The index `idx` as one index per mode of `shape`; the last is not wrapped."""
    digits = []
    for mode in shape[:-1]:
        extent = product(mode)
        digits.append(remainder(idx, extent))
        idx = idx // extent
    return (*digits, idx) if shape else ()


def _unravel(idx: Any, shape: IntTuple) -> IntTuple:
    if isinstance(idx, tuple):
        if not isinstance(shape, tuple) or len(shape) != len(idx):
            raise LayoutError(f"coordinate {text(idx)} does not fit the shape {text(shape)}")
        return tuple(map(_unravel, idx, shape))
    if not isinstance(shape, tuple):
        return idx
    return tuple(map(_unravel, _mode_indices(idx, shape), shape))


# ----------------------------------------------------------------------------- printing


def text(t: IntTuple) -> str:
    """`t` as CuTe prints it: no blanks, and parentheses exactly where there is a tuple.

    >>> text(((2, 4), 8)), text((4,))
    ('((2,4),8)', '(4)')
    """
    return f"({','.join(map(text, t))})" if isinstance(t, tuple) else str(t)
