"""The machine code (SASS) of a kernel: registers, spills, instruction counts.

NVIDIA's cuobjdump and nvdisasm read it. They come from the pip packages nvidia-cuda-cuobjdump and
nvidia-cuda-nvdisasm, or from a CUDA toolkit. Neither needs a GPU.
"""

from __future__ import annotations

import os
import re
import shutil
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


class ToolError(FileNotFoundError):
    """A tool that reads machine code is not there; the message says where it was looked for."""


@dataclass(frozen=True)
class Report:
    """Resources of a plan's machine code; of two kernels, the larger one's registers and stack.

    `code` is all opcodes in their order, in full, such as `HGMMA.64x128x16.F32.BF16`.
    `register_split` holds the register counts that setmaxnreg requests, in code order: (producer,
    consumer).
    """

    registers: int
    stack_bytes: int
    register_split: tuple[int, ...]
    code: tuple[str, ...]

    @property
    def instructions(self) -> Counter[str]:
        """How often each opcode stands in the code."""
        return Counter(self.code)

    def count(self, opcode: str) -> int:
        """Instructions with this opcode, whatever modifiers follow: `count("STSM")`."""
        return sum(
            n
            for name, n in self.instructions.items()
            if name == opcode or name.startswith(f"{opcode}.")
        )

    @property
    def spills(self) -> int:
        """Loads and stores of local memory: spilled registers."""
        return sum(self.count(opcode) for opcode in SPILLS)


def report(cubin: Path) -> Report:
    """The report of a cubin file. ValueError if it holds no kernel."""
    usage = _run("cuobjdump", "-res-usage", str(cubin))
    code = _run("nvdisasm", "-c", str(cubin))
    resources = RESOURCES.findall(usage)
    if not resources:
        raise ValueError(
            f"{cubin}: it must be the cubin of a kernel; cuobjdump -res-usage lists no registers "
            f"and stack, only {usage!r}"
        )
    registers, stack = (max(map(int, column)) for column in zip(*resources, strict=True))
    split = tuple(int(count, 16) for count in SETMAXREG.findall(code))
    return Report(registers, stack, split, tuple(OPCODE.findall(code)))


def _run(name: str, *arguments: str) -> str:
    return subprocess.run(
        [tool(name), *arguments], check=True, capture_output=True, text=True
    ).stdout


def tool(name: str) -> Path:
    """The executable cuobjdump or nvdisasm: of its pip package, or of a CUDA toolkit.

    Toolkits are looked for on the PATH, in $CUDA_HOME and in /usr/local/cuda. ToolError if no place
    has it.
    """
    package = f"nvidia-cuda-{name}"
    try:
        listed = files(package) or ()
    except PackageNotFoundError:
        listed = ()
    packaged = (Path(file.locate()) for file in listed if file.name == name)
    toolkits = (os.environ.get("CUDA_HOME"), "/usr/local/cuda")
    folders = (os.environ.get("PATH"), *(f"{folder}/bin" for folder in toolkits if folder))
    found = next(packaged, None) or shutil.which(name, path=os.pathsep.join(filter(None, folders)))
    if found is None:
        raise ToolError(
            f"{name} was not found: pip install {package}, or put a CUDA toolkit on the PATH"
        )
    return Path(found)
