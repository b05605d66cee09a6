"""torch.bmm in the context of enabled(): by gemm where that is expected to be faster."""

from contextlib import nullcontext

import pytest
import torch
from torch.utils.checkpoint import checkpoint

from cutedsl_gemm import enabled
from cutedsl_gemm.api import gemm
from cutedsl_gemm.models import faster, faster_batch

pytestmark = pytest.mark.usefixtures("on_the_executor")


def draw(*shape):
    """Integers, whose products are exact."""
    return torch.randint(-2, 3, shape).bfloat16()


A, B = draw(3, 136, 64), draw(3, 64, 144)


@pytest.fixture
def multiplied(monkeypatch):
    """The shapes of the batches that gemm multiplies."""
    found = []

    def recorded(a, b):
        found.append((*a.shape, b.shape[-1]))
        return gemm(a, b)

    monkeypatch.setattr(faster_batch, "gemm", recorded)
    monkeypatch.setattr(faster_batch, "_suited", {})
    return found


@pytest.mark.parametrize(
    "product",
    [
        lambda: torch.bmm(A, B),
        lambda: A.bmm(mat2=B),
        lambda: A @ B,
        lambda: torch.matmul(A, B.mT.contiguous().mT),
        lambda: torch.bmm(draw(136, 3, 64).copy_(A.movedim(0, 1)).movedim(1, 0), B),
    ],
)
def test_a_batch_is_gemms(multiplied, product):
    wanted = torch.bmm(A.float(), B.float()).bfloat16()
    with enabled():
        assert torch.equal(product(), wanted)
    assert multiplied == [(3, 136, 64, 144)]


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (A[:, :, :40], draw(3, 40, 145)),  # TMA stores no rows of 290 bytes, and K is short
        (A, draw(3, 64, 63)),  # nor of 126, and they are few
        (A[:, :, ::2], B[:, :32]),
        (A[:, :24], B),  # few rows: torch is expected to be faster
        (draw(3, 64, 1024), draw(3, 1024, 64)),  # K is too long for them
        (A.float(), B.float()),
        (A[:0], B[:0]),
        (torch._neg_view(A), B),
        (draw(A.numel() + 1)[1:].view(A.shape), B),  # at an odd address
    ],
)
def test_other_batches_are_torchs(multiplied, a, b):
    wanted = torch.bmm(a, b)
    with enabled():
        assert torch.equal(torch.bmm(a, b), wanted)
    assert not multiplied


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (A, draw(3, 145, 64).mT),  # TMA stores no rows of 290 bytes
        (draw(3, 136, 67), draw(3, 67, 144)),  # and reads none of 134
        (A, draw(3, 144, 128)[:, :, ::2].mT),
        (A.unflatten(0, (1, 3)), B.unflatten(0, (1, 3))),
        (draw(2, 136, 3, 64).transpose(1, 2), draw(2, 144, 3, 64).permute(0, 2, 3, 1)),  # heads
        (draw(2, 3, 136, 67), draw(2, 3, 67, 65)),
        (draw(2, 1, 2, 136, 64), draw(2, 1, 2, 64, 144)),
    ],
)
def test_batches_of_any_strides_and_modes_are_gemms(multiplied, a, b):
    wanted = torch.matmul(a.float(), b.float()).bfloat16()
    with enabled():
        found = torch.matmul(a, b)
    assert torch.equal(found, wanted)
    assert found.is_contiguous()
    assert len(multiplied) == 1


def test_modes_that_broadcast_are_torchs(multiplied):
    for a, b in ((A, B[0].expand(2, 3, 64, 144)), (A[None], B.expand(2, 3, 64, 144))):
        with enabled():
            assert torch.equal(a @ b, (a.float() @ b.float()).bfloat16())
    assert not multiplied


def test_heads_have_gradients(multiplied, monkeypatch):
    monkeypatch.setattr(faster, "LEAST_TRAINED", 0)
    heads = [draw(2, 136, 3, 64), draw(2, 144, 3, 64)]

    def scores(q, k):
        return q.transpose(1, 2) @ k.permute(0, 2, 3, 1)

    grad, found = draw(2, 3, 136, 144), []
    for context in (enabled(), nullcontext()):
        given = [each.clone().requires_grad_() for each in heads]
        with context:
            found.append(torch.autograd.grad(scores(*given), given, grad))
    assert all(map(torch.equal, *found))
    assert len(multiplied) == 1


def test_a_batch_with_gradients_is_gemms_if_it_is_not_short(multiplied, monkeypatch):
    a, b, dy = A.clone().requires_grad_(), B.clone().requires_grad_(), draw(3, 136, 144)
    wanted = torch.autograd.grad(torch.bmm(a, b), (a, b), dy)
    elements = 3 * 136 * 64 * 144
    for least, count in ((elements + 1, 0), (elements, 1)):
        monkeypatch.setattr(faster, "LEAST_TRAINED", least)
        with enabled():
            y = torch.bmm(a, b)
        assert len(multiplied) == count
        found = torch.autograd.grad(y, (a, b), dy)
        assert all(map(torch.equal, found, wanted))
    with enabled():
        y = checkpoint(torch.bmm, a, b, use_reentrant=False, context_fn=lambda: (enabled(),) * 2)
    assert all(map(torch.equal, torch.autograd.grad(y, (a, b), dy), wanted))


def test_autocast_converts_a_batch_as_torch_does(multiplied):
    with torch.autocast("cpu", torch.bfloat16):
        wanted = torch.bmm(A.float(), B.float())
        with enabled():
            found = torch.bmm(A.float(), B.float())
            rest = torch.bmm(A.float(), B.float()[..., :32])
            with pytest.raises(RuntimeError, match="batch2"):
                torch.bmm(A.float(), B[:2].float())
    assert torch.equal(found, wanted)
    assert torch.equal(rest, wanted[..., :32])
    assert found.dtype == rest.dtype == torch.bfloat16
    assert len(multiplied) == 1


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")  # of torch's own jvp
@pytest.mark.parametrize(
    "transform",
    [
        lambda product: lambda a, b: torch.func.vmap(product)(a[None], b[None])[0],
        lambda product: torch.compile(product, backend="aot_eager"),
        lambda product: lambda a, b: torch.func.jvp(product, (a, b), (a, b))[0],
    ],
)
def test_transforms_and_compiled_graphs_keep_torchs(multiplied, transform):
    wanted = torch.bmm(A, B)
    with enabled():
        assert torch.equal(transform(torch.bmm)(A, B), wanted)
    assert not multiplied
