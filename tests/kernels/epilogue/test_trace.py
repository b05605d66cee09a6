"""A traced epilogue computes what its function computes on tensors, or the trace says why not."""

import re
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from cutedsl_gemm.kernels.epilogue.evaluate import evaluate, finish
from cutedsl_gemm.kernels.epilogue.expression import EpilogueOperand
from cutedsl_gemm.kernels.epilogue.functions import FLOATS, FUNCTIONS, METHODS, apply
from cutedsl_gemm.kernels.epilogue.operations import IDENTITIES, OPERATIONS
from cutedsl_gemm.kernels.epilogue.text import from_text, to_text
from cutedsl_gemm.kernels.epilogue.trace import trace
from tests.kernels.epilogue.expressions import expressions

M, N = 5, 7
ROW, COLUMN, MATRIX = (
    EpilogueOperand("row", ("N",)),
    EpilogueOperand("column", ("M",)),
    EpilogueOperand("r", ("M", "N")),
)


def accumulators(count, dtype=torch.float32):
    random = torch.Generator().manual_seed(1)
    return [torch.randn(M, N, generator=random, dtype=dtype) for _ in range(count)]


def printed(epilogue):
    """The epilogue that the print of one says: its lines as Python."""
    names = ["acc"] if epilogue.accumulators == 1 else ["acc0", "acc1"]
    names += [operand.name for operand in epilogue.operands]
    lines = epilogue.listing()[: -len(epilogue.operands) or None]
    code = [f"def function({', '.join(names)}):"]
    code += [f"    {name} = {re.split(' over |, float|, bfloat', text)[0]}" for name, text in lines]
    results = [name for name, _ in lines if name.startswith("C")]
    space = {name: partial(apply, name) for name in OPERATIONS}
    space |= dict.fromkeys(IDENTITIES, lambda x: x) | {name: name for name in FLOATS}
    exec("\n".join([*code, f"    return {', '.join(results)}"]), space)
    return trace(space["function"], epilogue.operands, epilogue.accumulators)


@given(st.sampled_from((1, 2)).flatmap(lambda n: expressions(accumulators=n)))
def test_a_trace_computes_what_its_function_computes(expression):
    acc, operands = accumulators(expression.accumulators), expression.tensors(M, N)
    epilogue = expression.epilogue
    made = evaluate(epilogue, acc, tuple(operands.values()))
    expected = expression.torch(acc, operands)
    for result, value, wanted in zip(epilogue.results, made, expected, strict=True):
        stored = finish(result, value, wanted.dtype)
        torch.testing.assert_close(stored, wanted, rtol=1e-5, atol=1e-5)
    for value, read in zip(
        made, evaluate(printed(epilogue), acc, (*operands.values(),)), strict=True
    ):
        torch.testing.assert_close(read, value, rtol=0, atol=0)
    assert from_text(to_text(epilogue)) == epilogue
    assert epilogue.check() is epilogue
    assert str(epilogue.transposed.transposed) == str(epilogue)


# x and row are tensors, of M × N and of N positive numbers.
ARITHMETIC = """
torch.add(x, 2, alpha=3)  x.sub(2, alpha=3)
torch.add(x, row)  torch.add(x, row, alpha=2)  torch.sub(x, row)  torch.sub(x, row, alpha=3)
torch.rsub(x, row)  torch.mul(x, row)  torch.div(x, row)  torch.subtract(x, row)
torch.multiply(x, row)  torch.divide(x, row)  torch.true_divide(x, row)  x.add(row)  x.mul(2)
x + row  1 - x  x - 1  2 * x  x / row  1 / row + x  -x  +x  abs(x)  x ** 2  x ** 3  row ** -2 + x
row ** 0.5 + x  row ** -0.5 + x  torch.pow(x, 5)  torch.square(x)  torch.reciprocal(row) + x
torch.neg(x)  torch.negative(x)  torch.abs(x)  torch.absolute(x)  x.abs()
torch.addcmul(x, row, x, value=2)  torch.addcdiv(x, x, row, value=0.5)  torch.lerp(x, row, 0.25)
torch.lerp(x, row, 0.75)  torch.lerp(x, row, x)  torch.maximum(x, row)  torch.minimum(x, row)
x.clamp(-0.5, 0.5)
torch.clamp(x, min=0.1)  torch.clamp(x, max=row)  torch.clip(x, -1, 1)  x.clip(0)
"""
FUNCTION = """
torch.exp(x)  torch.exp2(x)  torch.log(row) + x  torch.log2(row) + x  torch.sqrt(row) + x
torch.rsqrt(row) + x  torch.tanh(x)  torch.sigmoid(x)  torch.special.expit(x)  torch.erf(x)
torch.special.erf(x)  torch.special.ndtr(x)  torch.relu(x)  F.relu(x)  x.relu()  F.relu6(4 * x)
F.silu(x)  F.gelu(x)  F.gelu(x, approximate="tanh")  F.softplus(x)  F.softplus(9 * x, beta=2)
F.leaky_relu(x)  F.leaky_relu(x, 0.2)  F.elu(x)  F.elu(x, 0.5)  F.celu(x, 0.7)
F.selu(x)  torch.expm1(x)  F.threshold(x, 0.1, -2.0)  F.hardtanh(x)
F.hardtanh(x, -0.5, 0.5)  F.hardsigmoid(3 * x)  F.hardswish(3 * x)  F.logsigmoid(x)  F.mish(x)
x.detach() + row  torch.detach(x) * x  (x > row).detach() * x
x.sigmoid().tanh().exp()  F.sigmoid(x)  F.tanh(x)  torch.nn.GELU()(x)  torch.nn.SiLU()(x)
"""
PREDICATE = """
torch.where(x < row, x, row)  torch.where(x > 0, 1.0, x)  x.where(x > row, row)  (x <= row) * x
torch.lt(x, row) + x  torch.le(x, row) + x  torch.gt(x, row) + x  torch.ge(x, row) + x
torch.eq(x, row) + x  torch.ne(x, row) + x  torch.less(x, 1) + x  torch.less_equal(x, 1) + x
torch.greater(x, 1) + x  torch.greater_equal(x, 1) + x  torch.not_equal(x, 1) + x
(x == row) + x  (x != row) + x  x.masked_fill(x > row, 2.0)  torch.masked_fill(x, x < 0, 3.0)
((x < row) & (x > 0)) * x  ((x < row) | (x > 1)) * x  ((x < row) ^ (x > 0)) * x  ~(x < row) * x
torch.logical_and(x < row, x > 0) * x  torch.logical_or(x < row, x > 1) * x
torch.logical_xor(x < row, x > 0) * x  torch.logical_not(x < row) * x
torch.bitwise_and(x < row, x > 0) * x  torch.bitwise_or(x < row, x > 1) * x
torch.bitwise_xor(x < row, x > 0) * x  torch.bitwise_not(x < row) * x
"""
STORED = """
x.bfloat16()  x.half()  x.float()  x.to(torch.float16)  x.to(dtype=torch.bfloat16)
(x + row).type_as(row)  (x + row).to(row.dtype)  x.type(torch.half)
x.bfloat16().float() * row  x.half().bfloat16()  x.half().detach()
x.sum(1)  x.sum(dim=-1)  torch.sum(x, 0)  torch.sum(x, dim=(0,), dtype=torch.float32)  x.amax(1)
torch.amax(x, dim=0)  torch.amin(x, -2)  (x * x + row).sum(1)
"""
SOURCES = [
    source
    for table in (ARITHMETIC, FUNCTION, PREDICATE, STORED)
    for source in re.split(r"\s{2,}|\n", table.strip())
]


@pytest.mark.parametrize("source", SOURCES)
def test_it_is_what_torch_computes(source):
    """Each value as torch has it, and stored in torch's dtype where the function rounds it."""
    parameters = "x, row" if "row" in source else "x"
    function = eval(f"lambda {parameters}: {source}", {"torch": torch, "F": F})
    operands = {"row": torch.rand(N) + 0.5} if "row" in source else {}
    (x,) = accumulators(1)
    epilogue, wanted = trace(function, (ROW,) * len(operands)), function(x, **operands)
    (value,) = evaluate(epilogue, (x,), tuple(operands.values()))
    (result,) = epilogue.results
    if source in STORED:
        assert result.reduction or f"torch.{result.dtype}" in (str(wanted.dtype), "torch.None")
    stored = finish(result, value, wanted.dtype)
    torch.testing.assert_close(stored, wanted, rtol=1e-6, atol=1e-6)


def test_threshold_keeps_nan():
    epilogue = trace(lambda x: F.threshold(x, 0.1, 20.0))
    (value,) = evaluate(epilogue, (torch.tensor([[float("nan"), 0.0]]),))
    assert str(value.tolist()) == "[[nan, 20.0]]"


def test_lerp_of_weight_1_is_its_end():
    end, far = torch.tensor([[0.001]]), torch.tensor([[1e30]])
    of_number = trace(lambda x, end: torch.lerp(x, end, 1.0), [EpilogueOperand("end", ("N",))])
    operands = [EpilogueOperand("end", ("N",)), EpilogueOperand("weight", ())]
    of_operand = trace(lambda x, end, weight: torch.lerp(x, end, weight), operands)
    assert evaluate(of_number, (far,), (end,)) == evaluate(of_operand, (far,), (end, 1.0)) == (end,)


def test_no_function_is_left_out_of_the_table():
    named = {*re.findall(r"[.](\w+)[(]", " ".join(SOURCES))}
    own = {"log_sigmoid", "_threshold"}  # of F.logsigmoid and F.threshold
    assert {*FUNCTIONS, *METHODS} - own <= named | {"silu", "gelu"}
    assert all(hasattr(torch.Tensor, name) for name in METHODS)


TYPED = {  # modes and dtype of operands
    "row": (("N",), "bfloat16"),
    "r": (("M", "N"), "float16"),
    "scalar": ((), "float32"),
}


@pytest.mark.parametrize(
    "source",
    [
        *("row", "row * scalar", "scalar * 2", "row + r", "row + acc", "row + row"),
        *("(acc > 0) * row", "torch.where(row > 0, row, 0.0)", "row.half() + r"),
        *("(acc > 0) * (row > 0)", "torch.where(acc > 0, row > 0, r > 0)", "(acc > 0) * 2.0"),
    ],
)
def test_a_value_has_the_dtype_that_torch_gives_it(source):
    """So that x.to(y.dtype) rounds as it does on tensors."""
    dtype = eval(f"lambda acc, row, r, scalar: ({source}).dtype", {"torch": torch})
    shapes, found = {(): (), ("N",): (N,), ("M", "N"): (M, N)}, []

    def record(acc, **operands):
        found.append(dtype(acc, **operands))
        return sum(operands.values(), acc)

    trace(record, [EpilogueOperand(name, *each) for name, each in TYPED.items()])
    record(
        torch.ones(M, N),
        **{
            name: torch.ones(shapes[modes], dtype=getattr(torch, dtype))
            for name, (modes, dtype) in TYPED.items()
        },
    )
    assert found[0] == found[1]
