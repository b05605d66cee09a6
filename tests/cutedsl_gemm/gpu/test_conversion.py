"""A converted model on an H100: torch's results, CUDA graphs, torch.compile, host time."""

import copy
import time

import pytest
import torch
from on_gpu import plan_of
from torch import nn
from torch.nn import functional as F

from cutedsl_gemm import convert, enabled, faster
from cutedsl_gemm.select.preference import beats_torch

pytestmark = pytest.mark.gpu

ROWS, WIDTH, HIDDEN = 512, 1024, 2048


def bias_of(acc, bias):
    return acc + bias


def plans(bias):
    """Those of the products of `model`, forward and backward, on its rows."""
    found = []
    for n, k in ((HIDDEN, WIDTH), (WIDTH, HIDDEN)):
        row = torch.empty(n, dtype=torch.bfloat16)
        fused = {"epilogue": bias_of, "bias": row} if bias else {}
        found.append(plan_of((ROWS, n, k), ("row", "column"), **fused))
        found.append(plan_of((ROWS, k, n), ("row", "row")))
        found.append(plan_of((n, k, ROWS), ("column", "row")))
    return found


def model(bias):
    layers = nn.Linear(WIDTH, HIDDEN, bias=bias), nn.GELU(), nn.Linear(HIDDEN, WIDTH, bias=bias)
    return nn.Sequential(*layers).to("cuda", torch.bfloat16)


def draw(*shape):
    return torch.randn(shape, device="cuda").bfloat16()


def near(ours, theirs, within=1e-2):
    return (ours.double() - theirs.double()).norm() <= within * theirs.double().norm()


@pytest.mark.compiles(plans=plans)
@pytest.mark.parametrize("bias", [True, False])
def test_a_converted_model_is_torchs(bias):
    theirs, x = model(bias), draw(2, ROWS // 2, WIDTH)
    ours = convert(copy.deepcopy(theirs))
    results = [each(x) for each in (ours, theirs)]
    assert near(*results)
    slope = draw(*x.shape)
    for result in results:
        result.backward(slope)
    for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert near(one.grad, other.grad)
    # the results and the weights' gradients of two layers, and the gradient between them
    assert len([run for run in faster._runs.values() if run is not None]) >= 5


@pytest.mark.compiles(plans=plans)
@pytest.mark.parametrize("bias", [True, False])
def test_a_converted_model_compiles_and_runs_in_cuda_graphs(bias):
    ours, x = convert(model(bias)), draw(ROWS, WIDTH)
    with torch.no_grad():
        wanted = ours(x)
        compiled = torch.compile(ours, fullgraph=True, mode="reduce-overhead")
        for _ in range(4):
            assert near(compiled(x), wanted)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            found = ours(x)
        found.fill_(torch.nan)
        graph.replay()
        torch.cuda.synchronize()
        assert torch.equal(found, wanted)


@pytest.mark.compiles(plans=plans)
@pytest.mark.parametrize("bias", [False])
def test_enabled_runs_products_and_their_gradients(bias):
    x, layer = draw(ROWS, WIDTH), model(bias)
    wanted = layer(x)
    with enabled():
        found = layer(x)
    assert near(found, wanted)
    assert found.grad_fn.name().startswith("_Linear")


def seconds(function, *arguments):
    """The least host time of a call into an idle queue."""
    found = []
    for _ in range(20):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(100):
            function(*arguments)
        found.append((time.perf_counter() - start) / 100)
        torch.cuda.synchronize()
    return min(found)


@pytest.mark.compiles(plans=lambda bias: [plan_of((16, 128, 128), ("row", "column"))])
@pytest.mark.parametrize("bias", [False])
def test_the_forward_of_a_layer_takes_at_most_torchs_host_time(bias):
    theirs = nn.Linear(128, 128, bias=bias).to("cuda", torch.bfloat16)
    ours, x = convert(copy.deepcopy(theirs)), draw(16, 128)
    assert beats_torch(16, 128, 128)
    with torch.no_grad():
        assert near(ours(x), F.linear(x, theirs.weight))
        mine, torchs = (seconds(each, x) for each in (ours, theirs))
    assert mine <= 1.05 * torchs, f"{mine * 1e6:.1f} µs, torch's {torchs * 1e6:.1f}"
