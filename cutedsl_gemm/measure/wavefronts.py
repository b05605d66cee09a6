"""The bank model compared with the hardware: predicted wavefronts, and Nsight Compute's counts.

A case is one instruction of one warp at the offsets of one layout: naive, padded and swizzled
tiles, strides, broadcasts and random offsets. `measure` runs every case once under ncu.
"""

from __future__ import annotations

import csv
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cutedsl_gemm.kernels.compile.sass import ToolError
from cutedsl_gemm.kernels.device.probe import INSTRUCTIONS
from layouts import ComposedLayout, Layout, Swizzle, wavefronts
from layouts.hardware.facts import WARP
from layouts.hardware.instructions import instruction

METRICS = {
    "ld": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "st": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    "ld conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    "st conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
}
PITCHES = (64, 128, 256)  # bytes of a row of the tile
PADDING = 16  # bytes
SWIZZLES = tuple(Swizzle(bits, 4, shift) for bits in (1, 2, 3) for shift in (3, 4))
RANDOM = 3  # random cases for each instruction


@dataclass(frozen=True)
class Case:
    """One instruction, and a byte offset for each lane."""

    instruction: str
    name: str
    offsets: tuple[int, ...]


@dataclass(frozen=True)
class Count:
    """Wavefronts and bank conflicts of a case."""

    wavefronts: int
    conflicts: int


def predicted(case: Case) -> Count:
    """The bank model's prediction for a case."""
    how = instruction(case.instruction)
    found = wavefronts(case.offsets[: how.lanes], how)
    return Count(found.count, found.count - found.ideal)


def cases(name: str) -> Iterator[Case]:
    """The cases of an instruction."""
    width = instruction(name).width
    lanes = Layout((16, 2), (1, 16))  # 16 rows of the tile, then 2 columns
    for pitch in PITCHES:
        naive = Layout((16, pitch // width), (pitch, width))
        padded = Layout((16, pitch // width), (pitch + PADDING, width))
        forms: list[tuple[str, Layout | ComposedLayout]] = [
            (f"rows of {pitch} bytes", naive),
            (f"rows of {pitch} + {PADDING} bytes", padded),
        ]
        for swizzle in SWIZZLES:
            forms.append((f"rows of {pitch} bytes, {swizzle}", ComposedLayout(swizzle, 0, naive)))
        for form, layout in forms:
            yield Case(name, form, tuple(layout(lanes(lane)) for lane in range(WARP)))
    yield from _plain_cases(name, width)


def _plain_cases(name: str, width: int) -> Iterator[Case]:
    """Strides, lanes that share an address, and random offsets."""
    for stride in (1, 2, 3, 32):
        offsets = tuple(width * stride * lane for lane in range(WARP))
        yield Case(name, f"stride {stride}", offsets)
    for other in (1, 2, 4, 16):
        offsets = tuple(width * (lane & ~other) for lane in range(WARP))
        yield Case(name, f"lanes share with lane ^ {other}", offsets)
    draw = random.Random(0)
    for number in range(RANDOM):
        offsets = tuple(width * draw.randrange(1024 // width) for _ in range(WARP))
        yield Case(name, f"random {number}", offsets)


def all_cases() -> list[Case]:
    """The cases of every instruction."""
    return [case for name in INSTRUCTIONS for case in cases(name)]


def measure() -> list[Count]:
    """The counts of every case under ncu, in the order of `all_cases`."""
    ncu = shutil.which("ncu")
    if ncu is None:
        raise ToolError(
            "ncu is not on the PATH: it comes with the CUDA toolkit, and with Nsight Compute"
        )
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
    for case, values in zip(all_cases(), (found[i] for i in sorted(found)), strict=True):
        kind = case.instruction[:2]
        counts.append(Count(values[METRICS[kind]], values[METRICS[f"{kind} conflicts"]]))
    return counts


def launch() -> None:
    """Launch every case once; ncu counts."""
    import torch

    from cutedsl_gemm.kernels.device.probe import compile_probe

    probes = {name: compile_probe(name) for name in INSTRUCTIONS}
    tables = torch.tensor([case.offsets for case in all_cases()], dtype=torch.int32, device="cuda")
    sink = torch.zeros(WARP, 4, dtype=torch.uint32, device="cuda")
    for case, table in zip(all_cases(), tables, strict=True):
        probes[case.instruction](table, sink)
    torch.cuda.synchronize()


def report(counts: list[Count]) -> str:
    """A Markdown table: the count, and the prediction beside it if the two differ."""
    cells: dict[str, list[str]] = {}
    for case, count in zip(all_cases(), counts, strict=True):
        prediction = predicted(case)
        text = f"{count.wavefronts}"
        if prediction != count:
            text = f"**{prediction.wavefronts} predicted, {count.wavefronts} counted**"
        cells.setdefault(case.name, []).append(text)
    short = [name.replace("sync.aligned.m8n8.", "").replace(".b16", "") for name in INSTRUCTIONS]
    lines = ["| byte offsets | " + " | ".join(short) + " |", "|---" * (len(short) + 1) + "|"]
    lines += [f"| {name} | " + " | ".join(row) + " |" for name, row in cells.items()]
    return "\n".join(lines)


def main(file: Path | None = None) -> None:
    """Measure, print how many predictions the counters confirm, and write the table to `file`."""
    counts = measure()
    equal = sum(predicted(case) == count for case, count in zip(all_cases(), counts, strict=True))
    print(f"{equal} of {len(counts)} cases: wavefronts and conflicts as predicted")
    if file is not None:
        file.write_text(report(counts) + "\n", encoding="utf-8")


if __name__ == "__main__":
    launch()
