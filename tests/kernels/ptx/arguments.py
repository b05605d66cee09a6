"""The arguments of a launch, as the DSL passes them.

A tensor is a struct: its pointer, then the extents and then the strides that are not known when the
DSL compiles. A tensor map is an argument of its own, and the tensor that TMA sees, which has no
pointer, follows it: its extents alone. (Read from the signatures of kernels in the DSL's MLIR,
`CUTE_DSL_KEEP_IR=1`.) `Launch` checks the size of each argument against the PTX.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

POINTER_BITS = 40  # a tensor's window in global memory


@dataclass(frozen=True)
class Argument:
    """An argument of a launch: the bytes of a parameter, or None for a tensor map.

    Events name tensor maps, and tensors in global memory, by `name`.
    """

    name: str
    value: bytes | None = None


def pointer(parameter: int) -> int:
    """The address of the tensor that is a kernel's parameter: each has its own window of memory."""
    return parameter + 1 << POINTER_BITS


def tensor_map(name: str, *extents: int) -> tuple[Argument, Argument]:
    """A tensor map `tma_{name}`, and the extents of the tensor `g{NAME}` that TMA sees.

    >>> [argument.name for argument in tensor_map("a", 512, 64)]
    ['tma_a', 'gA']
    """
    return Argument(f"tma_{name}"), Argument(
        f"g{name.upper()}", struct.pack(f"<{len(extents)}i", *extents)
    )


def matrix(name: str, parameter: int, rows: int, columns: int, stride: int) -> Argument:
    """A matrix in global memory; `stride` is the leading one, in elements.

    >>> len(matrix("gC", 4, 512, 512, 512).value)
    24
    """
    return Argument(name, struct.pack("<Qiiq", pointer(parameter), rows, columns, stride))
