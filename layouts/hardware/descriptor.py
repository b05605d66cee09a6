"""The shared-memory operand of wgmma: its descriptor, and the addresses that the hardware reads.

An operand is (MN, K): M x K of A, or N x K of B.  It consists of *core matrices*, eight rows of 16
bytes.  Besides a base offset, which is 0 here, the matrix descriptor has four fields: the start
address, the swizzle mode, the leading byte offset (LBO), and the stride byte offset (SBO).  They
describe a *canonical layout* in bytes, where a row of the swizzle atom has W = 1, 2, 4, 8 units of
16 bytes, and a unit has T elements of e bytes:

    K-major           ((8,m),(T,2)):((16W,SBO),(e,16))
    K-major, W = 1    ((8,m),(T,2)):((16,SBO),(e,LBO))
    MN-major          ((T,W,m),(8,k)):((e,16,LBO),(16W,SBO))
    MN-major, W = 1   ((T,1,m),(8,k)):((e,0,SBO),(16,LBO))

The swizzle is S<log2 W,4,3> on absolute byte addresses, so the start of an operand is its address
before swizzling.  (PTX ISA 9.2, section 9.7.15.5.1.2, Shared Memory Matrix Layout and Matrix
Descriptor; C++ ``make_gmma_desc`` in cute/atom/mma_traits_sm90_gmma.hpp.)
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from ..algebra import coalesce, logical_divide
from ..errors import LayoutError
from ..values.layout import Layout, make_layout
from ..values.swizzle import ComposedLayout, Swizzle
from ..values.tuples import as_int, coordinate, idx2crd, is_int, is_one_of, map_leaves, size, text
from ..values.value import Value
from .atoms import WGMMA_K_BITS

__all__ = ["WgmmaDescriptor", "wgmma_descriptor", "wgmma_smem_atom"]

Major: TypeAlias = Literal["K", "MN"]

#: Rows of a core matrix, and bytes of one of its rows (PTX ISA 9.7.15.5.1.2).
CORE_ROWS, CORE_BYTES = 8, 16

#: Bytes of a row of the swizzle atom → swizzle mode in bits 62-63 (PTX ISA 9.7.15.5.1.2.2).
SWIZZLE_MODES: Mapping[int, int] = MappingProxyType({16: 0, 128: 1, 64: 2, 32: 3})

#: Where the descriptor has the start address, LBO, SBO and the swizzle mode (PTX ISA
#: 9.7.15.5.1.2.2).  The first three have 14 bits and omit the low 4 bits of a byte offset.
START_BIT, LBO_BIT, SBO_BIT, MODE_BIT = 0, 16, 32, 62
FIELD_BITS, OMITTED_BITS = 14, 4

#: Byte offsets that a field holds are below this.
OFFSET_LIMIT = 1 << FIELD_BITS + OMITTED_BITS

#: Bits of an element that wgmma reads from shared memory; MN-major it reads 16 bits only (PTX ISA
#: 9.7.15.5.1.2, tnspA and tnspB).
UNITS, MN_MAJOR_UNIT = (8, 16, 32), 16


class WgmmaDescriptor(Value):
    """The matrix descriptor of an operand in shared memory, without its start address.

    `major`                K or MN, the contiguous mode; part of the instruction (tnspA, tnspB)
    `swizzle_bytes`        bytes of a row of the swizzle atom: 128, 64, 32, or 16 for no swizzle
    `leading_byte_offset`  LBO, in bytes
    `stride_byte_offset`   SBO, in bytes
    `unit`                 bits of an element: 8, 16 or 32

    Raises `LayoutError` unless every field has one of these values, and the offsets are multiples
    of 16 bytes that fit their 14 bits.

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
        fields = major, swizzle_bytes, leading_byte_offset, stride_byte_offset, unit
        self._set(*map(as_int, fields))
        for name, given, choices in (
            ("major", major, ("K", "MN")),
            ("swizzle_bytes", swizzle_bytes, SWIZZLE_MODES),
            ("unit", unit, UNITS),
        ):
            if not is_one_of(given, choices):
                one_of = ", ".join(map(repr, sorted(choices)))
                raise LayoutError(f"{name} {given!r}: it must be one of {one_of}")
        for offset in (leading_byte_offset, stride_byte_offset):
            if not _encodable(offset):
                raise LayoutError(
                    f"{self!r}: the offset {offset} must be a multiple of {CORE_BYTES} bytes below "
                    f"{OFFSET_LIMIT}"
                )

    @property
    def swizzle(self) -> Swizzle:
        """The swizzle, on byte addresses."""
        return Swizzle((self.swizzle_bytes // CORE_BYTES).bit_length() - 1, 4, 3)

    def canonical(self, groups: int = 1) -> Layout:
        """(mn, k) → bytes from the start, before swizzling, for the k of one instruction.

        mn has `groups` groups, of 8 rows if K-major, of a row of the swizzle atom if MN-major;
        beyond them it continues with the last stride.
        """
        element = self.unit // 8
        unit_elements, k_elements = CORE_BYTES // element, WGMMA_K_BITS // self.unit
        row, lbo, sbo = self.swizzle_bytes, self.leading_byte_offset, self.stride_byte_offset
        swizzled = row > CORE_BYTES
        if self.major == "K":
            k = (unit_elements, k_elements // unit_elements)
            step = CORE_BYTES if swizzled else lbo
            return Layout(((CORE_ROWS, groups), k), ((row, sbo), (element, step)))
        across, down = (lbo, sbo) if swizzled else (sbo, lbo)
        mn, k = (unit_elements, row // CORE_BYTES, groups), (CORE_ROWS, k_elements // CORE_ROWS)
        return Layout((mn, k), ((element, CORE_BYTES, across), (row, down)))

    def address(self, start: Any, mn: Any, k: Any) -> Any:
        """The byte address where the hardware reads element (mn, k) of the operand at `start`.

        It follows from the fields alone.  k counts the elements of one instruction, 32 bytes; the
        next instruction has a start of its own.  All three arguments may be arrays.

        Raises `LayoutError` unless they are integers from 0 up, or arrays of these.
        """
        at = coordinate((start, mn, k))
        if any(isinstance(entry, tuple) for entry in at):
            raise LayoutError(f"address({start!r}, {mn!r}, {k!r}): give three integers or arrays")
        return self.swizzle(at[0] + self.canonical()(*at[1:]))

    def encode(self, start: int) -> int:
        """The 64-bit matrix descriptor of an operand at byte address `start`, with base offset 0.

        (PTX ISA 9.7.15.5.1.2.2, Matrix Descriptor Format.)  Raises `LayoutError` unless `start` is
        a multiple of 16 bytes that fits its 14 bits.
        """
        if not _encodable(start):
            raise LayoutError(
                f"start {start}: it must be a multiple of {CORE_BYTES} bytes below {OFFSET_LIMIT}"
            )
        return (
            start >> OMITTED_BITS << START_BIT
            | self.leading_byte_offset >> OMITTED_BITS << LBO_BIT
            | self.stride_byte_offset >> OMITTED_BITS << SBO_BIT
            | SWIZZLE_MODES[self.swizzle_bytes] << MODE_BIT
        )


def _encodable(offset: Any) -> bool:
    """Whether a field of the descriptor holds `offset`."""
    return is_int(offset) and offset % (1 << OMITTED_BITS) == 0 and 0 <= offset < OFFSET_LIMIT


def wgmma_smem_atom(major: Major, swizzle_bytes: int = 128, unit: int = 16) -> ComposedLayout:
    """The swizzle atom of an operand (MN, K), in elements: the smallest tile in canonical form.

    It has eight rows of `swizzle_bytes`: 32, 64, 128, or 16 for no swizzle.  `unit` is the bits of
    an element, 8, 16 or 32; MN-major wgmma reads 16 bits only.  `tile_to_shape` repeats the atom to
    an operand.  (PTX ISA 9.7.15.5.1.2, Shared Memory Matrix Layout; C++
    ``GMMA::Layout_K_SW128_Atom`` and its seven siblings.)

    Raises `LayoutError` if an argument has another value.

    >>> print(wgmma_smem_atom("K"), wgmma_smem_atom("MN", 64))
    S<3,3,3> o 0 o (8,64):(64,1) S<2,3,3> o 0 o (32,8):(1,32)
    >>> from layouts import tile_to_shape
    >>> wgmma_descriptor(tile_to_shape(wgmma_smem_atom("K"), (128, 64)), "K").stride_byte_offset
    1024
    """
    groups = CORE_ROWS * swizzle_bytes if is_int(swizzle_bytes) else 0
    fields = WgmmaDescriptor(major, swizzle_bytes, CORE_BYTES, groups, unit)
    row = swizzle_bytes * 8 // unit
    rows = CORE_ROWS
    tile = Layout((rows, row), (row, 1)) if major == "K" else Layout((row, rows), (1, row))
    return ComposedLayout(fields.swizzle.recast(8, unit), 0, tile, unit)


def wgmma_descriptor(layout: ComposedLayout, major: Major) -> WgmmaDescriptor:
    """The descriptor with which wgmma reads the operand that `layout` places in shared memory.

    `layout` is (MN, K) or (MN, K, stages ...): a swizzle over a layout, with its `unit`.  The
    buffer must start at a multiple of ``8 * swizzle_bytes``.  For every block of K that one
    instruction reads, the descriptor's ``address(start, mn, k)`` is then the address that `layout`
    gives element (mn, k) of the block; `start` is the address of the block's first element before
    swizzling.

    Raises `LayoutError` if `layout` is not in canonical form: it names the mode, and what the mode
    must be.

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
        raise LayoutError(f"{layout}: an operand of wgmma has the modes (MN, K) or (MN, K, stages)")
    bytes_of = map_leaves(lambda stride: stride * unit // 8, layout.outer.stride)
    mn, k, *blocks = Layout(layout.shape, bytes_of)
    rows = CORE_ROWS if major == "K" else swizzle_bytes * 8 // unit
    k_elements = WGMMA_K_BITS // unit
    if size(mn) % rows or size(k) % k_elements:
        raise LayoutError(
            f"{layout}: wgmma reads {major}-major operands in steps of {rows} along MN and "
            f"{k_elements} along K; this one is {size(mn)} x {size(k)}"
        )
    k, k_blocks = _instruction_blocks(layout, k, k_elements)
    descriptor = _fields(major, swizzle_bytes, unit, mn, k, rows)
    _check_canonical(layout, descriptor, (mn, k), rows)
    _check_alignment(layout, descriptor, make_layout(k_blocks, *blocks))
    return descriptor


def _swizzle_bytes(layout: ComposedLayout) -> int:
    if not isinstance(layout, ComposedLayout) or not isinstance(layout.inner, Swizzle):
        raise LayoutError(f"{layout}: an operand of wgmma is a Swizzle over a Layout")
    if layout.unit is None:
        raise LayoutError(
            f"{layout}: give its unit, the bits of an element: ComposedLayout(..., unit=16)"
        )
    swizzle = layout.inner.recast(layout.unit, 8)
    if swizzle.bits > 3 or (swizzle.bits and (swizzle.base, swizzle.shift) != (4, 3)):
        raise LayoutError(
            f"{layout}: its swizzle is {swizzle} on bytes; wgmma has the 32, 64 and 128-byte "
            f"swizzles S<1,4,3>, S<2,4,3> and S<3,4,3> on bytes; on {layout.unit}-bit elements the "
            f"last is {Swizzle(3, 4, 3).recast(8, layout.unit)}"
        )
    return CORE_BYTES << swizzle.bits


def _unit(layout: ComposedLayout, major: Major) -> int:
    unit = layout.unit
    if not is_one_of(major, ("K", "MN")):
        raise LayoutError(f"major {major!r}: major must be 'K' or 'MN', the contiguous mode")
    if unit not in UNITS or (major == "MN" and unit != MN_MAJOR_UNIT):
        raise LayoutError(
            f"{layout} of {unit}-bit elements, {major}-major: wgmma reads elements of 8, 16 and 32 "
            f"bits K-major, but only 16 bits MN-major"
        )
    return unit


def _instruction_blocks(layout: ComposedLayout, k: Layout, extent: int) -> tuple[Layout, Layout]:
    """Mode K divided into (k of one instruction, instructions)."""
    try:
        inside, blocks = logical_divide(k, extent)
    except LayoutError as reason:
        raise LayoutError(
            f"{layout}: the {extent} elements of K of one instruction are not a tile of mode K: "
            f"{reason}"
        ) from None
    return inside, blocks


def _fields(major: Major, row: int, unit: int, mn: Layout, k: Layout, rows: int) -> WgmmaDescriptor:
    """The fields: LBO and SBO are strides of `mn` and `k`, in bytes, in canonical form."""
    across, swizzled = mn(rows) if size(mn) > rows else 0, row > CORE_BYTES
    if major == "K":
        lbo, sbo = CORE_BYTES if swizzled else k(CORE_BYTES * 8 // unit), across
    else:
        lbo, sbo = (across, k(CORE_ROWS)) if swizzled else (k(CORE_ROWS), across)
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
    """Groups must start where the swizzle repeats, every eight rows; blocks, in the first row."""
    if descriptor.swizzle_bytes == CORE_BYTES:
        return
    repeat = CORE_ROWS * descriptor.swizzle_bytes
    across = descriptor.leading_byte_offset if descriptor.major == "MN" else 0
    for name, offset in (("stride", descriptor.stride_byte_offset), ("leading", across)):
        if offset % repeat:
            raise LayoutError(
                f"{layout}: its {name} byte offset {offset} must be a multiple of {repeat} bytes, "
                f"where a {descriptor.swizzle_bytes}-byte swizzle repeats"
            )
    latest = descriptor.swizzle_bytes - WGMMA_K_BITS // 8 if descriptor.major == "K" else 0
    for index in range(size(blocks)):
        start = layout.offset * descriptor.unit // 8 + blocks(index)
        if start % CORE_BYTES or start % repeat > latest:
            raise LayoutError(
                f"{layout}: block {text(idx2crd(index, blocks.shape))} of {blocks} (K, stages ...) "
                f"starts at byte {start}; it must start at a multiple of {CORE_BYTES} bytes, and "
                f"at most {latest} after a multiple of {repeat}, where the swizzle repeats"
            )
