"""Aliasing: whether the result of a call shares bytes with an operand, or with itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import gcd

from torch import Tensor


def span_bytes(tensor: Tensor) -> int:
    """Bytes from the start of the first element to the end of the last."""
    shape, stride = tensor.shape, tensor.stride()
    if 0 in shape:
        return 0
    if len(shape) == 2:  # most tensors: a sum takes 1 µs more
        last = (shape[0] - 1) * stride[0] + (shape[1] - 1) * stride[1]
    else:
        last = sum((extent - 1) * step for extent, step in zip(shape, stride, strict=True))
    return (last + 1) * tensor.element_size()


def sharing(outs: Sequence[Tensor], others: Sequence[Tensor]) -> Iterator[tuple[int, int]]:
    """The (i, j) of all outs[i] and others[j] that may share a byte.

    It computes the span of each of `others` once.

    >>> import torch
    >>> matrix = torch.empty(6, 4)
    >>> [*sharing([matrix[:2], matrix[4:]], [matrix[:, :1], matrix[2:4]])]
    [(0, 0), (1, 0)]
    """
    starts = [each.data_ptr() for each in others]
    ends = [start + span_bytes(each) for start, each in zip(starts, others, strict=True)]
    for i, out in enumerate(outs):
        start = out.data_ptr()
        end = start + span_bytes(out)
        for j, other in enumerate(others):
            if start < ends[j] and starts[j] < end and not _interleaved(out, other):
                yield i, j


def disjoint(out: Tensor, other: Tensor) -> bool:
    """Whether two tensors certainly share no byte."""
    return not [*sharing([out], [other])]


def _interleaved(out: Tensor, other: Tensor) -> bool:
    """Whether two tensors share no byte although their spans overlap.

    They are told apart if both have the longest stride of all, or one element there, and what they
    span within a step of it is apart: columns 0–31 and columns 32–63 of one matrix, for example.
    """
    pitch = max([step for tensor in (out, other) for _, step in _byte_modes(tensor)], default=0)
    if pitch == 0:
        return False
    out_bytes, other_bytes = _bytes_within(out, pitch), _bytes_within(other, pitch)
    gap = (out.data_ptr() - other.data_ptr()) % pitch
    return gap >= other_bytes and gap + out_bytes <= pitch


def _byte_modes(tensor: Tensor) -> list[tuple[int, int]]:
    """(extent, stride in bytes) of the modes of more than one element."""
    modes = zip(tensor.shape, tensor.stride(), strict=True)
    return [(extent, step * tensor.element_size()) for extent, step in modes if extent > 1]


def _bytes_within(tensor: Tensor, pitch: int) -> int:
    """The bytes that the modes of other strides than `pitch` span."""
    reach = sum((extent - 1) * step for extent, step in _byte_modes(tensor) if step != pitch)
    return reach + tensor.element_size()


def overlaps_itself(tensor: Tensor) -> bool:
    """Whether two elements of a tensor share memory. Of three modes and more, whether they may.

    >>> import torch
    >>> matrix = torch.empty(6, 4)
    >>> [overlaps_itself(each) for each in (matrix.mT, matrix[:, ::2], matrix[0].expand(6, 4))]
    [False, False, True]
    >>> [overlaps_itself(matrix.as_strided((m, 3), (2, 3))) for m in (3, 4)]
    [False, True]
    """
    modes = [each for each in zip(tensor.shape, tensor.stride(), strict=True) if each[0] > 1]
    if tensor.numel() == 0 or not modes:
        return False
    if any(stride == 0 for _, stride in modes):
        return True
    if len(modes) != 2:
        return not _nested(modes)
    # i steps of one mode are j of the other first at i = t / gcd(s, t), j = s / gcd(s, t)
    (m, s), (n, t) = modes
    common = gcd(s, t)
    return t // common < m and s // common < n


def _nested(modes: list[tuple[int, int]]) -> bool:
    """Whether a step of each mode (extent, stride) leads past all elements of shorter steps.

    >>> _nested([(3, 8), (4, 2), (2, 1)]), _nested([(3, 7), (4, 2), (2, 1)])
    (True, False)
    """
    end = 0  # of what shorter steps reach
    for extent, stride in sorted(modes, key=lambda mode: mode[1]):
        if stride <= end:
            return False
        end += (extent - 1) * stride
    return True


def check_written(name: str, tensor: Tensor) -> None:
    """ValueError if two elements of a result share memory."""
    if overlaps_itself(tensor):
        raise ValueError(
            f"{name} has shape {tuple(tensor.shape)} and strides {tensor.stride()}, by which "
            f"elements {'may share' if tensor.ndim > 2 else 'share'} memory: each element of a "
            "result must have memory of its own"
        )


def check_disjoint(out: Tensor, a: Tensor, b: Tensor) -> None:
    """ValueError if `out` shares memory with a or b."""
    for name, tensor in (("a", a), ("b", b)):
        if not disjoint(out, tensor):
            raise ValueError(
                f"out shares memory with {name}, which the kernel still reads while it writes out: "
                "give out memory of its own"
            )
