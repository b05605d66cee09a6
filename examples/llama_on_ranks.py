"""The Llama of llama.py on several GPUs: tensor and sequence parallelism, by torch's own functions.

    torchrun --nproc-per-node 2 examples/llama_on_ranks.py

Each rank has a part of every weight, and between the products a part of the tokens. Both models
are divided by the same plan. The losses are compared, and the time of a training step.
"""

from __future__ import annotations

import argparse
import os
import statistics

import torch
import torch.distributed as dist
from llama import DEVICE, PRODUCTS, ROUNDS, SIZES, WARM_UP, Run, Size, batches, build, seconds
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    loss_parallel,
    parallelize_module,
)
from torch.nn import functional as F
from transformers import PreTrainedModel

TOKENS = Shard(1)  # of hidden states (batch, tokens, width)
LAYER = {
    "input_layernorm": SequenceParallel(),
    "self_attn": PrepareModuleInput(
        input_kwarg_layouts={"hidden_states": TOKENS},
        desired_input_kwarg_layouts={"hidden_states": Replicate()},
    ),
    "self_attn.q_proj": ColwiseParallel(),
    "self_attn.k_proj": ColwiseParallel(),
    "self_attn.v_proj": ColwiseParallel(),
    "self_attn.o_proj": RowwiseParallel(output_layouts=TOKENS),
    "post_attention_layernorm": SequenceParallel(),
    "mlp": PrepareModuleInput(input_layouts=TOKENS, desired_input_layouts=Replicate()),
    "mlp.gate_proj": ColwiseParallel(),
    "mlp.up_proj": ColwiseParallel(),
    "mlp.down_proj": RowwiseParallel(output_layouts=TOKENS),
}
PLAN = {
    "model.embed_tokens": RowwiseParallel(input_layouts=Replicate(), output_layouts=Replicate()),
    "model.layers.0": PrepareModuleInput(
        input_layouts=(Replicate(),), desired_input_layouts=(TOKENS,), use_local_output=True
    ),
    **{f"model.layers.*.{name}": style for name, style in LAYER.items()},
    "model.norm": SequenceParallel(),
    "lm_head": ColwiseParallel(input_layouts=TOKENS, use_local_output=False),
}


def divided(model: PreTrainedModel, mesh: DeviceMesh) -> PreTrainedModel:
    """The model, of which each rank keeps its part; the embedding stays the head's weight."""
    parallelize_module(model, mesh, PLAN)
    model.lm_head.weight = model.model.embed_tokens.weight
    return model


def training(model: PreTrainedModel, size: Size) -> Run:
    """A step: forward, backward, AdamW. The result is the loss, the same on all ranks."""
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
    size = SIZES[parser.parse_args().size]
    if DEVICE == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    mesh = init_device_mesh(DEVICE, (int(os.environ["WORLD_SIZE"]),))
    runs = {each: training(divided(build(size.config, each), mesh), size) for each in PRODUCTS}
    losses = {each: [run().item() for _ in range(WARM_UP)] for each, run in runs.items()}
    times: dict[str, list[float]] = {each: [] for each in runs}
    for _ in range(ROUNDS):
        for each, run in runs.items():
            dist.barrier()
            times[each].append(seconds(run, 1))
    if dist.get_rank() == 0:
        for each in PRODUCTS:
            print(f"{each:6}{statistics.median(times[each]) * 1e3:9.3f} ms, losses {losses[each]}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
