"""The SIMT ladder: five fp32 GEMMs without tensor cores, each a plan that changes one idea.

naive → coalesced → shared → block1d → block2d. Two device files serve all five: `direct` reads its
operands from global memory, `staged` brings them into shared memory first. The rest is layouts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

from cutedsl_gemm.kernels.plan.checks import (
    choice_problem,
    extents_problem,
    field_problem,
    packed_bytes,
    refuse,
    shape_problem,
    smem_problem,
)
from cutedsl_gemm.kernels.plan.kernel_plan import Tell
from cutedsl_gemm.kernels.plan.memory import MemoryReport
from cutedsl_gemm.kernels.plan.partition import TVLayout, load_layout, partition_problems
from layouts import (
    Bijective,
    Injective,
    Layout,
    Proof,
    cosize,
    make_layout,
    prove,
    size,
)
from layouts.hardware.descriptor import Major

if TYPE_CHECKING:
    from torch import Tensor

BITS = 32  # of an element: float32
SMEM_BYTES = 49_152  # of a block of any device (CUDA C++ Programming Guide)
ALIGNMENT = 16  # bytes, of each buffer
VECTOR = 4  # elements in the 16 bytes that one thread moves at most


@dataclass(frozen=True)
class Stage:
    """How an operand's tile (rows, BK) comes into shared memory: who brings what, and where to."""

    share: TVLayout
    smem: Layout  # (rows, BK) → element


@dataclass(frozen=True)
class SimtPlan:
    """An fp32 GEMM of one thread block a tile: C (M, N) = A (M, K) · B (K, N).

    The tile of B is (BN, BK). Without stages, threads read A and B where they lie.
    """

    name: str
    tile: tuple[int, int, int]  # (BM, BN, BK)
    a_major: Major
    b_major: Major
    c: TVLayout  # of C (BM, BN): the lines are its rows
    a: Stage | None = None
    b: Stage | None = None
    dtype: str = "float32"

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return size(self.c.rows[0])

    @property
    def values(self) -> tuple[int, int]:
        """(rows, columns) of C that a thread computes."""
        return self.c.lines, self.c.width * self.c.vectors

    @property
    def alignment(self) -> int:
        """Elements of which leading strides and addresses must be multiples."""
        return max(share.width for share in self.shares.values())

    @property
    def shares(self) -> dict[str, TVLayout]:
        """What each thread takes of a tile of A, B and C in global memory."""
        direct = {
            "A": TVLayout(self.c.rows, self.c.zeros),
            "B": TVLayout(self.c.columns, self.c.zeros),
        }
        return {**direct, **self.staged, "C": self.c}

    @property
    def staged(self) -> dict[str, TVLayout]:
        """Who brings what of A and B into shared memory."""
        stages = {"A": self.a, "B": self.b}
        return {name: stage.share for name, stage in stages.items() if stage is not None}

    @property
    def smem_bytes(self) -> int:
        """Bytes of shared memory that a block takes."""
        stages = (stage for stage in (self.a, self.b) if stage is not None)
        return packed_bytes((cosize(stage.smem) * BITS // 8 for stage in stages), ALIGNMENT)

    @property
    def outputs(self) -> Layout:
        """(thread, value) → m + BM * n: the outputs that each thread holds."""
        return self.places["C"]

    @property
    def instruction_k(self) -> int:
        """An FMA multiplies at one k."""
        return 1

    def workspace(self, m: int, n: int) -> int:
        """No plan of this family needs one."""
        return 0

    def operand(self, name: str) -> Layout:
        """(thread, value) → row of operand A, or B, that the thread multiplies by."""
        share = self.c.rows if name == "A" else self.c.columns
        mode = 0 if name == "A" else 1
        return make_layout(share[0], share[1][mode])

    @property
    def places(self) -> dict[str, Layout]:
        """(thread, value) → row + rows * column, of each tile that is shared out."""
        extents = dict(zip("ABC", (self.tile[0], self.tile[1], self.tile[0]), strict=True))
        shares = {**self.staged, "C": self.c}
        return {name: share.offsets(1, extents[name]) for name, share in shares.items()}

    def proofs(self) -> tuple[Proof, ...]:
        """Every element is brought, and computed, by one thread, and has one place."""
        shared = (stage.smem for stage in (self.a, self.b) if stage is not None)
        return (
            *(prove(Bijective(place)) for place in self.places.values()),
            *(prove(Injective(smem)) for smem in shared),
        )

    def check(self) -> SimtPlan:
        """The plan itself, or PlanError with the first thing that cannot be."""
        refuse(f"{self.name}, tile {self.tile}", self.problems())
        return self

    def explain(self) -> str:
        """The plan as text: what moves where, by which layout."""
        down, along = self.values
        lines = [
            ("kernel", f"{self.name}, {self.dtype}, tile {'×'.join(map(str, self.tile))}"),
            ("block", f"{self.threads} threads, {down}×{along} outputs each"),
            ("C rows", f"{self.c.rows}   (thread, value) → m"),
            ("C columns", f"{self.c.columns}   (thread, value) → n"),
        ]
        for name, stage in (("A", self.a), ("B", self.b)):
            if stage is not None:
                lines += [
                    (f"{name} rows", f"{stage.share.rows}   (thread, value) → row"),
                    (f"{name} columns", f"{stage.share.columns}   (thread, value) → k"),
                    (f"{name} in smem", f"{stage.smem}   (row, k) → element"),
                ]
        return "\n".join(f"{name:<10} {text}" for name, text in lines)

    def memory_report(self) -> MemoryReport:
        """What the accesses of the first warp cost."""
        from cutedsl_gemm.kernels.simt.memory_report import memory_report

        return memory_report(self)

    def device_code(self) -> Any:
        """`Staged` if A and B go through shared memory, else `Direct`."""
        if self.a is None:
            from cutedsl_gemm.kernels.simt.direct import Direct

            return Direct(self)
        from cutedsl_gemm.kernels.simt.staged import Staged

        return Staged(self)

    def execute(self, a: Tensor, b: Tensor, out: Tensor, tell: Tell | None = None) -> None:
        """Compute out = a · b on CPU tensors, K > 0, moving data through the plan's layouts."""
        from cutedsl_gemm.kernels.simt.execute import gemm

        gemm(self, a, b, out, tell)

    def problems(self) -> Iterator[str]:
        """What cannot be, in sentences."""
        yield from field_problem("dtype", self.dtype, "float32", "since threads add in fp32")
        for name, major in (("a_major", self.a_major), ("b_major", self.b_major)):
            yield from choice_problem(name, major, get_args(Major))
        yield from extents_problem("tile", self.tile, 3)
        yield from self._result_problems()
        if (self.a is None) != (self.b is None):
            yield f"A is {self.a} and B is {self.b}; both must have a stage, or none"
        bm, bn, bk = self.tile
        for name, stage, rows in (("A", self.a, bm), ("B", self.b, bn)):
            if stage is not None:
                yield from partition_problems(name, stage.share, (rows, bk), self.threads)
                yield from shape_problem(name, stage.smem, (rows, bk))
                if not prove(Injective(stage.smem)):
                    yield f"{name} in shared memory is {stage.smem}, with two elements in one place"
        yield from smem_problem(self.smem_bytes, SMEM_BYTES)

    def _result_problems(self) -> Iterator[str]:
        if self.threads > 1024:
            yield f"a block has {self.threads} threads; it can have at most 1024"
        yield from partition_problems("C", self.c, self.tile[:2], self.threads)
        if cosize(self.c.rows[1][1]) > 1 or cosize(self.c.columns[1][0]) > 1:
            yield (
                f"c is {self.c}; its lines must be rows and its vectors columns, since a thread "
                "multiplies rows of A by columns of B"
            )
        if self.a is None and self.values != (1, 1):
            yield f"a thread has {self.values} outputs; without stages it must have one"


def naive(a_major: Major = "K", b_major: Major = "MN") -> SimtPlan:
    """One thread an output; neighbouring threads take neighbouring *rows*.

    Costs: in row-major A and C, the 32 lanes of a warp touch 32 lines of memory at each access.

    >>> print(naive().c.rows, naive().c.columns)
    ((32,32),(1,(1,1))):((1,0),(0,(0,0))) ((32,32),(1,(1,1))):((0,1),(0,(0,0)))
    """
    x, y = (Layout(((32, 32), (1, (1, 1))), (step, (0, (0, 0)))) for step in ((1, 0), (0, 1)))
    return SimtPlan("simt_naive", (32, 32, 1), a_major, b_major, TVLayout(x, y)).check()


def coalesced(a_major: Major = "K", b_major: Major = "MN") -> SimtPlan:
    """New: the two layouts of `naive` swap roles; neighbouring threads take neighbouring *columns*.

    Gains: a warp reads one element of A, shared by all, and 128 contiguous bytes of B, and writes
    128 contiguous bytes of C. Costs: nothing.

    >>> coalesced().c == TVLayout(naive().c.columns, naive().c.rows)
    True
    """
    x, y = naive().c.rows, naive().c.columns
    return SimtPlan("simt_coalesced", (32, 32, 1), a_major, b_major, TVLayout(y, x)).check()


def shared(a_major: Major = "K", b_major: Major = "MN") -> SimtPlan:
    """New: the block brings 32×32 tiles of A and B into shared memory, each element once.

    Gains: an element is read from global memory once a block, not once a thread: 32 times less.
    Costs: 8 KB of shared memory and two barriers each 32 steps of K.
    """
    tile = (32, 32, 32)
    a, b = _stages(tile, a_major, b_major, threads=1024, width=1)
    return SimtPlan("simt_shared", tile, a_major, b_major, coalesced().c, a, b).check()


def block1d(a_major: Major = "K", b_major: Major = "MN") -> SimtPlan:
    """New: a thread computes eight outputs, one below the other; 512 threads, a 64×64 tile.

    Gains: an element of B, once in a register, serves eight FMAs: 9 loads from shared memory for 8
    FMAs instead of 16. Costs: registers.
    """
    tile, threads = (64, 64, 8), (64, 8)
    rows = Layout((threads, (8, (1, 1))), ((0, 8), (1, (0, 0))))
    columns = Layout((threads, (8, (1, 1))), ((1, 0), (0, (0, 0))))
    a, b = _stages(tile, a_major, b_major, threads=512, width=1)
    return SimtPlan("simt_block1d", tile, a_major, b_major, TVLayout(rows, columns), a, b).check()


def block2d(a_major: Major = "K", b_major: Major = "MN") -> SimtPlan:
    """New: a thread computes 8×8 outputs, in 4×4 pieces, and every access moves 16 bytes.

    Gains: 16 elements from shared memory serve 64 FMAs, by four loads. Costs: about 100 registers a
    thread, and addresses that are multiples of 16 bytes. An operand lies across its K in shared
    memory, so that four rows are 16 bytes; where it comes along K its columns are 4 elements apart,
    or the lanes that store one piece would meet in one bank.
    """
    tile = (128, 128, 8)
    lanes, warps = (8, 4), (2, 4)  # along N, along M
    threads, values = (*lanes, *warps), ((4, 2), (4, 2))
    rows = Layout((threads, values), ((0, 4, 0, 16), ((1, 64), (0, 0))))
    columns = Layout((threads, values), ((4, 0, 32, 0), ((0, 0), (1, 64))))
    a, b = _stages(tile, a_major, b_major, threads=256, width=VECTOR)
    return SimtPlan("simt_block2d", tile, a_major, b_major, TVLayout(rows, columns), a, b).check()


def _stages(
    tile: tuple[int, int, int], a_major: Major, b_major: Major, threads: int, width: int
) -> tuple[Stage, Stage]:
    bm, bn, bk = tile
    # Lanes read neighbouring columns of B: K-major, one element of padding keeps them apart.
    a = Stage(
        load_layout(bm, bk, a_major, threads, width), _smem(bm, bk, a_major, width, padding=0)
    )
    b = Stage(
        load_layout(bn, bk, b_major, threads, width), _smem(bn, bk, b_major, width, padding=1)
    )
    return a, b


def _smem(rows: int, columns: int, major: Major, width: int, padding: int) -> Layout:
    """A tile in shared memory: as it comes; for wide accesses across K, see `block2d`."""
    if width == 1 and major == "K":
        return Layout((rows, columns), (columns + padding, 1))
    return Layout((rows, columns), (1, rows + (VECTOR if width > 1 and major == "K" else 0)))


RUNGS: tuple[Callable[..., SimtPlan], ...] = (naive, coalesced, shared, block1d, block2d)
