"""Faults of the device code of sm80, sm70, simt and of the copies."""

from __future__ import annotations

from .fault import Fault

MULTISTAGE = "kernels/sm80/multistage.py"
VOLTA = "kernels/sm70/volta.py"
ROWS = "kernels/copies/rows.py"

SM80 = (
    Fault(
        "cp_async_awaited_one_late",
        MULTISTAGE,
        "cp_async_wait_group(self.plan.stages - 2)",
        "cp_async_wait_group(self.plan.stages - 1)",
        "A k-tile is multiplied before its copies have arrived.",
    ),
    Fault(
        "no_barrier_after_cp_async",
        MULTISTAGE,
        "(self.plan.stages - 2)\n        cute.arch.sync_threads()\n",
        "(self.plan.stages - 2)\n",
        "A thread reads what other threads' copies have not written yet.",
    ),
    Fault(
        "no_cp_async_commit",
        MULTISTAGE,
        "        cute.arch.cp_async_commit_group()\n",
        "",
        "wait_group waits for no copy.",
    ),
    Fault(
        "loads_one_k_tile_too_far",
        MULTISTAGE,
        "load(k_tile + self.plan.stages - 1, whole)",
        "load(k_tile + self.plan.stages, whole)",
        "One k-tile is never loaded, and its stage is overwritten while it is read.",
    ),
    Fault(
        "cut_k_tiles_loaded_whole",
        MULTISTAGE,
        "cutlass.max(a.shape[1] // bk - (",
        "cutlass.max(cute.ceil_div(a.shape[1], bk) - (",
        "The last k-tile is read beyond the end of K.",
    ),
    Fault(
        "edge_tiles_loaded_whole",
        MULTISTAGE,
        "((n + 1) * bn <= b.shape[0])",
        "(n * bn <= b.shape[0])",
        "The last columns of tiles are read beyond the end of B.",
    ),
    Fault(
        "fragments_of_the_k_tile_before",
        "kernels/sm80/register_pipeline.py",
        "load_fragments(0, (k_tile + 1) % stages)",
        "load_fragments(0, k_tile % stages)",
        "The first step of each k-tile multiplies fragments of the one before.",
    ),
    Fault(
        "singlestage_reloads_too_early",
        "kernels/sm80/singlestage.py",
        "                multiply(step)\n            cute.arch.sync_threads()\n",
        "                multiply(step)\n",
        "Threads overwrite a k-tile that other warps still read.",
    ),
    Fault(
        "stages_of_one_k_tile",
        MULTISTAGE,
        "load_fragments(step, k_tile % self.plan.stages)",
        "load_fragments(step, 0)",
        "All k-tiles are read from the first stage.",
    ),
)

SM70_SIMT_COPIES = (
    Fault(
        "volta_overwrites_what_it_reads",
        VOLTA,
        "self.store(values, smem, (k_tile + 1) % plan.stages, thread)",
        "self.store(values, smem, k_tile % plan.stages, thread)",
        "A k-tile is stored over the one that is being multiplied.",
    ),
    Fault(
        "volta_one_fragment_buffer",
        VOLTA,
        "target[None, load, step % buffers]",
        "target[None, load, 0]",
        "Every second step multiplies stale fragments.",
    ),
    Fault(
        "volta_no_residue",
        VOLTA,
        "residue = (matrix.shape[1] - 1) % plan.tile[2] + 1",
        "residue = matrix.shape[1] % plan.tile[2]",
        "Where K is a multiple of 32, the last k-tile is left out.",
    ),
    Fault(
        "simt_reloads_too_early",
        "kernels/simt/staged.py",
        "+= rA[i] * rB[j]\n            cute.arch.sync_threads()\n",
        "+= rA[i] * rB[j]\n",
        "Threads overwrite a tile that others still read.",
    ),
    Fault(
        "simt_no_column_guard",
        "kernels/simt/direct.py",
        "if in_bounds(at, extent):",
        "if at[0] < extent[0]:",
        "Threads beyond the last column write the start of the next row.",
    ),
    Fault(
        "copy_second_word_misaligned",
        ROWS,
        "at = wanted - shift + self.plan.word_bytes",
        "at = wanted + self.plan.word_bytes",
        "The second word is loaded from an address that is not a multiple of its size.",
    ),
    Fault(
        "copy_writes_before_a_row",
        ROWS,
        "if (column >= 0) & (column + self.plan.width <= columns):",
        "if column + self.plan.width <= columns:",
        "A word that begins before its row overwrites the end of the one above.",
    ),
    Fault(
        "copy_tiles_of_aligned_rows",
        ROWS,
        "select_(askew, Int32(plan.width - 1), Int32(0))",
        "select_(askew, Int32(0), Int32(0))",
        "The last columns of rows that start inside a word are not copied.",
    ),
    Fault(
        "copy_does_not_wait",
        ROWS,
        "wait_for_previous_launch(i, j)",
        "pass",
        "A copy that overlaps the launch before it reads what that one has not written yet.",
    ),
    Fault(
        "copy_lets_the_next_launch_start_early",
        ROWS,
        "wait_for_previous_launch(i, j)",
        "wait_for_previous_launch(i, j); cute.arch.griddepcontrol_launch_dependents()",
        "Products behind a copy start in no order: a split of K takes up to 1.22 times as long.",
    ),
    Fault(
        "copy_reads_past_the_end",
        ROWS,
        "(address >= first) & (address + self.plan.word_bytes <= end)",
        "(address >= first) & (address < end)",
        "The last word is read beyond the memory of the source.",
    ),
    Fault(
        "copy_second_matrix_counts_from_0",
        ROWS,
        "self.tile_counts(pair[1])[1], block - first",
        "self.tile_counts(pair[1])[1], block",
        "The first tiles of the second matrix are not copied.",
    ),
    Fault(
        "copy_reads_beyond_last_row",
        "kernels/copies/rows.py",
        "end = source + (rows - 1) * source_stride + Int64(columns) * self.element",
        "end = source + rows * source_stride",
        "The copy reads beyond the source.",
    ),
    Fault(
        "copy_drops_first_word",
        "kernels/copies/rows.py",
        "& (column + width > 0)",
        "& (column >= 0)",
        "The first elements of a row that starts inside a word are not copied.",
    ),
)

FAULTS = SM80 + SM70_SIMT_COPIES
