"""Triton's linear layouts: bases for named dimensions, to layouts and back.

A linear layout takes a place in the hardware, such as (register, lane, warp), to the coordinate of
an element of a tensor.  For each bit of each input dimension it has a basis, a coordinate; any
other place goes to the XOR of the bases of its bits.  Here the coordinate is an index,
``dim0 + size0 * (dim1 + size1 * ...)``, as in the fragments of `mma`.

This is the accumulator of mma.m16n8, as Triton prints it:

>>> from layouts import mma
>>> accumulator = '''
...  - register=1 -> (0, 1)
...    register=2 -> (8, 0)
...  - lane=1 -> (0, 2)
...    lane=2 -> (0, 4)
...    lane=4 -> (1, 0)
...    lane=8 -> (2, 0)
...    lane=16 -> (4, 0)
... where out dims are: [dim0 (size 16), dim1 (size 8)]'''
>>> print(from_linear_layout(accumulator), mma("m16n8k16", "bf16").c)
((2,2),(4,8)):((16,8),(32,1)) ((4,8),(2,2)):((32,1),(16,8))

Sources: Triton, include/triton/Tools/LinearLayout.h; ``toString`` in lib/Tools/LinearLayout.cpp.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from ..algebra import from_bits, to_bits
from ..errors import LayoutError
from ..values.layout import Layout
from ..values.swizzle import ComposedLayout
from ..values.tuples import as_int, crd2idx, idx2crd, product, size
from ..values.value import Value
from .tokens import compiled

__all__ = ["LinearLayout", "from_linear_layout", "to_linear_layout"]

#: Input dimension → a basis for each of its bits; a mapping or pairs.
Bases: TypeAlias = "Mapping[str, Sequence[Sequence[int]]] | Iterable[tuple[str, Any]]"

#: Output dimension → its size, a mapping or pairs; or the names alone.
OutDims: TypeAlias = "Mapping[str, int] | Iterable[str | tuple[str, int]]"


class LinearLayout(Value):
    """Bases for each input dimension, and the output dimensions: Triton's ``LinearLayout``.

    `bases` are pairs (input dimension, bases), where a basis has one entry for each output
    dimension.  `out_dims` are pairs (name, size).  A size that is not given is the smallest power
    of two above all entries, and names that are not given are dim0, dim1 and so on, as in Triton.
    ``str`` writes what Triton prints.

    Raises `LayoutError` unless the sizes are powers of two, and each basis has an int from 0 and
    below the size for each output dimension.

    >>> swizzled = LinearLayout({"offset": [[0, 1], [0, 2], [1, 1]]})
    >>> print(swizzled)
     - offset=1 -> (0, 1)
       offset=2 -> (0, 2)
       offset=4 -> (1, 1)
    where out dims are: [dim0 (size 2), dim1 (size 4)]
    >>> swizzled
    LinearLayout((('offset', ((0, 1), (0, 2), (1, 1))),), (('dim0', 2), ('dim1', 4)))
    """

    __slots__ = __match_args__ = ("bases", "out_dims")
    bases: tuple[tuple[str, tuple[tuple[int, ...], ...]], ...]
    out_dims: tuple[tuple[str, int], ...]

    def __init__(self, bases: Bases, out_dims: OutDims | None = None) -> None:
        try:
            pairs = tuple(
                (str(name), tuple(tuple(map(as_int, basis)) for basis in found))
                for name, found in (bases.items() if isinstance(bases, Mapping) else bases)
            )
        except (TypeError, ValueError):
            raise LayoutError(
                f"LinearLayout: the bases {bases!r} must have a list of bases for each input "
                f"dimension, such as {{'lane': [[0, 1], [0, 2]]}}"
            ) from None
        sized = _sized(out_dims, [basis for _, found in pairs for basis in found])
        for names, what in ((pairs, "input"), (sized, "output")):
            _check_distinct([name for name, _ in names], f"LinearLayout: the {what} dimensions")
        self._set(pairs, sized)

    def __str__(self) -> str:
        lines = []
        for name, found in self.bases:
            bullets = [f"{name}={1 << i} -> ({_listed(basis)})" for i, basis in enumerate(found)]
            first, *others = bullets or [f"{name} is a size 1 dimension"]
            lines += [f" - {first}", *(f"   {other}" for other in others)]
        return "\n".join([*lines, f"where out dims are: [{_named(self.out_dims)}]"])


def from_linear_layout(
    linear: LinearLayout | Bases | str, out_dims: OutDims | None = None
) -> Layout | ComposedLayout:
    """The layout of a linear layout, with one mode for each input dimension.

    ``idx2crd(L(register, lane, ...), sizes)`` is the XOR of the bases of the bits that are set.
    `linear` is what Triton prints, its attribute ``#ttg.linear<{...}>``, a `LinearLayout`, or the
    bases as Triton's Python has them: a dict or pairs.  For the bases, `out_dims` are as in
    `LinearLayout`.  The strides are those of `from_bits`.

    Raises `LayoutError` if the text cannot be read, or as `LinearLayout` does.

    >>> wgmma = {"register": [[0, 1], [8, 0]], "lane": [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]],
    ...          "warp": [[16, 0], [32, 0]]}
    >>> print(from_linear_layout(wgmma, {"dim0": 64, "dim1": 8}))
    ((2,2),(4,8),4):((64,8),(128,1),16)
    >>> print(from_linear_layout("#ttg.linear<{register = [[1, 0], [2, 1]], lane = [[0, 2]]}>"))
    ((2,2),2):((1,6),8)
    """
    if isinstance(linear, str):
        linear = _read(linear, out_dims)
    elif not isinstance(linear, LinearLayout):
        linear = LinearLayout(linear, out_dims)
    sizes = tuple(count for _, count in linear.out_dims)
    columns = [crd2idx(basis, sizes) for _, found in linear.bases for basis in found]
    return from_bits(columns, tuple(1 << len(found) for _, found in linear.bases))


def to_linear_layout(
    layout: Layout | ComposedLayout, in_dims: Iterable[str], out_dims: Mapping[str, int]
) -> LinearLayout:
    """The linear layout of a layout whose modes are the dimensions `in_dims`.

    The values of L are indices into a tensor with the sizes `out_dims`, its first dimension
    fastest.  ``from_linear_layout(to_linear_layout(L, ...))`` is the same function as L.

    Raises `LayoutError` if L has another number of modes, is not a bit matrix (see `to_bits`), or
    takes a value beyond the tensor.

    >>> from layouts import wgmma_accumulator
    >>> fragment = wgmma_accumulator(8)                     # (thread, register) → m + 64 * n
    >>> print(to_linear_layout(fragment, ["thread", "register"], {"dim0": 64, "dim1": 8}))
     - thread=1 -> (0, 2)
       thread=2 -> (0, 4)
       thread=4 -> (1, 0)
       thread=8 -> (2, 0)
       thread=16 -> (4, 0)
       thread=32 -> (16, 0)
       thread=64 -> (32, 0)
     - register=1 -> (0, 1)
       register=2 -> (8, 0)
    where out dims are: [dim0 (size 64), dim1 (size 8)]
    """
    columns, names = to_bits(layout), _names(in_dims)
    out = LinearLayout({}, out_dims).out_dims
    if len(names) != len(layout):
        raise LayoutError(
            f"to_linear_layout of {layout}: it has {len(layout)} modes; in_dims must name as many "
            f"dimensions, not {names}"
        )
    sizes = tuple(count for _, count in out)
    if max(columns, default=0) >= product(sizes):
        raise LayoutError(
            f"to_linear_layout of {layout}: it takes the value {max(columns)}, and the indices of "
            f"[{_named(out)}] end at {product(sizes) - 1}"
        )
    shape = layout.shape if isinstance(layout.shape, tuple) else (layout.shape,)
    bases, start = {}, 0
    for name, mode in zip(names, shape, strict=True):
        end = start + size(mode).bit_length() - 1
        bases[name] = [idx2crd(column, sizes) for column in columns[start:end]]
        start = end
    return LinearLayout(bases, out)


def _check_distinct(names: list[str], what: str) -> None:
    if len({*names}) < len(names):
        raise LayoutError(f"{what} are {', '.join(names)}: each must have a name of its own")


def _names(in_dims: Any) -> list[str]:
    try:
        names = list(in_dims)
    except TypeError:
        names = [in_dims]
    if not all(isinstance(name, str) for name in names):
        raise LayoutError(f"to_linear_layout: in_dims {in_dims!r} must be the names of the modes")
    _check_distinct(names, "to_linear_layout: in_dims")
    return names


# ------------------------------------------------------------------------------ out dimensions


def _sized(
    out_dims: OutDims | None, bases: Sequence[tuple[int, ...]]
) -> tuple[tuple[str, int], ...]:
    """The pairs (name, size) of the output dimensions, checked against all `bases`."""
    count = len(bases[0]) if bases else 0
    names = [f"dim{k}" for k in range(count)] if out_dims is None else _items(out_dims)
    for basis in bases:
        if len(basis) != len(names):
            raise LayoutError(f"LinearLayout: basis {basis} must have {len(names)} entries")
        for entry in basis:
            if type(entry) is not int or entry < 0:
                raise LayoutError(f"LinearLayout: entry {entry!r} of {basis} must be an int >= 0")
    pairs = []
    for k, name in enumerate(names):
        needed = 1 << max((basis[k].bit_length() for basis in bases), default=0)
        name, extent = name if isinstance(name, tuple) else (name, needed)
        extent = as_int(extent)
        if type(extent) is not int or extent < needed or extent & (extent - 1):
            raise LayoutError(
                f"LinearLayout: size {extent!r} of {name} must be a power of two of at least "
                f"{needed}, which the bases need"
            )
        pairs.append((str(name), extent))
    return tuple(pairs)


def _items(out_dims: Any) -> list[Any]:
    """The names, or the pairs (name, size)."""
    try:
        items = list(out_dims.items() if isinstance(out_dims, Mapping) else out_dims)
    except TypeError:
        items = [out_dims]
    for item in items:
        named = len(item) == 2 and item[0] if isinstance(item, tuple) else item
        if not isinstance(named, str):
            raise LayoutError(
                f"LinearLayout: out_dims {out_dims!r} must be names with their sizes, such as "
                f"{{'dim0': 64, 'dim1': 8}}, or names alone"
            )
    return items


def _named(out_dims: Iterable[tuple[str, int]]) -> str:
    return _listed(f"{name} (size {count})" for name, count in out_dims)


def _listed(items: Iterable[Any]) -> str:
    return ", ".join(map(str, items))


# ----------------------------------------------------------------------------- what Triton prints

BASIS = r"\s*(?:-\s)?\s*(\w+)=(\d+) -> \(([\d, ]*)\)\s*"
SIZE_1 = r"\s*-\s*(\w+) is a size 1 dimension\s*"
OUT = r"\s*where out dims are: \[(.*)\]\s*"
ATTRIBUTE = r"\s*(?:#\w+\s*=\s*)?#[\w.]+<\{(.*)\}(?:\s*,\s*alignment\s*=\s*\d+)?>\s*"


def _read(written: str, out_dims: OutDims | None) -> LinearLayout:
    """The linear layout that Triton prints, or that its attribute spells."""
    attribute = compiled(ATTRIBUTE).fullmatch(written)
    if attribute is not None:
        named = compiled(r"(\w+)\s*=").sub(r'"\1":', attribute[1])
        try:
            return LinearLayout(json.loads(f"{{{named}}}"), out_dims)
        except ValueError:
            raise LayoutError(f"from_linear_layout: {written!r} cannot be read") from None
    bases: dict[str, list[tuple[int, ...]]] = {}
    if not written.strip():
        raise LayoutError("from_linear_layout: the text is empty; it must be what Triton prints")
    for line in filter(str.strip, written.splitlines()):
        if found := compiled(SIZE_1).fullmatch(line):
            bases[found[1]] = []
        elif found := compiled(OUT).fullmatch(line):
            sizes = compiled(r"(\w+)(?: \(size (\d+)\))?").findall(found[1])
            out_dims = out_dims or [(name, int(count)) if count else name for name, count in sizes]
        elif (found := compiled(BASIS).fullmatch(line)) and _is_next(bases, found[1], found[2]):
            entries = [int(entry) for entry in found[3].split(",") if entry.strip()]
            bases.setdefault(found[1], []).append(tuple(entries))
        else:
            raise LayoutError(
                f"from_linear_layout: the line {line!r} cannot be read; it must be as Triton "
                f"prints it, such as ' - lane=1 -> (0, 2)', with lane=1, lane=2, lane=4 ... in turn"
            )
    return LinearLayout(bases, out_dims)


def _is_next(bases: Mapping[str, Sequence[Any]], name: str, place: str) -> bool:
    return int(place) == 1 << len(bases.get(name, ()))
