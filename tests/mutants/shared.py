"""Faults of the device code that several families share."""

from __future__ import annotations

from .fault import Fault

TILE = "kernels/device/tile.py"

FAULTS = (
    Fault(
        "row_after_the_last",
        TILE,
        "return (row < rows) & (column < columns)",
        "return (row <= rows) & (column < columns)",
        "Threads read and write the row after the last of a matrix.",
    ),
    Fault(
        "whole_vector_over_the_edge",
        TILE,
        "(line, (copy.width - 1, vector))",
        "(line, (0, vector))",
        "A vector that the edge cuts is written whole, beyond the end of a row.",
    ),
    Fault(
        "extent_of_the_wrong_tile",
        TILE,
        "return m - rows * i, n - columns * j",
        "return m - rows * j, n - columns * i",
        "Predicates of a tile are those of its mirror image.",
    ),
    Fault(
        "last_tile_column_missing",
        TILE,
        "return cute.ceil_div(shape[0], tiler[0]), cute.ceil_div(shape[1], tiler[1])",
        "return cute.ceil_div(shape[0], tiler[0]), shape[1] // tiler[1]",
        "The last columns of C have no block.",
    ),
    Fault(
        "no_zeros_beyond_the_edge",
        TILE,
        "    values.fill(0)\n",
        "",
        "Whatever the registers held is multiplied beyond the end of K.",
    ),
    Fault(
        "cp_async_to_stage_0",
        TILE,
        "target + stage_offset,",
        "target,",
        "All copies go to the first stage.",
    ),
    Fault(
        "cp_async_of_a_missing_row",
        TILE,
        "if across > 0 else 0",
        "if across >= 0 else 0",
        "The row after the last of a matrix is read.",
    ),
    Fault(
        "cp_async_16_bytes_always",
        TILE,
        "cp_size=None if whole else present * element",
        "cp_size=None",
        "Copies at the edges read beyond the matrix, and multiply what they find.",
    ),
    Fault(
        "swizzle_of_elements_on_bytes",
        "kernels/device/lower.py",
        "return swizzle.recast(unit, 8)",
        "return swizzle",
        "Pointers swizzle other bits than TMA and wgmma do.",
    ),
    Fault(
        "multiprocessors_of_one_block_a_cluster",
        "kernels/device/occupancy.py",
        "return clusters * plan.cluster_size",
        "return clusters",
        "A grid of clusters fills half of the GPU, or less.",
    ),
)
