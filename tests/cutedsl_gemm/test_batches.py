"""gemm of batches: a (L, M, K) · b (L, K, N), as torch.bmm gives it."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import func
from torch._dynamo.testing import CompileCounter
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.flop_counter import FlopCounterMode

from cutedsl_gemm import explain, gemm, plan_for


def draw(*shape):
    """Integers, whose products are exact."""
    return torch.randint(-2, 3, shape).bfloat16()


def product(a, b):
    return (a.float() @ b.float()).bfloat16()


A, B = draw(3, 40, 64), draw(3, 64, 96)


extents = st.integers(0, 5), st.integers(0, 70), st.integers(0, 70), st.integers(0, 70)
padding = st.sampled_from((0, 1, 8))
orders = st.permutations(range(3))


@st.composite
def batches(draws, shape):
    """A tensor of this shape: its modes in any order in memory, its rows padded."""
    order = draws(orders)
    memory = [shape[mode] for mode in order]
    memory[-1] += draws(padding)
    whole = draw(*memory)[..., : shape[order[-1]]]
    return whole.permute([order.index(mode) for mode in range(3)])


@given(st.data(), *extents)
def test_any_batch_is_multiplied(data, count, m, n, k):
    a, b, out = (data.draw(batches(s)) for s in ((count, m, k), (count, k, n), (count, m, n)))
    given = gemm(a, b)
    assert torch.equal(given, product(a, b))
    assert given.is_contiguous()
    assert gemm(a, b, out=out) is out
    assert torch.equal(out, given)


def of_columns():
    return draw(3, 96, 64).mT


def between_others():
    return draw(64, 3, 200)[:, :, 8:104].transpose(0, 1)


def rows_of_33():
    return draw(3, 33, 64)[:, :32].mT


@pytest.mark.parametrize("b", [B, of_columns(), between_others(), rows_of_33()])
def test_one_kernel_computes_what_it_can_read_in_place(executed, b):
    assert torch.equal(gemm(A, b), product(A, b))
    assert [plan.batched for plan in executed] == [True]
    assert plan_for(A, b) == executed[0]
    assert "copies" not in explain(A, b)


@pytest.mark.parametrize(
    ("a", "b", "which"),
    [
        (A, draw(3, 64, 33), "B"),  # TMA reads no rows of 66 bytes
        (draw(3, 40, 66)[:, :, 2:], B, "A"),  # rows start at odd multiples of 4 bytes
        (draw(8000).as_strided((3, 40, 64), (2564, 64, 1)), B, "A"),  # TMA: no step of 5128 bytes
        (draw(3, 40, 128)[:, :, ::2], draw(3, 64, 99)[:, :, 1:34], "A and B"),
        (draw(3 * 40 * 64 + 1)[1:].view(3, 40, 64), B, "A"),  # at an odd address
    ],
)
def test_one_kernel_reads_copies_of_other_batches(executed, a, b, which):
    assert torch.equal(gemm(a, b), product(a, b))
    assert [plan.batched for plan in executed] == [True]
    assert plan_for(a, b) == executed[0]
    (line,) = [line for line in explain(a, b).splitlines() if line.startswith("copies")]
    assert line.split(":")[0].removeprefix("copies").strip().startswith(which)
    assert torch.equal(gemm(A, B), product(A, B))  # perhaps of the same signature
    assert [plan.batched for plan in executed] == [True, True]


def test_threads_store_what_tma_cannot(executed):
    b, memory = draw(3, 33, 64).mT, draw(3, 40, 40)
    for out in (None, memory[:, :, :33], memory[:, :, 1:34], draw(40, 3, 33).transpose(0, 1)):
        executed.clear()
        assert torch.equal(gemm(A, b, out=out), product(A, b))
        assert [(plan.batched, plan.c_alignment) for plan in executed] == [(True, 1)]
    untouched = memory.clone()
    gemm(A, b, out=memory[:, :, 1:34])
    assert torch.equal(memory[:, :, 0], untouched[:, :, 0])
    assert torch.equal(memory[:, :, 34:], untouched[:, :, 34:])


def test_a_batch_of_one_is_a_product(executed):
    assert torch.equal(gemm(A[:1], B[:1]), product(A[:1], B[:1]))
    assert [plan.batched for plan in executed] == [False]


@pytest.mark.parametrize("step", [0, 8])
def test_matrices_that_overlap_are_read_in_place(executed, step):
    a = draw(1000).as_strided((3, 16, 24), (step, 24, 1))
    assert torch.equal(gemm(a, B[:, :24]), product(a, B[:, :24]))
    assert [plan.batched for plan in executed] == [True]
    assert "copies" not in explain(a, B[:, :24])


def test_a_result_may_lie_between_the_matrices_of_an_operand():
    memory = draw(16, 2, 3, 16).permute(1, 2, 0, 3)  # as keys and values in one tensor
    wanted = product(memory[0], B[:, :16, :16])
    assert torch.equal(gemm(memory[0], B[:, :16, :16], out=memory[1]), wanted)


@pytest.mark.parametrize(
    ("out", "swapped"),
    [
        (draw(40, 3, 96).transpose(0, 1), False),
        (draw(3, 96, 40).mT, True),  # the rows of its transpose
        (draw(40, 96, 3).permute(2, 0, 1), False),  # through a copy
    ],
)
def test_a_result_of_any_strides_takes_one_kernel(executed, out, swapped):
    gemm(A, B, out=out)
    assert torch.equal(out, product(A, B))
    (plan,) = executed
    assert plan.batched
    assert plan.a_major == ("MN" if swapped else "K")


def test_a_batch_takes_a_tile_and_is_invariant_if_asked(executed):
    assert torch.equal(gemm(A, B, tile=(64, 64, 64)), product(A, B))
    assert executed.pop().tile == (64, 64, 64)
    a, b = torch.randn(4, 90, 200).bfloat16(), torch.randn(4, 200, 64).bfloat16()
    whole = gemm(a, b, invariant=True)
    assert torch.equal(gemm(a[:, 7:8], b, invariant=True)[:, 0], whole[:, 7])
    assert torch.equal(gemm(a[1], b[1], invariant=True), whole[1])


@pytest.mark.parametrize("needed", [(True, True), (True, False), (False, True)])
@pytest.mark.parametrize("b", [B, of_columns()])
def test_gradients_are_batches_too(executed, b, needed):
    grad = draw(3, 40, 96)
    found = []
    for multiply, dtype in ((gemm, torch.bfloat16), (torch.bmm, torch.float32)):
        pairs = zip((A, b), needed, strict=True)
        given = [x.detach().to(dtype).requires_grad_(each) for x, each in pairs]
        asked = [x for x in given if x.requires_grad]
        made = torch.autograd.grad(multiply(*given), asked, grad.to(dtype))
        found.append([each.bfloat16() for each in made])
    assert all(map(torch.equal, *found))
    assert [plan.batched for plan in executed] == [True] * (1 + sum(needed))


def test_vmap_of_matrices_is_a_batch_or_one_product(executed):
    cases = (
        ((0, 0), A, B),
        ((2, 1), A.movedim(0, 2), B.transpose(0, 1)),
        ((0, None), A, B[0]),
        ((None, 0), A[0], B),
    )
    for dims, a, b in cases:
        executed.clear()
        assert torch.equal(func.vmap(gemm, dims)(a, b), product(*_stacked(dims, a, b)))
        assert len(executed) == 1
    a, b = draw(2, 3, 40, 64), draw(2, 3, 64, 32)
    for transformed, *tensors in (
        (func.vmap(func.vmap(gemm)), a, b),
        (func.vmap(gemm), a, b),
        (func.vmap(gemm, (0, None)), a, b[1]),
        (func.vmap(gemm, (None, 2), out_dims=1), a[0], b.movedim(0, 2)),
    ):
        executed.clear()
        found = transformed(*tensors)
        of_a, of_b = (each if each.ndim == 4 else each[None] for each in tensors)
        of_b = of_b if of_b.shape[2] == 64 else of_b.movedim(2, 0)
        found = found if found.shape[0] == 2 else found.transpose(0, 1)
        assert torch.equal(found, product(of_a, of_b))
        assert [plan.batched for plan in executed] == [True]
    assert func.vmap(gemm)(draw(0, 3, 8, 16), draw(0, 3, 16, 8)).shape == (0, 3, 8, 8)


def _stacked(dims, *tensors):
    pairs = zip(tensors, dims, strict=True)
    return [each if dim is None else each.movedim(dim, 0) for each, dim in pairs]


def test_torch_traces_a_batch_as_one_operator():
    torch._dynamo.reset()
    graphs = CompileCounter()
    compiled = torch.compile(gemm, backend=graphs, fullgraph=True, dynamic=True)
    for a, b in ((A, B), (draw(4, 24, 72), draw(4, 72, 16)), (draw(5, 24, 72), draw(5, 72, 16))):
        assert torch.equal(compiled(a, b), product(a, b))
        assert graphs.frame_count == 1
        assert gemm(a.to("meta"), b.to("meta")).shape == product(a, b).shape
    with FakeTensorMode() as mode:
        assert gemm(mode.from_tensor(A), mode.from_tensor(B)).shape == (3, 40, 96)
    with FlopCounterMode(display=False) as counter:
        gemm(A, B)
    assert counter.get_total_flops() == 2 * 3 * 40 * 64 * 96
    torch.library.opcheck(torch.ops.cutedsl_gemm.gemm.default, (A, B, None, None, False, False))


def test_an_exported_batch_takes_any_number_of_matrices():
    class Product(torch.nn.Module):
        def forward(self, a, b):
            return gemm(a, b)

    count = torch.export.Dim("count", min=2, max=64)
    program = torch.export.export(Product(), (A, B), dynamic_shapes=({0: count}, {0: count}))
    a, b = draw(7, 40, 64), draw(7, 64, 96)
    assert torch.equal(program.module()(a, b), product(a, b))


def test_explain_has_the_extents_of_a_batch():
    lines = explain(A, B).splitlines()
    assert lines[0] == "problem      C (3, 40, 96) = A (3, 40, 64) · B (3, 64, 96), bfloat16"
    assert any(line.startswith("tiles") and " × 3 = " in line for line in lines)
    for a, b in ((A[:0], B[:0]), (A[:, :, :0], B[:, :0])):
        assert explain(a, b).endswith("no kernel: C is empty or zero")
    assert explain(A[:1], B[:1]) == explain(A[0], B[0])


def overlapping(count, m, n):
    """A batch whose matrices begin in the middle of each other."""
    return draw(count * m * n).as_strided((count, m, n), (m // 2 * n, n, 1))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gemm(A, B[0]), r"b has shape \(64, 96\): it must have three dimensions, as a has"),
        (lambda: gemm(A[0], B), r"b has shape \(3, 64, 96\): it must have two dimensions"),
        (lambda: gemm(A[None], B), r"a has shape \(1, 3, 40, 64\): it must have two dimensions"),
        (lambda: gemm(A, B[:2]), "batches must have equally many matrices"),
        (lambda: gemm(A, B[:, :8]), "a must have as many columns as b has rows"),
        (lambda: gemm(A, B, kernel="sm80_mma"), "kernel is 'sm80_mma', and a is a batch"),
        (lambda: gemm(A, B, out=draw(40, 96).expand(3, 40, 96)), "elements may share memory"),
        (lambda: gemm(A, B, out=overlapping(3, 40, 96)), "elements may share memory"),
        (lambda: gemm(A, B, out=draw(3, 96, 40)), r"out has shape .*: it must be \(3, 40, 96\)"),
        (lambda: gemm(A, B, out=draw(40, 96)), r"out has shape .*: it must be \(3, 40, 96\)"),
        (lambda: gemm(A, A.mT, out=A[..., :40]), "out shares memory with a"),
        (lambda: plan_for(A[:, :0], B), "M, N, K"),
        (lambda: plan_for(A[:0], B[:0]), "the batch is empty"),
        (lambda: gemm(A.to("meta"), B.to("meta"), kernel="sm80_mma"), "kernel is 'sm80_mma'"),
        (lambda: gemm(A.to("meta"), B.to("meta"), tune=True), "tune is True, and a is a batch"),
        (lambda: plan_for(A, B, kernel="sm90_pingpong"), "kernel is 'sm90_pingpong', and a is"),
    ],
)
def test_what_a_batch_does_not_take_gets_a_message(call, message):
    with pytest.raises(ValueError, match=message):
        call()
