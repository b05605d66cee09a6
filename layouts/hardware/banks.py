"""What a warp's access costs: an instruction, the coordinates its lanes touch, and a layout.

An access takes lanes to coordinates of a tile, and the tile's layout takes these to offsets.  The
lanes are given as they address memory, or by the thread-value layout of what they hold; then the
lane that addresses a row of ldmatrix or stmatrix is the atom's to say.

>>> from layouts import Swizzle
>>> tile = ComposedLayout(Swizzle(3, 3, 3), 0, Layout((64, 64), (64, 1)), unit=16)
>>> print(banks(tile, "ldmatrix.x4", lanes=Layout((16, 2), (1, 64 * 8))))
ldmatrix.x4 at S<3,3,3> o 0 o (16,2):(64,8): 4 wavefronts, conflict-free at every base
"""

from __future__ import annotations

from ..algebra import composition, gf2, right_inverse
from ..errors import LayoutError
from ..proof.prove import Proof, prove
from ..values.layout import Layout, make_layout
from ..values.swizzle import ComposedLayout
from ..values.tuples import size
from ..values.value import Value
from .atoms import MatrixAtom
from .conflict_free import ConflictFree
from .instructions import WARP, Instruction, instruction
from .wavefronts import Wavefronts, byte_unit, wavefronts

__all__ = ["Access", "BankReport", "banks"]

AnyLayout = Layout | ComposedLayout


class Access(Value):
    """An instruction, and the coordinates that it touches.

    `lanes` takes (lane, ...) to the index of a coordinate: where that lane's address is.  `values`
    takes (thread, value) to the index of a coordinate: what it holds.  Without either the layout is
    itself one of lanes.
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
            name = f"{name.name}.x{name.matrices}{'.trans' * name.transposed}"
        if lanes is not None and values is not None:
            raise LayoutError(
                f"access {name}: give lanes or values, the one follows from the other"
            )
        self._set(instruction(name), lanes, values)

    def addresses(self, layout: AnyLayout, unit: int | None = None) -> AnyLayout:
        """(lane, ...) -> offset, one instruction after the other: where `layout` puts the access.

        Raises `LayoutError` if lanes are missing, or what one lane accesses is not contiguous.
        """
        if self.values is not None:
            return _of_values(layout, self.instruction, self.values, byte_unit(layout, unit))
        if self.lanes is None:
            return _first_lanes(layout, self.instruction)
        return _after(layout, _first_lanes(self.lanes, self.instruction))

    def __str__(self) -> str:
        return str(self.instruction)


class BankReport(Value):
    """An access to a layout: its lanes' offsets, and the wavefronts it takes.

    Where the count holds at every base it holds for every tile: coordinates that the lanes do not
    touch move the start, and all lanes with it.
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
        """Whether there is one wavefront a phase."""
        return self.wavefronts.conflict_free

    @property
    def statement(self) -> ConflictFree:
        """That there is one wavefront a phase."""
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
    """What `access` to shared memory costs where a tile lies there by `layout`.

    `access` is an `Access`, or an instruction, its PTX name or its atom, with `lanes`, (lane, ...)
    -> index of a coordinate of `layout`, or `values`, (thread, value) -> index.  Without either
    `layout` takes lanes to offsets.  `unit` is the bits of one offset, unless the layout says it.

    Raises `LayoutError` if lanes are missing, if a lane's bytes are not contiguous, or if an
    address is no multiple of them.

    >>> from layouts import Swizzle
    >>> naive = Layout((64, 64), (64, 1))
    >>> report = banks(naive, "stmatrix.x4", lanes=Layout((16, 2), (1, 64 * 8)), unit=16)
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
    addresses = access.addresses(layout, unit)
    return BankReport(access, addresses, unit, wavefronts(addresses, access.instruction, unit))


def _is_matrix(layout: AnyLayout) -> bool:
    try:
        gf2.matrix(layout)
    except LayoutError:
        return False
    return True


def _after(layout: AnyLayout, lanes: AnyLayout) -> AnyLayout:
    """`layout` after `lanes`: one layout where they are one."""
    try:
        found: AnyLayout = composition(layout, lanes)
        return found
    except LayoutError:
        if isinstance(lanes, ComposedLayout):
            raise
        return ComposedLayout(layout, 0, lanes, getattr(layout, "unit", None))


def _first_lanes(lanes: AnyLayout, how: Instruction) -> AnyLayout:
    """Those of `lanes` that supply an address: the first of every warp, or all of mode 0."""
    outer = lanes.outer if isinstance(lanes, ComposedLayout) else lanes
    count = size(outer)
    if not how.name or how.lanes in (size(outer[0]), count):
        return lanes
    if count % WARP:
        raise LayoutError(
            f"{how} takes an address from each of {how.lanes} lanes, and {lanes} has {count}: "
            f"lanes are missing; give as many in mode 0, or whole warps of {WARP}"
        )
    if how.lanes == WARP:
        return lanes
    return _after(lanes, Layout((how.lanes, count // WARP), (1, WARP)))


# ------------------------------------------------------------------------- by what lanes hold


def _of_values(layout: AnyLayout, how: Instruction, values: Layout, unit: int) -> AnyLayout:
    """(lane, warp, ...) -> offset of what each lane addresses, of what threads hold."""
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
    """(thread, vector) -> the coordinate of its first element, and those of one vector."""
    threads, held = values
    count = how.width * 8 // unit
    _check_count(how, values, count)
    vectors = composition(held, Layout(size(held) // count, count))
    return make_layout(threads, vectors), composition(held, Layout(count))


def _rows(how: Instruction, values: Layout, unit: int) -> tuple[Layout, Layout]:
    """(lane, warp, instruction) -> the coordinate where its row starts, and those of one row.

    The row that a lane addresses is held by others, of which the atom's fragment knows.
    """
    if unit != 16:
        raise LayoutError(
            f"{how} of elements of {unit} bits: it moves elements of 16; give lanes, the addresses"
        )
    threads, held = values
    atom = MatrixAtom(how.name.split(".")[0], how.lanes // 8, how.name.endswith("trans"))
    count = 2 * atom.matrices
    _check_count(how, values, count)
    holder = composition(right_inverse(atom.fragment), atom.rows)  # -> lane + 32 * value
    holder = composition(Layout((WARP, count), (1, size(threads))), holder)  # -> index of `values`
    lanes, elements = composition(values, holder)
    warps = composition(threads, Layout(size(threads) // WARP, WARP))
    groups = composition(held, Layout(size(held) // count, count))
    return make_layout(lanes, warps, groups), elements


def _check_count(how: Instruction, values: Layout, count: int) -> None:
    held = size(values[1])
    if count == 0 or held % count:
        raise LayoutError(
            f"{how} moves {how.width * 8 if count == 0 else count} "
            f"{'bits' if count == 0 else 'elements'} of a lane at a time, and the {held} values of "
            f"{values} are no multiple of that"
        )


def _check_contiguous(layout: AnyLayout, how: Instruction, lanes: Layout, elements: Layout) -> None:
    """The elements that one address stands for lie one after the other."""
    offsets = _after(layout, make_layout(lanes, elements))
    if size(elements) == 1:
        return
    if _is_matrix(offsets):
        columns = gf2.matrix(offsets)[-(size(elements).bit_length() - 1) :]
        if columns == tuple(1 << bit for bit in range(len(columns))):
            return  # and the start is aligned, or `wavefronts` refuses it
    for lane in range(size(lanes)):
        found = [offsets(lane + size(lanes) * j) for j in range(size(elements))]
        if found != list(range(found[0], found[0] + len(found))):
            raise LayoutError(
                f"{how}: the {len(found)} elements at the address of lane {lane} have the offsets "
                f"{found} and must be contiguous: change the layout, or take a narrower access"
            )
