"""How far an output is from what it should be."""

from torch import Tensor


def relative_error(out: Tensor, expected: Tensor) -> float:
    """The norm of the difference over that of `expected`, in the dtype of `expected`.

    >>> import torch
    >>> relative_error(torch.tensor([3.0, 4.5]), torch.tensor([3.0, 4.0]))
    0.10000000149011612
    """
    return float((out.to(expected.dtype) - expected).norm() / expected.norm())
