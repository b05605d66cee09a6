"""What `gemm` gives on an H100: right against float64, at any shape, strides and address."""

import json
import random

import pytest
import torch
from on_gpu import DTYPES, MAJORS, error, integers, matrix, plan_of, poisoned

from cutedsl_gemm import gemm, plan_for
from cutedsl_gemm.kernels.sm90 import execute
from cutedsl_gemm.select import tune

pytestmark = pytest.mark.gpu

LARGE = [(8448, 9216, 64), (8448, 9216, 256), (8448, 9216, 1984), (4096, 4096, 4096)]
SMALL = [(520, 264, 136), (8, 1000, 72)]
ORIGINAL = (128, 128, 64)


@pytest.mark.compiles(plans=lambda mnk, majors, dtype: plan_of(mnk, majors, dtype, tile=ORIGINAL))
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("majors", MAJORS, ids="-".join)
@pytest.mark.parametrize("mnk", LARGE + SMALL, ids=str)
def test_relative_error_against_float64(mnk, majors, dtype):
    m, n, k = mnk
    a, b = matrix(m, k, majors[0], dtype), matrix(k, n, majors[1], dtype)
    out = poisoned(m, n, dtype)
    assert error(gemm(a, b, tile=ORIGINAL, out=out), a, b) < 6e-3


def hundred():
    draw = random.Random(0)
    return [tuple(8 * draw.randint(1, 160) for _ in range(3)) for _ in range(100)]


@pytest.mark.compiles(plans=lambda majors, dtype: [plan_of(x, majors, dtype) for x in hundred()])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("majors", MAJORS, ids="-".join)
def test_a_hundred_random_shapes(majors, dtype):
    worst = {}
    for m, n, k in hundred():
        a, b = matrix(m, k, majors[0], dtype), matrix(k, n, majors[1], dtype)
        out = poisoned(m, n, dtype)
        worst[m, n, k] = error(gemm(a, b, out=out), a, b)
    assert max(worst.values()) < 6e-3, max(worst.items(), key=lambda item: item[1])


@pytest.mark.compiles(plans=lambda tile, majors: plan_of((1000, 712, 392), majors, tile=tile))
@pytest.mark.parametrize(
    "tile",
    [
        (64, 128, 64),
        (128, 192, 64),
        (192, 128, 64),
        (64, 256, 64),
        (128, 128, 128),
        (128, 176, 64),
        (128, 208, 64),
        (64, 16, 64),
    ],
    ids=str,
)
@pytest.mark.parametrize("majors", MAJORS, ids="-".join)
def test_other_tiles(tile, majors):
    a, b = matrix(1000, 392, majors[0]), matrix(392, 712, majors[1])
    out = poisoned(1000, 712, torch.bfloat16)
    assert error(gemm(a, b, tile=tile, out=out), a, b) < 6e-3


@pytest.mark.parametrize(
    ("m", "n", "k"),
    [(1, 8, 9), (1, 13, 8), (1, 1, 1), (8, 1, 16), (9, 8, 16), (16, 24, 1), (1, 4096, 4096)],
)
def test_extents_of_one(m, n, k):
    a = matrix(m, k, "row" if m == 1 or k % 8 == 0 else "column")
    b = matrix(k, n, "column" if n == 1 or k % 8 == 0 else "row")
    assert error(gemm(a, b), a, b) < 6e-3


@pytest.mark.parametrize(("m", "n", "k"), [(0, 8, 8), (8, 0, 8), (8, 8, 0)])
def test_empty_products_equal_those_of_torch(m, n, k):
    a, b = matrix(m, k), matrix(k, n)
    assert torch.equal(gemm(a, b), torch.mm(a, b))


def test_nothing_but_out_is_written():
    a, b, buffer = matrix(300, 136), matrix(136, 200), poisoned(400, 512, torch.bfloat16)
    out = buffer[:300, 64:264]
    gemm(a, b, out=out)
    assert error(out, a, b) < 6e-3
    assert int(buffer.isnan().sum()) == buffer.numel() - out.numel()


@pytest.mark.parametrize("order", ["row", "column"])
@pytest.mark.parametrize("extent", [1, 129, 130, 132])
def test_memory_beside_out_is_not_written(extent, order):
    """A TMA store clips columns only to 16 bytes."""
    a, b = matrix(257, 64), matrix(64, extent, "column")
    frame = torch.full((512, 512), 7.0, device="cuda", dtype=a.dtype)
    frame = frame if order == "row" else frame.mT
    out = frame[8:265, 8 : 8 + extent]
    gemm(a, b, out=out)
    assert error(out, a, b) < 6e-3
    out.fill_(7.0)
    assert bool((frame == 7.0).all())


def test_out_may_be_column_major():
    a, b, out = matrix(304, 136), matrix(136, 200), matrix(304, 200, "column").fill_(torch.nan)
    assert error(gemm(a, b, out=out), a, b) < 6e-3


@pytest.mark.parametrize(("m", "n", "k"), [(255, 129, 77), (1000, 50, 513), (3, 8, 5)])
def test_any_strides_and_addresses_are_right(m, n, k):
    wide_a, wide_b = matrix(2 * m + 1, 3 * k + 1), matrix(k + 1, 2 * n + 3)
    odd_a, odd_b = wide_a[1::2, 1::3], wide_b[1:, 1::2][:, :n]
    for a, b in ((odd_a, odd_b), (matrix(m, k), matrix(k, n)), (odd_a[:1].expand(m, k), odd_b)):
        result = gemm(a, b)
        assert result.is_contiguous()
        assert error(result, a, b) < 6e-3
        frame = torch.full((2 * m, n + 7), 7.0, device="cuda", dtype=a.dtype)
        out = frame[1::2, 3 : n + 3]
        assert torch.equal(gemm(a, b, out=out), result)
        out.fill_(7.0)
        assert bool((frame == 7.0).all())  # nothing else was written


def test_the_executor_agrees_with_the_kernel():
    """Integer products are exact in both, so the results are equal."""
    a, b = integers(520, 136, device="cpu"), integers(136, 264, device="cpu")
    on_gpu, on_cpu = gemm(a.cuda(), b.cuda()), torch.empty(520, 264, dtype=torch.bfloat16)
    execute.gemm(plan_for(a, b), a, b, on_cpu)
    assert torch.equal(on_gpu.cpu(), on_cpu)


def test_gradients_agree_with_torch():
    a, b = matrix(256, 136).requires_grad_(), matrix(136, 64).requires_grad_()
    gemm(a, b).backward(grad := matrix(256, 64))
    assert error(a.grad, grad, b.detach().mT) < 6e-3
    assert error(b.grad, a.detach().mT, grad) < 6e-3


def test_a_tensor_without_memory_is_refused():
    a, b = matrix(16, 32), matrix(32, 24)
    gemm(a, b)
    a.untyped_storage().resize_(0)
    with pytest.raises(ValueError, match="a has no memory of its own"):
        gemm(a, b)


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
def test_a_negative_out_is_refused_where_any_address_will_do():
    half = torch.zeros(16, 1, dtype=torch.complex32, device="cuda")
    a, b = matrix(16, 32, dtype=torch.float16), matrix(32, 1, dtype=torch.float16)
    gemm(a, b, out=half.imag)
    with pytest.raises(ValueError, match="out is a view with the negative bit set"):
        gemm(a, b, out=half.conj().imag)


def test_a_remembered_call_checks_its_tensors():
    """The kernel's own checks refuse what the signature does not hold; the message is ours."""
    a, b, out = matrix(16, 32), matrix(32, 24), matrix(16, 24)
    gemm(a, b)
    gemm(a, b, out=out)
    askew = torch.ones(16 * 32 + 8, dtype=a.dtype, device="cuda")[1 : 16 * 32 + 1].view(16, 32)
    for wrong, message in (
        ((a, b.half()), "they must share a dtype"),
        ((a, b.cpu()), "they must share a device"),
        ((a, b.float()), "b is torch.float32"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            gemm(*wrong)
    gemm(a, b, kernel="sm90")
    with pytest.raises(ValueError, match="a starts at address"):
        gemm(askew, b, kernel="sm90")
    for wrong, message in (
        (out.half(), "out is torch.float16"),
        (out.cpu(), "out is on cpu"),
        (matrix(24, 24)[:8], "out has shape"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            gemm(a, b, out=wrong)


def test_the_winner_of_a_race_is_right_and_stored(monkeypatch, tmp_path):
    monkeypatch.setattr(tune, "_file", lambda: tmp_path / "tuned.json")
    a, b, out = matrix(520, 1024), matrix(1024, 776), poisoned(520, 776, torch.bfloat16)
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        out.fill_(torch.nan)  # an empty graph is warned of
        with pytest.raises(RuntimeError, match="call gemm once before the capture"):
            gemm(a, b, tune=True)
    assert error(gemm(a, b, out=out, tune=True), a, b) < 6e-3
    (winner,) = json.loads((tmp_path / "tuned.json").read_text()).values()
    assert {*winner} == {"520×776×1024 bfloat16 K-MN rows 128/16/16"}
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        gemm(a, b, tune=True)
    assert torch.equal(gemm(a, b, tune=True), out)
    column_major = matrix(520, 776, "column").fill_(torch.nan)
    assert error(gemm(a, b, out=column_major, tune=True), a, b) < 6e-3
