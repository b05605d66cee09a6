"""The example of a Llama: the same losses and tokens with torch's products and with gemm's."""

import runpy
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

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


def load(name):
    return SimpleNamespace(**runpy.run_path(str(EXAMPLES / name)))


@pytest.fixture(scope="module")
def example():
    return load("llama.py")


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


def test_the_losses_of_divided_models_are_torchs(mesh, monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES)  # as torchrun does
    example = load("llama_on_ranks.py")
    size, found = example.SIZES["tiny"], []
    for products in example.PRODUCTS:
        model = example.divided(example.build(size.config, products), mesh, products)
        step = example.training(model, size, example.MODES[0])
        found.append(torch.stack([step(), step()]))
    assert torch.allclose(*found, atol=1e-2)
