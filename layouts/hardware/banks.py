"""The wavefronts of an instruction on a tile: access, layout, report.

An access takes each lane to a coordinate of the tile; the tile's layout takes the coordinate to an
offset.  There are two ways to say which coordinate: `lanes`, the lane that supplies the address, or
`values`, the thread-value layout of the fragment.  For ldmatrix and stmatrix, `lane_addresses`
derives from it which lane supplies which row address.

>>> from layouts import Swizzle
>>> tile = ComposedLayout(Swizzle(3, 3, 3), 0, Layout((64, 64), (64, 1)), unit=16)
>>> print(banks(tile, "ldmatrix.x4", lanes=Layout((16, 2), (1, 64 * 8))))
ldmatrix.x4 at S<3,3,3> o 0 o (16,2):(64,8): 4 wavefronts, conflict-free at every base \
(offsets in elements of 16 bits)
"""

from __future__ import annotations

from typing import TypeAlias

from ..algebra import composition
from ..errors import LayoutError
from ..proof.prove import Proof, prove
from ..values.layout import Layout, make_layout
from ..values.swizzle import ComposedLayout, layout_for, outer_layout
from ..values.tuples import size
from ..values.value import Report, Value
from .atoms import MATRIX_BITS, MATRIX_ROWS, MatrixAtom
from .byte_addresses import bit_columns, byte_unit
from .conflict_free import ConflictFree
from .facts import WARP
from .instructions import Instruction, instruction
from .lane_addresses import row_addresses
from .wavefronts import Wavefronts, wavefronts

__all__ = ["Access", "BankReport", "banks"]

AnyLayout: TypeAlias = Layout | ComposedLayout

#: The advice of an error at an access without lanes and values.
TILES_NEED_LANES = (
    "without lanes and values, the layout itself takes lanes to offsets; for a tile give lanes=, "
    "lane → index of a coordinate, or values=, (thread, value) → index of a coordinate"
)


class Access(Value):
    """An instruction and the coordinates of a tile that it accesses.

    `lanes`   (lane, ...) → index of the coordinate whose address the lane supplies
    `values`  (thread, value) → index of the coordinate that the thread holds

    Without either, the tile's layout itself takes lanes to offsets.

    Raises `LayoutError` if both are given, or unless each is a layout or None.
    """

    __slots__ = __match_args__ = ("instruction", "lanes", "values")
    instruction: Instruction
    lanes: Layout | None
    values: Layout | None

    def __init__(
        self,
        name: str | int | Instruction | MatrixAtom,
        lanes: Layout | None = None,
        values: Layout | None = None,
    ) -> None:
        if isinstance(name, MatrixAtom):
            name = name.instruction
        if lanes is not None and values is not None:
            raise LayoutError(f"access {name}: give lanes or values; each determines the other")
        for given, what in ((lanes, "lane"), (values, "(thread, value)")):
            if given is not None and not isinstance(given, (Layout, ComposedLayout)):
                raise LayoutError(
                    f"access {name}: {given!r} must be a Layout, {what} → index of a coordinate"
                )
        self._set(instruction(name), lanes, values)

    def addresses(self, layout: AnyLayout, unit: int | None = None) -> AnyLayout:
        """(lane, ...) → offset of the address that the lane supplies, for a tile in `layout`.

        Raises `LayoutError` if lanes are missing, or if the elements at one address are not
        contiguous.
        """
        layout = layout_for(f"access {self}", layout)
        if self.values is not None:
            return _of_values(layout, self.instruction, self.values, byte_unit(layout, unit))
        if self.lanes is None:
            return _first_lanes(layout, self.instruction)
        return _after(layout, _first_lanes(self.lanes, self.instruction))

    def __str__(self) -> str:
        return str(self.instruction)


class BankReport(Report):
    """An access to a layout: the offsets of its lanes, and its wavefronts.

    A count that holds at every base holds for every tile: coordinates that no lane accesses move
    all lanes together.
    """

    __slots__ = __match_args__ = ("access", "addresses", "unit", "wavefronts")
    access: Access
    addresses: AnyLayout
    unit: int
    wavefronts: Wavefronts

    def __init__(
        self,
        access: Access,
        addresses: AnyLayout,
        unit: int,
        wavefronts: Wavefronts,
    ) -> None:
        self._set(access, addresses, unit, wavefronts)

    @property
    def conflict_free(self) -> bool:
        """Whether every phase takes one wavefront."""
        return self.wavefronts.conflict_free

    @property
    def statement(self) -> ConflictFree:
        """The statement that every phase takes one wavefront."""
        how = self.access.instruction
        return ConflictFree(self.addresses, how.name or how.width, self.unit)

    def proof(self) -> Proof:
        """The statement, proved or refuted."""
        return prove(self.statement)

    def __str__(self) -> str:
        return f"{self.access} at {self.addresses}: {self.wavefronts}"


def banks(
    layout: AnyLayout,
    access: str | int | Instruction | MatrixAtom | Access,
    lanes: Layout | None = None,
    values: Layout | None = None,
    unit: int | None = None,
) -> BankReport:
    """The wavefronts of `access` to a tile that `layout` places in shared memory.

    `access` is an `Access`, or an instruction, its PTX name, or its atom.  `lanes` takes
    (lane, ...), and `values` takes (thread, value), to the index of a coordinate of `layout`;
    without either `layout` itself takes lanes to offsets.  `unit` is the bits of one offset of a
    layout that has no unit of its own (default 16).

    Raises `LayoutError` if lanes are missing, if the elements at one address are not contiguous, if
    an address is not a multiple of the width, or if `unit` is not that of the layout.

    >>> from layouts import Swizzle
    >>> naive = Layout((64, 64), (64, 1))
    >>> report = banks(naive, "stmatrix.x4", lanes=Layout((16, 2), (1, 64 * 8)))
    >>> report.wavefronts.count, report.wavefronts.ideal, report.wavefronts.collision
    (32, 4, (0, 1))
    >>> from layouts import wgmma_accumulator
    >>> tile = ComposedLayout(Swizzle(3, 3, 3), 0, naive, unit=16)
    >>> banks(tile, "stmatrix.x4", values=wgmma_accumulator(64)).wavefronts.count
    64
    """
    if not isinstance(access, Access):
        access = Access(access, lanes, values)
    unit = byte_unit(layout, unit)
    try:
        addresses = access.addresses(layout, unit)
        found = wavefronts(addresses, access.instruction, unit)
    except LayoutError as error:
        if access.lanes is None and access.values is None:
            raise type(error)(f"{error}; {TILES_NEED_LANES}") from None
        raise
    return BankReport(access, addresses, unit, found)


def _after(layout: AnyLayout, lanes: AnyLayout) -> AnyLayout:
    """`layout` after `lanes`: one layout if there is one, else a composed layout."""
    try:
        found: AnyLayout = composition(layout, lanes)
        return found
    except LayoutError:
        if isinstance(lanes, ComposedLayout):
            raise
        return ComposedLayout(layout, 0, lanes, getattr(layout, "unit", None))


def _first_lanes(lanes: AnyLayout, how: Instruction) -> AnyLayout:
    """The lanes that supply an address: the first of every warp, or all of mode 0."""
    outer = outer_layout(lanes)
    count = size(outer)
    if not how.name or how.lanes in (size(outer[0]), count):
        return lanes
    if count % WARP:
        raise LayoutError(
            f"{how} takes an address from each of {how.lanes} lanes, and {lanes} has {count}: "
            f"lanes are missing; give {how.lanes} in mode 0, or whole warps of {WARP}"
        )
    if how.lanes == WARP:
        return lanes
    return _after(lanes, Layout((how.lanes, count // WARP), (1, WARP)))


# ---------------------------------------------------------------------- lanes from a fragment


def _of_values(layout: AnyLayout, how: Instruction, values: Layout, unit: int) -> AnyLayout:
    """(lane, warp, ...) → offset of the address that a lane supplies, from what threads hold."""
    if len(values) != 2 or size(values[0]) % WARP:
        raise LayoutError(
            f"values {values} of {how}: it must have two modes, (threads, values), and whole warps "
            f"of {WARP} threads"
        )
    lanes, elements = (
        _rows(how, values, unit) if how.moves_matrices else _vectors(how, values, unit)
    )
    _check_contiguous(layout, how, lanes, elements)
    return _after(layout, lanes)


def _vectors(how: Instruction, values: Layout, unit: int) -> tuple[Layout, Layout]:
    """(thread, vector) → coordinate of its first element, and the elements of one vector."""
    threads, held = values
    count = how.width * 8 // unit
    _check_count(how, values, count)
    vectors = composition(held, Layout(size(held) // count, count))
    return make_layout(threads, vectors), composition(held, Layout(count))


def _rows(how: Instruction, values: Layout, unit: int) -> tuple[Layout, Layout]:
    """(lane, warp, instruction) → coordinate where its row starts, and the elements of one row."""
    if unit != MATRIX_BITS:
        raise LayoutError(
            f"{how} of {unit}-bit elements: it moves elements of {MATRIX_BITS} bits; give lanes, "
            f"the row addresses, instead of values"
        )
    atom = _atom(how)
    _check_count(how, values, 2 * atom.matrices)
    return row_addresses(atom, values)


def _atom(how: Instruction) -> MatrixAtom:
    """The atom of an ldmatrix or stmatrix."""
    name, *_ = how.name.split(".")
    return MatrixAtom(name, how.lanes // MATRIX_ROWS, how.name.endswith(".trans"))


def _check_count(how: Instruction, values: Layout, count: int) -> None:
    held = size(values[1])
    if count == 0 or held % count:
        moved = f"{count} elements" if count else f"{how.width * 8} bits"
        raise LayoutError(
            f"{how} moves {moved} per lane: the {held} values of {values} must be a multiple"
        )


def _check_contiguous(layout: AnyLayout, how: Instruction, lanes: Layout, elements: Layout) -> None:
    """Raises `LayoutError` unless the elements at each address are contiguous."""
    if size(elements) == 1:
        return
    offsets = _after(layout, make_layout(lanes, elements))
    columns = bit_columns(offsets)
    if columns is not None:
        within = columns[-(size(elements).bit_length() - 1) :]
        if within == tuple(1 << bit for bit in range(len(within))):
            return  # `wavefronts` checks that the start is aligned
    for lane in range(size(lanes)):
        found = [offsets(lane + size(lanes) * j) for j in range(size(elements))]
        if found != list(range(found[0], found[0] + len(found))):
            raise LayoutError(
                f"{how}: the {len(found)} elements at the address of lane {lane} have the offsets "
                f"{found} and must be contiguous: change the layout, or use a narrower access"
            )
