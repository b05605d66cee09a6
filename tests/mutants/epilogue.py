"""Faults of epilogues: another element of an operand, another result, another place in memory."""

from __future__ import annotations

from .fault import Fault

ACTIVATIONS = "cutedsl_gemm/layers/activations.py"
DERIVATIVE = "kernels/epilogue/derivative.py"
EVALUATE = "kernels/epilogue/evaluate.py"
EXPRESSION = "kernels/epilogue/expression.py"
FUNCTIONS = "kernels/epilogue/functions.py"
LAYERS = "cutedsl_gemm/layers/functions.py"
TRACED = "kernels/epilogue/traced.py"
REGISTERS = "kernels/epilogue/registers.py"
TRACE = "kernels/epilogue/value.py"
OPERANDS = "kernels/device/epilogue.py"
PANELS = "kernels/sm90/epilogue.py"
PLAN = "kernels/sm90/panel_plan.py"
READS = "kernels/sm90/thread_reads.py"
THREADS = "kernels/sm90/thread_results.py"
EXECUTOR = "kernels/sm90/execute_epilogue.py"
SIGNATURE = "cutedsl_gemm/calls/signature.py"
RESULTS = "cutedsl_gemm/calls/results.py"
BOUND = "cutedsl_gemm/inputs/operands.py"

EXPRESSIONS = (
    Fault(
        "majors_not_turned",
        EXPRESSION,
        "row_major = self.row_major != self.is_matrix",
        "row_major = self.row_major",
        "A column-major out reads a matrix along the wrong mode.",
    ),
    Fault(
        "reduction_not_turned",
        EXPRESSION,
        "replace(self, over=OTHER[self.over])",
        "self",
        "A swapped plan adds up columns in place of rows.",
    ),
    Fault(
        "equal_results_are_one",
        DERIVATIVE,
        "results = (*epilogue.results, *further)",
        "results = tuple(dict.fromkeys((*epilogue.results, *kept)))",
        "Of two results that are one value, the second becomes what the derivative stores.",
    ),
    Fault(
        "bound_is_an_argument",
        EVALUATE,
        "elif bound := _bound(epilogue, instruction):",
        "elif bound := None:",
        "Under torch.func, half the gradient passes at the bound of a clamp.",
    ),
    Fault(
        "imports_do_not_change",
        TRACED,
        'own.add("__import__")',
        "pass",
        "An epilogue keeps what it imported when it was first traced.",
    ),
    Fault(
        "lerp_from_its_start",
        FUNCTIONS,
        "return from_input if is_near else from_end",
        "return from_input",
        "torch.lerp of weight 1 loses its end beside a large start.",
    ),
    Fault(
        "slope_at_the_bounds_of_hardtanh",
        FUNCTIONS,
        'return where(apply("ge", input, max_val), max_val, above)',
        'return apply("minimum", above, max_val)',
        "The gradient of relu6 passes at 6.",
    ),
    Fault(
        "result_cast_in_the_program",
        TRACE,
        "return Result(instruction.arguments[0], dtype=str(instruction.value))",
        "return Result(instruction.arguments[0])",
        "A result that was cast to fp32 is stored in the dtype of A.",
    ),
    Fault(
        "cast_of_a_value_left_out",
        REGISTERS,
        'if dtype == "float32":',
        'if dtype != "float16":',
        "A kernel computes on with a value that torch has rounded to bfloat16.",
    ),
    Fault(
        "maximum_loses_nan",
        REGISTERS,
        "cute.arch.fmax(x, Float32(y), nan=True)",
        "cute.arch.fmax(x, Float32(y))",
        "relu and clamp of a nan are numbers.",
    ),
)
DEVICE = (
    Fault(
        "vector_down_the_rows",
        OPERANDS,
        '("LMN" if operand.batched else "MN")',
        '("LNM" if operand.batched else "NM")',
        "A bias is added to rows.",
    ),
    Fault(
        "rows_not_clamped",
        OPERANDS,
        "cutlass.min(first[0] + m, rows - 1)",
        "(first[0] + m)",
        "The last tile reads behind the memory of a column vector.",
    ),
    Fault(
        "columns_not_clamped",
        OPERANDS,
        "cutlass.min(first[1] + n, last)",
        "(first[1] + n)",
        "The last tile reads behind the memory of a bias.",
    ),
    Fault(
        "last_vector_askew",
        OPERANDS,
        "last = (columns - 1) // width * width",
        "last = columns - 1",
        "At the end of an odd row a vector is loaded from an address that is not aligned.",
    ),
    Fault(
        "pairs_at_any_address",
        PLAN,
        "return 2 if neighbours and operand.alignment % 2 == 0 else 1",
        "return 2 if neighbours else 1",
        "A bias at an odd address is loaded in pairs: the launch fails.",
    ),
    Fault(
        "epilogue_of_the_callers_c",
        READS,
        "plan.planned_epilogue.operands",
        "plan.epilogue.operands",
        "A swapped plan reads a column vector once a tile, as if it ran along the rows of panels.",
    ),
    Fault(
        "gate_and_value_exchanged",
        PANELS,
        "values[None, None, None, panel, i] for i in (0, 1)",
        "values[None, None, None, panel, i] for i in (1, 0)",
        "SwiGLU is the gate times the silu of the value.",
    ),
    Fault(
        "operands_of_the_first_panel",
        READS,
        "return self.coordinates(panel * count, count)",
        "return self.coordinates(0, count)",
        "Each panel of C adds the bias of the first.",
    ),
    Fault(
        "rows_of_another_tile",
        READS,
        "tile = rows * m, ",
        "tile = m, ",
        "Every tile reads a matrix near its first rows.",
    ),
    Fault(
        "word_of_another_lane",
        READS,
        "column // width + lane)",
        "lane)",
        "All lanes receive the word of the first lane of a quad.",
    ),
    Fault(
        "second_result_is_the_first",
        PANELS,
        "results[plan.staged[staged]].load()",
        "results[plan.staged[0]].load()",
        "All results are the first one.",
    ),
    Fault(
        "second_result_in_the_firsts_place",
        PANELS,
        "self.panels.store(partitioned[staged], buffer",
        "self.panels.store(partitioned[0], buffer",
        "The second result is stored over the first.",
    ),
    Fault(
        "lanes_beyond_c_reduced",
        THREADS,
        "select_(present, values[i], identity)",
        "values[i]",
        "A sum over a ragged edge counts what is outside of C.",
    ),
    Fault(
        "parts_of_one_warp",
        THREADS,
        "return place[0] * (WARPGROUP // WARP) + thread // WARP",
        "return place[0] * (WARPGROUP // WARP)",
        "Four warps store their parts of a sum over rows over each other.",
    ),
)
CALLS = (
    Fault(
        "vectors_at_odd_steps",
        BOUND,
        "extents[-1] % wide == of_each % wide == 0",
        "extents[-1] % wide == 0",
        "Lanes load vectors of a bias that do not start at multiples of 16 bytes.",
    ),
    Fault(
        "scales_are_numbers",
        LAYERS,
        "return not isinstance(scale, Tensor) and scale in numbers",
        "return scale in numbers",
        "A learned beta of 0 never learns, and the host waits for the device.",
    ),
    Fault(
        "autocast_casts_everything",
        LAYERS,
        "each.to(dtype) if isinstance(each, Tensor) and each.dtype in AUTOCAST else each",
        "each.to(dtype) if isinstance(each, Tensor) else each",
        "Under autocast, linear of float64 gives bfloat16.",
    ),
    Fault(
        "silu_without_second_derivatives",
        ACTIVATIONS,
        "if torch.is_grad_enabled() and (g.requires_grad or x.requires_grad):",
        "if False:",
        "A gradient penalty through swiglu raises.",
    ),
    Fault(
        "address_of_an_operand_forgotten",
        SIGNATURE,
        "address % WIDEST_ALIGNMENT,",
        "0,",
        "A call with a matrix at an odd address takes the kernel of an aligned one.",
    ),
    Fault(
        "one_alignment_for_all_matrices",
        BOUND,
        "not any(step % wide for step in steps) and _aligned(matrix)",
        "not any(step % wide for step in steps)",
        "A matrix that begins at an odd address is loaded in vectors: the launch fails.",
    ),
    Fault(
        "parts_not_added",
        RESULTS,
        "if parts == 1 and",
        "if",
        "A reduction over several tiles is that of the first.",
    ),
    Fault(
        "turned_executor_operands",
        EXECUTOR,
        "matrix = matrix.mT if self.plan.swapped else matrix",
        "pass",
        "The executor of a swapped plan reads operands of the transposed C.",
    ),
)

FAULTS = EXPRESSIONS + DEVICE + CALLS
