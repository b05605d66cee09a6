"""What sm90 plans make of their accumulators: the executor against float64."""

import struct
from collections import Counter
from dataclasses import replace
from itertools import product

import pytest
import torch
from torch.nn import functional as F

from cutedsl_gemm.kernels.compile import build
from cutedsl_gemm.kernels.epilogue.evaluate import REDUCTIONS
from cutedsl_gemm.kernels.epilogue.expression import PLAIN, EpilogueOperand
from cutedsl_gemm.kernels.epilogue.trace import trace
from cutedsl_gemm.kernels.executor import empty_tensors
from cutedsl_gemm.kernels.plan.checks import PlanError
from cutedsl_gemm.kernels.sm90.resources import ADDRESS_REGISTERS, PART_REGISTERS
from cutedsl_gemm.kernels.sm90.rungs import cooperative, pingpong, single, split
from layouts import cosize, crd2idx, size
from tests.kernels.ladder import accesses
from tests.kernels.ptx.arguments import Argument, matrix, pointer
from tests.kernels.ptx.machine import Launch
from tests.kernels.ptx.reader import read

BIAS = EpilogueOperand("bias", ("N",), "bfloat16")
COLUMN = EpilogueOperand("column", ("M",))
RESIDUAL = EpilogueOperand("residual", ("M", "N"), "bfloat16", alignment=8)
COLUMN_MAJOR = EpilogueOperand("residual", ("M", "N"), "float16", row_major=False)
SCALE = EpilogueOperand("scale", dtype="float32")
NUMBER = EpilogueOperand("number", by_value=True)

EPILOGUES = {
    "bias and gelu": (lambda acc, bias: F.gelu(acc + bias), [BIAS]),
    "scales": (
        lambda acc, column, scale, number: acc * column * scale + number,
        [COLUMN, SCALE, NUMBER],
    ),
    "residual": (lambda acc, bias, residual: F.silu(acc + bias) + residual, [BIAS, RESIDUAL]),
    "results of a residual": (
        lambda acc, residual: (acc + residual, (acc * residual).sum(dim=1), residual - acc),
        [RESIDUAL],
    ),
    "column-major residual": (lambda acc, residual: acc - residual, [COLUMN_MAJOR]),
    "fp32": (lambda acc, bias: ((acc + bias).float(), acc), [BIAS]),
    "reductions": (
        lambda acc, bias: (acc + bias, (acc * acc).sum(dim=1), acc.amax(dim=0), acc.amin(dim=1)),
        [BIAS],
    ),
    "two results": (lambda acc, bias: (F.relu(acc + bias), acc + bias), [BIAS]),
}
PLANS = {
    "single": (single, (64, 64, 64), {}),
    "pingpong": (pingpong, (128, 96, 64), {}),
    "swapped": (pingpong, (128, 80, 64), {"swapped": True}),
    "cooperative": (cooperative, (256, 128, 64), {"cluster": (2, 1)}),
    "threads": (pingpong, (64, 96, 64), {"c_alignment": 1}),
    "split": (split, (128, 64, 64), {"splits": 3}),
    "split, swapped": (split, (128, 64, 64), {"splits": 2, "swapped": True}),
}


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("name", EPILOGUES)
def test_an_epilogue_is_what_torch_computes(name, plan):
    function, operands = EPILOGUES[name]
    maker, tile, options = PLANS[plan]
    epilogue = trace(function, operands)
    made = maker(tile, epilogue=epilogue, **options)
    torch.manual_seed(0)
    m, n, k = 200, 152 if made.c_alignment == 8 else 147, 200
    tensors = empty_tensors(made, m, n, k)
    for each in tensors:
        each.normal_()
    count = sum(not operand.by_value for operand in operands)
    a, b, given, out = tensors[0], tensors[1], [*tensors[2 : 2 + count]], tensors[2 + count :]
    values = [0.5 if operand.by_value else given.pop(0) for operand in operands]
    made.execute(a, b, tuple(out), operands=tuple(values))
    named = {
        operand.name: value[:, None] if operand.modes == ("M",) else value
        for operand, value in zip(operands, values, strict=True)
    }
    wanted = function(a.double() @ b.double(), **named)
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    for found, each, result in zip(out, wanted, epilogue.results, strict=True):
        if result.reduction is not None:  # its parts
            found = REDUCTIONS[result.reduction](found, 0)
        torch.testing.assert_close(found.double(), each.double(), rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("plan", PLANS)
def test_explain_has_the_expression_its_cost_and_where_operands_come_from(plan):
    maker, tile, options = PLANS[plan]
    epilogue = trace(lambda acc, bias, residual: F.gelu(acc + bias) + residual, [BIAS, RESIDUAL])
    made = maker(tile, epilogue=epilogue, **options)
    plain, text = replace(made, epilogue=PLAIN).explain(), made.explain()
    assert text.startswith(plain)
    subjects = [line[:12].strip() for line in text.removeprefix(plain).splitlines()]
    loaded = ["bias", "residual"] if maker is not split else []
    assert [each for each in subjects if each] == ["C", "bias", "residual", "cost", *loaded]
    assert "gelu(acc + bias) + residual" in text
    assert "13 instructions an output, 1 of them MUFU" in text


def test_explain_says_how_results_are_stored():
    text = cooperative((256, 128, 64), epilogue=trace(*EPILOGUES["reductions"])).explain()
    assert "C1           stored in parts: one a tile" in text
    assert "C2           stored in parts: 8 a tile, one a warp" in text
    whole = pingpong((128, 96, 64), epilogue=trace(*EPILOGUES["fp32"])).explain()
    assert "C0           stored by threads from registers: two neighbours at a time" in whole


@pytest.mark.slow
def test_a_kernel_without_a_result_in_panels_compiles():
    plan = pingpong((64, 32, 64), epilogue=trace(lambda acc: (acc.float(), acc.sum(dim=1)), []))
    assert not plan.staged
    report = build.inspect(plan)
    assert not any(name.startswith("STSM") for name in report.instructions)


def two_matrices(tile, maker, **options):
    """A plan whose threads read two matrices, and store two results."""
    residual = replace(RESIDUAL, alignment=4)  # TMA needs rows of whole 16 bytes
    operands = [residual, replace(residual, name="other")]
    epilogue = trace(lambda acc, residual, other: (acc * residual, acc * other), operands)
    return maker(tile, epilogue=epilogue, c_stages=1, **options)


READING = [
    two_matrices((128, 192, 64), pingpong),
    two_matrices((128, 184, 64), pingpong, swapped=True),
    two_matrices((64, 64, 64), pingpong),
    two_matrices((128, 128, 64), pingpong),
    two_matrices((256, 128, 64), cooperative),
]


@pytest.mark.parametrize("plan", READING, ids=lambda plan: plan.name)
def test_parts_are_each_value_of_a_tile_once_panel_after_panel(plan):
    shape = plan.fragment.shape[:4]
    starts = [crd2idx((0, *part), shape) for part in plan.stmatrix_tiles]
    assert sorted(starts) == [*range(0, size(shape), shape[0])]
    panels = [panel for *_, panel in plan.stmatrix_tiles]
    assert panels == sorted(panels)


@pytest.mark.parametrize("plan", READING, ids=lambda plan: plan.name)
def test_what_is_read_ahead_fits_in_the_registers_that_the_accumulator_leaves(plan):
    held = plan.fragment.shape[0]
    width = 2 if not plan.swapped else 1  # a swapped plan loads one element at a time
    of_panel = len(plan.stmatrix_tiles) // plan.panels
    for part, begun in enumerate(plan.read_ahead):
        matrices = 2 * (begun - part) * held // width
        results = part % of_panel * held  # two, in pairs of 16 bits
        used = plan.registers - part * held + matrices + results
        free = plan.consumer_registers - ADDRESS_REGISTERS - PART_REGISTERS
        earlier = plan.read_ahead[part - 1] if part else 0
        assert begun == part + 1 or begun == earlier or used <= free
    assert plan.read_ahead[-1] == len(plan.stmatrix_tiles)


def test_a_split_of_k_stores_a_whole_result():
    with pytest.raises(PlanError, match="its epilogue has only reductions; blocks that split K"):
        split(epilogue=trace(lambda acc: acc.sum(dim=1)))


def whole_and_reduced(acc):
    return acc, acc.sum(dim=1), acc.amax(dim=0)


@pytest.mark.deep
@pytest.mark.slow
@pytest.mark.parametrize(
    ("plan", "m", "n"),
    [
        (split((64, 32, 64), splits=2, epilogue=trace(whole_and_reduced)), 70, 56),
        (
            split((128, 24, 64), swapped=True, c_alignment=1, epilogue=trace(whole_and_reduced)),
            70,
            53,
        ),
    ],
    ids=["", "swapped"],
)
def test_the_second_kernel_of_a_split_stores_each_part_of_a_reduction_once(plan, m, n):
    _, kernel = read(build.ptx(plan))
    down, across = (plan.reduction_parts(each, m, n) for each in plan.epilogue.results[1:])
    elements = plan.workspace(m, n) // plan.splits
    tiles = elements // cosize(plan.partial_sums)
    launch = Launch(
        kernel,
        (
            Argument("sums", struct.pack("<Qii", pointer(0), tiles, elements)),
            matrix("gC", 1, m, n, n),
            matrix("rows", 2, down, m, m),
            matrix("columns", 3, across, n, n),
        ),
    )
    tensors = {"gC": (2, n), "rows": (4, m), "columns": (4, n)}
    blocks = tiles * plan.c_tile[0] // plan.reduction_rows
    stored = Counter(
        access
        for block, thread in product(range(blocks), range(kernel.threads))
        for access in accesses(launch, tensors, block, blocks, thread)
    )
    extents = {"gC": (m, n), "rows": (down, m), "columns": (across, n)}
    assert stored == Counter(
        (True, name, *place) for name in extents for place in product(*map(range, extents[name]))
    )
