"""The question that two tensors pose, checked: a sentence for all that no plan can answer."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from cutedsl_gemm.kernels.plan.checks import UNIT
from layouts.hardware.descriptor import Major

MOST_EXTENT = 2**31 - 256  # coordinates have 32 bits, and a tile may reach beyond


@dataclass(frozen=True)
class Terms:
    """What a kernel asks of its tensors: dtypes, and addresses that `who` carries.

    Addresses and leading strides must be multiples of `unit` elements. A line of the result is
    stored in whole pieces of `piece` elements: beyond its end, zeros are stored up to the next.
    """

    who: str
    dtypes: tuple[torch.dtype, ...]
    unit: int
    piece: int = 1
    devices: tuple[str, ...] = ("cpu", "cuda")

    @property
    def bytes(self) -> int:
        """Of which addresses must be multiples."""
        return self.unit * self.dtypes[0].itemsize


# A tensor store clips rows, but of columns only pieces of 16 bytes (seen on an H100).
TMA = Terms("TMA", (torch.bfloat16, torch.float16), UNIT, piece=UNIT)


@dataclass(frozen=True)
class Matrix:
    """Extents of a matrix and the strides, in elements, that the kernel is told."""

    shape: tuple[int, int]
    stride: tuple[int, int]

    @property
    def row_major(self) -> bool:
        return self.stride[1] == 1

    @property
    def turned(self) -> Matrix:
        """The transposed matrix."""
        return Matrix(self.shape[::-1], self.stride[::-1])


@dataclass(frozen=True)
class Problem:
    """C (M, N) = A (M, K) · B (K, N)."""

    a: Matrix
    b: Matrix
    dtype: str
    unit: int = UNIT  # elements of which leading strides and addresses are multiples

    @property
    def turned(self) -> Problem:
        """Cᵀ = Bᵀ · Aᵀ."""
        return Problem(self.b.turned, self.a.turned, self.dtype, self.unit)

    @property
    def majors(self) -> tuple[Major, Major]:
        """The contiguous modes of A (M, K) and of B (N, K), in PTX's words."""
        return "K" if self.a.row_major else "MN", "MN" if self.b.row_major else "K"

    @property
    def mnk(self) -> tuple[int, int, int]:
        return (*self.a.shape[:1], *self.b.shape[1:], self.a.shape[1])


def pose(a: Tensor, b: Tensor, terms: Terms = TMA) -> Problem:
    """The problem of two tensors; TypeError or ValueError where they pose none."""
    agree(a, b, terms)
    dtype = str(a.dtype).removeprefix("torch.")
    return Problem(matrix("a", a, terms), matrix("b", b, terms), dtype, terms.unit)


def device_of(a: object) -> torch.device | None:
    """Where a tensor lies; None of what is no tensor, which `agree` refuses."""
    return a.device if isinstance(a, Tensor) else None


def agree(a: Tensor, b: Tensor, terms: Terms = TMA) -> None:
    """TypeError or ValueError unless a and b are matrices that can be multiplied."""
    for name, tensor in (("a", a), ("b", b)):
        _check_tensor(name, tensor, terms)
    _check_pair("a", a, "b", b)
    if a.shape[1] != b.shape[0]:
        raise ValueError(
            f"a has shape {tuple(a.shape)} and b {tuple(b.shape)}: "
            "a must have as many columns as b has rows"
        )


def check_out(out: Tensor, a: Tensor, b: Tensor, terms: Terms = TMA) -> None:
    """ValueError or TypeError unless `out` can take the product of a and b."""
    _check_tensor("out", out, terms)
    _check_pair("out", out, "a", a)
    if out.shape != (a.shape[0], b.shape[1]):
        raise ValueError(
            f"out has shape {tuple(out.shape)}: it must be {(a.shape[0], b.shape[1])}, "
            "rows of a and columns of b"
        )


def check(a: Tensor, b: Tensor, out: Tensor, terms: Terms = TMA) -> None:
    """ValueError or TypeError unless the kernel can carry out = a · b where the three lie."""
    pose(a, b, terms)
    check_out(out, a, b, terms)
    for name, tensor in (("a", a), ("b", b), ("out", out)):
        if not tensor.data_ptr():
            raise ValueError(
                f"{name} has no memory of its own (freed, fake, or the wrapper of another tensor): "
                "pass a tensor that holds its data"
            )
        if tensor.data_ptr() % terms.bytes:
            remedy = f"{name}.clone(), or " if name != "out" else ""
            raise ValueError(
                f"{name} starts at address {tensor.data_ptr():#x}: {terms.who} needs a multiple "
                f"of {terms.bytes} bytes; pass {remedy}a view that starts at a multiple of "
                f"{terms.unit} elements"
            )


def apart(out: Tensor, other: Tensor) -> bool:
    """Whether no byte of `out` is one of `other`."""
    start, end = other.data_ptr(), other.data_ptr() + reach(other)
    if out.data_ptr() + reach(out) <= start or end <= out.data_ptr():
        return True
    if out.stride(0) == other.stride(0) == 1:
        out, other = out.mT, other.mT
    line = out.stride(0) * out.element_size()
    if out.stride() != other.stride() or out.stride(1) != 1 or line == 0:
        return False  # one lies among the lines of the other: no more is asked
    gap = (out.data_ptr() - start) % line
    widths = (tensor.shape[1] * tensor.element_size() for tensor in (other, out))
    return gap >= next(widths) and gap + next(widths) <= line


def reach(tensor: Tensor) -> int:
    """Bytes from the first element to behind the last."""
    if tensor.numel() == 0:
        return 0
    modes = zip(tensor.shape, tensor.stride(), strict=True)
    return (sum((extent - 1) * stride for extent, stride in modes) + 1) * tensor.element_size()


def check_apart(out: Tensor, a: Tensor, b: Tensor) -> None:
    """ValueError where `out` shares memory with a or b."""
    for name, tensor in (("a", a), ("b", b)):
        if not apart(out, tensor):
            raise ValueError(
                f"out shares memory with {name}, which is still read while out is written: "
                "give it memory of its own"
            )


def lines(like: Tensor, shape: tuple[int, ...], unit: int) -> Tensor:
    """New memory for a matrix whose rows start at multiples of `unit` elements.

    >>> lines(torch.empty(0), (4, 23), 8).stride()
    (24, 1)
    """
    rows, columns = shape
    return like.new_empty(rows, -(-columns // unit) * unit)[:, :columns]


def matrix(name: str, tensor: Tensor, terms: Terms = TMA) -> Matrix:
    """How the kernel can walk a tensor: one stride is 1, the other a multiple of its unit.

    ValueError where it cannot. The stride of an extent of 1 is never walked: it may be anything,
    and the kernel is told one that it takes.
    """
    (rows, columns), (down, right) = tensor.shape, tensor.stride()
    along = _along(tensor, terms.unit)
    if along == 1:
        return Matrix((rows, columns), (_leading(columns, rows, down, terms.unit), 1))
    if along == 0:
        return Matrix((rows, columns), (1, _leading(rows, columns, right, terms.unit)))
    raise ValueError(
        f"{name}: shape {rows, columns} with strides {down, right} in elements: "
        f"{terms.who} needs one stride of 1 and the other a multiple of {terms.unit} elements "
        f"({terms.bytes} bytes) at least as long as a line; "
        f"{_advice(name, tensor, terms.unit)}"
    )


def _walks(inner: int, inner_stride: int, outer: int, outer_stride: int, unit: int) -> bool:
    if inner == 0 or outer == 0:
        return True
    return (inner_stride == 1 or inner == 1) and (
        outer == 1 or (outer_stride % unit == 0 and outer_stride >= inner)
    )


def walkable(tensor: Tensor, terms: Terms) -> bool:
    """Whether a kernel of these terms can walk a matrix."""
    return _along(tensor, terms.unit) is not None


def _along(tensor: Tensor, unit: int) -> int | None:
    """The dimension along which a matrix can be walked, rows before columns; None where none is."""
    (rows, columns), (down, right) = tensor.shape, tensor.stride()
    if _walks(columns, right, rows, down, unit):
        return 1
    return 0 if _walks(rows, down, columns, right, unit) else None


def _leading(inner: int, outer: int, stride: int, unit: int) -> int:
    return stride if outer > 1 else -(-inner // unit) * unit


def _advice(name: str, tensor: Tensor, unit: int) -> str:
    rows, columns = tensor.shape
    whole = -(-columns // unit) * unit
    if name == "out":
        return (
            f"give the first {columns} columns of torch.empty({rows}, {whole}), or leave out away"
        )
    if tensor.mT.is_contiguous() and not tensor.is_contiguous():
        lines = -(-rows // unit) * unit
        given = f"F.pad({name}, (0, 0, 0, {lines - rows})).mT.contiguous().mT[:{rows}]"
        return f"pass {given}: columns of {lines} in memory, of which {rows} are {name}"
    if columns != whole:
        given = f"F.pad({name}, (0, {whole - columns}))[:, :{columns}]"
        return f"pass {given}: rows of {whole} in memory, of which {columns} are {name}"
    return f"pass {name}.contiguous()"


def _check_tensor(name: str, tensor: object, terms: Terms) -> None:
    if not isinstance(tensor, Tensor):
        raise TypeError(f"{name} is {type(tensor).__name__}: it must be a torch.Tensor")
    if tensor.dtype not in terms.dtypes:
        raise TypeError(
            f"{name} is {tensor.dtype}: it must be {' or '.join(map(str, terms.dtypes))}"
            + (f"; convert it with {name}.to({terms.dtypes[0]})" if name != "out" else "")
        )
    if tensor.layout != torch.strided or tensor.device.type not in terms.devices:
        raise TypeError(
            f"{name} is {tensor.layout} on {tensor.device}: "
            "it must be dense, on a CPU or a CUDA device"
        )
    if tensor.ndim != 2:
        raise ValueError(f"{name} has shape {tuple(tensor.shape)}: it must have two dimensions")
    if tensor.is_neg() and (name == "out" or tensor.dtype != torch.float32):
        # of a and b in float32, the launch of the simt family resolves it
        remedy = "memory of its own" if name == "out" else f"{name}.resolve_neg()"
        raise ValueError(f"{name} is a view that stands for its negative: pass {remedy}")
    if any(extent > MOST_EXTENT for extent in tensor.shape):
        raise ValueError(
            f"{name} has shape {tuple(tensor.shape)}: an extent must be at most {MOST_EXTENT}"
        )


def _check_pair(one: str, first: Tensor, other: str, second: Tensor) -> None:
    if first.dtype != second.dtype:
        raise TypeError(
            f"{one} is {first.dtype} and {other} is {second.dtype}: they must have one dtype"
        )
    if first.device != second.device:
        raise ValueError(
            f"{one} is on {first.device} and {other} on {second.device}: they must be on one device"
        )
