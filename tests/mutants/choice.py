"""Faults of the choice of a plan: right results from the wrong plan, or a plan that cannot run."""

from __future__ import annotations

from .fault import Fault

MODEL = "cutedsl_gemm/select/model.py"
COSTS = "cutedsl_gemm/select/costs.py"
FORMULAS = "cutedsl_gemm/select/formulas.py"
CORRECTION = "cutedsl_gemm/select/correction.py"
CANDIDATE = "cutedsl_gemm/select/candidate.py"
CHOOSE = "cutedsl_gemm/select/choose.py"
REGISTRY = "cutedsl_gemm/select/registry.py"
PROBLEM = "cutedsl_gemm/inputs/problem.py"
TUNE = "cutedsl_gemm/select/tune.py"

FAULTS = (
    Fault(
        "batch_of_one",
        FORMULAS,
        "        blocks *= batch\n",
        "        pass\n",
        "The plan of a batch is chosen for the tiles of one matrix.",
    ),
    Fault(
        "batch_is_corrected_as_one_product",
        MODEL,
        "    if batch > 1:\n        others += math.log2(batch)",
        "    if batch < 1:\n        others += math.log2(batch)",
        "What the network has learned of batches changes no choice.",
    ),
    Fault(
        "batch_splits_k",
        MODEL,
        "        served = tuple(each for each in served if each.splits == 1)\n",
        "        pass\n",
        "`explain` ranks plans that no batch can take.",
    ),
    Fault(
        "k_split_in_any_wave",
        FORMULAS,
        " & (blocks <= costs.most_blocks)",
        "",
        "K is split over several waves, whose partial sums do not fit in L2.",
    ),
    Fault(
        "more_splits_than_a_wave_has_blocks_for",
        FORMULAS,
        "np.floor(np.minimum(costs.at_once / blocks, most))",
        "np.floor(most)",
        "No plan that splits K serves, though a few blocks of a wave are left.",
    ),
    Fault(
        "splits_left_out_at_twice_the_k",
        MODEL,
        "k >= 2 * LEAST_K and",
        "k >= 4 * LEAST_K and",
        "A product with a K of 1,024 to 2,047 is not split, however few tiles it has.",
    ),
    Fault(
        "splits_of_a_few_k",
        FORMULAS,
        "np.floor(np.minimum(costs.at_once / blocks, most))",
        "np.floor(costs.at_once / blocks)",
        "A block adds up two k-tiles, and the partial sums take longer than the products.",
    ),
    Fault(
        "named_kernel_forgets_invariance",
        CHOOSE,
        "each.serves(problem.majors, problem.invariant)",
        "each.serves(problem.majors)",
        "M decides how far K is padded, and with it the sign of a sum that is 0.",
    ),
    Fault(
        "far_candidates_chosen",
        MODEL,
        "    near = _near(seconds)\n",
        "    near = np.arange(len(seconds))\n",
        "A choice takes a plan that was hardly ever measured for such a problem.",
    ),
    Fault(
        "second_layer_not_rectified",
        CORRECTION,
        "np.maximum(second, ZERO).dot(self.output)",
        "second.dot(self.output)",
        "The network is not the one that was trained.",
    ),
    Fault(
        "cluster_of_one_tile",
        FORMULAS,
        "serves = filled[0] & filled[1]",
        "serves = filled[0] == filled[0]",
        "A product of one tile takes a cluster of eight blocks.",
    ),
    Fault(
        "tables_of_a_and_b_swapped",
        COSTS,
        "np.array((a, b, a))",
        "np.array((b, a, b))",
        "The misaligned rows of one operand are taken for those of the other.",
    ),
    Fault(
        "swapped_extents_not_swapped",
        COSTS,
        "(1, 0, 2) if each.swapped",
        "(0, 1, 2) if each.swapped",
        "The tiles of swapped candidates are counted along the wrong modes.",
    ),
    Fault(
        "clusters_fill_every_gpc",
        COSTS,
        "4: 120, 8: 120}",
        "4: SMS, 8: SMS}",
        "Grids of clusters are expected in one wave that take two.",
    ),
    Fault(
        "partial_sums_of_one_split",
        FORMULAS,
        "reduction = reduction * blocks",
        "reduction = reduction * blocks / splits",
        "Many splits seem as cheap to add as few.",
    ),
    Fault(
        "k_class_thresholds_swapped",
        CANDIDATE,
        "return (k > 256) + (k > 1024)",
        "return (k <= 256) + (k <= 1024)",
        "Deep products get the raster of shallow ones.",
    ),
    Fault(
        "raster_thresholds_swapped",
        CANDIDATE,
        " if self.tile[0] * self.tile[1] <= 128 * 128 ",
        " if self.tile[0] * self.tile[1] > 128 * 128 ",
        "Large tiles get the raster of small ones.",
    ),
    Fault(
        "clusters_go_row_by_row",
        CANDIDATE,
        "if self.cluster != (1, 1):",
        "if self.cluster == (8, 8):",
        "Clusters get a raster that was not compiled ahead.",
    ),
    Fault(
        "a_last_group_of_one_row",
        CANDIDATE,
        "0 < down % group <= group // 4",
        "0 < down % group < group // 4",
        "Five rows of tiles go in groups of four and one: 1.06 times as slow.",
    ),
    Fault(
        "stages_without_panels",
        CANDIDATE,
        "(SMEM_BYTES - BARRIER_BYTES - 2 * of_c)",
        "(SMEM_BYTES - BARRIER_BYTES)",
        "The network is told of more stages than a plan has.",
    ),
    Fault(
        "gate_unknown_to_the_network",
        "cutedsl_gemm/select/correction.py",
        "np.equal(accumulators, 2)",
        "np.equal(accumulators, 3)",
        "The network takes a tile of gate and value for one of a product.",
    ),
    Fault(
        "any_depth_is_invariant",
        CANDIDATE,
        "one_sum = self.maker is not split and self.tile[2] == 64",
        "one_sum = self.maker is not split",
        "Zeros after the end of K change the sign of a sum that is 0.",
    ),
    Fault(
        "c_alignment_not_passed_on",
        CANDIDATE,
        "c = problem.c_alignment, problem.epilogue",
        "c = PER_VECTOR, problem.epilogue",
        "TMA stores a C whose rows it cannot store; the launch refuses.",
    ),
    Fault(
        "two_panels_always",
        CANDIDATE,
        "return 2 if self.maker is cooperative and self.tile[1] == 256 else None",
        "return 2 if self.maker is cooperative else None",
        "Tiles stage more or fewer panels than were measured.",
    ),
    Fault(
        "large_tiles_never_cooperative",
        CHOOSE,
        "<= 128 * 192 or tile[0] < 128",
        "<= 256 * 256 or tile[0] < 128",
        "A tile of 128×256 is refused, though a cooperative plan has it.",
    ),
    Fault(
        "a_rung_of_all_makers",
        CHOOSE,
        " if each.maker is maker)",
        ")",
        "A kernel that was named runs the plan of another one.",
    ),
    Fault(
        "a_rung_for_other_majors",
        CHOOSE,
        " if each.serves(problem.majors, problem.invariant))",
        ")",
        "A kernel that was named refuses a product whose B is not contiguous along K.",
    ),
    Fault(
        "major_of_b_inverted",
        PROBLEM,
        '"MN" if self.b.row_major else "K"',
        '"K" if self.b.row_major else "MN"',
        "TMA reads B along the wrong mode; the launch refuses.",
    ),
    Fault(
        "alignment_in_elements",
        PROBLEM,
        "2 * (lead & -lead)",
        "(lead & -lead)",
        "Rows on lines of 128 bytes count as misaligned.",
    ),
    Fault(
        "stride_of_the_contiguous_mode",
        PROBLEM,
        "lead = self.stride[0] if self.row_major else self.stride[1]",
        "lead = self.stride[1] if self.row_major else self.stride[0]",
        "All rows count as misaligned, whatever they are.",
    ),
    Fault(
        "oldest_rung_before_hopper",
        REGISTRY,
        "for kernel in reversed(LADDER) if",
        "for kernel in LADDER if",
        "An A100 runs the slowest sm80 kernel.",
    ),
    Fault(
        "rungs_that_do_not_fit",
        REGISTRY,
        "if kernel.smem_bytes <= available",
        "if kernel.smem_bytes >= available",
        "A GPU of little shared memory gets a kernel that it cannot launch.",
    ),
    Fault(
        "hopper_code_on_blackwell",
        REGISTRY,
        "if capability == (9, 0) else None",
        "if capability >= (9, 0) else None",
        "A GPU that is no Hopper is given sm_90a code, which it cannot load.",
    ),
    Fault(
        "narrowest_alignment_first",
        REGISTRY,
        "*wider, narrowest = (self.requirements, *self.narrower)",
        "*wider, narrowest = (*self.narrower[::-1], self.requirements)",
        "Aligned tensors are copied by accesses of 4 bytes.",
    ),
    Fault(
        "slowest_plan_wins",
        TUNE,
        "return min(zip(times, running, strict=True)",
        "return max(zip(times, running, strict=True)",
        "tune=True stores the slowest plan.",
    ),
    Fault(
        "copies_of_the_most_blocks",
        "cutedsl_gemm/calls/copies.py",
        "min(TILES, key=blocks)",
        "max(TILES, key=blocks)",
        "A copy of tall or wide matrices takes four times as many blocks.",
    ),
    Fault(
        "alignment_of_b_from_a",
        MODEL,
        "alignment_index(2 * max(b))",
        "alignment_index(2 * max(a))",
        "A candidate that is slow where rows of B start off a line.",
    ),
    Fault(
        "power_of_long_launches_unknown",
        MODEL,
        "    if expected[first] >= LOG_LONG:\n",
        "    if False:\n",
        "12288³ runs at 0.97 of torch.mm, in a plan that draws more power.",
    ),
)
