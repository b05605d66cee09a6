"""A Llama of transformers with torch's products and with gemm's: time, memory, loss.

    python examples/llama.py                             # every task, eager and compiled
    python examples/llama.py training --modes compiled   # one of them
    python examples/llama.py --losses losses.csv         # also the losses of 50 training steps

The weights are random, and the text is the source of Python's standard library, one token a byte:
nothing is downloaded. In a program of yours, `convert(model)` is the one line to add.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sysconfig
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import TypeAlias

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor
from transformers import AutoModelForCausalLM, LlamaConfig, PreTrainedModel, StaticCache

from cutedsl_gemm import convert
from cutedsl_gemm.measure.report import write_csv

Run: TypeAlias = Callable[[], Tensor]  # a training step, a prefill, or one decoded token

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
TORCH, GEMM = PRODUCTS = "torch", "gemm"  # whose products a model runs on
EAGER, COMPILED = MODES = "eager", "compiled"
WARM_UP, ROUNDS = 3, 7
NEW_TOKENS = 512  # at most so many are decoded


@dataclass(frozen=True)
class Size:
    """The shape of a model, and of its work."""

    config: LlamaConfig
    batch: int  # sequences of a training step
    length: int  # tokens of a sequence


llama = partial(
    LlamaConfig,
    vocab_size=128256,
    intermediate_size=8192,
    num_key_value_heads=8,
    rope_parameters={"rope_type": "default", "rope_theta": 500000.0},
    tie_word_embeddings=True,
)
SIZES = {  # the shapes of Llama 3.2, and one for a test
    "1b": Size(llama(hidden_size=2048, num_hidden_layers=16, num_attention_heads=32), 4, 2048),
    "3b": Size(llama(hidden_size=3072, num_hidden_layers=28, num_attention_heads=24), 2, 2048),
    "tiny": Size(
        llama(
            vocab_size=256,
            hidden_size=64,
            intermediate_size=128,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
        ),
        batch=2,
        length=16,
    ),
}


def build(config: LlamaConfig, products: str) -> PreTrainedModel:
    """A model of bfloat16 with random weights, the same at each call."""
    torch.manual_seed(0)
    with torch.device(DEVICE):
        model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    return convert(model) if products == GEMM else model


def batches(rows: int, length: int) -> Iterator[Tensor]:
    """Tokens (rows, length) of the source of the standard library, without end."""
    files = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    text = torch.frombuffer(bytearray(b"".join(map(Path.read_bytes, files))), dtype=torch.uint8)
    text = text.to(DEVICE)  # once: a copy at each step would wait for the step before
    while True:
        for tokens in text.split(rows * length)[:-1]:
            yield tokens.view(rows, length).long()


# Tasks: each takes a model, and gives what is timed.


def training(model: PreTrainedModel, size: Size, mode: str) -> Run:
    """A step: forward, backward, AdamW. The result is the loss."""
    model.train()
    if mode == COMPILED:  # the code of one layer serves them all
        for layer in model.model.layers:
            layer.compile(fullgraph=True)
        model.loss_function = torch.compile(model.loss_function, fullgraph=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    stream = batches(size.batch, size.length)

    def step() -> Tensor:
        tokens = next(stream)
        loss = model(input_ids=tokens, labels=tokens, use_cache=False).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    return step


def prefill(model: PreTrainedModel, size: Size, mode: str, rows: int) -> Run:
    """The first tokens after `rows` prompts, and a cache of the prompts' keys and values."""
    model.eval()
    forward = torch.compile(model, fullgraph=True) if mode == COMPILED else model
    prompts = next(batches(rows, size.length))

    @torch.no_grad()
    def run() -> Tensor:
        return forward(input_ids=prompts, logits_to_keep=1).logits.argmax(-1)

    return run


def decode(model: PreTrainedModel, size: Size, mode: str, rows: int) -> Run:
    """The next token of each of `rows` sequences; from a CUDA graph if compiled."""
    model.eval()
    compiled = partial(torch.compile, mode="reduce-overhead", fullgraph=True)
    forward = compiled(model) if mode == COMPILED else model
    tokens = next(batches(rows, size.length // 4))  # the prompts, and then what is decoded
    cache = StaticCache(model.config, max_cache_len=tokens.shape[1] + NEW_TOKENS)

    @torch.no_grad()
    def run() -> Tensor:
        nonlocal tokens
        call = forward if tokens.shape[1] == 1 else model
        logits = call(input_ids=tokens, past_key_values=cache, logits_to_keep=1).logits
        tokens = logits.argmax(-1)  # (rows, 1)
        return tokens

    return run


TASKS: dict[str, Callable[[PreTrainedModel, Size, str], Run]] = {
    "training": training,
    **{f"prefill-{rows}": partial(prefill, rows=rows) for rows in (1, 4)},
    **{f"decode-{rows}": partial(decode, rows=rows) for rows in (1, 4, 16)},
}
IN_A_ROW = {"training": 4, "prefill": 8, "decode": 32}  # runs that are timed together


# Measuring.


@dataclass(frozen=True)
class Figures:
    """What a run takes: seconds, and bytes of the GPU with those of model and optimizer."""

    seconds: float
    peak: int


def prepared(task: str, size: Size, mode: str, products: str) -> tuple[Run, int]:
    """A run that was warmed up, and the bytes that its model and optimizer hold."""
    before = allocated()
    run = TASKS[task](build(size.config, products), size, mode)
    for _ in range(WARM_UP):
        run()
    return run, allocated() - before


def measured(task: str, runs: dict[str, tuple[Run, int]]) -> dict[str, Figures]:
    """The figures of each, timed in turn: the clocks of a GPU fall while it works."""
    times: dict[str, list[float]] = {products: [] for products in runs}
    for _ in range(ROUNDS):
        for products, (run, _) in runs.items():
            times[products].append(seconds(run, IN_A_ROW[task.partition("-")[0]]))
    return {
        products: Figures(statistics.median(times[products]), held + taken(run))
        for products, (run, held) in runs.items()
    }


def seconds(run: Run, count: int) -> float:
    """Of a run: the mean of `count` in a row."""
    run().cpu()  # waits until the GPU is idle
    start = time.perf_counter()
    for _ in range(count):
        last = run()
    last.cpu()
    return (time.perf_counter() - start) / count


def allocated() -> int:
    """Bytes of the GPU in use by tensors."""
    gc.collect()
    return torch.cuda.memory_allocated() if DEVICE == "cuda" else 0


def taken(run: Run) -> int:
    """Bytes of the GPU that a run takes for a while."""
    before = allocated()
    if DEVICE == "cuda":
        torch.cuda.reset_peak_memory_stats()
        run()
        return torch.cuda.max_memory_allocated() - before
    return 0


def losses(size: Size, products: str, steps: int) -> list[float]:
    """The losses of a model's first training steps."""
    step = training(build(size.config, products), size, EAGER)
    return [step().item() for _ in range(steps)]


# Reports.

Row: TypeAlias = tuple[str, str, dict[str, Figures]]  # task, mode
COLUMNS = "task", "mode", "torch, ms", "gemm, ms", "torch, GB", "gemm, GB"


def cells(task: str, mode: str, figures: dict[str, Figures]) -> tuple[str, ...]:
    """A row of the table, by `COLUMNS`."""
    pair = [figures[products] for products in PRODUCTS]
    times = (f"{each.seconds * 1e3:.3f}" for each in pair)
    return task, mode, *times, *(f"{each.peak / 1e9:.2f}" for each in pair)


def table(rows: Iterable[Row]) -> Table:
    """The figures, and torch's time divided by gemm's."""
    shown = Table(*COLUMNS[:2])
    for column in (*COLUMNS[2:], "speed"):
        shown.add_column(column, justify="right")
    for task, mode, figures in rows:
        speed = figures[TORCH].seconds / figures[GEMM].seconds
        shown.add_row(*cells(task, mode, figures), f"{speed:.3f}")
    return shown


def main() -> None:
    """Measure what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("tasks", nargs="*", help=f"of {', '.join(TASKS)}; all if none is given")
    parser.add_argument("--size", choices=SIZES, default="1b")
    parser.add_argument("--modes", nargs="+", choices=MODES, default=MODES)
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write the table")
    parser.add_argument("--losses", type=Path, metavar="FILE", help="train, and write the losses")
    parser.add_argument("--steps", type=int, default=50, help="of that training")
    options = parser.parse_args()
    if unknown := {*options.tasks} - {*TASKS}:
        parser.error(f"tasks: {', '.join(unknown)}: each must be one of {', '.join(TASKS)}")
    size, console = SIZES[options.size], Console()
    rows: list[Row] = []
    for task, mode in product(options.tasks or TASKS, options.modes):
        runs = {each: prepared(task, size, mode, each) for each in PRODUCTS}
        rows.append((task, mode, measured(task, runs)))
        console.print(table(rows[-1:]))
        del runs
        torch.compiler.reset()
    console.print(table(rows))
    if options.csv:
        write_csv(options.csv, COLUMNS, (cells(*row) for row in rows))
    if options.losses:
        curves = [losses(size, products, options.steps) for products in PRODUCTS]
        steps = zip(range(options.steps), *curves, strict=True)
        write_csv(options.losses, ("step", *PRODUCTS), steps)


if __name__ == "__main__":
    main()
