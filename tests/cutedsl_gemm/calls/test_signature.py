"""Calls that differ in what their plan depends on are remembered apart."""

from dataclasses import dataclass, replace
from itertools import count

import pytest
import torch

from cutedsl_gemm.calls import call as module
from cutedsl_gemm.calls import fused as fused_module
from cutedsl_gemm.calls.signature import Options

TILE = 128, 128, 64


@dataclass(frozen=True)
class Operand:
    """What a signature asks of a tensor: on any device, and of any dtype, without memory."""

    shape: tuple[int, int] = (16, 16)
    strides: tuple[int, int] = (16, 1)
    dtype: torch.dtype = torch.bfloat16
    device: int = 0

    def stride(self):
        return self.strides

    def get_device(self):
        return self.device


@pytest.fixture
def call(monkeypatch):
    """`call`, of which each making is an object of its own."""
    monkeypatch.setattr(module, "_calls", {})
    monkeypatch.setattr(module, "_make", lambda *_: object())

    def call(a=None, b=None, tile=TILE, out=None, **options):
        return module.call(a or Operand(), b or Operand(), tile, out, **options)

    return call


DIFFERENT = (
    {"a": Operand(shape=(32, 16))},
    {"a": Operand(strides=(1, 16))},
    {"a": Operand(dtype=torch.float16)},
    {"a": Operand(device=1)},
    {"b": Operand(shape=(16, 32))},
    {"b": Operand(strides=(1, 16))},
    {"tile": None},
    {"tile": (128, 192, 64)},
    {"kernel": "sm90"},
    {"tune": True},
    {"invariant": True},
)


@pytest.mark.parametrize("out", [None, Operand()], ids=["new", "out"])
def test_each_difference_makes_a_call_of_its_own(call, out):
    made = [call(out=out), *(call(out=out, **different) for different in DIFFERENT)]
    assert len(set(made)) == len(made)
    assert [call(out=out), *(call(out=out, **different) for different in DIFFERENT)] == made


def test_the_strides_of_out_and_its_alignment_make_calls_of_their_own(call):
    out = Operand()
    column_major = replace(out, strides=(1, 16))
    made = call(), call(out=out), call(out=column_major), call(out=out, unaligned_out=True)
    assert len(set(made)) == len(made)


def test_what_no_plan_depends_on_shares_a_call(call):
    assert call(a=Operand()) is call(a=Operand())
    assert call(out=Operand(shape=(16, 16))) is call(out=Operand(shape=(16, 32)))  # it checks it


def epilogue(acc, x, y):
    return acc + x * y


def tensor(*shape, dtype=torch.bfloat16, start=0):
    return torch.empty(1024, dtype=dtype)[start:].as_strided(shape, (16, 1)[-len(shape) :])


@pytest.fixture
def fused(monkeypatch):
    """`fused`, of which each making has a number of its own."""
    made = count()
    monkeypatch.setattr(fused_module, "_calls", {})
    monkeypatch.setattr(fused_module, "_make", lambda *_: next(made))

    def fused(a=None, b=None, function=epilogue, out=None, options=(), **operands):
        operands = {"x": tensor(16), "y": 0.5, **operands}
        a = tensor(16, 16) if a is None else a
        b = tensor(16, 16) if b is None else b
        return fused_module.fused(a, b, function, operands, out, Options(*options))

    return fused


DIFFERENT_WITH_AN_EPILOGUE = (
    {"a": tensor(8, 16)},
    {"a": tensor(16, 16).mT},
    {"a": tensor(16, 16, start=1)},
    {"a": torch._neg_view(tensor(16, 16))},
    {"b": tensor(16, 16, dtype=torch.float16)},
    {"b": tensor(16, 16)[None].expand(2, 16, 16)},
    {"x": tensor(16, dtype=torch.float32)},
    {"x": tensor(16, start=4)},
    {"x": tensor(1, 16)},
    {"x": 0.5},
    {"y": tensor(16, 16)},
    {"z": 0.5},
    {"function": lambda acc, x, y: acc - x * y},
    {"options": ((128, 128, 64),)},
    {"options": (None, "sm90")},
    {"options": (None, None, True)},
    {"options": (None, None, False, True)},
    {"out": (tensor(16, 16),)},
    {"out": (tensor(16, 16).mT,)},
    {"out": (tensor(16, 16, start=8),)},
    {"out": (tensor(16, 16),) * 2},
)


def test_each_difference_makes_a_call_with_an_epilogue_of_its_own(fused):
    made = [fused(), *(fused(**different) for different in DIFFERENT_WITH_AN_EPILOGUE)]
    assert len(set(made)) == len(made)
    assert [fused(), *(fused(**different) for different in DIFFERENT_WITH_AN_EPILOGUE)] == made


def test_another_number_or_address_shares_a_call_with_an_epilogue(fused):
    assert fused() == fused(y=-1.0) == fused(x=tensor(16, start=32))
    assert fused(out=(tensor(16, 16),)) == fused(out=(tensor(16, 16, start=64),))


def test_a_tensor_without_memory_is_looked_at_in_every_call(fused):
    freed = tensor(16)
    freed.untyped_storage().resize_(0)
    assert fused(x=freed) != fused(x=freed)
