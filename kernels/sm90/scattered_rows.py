"""Reduce-scatter: this GPU keeps its own rows of C, and sends the other GPUs theirs.

When   tiles of the next GPU's rows come first, this GPU's own last (`ChunkOrder`). A tile of other
       rows is stored on this GPU, and its elements are counted: copy engines wait for the count of
       a piece, send it to its GPU, and write a flag there. A tile of own rows waits for the flags
       of its piece, and adds what has come: the sums have a fixed order.

Where  a piece is the rows of a group of the raster. What is sent lies in the order of the GPUs.
"""

from typing import Any, NamedTuple

import cutlass
import cutlass.cute as cute
from cutlass import Float32, Int32

from cutedsl_gemm.kernels.device.epilogue import load_values
from cutedsl_gemm.kernels.device.flags import add_to_flag, wait_for_flag
from cutedsl_gemm.kernels.sm90.panel_stores import TmaPanels


class Received(NamedTuple):
    """What other GPUs send of this GPU's rows of C, and the flags that say what is there."""

    parts: cute.Tensor  # (GPUs, rows, N)
    arrived: cute.Tensor  # (GPUs, pieces): the epoch of each piece of rows that has come
    stored: cute.Tensor  # (GPUs, pieces): how many elements are stored of what this GPU sends
    number: Any  # of this GPU
    epoch: Any


class Target(NamedTuple):
    """The GPU to which a tile belongs, and where its rows are stored."""

    gpu: Any
    own: Any  # whether that is this GPU
    before: Any  # rows of panels of the GPUs before it
    piece: Any  # of its rows


def target(plan, tile, m, extents):
    """The row of a tile on the GPU that has it, and its target if C is scattered."""
    if not plan.scattered:
        return m, None
    clusters_m, clusters_n, _, chunk_order, _ = extents
    rows = chunk_order.height * plan.cluster[0]  # of a GPU, in tiles
    gpu = chunk_order.chunk(tile, clusters_m, clusters_n)
    m -= gpu * rows
    own = chunk_order.chunks_before(tile, clusters_n) == clusters_m // chunk_order.height - 1
    piece = m // (plan.raster.group * plan.cluster[0])
    return m, Target(gpu, own, gpu * rows * plan.atom_layout[0], piece)


class PartialSums:
    """What other GPUs add to this GPU's rows, and the counts of what is sent to them."""

    def __init__(self, plan, reads):
        self.plan, self.reads = plan, reads

    @cute.jit
    def wait(self, received, target):
        """Wait for the other GPUs' parts of a tile. Their number, or 0 for a tile that is sent."""
        count = cutlass.select_(target.own, received.parts.shape[0] - 1, Int32(0))
        for step in cutlass.range(count, unroll=1):
            at = self.sender(received, step), target.piece
            flag = received.arrived.iterator + cute.crd2idx(at, received.arrived.layout)
            wait_for_flag(flag, received.epoch)
        return count

    def sender(self, received, step):
        """The GPU whose part is added at `step`; the next GPU's is added first."""
        return (received.number + 1 + step) % received.parts.shape[0]

    @cute.jit
    def add(self, values, received, count, first, panels: cutlass.Constexpr):
        """Add the parts of `count` GPUs, in their order, to the values of some panels."""
        for step in cutlass.range(count, unroll=1):
            part = received.parts[self.sender(received, step), None, None]  # (rows, N)
            for panel in cutlass.range_constexpr(panels.start, panels.stop):
                sums = values[None, None, None, panel]
                found = load_values(part, first, self.reads.offsets(panel), sums.shape, 2)
                sums.store(sums.load() + found.load().to(Float32))

    @cute.jit
    def count(self, issues, received, target, n):
        """Count the elements of a consumer's part of a tile that is sent, when they are stored.

        A tile at the edge counts only the columns inside C; a tile beyond the edge counts none.
        """
        across, stored = self.plan.consumer_tile[1], received.stored
        columns = cutlass.max(cutlass.min(across, received.parts.shape[2] - n * across), 0)
        if issues and not target.own:
            cute.arch.cp_async_bulk_wait_group(0, read=False)
            with cute.arch.elect_one():
                at = cute.crd2idx((target.gpu, target.piece), stored.layout)
                add_to_flag(stored.iterator + at, self.plan.panel_rows * columns)


class ScatteredPanels(TmaPanels):
    """Panels of C: this GPU's own rows, and those that it sends to the other GPUs.

    The rows that are sent lie one GPU after the other.
    """

    def output(self, c):
        """The atom, and C as TMA sees it, of what is sent and of this GPU's rows."""
        return tuple(super(ScatteredPanels, self).output(each) for each in c)

    def tiles(self, output):
        """The atom, and the rows in panels, of both."""
        return tuple(super(ScatteredPanels, self).tiles(each) for each in output)

    def partition(self, sC, tiles, m, n, target=None):
        """The partitions of the rows that are sent and of own rows, and the target."""
        partitioned = [super(ScatteredPanels, self).partition(sC, each, m, n) for each in tiles]
        return partitioned[0], partitioned[1], target

    @cute.jit
    def wait_for_buffer(self, partitioned, store: cutlass.Constexpr):
        """Wait until TMA has read what the buffer of a tile's store held before."""
        super().wait_for_buffer(partitioned[0], store)

    @cute.jit
    def store(self, partitioned, buffer, m, n, panel: cutlass.Constexpr):
        """Store a buffer to a panel of the target's rows."""
        sent, own, target = partitioned
        if target.own:
            super().store(own, buffer, m, n, panel)
        else:
            super().store(sent, buffer, m + target.before, n, panel)

    def sent(self, partitioned):
        """Whether this warp issues the stores of the partial sums that are sent."""
        (issues, *_), _, _ = partitioned
        return issues
