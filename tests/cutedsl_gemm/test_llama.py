"""The example of a Llama: the same losses and tokens with torch's products and with gemm's."""

import runpy
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from cutedsl_gemm import faster

pytest.importorskip("transformers", reason="needs transformers: pip install -e '.[examples]'")

pytestmark = [
    pytest.mark.deep,
    pytest.mark.usefixtures("small_tiles"),
    pytest.mark.filterwarnings("ignore"),  # of transformers' own making
]

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def example():
    return SimpleNamespace(**runpy.run_path(str(ROOT / "examples/llama.py")))


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
