"""A converted MLP is torch's: results, gradients, hooks, copies; and what is none stays."""

import copy
import math
import pickle
import random
from collections import deque
from contextlib import ExitStack, nullcontext
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn
from torch.autograd.graph import saved_tensors_hooks
from torch.fx import GraphModule
from torch.nn import functional as F
from torch.nn.utils import parametrize
from torch.utils._python_dispatch import BaseTorchDispatchMode
from torch.utils.checkpoint import CheckpointError, checkpoint
from torch.utils.flop_counter import FlopCounterMode

from cutedsl_gemm import convert, restore
from cutedsl_gemm.inputs import pairs
from cutedsl_gemm.models import conversion, faster, faster_mlp
from cutedsl_gemm.models.conversion import GemmMlp
from cutedsl_gemm.models.converted import Converted
from cutedsl_gemm.models.recognition import recognized
from tests.cutedsl_gemm.models.alike import assert_gradients_alike, close, draw, near

pytestmark = [
    pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning"),
    pytest.mark.usefixtures("small_tiles", "on_the_executor"),
]


class TanhGelu(nn.Module):
    def __init__(self):
        super().__init__()
        self.act = partial(F.gelu, approximate="tanh")

    def forward(self, input):
        return self.act(input)


class Written(nn.Module):
    """An activation that is written out."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, input):
        return self.function(input)


def new_gelu(x):
    """That of GPT-2, GPT-J and Phi-2, by transformers."""
    cubic = x + 0.044715 * torch.pow(x, 3.0)
    return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * cubic))


def bloom_gelu(x):
    return x * 0.5 * (1.0 + torch.tanh(0.79788456 * x * (1 + 0.044715 * x * x)))


def erf_gelu(x):
    return x * 0.5 * (1.0 + torch.erf(x / math.sqrt(2.0)))


def quick_gelu(x):
    """That of CLIP."""
    return x * torch.sigmoid(1.702 * x)


def squared_relu(x):
    """That of Nemotron and Persimmon."""
    return F.relu(x).square()


class Llama(nn.Module):
    """The MLP of Llama, Mistral, Qwen and Gemma."""

    def __init__(self, act=None, bias=False):
        super().__init__()
        self.gate_proj = nn.Linear(40, 24, bias=False)
        self.up_proj = nn.Linear(40, 24, bias=False)
        self.down_proj = nn.Linear(24, 40, bias=bias)
        self.act_fn = act or nn.SiLU()

    def forward(self, x):
        return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))


class Phi(nn.Module):
    """The MLP of Phi-3: gate and up are one layer."""

    def __init__(self, gate=0, in_place=False):
        super().__init__()
        self.in_place = in_place
        self.gate_up_proj = nn.Linear(40, 48, bias=False)
        self.down_proj = nn.Linear(24, 40, bias=False)
        self.activation_fn, self.gate = nn.SiLU(), gate

    def forward(self, hidden_states):
        both = self.gate_up_proj(hidden_states)
        halves = both.chunk(2, dim=-1)
        if self.in_place:
            F.relu(both, inplace=True)
        return self.down_proj(halves[1 - self.gate] * self.activation_fn(halves[self.gate]))


class Checking(Llama):
    """It branches on the type of x."""

    def forward(self, x):
        if not isinstance(x, torch.Tensor) or type(x) is not torch.Tensor:
            raise TypeError
        return super().forward(x)


class Swapped(Llama):
    """Its gate has the larger address."""

    def __init__(self):
        super().__init__()
        both = torch.randn(48, 40)
        self.up_proj.weight, self.gate_proj.weight = map(nn.Parameter, both.chunk(2))

    def _apply(self, fn, recurse=True):
        both = fn(torch.cat([self.up_proj.weight.data, self.gate_proj.weight.data]))
        super()._apply(fn, recurse)
        self.up_proj.weight.data, self.gate_proj.weight.data = both.chunk(2)
        return self


class Dropout(Llama):
    """The MLP of ModernBERT and Seed-OSS, which drop nothing by default."""

    def __init__(self, p=0.0):
        super().__init__()
        self.drop = nn.Dropout(p)

    def forward(self, x):
        return self.down_proj(self.drop(self.act_fn(self.gate_proj(x)) * self.up_proj(x)))


class Plain(nn.Module):
    """The MLP of GPT-NeoX, Falcon and SigLIP, without a gate."""

    def __init__(self, act=None, bias=True):
        super().__init__()
        self.up_proj = nn.Linear(40, 48, bias=bias)
        self.act = act or nn.GELU()
        self.down_proj = nn.Linear(48, 40, bias=bias)

    def forward(self, x):
        return self.down_proj(self.act(self.up_proj(x)))


MLPS = {
    "Llama": Llama,
    "no gate": Plain,
    "no gate, relu": lambda: Plain(nn.ReLU()),
    **{
        f"no gate, {type(act).__name__}, no bias": partial(Plain, act, bias=False)
        for act in (nn.ReLU(), nn.SiLU(), nn.Tanh(), nn.Sigmoid(), TanhGelu())
    },
    **{
        f"no gate, {function.__name__}": partial(Plain, Written(function))
        for function in (new_gelu, bloom_gelu, erf_gelu, quick_gelu, squared_relu)
    },
    "new_gelu": lambda: Llama(Written(new_gelu)),
    "in place": lambda: Llama(nn.SiLU(inplace=True)),
    "no gate, in place": lambda: Plain(nn.ReLU(inplace=True)),
    "dropout of nothing": Dropout,
    "gate behind up": Swapped,
    "gelu, a bias": lambda: Llama(nn.GELU(), bias=True),
    "gelu by tanh": lambda: Llama(TanhGelu()),
    "a check of the type": Checking,
    "Phi": Phi,
    "Phi, the gate last": lambda: Phi(1),
}
FEW = "Llama", "gate behind up", "no gate", "no gate, relu", "no gate, new_gelu"
each_mlp = pytest.mark.parametrize(
    "name", [pytest.param(each, marks=() if each in FEW else pytest.mark.deep) for each in MLPS]
)


@pytest.fixture(autouse=True)
def nothing_remembered(monkeypatch):
    monkeypatch.setattr(faster_mlp, "_calls", {})


X = draw(2, 9, 40)
FUSED = 18, 48, 40


@each_mlp
def test_results_and_gradients_are_torchs(name, products):
    theirs = MLPS[name]().bfloat16()
    ours = convert(copy.deepcopy(theirs))
    inputs = [X.clone().requires_grad_() for _ in range(2)]
    results = [each(x) for each, x in zip((ours, theirs), inputs, strict=True)]
    assert near(*results)
    assert products == [FUSED, (18, 40, ours.down_proj.in_features)]
    assert_gradients_alike((ours, theirs), inputs, results)
    with torch.no_grad():
        assert torch.equal(ours(X), results[0])


@pytest.mark.parametrize(
    "x", [X, X[0], X[0, 0], X.mT.contiguous().mT, X.transpose(0, 1), X[:, :1].expand(2, 3, 40)]
)
def test_without_gradients_x_has_any_shape_and_strides_and_the_result_is_no_view(x, products):
    theirs = Llama(bias=True).bfloat16()
    ours = convert(copy.deepcopy(theirs))
    with torch.no_grad():
        for _ in range(2):  # the second call is remembered
            result = ours(x)
            assert near(result, theirs(x))
            assert result.is_contiguous()
    result += theirs.down_proj.bias  # torch refuses this for a view made without gradients
    assert len(products) == 2


def test_a_sparse_weight_is_torchs_whose_result_is_column_major():
    theirs = Llama().bfloat16().requires_grad_(False)
    sparse = nn.Parameter(theirs.down_proj.weight.to_sparse(), requires_grad=False)
    ours = convert(copy.deepcopy(theirs))
    for each in (ours, theirs):
        each.down_proj.weight = sparse
    assert near(ours(X), theirs(X))


@pytest.mark.deep
@each_mlp
def test_autocast_and_second_derivatives_are_torchs(name, products):
    found = []
    for each in (convert(MLPS[name]()), MLPS[name]()):
        torch.manual_seed(0)
        for parameter in each.parameters():
            nn.init.normal_(parameter, std=0.2)
        x = X.float().requires_grad_()
        with torch.autocast("cpu", torch.bfloat16):
            result = each(x)
            (dx,) = torch.autograd.grad(result.float().square().sum(), x, create_graph=True)
            second = torch.autograd.grad(dx.square().sum(), each.down_proj.weight)
        found.append((result, dx, *second))
    assert all(near(*pair, 4e-2) for pair in zip(*found, strict=True))
    assert products[0] == FUSED


def test_a_frozen_gate_has_no_gradient_and_the_others_have_theirs(products):
    theirs = Llama().bfloat16()
    theirs.gate_proj.weight.requires_grad_(False)
    ours = convert(copy.deepcopy(theirs))
    for each in (ours, theirs):
        torch.manual_seed(0)
        each(X).backward(draw(*X.shape))
    assert ours.gate_proj.weight.grad is None
    assert near(ours.up_proj.weight.grad, theirs.up_proj.weight.grad)
    assert FUSED in products


@pytest.mark.parametrize("trained", ["weight", "bias"])
def test_a_frozen_first_layer_keeps_what_the_second_needs(trained, products):
    """And its gradients may be differentiated, by dy."""
    theirs = Llama(bias=True).bfloat16().requires_grad_(False)
    getattr(theirs.down_proj, trained).requires_grad_()
    ours, found, saved = convert(copy.deepcopy(theirs)), [], []
    for each in (ours, theirs):
        leaf, dy = getattr(each.down_proj, trained), draw(*X.shape).fill_(2).requires_grad_()
        with saved_tensors_hooks(lambda x: saved.append(x.shape) or x, lambda x: x):
            y = each(X.detach())
        (grad,) = torch.autograd.grad(y, leaf, dy, create_graph=True)
        found.append((grad, *torch.autograd.grad(grad.float().square().sum(), dy)))
    assert all(near(*pair, 3e-2) for pair in zip(*found, strict=True))
    assert not {X.shape, (18, 40), (24, 40), (40, 24)} & {tuple(shape) for shape in saved}
    assert FUSED in products


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("backend", [None, "eager", "aot_eager"])
@pytest.mark.parametrize("name", [*FEW, "no gate, Tanh, no bias"])
def test_a_frozen_mlp_saves_no_input_and_takes_its_changes(name, backend, products):
    """Beside LoRA, torch's layers keep no inputs: what they need is no larger."""
    torch._dynamo.reset()
    theirs, dy = MLPS[name]().bfloat16().requires_grad_(False), draw(*X.shape)
    ours, saved, found = convert(copy.deepcopy(theirs)), [], []
    ours = torch.compile(ours, backend=backend, fullgraph=True) if backend else ours
    for each in (ours, theirs):
        leaf = X.clone().requires_grad_()
        x = leaf * 1
        with saved_tensors_hooks(lambda given: saved.append(given.shape) or given, lambda x: x):
            y = each(x)
        x.detach().zero_()
        found += torch.autograd.grad(y, leaf, dy)
        if each is ours:
            assert not {X.shape, (18, 40)} & {tuple(shape) for shape in saved}
            assert saved
    assert near(*found)
    assert products[0] == FUSED


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("compiles", [False, pytest.param(True, marks=pytest.mark.deep)])
@pytest.mark.parametrize("frozen", [[], ["x"], ["up"], ["gate", "up"], ["down"], ["bias"]])
@each_mlp
def test_derivatives_of_derivatives_are_torchs(name, frozen, compiles, products):
    torch._dynamo.reset()
    theirs = MLPS[name]().bfloat16()
    ours, found = convert(copy.deepcopy(theirs)), []
    ours = torch.compile(ours, backend="eager", fullgraph=True) if compiles else ours
    for each in (ours, theirs.double()):
        torch.manual_seed(1)
        dtype = next(each.parameters()).dtype
        x, dy = (draw(*X.shape).to(dtype).requires_grad_() for _ in range(2))
        leaves = {"x": x, **dict(getattr(each, "_orig_mod", each).named_parameters())}
        for key, leaf in leaves.items():
            leaf.requires_grad_(not any(part in key for part in frozen))
        trained = [leaf for leaf in leaves.values() if leaf.requires_grad]
        first = torch.autograd.grad(each(x), trained, dy, create_graph=True)
        total = sum(grad.float().square().mean() for grad in first)
        second = torch.autograd.grad(total, [dy, *trained], allow_unused=True)
        found.append([*first, *second])
    for one, other in zip(*found, strict=True):
        assert (one is None) == (other is None)
        assert one is None or close(one, other.to(one.dtype), 3e-2)
    assert products[0] == FUSED


@pytest.mark.parametrize("again", [True, False])
@pytest.mark.parametrize("name", FEW)
def test_a_gradient_that_is_not_defined_stays_so(name, again, undefined, products):
    made, x = convert(MLPS[name]().bfloat16()), X.clone().requires_grad_()
    y = undefined(made(x))
    leaves = x, *made.parameters()
    found = torch.autograd.grad(y.sum(), leaves, create_graph=again, allow_unused=True)
    assert found == (None,) * len(leaves)
    assert products


def test_a_gradient_that_depends_on_nothing_trained_has_no_graph(products):
    made = convert(Plain().bfloat16())
    made.up_proj.requires_grad_(False)
    y = made(X)
    leaves = [*made.down_proj.parameters()]
    found = torch.autograd.grad(y, leaves, draw(*X.shape), create_graph=True)
    assert not any(each.requires_grad for each in found)
    assert products


def test_weights_that_are_parts_are_no_mlp():
    """FSDP1 and ZeRO leave a rank flat parts of them."""
    made = Llama().bfloat16()
    for layer in (made.gate_proj, made.down_proj):
        layer.weight = nn.Parameter(layer.weight.detach().flatten()[:100])
    assert not isinstance(convert(made), GemmMlp)


def test_parameters_and_state_dict_are_the_same_objects_and_keys(products):
    made = Llama().bfloat16()
    before, keys, given = [*made.parameters()], [*made.state_dict()], vars(made).keys()
    convert(made)
    assert all(one is other for one, other in zip(made.parameters(), before, strict=True))
    assert [*made.state_dict()] == keys
    other = Llama().bfloat16()
    made.load_state_dict(other.state_dict(), assign=True)  # other Parameters, anywhere in memory
    assert near(made(X), other(X))
    assert isinstance(made, Llama)
    assert type(made).__name__ == "GemmLlama"
    assert type(restore(made)) is Llama
    assert vars(made).keys() == given
    assert FUSED in products


def test_copies_and_pickles_are_converted_and_independent(products):
    made = convert(Llama().bfloat16())
    wanted = made(X)
    for other in (copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert type(other) is type(made)
        assert torch.equal(other(X), wanted)
        other.gate_proj = nn.Linear(40, 24, bias=False).bfloat16()
        assert not torch.equal(other(X), wanted)
        assert torch.equal(made(X), wanted)
    assert made.half()(X.half()).dtype == torch.float16
    assert FUSED in products


@pytest.mark.parametrize("of_the_class", [False, True])
def test_attributes_of_a_module_are_its_own(of_the_class):
    """Whatever their names are, also if `convert` gives its classes such an attribute."""
    mlp = type("Named", (Llama,), {}) if of_the_class else Llama
    made = mlp().bfloat16()
    (mlp if of_the_class else made)._original_class = "llama"
    assert type(restore(copy.deepcopy(convert(made)))) is mlp


class Stateful(Llama):
    """Its copies have no cache."""

    cache = "full"

    def __getstate__(self):
        return {**vars(self), "cache": None}


class Reduced(Llama):
    """Its copies are new."""

    def __reduce__(self):
        return type(self), ()


class Copying(Llama):
    """It copies itself, and is pickled as others are."""

    def __deepcopy__(self, memo):
        return type(self)()


def copied(module):
    return copy.deepcopy(module), pickle.loads(pickle.dumps(module))


def test_copies_and_pickles_are_those_of_the_class(products):
    made = convert(Stateful().bfloat16())
    wanted = made(X)
    for other in copied(made):
        assert isinstance(other, GemmMlp)
        assert torch.equal(other(X), wanted)
        assert (made.cache, other.cache) == ("full", None)
    assert {type(each) for each in copied(convert(Reduced()))} == {Reduced}
    for made in (Reduced(), Copying()):
        for other in copied(convert(made)):
            assert near(convert(other.bfloat16())(X), restore(other)(X))
    assert products


def test_weights_elsewhere_need_no_new_plan(products):
    for _ in range(3):
        made, others = convert(Llama().bfloat16()), Llama().bfloat16()
        made.load_state_dict(others.state_dict(), assign=True)
        assert near(made(X), others(X))
    orders = {key[1] for key in faster_mlp._calls}
    assert products.count(FUSED) == len(orders) <= 2  # the gate first in memory, or last


@pytest.mark.parametrize("reentrant", [False, True])
def test_a_checkpoint_may_compute_again_with_weights_elsewhere(reentrant, products):
    """As under autocast, which casts them again, and with FSDP2, which gathers them again."""
    theirs = Llama().bfloat16()
    ours = convert(copy.deepcopy(theirs))
    gate, up = ours.gate_proj.weight, ours.up_proj.weight
    places = torch.stack([gate.data, up.data, gate.data])
    gate.data, up.data = places[0], places[1]

    def move():
        gate.data = places[2]  # behind up, and not before it

    assert_checkpointed(ours, theirs, X, move, reentrant)
    assert products


def assert_checkpointed(ours, theirs, given, before_backward, reentrant=False):
    """The gradients of a checkpoint of `ours` are those of `theirs`."""
    inputs = [given.clone().requires_grad_() for _ in range(2)]
    y = checkpoint(ours, inputs[0], use_reentrant=reentrant)
    before_backward()
    y.float().sum().backward()
    theirs(inputs[1]).float().sum().backward()
    assert near(inputs[0].grad, inputs[1].grad)
    for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert near(one.grad, other.grad)


def square():
    """An MLP whose matrices have one shape: by shapes, torch cannot tell what a pass saved."""
    made = Llama()
    for layer in (made.gate_proj, made.up_proj, made.down_proj):
        layer.weight = nn.Parameter(draw(40, 40))
    return made


@pytest.mark.parametrize("offsets", [(0, 1), (1, 0)], ids=str)
def test_a_checkpoint_may_compute_again_with_weights_that_no_kernel_reads_as_one(offsets, products):
    theirs = square()
    ours = convert(copy.deepcopy(theirs))
    gate, places = ours.gate_proj.weight, torch.empty(40 * 40 + 16, dtype=torch.bfloat16)

    def move(offset):
        gate.data = places[offset : offset + gate.numel()].view(gate.shape).copy_(gate.data.clone())

    move(offsets[0])
    assert_checkpointed(ours, theirs, draw(40, 40), partial(move, offsets[1]))
    assert products


def test_a_checkpoint_of_which_torch_computes_one_pass_is_refused(products):
    """FlopCounterMode hooks every module, so that the MLP runs as it was written."""
    made, x = convert(square()), draw(40, 40).requires_grad_()
    for modes in ((FlopCounterMode, nullcontext), (nullcontext, FlopCounterMode)):
        forward, backward = (nullcontext() if m is nullcontext else m(display=False) for m in modes)
        with forward:
            y = checkpoint(made, x, use_reentrant=False)
        with backward, pytest.raises(CheckpointError):
            y.float().sum().backward()
    assert products


def test_a_mode_around_one_pass_of_a_checkpoint_changes_no_gradient(products):
    theirs = Llama().bfloat16()
    ours, mode = convert(copy.deepcopy(theirs)), BaseTorchDispatchMode()
    with ExitStack() as modes:
        assert_checkpointed(ours, theirs, X, partial(modes.enter_context, mode))
    assert products


def test_batches_of_gradients_are_torchs(products):
    theirs = Llama().bfloat16()
    ours, x, dys = convert(copy.deepcopy(theirs)), X.clone().requires_grad_(), draw(3, *X.shape)
    found, wanted = (
        torch.autograd.grad(made(x), x, dys, is_grads_batched=True)[0] for made in (ours, theirs)
    )
    assert near(found, wanted)
    assert products


def test_a_first_bias_of_an_mlp_without_a_gate_may_come_later(products):
    made = convert(Plain(bias=False).bfloat16())
    for bias in (draw(48), None):
        made.up_proj.bias = None if bias is None else nn.Parameter(bias)
        wanted = made.down_proj(F.gelu(F.linear(X, made.up_proj.weight, bias)))
        assert near(made(X), wanted)
    assert products.count(FUSED) == 2


@pytest.mark.parametrize("mlp", [Plain, Llama])
def test_a_short_mlp_trains_as_its_layers_do(mlp, monkeypatch, products):
    for bound, fused in ((18 * 48 * 40 + 1, False), (18 * 48 * 40, True)):
        monkeypatch.setattr(faster_mlp, "LEAST_TRAINED_FUSED", bound)
        monkeypatch.setattr(faster_mlp, "_calls", {})
        made = convert(mlp().bfloat16())
        y = made(X)
        y.float().sum().backward()
        assert bool(faster_mlp._calls) == fused
        with torch.no_grad():
            assert near(made(X), y)
        assert faster_mlp._calls
    assert products


def test_an_mlp_may_be_a_sequential_whose_slices_are_as_written(products):
    theirs = nn.Sequential(nn.Linear(40, 48), nn.Identity(), nn.GELU(), nn.Linear(48, 40))
    ours = convert(copy.deepcopy(theirs.bfloat16()))
    assert near(ours(X), theirs(X))
    assert products == [FUSED, (18, 40, 48)]
    assert near(ours[:3](X), theirs[:3](X))
    ours.append(nn.Tanh())
    assert near(ours(X), theirs(X).tanh())


def test_a_bias_of_one_element_is_torchs(products):
    made = Llama(bias=True).bfloat16()
    made.down_proj.bias = nn.Parameter(draw(1))
    convert(made)(X).float().sum().backward()
    assert made.down_proj.bias.grad == X[..., 0].numel() * 40
    assert FUSED not in products


class Lora(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return self.layer(x) * 2


def hook(module, *_):
    module.seen = True


def replaced(made):
    made.up_proj = Lora(made.up_proj)


def parametrized(made):
    class Doubled(nn.Module):
        def forward(self, weight):
            return weight * 2

    parametrize.register_parametrization(made.down_proj, "weight", Doubled())


def patched(made):
    forward = made.gate_proj.forward
    made.gate_proj.forward = lambda x: forward(x) * 2


def biased(made):
    made.up_proj.bias = nn.Parameter(torch.ones(24, dtype=torch.bfloat16))


class Doubled(nn.Linear):
    def forward(self, input):
        return super().forward(input) * 2


class Scalable(Llama):
    """It may get a scale and a shift, and its activation other modules."""

    def __init__(self):
        super().__init__(nn.Sequential(nn.SiLU()))
        self.register_parameter("scale", None)
        self.register_buffer("shift", None)

    def forward(self, x):
        y = super().forward(x)
        y = y if self.scale is None else y * self.scale
        return y if self.shift is None else y + self.shift


CHANGES = {
    "a module of the activation is another": lambda made: made.act_fn.insert(0, nn.ReLU()),
    "a new Parameter": lambda made: setattr(made, "scale", nn.Parameter(draw(40))),
    "a new buffer": lambda made: setattr(made, "shift", torch.ones(40).bfloat16()),
    "up has a bias": biased,
    "the gate has a bias": lambda made: setattr(made.gate_proj, "bias", nn.Parameter(draw(24))),
    "a layer has a hook": lambda made: made.gate_proj.register_forward_hook(hook),
    "the last layer has a hook": lambda made: made.down_proj.register_forward_pre_hook(hook),
    "the activation has a hook": lambda made: made.act_fn.register_forward_hook(hook),
    "a layer has a backward hook": lambda made: made.up_proj.register_full_backward_pre_hook(hook),
    "a layer is another": replaced,
    "a layer has another class": lambda made: setattr(made.up_proj, "__class__", Doubled),
    "the activation is another": lambda made: setattr(made, "act_fn", nn.ReLU()),
    "a layer is parametrized": parametrized,
    "a layer has a forward of its own": patched,
    "the weights differ in dtype": lambda made: made.gate_proj.double(),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_module_that_changed_runs_as_it_was_written(name, products):
    made, plain = convert(Scalable().bfloat16()), Scalable().bfloat16()
    assert isinstance(made, GemmMlp)
    plain.load_state_dict(made.state_dict())
    for each in (made, plain):
        torch.manual_seed(0)
        CHANGES[name](each)
    results = []
    for each in (made, plain):
        try:
            results.append(each(X.clone().requires_grad_()))
        except RuntimeError as error:
            results.append(str(error))
    if isinstance(results[1], str):
        assert results[0] == results[1]
    else:
        assert near(*results)
        results[0].sum().backward()
    assert FUSED not in products
    seen = [name for name, each in made.named_modules() if hasattr(each, "seen")]
    assert len(seen) == ("hook" in name)


def test_a_module_that_changed_is_recognised_again(products):
    made = convert(Phi().bfloat16())
    made.gate = 1
    assert near(convert(made)(X), restore(made)(X))
    convert(made).activation_fn = nn.GELU()
    assert near(convert(made)(X), restore(made)(X))
    assert products.count(FUSED) == 2
    convert(made).activation_fn = nn.ReLU()
    assert type(convert(made)) is Phi
    assert "_recognized" not in vars(made)
    assert isinstance(made.down_proj, Converted)


def test_an_mlp_that_is_a_graph_module_can_be_copied_and_compiled_again(products):
    """`recompile` writes the forward of a GraphModule to its class."""
    graph = convert(torch.fx.symbolic_trace(Llama().bfloat16()))
    wanted = graph(X)
    graph.recompile()
    for each in (graph, copy.deepcopy(graph)):
        assert torch.equal(each(X), wanted)


def test_a_class_made_of_a_converted_one_stays(products):
    made = convert(Llama().bfloat16())
    made.__class__ = type("Sharded", (type(made),), {})
    convert(made)(X)
    assert FUSED in products


def test_convert_calls_no_hooks():
    made, seen = Llama(), []
    made.act_fn.register_forward_hook(lambda *given: seen.append(given))
    assert isinstance(convert(made), GemmMlp)
    assert not seen


class Tagged(Llama):
    def __init_subclass__(cls, *, tag):
        cls.tag = tag


class Final(type):
    def __new__(cls, name, bases, attributes):
        if Llama not in bases:
            raise TypeError
        return super().__new__(cls, name, bases, attributes)


class Last(Llama, metaclass=Final):
    pass


def test_classes_that_ask_something_of_those_made_of_them(products):
    class Named(Tagged, tag="a name"):
        pass

    named = convert(Named().bfloat16())
    assert near(named(X), restore(named)(X))
    assert FUSED in products
    last = convert(Last())
    assert type(last) is Last
    assert isinstance(last.down_proj, Converted)


def test_a_model_is_converted_as_a_whole_or_not_at_all(monkeypatch):
    model = nn.Sequential(nn.Linear(40, 40), Llama())

    def stopped(module):
        raise KeyboardInterrupt

    monkeypatch.setattr(conversion, "recognized", stopped)
    with pytest.raises(KeyboardInterrupt):
        convert(model)
    assert not any(isinstance(each, Converted) for each in model.modules())


def test_torch_jit_trace_records_torchs_products(products):
    theirs = Llama().bfloat16()
    ours = torch.jit.trace(convert(copy.deepcopy(theirs)), X, check_trace=False)
    other = draw(3, 5, 40)
    assert torch.equal(ours(other), theirs(other))
    assert not products


@pytest.mark.filterwarnings("ignore")  # of torch's own making
def test_a_converted_mlp_is_exported_for_any_rows_and_strides(products):
    made = convert(Llama().bfloat16().requires_grad_(False))
    shapes = {"x": {1: torch.export.Dim("rows")}}
    exported = torch.export.export(made, (X,), dynamic_shapes=shapes)
    for program in (exported, exported.run_decompositions()):
        for x in (X, draw(2, 11, 40), draw(11, 2, 40).transpose(0, 1)):
            assert near(program.module()(x), made(x))
    assert products


@pytest.mark.filterwarnings("ignore")  # of torch's own making
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(
    "make", [Llama, lambda: nn.Linear(40, 24), lambda: nn.Linear(40, 24, False)]
)
def test_an_exported_model_has_gradients(products, make, strict):
    """Its graph holds operators, and no autograd.Function. So do the stages of a pipeline."""
    theirs = make().bfloat16()
    made = torch.export.export(convert(copy.deepcopy(theirs)), (X,), strict=strict).module()
    wanted, found = [], []
    for model, gradients in ((theirs, wanted), (made, found)):
        x = X.clone().requires_grad_()
        model(x).float().square().sum().backward()
        gradients += [x.grad, *(each.grad for _, each in sorted(model.named_parameters()))]
    assert len(found) == len(wanted)
    assert all(map(near, found, wanted))
    assert products


def test_global_hooks_are_called(products):
    made, seen = convert(Llama().bfloat16()), []
    handle = nn.modules.module.register_module_forward_hook(
        lambda module, *_: seen.append(type(module).__name__)
    )
    try:
        made(X)
    finally:
        handle.remove()
    assert seen == ["GemmLinear", "SiLU", "GemmLinear", "GemmLinear", "GemmLlama"]
    assert FUSED not in products


def test_weights_that_no_kernel_reads_as_one_tensor_are_multiplied_one_by_one(
    monkeypatch, products
):
    monkeypatch.setattr(pairs, "REACH", 0)
    theirs = Llama().bfloat16()
    assert near(convert(copy.deepcopy(theirs))(X), theirs(X))
    assert products == [FUSED, (18, 24, 40), (18, 40, 24)]  # gate and up are alike


def test_torch_computes_what_is_expected_to_be_slower(monkeypatch):
    for module in (faster, faster_mlp):
        monkeypatch.setattr(module, "beats_torch", lambda m, n, k: False)
    made = Llama().bfloat16()
    assert torch.equal(convert(copy.deepcopy(made))(X), made(X))


@pytest.mark.parametrize("which", ["x", "gate_proj", "down_proj"])
def test_negative_views_are_torchs(which, products):
    theirs, x = Llama().bfloat16(), X
    if which == "x":
        x = torch._neg_view(x)
    else:
        layer = getattr(theirs, which)
        layer.weight = nn.Parameter(torch._neg_view(layer.weight.detach()))
    ours = convert(copy.deepcopy(theirs))
    for forward in (ours, without_gradients(ours)):
        assert near(forward(x), theirs(x))
    assert products or which == "x"


def test_weights_at_odd_addresses_are_copied(products):
    made, memory = Llama().bfloat16(), draw(24 * 40 + 1)
    made.gate_proj.weight.data = memory[1:].view(24, 40)
    expected = made(X)
    assert near(convert(made)(X), expected)
    assert FUSED in products


def without_gradients(forward):
    return torch.no_grad()(forward)


class Aliasing(Llama):
    """A Parameter of its own is that of a layer."""

    def __init__(self):
        super().__init__()
        self.first = self.gate_proj.weight


class Deeper(Llama):
    def forward(self, x):
        return super().forward(x) + 1


class Counting(Llama):
    calls = 0

    def forward(self, x):
        self.calls += 1
        torch.manual_seed(3)
        return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x).clone())


class Decorated(Llama):
    forward = without_gradients(Llama.forward)


class Without(Llama):
    def forward(self, x):
        with torch.autocast("cpu", enabled=False):
            return super().forward(x)


class Under(Llama):
    def forward(self, x):
        with torch.autocast("cpu", torch.bfloat16):
            return super().forward(x)


class Asking(Llama):
    def forward(self, x):
        return x if torch.is_autocast_enabled("cpu") else super().forward(x)


class Dropping(Llama):
    def forward(self, x):
        products = self.act_fn(self.gate_proj(x)) * self.up_proj(x)
        return self.down_proj(F.dropout(products) if self.training else products)


class AskingForGradients(Llama):
    def forward(self, x):
        return super().forward(x) if torch.is_grad_enabled() else x


class AskingForInference(Llama):
    def forward(self, x):
        return x if torch.is_inference_mode_enabled() else super().forward(x)


class AskingForTensors(Llama):
    def forward(self, x):
        return x if isinstance(x, torch.Tensor) else super().forward(x)


class Keeping(Llama):
    def forward(self, x):
        self.hidden = self.gate_proj(x)
        return self.down_proj(self.act_fn(self.hidden) * self.up_proj(x))


class Numbering(Llama):
    calls = 0

    def forward(self, x):
        self.calls += 1
        return super().forward(x)


class Remembering(Llama):
    def __init__(self):
        super().__init__()
        self.calls = self.empty()

    def forward(self, x):
        self.remember()
        return super().forward(x)


class Nesting(Remembering):
    empty = staticmethod(lambda: {"calls": []})

    def remember(self):
        self.calls["calls"].append(1)


class Queueing(Remembering):
    empty = deque

    def remember(self):
        self.calls.append(1)


class Metering(Remembering):
    empty = staticmethod(lambda: SimpleNamespace(count=0))

    def remember(self):
        self.calls.count += 1


class CountingAll(Remembering):
    empty = dict
    count = 0

    def remember(self):
        type(self).count += 1


class Listing(Llama):
    def __init__(self):
        super().__init__()
        self.act_fn.calls = []

    def forward(self, x):
        self.act_fn.calls.append("forward")
        return super().forward(x)


class Writing(Llama):
    def forward(self, x):
        x.mul_(2)
        return super().forward(x)


class Squared(Llama):
    def forward(self, x):
        return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x * 2))


class Twice(Llama):
    def __init__(self):
        super().__init__()
        del self.up_proj

    def forward(self, x):
        return self.down_proj(self.act_fn(self.gate_proj(x)) * self.gate_proj(x))


class HalvesOfTokens(Phi):
    def forward(self, x):
        gate, up = self.gate_up_proj(x).chunk(2, dim=0)
        return self.down_proj(self.activation_fn(gate) * up)


class ChangingX(Plain):
    def forward(self, x):
        hidden = self.up_proj(x)
        F.relu(x, inplace=True)
        return self.down_proj(self.act(hidden))


class Branching(Llama):
    def forward(self, x):
        return super().forward(x) if x.sum() > 0 else x


class Wider(Llama):
    def forward(self, x, scale=None):
        return super().forward(x)


class Scaled(Llama):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(40))


def halved_in_place():
    made = Phi()
    made.activation_fn = nn.SiLU(inplace=True)
    return made


def biased():
    made = Llama()
    made.gate_proj = nn.Linear(40, 24)
    return made


NONE = {
    "another activation": lambda: Llama(nn.ReLU()),
    "another gate": lambda: Llama(Written(quick_gelu)),
    "nearly silu": lambda: Llama(Written(lambda x: x * torch.sigmoid(1.00001 * x))),
    "nearly relu": lambda: Plain(Written(lambda x: F.relu(x) + 1e-5)),
    "no activation": lambda: Plain(nn.Identity()),
    "an activation of x": lambda: Plain(Written(lambda x: x / x)),
    "a residual": lambda: Plain(Written(lambda x: F.relu(x) + x)),
    "half of a result in place": halved_in_place,
    "a result in place, and its half": lambda: Phi(in_place=True),
    "a bias before the activation": biased,
    "quarters": lambda: Phi(2),
    "dropout": lambda: Dropout(0.5),
    **{
        each.__name__: each
        for each in (
            Aliasing, Deeper, Counting, Decorated, Without, Under, Asking, Squared, Twice,
            Branching, ChangingX, Wider,
            Dropping, AskingForGradients, AskingForInference, AskingForTensors,
            Keeping, Numbering, Listing, Nesting, Queueing, Metering, CountingAll,
            Scaled, Writing, HalvesOfTokens,
        )
    },
}  # fmt: skip


class LeftOut(Llama):
    """Sometimes, as LayerDrop has it."""

    def __init__(self, generator):
        super().__init__()
        self.generator = generator

    def forward(self, x):
        return torch.zeros_like(x) if self.generator.random() < 0.05 else super().forward(x)


CHANCE = {
    "random": random,
    "random.Random": random.Random(0),
    "numpy.random": np.random,
    "numpy's Generator": np.random.default_rng(0),
}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("generator", CHANCE)
def test_a_module_that_leaves_to_chance_what_it_computes_stays(generator, seed):
    random.seed(seed)
    np.random.seed(seed)
    assert recognized(LeftOut(CHANCE[generator])) is None
    drawn = random.random(), np.random.random()
    random.seed(seed)
    np.random.seed(seed)
    assert drawn == (random.random(), np.random.random())


def test_what_an_mlp_refers_to_is_not_copied():
    """A tuple keeps a module from being registered; it may be the whole model."""

    class Uncopied(nn.Linear):
        def __deepcopy__(self, memo):
            raise AssertionError("it is copied")

        __reduce_ex__ = __deepcopy__

    made = Llama()
    made.owner = (Uncopied(4, 4), torch.ones(4))
    assert recognized(made) is not None


@pytest.mark.parametrize("name", NONE)
def test_a_module_that_computes_something_else_stays(name):
    made = NONE[name]()
    before = [str(vars(each)) for each in made.modules()]
    assert recognized(made) is None
    assert [str(vars(each)) for each in made.modules()] == before
    converted = convert(made)
    assert not isinstance(converted, GemmMlp)
    assert isinstance(converted.down_proj, Converted)


@pytest.mark.parametrize("kept", [True, pytest.param(False, marks=pytest.mark.deep)])
@pytest.mark.filterwarnings("ignore")  # of torch's own making
def test_torch_compile_has_one_operator_for_an_mlp(kept, products):
    torch._dynamo.reset()
    code = []

    def backend(graph, inputs):
        code.extend(each.code for each in graph.modules() if isinstance(each, GraphModule))
        return graph

    made = convert(Llama().bfloat16())
    with torch.set_grad_enabled(kept):
        found = torch.compile(made, backend=backend, fullgraph=True)(X)
    assert torch.equal(found, made(X))
    name = "differentiable_mlp" if kept else "mlp"
    assert "".join(code).count(f"torch.ops.cutedsl_gemm.{name}.default(") == 1
    assert "cutedsl_gemm.linear" not in "".join(code)
    assert FUSED in products


@pytest.mark.deep
@pytest.mark.filterwarnings("ignore")
@each_mlp
@pytest.mark.parametrize("faster_than_torch", [True, False])
def test_compiled_gradients_are_torchs(name, faster_than_torch, monkeypatch):
    torch._dynamo.reset()
    monkeypatch.setattr(faster_mlp, "beats_torch", lambda m, n, k: faster_than_torch)
    theirs = MLPS[name]().bfloat16()
    ours = copy.deepcopy(theirs)
    compiled = torch.compile(convert(ours), backend="aot_eager", fullgraph=True, dynamic=True)
    for rows in (9, 11):
        x, dy = draw(2, rows, 40).requires_grad_(), draw(2, rows, 40)
        found, wanted = (
            torch.autograd.grad(each(x), [x, *each.parameters()], dy) for each in (compiled, theirs)
        )
        assert all(map(near, found, wanted))


@pytest.mark.deep
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("compiles", [True, False])
@pytest.mark.parametrize(
    ("mlp", "frozen"),
    [
        *((Llama, each) for each in (["gate_proj", "up_proj"], ["up_proj"], ["down_proj"])),
        *((Plain, each) for each in (["up_proj"], ["down_proj"], ["up_proj.weight"])),
        *((Plain, each) for each in (["up_proj.bias"], ["up_proj.weight", "down_proj"])),
    ],
)
def test_gradients_of_what_is_not_frozen_are_torchs(mlp, frozen, compiles, products):
    torch._dynamo.reset()
    theirs = mlp().bfloat16()
    for name, each in theirs.named_parameters():
        each.requires_grad_(not name.startswith(tuple(frozen)))
    ours = convert(copy.deepcopy(theirs))
    forward = torch.compile(ours, backend="aot_eager", fullgraph=True) if compiles else ours
    dy = draw(*X.shape)
    for each in (forward, theirs):
        each(X).backward(dy)
    for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert (one.grad is None) == (other.grad is None)
        assert one.grad is None or near(one.grad, other.grad)
    assert products[0] == FUSED


@pytest.mark.deep
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("kept", [True, False])
def test_the_operators_pass_torchs_opcheck(count, kept):
    x, *w1 = (draw(*shape) for shape in ((9, 40), *[(48 // count, 40)] * count))
    check_operators(x, w1, None, draw(40, 24), "swiglu", 3, kept)


@pytest.mark.deep
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("activation", "results"), [("gelu", 2), ("relu", 1)])
@pytest.mark.parametrize("bias", [draw(48), None], ids=["bias", "none"])
@pytest.mark.parametrize("faster_than_torch", [True, False])
def test_the_operators_without_a_gate_pass_torchs_opcheck(
    activation, results, bias, faster_than_torch, monkeypatch
):
    monkeypatch.setattr(faster_mlp, "beats_torch", lambda m, n, k: faster_than_torch)
    check_operators(draw(9, 40), [draw(48, 40)], bias, draw(40, 48), activation, results, True)


def check_operators(x, w1, b1, w2, activation, results, kept):
    given = x, w1, b1, w2, None, activation, True, kept
    torch.library.opcheck(torch.ops.cutedsl_gemm.mlp.default, given)
    h, *stored = (draw(9, w2.shape[1]) for _ in range(results))
    dy, backward = draw(9, 40), torch.ops.cutedsl_gemm.mlp_backward.default
    given = dy, x if kept else None, w1, w2, h if kept else None, stored or [h]
    torch.library.opcheck(backward, (*given, activation, True, b1 is not None))
    torch.library.opcheck(backward, (dy, None, [], None, h, [], activation, True, False))


@pytest.mark.parametrize("mlp", [Llama, Plain])
@pytest.mark.parametrize("shape", [(40,), ()], ids=["sparse", "vector"])
def test_gradients_through_a_last_weight_that_is_no_dense_matrix_are_torchs(mlp, shape, products):
    theirs, found = mlp(bias=False).bfloat16().requires_grad_(False), []
    weight = draw(*shape, theirs.down_proj.in_features)
    weight = weight.to_sparse() if shape else weight
    for each in (convert(copy.deepcopy(theirs)), theirs):
        each.down_proj.weight = nn.Parameter(weight, requires_grad=False)
        x = X[0].clone().requires_grad_()
        y = each(x)
        y.float().sum().backward()
        found.append((y, x.grad))
    assert all(map(near, *found))


def test_the_last_bias_may_change_before_the_backward_pass(products):
    made, x = convert(Llama(bias=True).bfloat16()), X.clone().requires_grad_()
    y = made(x)
    wanted = torch.autograd.grad(y.sum(), x, retain_graph=True)[0]
    with torch.no_grad():
        made.down_proj.bias.add_(1)
    assert torch.equal(torch.autograd.grad(y.sum(), x)[0], wanted)
    assert products
