"""gemm(a, b) computes what torch.mm computes, or raises with a message that says why not."""

import re
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn.functional import pad

import cutedsl_gemm
from cutedsl_gemm import PlanError, gemm, plan_for
from cutedsl_gemm.calls.call import allocating, writing
from cutedsl_gemm.inputs.aliasing import span_bytes
from cutedsl_gemm.inputs.problem import TMA
from cutedsl_gemm.inputs.tensors import allocator
from cutedsl_gemm.kernels.sm90.panel_plan import PanelPlan
from cutedsl_gemm.select.registry import LADDER

ROW, COLUMN = "row", "column"


def matrix(rows, columns, order=ROW, dtype=torch.bfloat16):
    if order == ROW:
        return torch.randn(rows, columns).to(dtype)
    return torch.randn(columns, rows).to(dtype).mT


def error(c, a, b):
    truth = a.double() @ b.double()
    return float((c.double() - truth).norm() / truth.norm())


multiples_of_8 = st.integers(1, 40).map(lambda x: 8 * x)


@settings(max_examples=2 * settings().max_examples // 5)
@given(
    m=multiples_of_8,
    n=multiples_of_8,
    k=multiples_of_8,
    orders=st.tuples(*[st.sampled_from([ROW, COLUMN])] * 2),
    dtype=st.sampled_from([torch.bfloat16, torch.float16]),
)
def test_all_majors_dtypes_and_shapes_agree_with_float64(m, n, k, orders, dtype):
    a, b = matrix(m, k, orders[0], dtype), matrix(k, n, orders[1], dtype)
    c = gemm(a, b)
    assert (c.shape, c.dtype) == ((m, n), dtype)
    assert c.is_contiguous()
    assert error(c, a, b) < 3e-3


def test_extents_of_one_and_extents_that_are_not_multiples_of_8():
    for m, n, k in ((1, 8, 9), (1, 13, 8), (1, 1, 1), (8, 1, 16), (9, 8, 16), (16, 24, 1)):
        a = matrix(m, k, ROW if m == 1 or k % 8 == 0 else COLUMN)
        b = matrix(k, n, COLUMN if n == 1 or k % 8 == 0 else ROW)
        assert error(gemm(a, b), a, b) < 4e-3, (m, n, k)


@pytest.mark.parametrize(("m", "n", "k"), [(0, 8, 8), (8, 0, 8), (8, 8, 0), (0, 0, 0)])
def test_empty_products_equal_those_of_torch(m, n, k):
    a, b = matrix(m, k), matrix(k, n)
    assert torch.equal(gemm(a, b), torch.mm(a, b))
    out = torch.full((m, n), torch.nan, dtype=a.dtype)
    assert torch.equal(gemm(a, b, out=out), torch.mm(a, b))


@pytest.mark.parametrize("order", [ROW, COLUMN])
def test_out_takes_the_result_in_either_order(order):
    a, b, out = matrix(136, 64), matrix(64, 200, COLUMN), matrix(136, 200, order)
    assert gemm(a, b, out=out, tile=(64, 128, 64)) is out
    assert torch.equal(out, gemm(a, b))


def test_views_of_larger_tensors():
    a, b = matrix(300, 256)[40:140, 64:192], matrix(256, 128)[64:192]
    out = matrix(200, 256)[:100, 8:136]
    around = out._base.clone()
    gemm(a, b, out=out)
    assert error(out, a, b) < 3e-3
    around[:100, 8:136] = out
    assert torch.equal(out._base, around)  # nothing else was written


@pytest.mark.parametrize("order", [ROW, COLUMN])
@pytest.mark.parametrize(("m", "n"), [(16, 23), (23, 16), (1, 1), (9, 130)])
def test_m_and_n_need_not_be_multiples_of_8(m, n, order):
    a, b = matrix(m, 32), matrix(32, n, COLUMN)
    result = gemm(a, b)
    assert result.is_contiguous()
    assert error(result, a, b) < 2**-8  # of one bf16 alone, half a unit in the last place
    frame = torch.zeros(256, 256, dtype=a.dtype)
    frame = frame if order == ROW else frame.mT
    out = frame[8 : 8 + m, 8 : 8 + n]
    gemm(a, b, out=out)
    assert error(out, a, b) < 2**-8
    assert frame.count_nonzero() == out.count_nonzero()  # nothing else was written


def test_gradients_agree_with_torch():
    a, b = (matrix(*shape).requires_grad_() for shape in ((64, 40), (40, 72)))
    weight = matrix(64, 72)
    (gemm(a, b) * weight).sum().backward()
    ours = a.grad, b.grad
    a.grad = b.grad = None
    (torch.mm(a, b) * weight).sum().backward()
    for mine, theirs in zip(ours, (a.grad, b.grad), strict=True):
        assert torch.allclose(mine.float(), theirs.float(), rtol=2e-2, atol=2e-2)


def test_a_remembered_call_checks_addresses():
    buffer = torch.randn(8 * 64 + 8).to(torch.bfloat16)
    a, askew, b = buffer[: 8 * 64].view(8, 64), buffer[1 : 8 * 64 + 1].view(8, 64), matrix(64, 8)
    gemm(a, b)
    assert error(gemm(askew, b), askew, b) < 3e-3  # by a copy
    gemm(a, b, kernel="sm90")
    message = r"a starts at address 0x[0-9a-f]+: TMA needs a multiple of 16 bytes"
    with pytest.raises(ValueError, match=message):
        gemm(askew, b, kernel="sm90")


def strided(draw, rows, columns, dtype):
    """A view of (rows, columns) with any strides and any first element."""
    steps = st.sampled_from([0, 1, 1, 2, 3])
    down, across = draw(steps), draw(steps)
    gap, start = draw(st.integers(0, 9)), draw(st.integers(0, 9))
    if draw(st.booleans()):
        stride = down * ((columns - 1) * across + 1 + gap), across
    else:
        stride = down, across * ((rows - 1) * down + 1 + gap)
    span = start + (rows - 1) * stride[0] + (columns - 1) * stride[1] + 1
    return torch.randn(span).to(dtype)[start:].as_strided((rows, columns), stride, start)


@settings(max_examples=4 * settings().max_examples // 5)
@given(st.data())
def test_any_strides_and_addresses_agree_with_float64(data):
    m, n, k = (data.draw(st.integers(1, 150)) for _ in range(3))
    dtype = data.draw(st.sampled_from([torch.bfloat16, torch.float16]))
    a, b = strided(data.draw, m, k, dtype), strided(data.draw, k, n, dtype)
    c = gemm(a, b)
    assert c.is_contiguous()
    truth = a.double() @ b.double()
    assert (c.double() - truth).norm() <= 4e-3 * truth.norm()
    wide = torch.zeros(2 * m + 1, 3 * n + 1, dtype=dtype)
    out = wide[1::2, 1 :: data.draw(st.sampled_from([1, 3]))][:, :n]
    gemm(a, b, out=out)
    assert torch.equal(out, c)
    assert wide.count_nonzero() == out.count_nonzero()  # nothing else was written


@pytest.mark.parametrize("start", [(0, 0), (0, 1), (3, 5), (8, 8)], ids=str)
@pytest.mark.parametrize("extent", [8, 13, 1], ids=str)
def test_out_may_be_columns_at_any_address(extent, start):
    """Cᵀ = Bᵀ · Aᵀ is stored to a matrix whose columns are contiguous, and to nothing else."""
    row, column = start
    a, b = matrix(extent, 24), matrix(24, 11)
    wide = torch.zeros(31, 29, dtype=a.dtype).mT
    out = wide[row : row + extent, column : column + 11]
    assert gemm(a, b, out=out) is out
    assert error(out, a, b) < 3e-3
    assert wide.count_nonzero() == out.count_nonzero()


@pytest.mark.parametrize("order", [ROW, COLUMN])
@pytest.mark.parametrize(("start", "pitch"), [(0, 88), (3, 88), (8, 87), (1, 73)])
@pytest.mark.parametrize("extent", [72, 71])
def test_an_out_with_contiguous_rows_or_columns_is_stored_in_place(
    extent, start, pitch, order, monkeypatch
):
    """By TMA if its rows are aligned and of whole vectors, else by threads; it is never copied."""
    monkeypatch.setattr("cutedsl_gemm.calls.run.copy", None)
    ran, execute = [], PanelPlan.execute
    monkeypatch.setattr(
        PanelPlan, "execute", lambda plan, *rest: (ran.append(plan), execute(plan, *rest))
    )
    a, b = matrix(extent, 64), matrix(64, extent)
    flat = torch.full((start + extent * pitch + 8,), 7.0, dtype=a.dtype)
    out = flat.as_strided((extent, extent), (pitch, 1), start)
    monkeypatch.setattr("cutedsl_gemm.calls.call._calls", {})
    gemm(a, b, tile=(64, 64, 64), out=out if order == ROW else out.mT)
    whole = extent % 8 == start % 8 == pitch % 8 == 0
    assert [plan.c_alignment for plan in ran] == [8 if whole else 1]
    assert error(out if order == ROW else out.mT, a, b) < 3e-3
    out.fill_(7.0)
    assert bool((flat == 7.0).all())  # nothing else was written


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
def test_a_negative_out_is_refused_where_any_address_will_do():
    """A remembered call meets it with the strides of an out without the negative bit."""
    half = torch.zeros(16, 1, dtype=torch.complex32)
    a, b = matrix(16, 32, dtype=torch.float16), matrix(32, 1, dtype=torch.float16)
    spans = span_bytes(a), span_bytes(b), span_bytes(half.imag)
    write = writing(lambda *tensors: None, replace(TMA, c_alignment=1), spans)
    write(a, b, half.imag)
    with pytest.raises(ValueError, match="out is a view with the negative bit set"):
        write(a, b, half.conj().imag)


@pytest.mark.parametrize("k", [0, 32])
def test_a_remembered_call_checks_its_tensors(k):
    a, b, out = matrix(16, k), matrix(k, 24), matrix(16, 24)
    gemm(a, b, out=out)
    with pytest.raises(TypeError, match="they must share a dtype"):
        gemm(a, b.half())
    with pytest.raises(TypeError, match=r"out is torch\.float16"):
        gemm(a, b, out=out.half())
    with pytest.raises(ValueError, match="out has shape"):
        gemm(a, b, out=matrix(24, 24)[:8])


@pytest.mark.parametrize("pitch", [64, 65])
@pytest.mark.parametrize(("m", "n", "k"), [(16, 24, 32), (1, 24, 32), (16, 1, 32), (9, 13, 8)])
def test_a_remembered_call_refuses_an_out_of_another_shape(m, n, k, pitch):
    """The signature holds the strides of out, not its shape."""
    a, b = matrix(m, k), matrix(k, n, COLUMN)
    wide = torch.zeros(64, pitch, dtype=torch.bfloat16)
    gemm(a, b, out=wide[:m, :n])
    before = wide.clone()
    for wrong in (wide[: m + 1, :n], wide[:m, : n + 1], wide[:n, :m] if m != n else wide):
        with pytest.raises(ValueError, match="out has shape"):
            gemm(a, b, out=wrong)
    assert torch.equal(wide, before)


A, B = matrix(16, 32), matrix(32, 24)
negative = torch._neg_view

TYPE_ERRORS = [
    (lambda: gemm([[1.0]], B), "a is list: it must be a torch.Tensor"),
    (lambda: gemm(3, B), "a is int"),
    (lambda: gemm(3, [4]), "a is int"),
    (lambda: gemm(3, B.to("meta")), "a is int"),
    (lambda: gemm(A.to("meta"), 3), "b is int|a is on the device meta"),
    (lambda: gemm(A.to("meta"), 3, epilogue=torch.relu), "b is int|a is on the device meta"),
    (lambda: gemm(np.ones((16, 32)), B), "a is ndarray: it must be a torch.Tensor"),
    (lambda: plan_for(np.ones((16, 32)), B), "a is ndarray: it must be a torch.Tensor"),
    (lambda: gemm(A, B, invariant=np.ones(2)), "invariant is array.*: it must be True or False"),
    (lambda: gemm(A, B, invariant=torch.tensor(True)), "invariant is .*: it must be True or False"),
    (lambda: gemm(A, B, tune=np.array(False)), "tune is array.*: it must be True or False"),
    (lambda: gemm(A, B) is gemm(A, B, tune=0), "tune is 0: it must be True or False"),
    (lambda: gemm(A, B, tune="no"), "tune is 'no': it must be True or False"),
    (lambda: gemm(A, B, tune=[]), r"tune is \[\]: it must be True or False"),
    (lambda: gemm(A, B.float()), "b is torch.float32: it must be torch.bfloat16 or torch.float16"),
    (
        lambda: gemm(A, B.half()),
        "a is torch.bfloat16 and b is torch.float16: they must share a dtype",
    ),
    (
        lambda: gemm(A, B, out=matrix(16, 24).half()),
        "out is torch.float16: it must be torch.bfloat16",
    ),
    (lambda: gemm(A.to_sparse(), B), "it must be dense"),
    (
        lambda: gemm(A.to("meta"), B),
        "a is on the device meta: it must be on a CPU or a CUDA device",
    ),
]
VALUE_ERRORS = [
    (lambda: gemm(A[None], B), r"b has shape \(32, 24\): it must have three dimensions, as a has"),
    (lambda: gemm(A[0], B), "it must have two dimensions"),
    (lambda: gemm(A, matrix(24, 32)), r"a has shape \(16, 32\) and b \(24, 32\): a must have"),
    (
        lambda: gemm(matrix(16, 31), B[:31], kernel="sm90"),
        r"a: shape \(16, 31\) with strides \(31, 1\).*F.pad\(a, ",
    ),
    (
        lambda: gemm(A, matrix(32, 23), kernel="sm90"),
        r"b: shape \(32, 23\).*F.pad\(b, \(0, 1\)\)\[:, :23\]",
    ),
    (lambda: gemm(A[:, ::2], B[:16], kernel="sm90"), r"pass a.contiguous\(\)"),
    (
        lambda: gemm(A[:1].expand(16, 32), B, kernel="sm90"),
        r"strides \(0, 1\).*pass a.contiguous\(\)",
    ),
    (lambda: gemm(A, B, out=matrix(16, 32)), r"out has shape \(16, 32\): it must be \(16, 24\)"),
    (
        lambda: gemm(*(each.to("meta") for each in (A, B)), out=matrix(16, 32).to("meta")),
        r"out has shape \(16, 32\): it must be \(16, 24\)",
    ),
    (lambda: gemm(A, B, kernel="sm90_pingpang"), r"or None; did you mean sm90_pingpong\?"),
    (lambda: gemm(A, A.mT[:, :], out=A[:, :16]), "out shares memory with a"),
    (lambda: gemm(negative(A), B), r"a is a view .* pass a.resolve_neg\(\)"),
    (
        lambda: gemm(*[torch.ones(8, 8)] * 2, kernel="simt_naive", out=negative(torch.zeros(8, 8))),
        "out is a view with the negative bit set: pass memory of its own",
    ),
    (lambda: plan_for(A[:0], B), r"M, N, K = \(0, 24, 32\): an empty product needs no kernel"),
    (lambda: gemm(A.clone().requires_grad_(), B, out=matrix(16, 24)), "out: .*no gradient"),
]
PLAN_ERRORS = [
    (lambda: gemm(A, B, tile=(128, 128)), r"tile is \(128, 128\): it must be three integers"),
    (lambda: gemm(A, B, tile=[128.0, 128, 64]), "it must be three integers"),
    (lambda: gemm(A, B, tile=(128, 128, 64, 1)), "it must be three integers"),
    (lambda: gemm(A, B, tile={128, 32, 64}), "it must be three integers"),
    (lambda: gemm(A, B, tile={}, out=matrix(16, 24, COLUMN)), "it must be three integers"),
    (lambda: gemm(A[:0], B, tile="x"), "tile is 'x'"),
    (lambda: gemm(A, B, tile="big"), "tile is 'big'"),
    (lambda: gemm(A, B, tile=(256, 256, 64)), "the accumulator takes 256 registers"),
]


@pytest.mark.parametrize(
    "tile",
    [[128, 96, 64], np.array([128, 96, 64]), torch.Size((128, 96, 64)), (np.int64(128), 96, 64)],
)
def test_a_tile_is_any_sequence_of_three_integers(tile):
    assert plan_for(A, B, tile=tile).tile == (128, 96, 64)
    assert torch.equal(gemm(A, B, tile=tile), gemm(A, B, tile=(128, 96, 64)))
    assert torch.equal(gemm(A, B, tile=tile, epilogue=torch.relu), gemm(A, B).relu())


def test_tensors_without_memory_give_the_shape_as_torch_mm_does():
    a, b = A.to("meta"), B.to("meta")
    for made in (gemm(a, b), gemm(a, b, out=torch.empty_like(a @ b))):
        assert (made.shape, made.dtype, made.device.type) == ((16, 24), torch.bfloat16, "meta")
    assert plan_for(a, b) == plan_for(A, B)
    with FakeTensorMode() as mode:
        fake = gemm(mode.from_tensor(A), mode.from_tensor(B))
    assert (fake.shape, fake.device.type) == ((16, 24), "cpu")


@pytest.mark.parametrize(("call", "message"), TYPE_ERRORS)
def test_a_wrong_type_gets_a_message(call, message):
    with pytest.raises(TypeError, match=message):
        call()


@pytest.mark.parametrize(("call", "message"), VALUE_ERRORS)
def test_a_wrong_value_gets_a_message(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(("call", "message"), PLAN_ERRORS)
def test_a_wrong_tile_gets_a_message(call, message):
    with pytest.raises(PlanError, match=message):
        call()


def test_a_remembered_call_checks_the_tile():
    gemm(A, B, tile=(128, 128, 64))  # (128.0, …) has the same hash
    with pytest.raises(PlanError, match=r"tile is \(128\.0, 128, 64\)"):
        gemm(A, B, tile=(128.0, 128, 64))


@pytest.mark.parametrize(
    ("tile", "kernel"), [((256, 192, 64), None), ((128, 256, 64), "sm80_large")]
)
def test_a_column_major_out_keeps_the_given_tile(tile, kernel):
    out = matrix(16, 24, COLUMN)
    assert torch.equal(gemm(A, B, tile=tile, kernel=kernel, out=out), gemm(A, B))


@pytest.mark.parametrize("tile", [(128, 176, 64), (128, 208, 64), (64, 16, 32)])
def test_a_tile_may_have_any_multiple_of_16_columns(tile):
    assert torch.equal(gemm(A, B, tile=tile), gemm(A, B))


def test_a_tile_may_be_a_subclass_of_tuple():
    assert torch.equal(gemm(A, B, tile=torch.Size((64, 64, 64))), gemm(A, B))


def test_an_error_has_no_context():
    with pytest.raises(ValueError, match="strides") as refused:
        gemm(matrix(48, 31), matrix(31, 24), kernel="sm90")
    assert refused.value.__context__ is None
    gemm(A, B)
    with pytest.raises(TypeError, match="share a dtype") as refused:
        gemm(A, B.half())
    assert refused.value.__cause__ is None
    assert refused.value.__suppress_context__


def test_an_error_of_the_launch_is_explained_or_passes():
    def launch(a, b, out):
        raise RuntimeError("of the launch")

    run = allocating(launch, TMA, allocator(A, 16, 24))
    with pytest.raises(RuntimeError, match="of the launch"):
        run(A, B, None)
    with pytest.raises(ValueError, match=r"pass a.resolve_neg\(\)"):
        run(negative(A), B, None)


def test_the_remedy_in_a_message_works():
    a, b = matrix(16, 31), matrix(31, 24)
    assert error(gemm(pad(a, (0, 1))[:, :31], b, kernel="sm90"), a, b) < 3e-3
    a = matrix(31, 40, COLUMN)
    with pytest.raises(
        ValueError, match=re.escape("F.pad(a, (0, 0, 0, 1)).mT.contiguous().mT[:31]")
    ):
        gemm(a, matrix(40, 24), kernel="sm90")
    b = matrix(40, 24)
    padded = pad(a, (0, 0, 0, 1)).mT.contiguous().mT[:31]
    assert error(gemm(padded, b, kernel="sm90"), a, b) < 3e-3


def test_the_negative_half_of_a_conjugate_is_negative():
    half = torch.complex(torch.ones(8, 1), torch.ones(8, 1)).conj().imag
    result = gemm(half, torch.ones(1, 8), kernel="simt_naive")
    assert torch.equal(result, -torch.ones(8, 8))


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
def test_the_negative_half_of_16_bit_elements_is_never_aligned():
    """A remembered call does not test the negative bit: the launch refuses the address instead."""
    taken = {each for kernel in LADDER for each in (kernel.requirements, *kernel.narrower)}
    units = {each.alignment_bytes for each in taken if torch.float16 in each.dtypes}
    wide = torch.ones(8, 16, dtype=torch.complex32).conj().imag
    for column in range(16):
        half = wide[:, column:]
        assert half.is_neg()
        assert all(half.data_ptr() % unit for unit in units)


def test_an_odd_k_in_a_wider_tensor_is_accepted():
    assert error(gemm(A[:, :31], B[:31]), A[:, :31], B[:31]) < 3e-3


def test_plan_for_returns_the_plan():
    plan = plan_for(A, B, tile=(128, 192, 64))
    assert plan.tile == (128, 192, 64)
    assert (plan.a.major, plan.b.major) == ("K", "MN")
    assert cutedsl_gemm.__version__


def test_tensors_without_memory_are_refused():
    a, b, out = matrix(16, 32), matrix(32, 24), matrix(16, 24)
    freed = a.clone()
    freed.untyped_storage().resize_(0)
    with pytest.raises(ValueError, match="a has no memory of its own"):
        gemm(freed, b)
    out.untyped_storage().resize_(0)
    with pytest.raises(ValueError, match="out has no memory of its own"):
        gemm(a, b, out=out)


def test_an_out_with_gradients_is_refused_and_a_written_out_has_a_new_version():
    a, b = matrix(16, 32), matrix(32, 24)
    with pytest.raises(ValueError, match="has no gradient"):
        gemm(a, b, out=matrix(16, 24).requires_grad_() * 2)
    out = matrix(16, 24)
    version = out._version
    gemm(a, b, out=out)
    assert out._version > version


def test_out_may_be_other_columns_of_the_memory_of_a():
    buffer = matrix(16, 64)
    a, out, b = buffer[:, :32], buffer[:, 32:], matrix(32, 32)
    expected = gemm(a, b)
    assert torch.equal(gemm(a, b, out=out), expected)
    with pytest.raises(ValueError, match="out shares memory with a"):
        gemm(a, b, out=buffer[:, 24:56])


@pytest.mark.parametrize("mode", ["M", "N", "K"])
def test_an_extent_whose_last_tile_ends_beyond_31_bits_is_refused(mode):
    """Coordinates have 32 bits, and a tile has at most 256 rows."""
    for extent, fits in ((2**31 - 256, True), (2**31 - 255, False)):
        m, n, k = (extent if each == mode else 8 for each in "MNK")
        a, b = (
            torch.empty(shape, dtype=torch.float16, device="meta") for shape in ((m, k), (k, n))
        )
        with nullcontext() if fits else pytest.raises(ValueError, match="an extent must be at mo"):
            gemm.explain(a, b)


@pytest.mark.parametrize(("m", "n", "k"), [(16, 23, 0), (0, 23, 31), (3, 0, 7)])
def test_empty_products_need_no_alignment(m, n, k):
    a, b = matrix(m, k), matrix(k, n)
    assert torch.equal(gemm(a, b), torch.mm(a, b))


def test_out_may_be_other_rows_of_a_column_major_memory():
    both = torch.zeros(64, 256, dtype=torch.bfloat16).mT
    a, out, b = both[:64].copy_(matrix(64, 64)), both[64:128], matrix(64, 64)
    assert torch.equal(gemm(a, b, out=out), gemm(a, b))


def test_gradients_need_no_alignment_of_their_own():
    wide = matrix(16, 32).requires_grad_()
    a, b = wide[:, :31], matrix(31, 24).requires_grad_()
    gemm(a, b).sum().backward()
    ours = wide.grad, b.grad
    wide.grad = b.grad = None
    torch.mm(wide[:, :31], b).sum().backward()
    for mine, theirs in zip(ours, (wide.grad, b.grad), strict=True):
        assert torch.allclose(mine.float(), theirs.float(), rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("options", [{}, {"kernel": "sm90_split"}, {"invariant": True}], ids=str)
def test_the_defaults_of_torch_do_not_matter(options):
    a, b = matrix(40, 32), matrix(32, 24)
    expected = gemm(a, b, **options)
    with torch.device("meta"):
        assert torch.equal(gemm(a, b, **options), expected)
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.equal(gemm(a, b, **options), expected)
    finally:
        torch.set_default_dtype(torch.float32)


def test_every_public_name_exists():
    assert dir(cutedsl_gemm) == sorted(cutedsl_gemm.__all__)
    for name in cutedsl_gemm.__all__:
        assert hasattr(cutedsl_gemm, name)
