"""Lowering: `cute` objects from the layouts of a plan, inside a `@cute.jit` function.

No other file lowers a layout of a plan. A swizzle has a unit: on a *pointer* the CuTe DSL XORs
bytes, in a composed layout it XORs elements. Given the wrong one, it compiles without a warning,
into 512 TMA stores (studied on 4.8.1). Here the unit comes from the layout itself.
"""

from __future__ import annotations

from typing import Any

import cutlass
import cutlass.cute as cute
from cutlass.cute.nvgpu import cpasync

from layouts import ComposedLayout, Layout, LayoutError, Swizzle, cosize

DTYPES = {
    "bfloat16": cutlass.BFloat16,
    "float16": cutlass.Float16,
    "float32": cutlass.Float32,
    "int32": cutlass.Int32,
}


def layout(plain: Layout) -> cute.Layout:
    """The same layout in CuTe."""
    return cute.make_layout(plain.shape, stride=plain.stride)


def byte_swizzle(swizzled: ComposedLayout) -> cute.Swizzle:
    """The swizzle of a shared-memory layout in bytes, as a pointer carries it."""
    swizzle = _in_bytes(swizzled)
    return cute.make_swizzle(swizzle.bits, swizzle.base, swizzle.shift)


def swizzled_pointer(
    pointer: cute.Pointer, swizzled: ComposedLayout, alignment: int = 16
) -> cute.Pointer:
    """A pointer into shared memory whose swizzle has been applied to the address, as CuTe does.

    It is a multiple of `alignment` bytes. Only offsets that change no bit which the swizzle reads
    or writes may be added to it.
    """
    swizzle, byte = _in_bytes(swizzled), pointer.toint()
    byte = byte ^ ((byte & swizzle.source) >> swizzle.shift)
    return cute.make_ptr(pointer.dtype, byte, cute.AddressSpace.smem, assumed_align=alignment)


def _in_bytes(swizzled: ComposedLayout) -> Swizzle:
    swizzle, unit = swizzled.inner, swizzled.unit
    if not isinstance(swizzle, Swizzle) or unit is None:
        raise LayoutError(
            f"{swizzled!r}: a layout of shared memory must be a Swizzle over a Layout, with its "
            "unit, the bits of an element: ComposedLayout(..., unit=16)"
        )
    return swizzle.recast(unit, 8)


def smem_layout(swizzled: ComposedLayout) -> cute.ComposedLayout:
    """A shared-memory layout as TMA atoms take it: byte swizzle o 0 o elements."""
    return cute.make_composed_layout(byte_swizzle(swizzled), 0, layout(swizzled.outer))


def smem_tensor(
    storage: cute.struct.MemRange, swizzled: ComposedLayout, dtype: Any = None
) -> cute.Tensor:
    """A buffer of shared memory with its layout; of another dtype of as many bits, if given."""
    return storage.get_tensor(layout(swizzled.outer), swizzle=byte_swizzle(swizzled), dtype=dtype)


def aligned(pointer: cute.Pointer, alignment: int) -> cute.Pointer:
    """The pointer as a multiple of `alignment` bytes, which `Pointer.align` would round up to."""
    return cute.make_ptr(pointer.dtype, pointer.toint(), pointer.memspace, assumed_align=alignment)


def strided(pointer: cute.Pointer, shape: Any, stride: Any) -> cute.Tensor:
    """The tensor at a pointer, of extents and strides that are known at run time only."""
    return cute.make_tensor(pointer, cute.make_layout(shape, stride=stride))


def tile_array(pointer: cute.Pointer, plain: Layout, *counts: Any) -> cute.Tensor:
    """Tiles of one layout, one after the other in memory: (rows, columns, *counts)."""
    one, stride = layout(plain), cosize(plain)
    strides: list[Any] = []
    for count in counts:
        strides.append(stride)
        stride = stride * count
    whole = cute.make_layout((*one.shape, *counts), stride=(*one.stride, *strides))
    return cute.make_tensor(pointer, whole)


def tma_partition(
    atom: cute.CopyAtom, shared: cute.Tensor, tiles: cute.Tensor
) -> tuple[cute.Tensor, cute.Tensor]:
    """Tiles (rows, columns, …) in shared and in global memory, as TMA copies them: (box, …)."""
    return cpasync.tma_partition(
        atom, 0, cute.make_layout(1), cute.group_modes(shared, 0, 2), cute.group_modes(tiles, 0, 2)
    )
