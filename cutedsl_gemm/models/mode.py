"""enabled(): a context in which products run on gemm where it is expected to be at least as fast.

It is a TorchFunctionMode, which sees the calls of torch's functions and which torch.compile traces.
A call that it leaves to torch costs 3 µs of Python. A TorchDispatchMode would see the products
inside torch's composite operators, too; it costs every operator 15 µs, and torch.compile runs
eagerly under it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from cutedsl_gemm.inputs.views import transposed
from cutedsl_gemm.models.faster import by_gemm, is_known
from cutedsl_gemm.models.faster_batch import batch_by_gemm


class enabled(TorchFunctionMode):
    """A context in which torch's linear, mm, addmm, matmul and bmm run on gemm where it is faster.

    See `convert` for the products that torch still computes. torch also computes calls with out,
    alpha or beta, products inside other operators, such as einsum and attention, and batches in
    compiled graphs, unless all have one right-hand matrix. The context holds for the thread that
    enters it. The gradients of what ran on gemm are computed in the same way, even after the
    context.

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
        if func in _PRODUCTS:
            product, names, least = _PRODUCTS[func]
            given = _positional(names, args, kwargs) if kwargs else args
            if given is not None and least <= len(given) <= len(names):
                result = product(*given)
                if result is not None:
                    return result
        return func(*args, **(kwargs or {}))


def _positional(
    names: tuple[str, ...], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[Any, ...] | None:
    """All arguments in the order of their names; None if there are others, such as out."""
    named = [name for name in names[len(args) :] if name in kwargs]
    if len(named) < len(kwargs) or named != list(names[len(args) : len(args) + len(named)]):
        return None
    return *args, *(kwargs[name] for name in named)


def _linear(x: Any, weight: Any, bias: Any = None) -> Tensor | None:
    if not is_known(x) or not _are_of_rank(2, weight):
        return None
    return by_gemm(x, weight, bias) if bias is None or _are_of_rank(1, bias) else None


def _mm(a: Any, b: Any) -> Tensor | None:
    return by_gemm(a, transposed(b)) if _are_of_rank(2, a, b) else None


def _addmm(c: Any, a: Any, b: Any) -> Tensor | None:
    """c is a row (N,), or a matrix (M, N). torch computes the others, which broadcast."""
    known = _are_of_rank(2, a, b) and is_known(c) and c.ndim in (1, 2)
    return by_gemm(a, transposed(b), c) if known else None


def _bmm(a: Any, b: Any) -> Tensor | None:
    if not _are_of_rank(3, a, b) or a.is_nested or b.is_nested or a.shape[0] != b.shape[0]:
        return None
    return _matmul(a, b)


def _matmul(a: Any, b: Any) -> Tensor | None:
    """One product, of all rows, if one b multiplies all matrices of a; else a batch."""
    if not is_known(a) or not is_known(b) or b.ndim < 2:
        return None
    if b.ndim == 2:
        return by_gemm(a, transposed(b))
    if a.ndim < b.ndim or a.is_nested or b.is_nested:
        return None
    batches = zip(b.shape[:-2], b.stride()[:-2], a.shape[-b.ndim : -2], strict=True)
    if b.numel() == 0 or any(n != 1 and (step or n != of_a) for n, step, of_a in batches):
        return batch_by_gemm(a, b)
    if torch.is_grad_enabled() and b.requires_grad and max(b.shape[:-2]) > 1:
        return None  # the gradient of b differs per matrix; gemm would give all of it to one
    return by_gemm(a, transposed(b[(0,) * (b.ndim - 2)]))


def _are_of_rank(rank: int, *values: Any) -> bool:
    return all(is_known(each) and each.ndim == rank for each in values)


# by torch's function: the product, the names of its arguments, and the least number of them
_PRODUCTS: dict[Any, tuple[Callable[..., Tensor | None], tuple[str, ...], int]] = {
    F.linear: (_linear, ("input", "weight", "bias"), 2),
    **dict.fromkeys((torch.mm, Tensor.mm), (_mm, ("input", "mat2"), 2)),
    **dict.fromkeys((torch.addmm, Tensor.addmm), (_addmm, ("input", "mat1", "mat2"), 3)),
    **dict.fromkeys((torch.bmm, Tensor.bmm), (_bmm, ("input", "mat2"), 2)),
    **dict.fromkeys((torch.matmul, Tensor.matmul), (_matmul, ("input", "other"), 2)),
    Tensor.__matmul__: (_matmul, ("input", "other"), 2),
}
