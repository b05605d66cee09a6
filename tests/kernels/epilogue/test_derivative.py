"""The derivative of an epilogue is torch's of the same function."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from cutedsl_gemm.kernels.epilogue.cost import cost
from cutedsl_gemm.kernels.epilogue.derivative import RULES, derivative, with_stored
from cutedsl_gemm.kernels.epilogue.evaluate import REDUCTIONS, evaluate
from cutedsl_gemm.kernels.epilogue.functions import apply
from cutedsl_gemm.kernels.epilogue.operations import LEAVES, OPERATIONS
from cutedsl_gemm.kernels.epilogue.trace import trace
from tests.kernels.epilogue.expressions import OPERANDS, expressions

M, N = 4, 6


def check(epilogue, acc, operands, rtol=1e-9):
    """Derivatives of all accumulators and operands, in fp64, as torch.autograd has them."""
    leaves = [each.requires_grad_() for each in (*acc, *operands) if isinstance(each, torch.Tensor)]
    made = list(evaluate(epilogue, acc, operands))
    given = tuple(  # amax and amin are left out: they are no derivatives of a place of C
        i for i, each in enumerate(epilogue.results) if each.reduction in (None, "sum")
    )
    grads = []
    for i in given:
        result = epilogue.results[i]
        if result.reduction:
            over = "MN".index(result.over)
            made[i] = REDUCTIONS[result.reduction](made[i], over).unsqueeze(over)
        grads.append(torch.randn_like(made[i]))
    wanted = torch.autograd.grad(
        [made[i] for i in given], leaves, grads, allow_unused=True, materialize_grads=True
    )
    tensors = tuple(i for i, each in enumerate(epilogue.operands) if not each.by_value)
    backward = derivative(epilogue, tensors, given)
    found = evaluate(backward, acc, (*operands, *grads))
    for value, expected in zip(found, wanted, strict=True):
        torch.testing.assert_close(
            value.sum_to_size(expected.shape), expected, rtol=rtol, atol=1e-9
        )


@pytest.mark.parametrize("name", RULES)
def test_the_derivative_of_each_operation_is_torchs(name):
    operation, random = OPERATIONS[name], torch.Generator().manual_seed(0)
    acc, other = torch.rand(2, M, N, dtype=torch.float64, generator=random) * 3 + 0.1
    if name not in ("log", "sqrt", "rsqrt"):
        acc = acc - 1.5

    def function(acc, matrix):
        arguments = (acc, matrix)[: operation.arguments]
        if name == "cast":
            return acc.bfloat16() + matrix
        made = apply(name, *((acc > 0, acc, matrix) if name == "where" else arguments))
        return made * 2 + matrix

    rtol = 2**-7 if name == "cast" else 1e-9  # torch rounds the derivative too
    check(trace(function, (OPERANDS["matrix"],)), (acc,), (other,), rtol)


def test_each_operation_on_numbers_has_a_derivative():
    numbers = {name for name, each in OPERATIONS.items() if not each.is_predicate}
    assert RULES.keys() == numbers - {*LEAVES}


@given(st.sampled_from((1, 2)).flatmap(lambda n: expressions(smooth=True, accumulators=n)))
def test_the_derivative_of_a_random_epilogue_is_torchs(expression):
    random = torch.Generator().manual_seed(0)
    acc = torch.randn(expression.accumulators, M, N, dtype=torch.float64, generator=random)
    operands = [
        each.double() if isinstance(each, torch.Tensor) else each
        for each in expression.tensors(M, N).values()
    ]
    check(expression.epilogue, [*acc], operands)


@pytest.mark.parametrize(
    ("function", "at"),
    [
        (lambda acc: acc.relu(), 0.0),
        (lambda acc: acc.abs(), 0.0),
        (lambda acc: acc.clamp(0, 2), 0.0),
        (lambda acc: acc.clamp(0, 2), 2.0),
        (lambda acc: torch.maximum(acc, -acc), 0.0),
        (lambda acc: torch.where(acc > 0, acc * 2, acc * 3), 0.0),
        (F.elu, 0.0),
        *((F.relu6, at) for at in (0.0, 6.0)),
        *((F.hardtanh, at) for at in (-1.0, 1.0)),
        *((function, at) for function in (F.hardsigmoid, F.hardswish) for at in (-3.0, 3.0)),
    ],
)
def test_at_a_kink_the_derivative_is_torchs(function, at):
    """As is that of `evaluate`, which torch's transforms differentiate."""
    x = torch.full((1, 1), at, dtype=torch.float64, requires_grad=True)
    (wanted,) = torch.autograd.grad(function(x).sum(), x)
    (found,) = evaluate(derivative(trace(function)), [x], [torch.ones(1, 1)])
    (value,) = evaluate(trace(function), [x])
    assert found == wanted == torch.autograd.grad(value.sum(), x)[0]


@pytest.mark.parametrize("bound", ["min", "max"])
@pytest.mark.parametrize("at", [-1.0, 2.0, 3.0, math.nan])
def test_the_derivatives_of_a_clamp_by_an_operand_are_torchs(bound, at):
    """At a tie, the input has all of the gradient, unlike that of torch.maximum."""
    x, row = (torch.full((1, 1), v, dtype=torch.float64, requires_grad=True) for v in (2.0, at))
    made = trace(lambda acc, row: acc.clamp(**{bound: row}), (OPERANDS["row"],))
    wanted = torch.autograd.grad(x.clamp(**{bound: row}).sum(), (x, row))
    (value,) = evaluate(made, [x], [row])
    of_value = torch.autograd.grad(value.sum(), (x, row))
    assert torch.equal(value.nan_to_num(), x.clamp(**{bound: row}).nan_to_num())
    if not math.isnan(at):
        found = evaluate(derivative(made, (0,)), [x], [row, torch.ones(1, 1)])
        assert [*map(float, found)] == [*map(float, wanted)] == [*map(float, of_value)]


def test_the_slope_of_silu_is_one_where_its_argument_is_large():
    (dx,) = evaluate(derivative(trace(F.silu)), [torch.full((1, 1), 1e8)], [torch.ones(1, 1)])
    assert dx == 1


@pytest.mark.parametrize(
    ("function", "wanted", "stored"),
    [
        (lambda acc, row: acc + row, (0,), ()),
        (lambda acc, row: acc * row, (), ()),
        (lambda acc, row: acc * row, (0,), ("acc",)),  # the derivative of row is acc
        (lambda acc, row: (acc + row).sigmoid(), (0,), ("sigmoid",)),
        (lambda acc, row: (acc + row).relu() * 2, (), ("add",)),
        (lambda acc, row: (F.gelu(acc + row), acc), (), ("acc",)),
        (lambda acc, row: (F.gelu(acc + row), F.gelu(acc + row)), (), ("add",)),
        (lambda acc, row: (acc * row, acc.sum(dim=1)), (0,), ("acc",)),
        (lambda acc, row: (acc + row, (acc + row).amax(dim=1)), (0,), ("add",)),
        (lambda acc, row: F.silu(acc - row) * row, (0,), ("sub",)),
        (lambda acc, row: acc.exp().half() * row, (0,), ("acc",)),  # exp(acc) may overflow
    ],
)
def test_what_the_derivative_needs_of_the_accumulator_is_stored(function, wanted, stored):
    """The derivative is then the same, and depends on the accumulator no more."""
    epilogue = trace(function, (OPERANDS["row"],))
    kept, numbers, places = with_stored(epilogue, wanted)
    assert [epilogue.program[number].operation for number in numbers] == [*stored]
    assert kept.results[: len(epilogue.results)] == epilogue.results
    acc, row = torch.randn(M, N).double(), torch.randn(N).double()
    values = [evaluate(kept, [acc], [row])[place] for place in places]
    given = tuple(i for i, each in enumerate(epilogue.results) if each.reduction != "amax")
    grads = [torch.randn(M, 1).double() for _ in given]
    found = derivative(epilogue, wanted, given, numbers)
    assert all(each.operation != "acc" for each in found.program)
    for one, other in zip(
        evaluate(found, [acc], [row, *values, *grads]),
        evaluate(derivative(epilogue, wanted, given), [acc], [row, *grads]),
        strict=True,
    ):
        torch.testing.assert_close(one, other)


def test_both_accumulators_of_a_gate_are_stored():
    kept, numbers, _ = with_stored(trace(lambda gate, up: F.silu(gate) * up, (), 2))
    assert [kept.program[number].value for number in numbers] == [0, 1]
    assert len(kept.results) == 3


def of_block(acc):
    with torch.no_grad():
        s = acc.sigmoid()
    return acc * s


@torch.no_grad()
def of_decorator(acc):
    return (acc > 0) * acc


STOPPED = {  # what a gradient does not pass
    "detach": lambda acc: acc + (acc.tanh() - acc).detach(),
    "a block": of_block,
    "a decorator": lambda acc: of_decorator(acc) * acc,
    "a cast": lambda acc: acc * acc.bfloat16().detach(),
}


@pytest.mark.parametrize("name", STOPPED)
@pytest.mark.parametrize("needed", [True, False])
def test_no_gradient_is_taken_of_what_is_detached(name, needed):
    """Whether gradients are on where the function is traced or not."""
    with torch.set_grad_enabled(needed):
        epilogue = trace(STOPPED[name])
    acc = torch.randn(M, N).requires_grad_()
    (wanted,) = torch.autograd.grad(STOPPED[name](acc).sum(), acc)
    (found,) = evaluate(derivative(epilogue), [acc], [torch.ones(M, N)])
    torch.testing.assert_close(found, wanted)


def test_a_detached_value_costs_nothing():
    assert cost(trace(lambda acc: (acc * 2).detach() + 1)) == cost(trace(lambda acc: acc * 2 + 1))
