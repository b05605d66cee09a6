"""The forms of a kernel's operations, on fp32 arrays: each is as exact as it says."""

import re

import numpy as np
import pytest
import torch

from cutedsl_gemm.kernels.epilogue import evaluate, forms
from cutedsl_gemm.kernels.epilogue.cost import cost
from cutedsl_gemm.kernels.epilogue.evaluate import TORCH
from cutedsl_gemm.kernels.epilogue.expression import EpilogueOperand
from cutedsl_gemm.kernels.epilogue.functions import apply
from cutedsl_gemm.kernels.epilogue.operations import IDENTITIES, LEAVES, OPERATIONS
from cutedsl_gemm.kernels.epilogue.trace import trace
from tests.kernels.epilogue.arrays import RANDOM, TINY, Arrays


def _form(name, *arguments):
    arrays = [np.asarray(each, np.float32) for each in arguments]
    with np.errstate(all="ignore"):
        return forms.FORMS[name](Arrays(), *arrays)


def _exact(name, *arguments):
    """In fp64, of the same fp32 numbers."""
    wide = (torch.from_numpy(np.asarray(each, np.float32)).double() for each in arguments)
    return TORCH[name](*wide).numpy()


def _every_bf16():
    bits = np.arange(1 << 16, dtype=np.uint32) << 16
    numbers = bits.view(np.float32)
    return numbers[np.isfinite(numbers)]


OTHER = EpilogueOperand("other", ("M", "N"))
NUMBERS = np.concatenate(
    [
        _every_bf16(),
        *(RANDOM.normal(0, scale, 1 << 15) for scale in (1e-3, 0.3, 1, 3, 10)),
        RANDOM.uniform(-9, 9, 1 << 15),
    ]
).astype(np.float32)
ULP = 2.0**-23
# Relative and absolute error, a little above what the table of forms states.
ERRORS = {
    "exp": (lambda x: (3 + 0.65 * np.abs(x)) * ULP, TINY),
    "expm1": (lambda x: (10 + 0.65 * np.abs(x)) * ULP, TINY),
    "log": (4 * ULP, 5e-7),
    "sqrt": (2 * ULP, TINY),
    "rsqrt": (2 * ULP, TINY),
    "sigmoid": (lambda x: (5 + 0.65 * np.abs(x)) * ULP, 2 * TINY),
    "silu": (lambda x: (6 + 0.65 * np.abs(x)) * ULP, 1e-30),
    "gelu": (6e-6, 1e-10),
    "gelu_tanh": (6e-6, 7.5e-6),
    "ndtr": (6e-6, 1e-10),
    "tanh": (1.25e-5, TINY),
    "erf": (1e-6, TINY),
    "softplus": (4e-6, 1e-30),
}


@pytest.mark.parametrize("name", ERRORS)
def test_a_form_is_as_exact_as_its_table_says(name):
    relative, absolute = ERRORS[name]
    x = NUMBERS[NUMBERS >= TINY] if name in ("log", "sqrt", "rsqrt") else NUMBERS
    exact = _exact(name, x)
    x = x[np.abs(exact) < np.finfo(np.float32).max / 1.01]
    exact, result = _exact(name, x), _form(name, x)
    allowed = (relative(x) if callable(relative) else relative) * np.abs(exact) + absolute
    error = np.abs(result - exact)
    worst = np.argmax(error / allowed)
    assert error[worst] <= allowed[worst], (x[worst], exact[worst], result[worst])


def test_every_operation_has_a_form_and_a_torch_form():
    operations = OPERATIONS.keys() - set(LEAVES) - {"cast"}
    assert forms.FORMS.keys() == TORCH.keys() == operations
    assert forms.COMBINED.keys() == evaluate.REDUCTIONS.keys() == IDENTITIES.keys()


@pytest.mark.parametrize("name", IDENTITIES)
def test_a_reduction_by_parts_is_torchs(name):
    numbers = np.float32([-2.0, np.inf, 0.5, np.nan])
    for values in (numbers[:1], numbers[:3], numbers):
        part = np.float32(IDENTITIES[name])
        for each in values:
            part = forms.COMBINED[name](Arrays(), part, each)
        wanted = evaluate.REDUCTIONS[name](torch.from_numpy(values), 0)
        np.testing.assert_equal(part, wanted.numpy())


def test_a_form_takes_the_instructions_that_its_table_says():
    rows = re.findall(r"^    (\w+) +(\d+) +(\d+)   ", forms.__doc__, re.MULTILINE)
    assert {name for name, *_ in rows} == {*ERRORS, "div"}
    for name, instructions, mufu in rows:
        arguments = (OTHER,) if name == "div" else ()
        epilogue = trace(
            lambda acc, *, name=name, **other: apply(name, acc, *other.values()), arguments
        )
        assert cost(epilogue) == (int(instructions), int(mufu)), name


def _gelu_of_sum(acc, other):
    return torch.nn.functional.gelu(other + acc, approximate="tanh")


@pytest.mark.parametrize("modes", [(), ("M",), ("N",), ("M", "N")], ids=str)
def test_gelu_of_a_sum_is_as_exact_as_its_table_says(modes):
    """The sum with a vector is part of the form: it rounds relative to its terms."""
    acc, other = RANDOM.normal(0, 3, (2, 1 << 16)).astype(np.float32)
    epilogue = trace(_gelu_of_sum, (EpilogueOperand("other", modes),))
    (result,) = forms.compute(epilogue, Arrays(), [acc], [other])
    exact = _exact("gelu_tanh", acc.astype(np.float64) + other)
    relative, absolute = ERRORS["gelu_tanh"]
    rounding = ULP * (np.abs(acc) + np.abs(other))
    assert (np.abs(result - exact) <= relative * np.abs(exact) + absolute + rounding).all()


def test_only_the_sum_with_a_matrix_takes_an_instruction_of_its_own():
    for modes, instructions in (((), 6), (("M",), 6), (("N",), 6), (("M", "N"), 7)):
        assert cost(trace(_gelu_of_sum, (EpilogueOperand("other", modes),))) == (instructions, 1)


def test_what_a_thread_computes_of_vectors_alone_is_not_counted():
    row = EpilogueOperand("row", ("N",))
    assert cost(trace(lambda acc, row: acc * row.exp(), (row,))) == (1, 0)


def test_equal_instructions_are_counted_once():
    silu = trace(lambda acc: (torch.nn.functional.silu(acc), acc.sigmoid() == 0.5))
    assert cost(silu) == (5 + 2, 2)
    assert cost(trace(lambda acc: acc / 3 + acc.bfloat16())) == (3, 0)
