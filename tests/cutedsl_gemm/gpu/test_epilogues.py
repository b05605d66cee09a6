"""gemm with an epilogue, and torch's layers, on an H100: right against float64, and remembered."""

import pytest
import torch
from on_gpu import matrix
from torch.nn import functional as F

from cutedsl_gemm import addmm, geglu, gemm, linear, swiglu
from cutedsl_gemm.kernels.compile import build

pytestmark = pytest.mark.gpu

SHAPES = [(1024, 512, 256), (1000, 712, 392), (1, 712, 392), (999, 713, 391), (64, 256, 8192)]


def draw(*shape, dtype=torch.bfloat16):
    return torch.randn(shape, device="cuda").to(dtype)


def near(ours, theirs, within=6e-3):
    assert ours.shape == theirs.shape
    assert bool(ours.isfinite().all())
    return (ours.double() - theirs.double()).norm() <= within * theirs.double().norm()


def truth(function, a, b, **operands):
    accumulators = [a.double() @ part.double() for part in (b if b.ndim == 3 else b[None])]
    named = {
        name: each.double() if isinstance(each, torch.Tensor) else each
        for name, each in operands.items()
    }
    results = function(*accumulators, **named)
    return results if isinstance(results, tuple) else (results,)


EPILOGUES = {
    "bias and gelu": lambda acc, bias: F.gelu(acc + bias),
    "residual": lambda acc, residual: F.silu(acc) + residual,
    "columns": lambda acc, turned, column: acc * column - turned,
    "scalars": lambda acc, scalar, alpha: torch.tanh(acc * alpha) * scalar,
    "fp32 and a half": lambda acc, bias: ((acc + bias).float(), acc.half()),
    "reductions": lambda acc, bias: (acc + bias, (acc * acc).sum(dim=1), acc.amax(dim=0)),
}


def operands_of(function, m, n):
    made = {
        "bias": draw(n),
        "residual": draw(m, n),
        "turned": draw(n, m, dtype=torch.float16).mT,
        "column": draw(m, 1, dtype=torch.float32),
        "scalar": draw(dtype=torch.float32),
        "alpha": 0.25,
    }
    names = function.__code__.co_varnames[1 : function.__code__.co_argcount]
    return {name: made[name] for name in names}


@pytest.mark.within(400)
@pytest.mark.parametrize("name", EPILOGUES)
@pytest.mark.parametrize("mnk", SHAPES, ids=str)
def test_epilogues_agree_with_float64(mnk, name):
    m, n, k = mnk
    a, b = matrix(m, k, "row", torch.bfloat16), matrix(k, n, "column", torch.bfloat16)
    operands = operands_of(EPILOGUES[name], m, n)
    found = gemm(a, b, epilogue=EPILOGUES[name], **operands)
    found = found if isinstance(found, tuple) else (found,)
    for one, other in zip(found, truth(EPILOGUES[name], a, b, **operands), strict=True):
        assert near(one, other)


@pytest.mark.within(400)
@pytest.mark.parametrize("mnk", SHAPES, ids=str)
def test_layers_and_their_gradients_agree_with_torch(mnk):
    m, n, k = mnk
    layers = {
        "linear": (linear, F.linear, (n, k), (n,)),
        "gelu": (
            lambda *given: linear(*given, "gelu"),
            lambda *given: F.gelu(F.linear(*given)),
            (n, k),
            (n,),
        ),
        "swiglu": (swiglu, lambda x, w: _gated(F.silu, x, w), (2 * n, k)),
        "geglu": (geglu, lambda x, w: _gated(F.gelu, x, w), (2 * n, k)),
    }
    for name, (layer, torchs, *shapes) in layers.items():
        ours = [each.requires_grad_() for each in (draw(m, k), *(draw(*of) for of in shapes))]
        theirs = [each.detach().double().requires_grad_() for each in ours]
        found, wanted = layer(*ours), torchs(*theirs)
        slope = draw(*found.shape)
        slopes = torch.autograd.grad(found, ours, slope)
        wanteds = wanted, *torch.autograd.grad(wanted, theirs, slope.double())
        for one, other in zip((found, *slopes), wanteds, strict=True):
            assert near(one, other, 1.5e-2), name


def _gated(activation, x, weight):
    gate, up = F.linear(x, weight).chunk(2, dim=-1)
    return activation(gate) * up


def test_addmm_in_place():
    a, b, c = draw(500, 256), draw(256, 712), draw(500, 712)
    wanted = torch.addmm(c.double(), a.double(), b.double(), beta=0.5, alpha=2)
    assert addmm(c, a, b, beta=0.5, alpha=2, out=c) is c
    assert near(c, wanted)


def test_another_number_compiles_nothing(monkeypatch):
    a, b = draw(256, 256), draw(256, 256)
    gemm(a, b, epilogue=lambda acc, alpha: acc * alpha, alpha=0.5)
    monkeypatch.setattr(build, "load", None)
    for alpha in (2.0, -1):
        found = gemm(a, b, epilogue=lambda acc, alpha: acc * alpha, alpha=alpha)
        assert near(found, alpha * (a.double() @ b.double()))


def test_a_graph_replays_an_epilogue():
    x, weight, bias = draw(300, 256), draw(512, 256), draw(512)
    linear(x, weight, bias, "gelu")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = linear(x, weight, bias, "gelu")
    x.copy_(draw(300, 256))
    graph.replay()
    assert near(found, F.gelu(F.linear(x.double(), weight.double(), bias.double())))
