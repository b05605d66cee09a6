"""enabled(): a context in which torch's products run on gemm where that is expected to be faster.

It is a TorchFunctionMode. That sees the calls of torch's functions, costs the others 3 µs of Python
each, and is traced by torch.compile. A TorchDispatchMode would see the products inside torch's
composite operators, too; it costs every operator 15 µs, and torch.compile runs eagerly under it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from cutedsl_gemm.faster import by_gemm


class enabled(TorchFunctionMode):
    """A context in which torch's linear, mm, addmm, matmul and bmm run on gemm where it is faster.

    `convert` says which products torch computes nevertheless. These also are torch's: calls with
    out, alpha or beta, products inside other operators, such as einsum and attention, and batches,
    unless all have one right-hand matrix. It holds for the thread that enters it. The gradients of
    what ran on gemm are computed in the same way, also after the context.

    >>> a, b = torch.ones(4, 16), torch.ones(16, 8)
    >>> with enabled():
    ...     (a @ b)[0, 0]  # on a CPU: torch's
    tensor(16.)
    """

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """`func`, by gemm if it is a product."""
        if not kwargs and (func, len(args)) in _PRODUCTS:
            result = _PRODUCTS[func, len(args)](*args)
            if result is not None:
                return result
        return func(*args, **(kwargs or {}))


def _linear(x: Any, weight: Any, bias: Any = None) -> Tensor | None:
    if not isinstance(x, Tensor) or not _are_of_rank(2, weight):
        return None
    return by_gemm(x, weight, bias) if bias is None or _are_of_rank(1, bias) else None


def _mm(a: Any, b: Any) -> Tensor | None:
    return by_gemm(a, b.mT) if _are_of_rank(2, a, b) else None


def _addmm(c: Any, a: Any, b: Any) -> Tensor | None:
    return by_gemm(a, b.mT, c) if _are_of_rank(2, a, b) and _are_of_rank(1, c) else None


def _bmm(a: Any, b: Any) -> Tensor | None:
    """One product, of all rows, if the batches have one b."""
    if not _are_of_rank(3, a, b) or a.shape[0] != b.shape[0]:
        return None
    return by_gemm(a, b[0].mT) if b.shape[0] == 1 or b.stride(0) == 0 else None


def _matmul(a: Any, b: Any) -> Tensor | None:
    if isinstance(a, Tensor) and _are_of_rank(2, b):
        return by_gemm(a, b.mT)
    return _bmm(a, b)


def _are_of_rank(rank: int, *values: Any) -> bool:
    return all(isinstance(each, Tensor) and each.ndim == rank for each in values)


# by torch's function and the number of its arguments
_PRODUCTS: dict[tuple[Any, int], Callable[..., Tensor | None]] = {
    **dict.fromkeys(((F.linear, 2), (F.linear, 3)), _linear),
    **dict.fromkeys(((torch.mm, 2), (Tensor.mm, 2)), _mm),
    **dict.fromkeys(((torch.addmm, 3), (Tensor.addmm, 3)), _addmm),
    **dict.fromkeys(((torch.bmm, 2), (Tensor.bmm, 2)), _bmm),
    **dict.fromkeys(((torch.matmul, 2), (Tensor.matmul, 2), (Tensor.__matmul__, 2)), _matmul),
}
