"""Faults of the executors: gemm on a CPU, and the oracle of every plan."""

from __future__ import annotations

from .fault import Fault

SM90 = "kernels/sm90/execute.py"
EPILOGUE = "kernels/sm90/execute_epilogue.py"
ADDRESSES = "kernels/sm90/execute_addresses.py"
TILES = "kernels/executor/tiles.py"
BLOCKS = "kernels/executor/blocks.py"

FAULTS = (
    Fault(
        "a_swizzle_of_offset_0",
        ADDRESSES,
        "swizzle((start + offset + box) * element)",
        "swizzle((offset + box) * element) + start",
        "A box of a slice is swizzled as if it began at 0.",
    ),
    Fault(
        "written_twice_is_not_seen",
        ADDRESSES,
        '(times > 1, "written twice"), (times == 0, "never written")',
        '(times == 0, "never written")',
        "A plan that writes an address twice, and another one never, is executed.",
    ),
    Fault(
        "visits_not_counted",
        SM90,
        'check_visits(f"{plan.raster}", visited, *tile_counts)',
        "pass",
        "A raster that forgets a tile gives NaN.",
    ),
    Fault(
        "batch_of_one_b",
        SM90,
        "return n + int(matrix * self.extents.clusters_n * self.plan.cluster[1])",
        "return n",
        "All matrices of a batch are multiplied by the first matrix of B.",
    ),
    Fault(
        "batch_reads_one_operand",
        EPILOGUE,
        "matrix, rows = self.in_matrix(rows)\n        return matrix, rows.clamp",
        "matrix, rows = self.in_matrix(rows)\n        return 0 * matrix, rows.clamp",
        "All matrices of a batch have the bias of the first.",
    ),
    Fault(
        "sums_of_the_last_split",
        EPILOGUE,
        "total += partial_sums[:, :, read]",
        "total = partial_sums[:, :, read]",
        "A product whose K is split has the products of the last part alone.",
    ),
    Fault(
        "one_tile_row_short",
        TILES,
        "down, across = -(-m // (rows * at_once)) * at_once, -(-n // columns)",
        "down, across = -(-m // rows), -(-n // columns)",
        "Where tile rows do not divide among the clusters, the last ones are missing.",
    ),
    Fault(
        "first_k_not_added",
        TILES,
        "for row_elements, column_elements in zip(a.contiguous(), b.contiguous(), strict=True):",
        "for row_elements, column_elements in zip(a[1:].contiguous(), b[1:], strict=True):",
        "An invariant product leaves the first k of each k-tile out.",
    ),
    Fault(
        "residue_at_the_end",
        "kernels/sm70/execute.py",
        "residue = (k - 1) % bk + 1",
        "residue = (k - 1) % bk",
        "The executor of sm70 cuts K one element early.",
    ),
    Fault(
        "copies_end_before_the_edge",
        "kernels/copies/execute.py",
        "-(-(columns + width - 1) // bn)",
        "-(-columns // bn)",
        "The last columns of rows that start inside a word are not copied.",
    ),
    Fault(
        "a_tile_that_no_block_visits",
        TILES,
        "if visits[coord] != (coord in inside):",
        "if visits[coord] > (coord in inside):",
        "A plan whose blocks forget a tile is executed.",
    ),
    Fault(
        "one_stage_for_all",
        BLOCKS,
        "start = self.stages(k_tile % size(self.stages))",
        "start = self.stages(0)",
        "A k-tile is overwritten before it is read, or stages are never checked.",
    ),
    Fault(
        "no_k_tile_loaded_ahead",
        BLOCKS,
        "for k_tile in range(ahead):",
        "for k_tile in range(ahead - 1):",
        "A stage is read that nothing was loaded into.",
    ),
    Fault(
        "split_starts_at_zero",
        "kernels/sm90/execute.py",
        "smem.load(tile, tiles[0].k_tiles[k], action.k_tile",
        "smem.load(tile, k, action.k_tile",
        "Every split multiplies the first range of K.",
    ),
    Fault(
        "accumulator_cleared_once",
        "kernels/sm90/execute.py",
        "if action.k_tile == action.tile * len(tiles[0].k_tiles):",
        "if action.k_tile == 0:",
        "The second tile of a block adds to the first.",
    ),
    Fault(
        "only_gaps_are_refused",
        ADDRESSES,
        'for count, words in ((times > 1, "written twice"), (times == 0, "never written")):',
        'for count, words in ((times > 1, "written twice"),):',
        "A layout that leaves a gap passes.",
    ),
    Fault(
        "operand_of_the_first_panel",
        EPILOGUE,
        "values = panels[:, step.buffer, self.loaded",
        "values = panels[:, 0, self.loaded",
        "All panels of a tile have the operand of the first.",
    ),
    Fault(
        "panel_read_as_written",
        EPILOGUE,
        "plan.staging(rows + plan.panel_rows * torch.arange(plan.panel_columns))",
        "plan.staging.outer(rows + plan.panel_rows * torch.arange(plan.panel_columns))",
        "Threads read a panel without its swizzle.",
    ),
)
