"""The candidate plans of sm90, among which the model chooses."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from math import ceil
from pathlib import Path
from typing import Any, TypeAlias, get_args

from cutedsl_gemm.inputs.problem import Problem
from cutedsl_gemm.kernels.epilogue.expression import PLAIN, Epilogue
from cutedsl_gemm.kernels.plan.checks import PER_VECTOR, PlanError
from cutedsl_gemm.kernels.plan.raster import Raster
from cutedsl_gemm.kernels.sm90.operand import SHORTEST_ROW, Tile
from cutedsl_gemm.kernels.sm90.panel_plan import PanelPlan
from cutedsl_gemm.kernels.sm90.panels import Panels, default_panels
from cutedsl_gemm.kernels.sm90.plan import Sm90Plan, atom_layout
from cutedsl_gemm.kernels.sm90.resources import BARRIER_BYTES, SMEM_BYTES, default_consumers
from cutedsl_gemm.kernels.sm90.rungs import cooperative, pingpong, split
from layouts.hardware.atoms import WGMMA_M
from layouts.hardware.descriptor import Major

FEW_COLUMNS = 6  # of tiles, up to which tiles go row by row
FEW_ROWS = 18  # of tiles, up to which the last group must not have few of them

# The splits of a candidate that splits K over as many blocks as fill a wave, at most MOST_SPLITS.
# Then each block has LEAST_K or more of it.
FILL, MOST_SPLITS, LEAST_K = 0, 16, 512

Maker: TypeAlias = Callable[..., Sm90Plan]  # pingpong, cooperative, split or single


@dataclass(frozen=True)
class Candidate:
    """A candidate plan: everything of a plan but its dtype, majors and raster.

    If `splits` is FILL, the problem says how many blocks split K (`formulas.terms`).
    """

    maker: Maker
    tile: Tile
    splits: int = 1  # blocks that split K
    # Tiles (down, across): those of a column share B by multicast, those of a row A.
    cluster: tuple[int, int] = (1, 1)
    swapped: bool = False  # the plan computes Cᵀ = Bᵀ · Aᵀ
    consumers: int = 2  # of pingpong, which take turns

    @property
    def name(self) -> str:
        """The name in `explain` and in the tuner's file.

        >>> Candidate(split, (128, 128, 64), 8).name
        'split 128×128×64, K over 8 blocks'
        >>> Candidate(split, (128, 128, 64), FILL).name
        'split 128×128×64, K over the blocks of a wave'
        >>> Candidate(pingpong, (128, 192, 64), cluster=(2, 1)).name
        'pingpong 128×192×64, cluster 2×1'
        >>> Candidate(pingpong, (128, 144, 64), swapped=True).name
        'pingpong 128×144×64, swapped'
        >>> Candidate(pingpong, (128, 128, 64), consumers=3).name
        'pingpong 128×128×64, 3 consumers'
        """
        over = f", K over {self.splits} blocks" if self.splits > 1 else ""
        if self.splits == FILL:
            over = ", K over the blocks of a wave"
        down, across = self.cluster
        cluster = f", cluster {down}×{across}" if down * across > 1 else ""
        swapped = ", swapped" if self.swapped else ""
        consumers = f", {self.consumers} consumers" if self.consumers != 2 else ""
        tile = "×".join(map(str, self.tile))
        return f"{self.maker.__name__} {tile}{over}{cluster}{swapped}{consumers}"

    @property
    def stages(self) -> int:
        """The stages of its plans for a product without an epilogue.

        A plan has them, too, but takes 0.7 ms to make, and there are hundreds of candidates.

        >>> Candidate(pingpong, (128, 192, 64)).stages
        4
        """
        bm, bn, bk = self.tile
        of_c = 0
        if self.maker is not split:
            columns, in_flight = self.panels
            of_c = self.all_panel_rows * columns * (self.c_stages or in_flight)
        return (SMEM_BYTES - BARRIER_BYTES - 2 * of_c) // (2 * bk * (bm + bn))

    @property
    def atom_layout(self) -> tuple[int, int]:
        """Consumers (down, across) that divide a tile of its plans."""
        if self.maker is pingpong:
            return 1, 1
        bm, bn, _ = self.tile
        return atom_layout(default_consumers("cooperative", bm, bn), bm)

    @property
    def reads(self) -> float:
        """Elements that wgmma reads from shared memory, for each k.

        Each consumer across reads all of A, and B is read for each 64 rows.

        >>> Candidate(cooperative, (192, 208, 64)).reads
        1008.0
        """
        bm, bn, _ = self.tile
        return bm * self.atom_layout[1] + bm / WGMMA_M * bn

    @property
    def all_panel_rows(self) -> int:
        """Rows of the panels of C of all consumers."""
        return self.tile[0] * (self.consumers if self.maker is pingpong else self.atom_layout[1])

    @property
    def columns(self) -> int:
        """Columns of C that a consumer has, without an epilogue."""
        return self.tile[1] // self.atom_layout[1]

    @property
    def panels(self) -> Panels:
        """How a consumer stages C, without an epilogue."""
        bm, bn, _ = self.tile
        return default_panels(self.all_panel_rows, self.columns, self.swapped, 2 * (bm + bn))

    @property
    def c_stages(self) -> int | None:
        """Panels of C that a consumer stages; None: as many as its maker has by default.

        Two of 64 columns fit in addition to four stages of 128×256.
        """
        return 2 if self.maker is cooperative and self.tile[1] == 256 else None

    @property
    def rasters(self) -> tuple[Raster, ...]:
        """The rasters that `raster` may choose."""
        if self.maker is split:
            return (Raster(1),)
        groups = {4, self.deep_group}
        if self.cluster == (1, 1):
            groups |= {1, smaller_group(self.deep_group)}
        return tuple(dict.fromkeys((self.along_rows, *map(Raster, sorted(groups)))))

    @property
    def along_rows(self) -> Raster:
        """The raster by which a wave stores whole rows of the caller's C."""
        return Raster(1, "columns" if self.swapped else "rows")

    @property
    def deep_group(self) -> int:
        """Tile rows of a group if K is long."""
        return 4 if self.tile[0] * self.tile[1] <= 128 * 128 else 8

    def raster(self, problem: Problem) -> Raster:
        """The raster for a problem: while a wave runs, its panels of A and B must stay in L2.

        Groups of four make 4 × 4 tiles of the sixteen blocks of a GPC. If K is short, the stores of
        C decide: up to 1.17 times as fast along rows. If C is few tiles wide, and no blocks share
        loads by multicast, the tiles of a row follow each other: 1.03 times as fast on average, up
        to 1.25. If the last of a few groups would have a quarter of the rows of the others or less,
        all have fewer: 1.06 times as fast, up to 1.46 (docs/performance).

        >>> plan = Candidate(pingpong, (64, 64, 64))
        >>> [plan.raster(Problem.dense(m, 1280, 4096)).group for m in (256, 320, 384, 1280)]
        [4, 3, 4, 4]
        >>> plan.raster(Problem.dense(1280, 384, 4096)).group
        1
        """
        if self.maker is split:
            return Raster(1)
        m, _, k = problem.mnk
        class_of_k = k_class(k)
        if class_of_k == 0:
            return self.along_rows
        m, n = (problem.columns, m) if self.swapped else (m, problem.columns)
        down, across = ceil(m / self.tile[0]), ceil(n / self.tile[1])
        group = 4 if class_of_k == 1 else self.deep_group
        if self.cluster != (1, 1):
            return Raster(group)
        if across < down and across <= FEW_COLUMNS:
            return Raster(1)
        few = class_of_k == 2 and group < down <= FEW_ROWS
        return Raster(smaller_group(group) if few and 0 < down % group <= group // 4 else group)

    def serves(self, majors: tuple[Major, Major], invariant: bool = False) -> bool:
        """Whether it serves problems whose A and B have such majors.

        If the plan's B, which is Aᵀ if operands are swapped, is not contiguous along K, a
        consumer's columns of the tile must be a multiple of a swizzle's shortest row. An invariant
        problem needs one sum over K, which is padded with zeros to a whole k-tile. Padding can
        change the sign of a sum that is 0, so all its candidates have the same BK.

        >>> swapped = Candidate(pingpong, (128, 88, 64), swapped=True)
        >>> swapped.serves(("K", "MN")), swapped.serves(("MN", "K"))
        (True, False)
        """
        along_k = majors[0 if self.swapped else 1] == "K"
        whole_rows = along_k or self.columns % SHORTEST_ROW == 0
        one_sum = self.maker is not split and self.tile[2] == 64
        return whole_rows and (one_sum or not invariant)

    def over(self, splits: int) -> Candidate:
        """This candidate; `splits` blocks split K if it leaves their number to the problem."""
        return replace(self, splits=splits) if self.splits == FILL else self

    @property
    def family(self) -> Candidate:
        """The candidate that leaves the splits to the problem, if K is split."""
        return replace(self, splits=FILL) if self.maker is split else self

    def as_planned(self, problem: Problem) -> Problem:
        """The problem whose A, B and C are the plan's: Cᵀ = Bᵀ · Aᵀ if operands are swapped."""
        return problem.transposed if self.swapped else problem

    def plan(self, problem: Problem, raster: Raster | None = None) -> Sm90Plan:
        """The checked plan for a problem; `raster` defaults to the problem's.

        If `splits` is FILL, it has as many as the maker has by default.

        PlanError if the plan cannot exist, needs a workspace of 2^31 elements or more, or splits K
        where the problem is invariant.
        """
        m, n, k = problem.mnk
        if problem.invariant and self.maker is split:
            raise PlanError(
                "invariant=True, and sm90_split divides K into as many parts as suit M and N: "
                "omit kernel, or omit invariant"
            )
        raster = raster or self.raster(problem)
        c = problem.c_alignment, problem.epilogue, k_class(k)
        plan = _plan(self, raster, problem.dtype, *problem.majors, *c, problem.batch > 1)
        if (elements := plan.workspace(m, n)) >= 1 << 31:
            raise PlanError(
                f"C is {m} × {n}: the partial sums of {plan.splits} parts of K take "
                f"{elements:,} elements; they must be fewer than 2^31; omit `kernel`"
            )
        return plan


def smaller_group(group: int) -> int:
    """The tile rows of a group that has a quarter less: 3 for 4, 6 for 8."""
    return group - group // 4


def k_class(k: int) -> int:
    """The class of a K: 0 up to 256, 1 up to 1024, else 2.

    >>> k_class(256), k_class(1024), k_class(1025)
    (0, 1, 2)
    """
    return (k > 256) + (k > 1024)


@cache
def _plan(
    candidate: Candidate,
    raster: Raster,
    dtype: str,
    a_major: Major,
    b_major: Major,
    c_alignment: int = PER_VECTOR,
    epilogue: Epilogue = PLAIN,
    class_of_k: int = 0,
    batched: bool = False,
) -> Sm90Plan:
    maker, tile = candidate.maker, candidate.tile
    options: dict[str, Any] = {"c_alignment": c_alignment}
    if epilogue is not PLAIN:
        options["epilogue"] = epilogue
        unit = SHORTEST_ROW * epilogue.accumulators
        if epilogue.accumulators > 1 and not candidate.swapped and tile[1] % unit:
            # The kernel takes any multiple of 8, but has not run on a GPU with such panels.
            raise PlanError(
                f"tile {tile}: BN is {tile[1]}; it must be a multiple of {unit}, since BN has "
                f"columns of {epilogue.accumulators} matrices"
            )
    if candidate.splits > 1:
        options["splits"] = candidate.splits
    if maker in (pingpong, cooperative):
        options["raster"] = raster
    if candidate.cluster != (1, 1):
        options["cluster"] = candidate.cluster
    if candidate.swapped:
        options["swapped"] = True
    if candidate.consumers != 2:
        options["consumers"] = candidate.consumers
    if candidate.c_stages and epilogue is PLAIN:
        options["c_stages"] = candidate.c_stages
    if batched:
        options["batched"] = True
    plan = maker(tile, dtype, a_major, b_major, **options)
    if epilogue is not PLAIN and isinstance(plan, PanelPlan):
        return _with_second_panel(plan, class_of_k)
    return plan


def _with_second_panel(plan: PanelPlan, class_of_k: int) -> PanelPlan:
    """The plan with two panels of C per consumer, if K is short or the second costs no stage.

    A panel is then evaluated while the one before it is stored: with bias and gelu 2 to 4 % faster
    where K is at most 512; but a stage less costs 2 % at 4096³ (docs/performance/notebook.md).
    """
    if plan.c_stages > 1 or plan.stores < 2:
        return plan
    two = replace(plan, c_stages=2)
    if class_of_k > 0 and two.stages_that_fit < plan.stages:
        return plan
    return replace(two, stages=two.stages_that_fit).check()


MAKERS: dict[str, Maker] = {each.__name__: each for each in (pingpong, cooperative, split)}
COLUMNS = "plan", "BM", "BN", "BK", "splits", "down", "across", "swapped"


def read(path: Path) -> tuple[Candidate, ...]:
    """The candidates of a file."""
    with path.open(newline="", encoding="utf-8") as stream:
        _, *rows = csv.reader(stream)
    found = []
    for name, *numbers in rows:
        bm, bn, bk, splits, down, across, swapped = map(int, numbers)
        tile, cluster = (bm, bn, bk), (down, across)
        found.append(Candidate(MAKERS[name], tile, splits, cluster, bool(swapped)))
    return tuple(found)


def write(path: Path, candidates: Iterable[Candidate]) -> None:
    """Writes what `read` reads."""
    rows = [
        (each.maker.__name__, *each.tile, each.splits, *each.cluster, int(each.swapped))
        for each in candidates
    ]
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerows((COLUMNS, *sorted(rows)))


# 550 were picked greedily, each the one that most improved what the network expects of a choice,
# and four by hand. Seven that were no longer chosen were removed
# (docs/performance/notebook.md, "550 candidates" and "Blocks that fall into step").
FILE = Path(__file__).with_name("candidates.csv")
CANDIDATES = read(FILE)

# For an epilogue that takes longer than the products of its tile. Swapped operands are 1 to 4 %
# faster (docs/performance/notebook.md, "What bounds a gelu at K = 256").
LONG_EPILOGUES = tuple(
    Candidate(pingpong, (128, 128, 64), cluster=cluster, swapped=True, consumers=3)
    for cluster in ((1, 1), (1, 2))
)

# For problems with an epilogue.
ALL_CANDIDATES = (*CANDIDATES, *LONG_EPILOGUES)


def distinct(candidates: Iterable[Candidate]) -> Iterator[Candidate]:
    """The candidates, once for each number of blocks that may split K."""
    for each in candidates:
        yield from map(each.over, range(2, MOST_SPLITS + 1)) if each.splits == FILL else (each,)


def candidates_for(problem: Problem) -> tuple[Candidate, ...]:
    """The candidates for a problem."""
    return CANDIDATES if problem.epilogue is PLAIN else ALL_CANDIDATES


def candidate_of(plan: Sm90Plan) -> Candidate | None:
    """The candidate that makes a plan, with its splits; None if no candidate does.

    >>> candidate_of(pingpong((128, 192, 64))).name, candidate_of(pingpong((192, 128, 64)))
    ('pingpong 128×192×64', None)
    """
    maker = MAKERS.get(plan.schedule if plan.splits == 1 else split.__name__)
    if maker is None:
        return None
    turns = plan.consumers if maker is pingpong else 2
    found = Candidate(maker, plan.tile, plan.splits, plan.cluster, plan.swapped, turns)
    return found if found.family in ALL_CANDIDATES else None


def plans() -> list[Sm90Plan]:
    """Every plan without an epilogue that the model may choose if TMA stores C.

    >>> len(plans())
    19084
    """
    kinds = product(("bfloat16", "float16"), get_args(Major), get_args(Major))
    return [
        _plan(candidate, raster, dtype, a_major, b_major)
        for dtype, a_major, b_major in kinds
        for candidate in distinct(CANDIDATES)
        if candidate.serves((a_major, b_major))
        for raster in candidate.rasters
    ]
