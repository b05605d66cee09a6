"""What a call does around the launch of a kernel that writes by address, which is a fake here."""

import pytest
import torch

from cutedsl_gemm.calls.call import allocating, writing
from cutedsl_gemm.inputs.aliasing import span_bytes
from cutedsl_gemm.inputs.problem import TMA
from cutedsl_gemm.inputs.tensors import allocator


@pytest.fixture
def launched():
    """The tensors of each launch."""
    return []


def operands():
    return [torch.ones(8, 8, dtype=torch.bfloat16) for _ in range(3)]


def test_a_kernel_that_writes_into_out_makes_a_new_version_of_it(launched):
    """Else autograd would use what it has saved of out, though it has been overwritten."""
    a, b, out = operands()
    spans = span_bytes(a), span_bytes(b), span_bytes(out)
    write = writing(lambda *tensors: launched.append(tensors), TMA, spans)
    version = out._version
    assert write(a, b, out) is out
    assert (len(launched), out._version) == (1, version + 1)


@pytest.mark.parametrize("null", [0, 1])
def test_an_operand_without_memory_is_not_launched(launched, null):
    tensors = operands()[:2]
    tensors[null] = tensors[null].to("meta")
    allocate = allocating(
        lambda *tensors: launched.append(tensors), TMA, allocator(tensors[0], 8, 8)
    )
    with pytest.raises(TypeError, match="on meta"):
        allocate(*tensors, None)
    assert not launched
