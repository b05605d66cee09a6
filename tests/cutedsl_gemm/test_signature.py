"""Calls that differ in what their plan depends on are remembered apart."""

from dataclasses import dataclass, replace

import pytest
import torch

from cutedsl_gemm import call as module

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


def test_the_strides_of_out_and_its_staging_make_calls_of_their_own(call):
    out = Operand()
    column_major = replace(out, strides=(1, 16))
    made = call(), call(out=out), call(out=column_major), call(out=out, staged=True)
    assert len(set(made)) == len(made)


def test_what_no_plan_depends_on_shares_a_call(call):
    assert call(a=Operand()) is call(a=Operand())
    assert call(out=Operand(shape=(16, 16))) is call(out=Operand(shape=(16, 32)))  # it checks it
