"""A kernel computes an epilogue, by its PTX, as torch computes it."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cutedsl_gemm.kernels.compile import build
from cutedsl_gemm.kernels.epilogue.evaluate import evaluate
from cutedsl_gemm.kernels.epilogue.expression import EpilogueOperand
from cutedsl_gemm.kernels.epilogue.functions import apply
from cutedsl_gemm.kernels.epilogue.operations import LEAVES, OPERATIONS
from cutedsl_gemm.kernels.epilogue.trace import trace
from tests.kernels.epilogue.arrays import run
from tests.kernels.epilogue.elementwise import ElementwisePlan
from tests.kernels.epilogue.expressions import expressions

OTHER = EpilogueOperand("other", ("M", "N"))
ERROR = {"gelu_tanh": 7.5e-6, "tanh": 3e-6}  # absolute, of tanh.approx: see forms.py
SPECIAL = [np.inf, -np.inf, np.nan, 0.0, -0.0, 1.0, 2.0, -1.0, 0.4, 700.0, -700.0, 1e-30]


def every_operation(acc, other):
    """A result of each operation: its arguments are acc, other and predicates of them."""
    smaller = acc < other
    results = [acc.bfloat16() + other, acc.half() - other, acc / 3 + 0.0, 3 / acc + 0.0]
    for name, operation in OPERATIONS.items():
        if name in (*LEAVES, "cast"):
            continue
        arguments = (smaller, other > 0.5) if operation.predicates else (acc, other)
        if name == "where":
            arguments = smaller, acc, other
        results.append(apply(name, *arguments[: operation.arguments]) + 0.0)
    return tuple(results)


@pytest.mark.slow
def test_each_operation_computes_what_torch_computes():
    epilogue = trace(every_operation, (OTHER,))
    random = np.random.default_rng(0)
    acc, other = (
        np.r_[random.normal(0, 2, 5000), each].astype(np.float32)
        for each in (np.repeat(SPECIAL, len(SPECIAL)), np.tile(SPECIAL, len(SPECIAL)))
    )
    with np.errstate(all="ignore"):
        made = run(build.ptx(ElementwisePlan(epilogue)), (acc, other))
    expected = evaluate(epilogue, (torch.from_numpy(acc).double(),), (torch.from_numpy(other),))
    for result, value, wanted in zip(epilogue.results, made, expected, strict=True):
        operation = epilogue.program[epilogue.program[result.value].arguments[0]]
        if operation.operation == "gelu":
            wanted = torch.where(torch.from_numpy(acc) == -torch.inf, 0.0, wanted)
        torch.testing.assert_close(
            torch.from_numpy(value.copy()),
            wanted.float(),
            rtol=1e-5,
            atol=ERROR.get(operation.operation, 1e-6),
            equal_nan=True,
            msg=lambda text, operation=operation: f"{operation}: {text}",
        )


@pytest.mark.deep
@pytest.mark.slow
@settings(max_examples=10)
@given(st.sampled_from((1, 2)).flatmap(lambda n: expressions(smooth=True, accumulators=n)))
def test_a_random_epilogue_computes_what_torch_computes(expression):
    epilogue, random = expression.epilogue, torch.Generator().manual_seed(0)
    count = epilogue.accumulators + len(epilogue.operands)
    inputs = [torch.randn(100, generator=random) for _ in range(count)]
    acc, operands = inputs[: epilogue.accumulators], inputs[epilogue.accumulators :]
    with np.errstate(all="ignore"):
        made = run(build.ptx(ElementwisePlan(epilogue)), [each.numpy() for each in inputs])
    expected = evaluate(epilogue, [each.double() for each in acc], operands)
    for value, wanted in zip(made, expected, strict=True):
        value = torch.from_numpy(value.copy())
        torch.testing.assert_close(value, wanted.float(), rtol=2e-5, atol=2e-5)
