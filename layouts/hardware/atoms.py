"""Fragments: which thread holds which element of wgmma, mma, ldmatrix and stmatrix.

A thread-value layout takes (thread, value) to the index of an element.  The numbers come from the
PTX ISA, version 9.2, each with its section; the tests compare them with the CuTe DSL's own.  Those
of tcgen05 are in `tensor_memory`, and those of AMD in `mfma`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Literal

from ..errors import LayoutError
from ..values.layout import Layout, cosize
from ..values.modes import Mode, refined
from ..values.tuples import is_int, is_one_of, size
from .facts import WARP
from .fragment import Drawn, Fragment

__all__ = [
    "MMA",
    "QUAD_PAIRS",
    "MatrixAtom",
    "MmaAtom",
    "ldmatrix",
    "mma",
    "stmatrix",
    "universal_fma",
    "volta_mma",
    "wgmma",
    "wgmma_accumulator",
    "wgmma_operand",
]

#: Rows of D in every wgmma, and the columns that it may have (PTX ISA 9.7.15.2, Matrix Shape).
WGMMA_M, WGMMA_N = 64, range(8, 257, 8)

#: Bits of K that one wgmma multiplies, whatever the type (PTX ISA 9.7.15.2, Matrix Shape).
WGMMA_K_BITS = 256


def wgmma_accumulator(n: int) -> Layout:
    """(thread, register) of a warpgroup → row + 64 * column of the 64 x n accumulator D.

    Thread t of 128 holds row ``16 * (t / 32) + (t % 32) / 4`` and the row 8 below; in every 8
    columns it holds the two from ``2 * (t % 4)``.  Registers count the two columns, then the two
    rows, then the groups of 8 columns.  A bijection onto the 64 * n elements.  (PTX ISA
    9.7.15.5.1.1.1, Matrix Fragments for wgmma.mma_async.m64nNk16, figure for accumulator D; C++
    ``CLayout_64xN``.)

    Raises `LayoutError` unless n is a multiple of 8 from 8 to 256.

    >>> print(wgmma_accumulator(128))
    ((4,8,4),(2,2,16)):((128,1,16),(64,8,512))
    >>> divmod(wgmma_accumulator(128)(37, 2), 64)   # thread 37, register 2: column 2, row 25
    (2, 25)
    """
    n = _wgmma_n("wgmma_accumulator", n)
    threads, registers = (4, 8, 4), (2, 2, n // 8)
    return Layout((threads, registers), ((2 * WGMMA_M, 1, 16), (WGMMA_M, 8, 8 * WGMMA_M)))


def _wgmma_n(name: str, n: int) -> int:
    """`n` as an int, if a wgmma has so many columns; `name` is the function, for the error."""
    if not is_int(n) or n not in WGMMA_N:
        raise LayoutError(f"{name}: n = {n!r} must be a multiple of 8 from 8 to 256")
    return int(n)


#: Bits of an element → fragment of A, (thread, value) → row + 64 * k.  A thread holds a register of
#: each of two rows, 8 apart, and the same in the other half of k.
#: (PTX ISA 9.7.15.5.1.1: 1.1 m64nNk16, 1.2 m64nNk8, 1.3 m64nNk32.)
WGMMA_OPERANDS: Mapping[int, Layout] = MappingProxyType(
    {
        8: Layout(((4, 8, 4), (4, 2, 2)), ((256, 1, 16), (64, 8, 1024))),
        16: Layout(((4, 8, 4), (2, 2, 2)), ((128, 1, 16), (64, 8, 512))),
        32: Layout(((4, 8, 4), (2, 2)), ((64, 1, 16), (8, 256))),
    }
)


def wgmma_operand(bits: int = 16) -> Layout:
    """(thread, value) of a warpgroup → row + 64 * k of an operand A in registers.

    One instruction multiplies 256 bits of k: 32 elements of 8 bits (fp8, int8), 16 of 16 bits, or 8
    of 32 bits (tf32).  The fragment of 16-bit elements equals the accumulator of 16 columns, so one
    product can be the next one's operand.  A bijection onto the 64 * k elements.

    Raises `LayoutError` unless `bits` is 8, 16 or 32.

    >>> print(wgmma_operand(16))
    ((4,8,4),(2,2,2)):((128,1,16),(64,8,512))
    >>> wgmma_operand(16) == wgmma_accumulator(16)
    True
    """
    if not is_one_of(bits, WGMMA_OPERANDS):
        raise LayoutError(f"wgmma_operand: elements of {bits!r} bits; it must be 8, 16 or 32")
    return WGMMA_OPERANDS[bits]


class MmaAtom(Drawn):
    """The fragments of one mma: A is M x K, B is N x K, C and D are M x N.

    `a`, `b` and `c` take (thread, value) to ``m + M * k``, ``n + N * k`` and ``m + M * n``; each is
    a bijection.  A or B in shared memory is a bijection of the values alone, the same for all
    threads: ``(128,(64,16)):(0,(1,64))``.  `shape` is (M, N, K); `section` of the PTX ISA 9.2
    draws the fragments (for AMD, the section of its manual).

    It prints as the thread and value that hold each element of A (M x K), B (K x N) and C (M x N).

    >>> for line in str(mma("m16n8k8", "bf16")).splitlines()[:6]:
    ...     print(line)
    mma.m16n8k8, 16 bits: M = 16, N = 8, K = 8; T thread, V value
    <BLANKLINE>
    A, M x K: ((4,8),(2,2)):((32,1),(16,8))
    <BLANKLINE>
               0       1       2       3       4       5       6       7
        ┌────────────────────────────────────────────────────────────────

    Raises `LayoutError` unless sizes and cosizes are those of the matrices.
    """

    __slots__ = __match_args__ = ("name", "shape", "a", "b", "c", "section")
    name: str
    shape: tuple[int, int, int]
    a: Layout
    b: Layout
    c: Layout
    section: str

    def __init__(
        self, name: str, shape: tuple[int, int, int], a: Layout, b: Layout, c: Layout, section: str
    ) -> None:
        self._set(name, shape, a, b, c, section)
        m, n, k = shape
        for of, layout, count in (("A", a, m * k), ("B", b, n * k), ("C", c, m * n)):
            held = layout[1] if in_shared_memory(layout) else layout
            if not size(held) == cosize(layout) == count or size(layout[0]) != size(a[0]):
                raise LayoutError(f"{name}: {of} is {layout}; it must have {count} elements")

    @property
    def heading(self) -> str:
        m, n, k = self.shape
        shared = " and ".join(
            name for name, of in (("A", self.a), ("B", self.b)) if in_shared_memory(of)
        )
        where = f"; {shared} in shared memory" if shared else ""
        return f"{self.name}: M = {m}, N = {n}, K = {k}{where}"

    @property
    def fragments(self) -> tuple[Fragment, ...]:
        """The matrices in registers: A, B with k down, and C."""
        m, n, k = self.shape
        matrices = (
            Fragment("A, M x K", self.a, Layout((m, k))),
            Fragment("B, K x N", self.b, Layout((k, n), (n, 1))),
            Fragment("C, M x N", self.c, Layout((m, n))),
        )
        return tuple(each for each in matrices if not in_shared_memory(each.layout))

    @property
    def thr_id(self) -> Layout:
        """Thread of the atom → lane of the warp or warpgroup (C++ ``ThrID``).

        >>> print(mma("m16n8k16", "bf16").thr_id, volta_mma().thr_id)
        32:1 (4,2):(1,16)
        """
        threads = size(self.a[0])
        return QUAD_PAIRS[0] if threads == size(QUAD_PAIRS[0]) else Layout(threads)


def in_shared_memory(operand: Layout) -> bool:
    """Whether an operand (thread, value) → element is the same for all threads, more than one.

    >>> in_shared_memory(Layout((128, (64, 16)), (0, (1, 64)))), in_shared_memory(Layout((1, 4)))
    (True, False)
    """
    return size(operand[0]) > 1 and all(stride == 0 for _, stride in operand[0].modes)


def fragment(threads: Sequence[Mode], values: Sequence[Mode]) -> Layout:
    """(thread, value) of modes (extent, stride); those of extent 1 are left out.

    >>> print(fragment([(4, 32), (8, 1)], [(2, 16), (2, 8), (1, 64)]), fragment([(8, 1)], [(1, 8)]))
    ((4,8),(2,2)):((32,1),(16,8)) (8,1):(1,0)
    """
    sides = [[mode for mode in modes if mode[0] != 1] for modes in (threads, values)]
    return refined((1, 1), sides)


#: Types of A and B as PTX names them → bits of an element.
MMA_TYPES = MappingProxyType(
    {"f16": 16, "bf16": 16, "tf32": 32, "f64": 64, "e4m3": 8, "e5m2": 8}
    | {"s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1}
)

#: mma.sync of N = 8: M, K, types of A and B, section of the PTX ISA.
MMA_SHAPES = (
    (8, 4, "f64", "9.7.14.5.2"),
    (8, 16, "s8 u8", "9.7.14.5.3"),
    (8, 32, "s4 u4", "9.7.14.5.4"),
    (8, 128, "b1", "9.7.14.5.5"),
    (16, 4, "tf32", "9.7.14.5.6"),
    (16, 4, "f64", "9.7.14.5.6"),
    (16, 8, "f16 bf16", "9.7.14.5.7"),
    (16, 8, "tf32", "9.7.14.5.7"),
    (16, 8, "f64", "9.7.14.5.7"),
    (16, 16, "f16 bf16", "9.7.14.5.8"),
    (16, 16, "f64", "9.7.14.5.8"),
    (16, 16, "s8 u8 e4m3 e5m2", "9.7.14.5.9"),
    (16, 32, "s8 u8 e4m3 e5m2", "9.7.14.5.10"),
    (16, 32, "s4 u4", "9.7.14.5.10"),
    (16, 64, "s4 u4", "9.7.14.5.11"),
    (16, 128, "b1", "9.7.14.5.12"),
    (16, 256, "b1", "9.7.14.5.13"),
)


def _operand(rows: int, k: int, bits: int) -> Layout:
    """A or B, (lane, value) → row + rows * k.

    A register has 32 bits along k, and the 4 threads of a row hold consecutive ones; an element of
    64 bits has two registers.  Values count the elements of a register, then the rows 8 apart, then
    the next part of k.
    """
    held = max(32 // bits, 1)
    threads = [(4, held * rows), (8, 1)]
    return fragment(threads, [(held, rows), (rows // 8, 8), (k // (4 * held), 4 * held * rows)])


def _accumulator(m: int) -> Layout:
    """C and D of m x 8: each of the 4 threads of a row holds two columns, in rows 8 apart."""
    return fragment([(4, 2 * m), (8, 1)], [(2, m), (m // 8, 8)])


def _mma(m: int, k: int, bits: int, section: str) -> MmaAtom:
    operands = _operand(m, k, bits), _operand(8, k, bits)
    return MmaAtom(f"mma.m{m}n8k{k}, {bits} bits", (m, 8, k), *operands, _accumulator(m), section)


#: (shape, bits of an element of A and B) → the mma.sync.
MMA: Mapping[tuple[str, int], MmaAtom] = MappingProxyType(
    {
        (f"m{m}n8k{k}", bits): _mma(m, k, bits, section)
        for m, k, kinds, section in MMA_SHAPES
        for bits in {MMA_TYPES[kind] for kind in kinds.split()}
    }
)

#: (shape, type) of the mma.sync that PTX has.
MMA_KINDS = frozenset(
    (f"m{m}n8k{k}", kind) for m, k, kinds, _ in MMA_SHAPES for kind in kinds.split()
)


def mma(shape: str, kind: str) -> MmaAtom:
    """mma.sync.aligned.{shape}.row.col of elements of type `kind` (PTX ISA 9.7.14.5.14).

    The table has m16n8k8 and m16n8k16 of f16 and bf16; m16n8k4 and m16n8k8 of tf32; m8n8k4, and
    m16n8k4 to m16n8k16 of f64; m16n8k16 and m16n8k32 of e4m3, e5m2, s8 and u8; m16n8k32 and
    m16n8k64 of s4 and u4; m16n8k128 and m16n8k256 of b1; and m8n8k16 of s8 and u8, m8n8k32 of s4
    and u4, m8n8k128 of b1.  For m8n8k4 of f16 see `volta_mma`.

    Raises `LayoutError` for any other.

    >>> atom = mma("m16n8k16", "bf16")
    >>> print(atom.a, atom.b, atom.c)
    ((4,8),(2,2,2)):((32,1),(16,8,128)) ((4,8),(2,2)):((16,1),(8,64)) ((4,8),(2,2)):((32,1),(16,8))
    >>> divmod(atom.a(5, 3), 16)            # value 3 of lane 5: k = 3, m = 9
    (3, 9)
    >>> print(mma("m16n8k64", "s4").a, mma("m8n8k4", "f64").a)
    ((4,8),(8,2,2)):((128,1),(16,8,512)) ((4,8),1):((8,1),0)
    """
    if not (isinstance(shape, str) and isinstance(kind, str)) or (shape, kind) not in MMA_KINDS:
        known = "; ".join(f"m{m}n8k{k} of {kinds}" for m, k, kinds, _ in MMA_SHAPES)
        raise LayoutError(f"mma {shape} of {kind}: the table has {known}")
    return MMA[shape, MMA_TYPES[kind]]


#: Types of A and B of wgmma (PTX ISA 9.7.15.2, Matrix Shape).
WGMMA_TYPES = ("f16", "bf16", "tf32", "e4m3", "e5m2", "s8", "u8")


def wgmma(n: int, kind: str, a: Literal["smem", "rmem"] = "smem") -> MmaAtom:
    """wgmma.mma_async.sync.aligned.m64n{n}k{k} of elements of type `kind` (PTX ISA 9.7.15.5).

    The k values are 256 bits.  B is in shared memory; A is there or in registers, as `a` says.  The
    layout of an operand in shared memory gives every thread the whole matrix (C++ ``ABLayout``).

    Raises `LayoutError` unless n is a multiple of 8 from 8 to 256, and `kind` one of its types.  Of
    s8 and u8, an n other than 8 and 24 must be a multiple of 16.

    >>> atom = wgmma(128, "bf16")
    >>> print(atom.shape, atom.a, atom.b)
    (64, 128, 16) (128,(64,16)):(0,(1,64)) (128,(128,16)):(0,(1,128))
    >>> print(wgmma(128, "bf16", a="rmem").a)
    ((4,8,4),(2,2,2)):((128,1,16),(64,8,512))
    """
    n = _wgmma_n("wgmma", n)
    if not is_one_of(kind, WGMMA_TYPES) or not is_one_of(a, ("smem", "rmem")):
        raise LayoutError(
            f"wgmma of {kind}, A in {a!r}: types are {', '.join(WGMMA_TYPES)}; A is in 'smem' or "
            f"'rmem'"
        )
    if kind in ("s8", "u8") and n % 16 and n not in (8, 24):
        raise LayoutError(f"wgmma of {kind}, n = {n}: it must be 8, 24 or a multiple of 16")
    bits, c = MMA_TYPES[kind], wgmma_accumulator(n)
    k, threads = WGMMA_K_BITS // bits, size(c[0])
    shared = [Layout((threads, (rows, k)), (0, (1, rows))) for rows in (WGMMA_M, n)]
    held = wgmma_operand(bits) if a == "rmem" else shared[0]
    name = f"wgmma.m64n{n}k{k}, {bits} bits"
    return MmaAtom(name, (WGMMA_M, n, k), held, shared[1], c, "9.7.15.5")


def universal_fma() -> MmaAtom:
    """One multiply-add of one thread: M, N and K are 1 (C++ ``UniversalFMA``, DSL
    ``MmaUniversalOp``; PTX ISA 9.7.3.6, fma).

    >>> print(universal_fma().shape, universal_fma().c)
    (1, 1, 1) (1,1):(0,0)
    """
    one = Layout((1, 1))
    return MmaAtom("fma", (1, 1, 1), one, one, one, "9.7.3.6")


#: (thread of 8, quad pair of 4) → lane.  Quad pair 0 is lanes 0-3 and 16-19, quad pair 1 is lanes
#: 4-7 and 20-23, and so on.
#: (PTX ISA 9.7.14.5.1, Matrix Fragments for mma.m8n8k4 with .f16 floating point type).
QUAD_PAIRS = Layout(((4, 2), 4), ((1, 16), 4))

#: An operand of m8n8k4: the values of a thread run along k, or along its rows (m or n).
VOLTA_OPERANDS = MappingProxyType(
    {"k": Layout((8, 4), (1, 8)), "mn": Layout(((4, 2), 4), ((8, 4), 1))}
)

#: Type → C and D of m8n8k4.
VOLTA_ACCUMULATORS = MappingProxyType(
    {
        "f16": Layout((8, 8), (1, 8)),
        "f32": Layout(((2, 2, 2), (2, 2, 2)), ((1, 16, 4), (8, 2, 32))),
    }
)


def volta_mma(
    a: Literal["row", "col"] = "row",
    b: Literal["row", "col"] = "col",
    accumulator: Literal["f32", "f16"] = "f32",
) -> MmaAtom:
    """mma.sync.aligned.m8n8k4.{a}.{b}.{accumulator}.f16.f16 of one quad pair (PTX ISA 9.7.14.5.1).

    A warp executes four at once, one per quad pair (see `QUAD_PAIRS`); a thread here is one of the
    eight of a quad pair.

    Raises `LayoutError` unless `a` and `b` are 'row' or 'col', and `accumulator` 'f32' or 'f16'.

    >>> print(volta_mma().a, volta_mma("col").a)
    (8,4):(1,8) ((4,2),4):((8,4),1)
    >>> print(volta_mma().c)
    ((2,2,2),(2,2,2)):((1,16,4),(8,2,32))
    """
    majors = is_one_of(a, ("row", "col")) and is_one_of(b, ("row", "col"))
    if not majors or not is_one_of(accumulator, VOLTA_ACCUMULATORS):
        raise LayoutError(
            f"volta_mma({a!r}, {b!r}, {accumulator!r}): A and B are 'row' or 'col', the "
            f"accumulator is 'f32' or 'f16'"
        )
    return MmaAtom(
        f"mma.m8n8k4.{a}.{b}.{accumulator}",
        (8, 8, 4),
        VOLTA_OPERANDS["k" if a == "row" else "mn"],
        VOLTA_OPERANDS["k" if b == "col" else "mn"],
        VOLTA_ACCUMULATORS[accumulator],
        "9.7.14.5.1",
    )


#: Rows and columns of a matrix of ldmatrix and stmatrix, and the bits of its elements.
MATRIX_ROWS, MATRIX_COLUMNS, MATRIX_BITS = 8, 8, 16


class MatrixAtom(Drawn):
    """One ldmatrix or stmatrix of a warp: 1, 2 or 4 matrices of 8 x 8 elements of 16 bits.

    Elements are numbered ``column + 8 * row + 64 * matrix``.

    `rows`      (lane, column) → element: the row whose address the lane supplies
    `fragment`  (lane, (half, matrix)) → element: what the lane holds in the low and high half of
                its register for each matrix

    It prints as the matrices one below the other, so that row r is at the address of lane r:

    >>> for line in str(ldmatrix(1)).splitlines()[:7]:
    ...     print(line)
    ldmatrix.x1: lane r has the address of row r
    T thread, V value
    matrix: (32,(2,1)):(2,(1,64))
    <BLANKLINE>
              0       1       2       3       4       5       6       7
       ┌────────────────────────────────────────────────────────────────
     0 │  T0 V0   T0 V1   T1 V0   T1 V1   T2 V0   T2 V1   T3 V0   T3 V1
    """

    __slots__ = __match_args__ = ("name", "matrices", "transposed")
    name: str
    matrices: int
    transposed: bool

    def __init__(self, name: str, matrices: int, transposed: bool) -> None:
        if not is_one_of(matrices, (1, 2, 4)):
            raise LayoutError(f"{name}: {matrices!r} matrices; it moves 1, 2 or 4")
        if not isinstance(transposed, bool):
            raise LayoutError(f"{name}: transposed is {transposed!r} and must be True or False")
        self._set(name, int(matrices), transposed)

    @property
    def instruction(self) -> str:
        """Its name in `INSTRUCTIONS`, such as ``"ldmatrix.x4.trans"``."""
        return f"{self.name}.x{self.matrices}{'.trans' * self.transposed}"

    @property
    def heading(self) -> str:
        return f"{self.instruction}: lane r has the address of row r"

    @property
    def fragments(self) -> tuple[Fragment, ...]:
        """The matrices, one below the other."""
        rows = (MATRIX_ROWS, self.matrices) if self.matrices > 1 else MATRIX_ROWS
        steps = (MATRIX_COLUMNS, MATRIX_ROWS * MATRIX_COLUMNS)
        tile = Layout((rows, MATRIX_COLUMNS), (steps if self.matrices > 1 else MATRIX_COLUMNS, 1))
        return (Fragment("matrices" if self.matrices > 1 else "matrix", self.fragment, tile),)

    @property
    def rows(self) -> Layout:
        """(lane, column) → element; lanes from ``8 * matrices`` on supply no address."""
        return Layout((MATRIX_ROWS * self.matrices, MATRIX_COLUMNS), (MATRIX_COLUMNS, 1))

    @property
    def fragment(self) -> Layout:
        """(lane, (half, matrix)) → element; a bijection onto the ``64 * matrices`` elements."""
        if self.transposed:
            return Layout(((4, 8), (2, self.matrices)), ((16, 1), (8, 64)))
        return Layout((WARP, (2, self.matrices)), (2, (1, 64)))


def stmatrix(matrices: int = 4, transposed: bool = False) -> MatrixAtom:
    """stmatrix.sync.aligned.m8n8.x{matrices}[.trans].shared.b16 (PTX ISA 9.7.14.5.16).

    Lane l supplies the address of row ``l % 8`` of matrix ``l / 8``.  It stores two elements of
    every matrix, from ``2 * (l % 4)`` in row ``l / 4``; with `transposed`, in column ``l / 4``.

    Raises `LayoutError` unless `matrices` is 1, 2 or 4, and `transposed` a bool.

    >>> print(stmatrix().rows, stmatrix().fragment, stmatrix(transposed=True).fragment)
    (32,8):(8,1) (32,(2,4)):(2,(1,64)) ((4,8),(2,4)):((16,1),(8,64))
    """
    return MatrixAtom("stmatrix", matrices, transposed)


def ldmatrix(matrices: int = 4, transposed: bool = False) -> MatrixAtom:
    """ldmatrix.sync.aligned.m8n8.x{matrices}[.trans].shared.b16 (PTX ISA 9.7.14.5.15).

    Lanes supply the same addresses, and receive the same elements, as for `stmatrix`.

    >>> ldmatrix().fragment == stmatrix().fragment
    True
    """
    return MatrixAtom("ldmatrix", matrices, transposed)
