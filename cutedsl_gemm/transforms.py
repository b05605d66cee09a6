"""torch's transforms around a call: torch.func (grad, jvp, vmap), and forward-mode derivatives.

torch 2.11 has no public function that says whether one is active. api.py tests the two separately,
since it handles them differently.
"""

from torch._C._functorch import peek_interpreter_stack
from torch.autograd import forward_ad
from torch.compiler import is_dynamo_compiling


def transformed() -> bool:
    """Whether a transform is active: tensors may then stand for others, and have no memory.

    Dynamo may trace it: its guards know when the transforms around a graph change.

    >>> import torch
    >>> inside = []
    >>> _ = torch.func.vmap(lambda x: inside.append(transformed()) or x)(torch.ones(2))
    >>> inside, transformed()
    ([True], False)
    """
    if forward_ad._current_level >= 0:
        return True
    if is_dynamo_compiling():
        from cutedsl_gemm import operator  # here: only traced calls need torch._dynamo

        return bool(operator.in_torch_func())
    return peek_interpreter_stack() is not None
