"""The bank model held against the hardware: what layouts predict, and what Nsight Compute counts.

Each case is one instruction of one warp at the offsets of one layout: naive, padded and swizzled
tiles, strides, broadcasts, and random offsets. `measure` runs them all once under ncu.
"""

from __future__ import annotations

import csv
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from layouts import ComposedLayout, Layout, Swizzle

METRICS = {
    "ld": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "st": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    "ld conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    "st conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
}
PITCHES = (64, 128, 256)  # bytes of a row of the tile
PADDING = 16  # bytes
SWIZZLES = tuple(Swizzle(bits, 4, shift) for bits in (1, 2, 3) for shift in (3, 4))
RANDOM = 3  # random cases an instruction


@dataclass(frozen=True)
class Case:
    """One instruction at one byte offset a lane."""

    instruction: str
    name: str
    offsets: tuple[int, ...]


@dataclass(frozen=True)
class Count:
    """What the hardware counted for a case."""

    wavefronts: int
    conflicts: int


def cases(instruction: str, width: int) -> Iterator[Case]:
    """The cases of an instruction that moves `width` bytes at a lane's address."""
    lanes = _tile(width)
    for pitch in PITCHES:
        naive = Layout((16, pitch // width), (pitch, width))
        yield _case(instruction, f"{naive}", ComposedLayout(Swizzle(0, 4, 3), 0, naive), lanes)
        padded = Layout((16, pitch // width), (pitch + PADDING, width))
        yield _case(instruction, f"{padded}", ComposedLayout(Swizzle(0, 4, 3), 0, padded), lanes)
        for swizzle in SWIZZLES:
            swizzled = ComposedLayout(swizzle, 0, naive)
            yield _case(instruction, f"{swizzled}", swizzled, lanes)
    draw = random.Random(instruction)
    for stride in (1, 2, 3, 32):
        yield Case(instruction, f"stride {stride}", tuple(width * stride * i for i in range(32)))
    for shared in (1, 2, 4, 16):
        offsets = tuple(width * (i & ~shared) for i in range(32))
        yield Case(instruction, f"lane ^ {shared} shares", offsets)
    for number in range(RANDOM):
        offsets = tuple(width * draw.randrange(1024 // width) for _ in range(32))
        yield Case(instruction, f"random {number}", offsets)


def _tile(width: int) -> Layout:
    """lane → index of the (16, columns) tile: down the rows, then across."""
    return Layout((16, 2), (1, 16))


def _case(instruction: str, name: str, layout: ComposedLayout, lanes: Layout) -> Case:
    return Case(instruction, name, tuple(layout(lanes(lane)) for lane in range(32)))


def every() -> list[Case]:
    """All cases of all instructions."""
    from cutedsl_gemm.kernels.probe import INSTRUCTIONS

    return [case for name, width in INSTRUCTIONS.items() for case in cases(name, width)]


def measure() -> list[Count]:
    """Run every case under ncu; the counts, in the order of `every()`."""
    ncu = shutil.which("ncu")
    if ncu is None:
        raise FileNotFoundError("ncu is not on the PATH: it comes with the CUDA toolkit")
    command = [ncu, "--clock-control", "none", "--csv", "-k", "regex:Probe"]
    command += ["--metrics", ",".join(METRICS.values()), sys.executable, "-m", __spec__.name]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode:
        raise RuntimeError(f"ncu failed: {run.stdout[-1000:]}{run.stderr[-1000:]}")
    return _counts(run.stdout)


def _counts(text: str) -> list[Count]:
    found: dict[int, dict[str, int]] = {}
    for row in csv.DictReader(line for line in text.splitlines() if line.startswith('"')):
        found.setdefault(int(row["ID"]), {})[row["Metric Name"]] = int(float(row["Metric Value"]))
    counts = []
    for case, values in zip(every(), (found[i] for i in sorted(found)), strict=True):
        kind = case.instruction[:2]
        counts.append(Count(values[METRICS[kind]], values[METRICS[f"{kind} conflicts"]]))
    return counts


def run() -> None:
    """Launch every case once: what ncu watches."""
    import torch

    from cutedsl_gemm.kernels.probe import INSTRUCTIONS, compile_probe

    probes = {name: compile_probe(name) for name in INSTRUCTIONS}
    tables = torch.tensor([case.offsets for case in every()], dtype=torch.int32, device="cuda")
    sink = torch.zeros(32, 4, dtype=torch.uint32, device="cuda")
    for case, table in zip(every(), tables, strict=True):
        probes[case.instruction](table, sink)
    torch.cuda.synchronize()


if __name__ == "__main__":
    run()
