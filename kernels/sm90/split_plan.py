"""The plan of the split sm90 GEMM: a cluster divides K, and adds through shared memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cutedsl_gemm.kernels.plan import PlanError, field_problem, shape_problem
from cutedsl_gemm.kernels.raster import Raster
from cutedsl_gemm.kernels.share import Share, loads
from cutedsl_gemm.kernels.sm90.mainloop import (
    CONSUMERS,
    WARPGROUP,
    Mainloop,
    Tile,
    accumulator,
    cost,
    operands,
    stages_beside,
    tile_problems,
)
from layouts import BankReport, ComposedLayout, Layout, Proof, Swizzle, banks, composition, cosize
from layouts.descriptor import Major

WORD = 32  # bits of a sum
WIDTH = 4  # sums that a thread adds at a time: 16 bytes
MOST_SPLITS = 8  # blocks of a cluster (CUDA C++ Programming Guide, thread block clusters)


@dataclass(frozen=True)
class SplitPlan(Mainloop):
    """A GEMM of few tiles and much K: `splits` blocks make a tile, each with its part of K.

    Each block leaves its sums in its own shared memory. Then each takes F rows of the tile (the
    last ones fewer, or none), adds what all have for them in the order of their ranks, and stores:
    the sum is the same from run to run.
    """

    exchange: ComposedLayout  # (BM, BN) → element of 32 bits: the sums of one block
    share: Share  # (thread, value) → place in the (F, BN) that one block finishes

    @property
    def kind(self) -> str:
        return "split"

    @property
    def finished(self) -> int:
        """F, the most rows of a tile that one block finishes."""
        return finished(*self.tile[:2], self.splits)

    @property
    def way_out_bytes(self) -> int:
        return cosize(self.exchange) * WORD // 8

    @property
    def way_out(self) -> str:
        return f"{self.way_out_bytes:,} of sums"

    @property
    def buffers(self) -> dict[str, ComposedLayout]:
        return {**super().buffers, "sums": self.exchange}

    @property
    def leaving(self) -> BankReport:
        """What a consumer's stores of its sums cost, by the bank model."""
        (bm, bn, _), rows = self.tile, self.rows
        mine = composition(self.exchange, Layout((rows, bn), (1, bm)))
        return banks(mine, "st.shared.v2.b32", values=self.accumulator)

    @property
    def coming(self) -> BankReport:
        """What the loads of one block's sums cost, by the bank model."""
        lanes = self.share.at(1, self.tile[0])
        first = Layout((lanes[0].shape, lanes[1][0].shape), (lanes[0].stride, lanes[1][0].stride))
        return banks(self.exchange, "ld.shared.v4.b32", lanes=first)

    def proofs(self) -> tuple[Proof, ...]:
        return *super().proofs(), self.leaving.proof(), self.coming.proof()

    def lines(self) -> Iterator[tuple[str, str]]:
        yield from super().lines()
        yield "split", f"{self.splits} blocks of a cluster divide K, and then the tile's rows"
        yield "sums", f"{self.exchange}   (BM, BN), fp32"
        for report in (self.leaving, self.coming):
            yield "", f"{report.access}: {cost(report)}"

    def problems(self) -> Iterator[str]:
        yield from super().problems()
        yield from _split_problems(self.tile, self.splits)
        bm, bn, _ = self.tile
        yield from shape_problem("sums", self.exchange, (bm, bn))
        if self.schedule != "cooperative":
            yield f"schedule is {self.schedule}; a tile has one turn, so it must be cooperative"
        wanted = shared_rows(bm, bn, self.splits)
        why = "since a lane moves 16 bytes along the rows"
        yield from field_problem("share", self.share, wanted, why)


def _split_problems(tile: Tile, splits: int) -> Iterator[str]:
    bn = tile[1]
    if type(splits) is not int or not 2 <= splits <= MOST_SPLITS:
        yield f"splits is {splits!r}; it must be 2 to {MOST_SPLITS}, the blocks of a cluster"
    if bn & (bn - 1):
        yield f"BN is {bn}; it must be a power of two, for the swizzle of the sums"


def sums(bm: int, bn: int) -> ComposedLayout:
    """The tile of sums, rows of `bn` words; the swizzle tells four rows' 32 bytes apart.

    >>> print(sums(128, 128))
    S<2,3,4> o 0 o (128,128):(128,1)
    """
    shift = bn.bit_length() - 1 - 3  # the row's low bits, onto the 32-byte piece of 128
    return ComposedLayout(Swizzle(2, 3, shift), 0, Layout((bm, bn), (bn, 1)), unit=WORD)


def finished(bm: int, bn: int, splits: int) -> int:
    """Rows that a block finishes, as many as all its threads add at a time or a multiple.

    >>> finished(128, 128, 8), finished(128, 128, 6)
    (16, 24)
    """
    at_a_time = CONSUMERS * WARPGROUP * WIDTH // bn
    return -(-bm // (splits * at_a_time)) * at_a_time


def shared_rows(bm: int, bn: int, splits: int) -> Share:
    """Who adds what of the rows that a block finishes."""
    return loads(finished(bm, bn, splits), bn, "K", CONSUMERS * WARPGROUP, WIDTH)


def split(
    tile: Tile = (128, 128, 64),
    dtype: str = "bfloat16",
    a_major: Major = "K",
    b_major: Major = "K",
    splits: int = 8,
) -> SplitPlan:
    """The checked plan in which `splits` blocks divide K, with as many stages as fit.

    New: a cluster makes a tile together, and adds through distributed shared memory. Gains: few
    tiles of much K keep all multiprocessors busy. Costs: the way of the sums, and two barriers.

    >>> plan = split()
    >>> plan.stages, plan.smem_bytes, plan.finished
    (5, 230400, 16)
    """
    for problem in (*tile_problems(tile, dtype, "cooperative"), *_split_problems(tile, splits)):
        raise PlanError(f"tile {tile}, {dtype}: {problem}")
    bm, bn, _ = tile
    a, b = operands(tile, a_major, b_major)
    exchange = sums(bm, bn)
    return SplitPlan(
        tile=tile,
        dtype=dtype,
        a=a,
        b=b,
        schedule="cooperative",
        stages=stages_beside(cosize(exchange) * WORD // 8, a, b),
        splits=splits,
        accumulator=accumulator(bm // CONSUMERS, bn),
        raster=Raster(1),
        exchange=exchange,
        share=shared_rows(bm, bn, splits),
    ).check()
