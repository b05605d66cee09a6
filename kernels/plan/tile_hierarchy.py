"""The tile hierarchy of a GEMM: a block's tile, a warp's tile in it, a thread's tile in that.

Every plan has one: `from_plan` reads it off the layout of the outputs that each thread holds.
`gemm` computes a product in its order, loops within loops; `picture` draws who holds what.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise, product
from typing import TYPE_CHECKING, TypeAlias

from cutedsl_gemm.kernels.plan.checks import PlanError
from cutedsl_gemm.kernels.plan.kernel_plan import KernelPlan
from layouts import Bijective, Layout, prove, size
from layouts.draw import Table
from layouts.draw.cells import COLOURS, Panel
from layouts.hardware.facts import WARP

if TYPE_CHECKING:
    from torch import Tensor

Tile: TypeAlias = tuple[int, int, int]  # (M, N, K)
LIMIT = 64  # rows and columns of a picture, by default


@dataclass(frozen=True)
class TileHierarchy:
    """Tiles (M, N, K) within each other, and the outputs of a block that each thread holds.

    `outputs` is (thread, value) → m + BM * n. A warp has `lanes` threads.
    """

    block: Tile
    warp: Tile
    thread: Tile
    outputs: Layout
    lanes: int = WARP

    def explain(self) -> str:
        """The hierarchy as text.

        >>> print(nested((8, 32, 6), (4, 8, 3), (4, 4, 1)).explain())
        block   8×32×6      2×4×2 warp tiles, 8 warps of 2 threads
        warp    4×8×3       1×2×3 thread tiles
        thread  4×4×1       16 outputs
        outputs ((1,2,2,4),(4,4)):((4,32,4,64),(1,8))   (thread, value) → m + 8n
        """
        threads, values = map(size, self.outputs)
        warps = f"{threads // self.lanes} warps of {self.lanes} threads"
        lines = (
            ("block", self.block, f"{_counts(self.block, self.warp)} warp tiles, {warps}"),
            ("warp", self.warp, f"{_counts(self.warp, self.thread)} thread tiles"),
            ("thread", self.thread, f"{values} outputs"),
        )
        text = [f"{name:<7} {'×'.join(map(str, tile)):<11} {what}" for name, tile, what in lines]
        formula = f"(thread, value) → m + {self.block[0]}n"
        return "\n".join([*text, f"outputs {self.outputs}   {formula}"])

    def picture(self, limit: int | None = LIMIT) -> Table:
        """The outputs of a block: each cell has its thread, and the colour of its warp.

        At most `limit` rows and columns are drawn; None draws all.

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
        holder = {self.outputs(t, v): t for t, v in product(*map(range, map(size, self.outputs)))}
        rows, columns = (min(extent, limit or extent) for extent in (bm, bn))
        threads = [[holder[m + bm * n] for n in range(columns)] for m in range(rows)]
        colours = len(COLOURS)
        cells = tuple(tuple((str(t), t // self.lanes % colours) for t in row) for row in threads)
        first = f", the first {rows}×{columns}" if (rows, columns) != (bm, bn) else ""
        down, across = self._borders([row[0] for row in threads]), self._borders(threads[0])
        panel = Panel(
            f"{bm}×{bn} outputs of a block{first}",
            (),
            cells,
            down,
            across,
            shape=(bm, bn),
            elements=tuple(tuple((t,) for t in row) for row in threads),
            counts="thread {}",
        )
        return Table((panel,), "the thread that holds each", f"colour = warp mod {colours}:")

    def _borders(self, threads: list[int]) -> tuple[int, ...]:
        """After each output of a row or column: 2 if the warp changes, 1 if only the thread."""
        borders = [(t != u) + (t // self.lanes != u // self.lanes) for t, u in pairwise(threads)]
        return (*borders, 0)


def nested(block: Tile, warp: Tile, thread: Tile) -> TileHierarchy:
    """The hierarchy whose tiles are whole rectangles, side by side, those along M first.

    PlanError unless the tile of a thread divides a warp's, and a warp's divides the block's.
    """
    for name, outer, inner in (("block", block, warp), ("warp", warp, thread)):
        if any(o % i for o, i in zip(outer, inner, strict=True)):
            raise PlanError(f"{name} tile {outer}: its extents must be multiples of {inner}")
    (bm, bn, _), (wm, wn, _), (tm, tn, _) = block, warp, thread
    lanes, warps = (wm // tm, wn // tn), (bm // wm, bn // wn)
    outputs = Layout(((*lanes, *warps), (tm, tn)), ((tm, bm * tn, wm, bm * wn), (1, bm)))
    return TileHierarchy(block, warp, thread, outputs, lanes[0] * lanes[1])


def from_plan(plan: KernelPlan) -> TileHierarchy:
    """The hierarchy of a plan: the rows and columns in which a warp, and a thread, hold outputs.

    >>> from cutedsl_gemm.kernels.sm80.rungs import large
    >>> hierarchy = from_plan(large())
    >>> hierarchy.block, hierarchy.warp, hierarchy.thread
    ((128, 256, 64), (64, 64, 64), (8, 16, 16))
    """
    (bm, _, bk), outputs = plan.tile, plan.outputs
    if not prove(Bijective(outputs)):
        raise PlanError(f"{outputs} must give each output of the block to one thread")
    values = range(size(outputs[1]))

    def extents(threads: range) -> tuple[int, int]:
        held = [outputs(t, v) for t, v in product(threads, values)]
        return len({offset % bm for offset in held}), len({offset // bm for offset in held})

    warp, thread = (*extents(range(WARP)), bk), (*extents(range(1)), plan.instruction_k)
    return TileHierarchy(plan.tile, warp, thread, outputs)


def gemm(hierarchy: TileHierarchy, a: Tensor, b: Tensor) -> Tensor:
    """a (M, K) · b (K, N), tile by tile and level by level; tiles are cut at the edges."""
    c = a.new_zeros(a.shape[0], b.shape[1])
    _accumulate(a, b, c, (hierarchy.block, hierarchy.warp, hierarchy.thread))
    return c


def _accumulate(a: Tensor, b: Tensor, c: Tensor, levels: tuple[Tile, ...]) -> None:
    """c += a · b, a loop over tiles for each level."""
    if not levels:
        c += a @ b  # a thread's outer products
        return
    (m, n, k), *inner = levels
    extents = (*c.shape, a.shape[1])
    starts = (range(0, extent, step) for extent, step in zip(extents, levels[0], strict=True))
    for i, j, l in product(*starts):
        rows, columns, depth = slice(i, i + m), slice(j, j + n), slice(l, l + k)
        _accumulate(a[rows, depth], b[depth, columns], c[rows, columns], tuple(inner))


def _counts(outer: Tile, inner: Tile) -> str:
    """How many inner tiles an outer one has, along each mode."""
    return "×".join(str(o // i) for o, i in zip(outer, inner, strict=True))
