"""What an epilogue cannot follow is refused: the line, the operation, what to do."""

import math
import re

import pytest
import torch
import torch.nn.functional as F

from cutedsl_gemm.kernels.epilogue.expression import (
    Epilogue,
    EpilogueError,
    EpilogueOperand,
    Instruction,
)
from cutedsl_gemm.kernels.epilogue.expression import Result as R
from cutedsl_gemm.kernels.epilogue.text import from_text
from cutedsl_gemm.kernels.epilogue.trace import trace

TENSOR = torch.ones(3, 4)
REFUSED = {  # an epilogue's source: what its message says
    "torch.softmax(acc, 1)": "follow torch.softmax; .* apply it to the result of gemm",
    "acc.softmax(1)": r"follow [.]softmax",
    "F.layer_norm(acc, (4,))": "follow torch.nn.functional.layer_norm",
    "acc @ acc": "follow @; an epilogue follows one product",
    "acc // 2": "follow //",
    "acc[0]": r"follow index \[ \]; a tensor has its shape before it is passed",
    "acc.mT": "follow .mT; a tensor has its shape",
    "acc.max(1)": "follow .max; write amax",
    "acc.mean(1)": "follow .mean; return sums",
    "acc.exp_()": r"follow .exp_; it changes a tensor; write y = x.exp",
    "F.relu(acc, inplace=True)": "takes no inplace=True",
    "torch.exp(acc, out=TENSOR)": "other arguments of torch.exp: .*'out'",
    "acc + TENSOR": r"add of a tensor of shape \(3, 4\); pass it to gemm by name",
    "TENSOR * acc": "mul of a tensor",
    "torch.maximum(TENSOR, acc)": "maximum of a tensor",
    "acc if acc > 0 else -acc": "a decision of Python's .*; write torch.where",
    "max(acc, 0)": "a decision of Python's",
    "0 < acc < 1": r"\(a < b\) & \(b < c\)",
    "math.exp(acc)": r"follow float\(\)",
    "[x for x in acc]": "follow a loop over a value",
    "acc + math.nan": "a constant that is not a number",
    "acc + 1j": "add of complex",
    "acc + 'a'": "add of str",
    "acc & acc": "where a comparison must stand; write x != 0",
    "acc * ((acc > 0) + (acc > 1))": r"add of comparisons alone.*; write a \| b",  # torch's or
    "acc + ((acc > 0) + True)": "add of comparisons alone",
    "acc + ((acc > 0) * (acc < 2) + torch.where(acc > 1, acc < 3, True))": "add of comparisons",
    "acc - -(acc > 0)": "neg of comparisons alone",
    "torch.where(acc, acc, 0.0)": "where a comparison must stand",
    "acc ** 1.5": r"takes an integer from 1 to 64.* write exp\(1.5 [*] log",
    "acc ** math.inf": "takes an integer from 1 to 64.* here inf",
    "acc ** math.nan": "takes an integer from 1 to 64.* here nan",
    "2 ** acc": "takes a number as exponent",
    "acc.clamp()": "needs min, or max",
    "F.gelu(acc, approximate='erf')": "takes approximate='none' or 'tanh'",
    "F.softplus(acc, threshold=1)": "takes threshold=20 or more",
    "acc.div(2, rounding_mode='floor')": "takes no rounding_mode",
    "acc.to(torch.int8)": "takes torch.float32, bfloat16 or float16",
    "acc.to('cuda')": "takes torch.float32, bfloat16 or float16",
    "acc.sum()": r"reduces over dim=-2 \(M\) or dim=-1 \(N\) of C, here dim=None",
    "acc.sum(dim=(0, 1))": "reduces over dim=-2",
    "acc.sum(1, keepdim=True)": "no keepdim",
    "acc.sum(1) + 1": "of a reduction, which is final; return the reduction",
    "acc.sum(1).sum(0)": "of a reduction",
    "acc.half().sum(1).half()": "cast of a reduction",
    "acc.to((acc > 0).dtype)": "takes torch.float32, bfloat16 or float16, here torch.bool",
    "3.0": "returns 3.0; it must return what it computes",
    "()": "returns no result",
    "(acc, None)": "returns None",
    "F.dropout(acc)": "pass them by name",
    "acc.shape": "follow .shape",
}


@pytest.mark.parametrize("source", REFUSED)
def test_it_is_refused_with_a_reason(source):
    space = {"torch": torch, "F": F, "TENSOR": TENSOR, "math": math}
    with pytest.raises(EpilogueError, match=REFUSED[source]):
        trace(eval(f"lambda acc: {source}", space))


def test_the_message_begins_with_the_line_of_the_function():
    def helper(x):
        return x.cumsum(0)  # this line

    with pytest.raises(EpilogueError, match=r"test_refusals.py:\d+: return x.cumsum.*this line"):
        trace(lambda acc: F.gelu(helper(acc)) + 1)

    def in_place(acc):
        acc += 1
        return acc

    with pytest.raises(EpilogueError, match=r"acc [+]= 1: .*write x = x [+] y"):
        trace(in_place)


ROW, ALPHA = EpilogueOperand("row", ("N",)), EpilogueOperand("alpha", by_value=True)


@pytest.mark.parametrize(
    ("function", "operands", "accumulators", "message"),
    [
        (lambda acc: acc, (ROW,), 1, "takes .*acc.*the operands by name .row.*unexpected"),
        (lambda acc, bias: acc, (), 1, "missing a required argument: 'bias'"),
        (lambda acc: acc, (), 2, "2 accumulators"),
        (lambda acc, row: acc, (ROW,), 1, "no result depends on row; leave it out"),
        (lambda gate, up: gate, (), 2, "no result depends on accumulator 1"),
        (lambda acc, row: (acc, row), (ROW,), 1, r"a result of shape \(N\), where C is \(M, N\)"),
        (lambda acc, row: (acc, row.sum(1)), (ROW,), 1, "not of the shape of C"),
        (lambda acc, alpha: (acc, alpha), (ALPHA,), 1, r"a result of shape \(\)"),
    ],
)
def test_operands_and_results_are_those_of_the_function(function, operands, accumulators, message):
    with pytest.raises(EpilogueError, match=message):
        trace(function, operands, accumulators)


class Sign(torch.autograd.Function):
    """It has the gradient of its argument."""

    @staticmethod
    def forward(ctx, x):
        return torch.where(x > 0, 1.0, -1.0)

    @staticmethod
    def backward(ctx, grad):
        return grad


class Enabling(Sign):
    @staticmethod
    def forward(ctx, x):
        with torch.enable_grad():
            return x * 2


@pytest.mark.parametrize("function", [Sign, Enabling])
def test_a_function_of_autograd_is_refused(function):
    """Its forward would be traced, and its backward be that of torch.where: 0."""
    with pytest.raises(EpilogueError, match=r"torch.autograd.Function.* write .*detach\(\)"):
        trace(lambda acc: function.apply(acc) * 2)


def test_a_value_of_another_epilogue_is_refused():
    kept = []
    trace(lambda acc: kept.append(acc) or acc)
    with pytest.raises(EpilogueError, match="of another epilogue"):
        trace(lambda acc: acc + kept[0])


I, ACC = Instruction, Instruction("acc", value=0)
WRONG = {
    "accumulators is 3": Epilogue(accumulators=3),
    "a name of its own": Epilogue(operands=(ROW, ROW)),
    "it must have no modes": Epilogue(operands=(EpilogueOperand("x", ("N",), by_value=True),)),
    "operand x is int8": Epilogue(operands=(EpilogueOperand("x", ("N",), "int8"),)),
    "has alignment 0": Epilogue(operands=(EpilogueOperand("x", ("M", "N"), alignment=0),)),
    "no such operation": Epilogue((ACC, I("sin", (0,)))),
    "it must have 2": Epilogue((ACC, I("add", (0,)))),
    "numbers of earlier instructions": Epilogue((ACC, I("neg", (1,)))),
    "it must be a predicate": Epilogue((ACC, I("where", (0, 0, 0)))),
    "it must be a number": Epilogue((ACC, I("lt", (0, 0)), I("neg", (1,)))),
    "one of 1, from 0": Epilogue((I("acc", value=1),)),
    "one of 0, from 0": Epilogue((I("operand", value=0),)),
    "its value is nan": Epilogue((ACC, I("constant", value=math.nan))),
    "one of float32": Epilogue((ACC, I("cast", (0,), "int8"))),
    "it must be None": Epilogue((ACC, I("neg", (0,), 3))),
    "there is no result": Epilogue(results=()),
    "the number of one of 1 instructions": Epilogue(results=(R(1),)),
    "a predicate; it must be a number": Epilogue((ACC, I("lt", (0, 0))), results=(R(1),)),
    "None or one of float32": Epilogue(results=(R(0, "int8"),)),
    "without a reduction": Epilogue(results=(R(0, over="M"),)),
    "its reduction is": Epilogue(results=(R(0, None, "mean", "M"),)),
    "over M or N": Epilogue(results=(R(0, None, "sum"),)),
    "a reduction is fp32": Epilogue(results=(R(0, "float16", "sum", "M"),)),
}


@pytest.mark.parametrize("message", WRONG)
def test_a_program_that_is_none_is_refused(message):
    with pytest.raises(EpilogueError, match=re.escape(message)):
        WRONG[message].check()


@pytest.mark.parametrize("text", ["", "[]", "3", "[[[1]], [], [], 1]", '[[["acc"]], [], [], 1]'])
def test_a_text_that_is_none_is_refused(text):
    with pytest.raises(EpilogueError, match="is not the text of an epilogue"):
        from_text(text)
