"""Epilogues, the plans that compute them, and what they should be: on a GPU, or by the executor."""

import contextlib
import functools
import itertools
from dataclasses import replace
from unittest import mock

import torch
from hypothesis import Phase, given, settings
from torch.nn import functional as F

from cutedsl_gemm.calls import call, fused
from cutedsl_gemm.kernels.compile import build
from cutedsl_gemm.kernels.epilogue.evaluate import REDUCTIONS
from cutedsl_gemm.kernels.epilogue.expression import EpilogueOperand
from cutedsl_gemm.kernels.epilogue.trace import trace
from cutedsl_gemm.kernels.executor import empty_tensors
from cutedsl_gemm.kernels.plan.checks import PlanError
from cutedsl_gemm.kernels.sm90.rungs import cooperative, pingpong, single, split
from tests.kernels.epilogue.expressions import expressions

# Of integers they give integers, which a product in fp32 has without rounding.
EXACT = {
    "vectors": (
        lambda acc, row, column, scalar, number: (acc + row * 2 - column) * scalar + number,
        [
            EpilogueOperand("row", ("N",), "bfloat16"),
            EpilogueOperand("column", ("M",)),
            EpilogueOperand("scalar", dtype="float16"),
            EpilogueOperand("number", by_value=True),
        ],
    ),
    "a pair of a row": (
        lambda acc, row, column: F.relu(acc + row) * column,
        [
            EpilogueOperand("row", ("N",), "float32", alignment=2),
            EpilogueOperand("column", ("M",), "bfloat16", alignment=8),
        ],
    ),
    "bias and matrix": (
        lambda acc, bias, c: F.relu(acc + bias) + c,
        [
            EpilogueOperand("bias", ("N",), "bfloat16"),
            EpilogueOperand("c", ("M", "N"), "bfloat16", alignment=8),
        ],
    ),
    "matrices": (
        lambda acc, rows, columns, wide: acc - rows * 2 + columns * wide,
        [
            EpilogueOperand("rows", ("M", "N"), "bfloat16"),
            EpilogueOperand("columns", ("M", "N"), "float16", row_major=False),
            EpilogueOperand("wide", ("M", "N"), "float32", alignment=4),
        ],
    ),
    "choices": (
        lambda acc, column: torch.where((acc > column) | (acc == 0), acc.clamp(-20, 30), -abs(acc)),
        [EpilogueOperand("column", ("M",), "float16")],
    ),
    "results": (
        lambda acc, row, r: (
            torch.maximum(acc, row),
            (acc * 2).half(),
            (acc - r).float(),
            acc,
            (acc + r).bfloat16(),
        ),
        [
            EpilogueOperand("row", ("N",), "bfloat16"),
            EpilogueOperand("r", ("M", "N"), "bfloat16", alignment=8),
        ],
    ),
    "reductions": (
        lambda acc, row: (
            (acc * acc).sum(dim=1),
            acc + row,
            acc.amax(dim=0),
            (acc - row).amin(dim=1),
            acc.sum(dim=0),
        ),
        [EpilogueOperand("row", ("N",), "bfloat16")],
    ),
    "a reduction alone": (lambda acc: acc.amin(dim=0), []),
}
MAKERS = {
    "pingpong": (pingpong, (128, 96, 64), {}),
    "fp16, M- and N-major": (
        pingpong,
        (64, 64, 128),
        {"dtype": "float16", "a_major": "MN", "b_major": "MN"},
    ),
    "one panel at a time": (pingpong, (128, 128, 64), {"c_stages": 1}),
    "narrow panels": (pingpong, (64, 80, 64), {"b_major": "MN"}),
    "clusters": (pingpong, (64, 96, 64), {"cluster": (2, 2)}),
    "swapped": (pingpong, (128, 136, 64), {"swapped": True}),
    "swapped in clusters": (pingpong, (128, 80, 64), {"swapped": True, "cluster": (1, 2)}),
    "three consumers in turn": (pingpong, (128, 96, 64), {"consumers": 3, "cluster": (2, 1)}),
    "cooperative": (cooperative, (256, 128, 64), {"cluster": (2, 1), "c_stages": 2}),
    "three consumers, swapped": (cooperative, (192, 144, 64), {"swapped": True}),
    "single": (single, (64, 48, 64), {}),
    "threads": (pingpong, (128, 96, 64), {"c_alignment": 1}),
    "threads, swapped": (cooperative, (64, 72, 64), {"c_alignment": 1, "swapped": True}),
    "threads, three consumers": (cooperative, (192, 80, 64), {"c_alignment": 1, "c_stages": 1}),
    "split": (split, (128, 64, 64), {"splits": 3, "cluster": (2, 1)}),
    "split, swapped": (split, (64, 24, 64), {"splits": 2, "swapped": True, "b_major": "MN"}),
    "split, threads": (split, (128, 80, 64), {"splits": 3, "c_alignment": 1}),
}
# Each operation once, of acc = eighths and y = integers.
OPERATIONS = [
    lambda acc, y: torch.exp(-acc.abs()),
    lambda acc, y: torch.expm1(acc / 8),
    lambda acc, y: torch.log(acc.abs() + 1),
    lambda acc, y: torch.sqrt(acc.abs()),
    lambda acc, y: torch.rsqrt(acc.abs() + 1),
    lambda acc, y: torch.tanh(acc / 4),
    lambda acc, y: torch.sigmoid(acc),
    lambda acc, y: torch.erf(acc / 4),
    lambda acc, y: torch.special.ndtr(acc / 2),
    lambda acc, y: F.relu(acc),
    lambda acc, y: F.silu(acc),
    lambda acc, y: F.gelu(acc),
    lambda acc, y: F.gelu(acc, approximate="tanh"),
    lambda acc, y: F.softplus(acc),
    lambda acc, y: acc / (y * y + 1),
    lambda acc, y: (acc + y).detach() - (acc * y),
    lambda acc, y: torch.maximum(acc, y) - torch.minimum(acc, -y),
    lambda acc, y: acc.bfloat16() + y,
    lambda acc, y: torch.where(((acc < y) | (acc > 2 * y)) & (acc != 0), acc, y),
    lambda acc, y: torch.where(~((acc <= y) ^ (acc >= -1)), acc, -y),
    lambda acc, y: torch.where(acc == y, acc, 1.0),
]


@functools.cache
def made(maker, epilogue, **more):
    """The plan of a name of MAKERS with an epilogue; None if such a plan cannot have it."""
    make, tile, options = MAKERS[maker]
    try:
        return make(tile, epilogue=epilogue, **options, **more)
    except PlanError:
        return None


def exact_plan(maker, name):
    """The plan of an epilogue of EXACT."""
    return made(maker, trace(*EXACT[name]))


BATCHED_MAKERS = [each for each in MAKERS if MAKERS[each][0] in (pingpong, cooperative)]


def batched_plan(maker, name):
    """The plan of a batch with an epilogue of EXACT.

    Each matrix has its own first operand, third operand, and so on; the others are shared.
    """
    function, operands = EXACT[name]
    batched = [
        replace(each, batched=i % 2 == 0 and not each.by_value) for i, each in enumerate(operands)
    ]
    return made(maker, trace(function, batched), batched=True)


def together(functions):
    """Functions of an eighth of the accumulator, as the results in fp32 of one epilogue."""
    return lambda acc, y: tuple(each(acc / 8, y).float() for each in functions)


GROUPS = [together(OPERATIONS[first::3]) for first in range(3)]


def operations_plan(group):
    """The plan of a group of operations."""
    return pingpong((64, 16, 64), epilogue=trace(GROUPS[group], [EpilogueOperand("y", ("N",))]))


@functools.cache
def random_expressions(count=300, groups=10):
    """(plan, function) of random expressions, the same in every run, in groups.

    Makers of plans take turns.
    """
    drawn = []

    @settings(max_examples=2 * count, derandomize=True, deadline=None, phases=[Phase.generate])
    @given(expressions(smooth=True))
    def draw(expression):
        drawn.append(expression)

    draw()
    makers, found = itertools.cycle(MAKERS), []
    for expression in itertools.islice(dict.fromkeys(drawn), count):
        plans = (made(maker, expression.epilogue) for maker in makers)
        found.append((next(filter(None, plans)), expression.function))
    return [found[first::groups] for first in range(groups)]


def launch(plan, device, inputs, numbers, results, sms):
    """The kernel of a plan, or its executor; `inputs` are a, b and the operands but numbers."""
    if device == "cuda":
        build.load(plan)(*inputs, *results, *numbers, max(sms, plan.cluster_size))
        return
    tensors, scalars = iter(inputs[2:]), iter(numbers)
    operands = [
        next(scalars if operand.by_value else tensors) for operand in plan.epilogue.operands
    ]
    out = results[0] if len(results) == 1 else tuple(results)
    plan.execute(*inputs[:2], out, operands=tuple(operands))


def moved(tensor, device):
    """A copy of the tensor on a device, with its strides, at the same place in its memory."""
    copy = memory(tensor).to(device, copy=True)
    return copy.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())


def memory(tensor):
    """All memory of a tensor."""
    return torch.empty(0, dtype=tensor.dtype, device=tensor.device).set_(tensor.untyped_storage())


UNTOUCHED = 7.0


def check(plan, function, mnk, device, sms=(132,), fill=None, within=None):
    """What a plan stores is `function` of torch's tensors in float64, rounded once.

    `function` is called as gemm's epilogue, of integers unless `fill` fills the tensors. `within`
    gives rtol and atol of a result by its dtype; without it, the results are equal. Beside them
    nothing is written. If the plan is batched, `mnk` ends with the number of matrices.
    """
    epilogue = plan.epilogue
    numbers = [3.0 for operand in epilogue.operands if operand.by_value]
    tensors = empty_tensors(plan, *mnk)
    count = 2 + len(epilogue.operands) - len(numbers)
    for each in tensors[:count]:
        (fill or integers)(each)
    wanted = truth(epilogue, function, tensors[:count], numbers)
    inputs = [moved(each, device) for each in tensors[:count]]
    for multiprocessors in sms:
        for each in tensors[count:]:
            memory(each).fill_(UNTOUCHED)
        outs = [moved(each, device) for each in tensors[count:]]
        launch(plan, device, inputs, numbers, outs, multiprocessors)
        for result, out, exact in zip(epilogue.results, outs, wanted, strict=True):
            found = moved(out, "cpu")
            one = REDUCTIONS[result.reduction](found, -2) if result.reduction else found.clone()
            rtol, atol = within(one.dtype) if within else (0, 0)
            other = exact.to(one.dtype).double()
            torch.testing.assert_close(one.double(), other, rtol=rtol, atol=atol)
            found.fill_(UNTOUCHED)
            assert bool((memory(found) == UNTOUCHED).all()), "memory beside a result was written"


def integers(tensor):
    """Integers from -3 to 3."""
    tensor.random_(-3, 4)


def truth(epilogue, function, inputs, numbers):
    """The results in float64: `function` of torch's tensors on the CPU, matrix by matrix."""
    if inputs[0].ndim == 3:
        own = (True, True, *(each.batched for each in epilogue.operands if not each.by_value))
        of_each = (
            [each[i] if has_own else each for each, has_own in zip(inputs, own, strict=True)]
            for i in range(len(inputs[0]))
        )
        results = (truth(epilogue, function, each, numbers) for each in of_each)
        return tuple(map(torch.stack, zip(*results, strict=True)))
    a, b, *tensors = (each.double() for each in inputs)
    scalars, tensors = iter(numbers), iter(tensors)
    values = {
        operand.name: next(scalars) if operand.by_value else next(tensors)
        for operand in epilogue.operands
    }
    for operand in epilogue.operands:
        if operand.modes == ("M",):
            values[operand.name] = values[operand.name][:, None]
    results = function(*(a @ part for part in (b if b.ndim == 3 else b[None])), **values)
    return results if isinstance(results, tuple) else (results,)


def plans_run(body):
    """The plans that a function of a device runs, found on the CPU: to compile them ahead."""
    found = []

    def recorded(run, plan_at):
        def make(*arguments, **options):
            found.append(arguments[plan_at])
            return run(*arguments, **options)

        return make

    with contextlib.ExitStack() as stack:
        for module, name, plan_at in ((fused, "fused_runner", 1), (call, "runner", 2)):
            run = recorded(getattr(module, name), plan_at)
            stack.enter_context(mock.patch.object(module, name, run))
        for module in (fused, call):
            stack.enter_context(mock.patch.dict(module._calls, clear=True))
        stack.enter_context(contextlib.suppress(AssertionError))  # the test itself shows it
        body("cpu")
    return list(dict.fromkeys(found))
