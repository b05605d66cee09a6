"""A converted model on an H100: torch's results, CUDA graphs, torch.compile."""

import copy

import pytest
import torch
from on_gpu import plan_of
from torch import nn
from torch.nn import functional as F

from cutedsl_gemm import convert, enabled, plan_for
from cutedsl_gemm.calls.fused import bound
from cutedsl_gemm.calls.signature import DEFAULTS
from cutedsl_gemm.kernels.epilogue.derivative import in_product, with_stored
from cutedsl_gemm.layers.activations import GATES, LINEAR
from cutedsl_gemm.models import faster, faster_mlp

pytestmark = pytest.mark.gpu

ROWS, WIDTH, HIDDEN = 512, 1024, 2048


@pytest.fixture(autouse=True)
def short_steps(monkeypatch):
    """gemm computes training steps that are so short that torch's are faster."""
    monkeypatch.setattr(faster, "LEAST_TRAINED", 0)
    monkeypatch.setattr(faster, "_trained", {})
    monkeypatch.setattr(faster_mlp, "LEAST_TRAINED_FUSED", 0)


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
    """Two layers that are not recognised as an MLP."""
    return two_layers(nn.Mish(), bias)


def two_layers(activation, bias):
    layers = nn.Linear(WIDTH, HIDDEN, bias=bias), activation, nn.Linear(HIDDEN, WIDTH, bias=bias)
    return nn.Sequential(*layers).to("cuda", torch.bfloat16)


def draw(*shape):
    return torch.randn(shape, device="cuda").bfloat16()


def near(ours, theirs, within=1e-2):
    return (ours.double() - theirs.double()).norm() <= within * theirs.double().norm()


def replayed(model, x):
    """model(x) from a CUDA graph, into memory that was filled with NaN."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = model(x)
    found.fill_(torch.nan)
    graph.replay()
    torch.cuda.synchronize()
    return found


@pytest.mark.compiles(plans=plans)
@pytest.mark.parametrize("bias", [True, False])
def test_a_converted_model_is_torchs(bias):
    theirs, x = model(bias), draw(2, ROWS // 2, WIDTH)
    ours = convert(copy.deepcopy(theirs))
    results = [each(x) for each in (ours, theirs)]
    assert near(*results)
    dy = draw(*x.shape)
    for result in results:
        result.backward(dy)
    for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert near(one.grad, other.grad)
    # the results and the weights' gradients of two layers, and the gradient between them
    runs = *faster._trained.values(), *faster._runs.values()
    assert len([run for run in runs if run is not None]) >= 5


@pytest.mark.filterwarnings("ignore:The CUDA Graph is empty:UserWarning")  # torch's own graph
@pytest.mark.compiles(plans=plans)
@pytest.mark.parametrize("bias", [True, False])
def test_a_converted_model_compiles_and_runs_in_cuda_graphs(bias):
    ours, x = convert(model(bias)), draw(ROWS, WIDTH)
    with torch.no_grad():
        wanted = ours(x)
        compiled = torch.compile(ours, fullgraph=True, mode="reduce-overhead")
        for _ in range(4):
            assert near(compiled(x), wanted)
        assert torch.equal(replayed(ours, x), wanted)


@pytest.mark.compiles(plans=plans)
@pytest.mark.parametrize("bias", [False])
def test_enabled_runs_products_and_their_gradients(bias):
    x, layer = draw(ROWS, WIDTH), model(bias)
    wanted = layer(x)
    with enabled():
        found = layer(x)
    assert near(found, wanted)
    assert found.grad_fn.name().startswith("_Linear")


def fused_plans(b, layer, derived, row):
    """Those of an MLP: its first layer has this B and epilogue, its backward pass `derived`'s."""
    x, hidden = torch.empty(ROWS, WIDTH).bfloat16(), torch.empty(ROWS, HIDDEN).bfloat16()
    wanted = (0,) if row else ()
    layer, derived = (bound(x, b, each, row, DEFAULTS) for each in (layer, derived))
    kept = with_stored(layer, wanted)
    epilogue = in_product(with_stored(derived, wanted), wanted)
    stored = {operand.name: hidden for operand in epilogue.operands}
    return [
        plan_for(x, b, epilogue=layer, **row),
        plan_for(x, b, epilogue=kept.epilogue, **row),
        plan_of((ROWS, HIDDEN, WIDTH), epilogue=epilogue, **stored),
        *plans(bool(row)),
    ]


def assert_fused_as_torchs(ours, theirs):
    """Results, gradients and replays of a converted MLP; `theirs` computes it by torch."""
    x, dy = draw(2, ROWS // 2, WIDTH).requires_grad_(), draw(2, ROWS // 2, WIDTH)
    leaves = [x, *ours.parameters()]
    found, wanted = (torch.autograd.grad(each(x), leaves, dy) for each in (ours, theirs))
    assert all(map(near, found, wanted))
    with torch.no_grad():
        wanted = ours(x)
        assert near(wanted, theirs(x))
        assert any(faster_mlp._calls.values())
        assert torch.equal(replayed(ours, x), wanted)


def mlp_plans(bias):
    """Those of an MLP without a gate."""
    b, row = torch.empty(HIDDEN, WIDTH).bfloat16().mT, torch.empty(HIDDEN).bfloat16()
    layer = LINEAR["gelu"][int(bias)]
    return fused_plans(b, layer, layer, {"bias": row} if bias else {})


@pytest.mark.compiles(plans=mlp_plans)
@pytest.mark.parametrize("bias", [True, False])
def test_an_mlp_is_torchs(bias, monkeypatch):
    monkeypatch.setattr(faster_mlp, "_calls", {})
    ours = convert(two_layers(nn.GELU(), bias))
    up, _, down = ours

    def theirs(x):
        return F.linear(F.gelu(F.linear(x, up.weight, up.bias)), down.weight, down.bias)

    assert_fused_as_torchs(ours, theirs)


class Gated(nn.Module):
    """A gated MLP, whose weights are the given distance apart."""

    def __init__(self, between=0, swapped=False):
        super().__init__()
        self.gate = nn.Linear(WIDTH, HIDDEN, False, "cuda", torch.bfloat16)
        self.between = torch.empty(between, dtype=torch.uint8, device="cuda")
        self.up = nn.Linear(WIDTH, HIDDEN, False, "cuda", torch.bfloat16)
        self.down = nn.Linear(HIDDEN, WIDTH, False, "cuda", torch.bfloat16)
        if swapped == (self.gate.weight.data_ptr() < self.up.weight.data_ptr()):
            self.gate, self.up = self.up, self.gate

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


def gated_plans(swapped):
    """Those of a gated MLP."""
    b = torch.empty(2, HIDDEN, WIDTH).bfloat16().mT
    return fused_plans(b, GATES["swiglu"][int(swapped)], GATES["swiglu"][0], {})


@pytest.mark.compiles(plans=gated_plans)
@pytest.mark.parametrize("between", [0, 8 << 30])
@pytest.mark.parametrize("swapped", [False, True])
def test_a_gated_mlp_is_torchs_wherever_its_weights_lie(swapped, between):
    ours = convert(Gated(between, swapped))
    gate, up, down = (each.weight for each in (ours.gate, ours.up, ours.down))

    def theirs(x):
        return F.linear(F.silu(F.linear(x, gate)) * F.linear(x, up), down)

    assert_fused_as_torchs(ours, theirs)
