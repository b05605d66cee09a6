"""The Llama of llama.py on several GPUs, with tensor and sequence parallelism.

    torchrun --nproc-per-node 2 examples/llama_on_ranks.py

Each rank has a part of every weight and, outside attention and MLP, a part of the tokens. With
torch's styles, tokens are gathered before a product, and partial sums are scattered after it. With
`Gathered` and `Scattered`, below, they travel while the product runs. Parameters are DTensors of
the same placements in both models.
"""

from __future__ import annotations

import argparse
import os
import statistics
from typing import Any

import torch
import torch.distributed as dist
from llama import (
    COMPILED,
    DEVICE,
    GEMM,
    MODES,
    PRODUCTS,
    ROUNDS,
    SIZES,
    TORCH,
    WARM_UP,
    Run,
    Size,
    batches,
    build,
    seconds,
)
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import Placement, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    ParallelStyle,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    loss_parallel,
    parallelize_module,
)
from torch.nn import functional as F
from transformers import PreTrainedModel

from cutedsl_gemm.distributed.collectives import all_gather_gemm, gemm_reduce_scatter

TOKENS = Shard(1)  # of hidden states (batch, tokens, width)


class Gathered(ParallelStyle):
    """A module whose first layers multiply the tokens of all ranks, which come meanwhile.

    One product serves the named layers. It becomes the module's input, and each layer takes its
    columns of that. The hook finds what it needs in the module: torch.compile would compile a
    closure again for each decoder layer.
    """

    def __init__(self, *names: str) -> None:
        self.names = names

    def _apply(self, module: nn.Module, mesh: DeviceMesh) -> nn.Module:
        start = 0
        for name in self.names:
            layer = module.get_submodule(name)
            distribute(layer, mesh, Shard(0))
            layer.__class__ = Columns
            layer.start, layer.stop = start, start + layer.weight.to_local().shape[0]
            start = layer.stop
        module.gathered, module.mesh = self.names, mesh
        module.register_forward_pre_hook(multiply, with_kwargs=True)
        return module


class Columns(nn.Linear):
    """A layer of a `Gathered` module: its columns of the product that the module was given."""

    start: int
    stop: int

    def forward(self, product: Tensor) -> Tensor:
        return product[..., self.start : self.stop]


def multiply(module: nn.Module, args: tuple[Tensor, ...], kwargs: dict[str, Any]) -> Any:
    """The hook of a `Gathered` module: its input, multiplied by the weights of its first layers."""
    layers = [module.get_submodule(name) for name in module.gathered]
    weight = torch.cat([layer.weight.to_local() for layer in layers])
    if args:
        return (gathered(args[0], weight, module.mesh), *args[1:]), kwargs
    product = gathered(kwargs["hidden_states"], weight, module.mesh)
    return args, {**kwargs, "hidden_states": product}


class Scattered(ParallelStyle):
    """A layer whose sums over the ranks leave for the rank of their token as they are computed."""

    def _apply(self, module: nn.Module, mesh: DeviceMesh) -> nn.Module:
        distribute(module, mesh, Shard(1))
        module.__class__, module.mesh = ScatteredLinear, mesh
        return module


class ScatteredLinear(nn.Linear):
    """See `Scattered`."""

    mesh: DeviceMesh

    def forward(self, x: Tensor) -> Tensor:
        return scattered(x, self.weight.to_local(), self.mesh)


def distribute(layer: nn.Linear, mesh: DeviceMesh, placement: Placement) -> None:
    layer.weight = nn.Parameter(distribute_tensor(layer.weight, mesh, [placement]))


def gathered(x: Tensor, weight: Tensor, mesh: DeviceMesh) -> Tensor:
    """x (batch, tokens of this rank, K) · weightᵀ (K, N): (batch, tokens, N)."""
    rows = x.transpose(0, 1).flatten(0, 1)
    product = all_gather_gemm(rows, weight.mT, mesh.get_group())
    return product.unflatten(0, (-1, len(x))).transpose(0, 1)


def scattered(x: Tensor, weight: Tensor, mesh: DeviceMesh) -> Tensor:
    """x (batch, tokens, K) · weightᵀ (K, N), summed: (batch, tokens of this rank, N)."""
    rows = x.transpose(0, 1).flatten(0, 1)
    product = gemm_reduce_scatter(rows, weight.mT, mesh.get_group())
    return product.unflatten(0, (-1, len(x))).transpose(0, 1)


LAYERS = {
    TORCH: {
        "self_attn": PrepareModuleInput(
            input_kwarg_layouts={"hidden_states": TOKENS},
            desired_input_kwarg_layouts={"hidden_states": Replicate()},
        ),
        "self_attn.q_proj": ColwiseParallel(),
        "self_attn.k_proj": ColwiseParallel(),
        "self_attn.v_proj": ColwiseParallel(),
        "self_attn.o_proj": RowwiseParallel(output_layouts=TOKENS),
        "mlp": PrepareModuleInput(input_layouts=TOKENS, desired_input_layouts=Replicate()),
        "mlp.gate_proj": ColwiseParallel(),
        "mlp.up_proj": ColwiseParallel(),
        "mlp.down_proj": RowwiseParallel(output_layouts=TOKENS),
    },
    GEMM: {
        "self_attn": Gathered("q_proj", "k_proj", "v_proj"),
        "self_attn.o_proj": Scattered(),
        "mlp": Gathered("gate_proj", "up_proj"),
        "mlp.down_proj": Scattered(),
    },
}
NORMS = "input_layernorm", "post_attention_layernorm"


def divided(model: PreTrainedModel, mesh: DeviceMesh, products: str) -> PreTrainedModel:
    """The model, of which each rank keeps its part; the embedding stays the head's weight."""
    norm = SequenceParallel(use_local_output=True)
    plan = {
        "model.embed_tokens": RowwiseParallel(
            input_layouts=Replicate(), output_layouts=Replicate()
        ),
        "model.layers.0": PrepareModuleInput(
            input_layouts=(Replicate(),), desired_input_layouts=(TOKENS,), use_local_output=True
        ),
        **{f"model.layers.*.{name}": norm for name in NORMS},
        **{f"model.layers.*.{name}": style for name, style in LAYERS[products].items()},
        "model.norm": norm,
        "lm_head": ColwiseParallel(input_layouts=TOKENS, use_local_output=False),
    }
    parallelize_module(model, mesh, plan)
    model.lm_head.weight = model.model.embed_tokens.weight
    return model


def training(model: PreTrainedModel, size: Size, mode: str) -> Run:
    """A step: forward, backward, AdamW. The result is the loss, the same on all ranks."""
    if mode == COMPILED:
        for layer in model.model.layers:
            layer.compile(dynamic=False)  # torch 2.11 fails if it makes a DTensor's extents dynamic
    optimizer = torch.optim.AdamW(model.train().parameters(), lr=3e-4, fused=True)
    stream = batches(size.batch, size.length + 1)

    def step() -> Tensor:
        tokens = next(stream)
        with loss_parallel():
            logits = model(input_ids=tokens[:, :-1], use_cache=False).logits
            loss = F.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten())
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach().to_local()

    return step


def main() -> None:
    """Compare the models on all ranks that torchrun started."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--size", choices=SIZES, default="1b")
    parser.add_argument("--mode", choices=MODES, default=MODES[0])
    options = parser.parse_args()
    size = SIZES[options.size]
    if DEVICE == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    mesh = init_device_mesh(DEVICE, (int(os.environ["WORLD_SIZE"]),))
    models = {each: divided(build(size.config, each), mesh, each) for each in PRODUCTS}
    runs = {each: training(model, size, options.mode) for each, model in models.items()}
    losses = {each: [run().item() for _ in range(WARM_UP)] for each, run in runs.items()}
    times: dict[str, list[float]] = {each: [] for each in PRODUCTS}
    for _ in range(ROUNDS):
        for each, run in runs.items():
            dist.barrier()
            times[each].append(seconds(run, 4))
    if dist.get_rank() == 0:
        for each in PRODUCTS:
            print(f"{each:6}{statistics.median(times[each]) * 1e3:9.3f} ms, losses {losses[each]}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
