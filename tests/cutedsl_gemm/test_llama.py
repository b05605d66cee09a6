"""The example of a Llama: the same losses and tokens with torch's products and with gemm's."""

import runpy
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh

from cutedsl_gemm import faster
from tests.cutedsl_gemm.ranks import run

pytest.importorskip("transformers", reason="needs transformers: pip install -e '.[examples]'")

pytestmark = [
    pytest.mark.deep,
    pytest.mark.usefixtures("small_tiles"),
    pytest.mark.filterwarnings("ignore"),  # of transformers' own making
]

EXAMPLES = Path(__file__).parents[2] / "examples"


def load(name):
    return SimpleNamespace(**runpy.run_path(str(EXAMPLES / name)))


@pytest.fixture(scope="module")
def example():
    return load("llama.py")


@pytest.fixture(autouse=True)
def on_the_executor(monkeypatch):
    """gemm also computes the products of CPU tensors."""
    monkeypatch.setattr(faster, "DEVICES", ("cpu",))
    monkeypatch.setattr(faster, "_runs", {})


def test_every_linear_layer_is_converted_and_the_losses_are_torchs(example):
    size = example.SIZES["tiny"]
    modules = example.build(size.config, example.GEMM).modules()
    assert not [each for each in modules if type(each) is nn.Linear]
    theirs, ours = (example.losses(size, products, 3) for products in example.PRODUCTS)
    assert any(run is not None for run in faster._runs.values())
    assert torch.allclose(torch.tensor(ours), torch.tensor(theirs), atol=1e-2)
    assert ours[-1] < ours[0]


def test_the_tokens_are_torchs(example):
    size = replace(example.SIZES["tiny"], length=8)
    found = []
    for products in example.PRODUCTS:
        model = example.build(size.config, products)
        run = example.TASKS["decode-4"](model, size, example.EAGER)
        found.append([run().tolist() for _ in range(2)])  # after a prompt, after a token
    assert found[0] == found[1]


def losses_of_both_styles():
    """On one rank of two."""
    sys.path.insert(0, str(EXAMPLES))  # which torchrun does
    example = load("llama_on_ranks.py")
    size, mesh, found = example.SIZES["tiny"], init_device_mesh("cpu", (2,)), []
    for products in example.PRODUCTS:
        model = example.divided(example.build(size.config, products), mesh, products)
        step = example.training(model, size, example.MODES[0])
        found.append(torch.stack([step() for _ in range(2)]))
    assert torch.allclose(*found, atol=1e-2)
    whole = example.build(size.config, example.PRODUCTS[0])
    pairs = zip(whole.parameters(), model.parameters(), strict=True)
    assert all(each.shape == part.shape for each, part in pairs)


def test_the_losses_on_two_ranks_are_torchs(tmp_path):
    run(losses_of_both_styles, 2, tmp_path / "store")
