"""gemm(a, b, epilogue=…) of batches: what the function computes from torch's tensors (L, M, N)."""

import pytest
import torch
from torch import func
from torch._dynamo.testing import CompileCounter
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional as F

from cutedsl_gemm import explain, gemm, plan_for
from cutedsl_gemm.kernels.epilogue.expression import EpilogueError

BF16, FP16, FP32 = torch.bfloat16, torch.float16, torch.float32
L, M, K, N = 3, 40, 64, 96


def draw(*shape, dtype=BF16):
    return torch.randn(shape).to(dtype)


def gates(weight):
    """(2, L, K, N) of the weights (L, K, 2N) of experts: columns of gates, then those of values."""
    return weight.unflatten(-1, (2, -1)).movedim(-2, 0)


def swiglu(gate, value):
    return F.silu(gate) * value


def truth(function, a, b, operands, dtype=torch.float64):
    """The same function of torch's tensors, in float64: a tuple of results."""
    products = a.to(dtype) @ b.to(dtype)
    values = {
        name: each.to(dtype) if isinstance(each, torch.Tensor) else each
        for name, each in operands.items()
    }
    results = function(*(products if b.ndim == 4 else (products,)), **values)
    return results if isinstance(results, tuple) else (results,)


def agree(function, a, b, **operands):
    """gemm's results, which agree with torch's."""
    found = gemm(a, b, epilogue=function, **operands)
    results = found if isinstance(found, tuple) else (found,)
    for one, other in zip(results, truth(function, a, b, operands), strict=True):
        assert one.shape == other.shape
        assert (one.double() - other).norm() <= 4e-3 * other.norm()
    return results


torch.manual_seed(0)
A, B = draw(L, M, K), draw(L, K, N)
OPERANDS = {
    "a row of all": draw(N),
    "a row of each": draw(L, 1, N),
    "a row of each, padded": draw(L, 1, N + 4)[:, :, :N],
    "a row of each, at an odd address": draw(L, 1, N + 5)[:, :, 1 : N + 1],
    "a row of each, whose elements are apart": draw(N, 1, L, dtype=FP16).permute(2, 1, 0),
    "a column of all": draw(M, 1, dtype=FP32),
    "a column of each": draw(L, M, 1, dtype=FP32),
    "every second row of a column of each": draw(L, 2 * M, 1)[:, ::2],
    "a scalar of each": draw(L, 1, 1, dtype=FP32),
    "every second scalar": draw(2 * L, 1, 1)[::2],
    "a scalar": draw(dtype=FP32),
    "a number": 0.75,
    "a matrix of all": draw(M, N),
    "a matrix of each": draw(L, M, N),
    "a matrix of each, in columns": draw(L, N, M, dtype=FP32).mT,
    "a matrix of each, expanded": draw(L, 1, N).expand(L, M, N),
    "matrices between others": draw(M, L, N + 9)[:, :, 1 : N + 1].transpose(0, 1),
    "every second element": draw(L, M, 2 * N)[:, :, ::2],
}


@pytest.mark.parametrize("kind", OPERANDS)
def test_every_kind_of_operand_broadcasts_as_torchs_do(executed, kind):
    operand = OPERANDS[kind]
    if isinstance(operand, torch.Tensor) and operand.ndim == 3:
        assert operand.shape[0] == L
    agree(lambda acc, x: acc * 2 + x * 10, A, B, x=operand)
    (plan,) = executed
    assert plan.batched


def test_dimensions_of_reductions_are_those_of_the_batch(executed):
    def function(acc, bias):
        y = (acc + bias).relu()
        return y, y.sum(dim=1), y.amax(dim=2), y.amin(dim=-2), (acc * acc).sum(dim=-1), y.float()

    agree(function, A, B, bias=draw(L, 1, N))
    agree(function, A, draw(L, 33, K).mT, bias=draw(33))  # C by threads
    assert [plan.batched for plan in executed] == [True, True]
    with pytest.raises(EpilogueError, match=r"reduces over dim=-2 \(M\) or dim=-1 \(N\) of C"):
        gemm(A, B, epilogue=lambda acc: acc.sum(dim=0))


@pytest.mark.parametrize(
    "b",
    [
        gates(draw(L, K, 2 * N)),
        draw(L, 2 * N, K).mT.unflatten(-1, (N, 2)).movedim(-1, 0),  # interleaved
        draw(2, L, K, N),
        gates(draw(L, K, 66)),  # TMA reads a copy
        draw(L, K, N).expand(2, L, K, N),
    ],
)
def test_experts_have_gates(executed, b):
    agree(swiglu, A, b)
    assert [(plan.batched, plan.matrices) for plan in executed] == [(True, 2)]


def test_results_go_where_out_is(executed):
    bias = draw(L, 1, N)
    wanted = gemm(A, B, epilogue=lambda acc, bias: acc + bias, bias=bias)
    outs = (
        draw(M, L, N + 8)[:, :, :N].transpose(0, 1),
        draw(L, N, M).mT,
        draw(M, N, L).permute(2, 0, 1),
        draw(L, M, N + 3)[:, :, 3:],
    )
    for out in outs:
        assert gemm(A, B, epilogue=lambda acc, bias: acc + bias, bias=bias, out=out) is out
        assert torch.equal(out, wanted)
    memory = draw(L, M, N)
    added = A.float() @ B.float() + memory.float()
    gemm(A, B, epilogue=lambda acc, c: acc + c, c=memory, out=memory)  # in place, as addmm_
    torch.testing.assert_close(memory.float(), added, rtol=1e-2, atol=1e-2)
    assert {plan.batched for plan in executed} == {True}


def test_a_batch_of_one_and_an_empty_one_are_as_torch_has_them(executed):
    for a, b, bias in ((A[:1], B[:1], draw(1, 1, N)), (A[:0], B[:0], draw(N))):
        agree(lambda acc, bias: (acc + bias).relu(), a, b, bias=bias)
        agree(swiglu, a, gates(draw(len(a), K, 2 * N)))
    assert {plan.batched for plan in executed} == {False}
    agree(lambda acc, bias: acc + bias, A[:, :, :0], B[:, :0], bias=draw(L, 1, N))


def test_the_products_of_a_batch_follow_each_other_before_hopper(monkeypatch, executed):
    monkeypatch.setattr("cutedsl_gemm.calls.fused.one_by_one", lambda a, kernel: a.ndim == 3)
    agree(lambda acc, bias, r: (acc + bias, (acc * r).sum(dim=1)), A, B, bias=draw(L, 1, N), r=2.0)
    agree(swiglu, A, gates(draw(L, K, 2 * N)))
    assert [plan.batched for plan in executed] == [False] * 2 * L


GRADED = {
    "bias of each": (lambda acc, x: F.gelu(acc + x), B, draw(L, 1, N)),
    "bias of all": (lambda acc, x: F.silu(acc + x), B, draw(N)),
    "scale of each": (lambda acc, x: torch.tanh(acc * x), B, draw(L, 1, 1, dtype=FP32)),
    "column of each": (lambda acc, x: acc * x, B, draw(L, M, 1, dtype=FP32)),
    "residual": (lambda acc, x: acc + x, B, draw(L, M, N)),
    "sum": (lambda acc, x: (acc * x).sum(dim=2), B, draw(M, N)),
    "gates": (lambda g, v, x: F.silu(g) * v + x, gates(draw(L, K, 2 * N)), draw(N)),
    "interleaved": (
        lambda g, v, x: F.silu(g) * v + x,
        draw(L, 2 * N, K).mT.unflatten(-1, (N, 2)).movedim(-1, 0),
        draw(L, 1, N),
    ),
}


@pytest.mark.parametrize("kind", GRADED)
def test_gradients_are_torchs(kind):
    function, b, x = GRADED[kind]
    given = [each.detach().requires_grad_() for each in (A, b, x)]
    made = gemm(given[0], given[1], epilogue=function, x=given[2])
    grad = draw(*made.shape, dtype=made.dtype)
    found = torch.autograd.grad(made, given, grad)
    exact = [each.detach().float().requires_grad_() for each in (A, b, x)]
    (wanted,) = truth(function, *exact[:2], {"x": exact[2]}, FP32)
    for one, other in zip(found, torch.autograd.grad(wanted, exact, grad.float()), strict=True):
        assert one.shape == other.shape
        assert (one.float() - other).norm() <= 2e-2 * other.norm()


def test_the_gradient_of_an_extremum_is_that_of_each_matrix():
    x, grad = draw(L, 1, N), draw(L, N)

    def gradients(a, b, x, grad):
        given = [each.detach().requires_grad_() for each in (a, b, x)]
        made = gemm(*given[:2], epilogue=lambda acc, x: (acc + x).amax(dim=-2), x=given[2])
        return torch.autograd.grad(made, given, grad.float())

    one_by_one = zip(*(gradients(*each) for each in zip(A, B, x, grad, strict=True)), strict=True)
    assert all(map(torch.equal, gradients(A, B, x, grad), map(torch.stack, one_by_one)))


def test_vmap_of_a_function_with_an_epilogue_is_that_of_each_sample():
    bias = draw(L, N)

    def layer(a, b, bias):
        return gemm(a, b, epilogue=lambda acc, bias: (acc + bias).relu(), bias=bias)

    wanted = torch.stack([layer(*each) for each in zip(A, B, bias, strict=True)])
    torch.testing.assert_close(func.vmap(layer)(A, B, bias), wanted, rtol=1e-2, atol=1e-2)


def test_torch_traces_a_batch_with_an_epilogue_as_one_operator():
    torch._dynamo.reset()

    def experts(a, b, bias):
        return gemm(a, b, epilogue=lambda acc, bias: F.gelu(acc + bias).sum(dim=-1), bias=bias)

    graphs = CompileCounter()
    compiled = torch.compile(experts, backend=graphs, fullgraph=True, dynamic=True)
    for count, m in ((3, 40), (4, 24), (5, 56)):
        given = draw(count, m, K), draw(count, K, N), draw(count, 1, N)
        assert torch.equal(compiled(*given), experts(*given))
        assert graphs.frame_count == 1
        assert experts(*(each.to("meta") for each in given)).shape == (count, m)
    with FakeTensorMode() as mode:
        fake = [mode.from_tensor(each) for each in (A, B, draw(L, 1, N))]
        assert experts(*fake).shape == (L, M)


@pytest.mark.parametrize("b", [B, gates(draw(L, K, 2 * N))], ids=["", "gates"])
def test_compiled_gradients_are_those_of_eager_mode(b):
    function = swiglu if b.ndim == 4 else (lambda acc: F.gelu(acc))
    found = []
    for call in (gemm, torch.compile(gemm, backend="aot_eager", fullgraph=True)):
        given = [each.detach().requires_grad_() for each in (A, b)]
        call(*given, epilogue=function).sum().backward()
        found.append([each.grad for each in given])
    assert all(map(torch.equal, *found))


def test_explain_says_what_belongs_to_each_matrix():
    bias, r = draw(L, 1, N), draw(M, N)
    text = explain(A, B, epilogue=lambda acc, bias, r: acc + bias * r, bias=bias, r=r)
    assert "C (3, 40, 96) = A (3, 40, 64) · B (3, 64, 96)" in text
    assert "(L,M,N):(s,0,1)  bfloat16, row vector of each" in text
    assert "(M,N):(ld,1)  bfloat16, matrix\n" in text
    plan = plan_for(A, B, epilogue=lambda acc, bias, r: acc + bias * r, bias=bias, r=r)
    assert plan.batched
    assert [each.batched for each in plan.epilogue.operands] == [True, False]
    text = explain(A, gates(draw(L, K, 2 * N)), epilogue=swiglu)
    assert "· B (2, 3, 64, 96)" in text


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: gemm(A, B, epilogue=lambda acc, x: acc + x, x=draw(L, N)),
            r"x has shape \(3, 96\): it must broadcast to the shape \(3, 40, 96\) of the result, "
            r"as a scalar, .* or a matrix; with a first mode L, each matrix has its own",
        ),
        (
            lambda: gemm(A, draw(3, L, K, N), epilogue=swiglu),
            r"b has shape \(3, 3, 64, 96\): it must be \(L, K, N\), or \(2, L, K, N\)",
        ),
        (lambda: gemm(A, B, epilogue=torch.relu, kernel="sm80_mma"), "kernel is 'sm80_mma', and a"),
        (lambda: gemm(A, B, epilogue=torch.relu, tune=True), "tune is True, and a is a batch"),
        (lambda: gemm(A, B[:2], epilogue=torch.relu), "batches must have equally many matrices"),
        (
            lambda: gemm(A, B, epilogue=torch.relu, out=draw(M, N).expand(L, M, N)),
            "elements may share memory",
        ),
        (lambda: gemm(A, A.mT, epilogue=torch.relu, out=A[..., :M]), "out shares memory with a"),
    ],
)
def test_what_does_not_fit_gets_a_message(call, message):
    with pytest.raises(ValueError, match=message):
        call()
