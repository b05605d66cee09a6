"""Two matrices share memory, or they certainly do not."""

from itertools import combinations, product

import pytest
import torch

from cutedsl_gemm import gemm
from cutedsl_gemm.inputs.aliasing import disjoint


def addresses(tensor):
    """The address of each element."""
    rows, columns = (
        torch.arange(extent) * stride
        for extent, stride in zip(tensor.shape, tensor.stride(), strict=True)
    )
    offsets = (rows[:, None] + columns).flatten().tolist()
    return {tensor.data_ptr() + tensor.element_size() * offset for offset in offsets}


@pytest.mark.parametrize("order", ["row", "column"])
def test_blocks_of_one_matrix_are_told_apart(order):
    """Any two blocks of one matrix: those that share an element, and those that do not."""
    memory = torch.zeros(3, 4, dtype=torch.bfloat16)
    spans = [[slice(*ends) for ends in combinations(range(extent + 1), 2)] for extent in (3, 4)]
    blocks = [memory[rows, columns] for rows, columns in product(*spans)]
    held = [addresses(block) for block in blocks]
    if order == "column":
        blocks = [block.mT for block in blocks]
    for (out, ours), (other, theirs) in product(zip(blocks, held, strict=True), repeat=2):
        assert disjoint(out, other) == ours.isdisjoint(theirs)


@pytest.mark.parametrize(("m", "n"), [(1, 3), (3, 1), (1, 1)])
def test_an_out_of_one_row_or_column_has_any_strides(m, n):
    a, b = (torch.ones(shape, dtype=torch.bfloat16) for shape in ((m, 2), (2, n)))
    for strides in product((1, 2, 3, 8), repeat=2):
        out = torch.zeros(64, dtype=torch.bfloat16).as_strided((m, n), strides, 1)
        assert torch.equal(gemm(a, b, out=out), torch.full((m, n), 2.0, dtype=torch.bfloat16))


@pytest.mark.parametrize("name", ["a", "b"])
def test_an_out_that_shares_memory_with_an_operand_is_refused(name):
    tensors = {each: torch.ones(32, 32, dtype=torch.bfloat16) for each in "ab"}
    buffer = torch.ones(40, 32, dtype=torch.bfloat16)
    tensors[name], out = buffer[:32], buffer[8:]
    with pytest.raises(ValueError, match=f"out shares memory with {name}"):
        gemm(tensors["a"], tensors["b"], out=out)
    gemm(tensors["a"].clone(), tensors["b"].clone(), out=out)  # the call is known now
    with pytest.raises(ValueError, match=f"out shares memory with {name}"):
        gemm(tensors["a"], tensors["b"], out=out)
