"""The example of a Llama: the same losses and tokens with torch's products and with gemm's."""

from copy import deepcopy
from dataclasses import replace
from functools import partialmethod
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh

pytestmark = [
    pytest.mark.skipif(
        find_spec("transformers") is None, reason="needs transformers: pip install -e '.[examples]'"
    ),
    pytest.mark.deep,
    pytest.mark.usefixtures("small_tiles", "on_the_executor"),
    pytest.mark.filterwarnings("ignore"),  # of transformers' own making
]

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture(scope="module")
def load():
    """An example, by its name: they import each other, as torchrun lets them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(EXAMPLES)
        yield import_module


@pytest.fixture(scope="module")
def example(load):
    return load("llama")


@pytest.fixture(scope="module")
def on_ranks(load):
    return load("llama_on_ranks")


def test_every_linear_layer_is_converted_and_the_losses_are_torchs(example):
    size = example.SIZES["tiny"]
    modules = example.build(size.config, example.GEMM).modules()
    assert not [each for each in modules if type(each) is nn.Linear]
    theirs, ours = (example.losses(size, products, 2) for products in example.PRODUCTS)
    assert theirs != ours  # in the last bits: gemm computes
    assert torch.allclose(torch.tensor(ours), torch.tensor(theirs), atol=1e-2)


def test_the_tokens_are_torchs(example):
    size = replace(example.SIZES["tiny"], length=8)
    found = []
    for products in example.PRODUCTS:
        model = example.build(size.config, products)
        run = example.TASKS["decode-4"](model, size, example.EAGER)
        found.append([run().tolist() for _ in range(2)])  # after a prompt, after a token
    assert found[0] == found[1]


@pytest.fixture
def mesh(one_rank):
    """torchrun --nproc-per-node 2 tries two."""
    return init_device_mesh("cpu", (1,))


def test_the_losses_of_divided_models_are_torchs(mesh, on_ranks):
    size, found = on_ranks.SIZES["tiny"], []
    for products in on_ranks.PRODUCTS:
        model = on_ranks.divided(on_ranks.build(size.config, products), mesh, products)
        step = on_ranks.training(model, size, on_ranks.MODES[0])
        found.append(torch.stack([step(), step()]))
    assert torch.allclose(*found, atol=1e-2)


def test_all_layers_of_a_divided_model_are_compiled_once(mesh, on_ranks, monkeypatch):
    """The first layer has hooks of its own, and the second gradients; the others are alike."""
    size = deepcopy(on_ranks.SIZES["tiny"])
    size.config.num_hidden_layers = 6
    monkeypatch.setattr(nn.Module, "compile", partialmethod(nn.Module.compile, backend="eager"))
    model = on_ranks.divided(on_ranks.build(size.config, on_ranks.GEMM), mesh, on_ranks.GEMM)
    with torch._dynamo.config.patch(recompile_limit=3, fail_on_recompile_limit_hit=True):
        on_ranks.training(model, size, on_ranks.COMPILED)()
