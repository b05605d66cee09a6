"""A converted model is torch's model: its results, gradients, state_dict, copies and transforms."""

import copy
import pickle

import pytest
import torch
from torch import nn
from torch._dynamo.backends.common import aot_autograd
from torch._ops import HigherOrderOperator
from torch.autograd.graph import saved_tensors_hooks
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn import functional as F
from torch.nn.utils import parametrize
from torch.utils._python_dispatch import BaseTorchDispatchMode
from torch.utils.checkpoint import CheckpointError, checkpoint

from cutedsl_gemm import convert, enabled, linear, restore
from cutedsl_gemm.calls import fused as fused_module
from cutedsl_gemm.layers import linear_calls
from cutedsl_gemm.models import faster
from cutedsl_gemm.models.conversion import GemmLinear
from cutedsl_gemm.models.converted import Converted
from tests.cutedsl_gemm.models.alike import assert_gradients_alike, close, draw, near

pytestmark = [
    pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning"),
    pytest.mark.usefixtures("small_tiles", "on_the_executor"),
]


def deep(value):
    return pytest.param(value, marks=pytest.mark.deep)


def model(bias=True, dtype=torch.bfloat16):
    """Two layers that are not recognised as an MLP."""
    layers = nn.Linear(40, 72, bias=bias), nn.Mish(), nn.Linear(72, 24, bias=bias)
    return nn.Sequential(*layers).to(dtype)


X = draw(2, 9, 40)


@pytest.mark.parametrize("bias", [True, False])
def test_results_and_gradients_are_torchs(bias, products):
    theirs = model(bias)
    ours = convert(copy.deepcopy(theirs))
    inputs = [X.clone().requires_grad_() for _ in range(2)]
    results = [each(x) for each, x in zip((ours, theirs), inputs, strict=True)]
    assert near(*results)
    assert_gradients_alike((ours, theirs), inputs, results)
    assert sorted(products) == sorted(
        [(18, 72, 40), (18, 24, 72), (18, 40, 72), (72, 40, 18), (18, 72, 24), (24, 72, 18)]
    )


def test_parameters_and_state_dict_are_the_same_objects_and_keys():
    made = model()
    before, keys = [*made.parameters()], [*made.state_dict()]
    assert convert(made) is made
    assert all(one is other for one, other in zip(made.parameters(), before, strict=True))
    assert [*made.state_dict()] == keys
    made.load_state_dict(model().state_dict())
    model().load_state_dict(made.state_dict())
    assert restore(made) is made
    assert type(made[0]) is nn.Linear
    assert made[0].weight is before[0]


def test_only_nn_linear_itself_is_converted():
    class Lora(nn.Linear):
        _original_class = nn.Linear  # a name that `convert` uses

        def forward(self, x):
            return super().forward(x) * 2

    patched = nn.Linear(40, 24)
    patched.forward = lambda x: x
    attention = nn.MultiheadAttention(32, 4)
    made = convert(nn.ModuleList([Lora(40, 24), patched, attention, nn.LazyLinear(8)]))
    assert not any(isinstance(each, GemmLinear) for each in made.modules())


def test_what_is_no_module_is_refused():
    for function in (convert, restore):
        with pytest.raises(TypeError, match=r"model is Tensor: it must be a torch\.nn\.Module"):
            function(X)


def test_copies_and_pickles_are_converted(products):
    made = convert(model())
    for other in (copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert type(other[0]) is GemmLinear
        assert torch.equal(other(X), made(X))
    assert products
    assert made.half()(X.half()).dtype == torch.float16


def test_a_parametrized_layer_is_left_alone_and_a_converted_one_can_be_parametrized():
    class Doubled(nn.Module):
        def forward(self, weight):
            return weight * 2

    before = parametrize.register_parametrization(model()[0], "weight", Doubled())
    assert not isinstance(convert(before), GemmLinear)
    after = convert(model())
    plain = after(X)
    parametrize.register_parametrization(after[2], "weight", Doubled())
    bias = after[2].bias
    assert near(after(X) - bias, 2 * (plain - bias), 2e-2)
    with pytest.raises(TypeError, match="module 2 is ParametrizedGemmLinear, a class made from"):
        restore(after)
    assert type(after[0]) is GemmLinear
    parametrize.remove_parametrizations(after[2], "weight")
    assert type(restore(after)[2]) is nn.Linear


def test_hooks_and_tied_weights_stay():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.head = nn.Embedding(24, 40), nn.Linear(40, 24, bias=False)
            self.head.weight = self.embedding.weight

        def forward(self, tokens):
            return self.head(self.embedding(tokens))

    theirs = Tied().bfloat16()
    ours, seen = convert(copy.deepcopy(theirs)), []
    ours.head.register_forward_hook(lambda module, given, result: seen.append(result.shape))
    tokens = torch.arange(10)
    results = [each(tokens) for each in (ours, theirs)]
    assert seen == [(10, 24)]
    for result in results:
        result.float().square().sum().backward()
    assert near(ours.embedding.weight.grad, theirs.embedding.weight.grad)
    assert ours.head.weight is ours.embedding.weight


@pytest.mark.parametrize(
    "x",
    [
        draw(40),
        draw(0, 40),
        draw(1, 40),
        draw(9, 80)[:, ::2],
        draw(40, 9).mT,
        draw(9, 41)[:, 1:],
        draw(5, 2, 40).transpose(0, 1),
        draw(1).expand(9, 40),
    ],
    ids=lambda x: f"{tuple(x.shape)}:{x.stride()}",
)
@pytest.mark.parametrize("bias", [True, False])
def test_inputs_of_any_strides_give_torchs_result(x, bias):
    layer = nn.Linear(40, 24, bias=bias).bfloat16()
    wanted = layer(x)
    found = convert(layer)(x)
    assert close(found, wanted)
    assert torch.equal(layer(x.clone()), found)  # of other strides


def test_torch_computes_what_gemm_has_no_kernel_for(products):
    wide = convert(model(dtype=torch.float32))
    assert torch.equal(wide(X.float()), restore(wide)(X.float()))
    layer = convert(nn.Linear(40, 24).bfloat16())
    with pytest.raises(RuntimeError, match="dtype"):
        layer(X.float())
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        layer(draw(3, 41))
    assert layer.to("meta")(X.to("meta")).shape == (2, 9, 24)
    assert not products


def test_torch_computes_what_is_expected_to_be_slower(monkeypatch):
    monkeypatch.setattr(faster, "beats_torch", lambda m, n, k: False)
    made = model()
    assert torch.equal(convert(copy.deepcopy(made))(X), made(X))
    assert [*faster._trained.values()] == [None, None]


def test_a_bias_at_an_odd_address_does_not_run_the_plan_of_an_aligned_one(monkeypatch):
    x, weight, memory, planned = draw(9, 40), draw(24, 40), draw(25), []

    def fused(*given):
        planned.append(given)
        return fused_module.fused(*given)

    monkeypatch.setattr(linear_calls, "fused", fused)
    for bias, plans in ((memory[1:], 0), (memory[:24], 1)):
        assert near(faster.linear(x, weight, bias), F.linear(x, weight, bias))
        assert len(planned) == plans


def test_a_freed_weight_is_not_read():
    layer = convert(nn.Linear(40, 24).bfloat16())
    layer(X)
    layer.weight.untyped_storage().resize_(0)
    assert faster.by_gemm(X, layer.weight, layer.bias) is None


def test_cpu_models_are_torchs(monkeypatch, products):
    monkeypatch.setattr(faster, "DEVICES", ("cuda",))
    made = model()
    assert torch.equal(convert(copy.deepcopy(made))(X), made(X))
    assert not products


@pytest.mark.parametrize("dtype", [torch.bfloat16, deep(torch.float16)])
def test_autocast_casts_as_torchs(dtype, products):
    theirs = model(dtype=torch.float32)
    ours = convert(copy.deepcopy(theirs))
    for each in (ours, theirs):
        with torch.autocast("cpu", dtype):
            result = each(X.float())
        assert result.dtype == dtype
        result.float().sum().backward()
    assert ours[0].weight.grad.dtype == torch.float32
    assert near(ours[0].weight.grad, theirs[0].weight.grad, 2e-2)
    assert len(products) == 5
    with torch.autocast("cpu", dtype):  # which leaves float64 alone
        assert convert(nn.Linear(40, 24).double())(X.double()).dtype == torch.float64


def test_checkpointing_gives_the_same_gradients(products):
    made = convert(model())
    x = X.clone().requires_grad_()
    (wanted,) = torch.autograd.grad(made(x).float().sum(), x)
    for reentrant in (False, True):
        result = checkpoint(made, x, use_reentrant=reentrant)
        if not reentrant:
            assert torch.equal(torch.autograd.grad(result.float().sum(), x)[0], wanted)
        else:
            result.float().sum().backward()
            assert torch.equal(x.grad, wanted)
    assert products


@pytest.mark.parametrize("bias", [True, False])
def test_a_checkpoint_in_enabled_is_refused_or_right(bias, products):
    """torch computes again by itself: it leaves the context before the backward pass."""
    layer = nn.Linear(40, 40, bias=bias).bfloat16()
    x = X.flatten(0, 1).clone().requires_grad_()
    with enabled():
        result = checkpoint(layer, x, use_reentrant=False)
        with pytest.raises(CheckpointError):
            result.float().sum().backward()
    result = checkpoint(layer, x, use_reentrant=False, context_fn=lambda: (enabled(), enabled()))
    found, wanted = (torch.autograd.grad(y.float().sum(), x)[0] for y in (result, layer(x)))
    assert near(found, wanted)
    assert products


def test_a_result_may_be_changed_in_place_in_a_mode(products):
    """As by nn.ReLU(inplace=True) in a FlopCounterMode, or under selective checkpointing."""
    made = convert(nn.Sequential(nn.Linear(40, 24), nn.ReLU(inplace=True)).bfloat16())
    for x in (X, X[0]):
        with BaseTorchDispatchMode():
            made(x).sum().backward()
            with torch.no_grad():
                y = made[0](x)
        before = y.clone()
        y.mul_(made[0].bias)
        assert torch.equal(y, before * made[0].bias)
    assert products


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("backend", [None, "eager", "aot_eager"])
@pytest.mark.parametrize("frozen", ["weight", "input", "neither"])
def test_what_no_gradient_needs_is_not_saved(frozen, backend, products):
    """With frozen weights, as beside LoRA, torch keeps no inputs, and takes their changes."""
    torch._dynamo.reset()
    layer, x, saved = convert(nn.Linear(40, 24).bfloat16()), X.clone(), []
    layer.weight.requires_grad_(frozen != "weight")
    x.requires_grad_(frozen != "input")
    layer = torch.compile(layer, backend=backend, fullgraph=True) if backend else layer
    with saved_tensors_hooks(lambda each: saved.append(each.numel()) or each, lambda each: each):
        y = layer(x)
    y.sum().backward()
    assert (X.numel() in saved) == (frozen != "weight")
    assert (layer.weight.numel() in saved) == (frozen != "input")
    assert products


def test_hooks_may_compute_with_what_is_saved(products):
    def packed(tensor):
        scale = tensor.abs().max()
        return tensor / scale, scale, tensor.dtype

    def unpacked(found):
        return (found[0] * found[1]).to(found[2])

    layer, x = convert(nn.Linear(40, 24).bfloat16()), X.clone().requires_grad_()
    with saved_tensors_hooks(packed, unpacked):
        (found,) = torch.autograd.grad(layer(x).float().sum(), x)
    assert near(found, torch.autograd.grad(layer(x).float().sum(), x)[0])
    assert products


@pytest.mark.parametrize("which", ["x", "weight", "bias"])
def test_negative_views_are_torchs_or_refused(which):
    """Their memory has the other sign. Nothing else tells them from other tensors."""
    layer = nn.Linear(40, 24).bfloat16().requires_grad_(False)
    given = {"x": X[0], "weight": layer.weight, "bias": layer.bias}
    for negative in (False, True):
        tensors = given | ({which: torch._neg_view(given[which])} if negative else {})
        wanted = F.linear(tensors["x"], tensors["weight"], tensors["bias"])
        with enabled():
            assert near(F.linear(*tensors.values()), wanted)
        if negative and which != "bias":
            with pytest.raises(ValueError, match="negative bit"):
                linear(*tensors.values())
        else:
            assert near(linear(*tensors.values()), wanted)


def test_second_derivatives_are_torchs(products):
    theirs = nn.Linear(40, 24).bfloat16()
    ours = convert(copy.deepcopy(theirs))
    found = []
    for each in (ours, theirs):
        x = X.clone().requires_grad_()
        (first,) = torch.autograd.grad(each(x).square().sum(), x, create_graph=True)
        found.append(torch.autograd.grad(first.float().square().sum(), each.weight)[0])
    assert near(*found)


def test_transforms_of_torch_func_are_torchs():
    layer = convert(nn.Linear(40, 24).bfloat16())
    per_sample = torch.func.vmap(layer)(X)
    assert near(per_sample, layer(X))
    weights = dict(layer.named_parameters())

    def loss(weights, x):
        return torch.func.functional_call(layer, weights, (x,)).float().sum()

    grads = torch.func.vmap(torch.func.grad(loss), (None, 0))(weights, X)
    assert grads["weight"].shape == (2, 24, 40)


@pytest.mark.parametrize("name", ["grad", "jvp", "functional_call"])
def test_transforms_of_torch_func_inside_a_compiled_function_are_torchs(name, products):
    """The operators of a graph have no rules of torch.func: gradients were zero."""
    torch._dynamo.reset()
    layer, x = convert(nn.Linear(40, 24).bfloat16()), X[0]
    weights = dict(layer.named_parameters())
    transformed = {
        "grad": lambda x: torch.func.grad(lambda x: layer(x).float().square().sum())(x),
        "jvp": lambda x: torch.func.jvp(layer, (x,), (x,))[1],
        "functional_call": lambda x: torch.func.grad(
            lambda weights: torch.func.functional_call(layer, weights, (x,)).float().sum()
        )(weights)["weight"],
    }[name]
    compiled = torch.compile(transformed, backend="aot_eager", fullgraph=True)
    assert near(compiled(x), transformed(x))
    assert not products


def test_torch_jit_trace_records_torchs_products(products):
    theirs = model()
    ours = torch.jit.trace(convert(copy.deepcopy(theirs)), X, check_trace=False)
    other = draw(3, 5, 40)
    assert torch.equal(ours(other), theirs(other))
    assert not products


def test_modes_see_one_operator_a_layer():
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Seen(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    made = convert(model())
    with Seen():
        made(X).sum().backward()
    assert seen.count(torch.ops.cutedsl_gemm.linear.default) == 5
    seen.clear()
    with FakeTensorMode() as mode, Seen():
        layer = convert(nn.Linear(40, 24, dtype=torch.bfloat16))
        fake = layer(mode.from_tensor(X))
    assert (fake.shape, fake.dtype) == ((2, 9, 24), torch.bfloat16)
    assert seen.count(torch.ops.cutedsl_gemm.linear.default) == 1


@pytest.mark.deep
@pytest.mark.filterwarnings("ignore")  # of torch's own making
@pytest.mark.parametrize("bias", [draw(24), draw(9, 24), None])
def test_the_operators_pass_torchs_opcheck(bias):
    arguments = draw(9, 40), draw(24, 40), bias
    torch.library.opcheck(torch.ops.cutedsl_gemm.linear.default, arguments)
    leaves = [None if each is None else each.requires_grad_() for each in arguments]
    torch.library.opcheck(torch.ops.cutedsl_gemm.exported_linear.default, leaves)


@pytest.mark.deep
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dynamic", [False, True])
def test_torch_compile_has_no_graph_breaks_and_gives_the_same_bits(dynamic):
    torch._dynamo.reset()
    made = convert(model())
    compiled = torch.compile(made, backend="aot_eager", fullgraph=True, dynamic=dynamic)
    for rows in (9, 11):
        x = draw(2, rows, 40).requires_grad_()
        found, wanted = compiled(x), made(x)
        assert torch.equal(found, wanted)
        dy = draw(*wanted.shape)
        for one, other in zip(
            torch.autograd.grad(found, [x, *made.parameters()], dy),
            torch.autograd.grad(wanted, [x, *made.parameters()], dy),
            strict=True,
        ):
            assert torch.equal(one, other)


@pytest.mark.filterwarnings("ignore")
def test_a_compiled_model_has_the_operator_also_under_autocast_and_enabled():
    torch._dynamo.reset()
    code = []

    def backend(graph, inputs):
        code.append(graph.code)
        return graph

    made = convert(model(dtype=torch.float32))

    @torch.compile(backend=backend, fullgraph=True)
    def step(x, w):
        with torch.autocast("cpu", torch.bfloat16):
            return made(x) @ w

    with torch.no_grad(), enabled():
        found = step(X.float(), draw(24, 16))
    assert found.dtype == torch.bfloat16
    assert code[0].count("cutedsl_gemm.linear") == 3


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("activation", [nn.Mish(), nn.GELU()], ids=["layers", "MLP"])
def test_a_compiled_step_has_operators_alone_which_torch_caches(activation, products):
    """AOTAutograd does not cache a graph in which Dynamo followed an autograd.Function."""
    torch._dynamo.reset()
    followed, run = [], []

    def backend(graph, inputs):
        followed.extend(each.target for each in graph.graph.nodes if each.op == "call_function")
        return aot_autograd(fw_compiler=compiler)(graph, inputs)

    def compiler(graph, inputs):
        run.extend(str(each.target) for each in graph.graph.nodes if each.op == "call_function")
        return graph

    layers = nn.Linear(40, 72), activation, nn.Linear(72, 24)
    made = convert(nn.Sequential(*layers).bfloat16())
    torch.compile(made, backend=backend, fullgraph=True)(X).sum().backward()
    assert not [each for each in followed if isinstance(each, HigherOrderOperator)]
    ours = {each for each in run if each.startswith("cutedsl_gemm")}
    names = ["mlp", "mlp_backward"] if isinstance(made, Converted) else ["linear"]
    assert ours == {f"cutedsl_gemm.{name}.default" for name in names}


def test_graphs_that_torch_has_cached_call_the_operators_as_they_are():
    """If this fails, rename the composite operator that calls them, and then change the list."""
    ours = torch.ops.cutedsl_gemm
    operators = ours.linear, ours.mlp, ours.mlp_backward
    layer = "str activation, bool gate_first"
    assert [str(each.default._schema).split("::")[1] for each in operators] == [
        "linear(Tensor x, Tensor weight, Tensor? bias=None) -> Tensor",
        f"mlp(Tensor x, Tensor[] w1, Tensor? b1, Tensor w2, Tensor? b2, {layer}, bool kept)"
        " -> Tensor[]",
        "mlp_backward(Tensor dy, Tensor? x, Tensor[] w1, Tensor? w2, Tensor? h, Tensor[] stored, "
        f"{layer}, bool needs_b1) -> Tensor[]",
    ]


def test_short_training_steps_are_torchs_but_for_few_rows(products, monkeypatch):
    monkeypatch.setattr(faster, "FEW_ROWS", 17)
    monkeypatch.setattr(faster, "LEAST_TRAINED", 20 * 24 * 40)
    layer = convert(nn.Linear(40, 24).bfloat16())
    for rows in (17, 18, 19, 20):
        x, products[:] = draw(rows, 40).requires_grad_(), []
        y = layer(x)
        y.sum().backward()
        assert ((rows, 24, 40) in products) == (rows not in (18, 19))
        with torch.no_grad():
            assert near(layer(x), y)


@pytest.mark.filterwarnings("ignore")
def test_a_checkpoint_of_a_graph_may_compute_it_again_by_that_of_any_rows(products, monkeypatch):
    """So a compiled graph is gemm's, however many rows it has."""
    monkeypatch.setattr(faster, "FEW_ROWS", 4)
    monkeypatch.setattr(faster, "LEAST_TRAINED", 10**6)
    torch._dynamo.reset()
    layer = convert(nn.Linear(40, 40).bfloat16())
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
    inputs = [draw(rows, 40).requires_grad_() for rows in (40, 16)]
    results = [checkpoint(compiled, x, use_reentrant=False) for x in inputs]
    gradients = torch.autograd.grad([y.sum() for y in results], inputs)
    for x, gradient in zip(inputs, gradients, strict=True):
        assert near(gradient, layer.weight.sum(0).expand_as(x))
    assert products


@pytest.mark.parametrize("x", [X, X[0, 0], draw(), X[:, :0], X[..., :20], X[0].to_sparse()])
@pytest.mark.parametrize("weight", [draw(24, 40), draw(40), draw(), draw(24, 40).to_sparse()])
def test_whatever_torch_takes_in_training_it_takes_and_whatever_it_refuses(x, weight):
    def outcome(function):
        try:
            made = function(x, weight.clone().requires_grad_())
        except RuntimeError as error:
            return str(error)
        return made.shape, made.layout

    assert outcome(faster.linear) == outcome(F.linear)


def in_a_region(layer):
    return torch.compiler.nested_compile_region(lambda x: layer(x))


def in_cond(layer):
    return lambda x: torch.cond(x.sum() > 0, layer, torch.sin, (x,))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("region", [in_a_region, deep(in_cond)])
def test_a_region_of_a_compiled_function_has_gradients(region):
    """Dynamo refuses a region with two inputs in the same memory, as a weight and its .mT."""
    torch._dynamo.reset()
    layer, x = convert(nn.Linear(40, 40).bfloat16()), X.abs().requires_grad_()
    leaves = x, *layer.parameters()
    found = torch.compile(region(layer), backend="aot_eager", fullgraph=True)(x)
    gradients = (torch.autograd.grad(y.sum(), leaves) for y in (found, layer(x)))
    assert all(near(one, other) for one, other in zip(*gradients, strict=True))


@pytest.mark.deep
@pytest.mark.filterwarnings("ignore")
@torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True)
def test_columns_of_a_size_that_data_decide_are_compiled():
    """A guard on the strides of x would be one on data."""
    torch._dynamo.reset()
    layer, columns, mask = convert(nn.Linear(40, 24).bfloat16()), draw(40, 9), torch.arange(9) % 2

    def chosen(columns, mask):
        return layer(columns[:, mask.nonzero().flatten()].t())

    found = torch.compile(chosen, backend="eager", fullgraph=True)(columns, mask)
    assert near(found, chosen(columns, mask))


def test_a_graph_of_make_fx_has_gradients():
    layer, x = convert(nn.Linear(40, 24).bfloat16()), X[0]
    leaves = [*layer.parameters()]
    graph = make_fx(layer)(x)
    gradients = (torch.autograd.grad(run(x).sum(), leaves) for run in (graph, layer))
    assert all(near(one, other) for one, other in zip(*gradients, strict=True))


A, B, C, RESIDUAL = draw(18, 40), draw(40, 24), draw(24), draw(18, 24)
ENABLED = {
    "mm": lambda: torch.mm(A, B),
    "mm of transposed": lambda: A.mT.contiguous().mT.mm(B.mT.contiguous().mT),
    "@": lambda: X @ B,
    "matmul": lambda: torch.matmul(X, B),
    "addmm": lambda: torch.addmm(C, A, B),
    "addmm of a matrix": lambda: torch.addmm(RESIDUAL, A, B),
    "addmm of a matrix by columns": lambda: RESIDUAL.mT.contiguous().mT.addmm(A, B),
    "addmm of a matrix at an odd address": lambda: torch.addmm(RESIDUAL[:9, 1:], A[:9], B[:, 1:]),
    "addmm of one row": lambda: torch.addmm(RESIDUAL[:1], A[:1], B),
    "linear": lambda: F.linear(X, B.mT, C),
    "bmm, one b": lambda: torch.bmm(X, B.expand(2, 40, 24)),
    "bmm, a batch of one": lambda: torch.bmm(X[:1], B[None]),
    "linear, by names": lambda: F.linear(X, weight=B.mT, bias=C),
    "linear, bias=None": lambda: F.linear(input=X, weight=B.mT, bias=None),
    "mm, by name": lambda: torch.mm(A, mat2=B),
    "Conv1D of GPT-2": lambda: torch.addmm(C, X.view(-1, 40), B),
    "matmul, one b of more modes": lambda: torch.matmul(X[:, None], B.expand(2, 1, 40, 24)),
    "matmul, one b of all modes": lambda: X[None] @ B[None, None],
    "matmul of a vector": lambda: torch.matmul(A[0], B),
}
NOT_ENABLED = {
    "bmm": lambda: torch.bmm(X, torch.stack([B, B])),
    "vectors": lambda: A @ B[:, 0],
    "out": lambda: torch.mm(A, B, out=torch.empty(18, 24, dtype=A.dtype)),
    "beta": lambda: torch.addmm(C, A, B, beta=2),
    "matmul that broadcasts a": lambda: torch.matmul(A, torch.stack([B, B])),
    "matmul, a b of more modes": lambda: torch.matmul(A, B[None]),
    "matmul of batches": lambda: torch.matmul(X[None], torch.stack([B, B])),
    "matmul of no batches": lambda: torch.matmul(X[:0], B[None].expand(0, 40, 24)),
    "out=None": lambda: torch.mm(A, B, out=None),
    "a row of two modes": lambda: torch.addmm(C[None], A, B),
    "a column": lambda: torch.addmm(RESIDUAL[:, :1], A, B),
    "a number": lambda: torch.addmm(C[0], A, B),
    "a matrix of float32": lambda: torch.mm(A.float(), B.float()).addmm(A.float(), B.float()),
    "float32": lambda: A.float() @ B.float(),
    "a vector and a matrix of sparse": lambda: A.float().to_sparse() @ B.float(),
}


@pytest.mark.parametrize("name", ENABLED)
def test_enabled_sends_products_to_gemm(name, products):
    wanted = ENABLED[name]()
    with enabled():
        assert near(ENABLED[name](), wanted)
    assert len(products) == 1
    ENABLED[name]()
    assert len(products) == 1


@pytest.mark.parametrize("name", NOT_ENABLED)
def test_enabled_leaves_the_rest_to_torch(name, products):
    wanted = NOT_ENABLED[name]()
    with enabled():
        assert torch.equal(NOT_ENABLED[name](), wanted)
    assert not products


def test_enabled_raises_torchs_errors():
    calls = (
        lambda: torch.mm(A, A),
        lambda: torch.mm(A),
        lambda: torch.mm(A, None),
        lambda: torch.addmm(C, A, None),
        lambda: F.linear(A, 3),
        lambda: torch.bmm(X, B[None]),
        lambda: torch.mm(A, B.float()),
        lambda: F.linear(A, bias=C),
        lambda: torch.mm(A, B, mat2=B),
        lambda: torch.matmul(X, torch.stack([B, B, B])),
        lambda: torch.matmul(X, B.expand(3, 40, 24)),
    )
    for call in calls:
        with pytest.raises((RuntimeError, TypeError)) as wanted:
            call()
        with enabled(), pytest.raises(type(wanted.value)) as found:
            call()
        assert str(found.value) == str(wanted.value)


@pytest.mark.parametrize("leaf", [True, False])
def test_enabled_leaves_equal_matrices_their_own_gradients(leaf, products):
    """gemm would multiply by one of them, which would get the gradient of all."""
    b = B.expand(2, 40, 24).detach().requires_grad_() if leaf else B.clone().requires_grad_()
    b = b if leaf else b.expand(2, 40, 24)
    dy = draw(2, 9, 24)
    wanted = torch.autograd.grad(torch.bmm(X, b), b, dy)[0]
    with enabled():
        c = torch.bmm(X, b)
    assert torch.equal(torch.autograd.grad(c, b, dy)[0], wanted)
    assert not products


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_enabled_leaves_nested_tensors_to_torch():
    a, b = (torch.nested.nested_tensor([draw(3, 4), draw(*rest)]) for rest in ((5, 4), (3, 4)))
    wanted = torch.bmm(a, b.transpose(1, 2))
    with enabled():
        for product in (torch.bmm, torch.matmul):
            found = product(a, b.transpose(1, 2))
            assert all(map(torch.equal, found.unbind(), wanted.unbind()))


class Opaque(torch.Tensor):
    """A subclass that has products and no views, as of quantized or sparse weights."""

    @staticmethod
    def __new__(cls, held):
        return torch.Tensor._make_wrapper_subclass(cls, held.shape, dtype=held.dtype)

    def __init__(self, held):
        self.held = held

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        assert function in (torch.ops.aten.mm.default, torch.ops.aten.addmm.default)
        return function(*(each.held if isinstance(each, cls) else each for each in args))


def test_enabled_takes_no_views_of_what_torch_multiplies(products):
    b = Opaque(B)
    with enabled():
        assert torch.equal(torch.mm(A, b), A @ B)
        assert torch.equal(A @ b, A @ B)
        assert torch.equal(torch.addmm(C, A, b), torch.addmm(C, A, B))
    assert len(products) == 2  # of B itself


def test_gradients_of_enabled_are_gemms_after_the_context_too(products):
    a, b = A.clone().requires_grad_(), B.clone().requires_grad_()
    dy = draw(18, 24)
    wanted = torch.autograd.grad(a @ b, (a, b), dy)
    with enabled():
        c = a @ b
    for one, other in zip(torch.autograd.grad(c, (a, b), dy), wanted, strict=True):
        assert near(one, other)
    assert len(products) == 3


def by_columns(matrix):
    return matrix.mT.contiguous().mT


@pytest.mark.parametrize("a", [A, by_columns(A)])
@pytest.mark.parametrize("b", [B, by_columns(B)])
@pytest.mark.parametrize("multiply", [torch.mm, lambda a, b: F.linear(a, b.mT)])
def test_a_gradient_has_the_strides_of_torchs(a, b, multiply):
    leaves = [each.detach().requires_grad_() for each in (a, b)]
    wanted = torch.autograd.grad(multiply(*leaves).sum(), leaves)
    with enabled():
        found = torch.autograd.grad(multiply(*leaves).sum(), leaves)
    assert [each.stride() for each in found] == [each.stride() for each in wanted]
    assert all(near(one, other) for one, other in zip(found, wanted, strict=True))


@pytest.mark.parametrize("residual", [RESIDUAL, by_columns(RESIDUAL)])
def test_enabled_adds_a_matrix_with_its_gradient(residual, products):
    given = [each.clone().requires_grad_() for each in (residual, A, B)]
    dy = draw(18, 24)
    wanted = torch.autograd.grad(torch.addmm(*given), given, dy)
    with enabled():
        c = torch.addmm(*given)
    for found, known in zip(torch.autograd.grad(c, given, dy), wanted, strict=True):
        assert near(found, known)
    assert len(products) == 3


@pytest.mark.parametrize("bias", [True, False])
def test_weights_that_move_or_change_are_read_where_they_are_now(bias):
    """A call remembers views of weights by address alone."""
    ours = convert(model(bias)[:1])
    (layer,) = ours
    for _ in range(3):
        layer.weight.data = draw(72, 40)  # elsewhere
        assert near(ours(X), F.linear(X, layer.weight, layer.bias))
        with torch.no_grad():
            layer.weight.mul_(2)  # in place
        assert near(ours(X), F.linear(X, layer.weight, layer.bias))
    memory = draw(80 * 40)
    for start in (0, 160, 320):  # one storage, several addresses
        layer.weight.data = memory[start : start + 72 * 40].view(72, 40)
        assert near(ours(X), F.linear(X, layer.weight, layer.bias))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(9, 40), (2, 9, 40)])
@pytest.mark.parametrize("enabled", [True, False])
def test_a_result_can_be_changed_in_place(bias, shape, enabled):
    """As in x = linear(x); x += y, or by nn.ReLU(inplace=True)."""
    layer, x, y = convert(model(bias)[:1]), draw(*shape), draw(72).requires_grad_()
    with torch.set_grad_enabled(enabled):
        result = layer(x)
    before = result.detach().clone()
    result += y
    result.relu_().sum().backward()
    assert torch.equal(y.grad, (before + y > 0).to(y.dtype).view(-1, 72).sum(0))


def test_weights_first_used_in_inference_mode_can_be_trained():
    ours = convert(model()[:1])
    with torch.inference_mode():
        ours(X)
    ours(X).sum().backward()
    assert near(ours[0].weight.grad, X.sum((0, 1)).expand(72, -1))


@pytest.mark.parametrize("shape", [(9, 40), (2, 9, 40)])
def test_batches_of_gradients_of_a_layer_are_torchs(shape, products):
    layer, x = nn.Linear(40, 24).bfloat16(), draw(*shape).requires_grad_()
    dys = draw(3, *shape[:-1], 24)
    found, wanted = (
        torch.autograd.grad(made(x), x, dys, is_grads_batched=True)[0]
        for made in (convert(copy.deepcopy(layer)), layer)
    )
    assert near(found, wanted)
    assert products


class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.up = (nn.Linear(40, 24, bias=False) for _ in range(2))
        self.down = nn.Linear(24, 40)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


@pytest.mark.parametrize("module", [nn.Linear(40, 24), Gated()], ids=["layer", "gated MLP"])
def test_torch_fx_traces_a_converted_module_under_autocast(module):
    made = convert(nn.Sequential(module, nn.ReLU()))
    with torch.autocast("cpu", torch.bfloat16):
        graph = torch.fx.symbolic_trace(made)
        assert near(graph(X.float()), made(X.float()))
