"""The shared-memory operand of wgmma: its descriptor, and the addresses that the hardware reads.

An operand is (MN, K): M x K of A, or N x K of B.  wgmma finds its elements by four facts: where it
starts, a swizzle, and two strides, the leading (LBO) and the stride byte offset (SBO).  These facts
span a *canonical layout*, in bytes, with W = 1, 2, 4, 8 sixteen-byte units in a row of the swizzle
and T elements of e bytes in a unit:

    K-major           ((8,m),(T,2)):((16W,SBO),(e,16))
    K-major, W = 1    ((8,m),(T,2)):((16,SBO),(e,LBO))
    MN-major          ((T,W,m),(8,k)):((e,16,LBO),(16W,SBO))
    MN-major, W = 1   ((T,1,m),(8,k)):((e,0,SBO),(16,LBO))

(PTX ISA 9.7.15.5.1.2, Shared Memory Matrix Layout, and its Matrix Descriptor; C++
``make_gmma_desc`` in cute/atom/mma_traits_sm90_gmma.hpp.)  The swizzle is S<log2 W,4,3> on the
absolute byte address, so the start of an operand is its address before swizzling.
"""

from __future__ import annotations

from typing import Any, Literal

from ..algebra import coalesce, logical_divide
from ..errors import LayoutError
from ..values.layout import Layout, make_layout
from ..values.swizzle import ComposedLayout, Swizzle
from ..values.tuples import idx2crd, map_leaves, size, text
from ..values.value import Value

__all__ = ["WgmmaDescriptor", "wgmma_descriptor", "wgmma_smem_atom"]

Major = Literal["K", "MN"]

#: Bytes of a row of the swizzle -> what the descriptor's bits 62-63 say.
SWIZZLE_MODES = {16: 0, 128: 1, 64: 2, 32: 3}

#: Bits of an element that wgmma takes from shared memory.
UNITS = (8, 16, 32)


class WgmmaDescriptor(Value):
    """What wgmma is told about an operand in shared memory, apart from where it starts.

    `leading_byte_offset` and `stride_byte_offset` in bytes; `swizzle_bytes` is 128, 64 or 32, or 16
    for none; `unit` is the bits of an element.  `major` stands in the instruction (tnspA, tnspB).

    >>> D = WgmmaDescriptor("K", 128, 16, 1024, 16)
    >>> D.address(0, 1, 8), hex(D.encode(0x400))
    (128, '0x4000004000010040')
    """

    __slots__ = __match_args__ = (
        "major",
        "swizzle_bytes",
        "leading_byte_offset",
        "stride_byte_offset",
        "unit",
    )
    major: Major
    swizzle_bytes: int
    leading_byte_offset: int
    stride_byte_offset: int
    unit: int

    def __init__(
        self,
        major: Major,
        swizzle_bytes: int,
        leading_byte_offset: int,
        stride_byte_offset: int,
        unit: int,
    ) -> None:
        self._set(major, swizzle_bytes, leading_byte_offset, stride_byte_offset, unit)
        if major not in ("K", "MN") or swizzle_bytes not in SWIZZLE_MODES or unit not in UNITS:
            raise LayoutError(
                f"{self!r}: major must be 'K' or 'MN', swizzle_bytes 16, 32, 64 or 128, "
                f"and unit 8, 16 or 32"
            )
        for offset in (leading_byte_offset, stride_byte_offset):
            if not _encodable(offset):
                raise LayoutError(
                    f"{self!r}: the offset {offset} must be a multiple of 16 bytes below {1 << 18}"
                )

    @property
    def swizzle(self) -> Swizzle:
        """The swizzle, on byte addresses."""
        return Swizzle((self.swizzle_bytes // 16).bit_length() - 1, 4, 3)

    def canonical(self, groups: int = 1) -> Layout:
        """(mn, k) -> bytes from the start, before swizzling: 8 * `groups` rows, or `groups` rows of
        the swizzle, by 32 bytes of k.  Beyond that mn goes on by the last stride."""
        unit_elements, element = 128 // self.unit, self.unit // 8
        row, lbo, sbo = self.swizzle_bytes, self.leading_byte_offset, self.stride_byte_offset
        if self.major == "K":
            step = 16 if row > 16 else lbo
            return Layout(((8, groups), (unit_elements, 2)), ((row, sbo), (element, step)))
        across, down = (lbo, sbo) if row > 16 else (sbo, lbo)
        mn = (unit_elements, row // 16, groups)
        return Layout((mn, (8, unit_elements // 4)), ((element, 16, across), (row, down)))

    def address(self, start: Any, mn: Any, k: Any) -> Any:
        """The byte address where the hardware reads element (mn, k) of the operand at `start`.

        It follows from the fields alone.  k counts from 0 to 32 bytes of elements, one instruction;
        the next starts further on.  All three may be arrays.
        """
        return self.swizzle(start + self.canonical()(mn, k))

    def encode(self, start: int) -> int:
        """The 64-bit matrix descriptor for an operand at byte address `start` (PTX ISA
        9.7.15.5.1.2.2, Matrix Descriptor Format; base offset 0)."""
        if not _encodable(start):
            raise LayoutError(f"start {start}: it must be a multiple of 16 bytes below {1 << 18}")
        lbo, sbo = self.leading_byte_offset >> 4, self.stride_byte_offset >> 4
        return start >> 4 | lbo << 16 | sbo << 32 | SWIZZLE_MODES[self.swizzle_bytes] << 62


def _encodable(offset: int) -> bool:
    """Whether a field of 14 bits holds `offset` without its low four."""
    return offset % 16 == 0 and 0 <= offset < 1 << 18


def wgmma_smem_atom(major: Major, swizzle_bytes: int = 128, unit: int = 16) -> ComposedLayout:
    """The smallest tile (MN, K) in canonical form: eight rows of the swizzle, in elements.

    `tile_to_shape` repeats it to an operand.  (PTX ISA 9.7.15.5.1.2, Shared Memory Matrix Layout;
    C++ ``GMMA::Layout_K_SW128_Atom`` and its seven siblings.)

    Raises `LayoutError` unless `swizzle_bytes` is 16, none, or 32, 64, 128, and `unit`, the bits of
    an element, 8, 16 or 32; MN-major wgmma reads elements of 16 bits alone.

    >>> print(wgmma_smem_atom("K"), wgmma_smem_atom("MN", 64))
    S<3,3,3> o 0 o (8,64):(64,1) S<2,3,3> o 0 o (32,8):(1,32)
    >>> from layouts import tile_to_shape
    >>> wgmma_descriptor(tile_to_shape(wgmma_smem_atom("K"), (128, 64)), "K").stride_byte_offset
    1024
    """
    fields = WgmmaDescriptor(major, swizzle_bytes, 16, 8 * swizzle_bytes, unit)
    row = swizzle_bytes * 8 // unit
    tile = Layout((8, row), (row, 1)) if major == "K" else Layout((row, 8), (1, row))
    return ComposedLayout(fields.swizzle.recast(8, unit), 0, tile, unit)


def wgmma_descriptor(layout: ComposedLayout, major: Major) -> WgmmaDescriptor:
    """The descriptor by which wgmma reads an operand that lies in shared memory by `layout`.

    `layout` is (MN, K) or (MN, K, stages ...), a swizzle over a layout with its `unit`, in a buffer
    that starts at a multiple of ``8 * swizzle_bytes``.  Then, for every block of K that one
    instruction reads, the descriptor's ``address(start, mn, k)`` is where `layout` puts element
    (mn, k) of the block, with `start` the address of its first element before swizzling.

    Raises `LayoutError` with the mode that is wrong, and what it must be, if `layout` is not in
    canonical form.

    >>> tile = ComposedLayout(Swizzle(3, 3, 3), 0, Layout((128, 64), (64, 1)), unit=16)
    >>> D = wgmma_descriptor(tile, "K")
    >>> D.leading_byte_offset, D.stride_byte_offset, D.swizzle_bytes
    (16, 1024, 128)
    >>> D.address(2 * tile.outer(0, 16), 77, 5) == 2 * tile(77, 21)
    True
    """
    swizzle_bytes = _swizzle_bytes(layout)
    unit = _unit(layout, major)
    if len(layout) < 2:
        raise LayoutError(f"{layout}: an operand of wgmma has the modes (MN, K), and may have more")
    bytes_of = map_leaves(lambda stride: stride * unit // 8, layout.outer.stride)
    mn, k, *blocks = Layout(layout.shape, bytes_of)
    rows = 8 if major == "K" else swizzle_bytes * 8 // unit
    if size(mn) % rows or size(k) % (256 // unit):
        raise LayoutError(
            f"{layout}: wgmma reads {major}-major operands in steps of {rows} along MN and "
            f"{256 // unit} along K, and its size is {size(mn)} x {size(k)}"
        )
    k, k_blocks = _instruction_blocks(layout, k, 256 // unit)
    descriptor = _fields(major, swizzle_bytes, unit, mn, k, rows)
    _check_canonical(layout, descriptor, (mn, k), rows)
    _check_alignment(layout, descriptor, make_layout(k_blocks, *blocks))
    return descriptor


def _swizzle_bytes(layout: ComposedLayout) -> int:
    if not isinstance(layout, ComposedLayout) or not isinstance(layout.inner, Swizzle):
        raise LayoutError(f"{layout}: an operand of wgmma is a Swizzle over a Layout")
    if layout.unit is None:
        raise LayoutError(
            f"{layout}: say its unit, the bits of an element: ComposedLayout(unit=16)"
        )
    swizzle = layout.inner.recast(layout.unit, 8)
    if swizzle.bits > 3 or (swizzle.bits and (swizzle.base, swizzle.shift) != (4, 3)):
        raise LayoutError(
            f"{layout}: its swizzle is {swizzle} on bytes, and wgmma knows S<1,4,3>, S<2,4,3> and "
            f"S<3,4,3> on bytes, the 32, 64 and 128-byte swizzles; on {layout.unit}-bit elements "
            f"the last is {Swizzle(3, 4, 3).recast(8, layout.unit)}"
        )
    return 16 << swizzle.bits


def _unit(layout: ComposedLayout, major: Major) -> int:
    unit = layout.unit
    if unit not in UNITS or (major == "MN" and unit != 16):
        raise LayoutError(
            f"{layout} of {unit}-bit elements, {major}-major: wgmma reads elements of 8, 16 and 32 "
            f"bits K-major, and MN-major those of 16 bits alone"
        )
    return unit


def _instruction_blocks(layout: ComposedLayout, k: Layout, extent: int) -> tuple[Layout, Layout]:
    """Mode K cut into what one instruction reads, and the blocks of it."""
    try:
        inside, blocks = logical_divide(k, extent)
    except LayoutError as reason:
        raise LayoutError(
            f"{layout}: {extent} of K, one instruction, are no tile: {reason}"
        ) from None
    return inside, blocks


def _fields(major: Major, row: int, unit: int, mn: Layout, k: Layout, rows: int) -> WgmmaDescriptor:
    """The fields, read off `mn` and `k` in bytes where a canonical layout has its free strides."""
    across = mn(rows) if size(mn) > rows else 0
    if major == "K":
        return WgmmaDescriptor(major, row, 16 if row > 16 else k(128 // unit), across, unit)
    lbo, sbo = (across, k(8)) if row > 16 else (k(8), across)
    return WgmmaDescriptor(major, row, lbo, sbo, unit)


def _check_canonical(
    layout: ComposedLayout, descriptor: WgmmaDescriptor, modes: tuple[Layout, Layout], rows: int
) -> None:
    canonical = descriptor.canonical(size(modes[0]) // rows)
    for name, mode, wanted in zip(("MN", "K"), modes, canonical, strict=True):
        if coalesce(mode) != coalesce(wanted):
            raise LayoutError(
                f"{layout} is not {descriptor.major}-major with a {descriptor.swizzle_bytes}-byte "
                f"swizzle: its mode {name} is {mode} in bytes and must be {wanted}; "
                f"the canonical form in bytes is {canonical}"
            )


def _check_alignment(layout: ComposedLayout, descriptor: WgmmaDescriptor, blocks: Layout) -> None:
    """Groups must start where the swizzle repeats, after eight rows; blocks, in the first row."""
    if descriptor.swizzle_bytes == 16:
        return
    repeat = 8 * descriptor.swizzle_bytes
    across = descriptor.leading_byte_offset if descriptor.major == "MN" else 0
    for name, offset in (("stride", descriptor.stride_byte_offset), ("leading", across)):
        if offset % repeat:
            raise LayoutError(
                f"{layout}: its {name} byte offset {offset} must be a multiple of {repeat} bytes, "
                f"where a {descriptor.swizzle_bytes}-byte swizzle repeats"
            )
    latest = descriptor.swizzle_bytes - 32 if descriptor.major == "K" else 0
    for index in range(size(blocks)):
        start = layout.offset * descriptor.unit // 8 + blocks(index)
        if start % 16 or start % repeat > latest:
            raise LayoutError(
                f"{layout}: block {text(idx2crd(index, blocks.shape))} of {blocks} (K, stages ...) "
                f"starts at byte {start}; it must start at a multiple of 16 bytes, and at most "
                f"{latest} after a multiple of {repeat}, where the swizzle repeats"
            )
