"""Every executor takes the tensors that its compiled kernel takes, and no others."""

from dataclasses import replace

import pytest
import torch

from cutedsl_gemm.kernels.epilogue.expression import EpilogueOperand
from cutedsl_gemm.kernels.epilogue.trace import trace
from cutedsl_gemm.kernels.executor import check_visits, empty_tensors
from cutedsl_gemm.kernels.plan.checks import PlanError
from cutedsl_gemm.kernels.simt.rungs import block2d, naive
from cutedsl_gemm.kernels.sm70.plan import volta884
from cutedsl_gemm.kernels.sm80.rungs import wide
from cutedsl_gemm.kernels.sm90.rungs import pingpong, single, split

PLANS = [
    naive("MN", "K"),
    block2d(),
    volta884("float16", "MN", "K"),
    wide("bfloat16", "K", "MN", 4),
    single(),
    pingpong(swapped=True, b_major="MN"),
    split(c_alignment=1),
]
by_plan = pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.name)
by_name = pytest.mark.parametrize("which", [0, 1, 2], ids=["a", "b", "out"])


def shifted(tensor):
    """The same matrix one element further in its memory."""
    rows, columns = tensor.shape
    memory = torch.zeros(1 + rows * columns * 8, dtype=tensor.dtype)
    return memory.as_strided(tensor.shape, tensor.stride(), 1)


def apart(tensor):
    """The same matrix with a leading stride of one element more."""
    stride = tuple(step if step == 1 else step + 1 for step in tensor.stride())
    return torch.zeros(8 * tensor.numel(), dtype=tensor.dtype).as_strided(tensor.shape, stride)


def overlapping(tensor):
    return tensor.as_strided(tensor.shape, tuple(int(step == 1) for step in tensor.stride()))


def refused(plan, which, change, message):
    tensors = list(empty_tensors(plan, 24, 40, 16))
    tensors[which] = change(tensors[which])
    with pytest.raises(ValueError, match=("a", "b", "out")[which] + message):
        plan.execute(*tensors)


@by_plan
@by_name
def test_a_tensor_that_the_kernel_refuses_is_refused(plan, which):
    refused(plan, which, torch.Tensor.double, r" is torch.float64 on cpu: .* takes torch")
    refused(plan, which, lambda x: x.to("meta"), r" is torch\.\w+ on meta: .* on cpu")
    refused(
        plan,
        which,
        lambda x: x.mT.contiguous().mT if x.is_contiguous() else x.contiguous(),
        r" has strides \(\d+, \d+\): .* takes \((s, 1|1, s)\), s a multiple",
    )
    refused(plan, which, overlapping, r" has strides .* and at least \d+")
    refused(plan, which, lambda x: x[None], r" has shape .*: it must have two dimensions")
    if which:
        refused(plan, which, lambda x: x[8:], r" has [KM] = \d+: it must be \d+, as in a")


@by_plan
@by_name
def test_a_misaligned_tensor_is_refused_where_the_kernel_needs_alignment(plan, which):
    if (plan.c_alignment if which == 2 else plan.alignment) == 1:
        tensors = list(empty_tensors(plan, 24, 40, 16))
        tensors[which] = shifted(apart(tensors[which])).zero_()
        plan.execute(*tensors)
    else:
        refused(plan, which, apart, r" has strides .*, s a multiple of \d and")
        refused(plan, which, shifted, r" starts at address .*: .* takes multiples of \d+ bytes")


def test_an_extent_of_zero_is_refused():
    for extents, message in (
        ((0, 8, 8), "a has M = 0"),
        ((8, 8, 0), "a has K = 0"),
        ((8, 0, 8), "b has N = 0"),
    ):
        with pytest.raises(ValueError, match=f"{message}: it must be positive"):
            wide().execute(*empty_tensors(wide(), *extents))


@pytest.mark.parametrize(("coords", "times"), [([(0, 0)], 0), ([(0, 0), (0, 1), (0, 1)], 2)])
def test_a_tile_that_no_block_visits_or_two_is_refused(coords, times):
    with pytest.raises(PlanError, match=rf"visits tile \(0, 1\) {times} times"):
        check_visits("the raster", coords, 1, 2)


@by_plan
def test_operands_that_are_missing_or_too_many_are_counted(plan):
    epilogue = trace(lambda acc, bias: acc + bias, (EpilogueOperand("bias", ("N",)),))
    tensors, bias = [*empty_tensors(plan, 24, 40, 16)], torch.zeros(40)
    with pytest.raises(ValueError, match=r"takes 3 tensors \(a, b, out\), and was given 4"):
        plan.execute(*tensors, operands=(bias,))
    plan = replace(plan, epilogue=epilogue)
    with pytest.raises(ValueError, match=r"takes 4 tensors \(a, b, bias, out\), and was given 3"):
        plan.execute(*tensors)


@by_plan
def test_autocast_changes_nothing(plan):
    found = []
    for enabled in False, True:
        a, b, out = empty_tensors(plan, 24, 40, 16)
        for number, each in enumerate((a, b)):
            each.copy_(torch.linspace(-1, 1 + number, each.numel()).view(each.shape))
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            plan.execute(a, b, out)
        found.append(out)
    assert torch.equal(*found)
