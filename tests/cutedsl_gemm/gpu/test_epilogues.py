"""Epilogues on an H100: right against float64, and nothing outside their results is written.

The same tests run on the executor in CI: what a test itself does wrong is seen there.
"""

import functools
import itertools

import pytest
import torch
from epilogues import (
    BATCHED_MAKERS,
    EXACT,
    GROUPS,
    MAKERS,
    batched_plan,
    check,
    exact_plan,
    moved,
    operations_plan,
    plans_run,
    random_expressions,
)
from torch.nn import functional as F

from cutedsl_gemm import addmm, geglu, gemm, linear, mlp, swiglu
from cutedsl_gemm.kernels.epilogue.operations import OPERATIONS
from cutedsl_gemm.layers.activations import ACTIVATIONS
from tests.cutedsl_gemm.test_epilogue import OPERANDS

DEVICES = [
    pytest.param("cpu", marks=pytest.mark.deep),
    pytest.param("cuda", marks=pytest.mark.gpu),
]
on_devices = pytest.mark.parametrize("device", DEVICES)
CASES = [pytest.param(maker, name, id=f"{name}, {maker}") for maker in MAKERS for name in EXACT]


def shapes_of(plan, device):
    """M, N and K: ragged, of one tile, of many tiles; N is odd if threads store C."""
    in_vectors = [(200, 152, 72), (8, 8, 8), (1, 520, 264), (776, 1048, 136)]
    anywhere = [(201, 147, 71), (1, 1, 1), (67, 518, 40), (775, 1043, 137)]
    shapes = in_vectors if plan.c_alignment > 1 else anywhere
    return shapes[: 1 if device == "cpu" else None]


@pytest.mark.compiles(plans=lambda maker, name: [exact_plan(maker, name)])
@on_devices
@pytest.mark.parametrize(("maker", "name"), CASES)
def test_an_epilogue_of_integers_is_exact(maker, name, device):
    plan, (function, _) = exact_plan(maker, name), EXACT[name]
    if plan is None:
        assert "reduction" in name
        assert maker.startswith("split")
        return
    sms = (132, 3) if device == "cuda" else (132,)  # with 3, a block makes many tiles
    for mnk in shapes_of(plan, device):
        check(plan, function, mnk, device, sms)


@pytest.mark.compiles(plans=lambda maker, name: [batched_plan(maker, name)])
@on_devices
@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("maker", BATCHED_MAKERS)
def test_an_epilogue_of_batches_of_integers_is_exact(maker, name, device):
    plan, (function, _) = batched_plan(maker, name), EXACT[name]
    sms = (132, 3) if device == "cuda" else (132,)
    for mnk in shapes_of(plan, device):
        check(plan, function, (*mnk, 3), device, sms)


@pytest.mark.compiles(plans=lambda group: [operations_plan(group)])
@on_devices
@pytest.mark.parametrize("group", range(len(GROUPS)))
def test_every_operation_is_what_torch_computes(group, device):
    check(
        operations_plan(group),
        GROUPS[group],
        (200, 152, 40),
        device,
        within=lambda dtype: (1e-5, 1e-5),
    )


def test_every_operation_stands_in_a_group():
    programs = (operations_plan(group).epilogue.program for group in range(len(GROUPS)))
    found = {instruction.operation for each in programs for instruction in each}
    assert found >= {*OPERATIONS} - {"neg", "sub"}


@pytest.mark.within(300)
@pytest.mark.compiles(plans=lambda group: [plan for plan, _ in random_expressions()[group]])
@on_devices
@pytest.mark.parametrize("group", range(10))
def test_random_epilogues_agree_with_torch(group, device):
    """Three hundred of them, each by a plan of another kind than the one before."""
    for plan, function in random_expressions()[group][: 2 if device == "cpu" else None]:
        check(
            plan,
            function,
            (136, 104, 40) if plan.c_alignment > 1 else (137, 101, 39),
            device,
            fill=lambda tensor: tensor.normal_(std=0.5),
            within=lambda dtype: (1e-3, 1e-3) if dtype == torch.float32 else (1e-2, 1e-2),
        )


# What follows calls public functions; their plans are those that they run on the CPU.


def draw(device, *shape, dtype=torch.bfloat16, scale=1.0):
    return (torch.randn(shape) * scale).to(dtype).to(device)


def integers(device, *shape):
    return torch.randint(-3, 4, shape).to(torch.bfloat16).to(device)


def agree(name, found, wanted, within=1e-2):
    found, wanted = (each.detach().double().cpu() for each in (found, wanted))
    assert found.shape == wanted.shape, name
    assert (found - wanted).norm() <= within * wanted.norm(), name


def kinds_of_operands(device):
    """Each kind is added to the product of ragged extents, and of whole vectors."""
    for n, (kind, make) in itertools.product((72, 71), OPERANDS.items()):
        a, b = draw(device, 33, 40), draw(device, 40, n)
        x = make(33, n)
        x = moved(x, device) if isinstance(x, torch.Tensor) else x
        found = gemm(a, b, epilogue=lambda acc, x: acc * 0.5 + x, x=x)
        agree(kind, found, a.double() @ b.double() * 0.5 + x, 5e-3)


def gates(device):
    """Both products of one weight, by any layout of it and any kernel, are exact on integers."""
    for n, k in ((72, 40), (71, 39), (328, 200))[: 2 if device == "cpu" else 3]:
        a, weight = integers(device, 65, k), integers(device, 2 * n, k)
        bias = integers(device, n)
        for b in (
            weight.view(2, n, k).mT,
            weight.view(n, 2, k).permute(1, 2, 0),
            integers(device, k, 2 * n).view(k, 2, n).permute(1, 0, 2),
        ):
            gate, up = a.double() @ b.double()
            wanted = ((gate + bias).relu() * up).to(a.dtype)
            for options in OPTIONS if n % 8 == 0 else OPTIONS[:1]:
                found = gemm(
                    a,
                    b,
                    epilogue=lambda gate, up, bias: F.relu(gate + bias) * up,
                    bias=bias,
                    **options,
                )
                assert torch.equal(found, wanted), (n, b.stride(), options)


OPTIONS = (
    {},
    {"tile": (128, 192, 64)},
    {"tile": (64, 32, 64)},
    {"kernel": "sm90_cooperative"},
    {"kernel": "sm90_split"},
    {"invariant": True},
)


def memory_beside_out(device):
    """Rows, columns, and several results at odd places in a matrix of sevens; an operand as out."""
    a, b = integers(device, 65, 40), integers(device, 40, 51)
    product = a.double() @ b.double()
    for turned in (False, True):
        frame = torch.full((2, 90, 90), 7.0, dtype=a.dtype, device=device)
        places = [each.mT if turned else each for each in frame]
        out = tuple(each[5:70, 3:54] for each in places)
        made = gemm(a, b, epilogue=lambda acc: (acc + 1, acc * 2), out=out)
        assert all(one is other for one, other in zip(made, out, strict=True))
        for found, wanted in zip(out, (product + 1, product * 2), strict=True):
            assert torch.equal(found, wanted.to(a.dtype))
            found.fill_(7.0)
        assert bool((frame == 7.0).all())
    c = integers(device, 65, 51)
    wanted = (product * 2 - c.double()).to(a.dtype)
    assert addmm(c, a, b, beta=-1, alpha=2, out=c) is c
    assert torch.equal(c, wanted)


def reductions_repeat(device):
    """A reduction has the same bits in every run."""
    a, b = draw(device, 520, 72), draw(device, 72, 776)
    function = lambda acc: (acc, (acc * acc).sum(1), acc.sum(0), acc.amax(1))  # noqa: E731
    first = gemm(a, b, epilogue=function)
    for _ in range(3):
        for one, other in zip(gemm(a, b, epilogue=function), first, strict=True):
            assert torch.equal(one, other)
    acc = a.double() @ b.double()
    for found, wanted in zip(first, function(acc), strict=True):
        agree("reductions", found, wanted, 5e-3)


def torch_layers():
    """(name, ours, torch's, the shapes of what they take, of which the first is x)."""
    n, k = 72, 40
    for bias, (name, activation) in itertools.product(
        (True, False), [(None, lambda x: x), *ACTIVATIONS.items()]
    ):
        yield (
            f"linear {name} {bias}",
            functools.partial(linear, activation=name),
            lambda *given, activation=activation: activation(F.linear(*given)),
            [(3, 11, k), (n, k), *[(n,)] * bias],
        )
    yield (
        "addmm",
        lambda c, a, b: addmm(c, a, b, beta=0.5, alpha=2),
        lambda c, a, b: 0.5 * c + 2 * (a @ b),
        [(33, n), (33, k), (k, n)],
    )
    for name, ours, gate in (
        ("swiglu", swiglu, F.silu),
        ("geglu", geglu, F.gelu),
        (
            "geglu (tanh)",
            functools.partial(geglu, approximate="tanh"),
            lambda x: F.gelu(x, approximate="tanh"),
        ),
    ):

        def gated(x, weight, gate=gate):
            one, other = F.linear(x, weight).chunk(2, -1)
            return gate(one) * other

        yield name, ours, gated, [(3, 11, k), (2 * n, k)]
    yield (
        "mlp",
        mlp,
        lambda x, w1, b1, w2, b2: F.linear(F.gelu(F.linear(x, w1, b1)), w2, b2),
        [(3, 11, k), (n, k), (n,), (48, n), (48,)],
    )
    yield (
        "mlp swiglu",
        lambda x, w1, w2: mlp(x, w1, None, w2, None, "swiglu"),
        lambda x, w1, w2: F.linear(gated(x, w1, F.silu), w2),
        [(3, 11, k), (2 * n, k), (48, n)],
    )


def experts(device):
    """Batches of any strides: gates, biases of each; results by TMA, by threads, and reduced."""
    for count, m, n, k in ((3, 40, 72, 64), (4, 33, 71, 39), (5, 200, 136, 264)):
        a = integers(device, count, m, k)
        halves = integers(device, count, k, 2 * n).unflatten(2, (2, n)).movedim(2, 0)
        rows = integers(device, count, 2 * n, k).mT.unflatten(2, (n, 2)).movedim(3, 0)
        bias, scale = integers(device, count, 1, n), integers(device, n)
        for b in (halves, rows):
            found = gemm(a, b, epilogue=lambda g, v, bias: g * 2 - v + bias, bias=bias)
            first, second = a.double() @ b.double()
            assert torch.equal(found, (first * 2 - second + bias).to(a.dtype)), (m, b.stride())
        b, acc = halves[0], a.double() @ halves[0].double()
        results = gemm(
            a,
            b,
            epilogue=lambda acc, bias, scale: (acc + bias, acc.sum(1), (acc * scale).amax(2)),
            bias=bias,
            scale=scale,
        )
        wanted = (acc + bias).to(a.dtype), acc.sum(1).float(), (acc * scale).amax(2).float()
        assert all(map(torch.equal, results, wanted)), (m, n)
        memory = integers(device, count, m, n + 3)
        gemm(a, b, epilogue=lambda acc, c: acc + c, c=scale, out=memory[:, :, 1 : n + 1])
        assert torch.equal(memory[:, :, 1 : n + 1], (acc + scale).to(a.dtype))
        found = gemm(a[0].expand(count, m, k), b)
        assert torch.equal(found, (a[0].double() @ b.double()).to(a.dtype))


def layers_and_gradients(device):
    """Forward and backward, of bf16 tensors and of fp32 ones under autocast, are those of torch."""
    for name, ours, of_torch, shapes in torch_layers():
        for autocast in (False, True):
            inputs = [draw("cpu", *shape, scale=shape[-1] ** -0.25) for shape in shapes]
            exact = [each.double().requires_grad_() for each in inputs]
            given = [each.to(device) for each in inputs]
            given = [(each.float() if autocast else each).requires_grad_() for each in given]
            wanted = of_torch(*exact)
            with torch.autocast(device, torch.bfloat16, enabled=autocast):
                found = ours(*given)
            agree(name, found, wanted)
            grad = draw("cpu", *wanted.shape)
            wanted.backward(grad.double())
            found.backward(grad.to(device))
            for one, other in zip(given, exact, strict=True):
                assert one.grad.dtype == one.dtype
                agree(name, one.grad, other.grad, 2e-2)


def compiled_layers(device):
    """torch.compile traces them without a graph break, and their derivatives."""
    for name, ours, _, shapes in [*torch_layers()][::4]:
        inputs = [draw(device, *shape, scale=0.5).requires_grad_() for shape in shapes]
        torch.compiler.reset()
        compiled = torch.compile(ours, backend="aot_eager", fullgraph=True)
        eager, traced = ours(*inputs), compiled(*inputs)
        assert torch.equal(eager, traced), name
        grad = torch.ones_like(eager)
        for one, other in zip(
            torch.autograd.grad(eager, inputs, grad),
            torch.autograd.grad(traced, inputs, grad),
            strict=True,
        ):
            agree(name, one, other)


BODIES = [
    kinds_of_operands,
    gates,
    memory_beside_out,
    reductions_repeat,
    experts,
    layers_and_gradients,
    compiled_layers,
]
run_on_cpu = functools.cache(plans_run)


@pytest.mark.within(400)
@pytest.mark.compiles(plans=lambda body: run_on_cpu(body))
@on_devices
@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_public_functions(body, device):
    body(device)


@pytest.mark.gpu
def test_a_graph_replays_an_epilogue():
    """Its operands are read at each replay; partial results come from the graph's memory."""
    a, b, bias = integers("cuda", 264, 72), integers("cuda", 72, 136), integers("cuda", 136)

    def run():
        return gemm(a, b, epilogue=lambda acc, bias: (acc + bias, acc.sum(1)), bias=bias)

    run()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found, sums = run()
    for _ in range(3):
        bias.random_(-3, 4)
        found.fill_(torch.nan)
        sums.fill_(torch.nan)
        graph.replay()
        product = a.double() @ b.double()
        assert torch.equal(found, (product + bias).to(a.dtype))
        assert torch.equal(sums, product.sum(1).float())
