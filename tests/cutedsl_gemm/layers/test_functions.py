"""linear, addmm, swiglu and geglu are torch's of the same arguments, with their derivatives."""

import itertools
import operator
from functools import partial

import pytest
import torch
from torch import func, nn
from torch.autograd import forward_ad
from torch.autograd.graph import saved_tensors_hooks
from torch.nn import functional as F

from cutedsl_gemm import addmm, geglu, gemm, linear, mlp, swiglu
from cutedsl_gemm.calls import fused
from cutedsl_gemm.inputs.problem import TMA
from cutedsl_gemm.inputs.request import request
from cutedsl_gemm.kernels.epilogue.derivative import with_stored
from cutedsl_gemm.kernels.epilogue.evaluate import evaluate
from cutedsl_gemm.kernels.epilogue.expression import EpilogueOperand
from cutedsl_gemm.kernels.epilogue.trace import trace
from cutedsl_gemm.layers.activations import ACTIVATIONS, GATES, LINEAR
from cutedsl_gemm.ops.fused_derivatives import leaf_gradients

# of torch's own rules of forward derivatives
pytestmark = [
    pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning"),
    pytest.mark.usefixtures("small_tiles"),
]


def draw(*shape, dtype=torch.bfloat16):
    return torch.randn(shape).to(dtype)


def deep(value):
    return pytest.param(value, marks=pytest.mark.deep)


def near(ours, theirs, within=1e-2):
    assert ours.shape == theirs.shape
    return (ours.double() - theirs.double()).norm() <= within * theirs.double().norm()


def assert_gradients(found, leaves, wanted, truth):
    """Those of `found` at `leaves` are those of `wanted` at `truth`, which is in float64."""
    dy = draw(*found.shape)
    for mine, theirs in zip(
        torch.autograd.grad(found, leaves, dy),
        torch.autograd.grad(wanted, truth, dy.double()),
        strict=True,
    ):
        assert near(mine, theirs)


X, WEIGHT, BIAS = draw(2, 9, 40), draw(72, 40), draw(72)


@pytest.mark.parametrize(
    "activation", [None, "gelu", *(deep(each) for each in ACTIVATIONS if each != "gelu")]
)
def test_linear_is_torchs_with_an_activation(activation):
    def torchs(x, weight, bias):
        return ACTIVATIONS.get(activation, lambda y: y)(F.linear(x, weight, bias))

    leaves = [each.clone().requires_grad_() for each in (X, WEIGHT, BIAS)]
    truth = [each.double().requires_grad_() for each in leaves]
    found, wanted = linear(*leaves, activation), torchs(*truth)
    assert near(found, wanted, 4e-3)
    assert_gradients(found, leaves, wanted, truth)


KNOWN = {
    **{f"linear, {name}": LINEAR[name][1] for name in ACTIVATIONS},
    **{f"{name}, {i}": layer for name, pair in GATES.items() for i, layer in enumerate(pair)},
}


@pytest.mark.parametrize("layer", KNOWN.values(), ids=KNOWN)
def test_the_slopes_of_a_layer_are_those_of_its_epilogue(layer):
    operands = (
        (EpilogueOperand("bias", ("N",)),) if layer in [each[1] for each in LINEAR.values()] else ()
    )
    epilogue = trace(layer.function, operands, 1 if operands else 2)
    kept = with_stored(epilogue, tuple(range(len(operands))))
    accumulators, bias = torch.randn(epilogue.accumulators, 5, 7), [torch.randn(7)] * len(operands)
    results = evaluate(kept.epilogue, [*accumulators], bias)
    known = [*bias, *(results[place] for place in kept.places)]
    grads = [torch.randn(5, 7)] + [None] * (len(results) - 1)
    by_torch, by_rules = (
        leaf_gradients(kept, (5, 7), range(len(bias)), known, grads, gradients)
        for gradients in (layer.backward, None)
    )
    for one, other in zip(by_torch, by_rules, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_frozen_weight_of_a_layer_needs_no_input(compiled):
    """As beside LoRA. What the activation's gradient needs is kept, and the weight."""
    torch._dynamo.reset()
    saved = []
    layer = (lambda x: linear(x, WEIGHT, BIAS, "gelu")), (lambda x: swiglu(x, WEIGHT))
    for product in layer:
        run = torch.compile(product, backend="aot_eager", fullgraph=True) if compiled else product
        x = X.clone().requires_grad_()
        with saved_tensors_hooks(lambda each: saved.append(each.shape) or each, lambda each: each):
            y = run(x)
        found, wanted = (torch.autograd.grad(each.float().sum(), x)[0] for each in (y, product(x)))
        assert near(found, wanted)
    assert saved
    assert not {X.shape, X.flatten(0, -2).shape} & {*saved}


def test_linear_takes_x_of_any_rank():
    for x in (X[0, 0], X[0], X, X[None], X[:0], X.mT.contiguous().mT):
        assert near(linear(x, WEIGHT, BIAS), F.linear(x, WEIGHT, BIAS))
        assert near(linear(x, WEIGHT), F.linear(x, WEIGHT))


def doubled(activation):
    activation.register_forward_hook(lambda module, args, result: 2 * result)
    return activation


def tripled(activation):
    activation.forward = lambda x: 3 * x
    return activation


def reversed_backward(activation):
    activation.register_full_backward_hook(lambda module, of_input, of_output: (-of_input[0],))
    return activation


@pytest.mark.parametrize("change", [doubled, tripled, reversed_backward])
@pytest.mark.parametrize("module", [nn.GELU, nn.Softplus])
def test_an_activation_with_a_hook_or_another_forward_is_called(module, change):
    activation, x = change(module()), X.clone().requires_grad_()
    found = linear(x, WEIGHT, None, activation)
    wanted = activation(F.linear(x.float(), WEIGHT.float()))
    assert near(found, wanted)
    gradients = (torch.autograd.grad(y.float().square().sum(), x)[0] for y in (found, wanted))
    assert near(*gradients)


def test_linear_takes_an_activation_that_is_a_function():
    found = linear(X, WEIGHT, BIAS, lambda y: y.square() + 1)
    assert near(found, F.linear(X.float(), WEIGHT.float(), BIAS.float()).square() + 1)


MODULES = (
    *(nn.GELU("tanh"), nn.ReLU(), nn.SiLU(), nn.Tanh(), nn.Sigmoid(), nn.ELU(0.5), nn.CELU(0.5)),
    *(nn.Hardsigmoid(), nn.Hardswish(), nn.Hardtanh(-0.5, 2), nn.LogSigmoid(), nn.Mish()),
    *(nn.ReLU6(), nn.SELU(), nn.Softplus(2), nn.Threshold(0.5, -1), nn.LeakyReLU(0.2)),
)


@pytest.mark.parametrize("module", [nn.GELU(), *map(deep, MODULES)], ids=str)
def test_linear_takes_torchs_module_of_an_activation_also_in_a_compiled_layer(module):
    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.activation = module

        def forward(self, x):
            return linear(x, WEIGHT, BIAS, self.activation)

    torch._dynamo.reset()
    found = Layer()(X)
    assert near(found, module(F.linear(X.float(), WEIGHT.float(), BIAS.float())))
    compiled = torch.compile(Layer(), backend="aot_eager", fullgraph=True)
    assert torch.equal(compiled(X), found)


@pytest.mark.filterwarnings("ignore")
def test_a_compiled_layer_calls_an_activation_that_no_function_computes():
    """Dynamo follows no epilogue that refers to a module: the activation is one of its own."""
    torch._dynamo.reset()
    module = nn.Sequential(nn.Softplus(), nn.Tanh())
    compiled = torch.compile(linear, backend="aot_eager", fullgraph=True)
    assert near(compiled(X, WEIGHT, BIAS, module), linear(X, WEIGHT, BIAS, module))


def test_a_layer_that_is_differentiated_has_one_plan():
    """Of the kernel that also stores what the derivative needs."""
    linear(X[0], WEIGHT.clone().requires_grad_(), BIAS, "gelu")
    (made,) = fused._calls.values()
    assert len(made.epilogue.results) == 2


def test_gradients_have_the_strides_of_torchs():
    ours = [each.clone().requires_grad_() for each in (X, WEIGHT, BIAS)]
    linear(*ours, "gelu").sum().backward()
    assert [each.grad.stride() for each in ours] == [each.stride() for each in ours]
    weight = WEIGHT.clone().requires_grad_()
    swiglu(X, weight).sum().backward()
    assert weight.grad.is_contiguous()


@pytest.mark.parametrize(
    ("layer", "torchs"),
    [
        (swiglu, lambda gate, up: F.silu(gate) * up),
        (geglu, lambda gate, up: F.gelu(gate) * up),
        (
            lambda x, weight: geglu(x, weight, "tanh"),
            lambda gate, up: F.gelu(gate, approximate="tanh") * up,
        ),
    ],
)
def test_gated_layers_are_torchs(layer, torchs):
    leaves = [each.clone().requires_grad_() for each in (X, WEIGHT)]
    truth = [each.double().requires_grad_() for each in leaves]
    found, wanted = layer(*leaves), torchs(*F.linear(*truth).chunk(2, dim=-1))
    assert near(found, wanted, 4e-3)
    assert_gradients(found, leaves, wanted, truth)


@pytest.mark.parametrize("beta", [0.5, deep(0), deep(1)])
@pytest.mark.parametrize("alpha", [-2.0, deep(1)])
def test_addmm_is_torchs(alpha, beta):
    a, b = draw(18, 40), draw(40, 72)
    for c in (draw(18, 72), BIAS):
        leaves = [each.clone().requires_grad_() for each in (c, a, b)]
        truth = [each.double().requires_grad_() for each in leaves]
        found = addmm(*leaves, alpha=alpha, beta=beta)
        wanted = torch.addmm(*truth, alpha=alpha, beta=beta)
        assert near(found, wanted, 4e-3)
    gradients = (
        torch.autograd.grad(found.sum(), leaves[1:]),
        torch.autograd.grad(wanted.sum(), truth[1:]),
    )
    assert all(near(mine, theirs) for mine, theirs in zip(*gradients, strict=True))


@pytest.mark.parametrize("beta", [0.5, 0])
def test_addmm_of_batches_is_baddbmm(beta):
    a, b = draw(3, 18, 40), draw(3, 40, 72)
    for c in (draw(3, 18, 72), draw(3, 1, 72), BIAS):
        leaves = [each.clone().requires_grad_() for each in (c, a, b)]
        truth = [each.double().requires_grad_() for each in leaves]
        found = addmm(*leaves, alpha=2.0, beta=beta)
        wanted = torch.baddbmm(*truth, alpha=2.0, beta=beta)
        assert near(found, wanted, 4e-3)
        assert_gradients(found, leaves, wanted, truth)


def test_addmm_has_the_derivatives_of_scales_whatever_their_values():
    a, b = draw(18, 40), draw(40, 72)
    for at in (0.0, 1.0, 2.0):
        beta, alpha = scales = [torch.tensor(at, requires_grad=True) for _ in range(2)]
        found = torch.autograd.grad(addmm(BIAS, a, b, beta=beta, alpha=alpha).float().sum(), scales)
        wanted = 18 * BIAS.float().sum(), (a.float() @ b.float()).sum()
        for one, other in zip(found, wanted, strict=True):
            assert abs(one - other) <= 0.02 * abs(other) + 0.5


def test_addmm_writes_to_out_which_may_be_c():
    a, b, c = draw(18, 40), draw(40, 72), draw(18, 72)
    expected = addmm(c, a, b, beta=0.5)
    assert addmm(c, a, b, beta=0.5, out=c) is c
    assert torch.equal(c, expected)


@pytest.mark.parametrize("differentiated", [False, True])
def test_addmm_does_not_read_c_where_beta_is_0(differentiated):
    a, b = draw(18, 40), draw(40, 72)
    c = torch.full((18, 72), torch.nan, dtype=a.dtype, requires_grad=differentiated)
    found = addmm(c, a, b, beta=0)
    assert torch.equal(found, gemm(a, b))
    assert torch.equal(addmm(2.0, a, b, beta=0), found)
    if differentiated:
        (gradient,) = torch.autograd.grad(found.sum(), c)
        assert torch.equal(gradient, torch.zeros_like(c))


BLOCKS = {
    "gelu": lambda z: F.gelu(z),
    "swiglu": lambda z: F.silu(z[..., :36]) * z[..., 36:],
    "relu": lambda z: F.relu(z),
    "tanh": lambda z: torch.tanh(z),
    "geglu_tanh": lambda z: F.gelu(z[..., :36], approximate="tanh") * z[..., 36:],
}


@pytest.mark.parametrize("activation", [*[*BLOCKS][:2], *map(deep, [*BLOCKS][2:])])
def test_mlp_is_two_layers(activation):
    gate = activation in GATES
    w2, b2 = draw(24, 36 if gate else 72), draw(24)
    leaves = [each.clone().requires_grad_() for each in (X, WEIGHT, BIAS, w2, b2)]
    truth = [each.detach().double().requires_grad_() for each in leaves]
    if gate:
        leaves[2] = truth[2] = None
    found = mlp(*leaves, activation)
    wanted = F.linear(BLOCKS[activation](F.linear(*truth[:3])), *truth[3:])
    assert near(found, wanted)
    with torch.no_grad():
        assert torch.equal(mlp(*leaves, activation), found)
    dy, given = draw(*found.shape), [each for each in leaves if each is not None]
    exact = [each for each in truth if each is not None]
    for mine, theirs in zip(
        torch.autograd.grad(found, given, dy),
        torch.autograd.grad(wanted, exact, dy.double()),
        strict=True,
    ):
        assert near(mine, theirs)


@pytest.mark.parametrize("shape", [(1, 24), (24, 1), (1,), (), (24, 24)])
def test_the_gradient_of_a_bias_of_mlp_is_summed_over_what_the_bias_lacks(shape):
    """M, H and N are 24, so that a sum over the wrong mode has the right shape."""
    x, w1, w2 = draw(3, 24, 24)
    leaves = [torch.randn(shape, requires_grad=True) for _ in range(2)]
    weight = draw(24, 24)
    found = torch.autograd.grad((mlp(x, w1, leaves[0], w2, leaves[1]) * weight).sum(), leaves)
    hidden = F.gelu(x.float() @ w1.float().mT + leaves[0])
    expected = hidden @ w2.float().mT + leaves[1]
    gradients = torch.autograd.grad((expected * weight).sum(), leaves)
    assert all(map(partial(near, within=5e-2), found, gradients))  # few values, which cancel


def test_mlp_has_second_derivatives_and_vmap():
    def second(block):
        leaves = [each.clone().requires_grad_() for each in (X[0], WEIGHT, BIAS, WEIGHT.mT)]
        (first,) = torch.autograd.grad(block(*leaves).square().sum(), leaves[:1], create_graph=True)
        return torch.autograd.grad(first.square().sum(), leaves[1:])

    def torchs(x, w1, b1, w2):
        return F.linear(F.gelu(F.linear(x, w1, b1)), w2)

    def ours(x, w1, b1, w2):
        return mlp(x, w1, b1, w2, None)

    assert all(map(near, second(ours), second(torchs)))
    rest = WEIGHT, BIAS, WEIGHT.mT.contiguous()
    assert near(torch.vmap(lambda x: ours(x, *rest))(X), torchs(X, *rest))


def test_mlp_of_no_depth_has_empty_gradients():
    x, w1 = X[0, :, :0].clone().requires_grad_(), WEIGHT[:, :0].clone().requires_grad_()
    mlp(x, w1, BIAS, WEIGHT.mT, None).sum().backward()
    assert x.grad.shape == x.shape
    assert w1.grad.shape == w1.shape


def test_autocast_casts_as_torchs_linear_does():
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for found in (
            linear(X.float(), WEIGHT.float(), BIAS.float(), "relu"),
            swiglu(X.float(), WEIGHT),
            addmm(BIAS.float(), X[0].float(), WEIGHT.float().mT),
        ):
            assert found.dtype == torch.bfloat16
        with pytest.raises(TypeError, match=r"x is torch\.float64"):  # which torch does not cast
            linear(X.double(), WEIGHT.double())
    weight = WEIGHT.float().requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mlp(linear(X.float(), weight), weight.mT, None, weight, BIAS.float()).sum().backward()
    assert weight.grad.dtype == torch.float32


ERRORS = [
    (
        TypeError,
        r"x is torch.float32.*x.to\(.*or use torch.autocast",
        lambda: linear(X.float(), WEIGHT),
    ),
    (TypeError, "weight is torch.float64", lambda: linear(X, WEIGHT.double())),
    (TypeError, "x is list", lambda: linear([1.0], WEIGHT)),
    (
        ValueError,
        r"x has shape \(2, 9, 40\) and weight \(40, 72\): .* \(N, K\)",
        lambda: linear(X, WEIGHT.mT),
    ),
    (
        ValueError,
        "activation is 'swish': it must be one of relu",
        lambda: linear(X, WEIGHT, None, "swish"),
    ),
    (TypeError, "activation is 3", lambda: linear(X, WEIGHT, None, 3)),
    (ValueError, "bias has shape", lambda: linear(X, WEIGHT, BIAS[:7])),
    (
        ValueError,
        r"gate_up has shape \(71, 40\): it must be \(2N, K\)",
        lambda: swiglu(X, WEIGHT[:71]),
    ),
    (ValueError, r"gate_up \(72, 40, 1\)", lambda: swiglu(X, WEIGHT[..., None])),
    (ValueError, "b1 must be None", lambda: mlp(X, WEIGHT, BIAS, WEIGHT, None, "swiglu")),
    (ValueError, "it must be one of relu", lambda: mlp(X, WEIGHT, BIAS, WEIGHT, None, "swish")),
    (ValueError, "approximate is 'erf'", lambda: geglu(X, WEIGHT, "erf")),
    (ValueError, "c has shape", lambda: addmm(draw(3), X[0], WEIGHT.mT)),
    (ValueError, "a must have as many columns", lambda: addmm(BIAS, X[0], WEIGHT)),
]


MATRIX, SMALL, ROW = draw(24, 16), draw(8, 16), draw(8)
ERRORS += [
    (TypeError, "x is int: it must be", lambda: mlp(3, SMALL, None, draw(4, 8), None)),
    (
        TypeError,
        "the hidden layer is torch.bfloat16 and w2 is torch.float16",
        lambda: mlp(MATRIX, SMALL, None, draw(4, 8).half(), None),
    ),
    (
        ValueError,
        r"the hidden layer has shape \(24, 8\) and w2 \(4, 9\): they must be",
        lambda: mlp(MATRIX, SMALL, None, draw(4, 9), None),
    ),
    (ValueError, r"b1 has shape \(9,\)", lambda: mlp(MATRIX, SMALL, draw(9), draw(4, 8), None)),
    (ValueError, r"b2 has shape \(9,\)", lambda: mlp(MATRIX, SMALL, None, draw(4, 8), draw(9))),
    (
        ValueError,
        r"w1 has shape \(7, 16\)",
        lambda: mlp(MATRIX, SMALL[:7], None, SMALL, None, "swiglu"),
    ),
    (ValueError, r"did you mean swiglu\?", lambda: mlp(MATRIX, SMALL, None, SMALL, None, "swigul")),
    (ValueError, r"did you mean relu\?", lambda: linear(MATRIX, SMALL, None, "rleu")),
    (ValueError, r"x has shape \(\)", lambda: linear(MATRIX[0, 0], SMALL)),
    (
        TypeError,
        "x is torch.sparse_coo: it must be dense",
        lambda: swiglu(MATRIX.to_sparse(), SMALL),
    ),
    (TypeError, "weight is dict: it must be a torch.Tensor", lambda: linear(MATRIX, {})),
    (
        TypeError,
        "x is torch.bfloat16 and weight is torch.float16",
        lambda: linear(MATRIX, SMALL.half()),
    ),
    (
        TypeError,
        "beta is None: it must be a number",
        lambda: addmm(ROW, MATRIX, SMALL.mT, beta=None),
    ),
    (
        ValueError,
        r"alpha has shape .*: it must be one number",
        lambda: addmm(ROW, MATRIX, SMALL.mT, alpha=ROW),
    ),
    (ValueError, r"c has shape \(9,\)", lambda: addmm(draw(9), MATRIX, SMALL.mT, beta=0)),
    (TypeError, "c is list", lambda: addmm([1], MATRIX, SMALL.mT, beta=0)),
    (ValueError, "x is a view with the neg", lambda: swiglu(torch._neg_view(MATRIX), SMALL)),
    (
        ValueError,
        "w2 is a view with the negative bit set: pass w2.resolve_neg",
        lambda: mlp(MATRIX, SMALL, None, torch._neg_view(draw(4, 8)), None),
    ),
]


@pytest.mark.parametrize(("error", "message", "call"), ERRORS)
def test_a_wrong_argument_gets_a_message(error, message, call):
    with pytest.raises(error, match=message):
        call()


def test_tensors_without_memory_give_shapes():
    from torch._subclasses import FakeTensorMode

    def layers(x, weight, bias):
        return linear(x, weight, bias, "gelu"), swiglu(x, weight), addmm(bias, x[0], weight.mT)

    with FakeTensorMode():
        fake = layers(*(torch.empty(each.shape, dtype=each.dtype) for each in (X, WEIGHT, BIAS)))
    meta = layers(X.to("meta"), WEIGHT.to("meta"), BIAS.to("meta"))
    for found in (fake, meta):
        assert [each.shape for each in found] == [(2, 9, 72), (2, 9, 36), (9, 72)]


A, B = draw(24, 40), draw(40, 32)
SAMPLES, TANGENT = draw(2, 24, 40), draw(24, 40)
ROW = BIAS[:32]


def activated(a, b=B, bias=ROW):
    return gemm(a, b, epilogue=lambda acc, bias: F.gelu(acc + bias), bias=bias)


def torchs(a, b=B, bias=ROW):
    return F.gelu(a @ b + bias)


def loss(product):
    return lambda a: product(a).float().square().sum()


TRANSFORMS = {
    "grad of a matrix": lambda f: func.grad(lambda r: f(A, B, r).float().square().sum())(
        ROW.expand(24, 32).contiguous()
    ),
    "vmap of a matrix": lambda f: torch.vmap(lambda r: f(A, B, r))(draw(2, 24, 32).fill_(0.5)),
    "vmap": lambda f: torch.vmap(f)(SAMPLES),
    "vmap of an operand": lambda f: torch.vmap(lambda bias: f(A, B, bias))(
        torch.stack([ROW, -ROW])
    ),
    "grad": lambda f: func.grad(loss(f))(A),
    "vmap of grad": lambda f: torch.vmap(func.grad(loss(f)))(SAMPLES),
    "jvp": lambda f: func.jvp(f, (A,), (TANGENT,))[1],
    "vjp": lambda f: func.vjp(f, A, B, ROW)[1](draw(24, 32).fill_(1))[2],
}


DEEP = "vmap of grad", "vmap of a matrix", "vjp", "grad"


@pytest.mark.parametrize("name", [deep(each) if each in DEEP else each for each in TRANSFORMS])
def test_transforms_of_torch_func_agree_with_torch(name):
    assert near(TRANSFORMS[name](activated), TRANSFORMS[name](torchs))


def test_the_accumulator_is_fp32_in_transforms_of_torch_func():
    """It is 1.6e5, which fp16 has not, and the second epilogue takes differences of it."""
    a, b = torch.full((8, 16), 100.0).half(), torch.full((16, 8), 100.0).half()
    for function in (lambda acc: F.silu(acc * 1e-5), lambda acc: acc - 159990):
        wanted = gemm(a, b, epilogue=function)
        assert wanted.isfinite().all()
        for found in (
            torch.vmap(lambda a: gemm(a, b, epilogue=function))(a[None])[0],  # noqa: B023
            func.jvp(lambda a: gemm(a, b, epilogue=function), (a,), (a,))[0],  # noqa: B023
            func.vjp(lambda a: gemm(a, b, epilogue=function), a)[0],  # noqa: B023
        ):
            torch.testing.assert_close(found, wanted)


def test_forward_derivatives_agree_with_torch():
    with forward_ad.dual_level():
        a = forward_ad.make_dual(A, TANGENT)
        ours, theirs = (forward_ad.unpack_dual(f(a)).tangent for f in (activated, torchs))
        assert near(ours, theirs)
        with pytest.raises(ValueError, match="cannot be transformed"):
            gemm(a, B, epilogue=abs, out=draw(24, 32))


def test_second_derivatives_agree_with_torch():
    def second(product):
        leaves = [each.clone().requires_grad_() for each in (A, B, ROW)]
        (first,) = torch.autograd.grad(
            loss(lambda a: product(a, *leaves[1:]))(leaves[0]), leaves[:1], create_graph=True
        )
        return torch.autograd.grad(first.float().square().sum(), leaves[1:])

    for ours, theirs in zip(second(activated), second(torchs), strict=True):
        assert near(ours, theirs)


def test_a_silu_has_second_derivatives():
    def second(layer, dtype):
        leaves = [each.to(dtype).clone().requires_grad_() for each in (X[0], WEIGHT)]
        (first,) = torch.autograd.grad(layer(*leaves).square().sum(), leaves[:1], create_graph=True)
        return torch.autograd.grad(first.square().sum(), leaves)

    def torchs(x, weight):
        gate, up = F.linear(x, weight).chunk(2, dim=-1)
        return F.silu(gate) * up

    layers = [
        (lambda x, w: linear(x, w, None, "silu"), lambda x, w: F.silu(F.linear(x, w))),
        (swiglu, torchs),
    ]
    for ours, theirs in layers:
        gradients = second(ours, torch.bfloat16), second(theirs, torch.float32)
        assert all(map(partial(near, within=3e-2), *gradients))


def one_layer(x, weight, bias, c):
    factor = 2.0
    both = gemm(x[0], weight.mT, epilogue=lambda acc, c: (F.gelu(acc * factor) + c, acc), c=c)
    return both[0].sum() + linear(both[1], weight.mT, bias[:40]).sum()


def every_layer(x, weight, bias, c):
    hidden = linear(x * 1, weight, bias, "gelu_tanh")
    gated = swiglu(hidden, weight.mT.contiguous())  # (40, 72): 20 gates
    return gated.sum() + addmm(c, x[0], weight.mT, beta=0.5).sum() + one_layer(x, weight, bias, c)


@pytest.mark.parametrize("model", [one_layer, deep(every_layer)])
def test_a_compiled_graph_does_not_break_at_an_epilogue(model):
    torch._dynamo.reset()
    ours, theirs = (
        [each.clone().requires_grad_() for each in (X, WEIGHT, BIAS, draw(9, 72).fill_(0.5))]
        for _ in range(2)
    )
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    result, truth = compiled(*ours), model(*theirs)
    assert torch.equal(result, truth)
    for one, other in zip(
        torch.autograd.grad(result, ours), torch.autograd.grad(truth, theirs), strict=True
    ):
        assert near(one, other)


@pytest.mark.deep
def test_a_graph_of_dynamic_shapes_serves_any_number_of_rows():
    torch._dynamo.reset()
    layer = lambda x: linear(x, WEIGHT, BIAS, "silu")  # noqa: E731
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True, dynamic=True)
    for rows in (5, 9, 33):
        x = draw(rows, 40)
        assert torch.equal(compiled(x), layer(x))


@pytest.mark.deep
def test_a_compiled_graph_casts_as_autocast_does():
    torch._dynamo.reset()

    def layer(weight):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return linear(X[0].float(), weight, BIAS.float(), "gelu")

    weight = WEIGHT.float().requires_grad_()
    found = torch.compile(layer, backend="aot_eager", fullgraph=True)(weight)
    assert found.dtype == torch.bfloat16
    assert torch.equal(found, layer(weight))
    found.sum().backward()
    assert weight.grad.dtype == torch.float32


def test_a_compiled_graph_writes_results_to_out():
    torch._dynamo.reset()
    out = draw(24, 32), draw(24, 32)

    def model(a, bias, *out):
        gemm(a, B, epilogue=lambda acc, bias: (acc + bias, acc), bias=bias, out=out)
        return out[0] + 1

    found = torch.compile(model, backend="aot_eager", fullgraph=True)(A, ROW, *out)
    assert torch.equal(found, out[0] + 1)
    assert torch.equal(out[1], gemm(A, B))


@pytest.mark.deep
@pytest.mark.parametrize("strict", [False, True])
def test_layers_are_exported_as_operators(strict):
    class Model(torch.nn.Module):
        def forward(self, x, weight, bias):
            return linear(x, weight, bias, "silu")

    rows = torch.export.Dim("rows", max=128)
    exported = torch.export.export(
        Model(), (X[0], WEIGHT, BIAS), dynamic_shapes=({0: rows}, None, None), strict=strict
    )
    assert "cutedsl_gemm.fused" in exported.graph_module.code
    for x in (X[0], draw(100, 40)):
        assert torch.equal(exported.module()(x, WEIGHT, BIAS), linear(x, WEIGHT, BIAS, "silu"))


@pytest.mark.deep
@pytest.mark.filterwarnings("ignore")  # of torch's own making
def test_the_operator_passes_torchs_opcheck():
    from cutedsl_gemm.ops import fused_operator

    kinds = ("bias", (True,), False, torch.bfloat16), ("s", None, False, None)
    text = fused_operator._text(lambda acc, bias, s: F.gelu(acc + bias) * s, kinds, (1, 2), True)
    leaves = [each.clone().requires_grad_() for each in (A, ROW)]
    arguments = leaves[0], B, [leaves[1]], [0.5], text, None, None, False, False
    torch.library.opcheck(torch.ops.cutedsl_gemm.fused.default, arguments)


# --- what an adversary found


def test_a_layer_takes_any_strides_of_an_extent_of_1():
    """Those that a view leaves there are not those of a contiguous matrix."""
    for m, k, n in itertools.product((1, 8), (1, 16), (1, 8)):
        for x, weight in itertools.product(of_any_strides(m, k), of_any_strides(n, k)):
            assert near(linear(x, weight), F.linear(x, weight))


def of_any_strides(rows, columns):
    memory = draw((rows + 1) * (columns + 1) * 8)
    yield memory[: rows * columns].view(rows, columns)
    yield memory[: rows * columns].view(columns, rows).mT
    yield memory.view(rows + 1, -1)[:rows, :columns]
    yield memory[: rows * (columns + 1)].view(rows, columns + 1)[:, :columns]


def test_a_layer_of_one_output_has_gradients():
    leaves = [draw(8, 16).requires_grad_(), draw(1, 16).requires_grad_()]
    exact = [each.detach().double().requires_grad_() for each in leaves]
    linear(*leaves).square().sum().backward()
    F.linear(*exact).square().sum().backward()
    assert all(
        near(mine.grad, theirs.grad, 3e-2) for mine, theirs in zip(leaves, exact, strict=True)
    )


def test_gradients_with_a_graph_count_a_weight_once_in_each_place():
    """One that both layers share, and one that x is made of."""
    weight, other = (draw(24, 24).div(4).requires_grad_() for _ in range(2))
    x = draw(8, 24)

    def grads(block, create_graph):
        y = block(block(x, weight, None, weight, None), weight, None, other, None)
        return torch.autograd.grad(y.square().sum(), (weight, other), create_graph=create_graph)

    for mine, theirs in zip(grads(mlp, True), grads(mlp, False), strict=True):
        assert near(mine, theirs, 2e-2)


def test_the_gradient_of_relu_passes_nan_as_torchs_does():
    x, w1, w2 = draw(8, 40), draw(24, 40), draw(16, 24)
    x[3] = torch.nan
    bias = draw(24).requires_grad_()
    dy = draw(8, 16)
    ours = mlp(x, w1, bias, w2, None, "relu")
    theirs = F.linear(F.relu(F.linear(x, w1, bias)), w2)
    found, wanted = (torch.autograd.grad(y, bias, dy)[0] for y in (ours, theirs))
    assert wanted.isfinite().all()
    assert near(found, wanted, 2e-2)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_gradients_of_a_scaled_loss_are_finite_in_fp16(activation):
    """As of GradScaler, which begins with a factor of 65,536."""
    x = torch.ones(8, 40, dtype=torch.float16, requires_grad=True)
    y = linear(x, draw(24, 40).half() / 1000, None, activation)
    y.backward(torch.full_like(y, 60_000))
    assert x.grad.isfinite().all()


def test_an_epilogue_that_export_traces_first_leaves_nothing_else_in_the_graph():
    class Scaled(nn.Module):
        def forward(self, a, b):
            return gemm(a, b, epilogue=lambda acc: acc * 7)

    with torch.no_grad():
        exported = torch.export.export(Scaled(), (X[0], WEIGHT.mT), strict=False)
    called = [each.target for each in exported.graph.nodes if each.op == "call_function"]
    assert called == [torch.ops.cutedsl_gemm.fused.default, operator.getitem]


def test_a_graph_exported_without_gradients_has_them_where_they_are_asked_for():
    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight, self.bias = nn.Parameter(draw(16, 40)), nn.Parameter(draw(16))

        def forward(self, x):
            return linear(x, self.weight, self.bias, "gelu")

    layer, x = Layer(), draw(8, 40)
    with torch.no_grad():
        exported = torch.export.export(layer, (x,)).module()
    found, wanted = exported(x), layer(x)
    assert torch.equal(found, wanted)
    for mine, theirs in zip(
        torch.autograd.grad(found.sum(), exported.parameters()),
        torch.autograd.grad(wanted.sum(), layer.parameters()),
        strict=True,
    ):
        assert near(mine, theirs)


def test_a_gradient_that_is_not_defined_stays_so(undefined):
    x = draw(8, 40).requires_grad_()
    undefined(linear(x, WEIGHT, None, "gelu")).sum().backward()
    assert x.grad is None


@pytest.mark.parametrize("mn", [(1, 24), (8, 1), (1, 1), (8, 24)])
@pytest.mark.parametrize("compiled", [False, deep(True)])
def test_a_result_of_a_matrix_alone_is_one_where_an_extent_is_1(mn, compiled):
    """A kernel reads it as a vector elsewhere, which no result can be."""
    torch._dynamo.reset()
    product = torch.compile(gemm, backend="aot_eager", fullgraph=True) if compiled else gemm
    (m, n), function = mn, lambda acc, r: (acc + r, F.silu(r), (r * r).sum(dim=1))
    a, b, r = draw(m, 40), draw(40, n), draw(m, n).requires_grad_()
    exact = r.detach().double().requires_grad_()
    results = product(a, b, epilogue=function, r=r)
    wanted = function(a.double() @ b.double(), exact)
    assert all(map(near, results, wanted))
    for each in results, wanted:
        sum(result.sum() for result in each).backward()
    assert near(r.grad, exact.grad)


def test_a_result_of_an_expanded_matrix_alone_is_one():
    a, b, r = draw(8, 40), draw(40, 24), torch.randn(24).expand(8, 24)
    found = gemm(a, b, epilogue=lambda acc, r: (acc + r, F.silu(r)), r=r)[1]
    assert near(found, F.silu(r))


def test_an_expanded_operand_of_a_compiled_graph_stays_a_vector():
    """The graph knows its extents alone: as a matrix, it would be copied at every call."""
    residual = trace(lambda acc, r: acc + r, (EpilogueOperand("r", ("M", "N")),))
    alone = trace(lambda acc, r: (acc + r, r * 2), (EpilogueOperand("r", ("M", "N")),))
    operands = {"r": torch.randn(24).expand(8, 24)}
    for epilogue, modes in ((residual, ("N",)), (alone, ("M", "N"))):
        asked = request(draw(8, 40), draw(40, 24), epilogue, operands, TMA.with_meta)
        assert asked.epilogue.operands[0].modes == modes


@pytest.mark.parametrize("activation", ["gelu", "swiglu"])
def test_mlp_of_tensors_without_memory_gives_shapes_also_of_those_that_need_gradients(activation):
    empty = partial(torch.empty, dtype=torch.bfloat16, device="meta", requires_grad=True)
    w2 = empty(8, 12 if activation == "swiglu" else 24)
    assert mlp(empty(3, 16), empty(24, 16), None, w2, None, activation).shape == (3, 8)
