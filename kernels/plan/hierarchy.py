"""The hierarchy of a GEMM: the block's tile, the warp's within it, the thread's within that.

Any plan has one: `of` reads it off the layout that says which thread holds which outputs. `gemm`
carries one out as it is told, loops within loops, and `picture` draws who holds what.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise, product
from typing import TYPE_CHECKING, TypeAlias

from cutedsl_gemm.kernels.plan.checks import PlanError
from cutedsl_gemm.kernels.plan.kernel_plan import KernelPlan
from layouts import Bijective, Layout, prove, size
from layouts.draw import Table
from layouts.draw.cells import Panel

if TYPE_CHECKING:
    from torch import Tensor

Tile: TypeAlias = tuple[int, int, int]  # (M, N, K)
WARP = 32  # threads
LIMIT = 64  # rows and columns of a picture, unless told
HUES = 8


@dataclass(frozen=True)
class Hierarchy:
    """Tiles (M, N, K) within each other, and who holds an output of the block's.

    `held` is (thread, value) → m + BM * n; a warp has `lanes` threads.
    """

    block: Tile
    warp: Tile
    thread: Tile
    held: Layout
    lanes: int = WARP

    def explain(self) -> str:
        """The hierarchy as text.

        >>> print(nested((8, 32, 6), (4, 8, 3), (4, 4, 1)).explain())
        block   8×32×6      2×4×2 warp tiles, 8 warps of 2 threads
        warp    4×8×3       1×2×3 thread tiles
        thread  4×4×1       16 outputs
        held    ((1,2,2,4),(4,4)):((4,32,4,64),(1,8))   (thread, value) → m + 8n
        """
        threads, values = map(size, self.held)
        warps = f"{threads // self.lanes} warps of {self.lanes} threads"
        lines = (
            ("block", self.block, f"{_times(self.block, self.warp)} warp tiles, {warps}"),
            ("warp", self.warp, f"{_times(self.warp, self.thread)} thread tiles"),
            ("thread", self.thread, f"{values} outputs"),
        )
        told = [f"{name:<7} {'×'.join(map(str, tile)):<11} {text}" for name, tile, text in lines]
        return "\n".join([*told, f"held    {self.held}   (thread, value) → m + {self.block[0]}n"])

    def picture(self, limit: int | None = LIMIT) -> Table:
        """The outputs of a block: in each cell its thread, tinted by the warp.

        >>> print(nested((4, 4, 2), (2, 4, 2), (2, 2, 1)).picture())
        4×4 outputs of a block
        the thread that holds each
        <BLANKLINE>
             0  1   2  3
           ┌──────┬──────
         0 │ 0  0 │ 1  1
         1 │ 0  0 │ 1  1
           ┝━━━━━━┿━━━━━━
         2 │ 2  2 │ 3  3
         3 │ 2  2 │ 3  3
        """
        bm, bn, _ = self.block
        holder = {self.held(t, v): t for t, v in product(*map(range, map(size, self.held)))}
        rows, columns = (min(extent, limit or extent) for extent in (bm, bn))
        threads = [[holder[m + bm * n] for n in range(columns)] for m in range(rows)]
        cells = tuple(tuple((str(t), t // self.lanes % HUES) for t in line) for line in threads)
        cut = f", the first {rows}×{columns}" if (rows, columns) != (bm, bn) else ""
        down, across = _ends([line[0] for line in threads], self), _ends(threads[0], self)
        panel = Panel(f"{bm}×{bn} outputs of a block{cut}", (), cells, down, across)
        return Table((panel,), "the thread that holds each", f"colour = warp mod {HUES}:")


def nested(block: Tile, warp: Tile, thread: Tile) -> Hierarchy:
    """The hierarchy whose tiles are whole rectangles, side by side; M first.

    PlanError unless a thread's tile divides a warp's, and that the block's.
    """
    for name, outer, inner in (("block", block, warp), ("warp", warp, thread)):
        if any(o % i for o, i in zip(outer, inner, strict=True)):
            raise PlanError(f"{name} tile {outer}: its extents must be multiples of {inner}")
    (bm, bn, _), (wm, wn, _), (tm, tn, _) = block, warp, thread
    lanes, warps = (wm // tm, wn // tn), (bm // wm, bn // wn)
    held = Layout(((*lanes, *warps), (tm, tn)), ((tm, bm * tn, wm, bm * wn), (1, bm)))
    return Hierarchy(block, warp, thread, held, lanes[0] * lanes[1])


def of(plan: KernelPlan) -> Hierarchy:
    """The hierarchy of a plan: of the rows and columns that a warp, and a thread, holds outputs in.

    >>> from cutedsl_gemm.kernels.sm80.rungs import large
    >>> of(large()).block, of(large()).warp, of(large()).thread
    ((128, 256, 64), (64, 64, 64), (8, 16, 16))
    """
    (bm, _, bk), held = plan.tile, plan.outputs
    if not prove(Bijective(held)):
        raise PlanError(f"{held} must give each output of the block to one thread")
    values = range(size(held[1]))

    def spanned(threads: range) -> tuple[int, int]:
        places = [held(t, v) for t, v in product(threads, values)]
        return len({p % bm for p in places}), len({p // bm for p in places})

    return Hierarchy(
        plan.tile, (*spanned(range(WARP)), bk), (*spanned(range(1)), plan.instruction_k), held
    )


def gemm(hierarchy: Hierarchy, a: Tensor, b: Tensor) -> Tensor:
    """a (M, K) · b (K, N), tile by tile, level by level; what lies outside is left away."""
    c = a.new_zeros(a.shape[0], b.shape[1])
    _add(a, b, c, (hierarchy.block, hierarchy.warp, hierarchy.thread))
    return c


def _add(a: Tensor, b: Tensor, c: Tensor, levels: tuple[Tile, ...]) -> None:
    if not levels:
        c += a @ b  # outer products: a thread's
        return
    (m, n, k), *inner = levels
    extents = (*c.shape, a.shape[1])
    starts = (range(0, extent, step) for extent, step in zip(extents, levels[0], strict=True))
    for i, j, l in product(*starts):
        rows, columns, depth = slice(i, i + m), slice(j, j + n), slice(l, l + k)
        _add(a[rows, depth], b[depth, columns], c[rows, columns], tuple(inner))


def _times(outer: Tile, inner: Tile) -> str:
    return "×".join(str(o // i) for o, i in zip(outer, inner, strict=True))


def _ends(threads: list[int], hierarchy: Hierarchy) -> tuple[int, ...]:
    """Behind each of a line's outputs: 2 where the warp changes, 1 where the thread does."""
    pairs = pairwise(threads)
    ends = [(t != u) + (t // hierarchy.lanes != u // hierarchy.lanes) for t, u in pairs]
    return (*ends, 0)
