"""Faults of plans: layouts, counts and orders that a kernel takes as they are."""

from __future__ import annotations

from .fault import Fault

SM90 = "kernels/sm90/plan.py"
PANELS = "kernels/sm90/epilogue_plan.py"
SPLIT_K = "kernels/sm90/split_k_plan.py"
OPERAND = "kernels/sm90/operand.py"
RASTER = "kernels/plan/raster.py"

FAULTS = (
    Fault(
        "last_group_too_high",
        RASTER,
        "minimum(self.group, tiles_m - first)",
        "self.group",
        "The raster's last group runs past the last tile row, and leaves tiles out.",
    ),
    Fault(
        "columns_raster_not_transposed",
        RASTER,
        "Raster(self.group)(index, tiles_n, tiles_m, minimum)",
        "Raster(self.group)(index, tiles_m, tiles_n, minimum)",
        "Tiles of a C that is not square are computed twice or never.",
    ),
    Fault(
        "multicast_mask_of_row_0",
        SM90,
        "for other in range(across)) << row",
        "for other in range(across))",
        "Blocks of the second row send their slice of A to the first.",
    ),
    Fault(
        "multicast_mask_of_column_1",
        SM90,
        "(1 << down) - 1 << down * column",
        "(1 << down) - 1 << column",
        "Blocks send their slice of B to blocks of two columns.",
    ),
    Fault(
        "a_loader_twice",
        SM90,
        "for step in range(1, down)]",
        "for step in range(down)]",
        "A block releases its own stages twice, before all have read them.",
    ),
    Fault(
        "one_reload_too_many",
        SM90,
        "return k_tiles - self.stages",
        "return k_tiles - self.stages + 1",
        "A block arrives on an mbarrier of a block that may have ended.",
    ),
    Fault(
        "splits_rounded_down",
        "kernels/plan/work.py",
        "(split + 1) * k_tiles // self.splits",
        "split * k_tiles // self.splits + k_tiles // self.splits",
        "k-tiles that do not divide among the splits are left out.",
    ),
    Fault(
        "bytes_of_a_stage_of_a",
        SM90,
        "return self.operand_bytes(self.a) + self.operand_bytes(self.b)",
        "return 2 * self.operand_bytes(self.a)",
        "A full mbarrier waits for bytes that never come, or for too few.",
    ),
    Fault(
        "readers_of_all_blocks",
        SM90,
        "self.consumers_per_tile * len(self.loaders(0))",
        "self.consumers_per_tile * self.cluster_size",
        "In a cluster of two rows and columns, producers wait for arrivals that never come.",
    ),
    Fault(
        "cluster_coord_by_columns",
        "kernels/plan/work.py",
        "(rank % down, rank // down) if",
        "(rank % across, rank // across) if",
        "Blocks of a cluster that is not square compute tiles twice or never.",
    ),
    Fault(
        "tiles_of_one_cluster",
        "kernels/plan/work.py",
        "return m * down + row, n * across + column",
        "return m + row, n + column",
        "Clusters overlap, and the last tiles are never computed.",
    ),
    Fault(
        "k_order_rounded_down",
        SM90,
        "-(-k // self.tile[2])",
        "k // self.tile[2]",
        "The order of summation that a plan states leaves the last products out.",
    ),
    Fault(
        "c_tile_not_exchanged",
        SM90,
        "return self.exchanged(self.tile[:2])",
        "return self.tile[:2]",
        "The reduction of swapped operands writes to other tiles than were summed.",
    ),
    Fault(
        "one_store_more_pending",
        PANELS,
        "            return self.c_stages - 1\n",
        "            return self.c_stages\n",
        "stmatrix overwrites a panel that TMA has not read yet.",
    ),
    Fault(
        "first_panels_wait_for_one_store_less",
        PANELS,
        "(self.panels - 1 - panel) % self.c_stages + panel",
        "(self.panels - panel) % self.c_stages + panel",
        "The first panels of a tile overwrite what TMA still reads of the tile before.",
    ),
    Fault(
        "stmatrix_transposes_the_others",
        PANELS,
        "transposed=self.contiguous == 0)",
        "transposed=self.contiguous == 1)",
        "stmatrix writes its matrices transposed.",
    ),
    Fault(
        "fragment_of_the_next_panel",
        PANELS,
        "(1, bn // 2, held, columns // 2)",
        "(1, bn // 2, held, columns)",
        "A panel is stored from registers of the panel after it.",
    ),
    Fault(
        "workspace_halved",
        SPLIT_K,
        "return self.splits * -(-m // rows)",
        "return self.splits // 2 * -(-m // rows)",
        "The partial sums of half of the splits are written behind the workspace.",
    ),
    Fault(
        "workspace_of_the_other_shape",
        SPLIT_K,
        "rows, columns = self.exchanged(self.cluster_tile)",
        "rows, columns = self.cluster_tile",
        "With swapped operands, partial sums are written behind the workspace.",
    ),
    Fault(
        "sums_along_the_wrong_mode",
        SPLIT_K,
        "(1, bm) if swapped else (bn, 1)",
        "(1, bm)",
        "A store of partial sums fills no whole sector, and takes several times as many.",
    ),
    Fault(
        "slices_of_the_contiguous_mode",
        OPERAND,
        '(self.slices, 1) if self.major == "K" else (1, self.slices)',
        "(self.slices, 1)",
        "A slice of an MN-major operand cuts the rows of its swizzle.",
    ),
    Fault(
        "narrowest_swizzle",
        OPERAND,
        "row = max(gcd(inner, ROW), SHORTEST_ROW)",
        "row = SHORTEST_ROW",
        "Four TMA boxes load what one could.",
    ),
    Fault(
        "buffers_rounded_down",
        "kernels/plan/smem.py",
        "end = -(-end // alignment) * alignment + size",
        "end = end // alignment * alignment + size",
        "A kernel asks for less shared memory than its buffers take.",
    ),
    Fault(
        "swizzle_of_the_lowest_line_bits",
        "kernels/sm80/operand.py",
        "Swizzle(min(swizzle_bits, vector_bits), 3, max(3, vector_bits))",
        "Swizzle(min(swizzle_bits, vector_bits), 3, 3)",
        "Where a line has 16 vectors, the swizzle reads other bits, and lanes conflict.",
    ),
    Fault(
        "warps_side_by_side_the_wrong_way",
        "kernels/sm80/accumulator.py",
        "lane_and_warp = 2 * permuted_mma, 8 * permuted_mma",
        "lane_and_warp = 2 * permuted_mma, 8",
        "Warps store their columns of C over each other's.",
    ),
    Fault(
        "c_assumed_aligned",
        "kernels/plan/arguments.py",
        "True, plan.c_alignment)",
        "True, plan.alignment)",
        "A C whose rows start anywhere is refused at the launch.",
    ),
    Fault(
        "as_many_clusters_as_multiprocessors",
        "kernels/plan/work.py",
        "sms // self.cluster_size))",
        "sms))",
        "Half of the clusters wait until the others have walked all their tiles.",
    ),
)
