"""Strides other than integers: coordinates (TMA tensors, identity layouts) and XOR (swizzles).

A stride is anything that can be multiplied by an integer and added to its own kind.  Layouts with
such strides evaluate, coalesce and compose by the same code as those with integers.

    E(0), 2 * E(1)       a step of one coordinate: 1@0, 2@1.  They add componentwise.
    F2(9)                a step that XORs: F9.  They add by XOR, and multiply without carry.

``(8,16):(1@0,1@1)`` takes the coordinate (i, j) to itself; its values are tuples.
``(4,2):(F1,F5)`` is ``Sw<1,0,2>`` on 8 offsets; its values are ints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from operator import xor
from typing import Any

from ..errors import LayoutError
from .value import Value

__all__ = ["ArithTuple", "E", "F2", "StepStride", "as_factor"]

#: The place of a coordinate in its tuple: (1, 0) is the first entry of the second mode.
Path = tuple[int, ...]


class StepStride(Value):
    """A stride other than an integer: it has ``*`` with an integer, and ``+`` with its own kind
    and with 0.

    A step of zero is false; any other is true.
    """

    __slots__ = ()
    __array_ufunc__ = None  # numpy leaves array * stride to the stride
    _op_priority = 1000.0  # so does sympy, which would take the int of an XOR stride

    def __rmul__(self, factor: Any) -> Any:
        return self * factor

    def __radd__(self, other: Any) -> Any:
        return self + other

    def __mul__(self, factor: Any) -> Any:
        raise NotImplementedError

    def __add__(self, other: Any) -> Any:
        raise NotImplementedError

    def checked(self, check: Callable[[Any], Any]) -> Any:
        """The same step with `check` applied to its numbers; it raises if one is not an integer."""
        raise NotImplementedError


# ------------------------------------------------------------------------------ coordinates


class ArithTuple(StepStride):
    """A sparse tuple of integers that adds componentwise: ``1@0``, ``2@1``, ``1@0+2@1`` (C++
    ``ScaledBasis`` and ``ArithmeticTuple``).  Made by `E`.

    `terms` are the pairs (path, value), by path, none of them 0.

    >>> print(E(0), 2 * E(1), E(1, 0) * 3, E(0) + 2 * E(1))
    1@0 2@1 3@0@1 1@0+2@1
    >>> E(0) + 2 * E(1) == 2 * E(1) + E(0), 2 * E(1)
    (True, 2 * E(1))
    """

    __slots__ = __match_args__ = ("terms",)
    terms: tuple[tuple[Path, Any], ...]

    def __init__(self, terms: Iterable[tuple[Path, Any]] = ()) -> None:
        try:
            moving = tuple(sorted((pair for pair in terms if _moves(pair[1])), key=_path))
        except (TypeError, LookupError):
            raise LayoutError(f"ArithTuple({terms!r}): it takes pairs (path, value)") from None
        self._set(moving)

    def __mul__(self, factor: Any) -> ArithTuple:
        if isinstance(factor, StepStride):
            return NotImplemented
        return ArithTuple((path, value * factor) for path, value in self.terms)

    __rmul__ = __mul__

    def checked(self, check: Callable[[Any], Any]) -> ArithTuple:
        terms = [(_checked_path(path), check(value)) for path, value in self.terms]
        if any(isinstance(value, tuple) for _, value in terms):
            raise LayoutError(f"stride {self}: the step of a coordinate is an integer")
        return ArithTuple(terms)

    def __add__(self, other: Any) -> ArithTuple:
        if _is_zero(other):
            return self
        if hasattr(other, "dtype"):  # an array times a stride of 0
            return ArithTuple((path, value + other) for path, value in self.terms)
        if not isinstance(other, ArithTuple):
            return NotImplemented
        sums = dict(self.terms)
        for path, value in other.terms:
            sums[path] = sums[path] + value if path in sums else value
        return ArithTuple(sums.items())

    __radd__ = __add__

    def __bool__(self) -> bool:
        return bool(self.terms)

    def __str__(self) -> str:
        terms = ["@".join(map(str, (as_factor(v), *reversed(p)))) for p, v in self.terms]
        return "+".join(terms) or "0"

    def __repr__(self) -> str:
        units = [(v, f"E({', '.join(map(str, p))})") for p, v in self.terms]
        terms = [
            unit if type(v) is int and v == 1 else f"{as_factor(v)} * {unit}" for v, unit in units
        ]
        return " + ".join(terms) or "0 * E(0)"


def E(*path: int) -> ArithTuple:
    """A step of 1 in the coordinate at `path`, and of 0 in all others (C++ ``E<...>``).

    >>> from layouts import Layout
    >>> identity = Layout((8, 16), (E(0), E(1)))
    >>> print(identity, identity(3, 5), identity(11))
    (8,16):(1@0,1@1) (3, 5) (3, 1)
    """
    return ArithTuple([(_checked_path(path), 1)])


#: The most modes of a coordinate.
MOST_MODES = 1 << 16


def _checked_path(path: Any) -> Path:
    """`path`, if it leads to a mode: numbers from 0 up."""
    fits = isinstance(path, tuple) and bool(path)
    if not fits or not all(type(mode) is int and 0 <= mode < MOST_MODES for mode in path):
        raise LayoutError(
            f"E{path}: it takes the number of a mode, or a path to a nested mode, each from 0 to "
            f"{MOST_MODES - 1}"
        )
    return tuple(path)


def as_factor(value: Any) -> str:
    """`value` as it is written before ``*`` or ``@``: a sum stands in parentheses.

    >>> from layouts import symbols
    >>> as_factor(symbols("m") + 1), as_factor(4)
    ('(m + 1)', '4')
    """
    written = str(value)
    return f"({written})" if " " in written else written


def _is_zero(x: Any) -> bool:
    """Whether `x` is the integer 0, of Python or sympy: 0 times a symbol is the latter."""
    return x == 0 if type(x) is int else getattr(x, "is_zero", False) is True


def _path(term: tuple[Path, Any]) -> Path:
    return term[0]


def _moves(value: Any) -> bool:
    """Whether a component is kept: the int 0 is not; an array or a symbol is."""
    return not (type(value) is int and value == 0)


def as_tuple(value: ArithTuple, paths: Iterable[Path]) -> Any:
    """The nested tuple with the components of `value` at `paths`, and 0 elsewhere.

    >>> as_tuple(3 * E(1, 0), [(0,), (1, 0), (1, 1)])
    (0, (3, 0))
    """
    return _branch(dict(value.terms), set(paths), ())


def _branch(terms: dict[Path, Any], paths: set[Path], at: Path) -> Any:
    here = [path for path in paths if path[: len(at)] == at]
    if not here or at in paths:
        return terms.get(at, 0)
    count = 1 + max(path[len(at)] for path in here)
    return tuple(_branch(terms, paths, (*at, k)) for k in range(count))


# --------------------------------------------------------------------------------------- XOR


class F2(StepStride):
    """A step that XORs: ``k * F2(d)`` is the XOR of ``d << j`` for the set bits j of k, and
    ``F2(a) + F2(b) == F2(a) ^ F2(b) == F2(a ^ b)`` (PyCuTe's ``F2``).

    A swizzle is linear over XOR.  So a swizzle, and any chain of swizzles, is a layout with XOR
    strides.

    >>> print(F2(5) * 3, F2(5) + F2(1), int(F2(9)))
    F15 F4 9
    """

    __slots__ = __match_args__ = ("value",)
    value: Any

    def __init__(self, value: Any) -> None:
        if type(value) is int and value < 0:
            raise LayoutError(f"F2({value}): an XOR stride must be at least 0")
        if type(value) in (bool, float, str, tuple):
            raise LayoutError(f"F2({value!r}): an XOR stride is an integer of at least 0")
        _set_value(self, value)  # `_set` takes five times as long

    def __mul__(self, factor: Any) -> F2:
        if isinstance(factor, StepStride):
            return NotImplemented
        if type(factor) is int and type(self.value) is int:
            return F2(self._times(factor))
        bits = [bit for bit in range(self.value.bit_length()) if self.value >> bit & 1]
        try:
            return F2(reduce(xor, [factor << bit for bit in bits], factor & 0))
        except TypeError:
            raise LayoutError(
                f"{factor} times the XOR stride {self}: it needs the bits of an integer known now"
            ) from None

    def _times(self, factor: int) -> int:
        """The carry-less product with an int."""
        if factor < 0:
            raise LayoutError(f"{factor} times the XOR stride {self}: the factor must be >= 0")
        product = 0
        while factor:
            lowest = factor & -factor
            product ^= self.value * lowest
            factor ^= lowest
        return product

    __rmul__ = __mul__

    def checked(self, check: Callable[[Any], Any]) -> F2:
        known = check(self.value)
        if type(known) is not int:
            raise LayoutError(f"stride {self}: an XOR stride is an integer known now")
        return F2(known)

    def __add__(self, other: Any) -> F2:
        if _is_zero(other):
            return self
        if isinstance(other, F2):
            return F2(self.value ^ other.value)
        # An array times a stride of 0 is an array.
        return F2(self.value ^ other) if hasattr(other, "dtype") else NotImplemented

    __radd__ = __xor__ = __rxor__ = __add__

    def __int__(self) -> int:
        return int(self.value)

    def __bool__(self) -> bool:
        return bool(self.value)

    def __str__(self) -> str:
        return f"F{self.value}"


_set_value = F2.__dict__["value"].__set__


# ------------------------------------------------------------------------- kinds of strides


def kind(strides: Iterable[Any]) -> type[StepStride] | None:
    """`ArithTuple` or `F2` if one of `strides` is such a stride, None if all are integers.

    >>> kind([1, 0]), kind([0, F2(3)]).__name__
    (None, 'F2')
    """
    for stride in strides:
        if isinstance(stride, StepStride):
            return type(stride)
    return None


def kind_of(modes: Iterable[tuple[Any, Any]]) -> type[StepStride] | None:
    """`kind` of the strides of modes (extent, stride)."""
    for _, stride in modes:
        if type(stride) is not int and isinstance(stride, StepStride):
            return type(stride)
    return None


def refusal(extents: tuple[Any, ...], strides: tuple[Any, ...]) -> str | None:
    """Why a layout cannot have these modes, at least one of them a `StepStride`; None if it can.

    The strides of one layout are of one kind, or 0.  XOR strides need extents of powers of two.
    """
    own = kind(strides)
    for extent, stride in zip(extents, strides, strict=True):
        if (
            own is not None
            and not isinstance(stride, own)
            and not (type(stride) is int and stride == 0)
        ):
            return f"stride {stride} beside one of another kind: a layout's must be of one kind"
        if isinstance(stride, F2) and (type(extent) is not int or extent & (extent - 1)):
            return f"extent {extent} with the XOR stride {stride}: it must be a power of two"
    paths = paths_of(strides)
    for path in paths:
        if any(other != path and other[: len(path)] == path for other in paths):
            return f"the strides step both coordinate {path} and a coordinate inside it"
    return None


def paths_of(strides: Iterable[Any]) -> set[Path]:
    """The paths of all coordinates that `strides` step."""
    return {path for d in strides if isinstance(d, ArithTuple) for path, _ in d.terms}


def evaluated(value: StepStride, strides: Iterable[Any]) -> Any:
    """A sum of `strides` as what a layout gives: a tuple of coordinates, or an integer.

    >>> evaluated(F2(6), []), evaluated(2 * E(0), [E(0), E(1)])
    (6, (2, 0))
    """
    return value.value if isinstance(value, F2) else as_tuple(value, paths_of(strides))  # type: ignore[arg-type]
