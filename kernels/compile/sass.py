"""What the compiler made of a kernel, read from its machine code: registers, spills, instructions.

The tools are NVIDIA's, from the pip packages nvidia-cuda-cuobjdump and nvidia-cuda-nvdisasm;
neither needs a GPU.
"""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

SPILLS = ("LDL", "STL")  # loads and stores of local memory
RESOURCES = re.compile(r"REG:(\d+) STACK:(\d+)")  # as cuobjdump prints them
# A line of nvdisasm: /*address*/, perhaps a predicate, and the opcode.
OPCODE = re.compile(r"^\s*/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)", re.MULTILINE)
SETMAXREG = re.compile(r"USETMAXREG\.[^;]*\b0x([0-9a-f]+) ;")


@dataclass(frozen=True)
class Report:
    """Resources of a plan's kernels: of the largest, where there are two.

    `instructions` counts full opcodes, such as `HGMMA.64x128x16.F32.BF16`; `register_split` is what
    setmaxnreg asks for, in the order of the code.
    """

    registers: int
    stack_bytes: int
    register_split: tuple[int, ...]
    instructions: Counter[str]

    def count(self, opcode: str) -> int:
        """Instructions whose opcode starts with `opcode`, modifiers aside: `count("STSM")`."""
        return sum(
            n
            for name, n in self.instructions.items()
            if name == opcode or name.startswith(f"{opcode}.")
        )

    @property
    def spills(self) -> int:
        return sum(self.count(opcode) for opcode in SPILLS)


def report(cubin: Path) -> Report:
    """Read a cubin file."""
    usage = _run("cuobjdump", "-res-usage", str(cubin))
    code = _run("nvdisasm", "-c", str(cubin))
    resources = RESOURCES.findall(usage)
    if not resources:
        raise ValueError(
            f"{cubin}: it must be the cubin of a kernel; cuobjdump -res-usage says nothing of its "
            f"registers and stack, but {usage!r}"
        )
    registers, stack = (max(map(int, column)) for column in zip(*resources, strict=True))
    split = tuple(int(count, 16) for count in SETMAXREG.findall(code))
    return Report(registers, stack, split, Counter(OPCODE.findall(code)))


def _run(tool: str, *arguments: str) -> str:
    return subprocess.run(
        [_tool(tool), *arguments], check=True, capture_output=True, text=True
    ).stdout


def _tool(name: str) -> Path:
    package = f"nvidia-cuda-{name}"
    try:
        listed = files(package) or ()
    except PackageNotFoundError:
        raise FileNotFoundError(f"{name} is not installed: pip install {package}") from None
    return next(Path(file.locate()) for file in listed if file.name == name)
