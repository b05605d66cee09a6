"""The plan of the split sm90 GEMM: blocks divide K, and sum through global memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from cutedsl_gemm.kernels.plan.checks import PlanError, field_problem, shape_problem
from cutedsl_gemm.kernels.plan.memory import WARP, sectors
from cutedsl_gemm.kernels.plan.partition import TVLayout, load_layout
from cutedsl_gemm.kernels.plan.raster import Raster
from cutedsl_gemm.kernels.sm90.mainloop import (
    CONSUMERS,
    Mainloop,
    Tile,
    accumulator,
    operands,
    stages_beside,
    tile_problems,
)
from layouts import Bijective, Layout, Proof, composition, prove
from layouts.hardware.descriptor import Major

WORD = 4  # bytes of a sum
WIDTH = 4  # sums that a thread adds at a time: 16 bytes
MOST_SPLITS = 32  # a thread that adds has a load of each part under way
ADDERS = 256  # threads of a block that adds


@dataclass(frozen=True)
class SplitPlan(Mainloop):
    """A GEMM of few tiles and much K: `splits` blocks make a tile, each with its part of K.

    Each block leaves its sums in a workspace. A second kernel, of blocks with F rows of a tile
    each, adds them in the order of the parts: the result is the same from run to run.
    """

    sums: Layout  # (BM, BN) → element of fp32, of one block's in the workspace
    share: TVLayout  # (thread, value) → place in the (F, BN) that a block of the second kernel adds

    @property
    def kind(self) -> str:
        return "split"

    @property
    def added(self) -> int:
        """F, the rows of a tile that a block of the second kernel adds."""
        return added(self.tile[1])

    @property
    def way_out_bytes(self) -> int:
        return 0

    @property
    def way_out(self) -> str:
        return ""

    def workspace(self, m: int, n: int) -> int:
        """Elements of fp32 that the sums of an (M, N) product take.

        >>> split(splits=8).workspace(512, 500) == 8 * 512 * 512
        True
        """
        bm, bn, _ = self.tile
        return self.splits * -(-m // bm) * -(-n // bn) * bm * bn

    @property
    def leaving(self) -> int:
        """Sectors of a warp's first request to the workspace: two sums of each lane.

        >>> split().leaving * 32 == 32 * 2 * 4  # bytes
        True
        """
        at = composition(self.sums, Layout((self.rows, self.tile[1]), (1, self.tile[0])))
        return sectors(
            (WORD * at(self.accumulator(lane, 0)) for lane in range(WARP)), width=2 * WORD
        )

    @property
    def coming(self) -> int:
        """Sectors of a warp's first request of those who add: four sums of each lane.

        >>> split().coming * 32 == 32 * 4 * 4  # bytes
        True
        """
        at = self.share.offsets(1, self.tile[0])
        return sectors((WORD * self.sums(at(lane, 0)) for lane in range(WARP)), width=WIDTH * WORD)

    def proofs(self) -> tuple[Proof, ...]:
        return *super().proofs(), prove(Bijective(self.sums))

    def lines(self) -> Iterator[tuple[str, str]]:
        yield from super().lines()
        yield "split", f"{self.splits} blocks divide K; others then add {self.added} rows each"
        yield "sums", f"{self.sums}   (BM, BN), fp32, in global memory"
        yield "", f"{self.leaving} sectors a request of 256 bytes, {self.coming} of 512"

    def device_code(self) -> Any:
        """The two kernels: one multiplies, one adds."""
        from cutedsl_gemm.kernels.sm90.split import Split

        return Split(self)

    def problems(self) -> Iterator[str]:
        yield from super().problems()
        yield from _split_problems(self.tile, self.splits)
        bm, bn, _ = self.tile
        yield from shape_problem("sums", self.sums, (bm, bn))
        yield from field_problem("sums", self.sums, sums(bm, bn), "since 16 bytes move along a row")
        if self.schedule != "cooperative":
            yield f"schedule is {self.schedule}; a tile has one turn, so it must be cooperative"
        wanted, why = adders(bn), "since a lane adds 16 bytes along a row"
        yield from field_problem("share", self.share, wanted, why)


def _split_problems(tile: Tile, splits: int) -> Iterator[str]:
    bn = tile[1]
    if type(splits) is not int or not 2 <= splits <= MOST_SPLITS:
        yield (
            f"splits is {splits!r}; it must be 2 to {MOST_SPLITS}, since a thread that adds has a "
            "load of each part under way"
        )
    if bn & (bn - 1):
        yield f"BN is {bn}; it must be a power of two, so that {ADDERS} threads take whole rows"


def sums(bm: int, bn: int) -> Layout:
    """The tile of sums: rows, one after the other.

    >>> print(sums(128, 64))
    (128,64):(64,1)
    """
    return Layout((bm, bn), (bn, 1))


def added(bn: int) -> int:
    """Rows of BN sums that the threads of a block take at a time.

    >>> added(64), added(128)
    (16, 8)
    """
    return ADDERS * WIDTH // bn


def adders(bn: int) -> TVLayout:
    """Who adds what of F rows."""
    return load_layout(added(bn), bn, "K", ADDERS, WIDTH)


def split(
    tile: Tile = (128, 128, 64),
    dtype: str = "bfloat16",
    a_major: Major = "K",
    b_major: Major = "K",
    splits: int = 8,
) -> SplitPlan:
    """The checked plan in which `splits` blocks divide K, with as many stages as fit.

    New: blocks make a tile together, and a second kernel adds what they have. Gains: few tiles of
    much K keep all multiprocessors busy. Costs: the sums' way through L2, and a second launch.

    >>> plan = split()
    >>> plan.stages, plan.smem_bytes, plan.added
    (7, 230400, 8)
    """
    for problem in (*tile_problems(tile, dtype, "cooperative"), *_split_problems(tile, splits)):
        raise PlanError(f"tile {tile}, {dtype}: {problem}")
    bm, bn, _ = tile
    a, b = operands(tile, a_major, b_major)
    return SplitPlan(
        tile=tile,
        dtype=dtype,
        a=a,
        b=b,
        schedule="cooperative",
        stages=stages_beside(0, a, b),
        splits=splits,
        accumulator=accumulator(bm // CONSUMERS, bn),
        raster=Raster(1),
        sums=sums(bm, bn),
        share=adders(bn),
    ).check()
