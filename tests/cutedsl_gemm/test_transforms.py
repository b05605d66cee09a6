"""torch's transforms of gemm: derivatives, vmap, compile, export."""

import sys
from contextlib import nullcontext
from subprocess import run

import pytest
import torch
from torch import func
from torch.autograd import forward_ad
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn import functional as F
from torch.utils._python_dispatch import BaseTorchDispatchMode
from torch.utils._pytree import tree_map
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

from cutedsl_gemm import gemm, linear, mlp, swiglu
from cutedsl_gemm.calls.call import allocating
from cutedsl_gemm.inputs.problem import TMA
from cutedsl_gemm.inputs.tensors import allocator

# of torch's own rules of forward derivatives
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")


def draw(*shape):
    return torch.randn(shape).to(torch.bfloat16)


A, B, A_TANGENT, B_TANGENT = draw(64, 40), draw(40, 72), draw(64, 40), draw(40, 72)


def near(ours, theirs):
    return (ours.double() - theirs.double()).norm() < 1e-2 * theirs.double().norm()


def test_forward_derivatives_agree_with_torch():
    with forward_ad.dual_level():
        a, b = forward_ad.make_dual(A, A_TANGENT), forward_ad.make_dual(B, B_TANGENT)
        for x, y in ((a, b), (a, B), (A, b)):
            ours, theirs = (forward_ad.unpack_dual(f(x, y)).tangent for f in (gemm, torch.mm))
            assert near(ours, theirs)
        with pytest.raises(ValueError, match=r"out: .*cannot be transformed"):
            gemm(a, B, out=draw(64, 72))
        assert torch.equal(gemm(A, B, out=draw(64, 72)), gemm(A, B))  # which has no tangent


def test_a_launch_that_writes_by_address_would_lose_a_tangent():
    """Why no kernel receives a dual tensor: it reads only the memory of the primal."""

    def launch(a, b, out):
        out.detach().copy_(a.detach() @ b.detach())

    with forward_ad.dual_level():
        allocate = allocating(launch, TMA, allocator(A, 64, 72))
        lost = allocate(forward_ad.make_dual(A, A_TANGENT), B, None)
        assert forward_ad.unpack_dual(lost).tangent is None


SAMPLES = torch.stack([draw(64, 40) for _ in range(3)])


def loss(product):
    return lambda a: product(a, B).float().square().sum()


SMALL_A, SMALL_B = A[:4, :8], B[:8]  # a Jacobian takes a product for each element


TRANSFORMS = {
    "vmap": lambda f: torch.vmap(f, in_dims=(0, None))(SAMPLES, B),
    "vmap of mode 1": lambda f: torch.vmap(f, in_dims=(1, None), out_dims=1)(
        SAMPLES.movedim(0, 1), B
    ),
    "grad": lambda f: func.grad(loss(f))(A),
    "vmap of grad": lambda f: torch.vmap(func.grad(loss(f)))(SAMPLES),
    "jvp": lambda f: func.jvp(lambda a: f(a, B), (A,), (A_TANGENT,))[1],
    "vjp": lambda f: func.vjp(f, A, B)[1](draw(64, 72).fill_(1))[1],
    "jacrev": lambda f: func.jacrev(lambda a: f(a, SMALL_B).float().sum(0))(SMALL_A),
    "jacfwd": lambda f: func.jacfwd(lambda a: f(a, SMALL_B).float().sum(0))(SMALL_A),
    "hessian": lambda f: func.hessian(lambda a: f(a, SMALL_B).float().square().sum())(SMALL_A),
}


@pytest.mark.parametrize("transformed", TRANSFORMS.values(), ids=TRANSFORMS)
def test_transforms_of_torch_func_agree_with_torch(transformed):
    assert near(transformed(gemm), transformed(torch.mm))


def test_a_product_of_constants_inside_a_transform_is_computed():
    """What is made inside of grad belongs to its level, and has no memory of its own."""
    x = draw(64, 72)
    dx = func.grad(lambda x: (gemm(A, B) * x).float().sum())(x)
    assert torch.equal(dx, gemm(A, B))
    with pytest.raises(ValueError, match="a must have as many columns"):
        func.grad(lambda x: (gemm(B, B) * x).sum())(x)


def test_an_out_that_is_mapped_over_is_refused():
    with pytest.raises(ValueError, match=r"out: .*cannot be transformed"):
        torch.vmap(lambda out: gemm(A, B, out=out))(torch.stack([draw(64, 72)] * 2))


def test_second_derivatives_agree_with_torch():
    def second(product):
        a, b = A.clone().requires_grad_(), B.clone().requires_grad_()
        (first,) = torch.autograd.grad(loss(lambda x, _: product(x, b))(a), a, create_graph=True)
        return torch.autograd.grad(first.float().square().sum(), b)[0]

    assert near(second(gemm), second(torch.mm))


def test_derivatives_of_sm70_run_on_the_default_kernel():
    a = torch.randn(64, 40, dtype=torch.float16, requires_grad=True)
    b = torch.randn(40, 24, dtype=torch.float16)[:, :23].requires_grad_()
    torch.mm(a, b).sum().backward()
    theirs, a.grad = a.grad, None
    torch._dynamo.reset()
    for product in (gemm, torch.compile(gemm, backend="aot_eager", fullgraph=True)):
        product(a, b, kernel="sm70_volta884").sum().backward()  # K of the derivative is 23
        assert near(a.grad, theirs)
        a.grad = None


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_compiled_graph_does_not_break_at_gemm(backend):
    torch._dynamo.reset()
    compiled = torch.compile(
        lambda a, b: gemm(a * 2, b, tile=(128, 128, 64)) + 1, backend=backend, fullgraph=True
    )
    ours = [x.clone().requires_grad_() for x in (A, B)]
    theirs = [x.clone().requires_grad_() for x in (A, B)]
    result, truth = compiled(*ours), gemm(theirs[0] * 2, theirs[1], tile=(128, 128, 64)) + 1
    assert torch.equal(result, truth)
    for product in (result, truth):
        product.float().square().sum().backward()
    assert all(torch.equal(x.grad, y.grad) for x, y in zip(ours, theirs, strict=True))


def test_a_compiled_graph_may_write_into_out():
    torch._dynamo.reset()
    out = draw(64, 72)
    compiled = torch.compile(
        lambda a, b, out: gemm(a, b, out=out) + 1, backend="aot_eager", fullgraph=True
    )
    assert torch.equal(compiled(A, B, out), gemm(A, B) + 1)
    assert torch.equal(out, gemm(A, B))


def test_a_compiled_result_has_the_strides_of_the_eager_one():
    torch._dynamo.reset()
    b = draw(40, 24)[:, :23]
    compiled = torch.compile(gemm, backend="aot_eager", fullgraph=True)
    assert compiled(A, b).stride() == gemm(A, b).stride() == (23, 1)
    empty = A[:, :0], b[:0]
    assert compiled(*empty).stride() == gemm(*empty).stride() == (23, 1)


def test_a_graph_refuses_an_out_that_requires_grad():
    torch._dynamo.reset()
    compiled = torch.compile(lambda a, out: gemm(a, B, out=out), backend="eager", fullgraph=True)
    with pytest.raises(torch._dynamo.exc.Unsupported, match=r"out: .*has no gradient"):
        compiled(A.clone().requires_grad_(), draw(64, 72))


@pytest.mark.parametrize("strict", [False, True])
def test_it_is_exported_as_an_operator(strict):
    """With a traced shape that is remembered and one that is new; for any M, K and N / 8."""

    class Model(torch.nn.Module):
        def forward(self, a, b):
            return gemm(a, b)

    gemm(A, B)
    m, n, k = map(torch.export.Dim, "mnk")
    shapes = {0: m, 1: 8 * k}, {0: 8 * k, 1: 8 * n}
    for a in (A, A[:24]):
        exported = torch.export.export(Model(), (a, B), dynamic_shapes=shapes, strict=strict)
        assert "cutedsl_gemm.gemm" in exported.graph_module.code
        for others in ((A, B), (draw(100, 48), draw(48, 256))):
            assert torch.equal(exported.module()(*others), gemm(*others))
        with pytest.raises(ValueError, match="an extent must be at most 2147483392"):
            exported.module()(A[:1].expand(2**31, -1), B)


@pytest.mark.filterwarnings("ignore")  # of torch's own making
def test_the_operator_passes_torchs_opcheck():
    from cutedsl_gemm.ops import operator

    assert operator.gemm(A, B, None, None, None, False, False).equal(gemm(A, B))
    a = A.clone().requires_grad_()
    torch.library.opcheck(torch.ops.cutedsl_gemm.gemm.default, (a, B, None, None, False, True))


def test_the_operator_and_its_gradient_are_invariant_if_asked():
    """The exact product is 0, so that the order of the sum alone gives the bits."""
    from cutedsl_gemm.ops import operator

    a, b, order = draw(40, 150), draw(150, 24), torch.randperm(150)
    a, b = torch.cat((a, a[:, order]), 1), torch.cat((b, -b[order]))
    exact, out = gemm(a, b, invariant=True), torch.empty(40, 24, dtype=a.dtype)
    assert not torch.equal(gemm(a, b), exact)
    assert torch.equal(operator.gemm(a, b, None, None, None, False, True), exact)
    assert torch.equal(operator.gemm(a, b, out, None, None, False, True), exact)
    x = draw(40, 24).requires_grad_()
    (operator.gemm(x, b.mT, None, None, None, False, True) * a).sum().backward()
    assert torch.equal(x.grad, exact)


WEIGHT, VECTOR = draw(40, 40), draw(40)
PRODUCTS = {
    "gemm": lambda x: gemm(x, WEIGHT),
    "linear": lambda x: linear(x, WEIGHT, None, "gelu"),
    "swiglu": lambda x: swiglu(x, WEIGHT),
    "an epilogue of several results": lambda x: gemm(
        x, WEIGHT, epilogue=lambda acc, s: (acc * s, acc.sum(dim=1)), s=2.0
    )[0],
    "an epilogue with a vector": lambda x: gemm(
        x, WEIGHT, epilogue=lambda acc, s: F.gelu(acc + s), s=VECTOR
    ),
}
DEEP = pytest.mark.deep
OF_A_FUNCTION = {
    "grad": lambda f: func.grad(lambda x: f(x).float().sum()),
    "jvp": lambda f: lambda x: func.jvp(f, (x,), (x,))[1],
    "vmap": lambda f: lambda x: torch.vmap(f)(x.view(2, 2, 40)),
    "dual": lambda f: lambda x: tangent_of(f, x),
}


def tangent_of(f, x):
    with forward_ad.dual_level():
        return forward_ad.unpack_dual(f(forward_ad.make_dual(x, x))).tangent


@pytest.mark.parametrize("transform", OF_A_FUNCTION)
@pytest.mark.parametrize(
    "product", [each if each == "linear" else pytest.param(each, marks=DEEP) for each in PRODUCTS]
)
def test_a_transform_inside_a_compiled_function_is_that_of_the_function(product, transform):
    """The operators of a graph have no forward derivatives, and torch.func's have no rules."""
    torch._dynamo.reset()
    transformed, x = OF_A_FUNCTION[transform](PRODUCTS[product]), draw(4, 40)
    assert near(torch.compile(transformed, backend="aot_eager")(x), transformed(x))


def vmapped(f):
    torch._dynamo.reset()
    compiled = torch.compile(lambda a: torch.vmap(f)(a[None]), backend="eager", fullgraph=True)
    return lambda a: tree_map(lambda each: each[0], compiled(a))


def test_a_compiled_transform_computes_in_fp32_as_a_kernel_does():
    """Operands are fp32, and autocast does not reach into the product."""
    a, b, r = (torch.randn(shape).half() for shape in ((16, 40), (40, 24), (16, 24)))

    def product(a):
        return gemm(a, b, epilogue=lambda acc, r: (acc, (r * r * 100).sum(dim=1)), r=r)

    with torch.autocast("cpu", torch.bfloat16):
        (found, sums), plain = vmapped(product)(a), vmapped(lambda a: gemm(a, b))(a)
    wanted, exact = product(a)
    assert plain.dtype == found.dtype == torch.float16
    assert near(plain, wanted)
    assert (found.double() - wanted.double()).norm() < 1e-3 * wanted.double().norm()
    torch.testing.assert_close(sums, exact)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a: gemm(a.double(), B.double()), "float64"),
        (lambda a: gemm(a, B, kernel="nope"), "nope"),
        (lambda a: gemm(a, B, epilogue=lambda acc, r: acc + r, r=draw(2, 64, 72)), "r has shape"),
        (lambda a: gemm(a, B, epilogue=lambda acc, r: acc + r, r=draw(9)), "expand|r has"),
    ],
)
def test_a_compiled_transform_refuses_what_gemm_refuses(change, message):
    with pytest.raises((TypeError, ValueError)):
        change(A)
    with pytest.raises(Exception, match=message):
        vmapped(change)(A)


def test_a_compiled_function_writes_to_out_inside_a_level_of_which_it_has_no_tangent():
    torch._dynamo.reset()
    compiled = torch.compile(lambda a, out: gemm(a, B, out=out), backend="eager", fullgraph=True)
    fused = torch.compile(
        lambda a, out: gemm(a, B, epilogue=torch.relu, out=out), backend="eager", fullgraph=True
    )
    with forward_ad.dual_level():
        assert near(compiled(A, draw(64, 72)), gemm(A, B))  # by torch, with another order of K
        assert near(fused(A, draw(64, 72)), gemm(A, B, epilogue=torch.relu))


def test_an_invariant_product_has_gradients_in_a_mode():
    with FlopCounterMode(display=False):
        found = func.grad(lambda a: gemm(a, B, invariant=True).float().sum())(A)
    assert near(found, func.grad(lambda a: gemm(a, B).float().sum())(A))


def test_an_invariant_product_is_refused_in_a_transform_of_a_compiled_function():
    torch._dynamo.reset()
    f = func.grad(lambda x: gemm(x, WEIGHT, invariant=True).float().sum())
    with pytest.raises(Exception, match="invariant is True: inside torch"):
        torch.compile(f, backend="aot_eager", fullgraph=True)(draw(4, 40))


@pytest.mark.parametrize(
    "product",
    [
        gemm,
        lambda a, b: gemm(a, b, epilogue=lambda acc: acc * 2),
        lambda a, b: linear(a, b.mT, None, "gelu"),
        lambda a, b: linear(a, b.mT),
        lambda a, b: swiglu(a, b.mT),
    ],
)
@pytest.mark.parametrize("trained", [False, True])
@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning")
def test_a_product_is_refused_in_a_trace_of_torch_jit(product, trained):
    """It records operators of torch's, and no launches of kernels."""
    a = A.clone().requires_grad_(trained)
    product(a, B)  # a known signature
    with pytest.raises(RuntimeError, match=r"inside torch\.jit\.trace"):
        torch.jit.trace(product, (a, B))


@pytest.mark.filterwarnings("ignore:Attempted to insert a get_attr")  # torch's linearize, of mm too
def test_modes_of_torch_see_the_operator():
    """make_fx records it, and FlopCounterMode counts it; both saw nothing of a launch."""
    x = draw(4, 40)
    graph = make_fx(lambda x, weight: linear(x, weight), tracing_mode="real")(x, WEIGHT)
    assert torch.equal(graph(x, WEIGHT), linear(x, WEIGHT))
    _, tangent = func.linearize(lambda x, weight: gemm(x, weight), x, WEIGHT)
    assert near(tangent(x, 0 * WEIGHT), x @ WEIGHT)
    with FlopCounterMode(display=False) as counted:
        gemm(x, WEIGHT)
        gemm(x, WEIGHT, out=draw(4, 40))
        swiglu(x, WEIGHT)
    assert counted.get_total_flops() == 3 * 2 * 4 * 40 * 40


@pytest.mark.parametrize(("transform", "count"), [("grad", 2), ("jvp", 2), ("vmap", 1)])
@pytest.mark.parametrize("name", PRODUCTS)
def test_a_counter_of_flops_sees_the_products_of_a_transform(name, transform, count):
    """They were launches, which no mode sees."""
    with FlopCounterMode(display=False) as counted:
        OF_A_FUNCTION[transform](PRODUCTS[name])(draw(4, 40))
    assert counted.get_total_flops() == count * 2 * 4 * 40 * 40


@pytest.mark.filterwarnings("ignore:Attempted to insert a get_attr")
@pytest.mark.parametrize("name", PRODUCTS)
def test_a_linearized_product_has_its_tangent(name):
    x, dx, run = draw(4, 40), draw(4, 40), PRODUCTS[name]
    result, tangent = func.linearize(run, x)
    wanted, of_dx = func.jvp(run, (x,), (dx,))
    assert near(result, wanted)
    assert near(tangent(dx), of_dx)


@pytest.mark.parametrize("epilogue", [None, "relu"])
def test_a_compiled_function_that_ran_in_a_mode_first_runs_without_it(epilogue):
    """torch traces no frame of such a function, and then tried those inside the product."""
    torch._dynamo.reset()
    x = draw(4, 40)
    run = torch.compile(lambda x: linear(x, WEIGHT, None, epilogue), backend="aot_eager")
    with FlopCounterMode(display=False):
        run(x)
    assert torch.equal(run(x), linear(x, WEIGHT, None, epilogue))


DECIDED_BY_DATA = {
    "an operand": lambda x, rows: gemm(
        x[rows], WEIGHT, epilogue=lambda acc, r: acc + r, r=x.detach()[rows]
    ),
    "the gradient of an operand": lambda x, rows: linear(x.detach()[rows], WEIGHT, x[0]),
}


@pytest.mark.parametrize("name", DECIDED_BY_DATA)
@torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True)
def test_the_data_may_decide_the_rows_of_a_compiled_product(name):
    torch._dynamo.reset()
    x, rows = draw(5, 40).requires_grad_(), torch.tensor([True, False, True, True, False])
    run = DECIDED_BY_DATA[name]
    compiled = torch.compile(run, backend="aot_eager", fullgraph=True)
    found, wanted = (
        torch.autograd.grad(each(x, rows).float().square().sum(), x)[0] for each in (compiled, run)
    )
    assert near(found, wanted)


SQUARE = draw(40, 40)
CHECKPOINTED = {
    "linear": lambda x: linear(x, SQUARE),
    "linear of three modes": lambda x: linear(x.view(5, 8, 40), SQUARE),
    "linear with a bias": lambda x: linear(x, SQUARE, SQUARE[0]),
    "gemm": lambda x: gemm(x, SQUARE),
    "a gradient that needs the product for an operand alone": lambda x: gemm(
        x, SQUARE, epilogue=lambda acc, r: (acc * r).relu(), r=SQUARE[0]
    ),
    "swiglu": lambda x: swiglu(x, SQUARE),
    "mlp": lambda x: mlp(x, SQUARE, None, SQUARE, None),
}


@pytest.mark.parametrize("name", CHECKPOINTED)
@pytest.mark.parametrize(
    "modes", [(BaseTorchDispatchMode, nullcontext), (nullcontext, BaseTorchDispatchMode)]
)
def test_a_mode_around_one_pass_of_a_checkpoint_changes_no_gradient(modes, name):
    """Both passes save the same tensors. torch tells them apart by their shapes alone."""
    x, product = draw(40, 40).requires_grad_(), CHECKPOINTED[name]
    forward, backward = modes
    with forward():
        y = checkpoint(product, x, use_reentrant=False)
    with backward():
        (found,) = torch.autograd.grad(y.float().sum(), x)
    assert near(found, torch.autograd.grad(product(x).float().sum(), x)[0])


@pytest.mark.parametrize("name", [name for name in CHECKPOINTED if "gradient" not in name])
def test_a_result_may_be_changed_in_place_in_a_mode(name):
    """A view that is made below autograd may not."""
    x, product = draw(40, 40).requires_grad_(), CHECKPOINTED[name]
    with BaseTorchDispatchMode():
        (found,) = torch.autograd.grad(product(x).mul_(2).float().sum(), x)
    assert near(found, 2 * torch.autograd.grad(product(x).float().sum(), x)[0])


def test_a_counter_of_flops_sees_the_first_product_of_a_process():
    """The operators are defined inside it, after it has copied torch's registry."""
    program = (
        "import torch; from torch.utils.flop_counter import FlopCounterMode as Mode\n"
        "from cutedsl_gemm import gemm, swiglu\n"
        "a = torch.ones(16, 16).bfloat16()\n"
        "with Mode(display=False) as mode: gemm(a, a); swiglu(a, a)\n"
        "print(mode.get_total_flops())\n"
    )
    found = run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert int(found.stdout) == 2 * 2 * 16**3


def test_the_backward_pass_of_two_accumulators_has_no_constant_rows():
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: swiglu(x, WEIGHT), backend="aot_eager", dynamic=True)
    weight = WEIGHT.clone().requires_grad_()
    with torch._dynamo.config.patch(recompile_limit=1, fail_on_recompile_limit_hit=True):
        for m in (3, 5, 7):
            x = draw(m, 40).requires_grad_()
            compiled(x).float().sum().backward()
            assert near(x.grad, torch.autograd.grad(swiglu(x, WEIGHT).float().sum(), x)[0])
    x = draw(0, 40).requires_grad_()
    swiglu(x, weight).sum().backward()
    assert x.grad.shape == (0, 40)
    assert not weight.grad.any()


@pytest.mark.filterwarnings("ignore:There is a performance drop")  # of torch's older vmap
@pytest.mark.parametrize("name", PRODUCTS)
def test_gradients_of_a_batch_at_once_are_those_of_each(name):
    """`is_grads_batched=True` has a vmap of its own, as has jacobian(vectorize=True)."""
    x = draw(4, 40).requires_grad_()
    y = PRODUCTS[name](x)
    dys = draw(3, *y.shape)
    (found,) = torch.autograd.grad(y, x, dys, is_grads_batched=True, retain_graph=True)
    each = [torch.autograd.grad(y, x, dy, retain_graph=True)[0] for dy in dys]
    assert near(found, torch.stack(each))


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize("modes", [(0, 1, 2), (1, 0, 2)], ids=["in halves", "interleaved"])
def test_batches_of_gradients_of_a_gated_weight_are_those_of_each(modes):
    """torch's older vmap has no rule for flatten and unflatten."""
    x, gate_up = draw(4, 40), draw(2, 20, 40).permute(modes).contiguous().permute(modes)

    def gated(gate_up):  # (2, N, K)
        return gemm(x, gate_up.mT, epilogue=lambda gate, up: F.silu(gate) * up)

    found, wanted = (
        torch.autograd.functional.jacobian(gated, gate_up, vectorize=at_once)
        for at_once in (True, False)
    )
    assert near(found, wanted)


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize("name", PRODUCTS)
def test_a_jacobian_in_forward_mode_is_that_in_reverse_mode(name):
    """Its tangents are a batch, of which torch gives none to `unpack_dual`."""
    x = draw(2, 40)
    options = {"vectorize": True, "strategy": "forward-mode"}
    found = torch.autograd.functional.jacobian(PRODUCTS[name], x, **options)
    assert near(found, torch.autograd.functional.jacobian(PRODUCTS[name], x))


def test_an_invariant_product_of_a_batch_of_gradients_or_tangents_is_refused():
    """torch would compute it, and its bits depend on M."""
    x = draw(4, 40).requires_grad_()
    y = gemm(x, WEIGHT, invariant=True)
    with pytest.raises(ValueError, match=r"invariant is True: .* batches of gradients"):
        torch.autograd.grad(y, x, draw(3, 4, 40), is_grads_batched=True)
    for options in ({}, {"epilogue": F.relu}):

        def invariant(x, options=options):
            return gemm(x, WEIGHT, invariant=True, **options)

        with pytest.raises(ValueError, match="invariant is True"):
            torch.autograd.functional.jacobian(
                invariant, draw(2, 40), vectorize=True, strategy="forward-mode"
            )


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_of_no_samples_are_no_products(name):
    x = draw(0, 4, 40).requires_grad_()
    product = torch.vmap(PRODUCTS[name])(x)
    assert product.shape == (0, *PRODUCTS[name](draw(4, 40)).shape)
    assert product.dtype == torch.bfloat16
    product.sum().backward()
    assert x.grad.shape == x.shape
