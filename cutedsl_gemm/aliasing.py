"""Aliasing: whether the result of a call shares bytes with an operand."""

from __future__ import annotations

from torch import Tensor


def span_bytes(tensor: Tensor) -> int:
    """Bytes from the start of the first element to the end of the last."""
    if tensor.numel() == 0:
        return 0
    modes = zip(tensor.shape, tensor.stride(), strict=True)
    return (sum((extent - 1) * stride for extent, stride in modes) + 1) * tensor.element_size()


def disjoint(out: Tensor, other: Tensor) -> bool:
    """Whether two tensors of at most two modes certainly share no byte.

    Spans that overlap are told apart where both are row-major, or both column-major, with one
    leading stride: columns 0–31 and columns 32–63 of one matrix, for example.
    """
    start, end = other.data_ptr(), other.data_ptr() + span_bytes(other)
    if out.data_ptr() + span_bytes(out) <= start or end <= out.data_ptr():
        return True
    if out.ndim < 2 or other.ndim < 2:
        return False
    if out.stride(0) == other.stride(0) == 1:
        out, other = out.mT, other.mT
    pitch = out.stride(0) * out.element_size()
    alike = out.stride() == other.stride() and out.element_size() == other.element_size()
    if not alike or out.stride(1) != 1 or pitch == 0:
        return False
    gap = (out.data_ptr() - start) % pitch
    out_bytes, other_bytes = (x.shape[1] * x.element_size() for x in (out, other))
    return gap >= other_bytes and gap + out_bytes <= pitch


def check_disjoint(out: Tensor, a: Tensor, b: Tensor) -> None:
    """ValueError if `out` shares memory with a or b."""
    for name, tensor in (("a", a), ("b", b)):
        if not disjoint(out, tensor):
            raise ValueError(
                f"out shares memory with {name}, which the kernel still reads while it writes out: "
                "give out memory of its own"
            )
