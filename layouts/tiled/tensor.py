"""Tensor: a layout with data.

    Tensor(data, layout)[c] == data[layout(c)]

The data is a flat array of numpy or torch; a slice, a tile or a partition of a tensor is another
layout over the same data.  A tensor without data gives the values of its layout: indices, or the
coordinates of an identity layout, which tell where an element of a partition comes from.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from ..algebra.partition import Tile, part_at
from ..algebra.slice import shown
from ..errors import LayoutError, needed
from ..values.arith import ascending
from ..values.layout import Composable, Layout, cosize, has_none, make_identity_layout
from ..values.stride import ArithTuple, kind_of
from ..values.swizzle import ComposedLayout, layout_for
from ..values.symbols import GIVE_VALUES
from ..values.tuples import IntTuple, added, is_int, leaves, size, unflatten

__all__ = [
    "Tensor",
    "make_counting_tensor",
    "make_fragment_like",
    "make_identity_tensor",
    "make_rmem_tensor",
    "make_tensor",
]


#: What numpy and torch raise where an element cannot hold a value.
REFUSALS = (TypeError, ValueError, OverflowError, RuntimeError)


class Tensor(Composable):
    """Data seen through a layout (C++ and DSL ``Tensor``).  Made by `make_tensor`.

    `data`    a flat array of numpy or torch, or None
    `layout`  a Layout or a ComposedLayout, in elements
    `offset`  the element at which the layout starts; in C++ the pointer moves there

    `composition`, the divides, `local_tile` and `local_partition` take a tensor too, and give the
    tensor with the same data.  As in CuTe, a tile that does not divide its tensor reaches beyond
    it; there, use only coordinates for which `elem_less` holds in the same tile of an identity
    tensor.  ``table(tensor)`` shows the elements.  Two tensors are equal only if they are one
    object.
    """

    __slots__ = __match_args__ = ("data", "layout", "offset")
    data: Any
    layout: Any
    offset: Any
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __init__(self, data: Any, layout: Any, offset: Any = 0) -> None:
        self._set(data, layout_for("Tensor", layout), offset)

    @property
    def shape(self) -> IntTuple:
        """The shape of the layout."""
        return self.layout.shape

    @property
    def stride(self) -> IntTuple:
        """The strides of the layout; those under the swizzle, if there is one."""
        return getattr(self.layout, "outer", self.layout).stride

    @property
    def element_type(self) -> Any:
        """The dtype of the data; None if there is no data."""
        return getattr(self.data, "dtype", None)

    def __getitem__(self, coord: IntTuple) -> Any:
        """The element at an index or a coordinate; if an entry is None, the tensor of those modes.

        Arrays of coordinates give an array of elements.  Raises `LayoutError` if the coordinate
        does not fit the shape, or the element is not in the data.

        >>> t = make_counting_tensor(Layout((4, 8), (8, 1)))
        >>> t[1, 5], t[21], t[1, None][5], t[None, 5].layout
        (13, 13, 13, Layout((4,), (8,)))
        """
        if has_none(coord):
            return part_at(coord, self)
        index = added(self.offset, self.layout(coord))
        return index if self.data is None else self.data[self._in_data(index, coord)]

    def __call__(self, *coord: IntTuple) -> Any:
        """``T(1, 2)`` is ``T[1, 2]``, as a layout is called."""
        return self[coord[0] if len(coord) == 1 else coord]

    def __setitem__(self, coord: IntTuple, value: Any) -> None:
        """Sets the element at an index or a coordinate; with None in it, `store` to those modes.

        Arrays of coordinates take an array of elements, or one for all, as `store` does.

        Raises `LayoutError` where `__getitem__` does, and if the data cannot be written, or its
        elements cannot be `value`.
        """
        if has_none(coord):
            self[coord].store(value)
            return
        self._require_writable("setting an element")
        index = self._in_data(added(self.offset, self.layout(coord)), coord)
        self._store_at(index if getattr(index, "ndim", 0) else [index], value)

    #: Python would otherwise iterate by index, without an end: the last mode is unbounded.
    __iter__ = None

    def _in_data(self, index: Any, coord: IntTuple) -> Any:
        """`index`, if all of it is in the data."""
        if not is_int(index) and not hasattr(index, "max"):
            raise LayoutError(f"coordinate {shown(coord)} of {self!r}: it must be known now")
        if 0 in getattr(index, "shape", ()):
            return index
        first, last = (index, index) if is_int(index) else (index.min(), index.max())
        if first < 0:
            raise LayoutError(f"coordinate array of {self!r}: element {first} is negative")
        if last >= len(self.data):
            raise LayoutError(
                f"coordinate {shown(coord) if is_int(index) else 'array'} of {self!r}: element "
                f"{last} of {len(self.data)}; it is beyond the data, where a tile or a partition "
                f"does not divide its tensor; skip such coordinates by a predicate"
            )
        return index

    def _require_data(self, what: str) -> None:
        if self.data is None:
            raise LayoutError(f"{self!r}: {what} needs a tensor with data")

    def _require_writable(self, what: str) -> None:
        """Raises `LayoutError` unless elements can be set; setting none of them shows it."""
        self._require_data(what)
        none = library(self.data).arange(0)
        try:
            self.data[none] = self.data[none]
        except NotImplementedError as error:  # of torch, for uint16 and others
            raise LayoutError(
                f"{self!r}: {what} needs elements that torch can set: {error}; use another dtype"
            ) from None
        except (ValueError, RuntimeError) as error:
            raise LayoutError(
                f"{self!r}: {what} needs data that can be written: {error}; use a copy of the "
                f"array, or detach() of one that requires grad"
            ) from None

    def with_layout(self, operation: Callable[..., Any], *arguments: Any) -> Tensor:
        """The tensor with the same data and the layout ``operation(layout, *arguments)``.

        The operation returns a layout, or the `Tile` of a layout, whose offset is added.
        """
        found = operation(self.layout, *arguments)
        if isinstance(found, Tile):
            return Tensor(self.data, found.layout, added(self.offset, found.offset))
        return Tensor(self.data, found, self.offset)

    def indices(self) -> Any:
        """The index into the data of each element: an array, whose extents are the modes' sizes.

        >>> import numpy
        >>> make_tensor(numpy.zeros(32), Layout((2, (2, 2)), (4, (1, 16)))).indices()
        array([[ 0,  1, 16, 17],
               [ 4,  5, 20, 21]])
        """
        return self._in_data(self.offsets(), None)

    def offsets(self) -> Any:
        """`indices`, also where they are beyond the data."""
        self._require_data("an array of indices")
        arange = library(self.data).arange
        extents = [size(mode) for mode in self.layout]
        coords = []
        for k, extent in enumerate(extents):
            broadcast = [1] * len(extents)
            broadcast[k] = extent
            coords.append(arange(extent).reshape(broadcast))
        return self.offset + self.layout(*coords)

    def load(self) -> Any:
        """A copy of the elements, as an array whose extents are the sizes of the modes (DSL)."""
        return self.data[self.indices()]

    def store(self, values: Any) -> None:
        """Sets the elements from an array of the extents that `load` gives, or to one value (DSL).

        Raises `LayoutError`, and changes nothing, if the array has other extents, if the data
        cannot be written or hold a value, or if one element of it would get two values.

        >>> import numpy
        >>> tensor = make_rmem_tensor((2, 4), numpy.int64)
        >>> tensor.store(numpy.arange(8).reshape(2, 4))
        >>> tensor.store(numpy.arange(4))
        Traceback (most recent call last):
        layouts.errors.LayoutError: store to int64[0] o (2,4):(1,2): an array of the extents (4,); \
it takes one value, or an array of the extents (2, 4)
        """
        self._require_writable("store")
        self._store_at(self.indices(), values)

    def _store_at(self, indices: Any, values: Any) -> None:
        """`store` to the elements at an array of indices into the data."""
        before, wanted = self.data[indices], self._as_elements(values, self.data[indices])
        self.data[indices] = wanted
        stored = self.data[indices]
        nan = (stored != stored) & (wanted != wanted)  # a NaN equals nothing
        if not bool(((stored == wanted) | nan).all()):
            self.data[indices] = before
            raise LayoutError(
                f"store to {self!r}: an element of the data would get several values: the layout, "
                f"or an array of coordinates, names it more than once; give it one value"
            )

    def _as_elements(self, values: Any, elements: Any) -> Any:
        """`elements`, a new array, set to `values`; raises `LayoutError` if they cannot be these.

        Floating-point elements are rounded; others would wrap around, or lose a fraction.
        """
        extents_of, extents = needed("numpy", "store").shape, tuple(elements.shape)
        try:
            given = tuple(extents_of(values))
            fits = given in ((), extents)
            if fits:
                elements[...] = values
            held = not fits or _rounds(elements.dtype) or _equal(elements, values)
        except REFUSALS as error:
            raise LayoutError(
                f"store to {self!r}: its elements cannot be these values: {error}"
            ) from None
        if not fits:
            raise LayoutError(
                f"store to {self!r}: an array of the extents {given}; it takes one value, or an "
                f"array of the extents {extents}"
            )
        if not held:
            raise LayoutError(
                f"store to {self!r}: its elements cannot be these values; give values of "
                f"{self.element_name}"
            )
        return elements

    def fill(self, value: Any) -> None:
        """Sets every element to `value` (C++, DSL ``fill``)."""
        self.store(value)

    @property
    def element_bits(self) -> int:
        """The bits of an element."""
        self._require_data("the width of its elements")
        return 8 * int(self.data[:1].nbytes)

    @property
    def unit(self) -> int | None:
        """The bits of one offset: of an element, else those of its layout, else None."""
        return getattr(self.layout, "unit", None) if self.data is None else self.element_bits

    @property
    def element_name(self) -> str:
        """The name of the dtype, such as ``"float32"``."""
        return str(self.element_type).rpartition(".")[2]

    def __repr__(self) -> str:
        start = shown(self.offset)
        pointer = start if self.data is None else f"{self.element_name}[{start}]"
        return f"{pointer} o {self.layout}"


def library(data: Any) -> Any:
    """The module of an array, numpy or torch; raises `LayoutError` if it is neither.

    An array's library is loaded already, so nothing is imported here.
    """
    for name, array in (("numpy", "ndarray"), ("torch", "Tensor")):
        module = sys.modules.get(name)
        if module is not None and isinstance(data, getattr(module, array, ())):
            return module
    raise LayoutError(
        f"a tensor's data is an array of numpy or torch, not a {type(data).__name__}; "
        f"make_counting_tensor and make_identity_tensor make tensors without data"
    )


# ------------------------------------------------------------------------------------- makers


def make_tensor(data: Any, layout: Any = None) -> Tensor:
    """The array as a tensor, seen through a layout (C++ and DSL ``make_tensor``).

    `data` is an array of numpy or torch; its memory is shared, not copied.  `layout` is a Layout or
    a ComposedLayout in elements, or a shape for the compact layout.  The array must then be flat or
    contiguous.  Without `layout`, the tensor has the shape and the strides of the array.

    Raises `LayoutError` if the layout reaches beyond the data, gives coordinates or has symbols, or
    if the array has negative strides.

    >>> import numpy
    >>> a = make_tensor(numpy.arange(6).reshape(2, 3))
    >>> print(a, a[1, 2])
    int64[0] o (2,3):(3,1) 5
    >>> print(make_tensor(numpy.arange(6), Layout((2, 3))).load())
    [[0 2 4]
     [1 3 5]]
    """
    library(data)
    if layout is None:
        layout = Layout(tuple(data.shape), _strides(data))
        return Tensor(_flat_storage(data, cosize(layout)), layout)
    if not isinstance(layout, (Layout, ComposedLayout)):
        layout = Layout(layout)
    if isinstance(layout, Layout) and kind_of(layout.modes) is ArithTuple:
        raise LayoutError(f"make_tensor: {layout} gives coordinates, not elements of data")
    if not all(map(is_int, (*leaves(layout.shape), cosize(layout)))):
        raise LayoutError(f"make_tensor: {layout} has symbols; {GIVE_VALUES}")
    made = Tensor(_flat_array(data), layout)
    if cosize(layout) > len(made.data):
        if isinstance(layout, Layout):
            raise LayoutError(
                f"make_tensor: {layout} reaches element {cosize(layout) - 1} and the data has "
                f"{len(made.data)} elements"
            )
        made.indices()  # cosize is only a bound
    return made


def make_counting_tensor(layout: Any) -> Tensor:
    """The tensor without data whose elements are the values of `layout` (C++
    ``make_counting_tensor``).

    >>> make_counting_tensor(Layout((4, 8), (8, 1)))[2, 3]
    19
    """
    coordinates = isinstance(layout, Layout) and kind_of(layout.modes) is ArithTuple
    return Tensor(None, layout, layout(0) if coordinates else 0)


def make_identity_tensor(shape: IntTuple) -> Tensor:
    """The tensor whose element at each coordinate is that coordinate (C++ and DSL
    ``make_identity_tensor``).  Its tiles and partitions say which coordinates they hold.

    >>> from layouts import local_tile
    >>> tile = local_tile(make_identity_tensor((100, 64)), (32, 32), (3, 1))
    >>> tile, tile[0, 5]
    ((96,32) o (32,32):(1@0,1@1), (96, 37))
    """
    return make_counting_tensor(make_identity_layout(shape))


def make_rmem_tensor(layout: Any, dtype: Any) -> Tensor:
    """A tensor of zeros of its own, such as the registers of a thread (DSL ``make_rmem_tensor``).

    `layout` is a Layout, or a shape for the compact layout; `dtype` is a type of numpy or torch.

    >>> import numpy
    >>> make_rmem_tensor(((2, 2), 4), numpy.float32)
    float32[0] o ((2,2),4):((1,2),4)
    """
    if not isinstance(layout, (Layout, ComposedLayout)):
        layout = Layout(layout)
    if not is_int(cosize(layout)):
        raise LayoutError(f"make_rmem_tensor: {layout} has symbols; {GIVE_VALUES}")
    xp: Any = sys.modules.get("torch")
    if type(dtype).__module__ != "torch" or xp is None:
        xp = needed("numpy", "a tensor with data")
    try:
        data = xp.zeros(cosize(layout), dtype=dtype)
    except TypeError:
        raise LayoutError(f"dtype {dtype!r}: it must be a type of numpy or torch") from None
    except (MemoryError, ValueError, OverflowError, RuntimeError) as error:
        raise LayoutError(f"make_rmem_tensor: {layout} does not fit in memory: {error}") from None
    return make_tensor(data, layout)


def make_fragment_like(x: Any, dtype: Any = None) -> Any:
    """The registers for a partition (C++ ``make_fragment_like``).

    Mode 0, the values of one instruction, is compact from left to right, where strides of 0 stay;
    the other modes follow, in the order of their strides in `x`.  Of coordinates or XOR strides
    only the shape counts.  Of a layout, or of a `Tile`, the result is a layout; of a tensor it is a
    tensor of zeros, of `dtype` or of the type of `x`.

    >>> print(make_fragment_like(Layout(((2, 2), 4, 2), ((1, 16), 128, 2))))
    ((2,2),4,2):((1,2),8,4)
    """
    if isinstance(x, Tensor):
        if dtype is None:
            x._require_data("make_fragment_like without a dtype")
        own = x.element_type if dtype is None else dtype
        return make_rmem_tensor(make_fragment_like(x.layout), own)
    layout = layout_for("make_fragment_like", x.layout if isinstance(x, Tile) else x)
    outer: Layout = getattr(layout, "outer", layout)
    if len(outer) < 2 or kind_of(outer.modes) is not None:
        return Layout(outer.shape)
    held, total = len(outer[0].modes), len(outer.modes)
    order = [k for k in range(held) if outer.modes[k][1] != 0]
    order += ascending(range(held, total), lambda k: outer.modes[k][1])
    strides, start = [0] * total, 1
    for k in order:
        strides[k], start = start, start * outer.modes[k][0]
    ones = (0 if s == 1 else d for (s, _), d in zip(outer.modes, strides, strict=True))
    return Layout(outer.shape, unflatten(ones, outer.shape))


# ------------------------------------------------------------------------------------- arrays


def _rounds(dtype: Any) -> bool:
    """Whether elements are rounded: those of a floating-point or complex type, or of numpy's
    extensions, such as bfloat16.

    >>> import numpy, torch
    >>> [_rounds(x) for x in (torch.float8_e4m3fn, torch.uint8, numpy.dtype(complex))]
    [True, False, True]
    """
    if hasattr(dtype, "kind"):  # of numpy
        return dtype.kind in "fc" or dtype.isbuiltin == 2
    return bool(dtype.is_floating_point or dtype.is_complex)


def _equal(elements: Any, values: Any) -> bool:
    """Whether an array has these values, as numbers: torch would make one value an element first,
    and -1 is no 255."""
    xp = library(elements)
    exact = {"dtype": xp.float64} if isinstance(values, float) else {}  # torch's default is fp32
    given = xp.atleast_1d(xp.asarray(values, **exact))
    if hasattr(given, "to"):  # of torch, perhaps on another device
        given = given.to(elements.device)
    missing = (elements != elements) & (given != given)  # NaN, which equals nothing
    return bool(((elements == given) | missing).all())


def _strides(data: Any) -> tuple[int, ...]:
    """The strides of an array, in elements."""
    if library(data).__name__ == "torch":
        return tuple(data.stride())
    strides = tuple(stride // data.itemsize for stride in data.strides)
    if any(stride % data.itemsize for stride in data.strides):
        raise LayoutError(f"make_tensor: strides of {data.strides} bytes of {data.dtype}")
    return strides


def _flat_storage(data: Any, count: int) -> Any:
    """The `count` elements of memory that an array begins with."""
    if library(data).__name__ == "torch":
        return data.as_strided((count,), (1,))
    from numpy.lib.stride_tricks import as_strided

    return as_strided(data, (count,), (data.itemsize,))


def _flat_array(data: Any) -> Any:
    """The array as a flat one that shares its memory."""
    if data.ndim == 1:
        return data
    torch = library(data).__name__ == "torch"
    if not (data.is_contiguous() if torch else data.flags.c_contiguous):
        raise LayoutError(
            f"make_tensor: an array of shape {tuple(data.shape)} that is not contiguous; leave out "
            f"the layout to take the array's own, or give its flat storage"
        )
    return data.reshape(-1)
