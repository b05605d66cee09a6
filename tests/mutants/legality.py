"""Faults of checks: what the hardware cannot do, or no kernel may read or write, is let through."""

from __future__ import annotations

from .fault import Fault

CHECKS = "kernels/sm90/checks.py"
TENSORS = "cutedsl_gemm/inputs/tensors.py"
CALL = "cutedsl_gemm/calls/call.py"
ALIASING = "cutedsl_gemm/inputs/aliasing.py"

FAULTS = (
    Fault(
        "no_limit_of_shared_memory",
        CHECKS,
        "if plan.smem_bytes > SMEM_BYTES:",
        "if plan.smem_bytes > 2 * SMEM_BYTES:",
        "The launch fails: a block asks for more shared memory than there is.",
    ),
    Fault(
        "one_stage_is_enough",
        CHECKS,
        "if plan.stages < 2:",
        "if plan.stages < 1:",
        "The mainloop keeps one k-tile in flight and waits for the next: a deadlock.",
    ),
    Fault(
        "no_registers_for_addresses",
        CHECKS,
        "most = held - ADDRESS_REGISTERS",
        "most = held",
        "Accumulators spill to local memory.",
    ),
    Fault(
        "wgmma_of_512_columns",
        CHECKS,
        "if bn > 256:",
        "if bn > 512:",
        "The DSL fails on an instruction that does not exist, with a message of its own.",
    ),
    Fault(
        "checks_of_b_left_out",
        "kernels/sm90/plan.py",
        "        yield from self.b.problems()\n",
        "",
        "TMA or wgmma reads B by a layout that it does not have.",
    ),
    Fault(
        "slices_shorter_than_a_swizzle",
        "kernels/sm90/operand.py",
        "if lines % PERIOD or lines < PERIOD * operand.sharers:",
        "if lines % PERIOD:",
        "A block of a cluster loads no slice of its own, and nobody waits for its stages.",
    ),
    Fault(
        "box_of_512_rows",
        "kernels/plan/tma.py",
        "MAX_BOX_ROWS = 256",
        "MAX_BOX_ROWS = 512",
        "The driver refuses the tensor map at the launch.",
    ),
    Fault(
        "threads_of_two_blocks",
        "kernels/plan/checks.py",
        "    if threads > THREADS:",
        "    if threads > 2 * THREADS:",
        "The launch fails: a block has more threads than any may have.",
    ),
    Fault(
        "an_element_of_two_threads",
        "kernels/plan/tv_layout.py",
        "size(offsets) != rows * columns or not prove(Bijective(offsets))",
        "size(offsets) != rows * columns",
        "Two threads copy one element, and another is never copied.",
    ),
    Fault(
        "swizzles_that_differ_from_step_to_step",
        "kernels/sm80/plan.py",
        "        yield from checks.swizzle_problems(self)\n",
        "",
        "ldmatrix reads other addresses than the copies wrote.",
    ),
    Fault(
        "rows_may_overlap",
        TENSORS,
        "(outer_stride % alignment == 0 and outer_stride >= inner)",
        "(outer_stride % alignment == 0)",
        "TMA gets a stride that is shorter than a row, or 0.",
    ),
    Fault(
        "leading_stride_of_any_length",
        TENSORS,
        "(outer_stride % alignment == 0 and outer_stride >= inner)",
        "(outer_stride >= inner)",
        "The driver refuses the tensor map, or the kernel an argument.",
    ),
    Fault(
        "address_of_out_unchecked",
        TENSORS,
        '    for name, tensor in (("a", a), ("b", b), ("out", out)):\n        check_memory',
        '    for name, tensor in (("a", a), ("b", b)):\n        check_memory',
        "A call with a misaligned out fails with the kernel's own message, or none.",
    ),
    Fault(
        "dtypes_may_differ",
        "cutedsl_gemm/inputs/checks.py",
        '    check_pair("a", a, "b", b)\n',
        "",
        "The bits of b are multiplied as if they had the dtype of a.",
    ),
    Fault(
        "extents_beyond_32_bits",
        "cutedsl_gemm/inputs/problem.py",
        "MAX_EXTENT = 2**31 - 256",
        "MAX_EXTENT = 2**31 - 1",
        "Coordinates of the last tile overflow.",
    ),
    Fault(
        "out_may_overlap_b",
        CALL,
        "            start < b_start + b_bytes and b_start < end\n",
        "            False\n",
        "The kernel reads elements of b that it has overwritten.",
    ),
    Fault(
        "columns_may_overlap",
        ALIASING,
        "return gap >= other_bytes and gap + out_bytes <= pitch",
        "return gap >= other_bytes",
        "The last columns of out may be the first columns of an operand.",
    ),
    Fault(
        "a_negative_out",
        CALL,
        "or (any_address and out.is_neg()):",
        "or False:",
        "The result is stored with its sign inverted.",
    ),
    Fault(
        "workspace_beyond_32_bits",
        "cutedsl_gemm/select/candidate.py",
        ">= 1 << 31:",
        ">= 1 << 32:",
        "Offsets of partial sums overflow.",
    ),
    Fault(
        "box_slices_cut_the_swizzle",
        "kernels/sm90/operand.py",
        "periods = self.shape[1 - self.contiguous] // PERIOD",
        "periods = self.shape[1 - self.contiguous]",
        "A slice of a cluster's block begins inside a period of the swizzle.",
    ),
    Fault(
        "single_in_a_cluster",
        "kernels/sm90/checks.py",
        'if plan.cluster_size > 1 and plan.schedule == "single":',
        'if plan.cluster_size > 2 and plan.schedule == "single":',
        "A kernel that waits for no other block is launched in clusters.",
    ),
    Fault(
        "panels_beside_three_stages",
        "kernels/sm90/panels.py",
        "STAGED_K = 256",
        "STAGED_K = 192",
        "Tiles of 256×160 have three stages: up to 1.2 times as slow.",
    ),
    Fault(
        "panels_of_any_width",
        "kernels/sm90/panel_plan.py",
        "if columns not in widths:",
        "if columns > max(widths):",
        "A panel is narrower than what a swizzle or stmatrix takes.",
    ),
    Fault(
        "panels_in_flight",
        "kernels/sm90/panel_plan.py",
        "if self.c_stages > (most := self.panels * max(1, self.buffers_per_panel)):",
        "if self.c_stages > (most := self.panels * max(1, self.buffers_per_panel)) + 1:",
        "pending_stores counts stores that a tile does not have.",
    ),
    Fault(
        "a_panel_in_a_part_of_its_buffers",
        "kernels/sm90/panel_plan.py",
        "return () if found and self.c_stages % self.buffers_per_panel_for(found) else found",
        "return found",
        "A panel of an operand is loaded over that of another.",
    ),
    Fault(
        "gap_at_the_start",
        "kernels/sm90/checks.py",
        "if buffer.offset != 0 or cosize(buffer) != size(buffer):",
        "if cosize(buffer) != size(buffer) + buffer.offset:",
        "A buffer that begins at an offset is written beyond its end.",
    ),
    Fault(
        "wgmma_columns",
        "kernels/sm90/checks.py",
        "if needed > given:",
        "if needed > given + 16:",
        "ptxas refuses the wgmma (C7602).",
    ),
    Fault(
        "partition_beyond_the_tile",
        "kernels/plan/tv_layout.py",
        "if not fits or size(offsets)",
        "if size(offsets)",
        "A copy of another shape with as many elements is accepted.",
    ),
)
