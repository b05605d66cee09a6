"""gemm(a, b, epilogue=…) is what the same function computes from torch's tensors, or a message."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from cutedsl_gemm import PlanError, explain, gemm, plan_for
from cutedsl_gemm.calls import copies, fused
from cutedsl_gemm.inputs.request import OF_GEMM, own_names
from cutedsl_gemm.kernels.epilogue.expression import PLAIN, EpilogueError, EpilogueOperand
from cutedsl_gemm.kernels.epilogue.trace import trace
from tests.kernels.epilogue.expressions import expressions

TILE, GATED_TILE = (64, 16, 32), (64, 32, 32)  # small ones, which the executor computes fast
BF16, FP16, FP32 = torch.bfloat16, torch.float16, torch.float32


def draw(*shape, dtype=BF16):
    return torch.randn(shape).to(dtype)


def deep(value):
    return pytest.param(value, marks=pytest.mark.deep)


def nested(*parts):
    return torch.nested.nested_tensor(list(parts), layout=torch.jagged)


def gelu_bias(acc, bias):
    return F.gelu(acc + bias)


def scaled(acc, scale):
    return acc * scale


def of_operand(name):
    """acc + operand, which has this name."""
    return eval(f"lambda acc, {name}: acc + {name}")


HUGE = 10**400  # no float


def truth(function, a, b, operands):
    """The same function of torch's tensors, in float64: a tuple of results."""
    accumulators = [a.double() @ part.double() for part in (b if b.ndim == 3 else b[None])]
    values = {
        name: each.double() if isinstance(each, torch.Tensor) else each
        for name, each in operands.items()
    }
    results = function(*accumulators, **values)
    return results if isinstance(results, tuple) else (results,)


def agree(function, a, b, within=4e-3, out=None, options=None, **operands):
    """gemm's results, which agree with torch's."""
    options = {"tile": GATED_TILE if b.ndim == 3 else TILE} if options is None else options
    found = gemm(a, b, epilogue=function, out=out, **options, **operands)
    results = found if isinstance(found, tuple) else (found,)
    for one, other in zip(results, truth(function, a, b, operands), strict=True):
        assert one.shape == other.shape
        assert (one.double() - other).norm() <= within * other.norm(), (one, other)
    return found


A, B = draw(33, 40), draw(40, 71)
OPERANDS = {
    "row": lambda m, n: draw(n),
    "row of a matrix": lambda m, n: draw(1, n, dtype=FP16),
    "every second element": lambda m, n: draw(2 * n)[::2],
    "column": lambda m, n: draw(m, 1, dtype=FP32),
    "column of a matrix": lambda m, n: draw(m, 3)[:, 1:2],
    "matrix": lambda m, n: draw(m, n),
    "columns": lambda m, n: draw(n, m, dtype=FP32).mT,
    "every second column": lambda m, n: draw(m, 2 * n)[:, ::2],
    "part of a matrix": lambda m, n: draw(m, n + 9)[:, 1 : n + 1],
    "expanded row": lambda m, n: draw(n).expand(m, n),
    "expanded column": lambda m, n: draw(m, 1).expand(m, n),
    "overlapping": lambda m, n: draw(m + n).as_strided((m, n), (1, 1)),
    "scalar": lambda m, n: draw(dtype=FP32),
    "one element": lambda m, n: draw(1, 1),
    "number": lambda m, n: 0.25,
    "integer": lambda m, n: 3,
}


SHAPES = {"whole tiles": (64, 32, 64), "ragged": (33, 40, 71), "a row": (1, 40, 71)}


@pytest.mark.parametrize("kinds", [[*OPERANDS][i::3] for i in range(3)], ids=", ".join)
@pytest.mark.parametrize("shape", ["ragged", *map(deep, ("whole tiles", "a row", "a column"))])
def test_every_kind_of_operand_broadcasts_as_torchs_do(shape, kinds):
    m, k, n = SHAPES.get(shape, (33, 40, 1))
    operands = {f"x{i}": OPERANDS[kind](m, n) for i, kind in enumerate(kinds)}

    def function(acc, x0, x1, x2, x3, x4, x5=0):
        return acc * 2 + x0 + x1 * 2 - x2 * 3 + x3 * 4 - x4 * 5 + x5

    agree(function, A.expand(2, 33, 40).flatten(0, 1)[:m, :k], B[:k, :n], **operands)


def random_epilogue_agrees(expression, shape, orders, dtypes, options):
    """gemm's results of one random expression, of tensors of these dtypes and majors."""
    (m, n, k), (dtype, *others) = shape, dtypes
    a, b = draw(m, k, dtype=dtype), draw(k, n, dtype=dtype) / 8
    a = a if orders[0] else a.mT.contiguous().mT
    b = b if orders[1] else b.mT.contiguous().mT
    operands = expression.tensors(m, n)
    tensors = [name for name, each in operands.items() if isinstance(each, torch.Tensor)]
    for name, other in zip(tensors, others, strict=False):
        operands[name] = operands[name].to(other)
    found = gemm(a, b, epilogue=expression.function, **options, **operands)
    results = found if isinstance(found, tuple) else (found,)
    wanted = truth(expression.function, a, b, operands)
    for one, other in zip(results, wanted, strict=True):
        torch.testing.assert_close(one.double(), other.double(), rtol=2e-2, atol=2e-2)


RANDOM = {
    "expression": expressions(smooth=True),
    "shape": st.tuples(*[st.integers(1, 70)] * 3),
    "orders": st.tuples(st.booleans(), st.booleans()),
    "dtypes": st.tuples(st.sampled_from([BF16, FP16]), *[st.sampled_from([BF16, FP16, FP32])] * 3),
}


@settings(max_examples=2 * settings().max_examples // 5)
@given(**RANDOM)
def test_random_epilogues_agree_with_torch(expression, shape, orders, dtypes):
    random_epilogue_agrees(expression, shape, orders, dtypes, {"tile": TILE})


@pytest.mark.deep
@settings(max_examples=3 * settings().max_examples)
@given(**RANDOM, kernel=st.sampled_from([None, "sm90_split", "sm90_cooperative", "sm80_mma"]))
def test_random_epilogues_of_every_kernel_agree_with_torch(
    expression, shape, orders, dtypes, kernel
):
    m, n, k = (-(-extent // 8) * 8 for extent in shape) if kernel else shape
    options = {"kernel": kernel}
    random_epilogue_agrees(expression, (m, n, k), orders, dtypes, options)


def test_a_gate_and_a_value_are_two_parts_of_b():
    weight = draw(2 * 72, 40)
    parts = weight.view(2, 72, 40).mT, weight.view(72, 2, 40).permute(1, 2, 0), draw(2, 40, 72)
    ragged = draw(2 * 71, 39)
    for b in (*parts, ragged.view(2, 71, 39).mT, ragged.view(71, 2, 39).permute(1, 2, 0)):
        agree(lambda gate, up: F.silu(gate) * up, A[:, : b.shape[1]], b, 1e-2)


@pytest.mark.parametrize("kernel", ["sm80_mma", deep("sm70_volta884"), deep("simt_naive")])
def test_kernels_with_one_accumulator_compute_a_gate_in_two_products(kernel):
    a, weight = (each.to(KERNELS[kernel]) for each in (A, draw(2 * 72, 40)))
    b, bias = weight.view(2, 72, 40).mT, draw(72)
    agree(
        lambda gate, up, bias: (F.silu(gate + bias) * up, gate),
        a,
        b,
        1e-2,
        options={"kernel": kernel},
        bias=bias,
    )


@pytest.mark.parametrize("n", [64, 71])
@pytest.mark.parametrize("columns", [False, True])
def test_results_are_written_to_out_and_to_nothing_else(n, columns):
    wide = torch.zeros(2, 80, 80, dtype=BF16)
    first, second = wide.mT if columns else wide
    out = first[8 : 8 + 33, 8 : 8 + n], second[3 : 3 + 33, 5 : 5 + n]
    both = agree(
        lambda acc, bias, r: (acc + bias + r, acc * 2),
        A,
        B[:, :n],
        out=out,
        bias=draw(n),
        r=draw(33, n),
    )
    assert all(one is other for one, other in zip(both, out, strict=True))
    assert wide.count_nonzero() == sum(each.count_nonzero() for each in out)


@pytest.mark.parametrize("swapped", [deep(False), True])
def test_results_may_be_fp32_or_reductions_and_have_outs(swapped):
    def function(acc, bias):
        y = acc + bias
        return y.float(), (y * y).sum(dim=1), y.amax(dim=0), y.half(), y.amin(dim=1)

    for m, n in ((33, 71), (130, 40)):
        a, b, bias = draw(m, 40), draw(40, n), draw(n)
        found = agree(function, a, b, bias=bias)
        assert [each.dtype for each in found] == [FP32, FP32, FP32, FP16, FP32]
        outs = [torch.full_like(each, torch.nan) for each in found]
        if swapped:
            outs[0], outs[3] = (each.mT.contiguous().mT for each in (outs[0], outs[3]))
            outs[1] = outs[1].repeat_interleave(2)[::2].fill_(0)
        agree(function, a, b, out=tuple(outs), bias=bias)


def test_one_out_may_have_rows_and_another_columns_or_neither():
    out = torch.zeros(33, 71).to(BF16), torch.zeros(71, 33).to(BF16).mT
    agree(lambda acc: (acc, acc * 2), A, B, out=out)
    agree(lambda acc: (acc, -acc), A, B, out=(torch.zeros(33, 142).to(BF16)[:, ::2], out[0]))


def test_an_operand_may_be_the_out():
    for out in (draw(33, 71), draw(33, 80)[:, :71], draw(71, 33).mT):
        expected = gemm(A, B, tile=TILE, epilogue=lambda acc, r: acc + r, r=out.clone())
        assert gemm(A, B, tile=TILE, epilogue=lambda acc, r: acc + r, r=out, out=out) is out
        assert torch.equal(out, expected)
    out = draw(33, 71)
    row = out[0]
    expected = gemm(A, B, tile=TILE, epilogue=lambda acc, r: acc + r, r=row.clone())
    assert torch.equal(
        gemm(A, B, tile=TILE, epilogue=lambda acc, r: acc + r, r=row, out=out), expected
    )


def test_another_number_makes_no_other_call():
    function = lambda acc, alpha: acc * alpha  # noqa: E731
    gemm(A, B, tile=TILE, epilogue=function, alpha=0.5)
    known = len(fused._calls)
    for alpha in (2.0, float("inf")):
        gemm(A, B, tile=TILE, epilogue=function, alpha=alpha)
    assert len(fused._calls) == known


def test_functions_of_the_same_code_and_constants_share_a_call():
    def scaled(factor):
        return gemm(A, B, tile=TILE, epilogue=lambda acc: acc * factor)

    assert torch.equal(scaled(2.0), 2 * scaled(1.0))
    known = len(fused._calls)
    assert torch.equal(scaled(2.0), 2 * scaled(1.0))
    assert len(fused._calls) == known


def test_an_epilogue_may_be_passed_as_data():
    epilogue = trace(gelu_bias, (EpilogueOperand("bias", ("N",), "bfloat16"),))
    for bias in (draw(71), 0.5):
        found = gemm(A, B, tile=TILE, epilogue=epilogue, bias=bias)
        assert torch.equal(found, gemm(A, B, tile=TILE, epilogue=gelu_bias, bias=bias))
    assert torch.equal(gemm(A, B, tile=TILE, epilogue=PLAIN), gemm(A, B, tile=TILE))


@pytest.mark.parametrize("address", [3, deep(0), deep(6)])
def test_operands_and_tensors_at_any_address(address):
    flat = draw(33 * 40 + 40 * 71 + 33 * 71 + 8)[address:]
    a, b, r = (
        each.view(shape)
        for each, shape in zip(
            flat[: 33 * 40 + 40 * 71 + 33 * 71].split([33 * 40, 40 * 71, 33 * 71]),
            ((33, 40), (40, 71), (33, 71)),
            strict=True,
        )
    )
    agree(lambda acc, r: acc + r, a, b, r=r)


def test_a_remembered_call_is_of_operands_at_as_aligned_addresses():
    b, flat = draw(40, 72), draw(33 * 72 + 8)
    for start in (0, 1, 4, 8, 3):
        agree(lambda acc, r: acc + r, A, b, r=flat[start : start + 33 * 72].view(33, 72))


def test_empty_products_are_epilogues_of_zeros():
    bias, function = draw(71), lambda acc, bias: (acc + bias, acc.sum(dim=0))
    for m, n, k in ((0, 71, 8), (33, 71, 0), (33, 0, 8)):
        a, b = draw(m, k), draw(k, n)
        found = gemm(a, b, epilogue=function, bias=bias[:n])
        for one, other in zip(found, truth(function, a, b, {"bias": bias[:n]}), strict=True):
            assert torch.equal(one.double(), other)


def test_results_of_an_empty_product_have_memory_of_their_own():
    a, b, r = draw(3, 0), draw(0, 4), torch.randn(3, 4)
    results = gemm(a, b, epilogue=lambda acc, r: (acc.float(), r.float(), r.float()), r=r)
    assert len({each.data_ptr() for each in (*results, r)}) == 4
    out, before = (r, torch.empty(3, 4)), r.clone()
    gemm(a, b, epilogue=lambda acc, r: ((acc + 1).float(), r.float()), r=r, out=out)
    assert [each.tolist() for each in out] == [torch.ones(3, 4).tolist(), before.tolist()]


@pytest.mark.parametrize(
    "out",
    [
        torch.empty(1).expand(71),
        torch.empty(71, dtype=BF16).expand(33, 71),
        torch.empty(3000, dtype=BF16).as_strided((33, 71), (2, 1)),
    ],
)
def test_elements_of_an_out_that_share_memory_are_refused(out):
    reduced = out.ndim == 1
    calls = [lambda: gemm(A, B, epilogue=lambda acc: acc.sum(0) if reduced else acc * 2, out=out)]
    for call in calls if reduced else (*calls, lambda: gemm(A, B, out=out)):
        with pytest.raises(ValueError, match="elements share memory"):
            call()


@pytest.mark.parametrize("kernel", ["sm90", deep("sm80_mma")])
def test_gates_that_a_named_kernel_reads_have_gradients(kernel):
    """The rows of both parts, packed for the gradient of a, may have a stride that TMA refuses."""
    stride = 16  # of rows of 12
    a = draw(24, stride)[:, :12].requires_grad_()
    b = draw(2, stride, 64)[:, :12].requires_grad_()
    product = gemm(a, b, kernel=kernel, epilogue=lambda g, u: F.silu(g) * u)
    found = torch.autograd.grad(product.float().sum(), (a, b))
    gate, up = a.float() @ b.float()
    wanted = torch.autograd.grad((F.silu(gate) * up).sum(), (a, b))
    for ours, theirs in zip(found, wanted, strict=True):
        assert (ours - theirs).float().norm() < 2e-2 * theirs.float().norm()


def test_a_sum_over_n_is_not_invariant():
    with pytest.raises(ValueError, match=r"out\[1\] is a sum over N"):
        gemm(A, B, epilogue=lambda acc: (acc, acc.sum(1)), invariant=True)
    whole, part = (gemm(a, B, epilogue=lambda acc: acc.amax(1), invariant=True) for a in (A, A[:3]))
    assert torch.equal(whole[:3], part)


def test_rows_do_not_depend_on_others_if_the_product_is_invariant():
    a, b, bias = draw(40, 150), draw(150, 64), draw(64)
    whole = gemm(a, b, invariant=True, epilogue=gelu_bias, bias=bias)
    row = gemm(a[20:21], b, invariant=True, epilogue=gelu_bias, bias=bias)
    assert torch.equal(whole[20:21], row)


@pytest.mark.parametrize(
    "kernel", ["sm90", deep("sm90_split"), deep("sm80_mma"), deep("simt_naive")]
)
def test_the_defaults_of_torch_do_not_matter(kernel):
    def results():
        given = {"bias": bias, "s": 0.1, "column": column}
        return gemm(a, b, epilogue=function, kernel=kernel, **given)

    def function(acc, bias, s, column):
        y = F.gelu(acc + bias) * s + column
        return y, y.float(), y.sum(dim=1), y.amax(dim=0)

    dtype = FP32 if kernel.startswith("simt") else BF16
    a, b = draw(33, 40, dtype=dtype), draw(40, 72, dtype=dtype)
    bias, column = draw(72), draw(33, 1)
    expected = results()
    with torch.device("meta"):
        assert all(map(torch.equal, results(), expected))
    torch.set_default_dtype(torch.float64)
    try:
        assert all(map(torch.equal, results(), expected))
    finally:
        torch.set_default_dtype(torch.float32)


KERNELS = {
    "simt_naive": FP32,
    "simt_block2d": FP32,
    "sm70_volta884": FP16,
    "sm80_mma": BF16,
    "sm80_wide": FP16,
    "sm90_single": BF16,
    "sm90_cooperative": FP16,
    "sm90_split": BF16,
}


@pytest.mark.parametrize(
    "kernel", [each if each in ("simt_naive", "sm80_mma") else deep(each) for each in KERNELS]
)
def test_every_family_computes_an_epilogue(kernel):
    a, b = draw(33, 40, dtype=KERNELS[kernel]), draw(40, 72, dtype=KERNELS[kernel])
    for n in (72, 70):
        out = None if n == 72 else torch.zeros(33, 72, dtype=a.dtype)[:, :n]
        agree(
            lambda acc, bias, r, s: (F.silu(acc + bias) + r * s, acc),
            a,
            b[:, :n],
            options={"kernel": kernel},
            out=None if out is None else (out, out.clone()),
            bias=draw(n),
            r=draw(33, n),
            s=0.5,
        )


def test_plan_for_and_explain_take_the_epilogue():
    bias = draw(71)
    plan = plan_for(A, B, tile=(64, 16, 64), epilogue=gelu_bias, bias=bias)
    assert plan.epilogue == trace(gelu_bias, (EpilogueOperand("bias", ("N",), "bfloat16"),))
    assert replace(plan, epilogue=PLAIN) == plan_for(A, B, tile=(64, 16, 64))
    weight = draw(2 * 64, 40).view(2, 64, 40).mT
    text = explain(A, weight, epilogue=lambda gate, up: F.silu(gate) * up)
    assert "B (2, 40, 64)" in text
    assert "A, B, the operands and C once" in explain(A, B, epilogue=gelu_bias, bias=bias)


def test_a_request_knows_the_names_of_all_arguments_of_gemm():
    assert {*own_names(gemm)} == {"a", "b", "epilogue", *OF_GEMM}


LEAF = draw(33, 40).requires_grad_()
ERRORS = [
    (TypeError, "gemm takes no operands; pass epilogue", lambda: gemm(A, B, bias=B[0])),
    (TypeError, r"\(tiles\).* did you mean tile\?", lambda: gemm(A, B, tiles=TILE)),
    (
        TypeError,
        "plan_for has no argument tune, .*it takes a, b, til",
        lambda: plan_for(A, B, tune=True),
    ),
    (TypeError, "explain has no argument kernel", lambda: explain(A, B, kernel="sm90")),
    (TypeError, "epilogue is 3: it must be a function", lambda: gemm(A, B, epilogue=3)),
    (TypeError, "epilogue is Tensor of shape", lambda: plan_for(A, B, epilogue=A)),
    (TypeError, "epilogue is {}: it must be", lambda: explain(A, B, epilogue={})),
    (TypeError, "out is int: it must be", lambda: gemm(A, B, epilogue=abs, out=3)),
    (TypeError, "invariant is 'no'", lambda: plan_for(A, B, invariant="no")),
    (TypeError, "invariant is 'no'", lambda: explain(A, B, invariant="no")),
    (TypeError, "scale is complex", lambda: gemm(A, B, epilogue=scaled, scale=1j)),
    (ValueError, "scale is an integer of 1329", lambda: gemm(A, B, epilogue=scaled, scale=HUGE)),
    (EpilogueError, "integer that no float", lambda: gemm(A, B, epilogue=lambda acc: acc * HUGE)),
    (
        ValueError,
        r"out is amax over M, and C has shape \(0, 71\): M must be at least 1",
        lambda: gemm(A[:0], B, epilogue=lambda acc: acc.amax(dim=0)),
    ),
    *(
        (
            EpilogueError,
            f"epilogue takes an operand {name}, and gemm has an argument of this name",
            lambda name=name: gemm(A, B, epilogue=of_operand(name), **{name: B[0]}),
        )
        for name in OF_GEMM
    ),
    (EpilogueError, "takes", lambda: gemm(A, B, epilogue=gelu_bias)),
    (EpilogueError, "takes", lambda: gemm(A, B, epilogue=gelu_bias, bias=B[0], r=B[0])),
    (EpilogueError, r"operands \(\), .*\(bias\)", lambda: gemm(A, B, epilogue=PLAIN, bias=B[0])),
    (TypeError, "bias is list", lambda: gemm(A, B, epilogue=gelu_bias, bias=[1.0])),
    (
        TypeError,
        r"bias is torch.float64.*bias.float\(\)",
        lambda: gemm(A, B, epilogue=gelu_bias, bias=B[0].double()),
    ),
    (
        ValueError,
        r"bias has shape \(33,\): it must broadcast to the shape \(33, 71\)",
        lambda: gemm(A, B, epilogue=gelu_bias, bias=A[:, 0]),
    ),
    (
        ValueError,
        r"bias has shape \(1, 33, 71\): it must broadcast",
        lambda: gemm(A, B, epilogue=gelu_bias, bias=draw(1, 33, 71)),
    ),
    (
        ValueError,
        "bias is on meta and a on cpu",
        lambda: gemm(A, B, epilogue=gelu_bias, bias=B[0].to("meta")),
    ),
    (TypeError, "it must be dense", lambda: gemm(A, B, epilogue=gelu_bias, bias=B.to_sparse())),
    (TypeError, "bias is a nested", lambda: gemm(A, B, epilogue=gelu_bias, bias=nested(B, B[1:]))),
    (TypeError, "out is a nested tensor", lambda: gemm(A, B, epilogue=abs, out=nested(A, A[1:]))),
    (
        ValueError,
        "one for each result of the epilogue, 2",
        lambda: gemm(A, B, epilogue=lambda x: (x, -x), out=draw(33, 71)),
    ),
    (TypeError, "out is torch.float16", lambda: gemm(A, B, epilogue=abs, out=draw(33, 71).half())),
    (ValueError, r"out has shape", lambda: gemm(A, B, epilogue=abs, out=draw(33, 72))),
    (
        ValueError,
        "has no gradient",
        lambda: gemm(LEAF, B, epilogue=abs, out=draw(33, 71)),
    ),
    (
        ValueError,
        "out shares memory with a",
        lambda: gemm(A, A.mT[:, :], epilogue=abs, out=A[:, :33]),
    ),
    (ValueError, r"b has shape \(3, 40, 71\)", lambda: gemm(A, B.expand(3, 40, 71), epilogue=abs)),
    (EpilogueError, "accumulators", lambda: gemm(A, B.expand(2, 40, 71), epilogue=PLAIN)),
    (ValueError, "bias has no memory", lambda: gemm(A, B, epilogue=gelu_bias, bias=freed())),
    (PlanError, "tile is", lambda: gemm(A, B, epilogue=abs, tile=(128, 128))),
    (ValueError, "kernel is 'x'", lambda: gemm(A, B, epilogue=abs, kernel="x")),
    (ValueError, "F.pad", lambda: gemm(A[:, :39], B[:39], epilogue=abs, kernel="sm90")),
]


def freed():
    row = draw(71)
    row.untyped_storage().resize_(0)
    return row


@pytest.mark.parametrize(("error", "message", "call"), ERRORS)
def test_what_no_plan_takes_gets_a_message(error, message, call):
    with pytest.raises(error, match=message):
        call()


def test_results_that_share_memory_are_refused():
    both = torch.zeros(40, 71, dtype=BF16)
    with pytest.raises(ValueError, match=r"out\[1\] shares memory with another result"):
        gemm(A, B, epilogue=lambda acc: (acc, -acc), out=(both[:33], both[7:]))


@pytest.mark.parametrize("number", [np.float32(2), np.int64(2), Fraction(2), True + True])
def test_any_real_number_is_an_operand_and_a_constant(number):
    expected = (A.float() @ B.float() * 2).to(BF16)
    for made in (
        gemm(A, B, epilogue=scaled, scale=number),
        gemm(A, B, epilogue=lambda acc: acc * number),
        gemm(A, B, epilogue=lambda acc: number * acc),
        gemm(A, B, epilogue=lambda acc: torch.where(0 * number < acc * acc, acc, 0) * number),
        gemm(A, B, epilogue=lambda acc: (acc * 2) ** number / (2 * acc)),
    ):
        torch.testing.assert_close(made, expected)


WITHOUT_MEMORY = (
    lambda to: gemm(to(A), to(B), epilogue=abs, out=to(draw(72, 33))),
    lambda to: gemm(to(A), to(B), epilogue=abs, out=to(draw(33, 71).float())),
    lambda to: gemm(to(A), to(B), epilogue=lambda x: (x, -x), out=to(draw(33, 71))),
    lambda to: gemm(to(A), to(B), epilogue=gelu_bias, bias=to(B[0].double())),
    lambda to: gemm(to(A), to(B), epilogue=gelu_bias, bias=to(A[:, 0])),
    lambda to: gemm(to(A), to(B), epilogue=gelu_bias, bias=to(draw(1, 33, 71))),
    lambda to: gemm(to(A), to(B), epilogue=gelu_bias, bias="x"),
    lambda to: gemm(to(A), to(B), epilogue=gelu_bias, bias=None),
    lambda to: gemm(to(A), to(B), epilogue=abs, out="x"),
    lambda to: gemm(to(A), to(B), epilogue=abs, invariant="yes"),
    lambda to: gemm(to(A), to(B), epilogue=lambda acc: acc.sum(dim=1), invariant=True),
    lambda to: gemm(to(A[:0]), to(B), epilogue=lambda acc: acc.amax(dim=0)),
)


@pytest.mark.parametrize("call", WITHOUT_MEMORY)
def test_tensors_without_memory_are_refused_as_those_with_it(call):
    with pytest.raises((TypeError, ValueError)) as wanted:
        call(lambda tensor: tensor)
    with pytest.raises(type(wanted.value)) as found:
        call(lambda tensor: tensor.to("meta"))
    assert str(found.value) == str(wanted.value).replace("cpu", "meta")


def test_an_empty_tensor_on_meta_is_refused_beside_one_with_memory_each_time():
    a, b = draw(3, 16)[:, :0], draw(16, 4)[:0]
    for _ in range(2):
        with pytest.raises(TypeError, match="on the device meta"):
            gemm(a, b.to("meta"), epilogue=abs)
        gemm(a, b, epilogue=abs)


def test_a_default_with_the_name_of_an_argument_hides_no_other_error():
    def scaled(acc, tile=2.0):
        return acc * tile

    assert torch.equal(gemm(A, B, epilogue=scaled), gemm(A, B, epilogue=lambda acc: acc * 2.0))
    with pytest.raises(ValueError, match="as many columns"):
        gemm(A, B[:3], epilogue=scaled)


def test_a_clamp_takes_a_bound_beyond_fp32():
    assert torch.equal(gemm(A, B, epilogue=lambda acc: acc.clamp(max=1e39)), gemm(A, B))


@pytest.mark.parametrize("epilogue", [None, F.gelu])
def test_one_launch_copies_both_operands_that_no_kernel_reads_in_place(epilogue, monkeypatch):
    launches, run = [], copies._copies
    monkeypatch.setattr(copies, "_copies", lambda *pairs: launches.append(pairs) or run(*pairs))
    a, b = draw(16, 17), draw(17, 23)
    found, wanted = gemm(a, b, epilogue=epilogue).float(), a.float() @ b.float()
    assert [len(pairs) for pairs in launches] == [2]
    wanted = wanted if epilogue is None else epilogue(wanted)
    assert (found - wanted).norm() < 6e-3 * wanted.norm()
