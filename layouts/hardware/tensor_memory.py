"""Tensor memory (TMEM) of Blackwell: where tcgen05 keeps an accumulator, and who loads it.

A CTA has 128 lanes of 512 columns, each a cell of 32 bits.  An address has the lane in its upper
half and the column in its lower: ``lane * 65536 + column``.  tcgen05.mma writes one row of D to one
lane.  A warp loads the 32 lanes from ``32 * (warp % 4)`` on, by tcgen05.ld; `fragment` counts
addresses from its first lane.

Which element a thread holds is the one layout after the inverse of the other.  With .32x32b each
thread of a warp holds a whole row; with .16x256b the rows and columns are those of an mma:

>>> from layouts import composition, left_inverse, mma
>>> element = left_inverse(tcgen05_accumulator(128, 64))   # address → m + 128 * n
>>> print(composition(element, tcgen05_ld("32x32b", 64).fragment))
(32,64):(1,128)
>>> print(composition(element, tcgen05_ld("16x256b").fragment), mma("m16n8k16", "bf16").c)
((4,8),(2,2)):((256,1),(128,8)) ((4,8),(2,2)):((32,1),(16,8))

Sources: PTX ISA 9.2, section 9.7.16, TensorCore 5th Generation: Tensor Memory Addressing, Data
Movement Shape, Data Path Layout Organization.  The tests compare with the CuTe DSL's own.
"""

from __future__ import annotations

from types import MappingProxyType

from ..errors import LayoutError
from ..values.layout import Layout
from ..values.tuples import as_int, is_int, size
from .atoms import fragment
from .fragment import Drawn, Fragment

__all__ = ["TMEM", "TmemAtom", "tcgen05_accumulator", "tcgen05_ld", "tcgen05_st"]

#: A step of one lane in an address; a step of one column is 1.
LANE = 1 << 16

#: (lane, column) → address, of the tensor memory of a CTA.
TMEM = Layout((128, 512), (LANE, 1))


def tcgen05_accumulator(m: int, n: int, cta_group: int = 1) -> Layout:
    """(row, column) → address of D, of 32-bit elements, in the tensor memory of one CTA.

    One CTA holds D of 128 rows in 128 lanes, and D of 64 rows in the lower half of each 32 lanes.
    With ``cta_group=2`` two CTAs hold a half of the rows each.  Of m = 128 a CTA has 64 rows, and
    its lanes from 64 on hold the second half of the columns.  The address is relative to that of D.
    (PTX ISA 9.7.16, Data Path Layout Organization: layouts D and F, and A and B of two CTAs; not
    .ws, whose layouts are E and G.)

    Raises `LayoutError` unless m is 64 or 128, and n a multiple of 8 up to 256; of two CTAs, m is
    128 or 256, and n a multiple of 16.

    >>> print(tcgen05_accumulator(128, 256), tcgen05_accumulator(64, 8))
    (128,256):(65536,1) ((16,4),8):((65536,2097152),1)
    >>> print(tcgen05_accumulator(128, 32, cta_group=2))
    (64,(16,2)):(65536,(1,4194304))
    """
    ints = is_int(m) and is_int(n) and is_int(cta_group)
    step = 8 if ints and cta_group == 1 else 16
    if not ints or (m, cta_group) not in ACCUMULATORS or n not in range(step, 257, step):
        known = ", ".join(f"{rows} of cta_group {ctas}" for rows, ctas in ACCUMULATORS)
        raise LayoutError(
            f"tcgen05_accumulator({m!r}, {n!r}, cta_group={cta_group!r}): m must be {known}, and n "
            f"a multiple of {step} up to 256"
        )
    halves = ACCUMULATORS[m, cta_group]
    if halves == "lanes":
        return Layout(((16, 4), n), ((LANE, 32 * LANE), 1))
    if halves == "columns":
        return Layout((64, (n // 2, 2)), (LANE, (1, 64 * LANE)))
    return Layout((128, n), (LANE, 1))


#: (m, CTAs) → what a CTA's tensor memory holds in halves: the lanes of a warp, or the columns.
ACCUMULATORS = MappingProxyType({(64, 1): "lanes", (128, 1): "", (128, 2): "columns", (256, 2): ""})

#: Shape of tcgen05.ld and .st → modes of a thread and of its registers, as (extent, lanes, columns)
#: of a step, and the columns of one repetition.
SHAPES = MappingProxyType(
    {
        "32x32b": ([(32, 1, 0)], [], 1),
        "16x64b": ([(2, 8, 0), (2, 0, 1), (8, 1, 0)], [], 2),
        "16x128b": ([(4, 0, 1), (8, 1, 0)], [(2, 8, 0)], 4),
        "16x256b": ([(4, 0, 2), (8, 1, 0)], [(2, 0, 1), (2, 8, 0)], 8),
    }
)

#: The most registers of one instruction.
REGISTERS = 128


class TmemAtom(Drawn):
    """One tcgen05.ld or tcgen05.st of a warp: `shape`, 32 or 16 lanes by bits, `repeat` times along
    the columns.

    `fragment`  (thread, register) → address, relative to the first lane and column

    Raises `LayoutError` unless the shape is in the table, and `repeat` a power of two for which a
    thread has at most 128 registers.
    """

    __slots__ = __match_args__ = ("name", "shape", "repeat")
    name: str
    shape: str
    repeat: int

    def __init__(self, name: str, shape: str, repeat: int) -> None:
        self._set(name, shape, as_int(repeat))
        if not isinstance(shape, str) or shape not in SHAPES:
            raise LayoutError(f"{name} of shape {shape!r}: it must be one of {', '.join(SHAPES)}")
        most = REGISTERS * 32 // (self.lanes * SHAPES[shape][2])
        if not is_int(repeat) or repeat < 1 or repeat & (repeat - 1) or repeat > most:
            raise LayoutError(
                f"{name}.{shape}: repeat {repeat!r} must be 1, 2, 4 ... {most}, which fill "
                f"{REGISTERS} registers"
            )

    @property
    def instruction(self) -> str:
        """Its name in PTX."""
        return f"{self.name}.sync.aligned.{self.shape}.x{self.repeat}.b32"

    @property
    def heading(self) -> str:
        return f"{self.instruction}: a row for each lane of tensor memory; V register"

    @property
    def fragments(self) -> tuple[Fragment, ...]:
        """The lanes and columns that it accesses."""
        tile = Layout((self.lanes, self.columns), (LANE, 1))
        return (Fragment("tensor memory", self.fragment, tile),)

    @property
    def lanes(self) -> int:
        """Lanes of tensor memory that it accesses: 16 or 32."""
        return int(self.shape.split("x")[0])

    @property
    def columns(self) -> int:
        """Columns that it accesses."""
        return SHAPES[self.shape][2] * self.repeat

    @property
    def registers(self) -> int:
        """Registers of 32 bits per thread."""
        return int(size(self.fragment[1]))

    @property
    def fragment(self) -> Layout:
        """(thread, register) → address."""
        threads, registers, columns = SHAPES[self.shape]
        steps = [
            [(extent, lanes * LANE + step) for extent, lanes, step in modes]
            for modes in (threads, [*registers, (self.repeat, 0, columns)])
        ]
        return fragment(*steps)


def tcgen05_ld(shape: str = "32x32b", repeat: int = 1) -> TmemAtom:
    """tcgen05.ld.sync.aligned.{shape}.x{repeat}.b32, from tensor memory to registers.

    `shape` is 32x32b, 16x64b, 16x128b or 16x256b.  Raises `LayoutError` as `TmemAtom` does.

    >>> atom = tcgen05_ld("16x128b", 2)
    >>> print(atom.instruction, atom.lanes, atom.columns, atom.registers, atom.fragment)
    tcgen05.ld.sync.aligned.16x128b.x2.b32 16 8 4 ((4,8),(2,2)):((1,65536),(524288,4))
    """
    return TmemAtom("tcgen05.ld", shape, repeat)


def tcgen05_st(shape: str = "32x32b", repeat: int = 1) -> TmemAtom:
    """tcgen05.st.sync.aligned.{shape}.x{repeat}.b32, from registers to tensor memory.

    Threads store to the addresses that `tcgen05_ld` loads.

    >>> tcgen05_st("16x64b", 4).fragment == tcgen05_ld("16x64b", 4).fragment
    True
    """
    return TmemAtom("tcgen05.st", shape, repeat)
