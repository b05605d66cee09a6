"""A launch on a GPU, with a kernel and a device that are fakes."""

from contextlib import contextmanager
from types import SimpleNamespace

import pytest
import torch

from cutedsl_gemm import gemm
from cutedsl_gemm.calls import call, copies, fused, run
from cutedsl_gemm.calls.on_device import on_device
from cutedsl_gemm.select.registry import named


class OnGpu1(torch.Tensor):
    """A CPU tensor that says it is on the second GPU."""

    def get_device(self):
        return 1


def on_gpu_1(tensor):
    return tensor.as_subclass(OnGpu1)


A, B, OUT = (on_gpu_1(torch.full((8, 8), value)) for value in (1.0, 2.0, 0.0))
GPU_1 = torch.device("cuda", 1)


@pytest.fixture
def launch(monkeypatch):
    """launch(kernel, *tensors, devices): the operands and sms with which it is called."""
    seen = []
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    monkeypatch.setattr(run, "multiprocessors", lambda device, plan: 120)
    compiled = lambda a, b, out, sms: seen.append((a, b, out, sms))  # noqa: E731
    monkeypatch.setattr(run.build, "load", lambda plan, arch: compiled)

    def launch(kernel, *tensors, devices=1):
        monkeypatch.setattr(torch.cuda, "device_count", lambda: devices)
        run._launcher(named(kernel), None, GPU_1)(*tensors)
        return seen.pop()

    return launch


@pytest.mark.parametrize("devices", [1, 2])
@pytest.mark.parametrize("kernel", ["sm90", "sm80_wide", "simt_naive"])
def test_a_kernel_fills_the_multiprocessors_of_its_device(launch, kernel, devices):
    *tensors, sms = launch(kernel, A, B, OUT, devices=devices)
    assert sms == 120
    assert all(one is other for one, other in zip(tensors, (A, B, OUT), strict=True))


@pytest.mark.parametrize("other", [1, 2])
def test_tensors_of_another_device_are_refused(launch, other):
    """The signature of a call holds the device of a alone."""
    tensors = [A, B, OUT]
    tensors[other] = tensors[other].as_subclass(torch.Tensor)
    with pytest.raises(ValueError, match="share a device"):
        launch("sm90", *tensors, devices=2)


@pytest.fixture
def entered(monkeypatch):
    """The devices that were entered, of two; the current one is the first."""
    found = []

    @contextmanager
    def device(wanted):
        found.append(wanted)
        yield

    monkeypatch.setattr(torch.cuda, "device", device)
    monkeypatch.setattr("cutedsl_gemm.calls.on_device.current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    return found


def test_a_call_enters_its_device_unless_it_is_the_current_one(entered, monkeypatch):
    assert on_device(lambda *given: given, GPU_1)(3, 4) == (3, 4)
    assert entered == [GPU_1]
    entered.clear()
    assert on_device(lambda *given: given, torch.device("cuda", 0))(3) == (3,)
    assert on_device(len, torch.device("cpu")) is len
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert on_device(len, GPU_1) is len
    assert not entered


def test_calls_run_on_the_device_of_a(monkeypatch):
    """What allocates the result, copies operands and launches kernels is guarded once."""
    guarded = []
    for module in (call, fused):
        monkeypatch.setattr(module, "_calls", {})
        recorded = lambda made, device: guarded.append(device) or made  # noqa: E731
        monkeypatch.setattr(module, "on_device", recorded)
    a, b = torch.ones(16, 16).half(), torch.ones(16, 16).half()
    gemm(a, b), gemm(a, b, epilogue=torch.relu)
    assert guarded == [a.device] * 2
    b = torch.ones(2, 16, 16).half()
    gemm(b, b), gemm(b, b, out=torch.empty_like(b))
    assert guarded == [a.device] * 4


@pytest.mark.parametrize("negative", [0, 1])
def test_a_float32_operand_with_the_negative_bit_is_resolved(launch, negative):
    """A kernel reads memory, which holds the values before their sign is inverted."""
    tensors = [A, B, OUT]
    tensors[negative] = on_gpu_1(torch._neg_view(tensors[negative]))
    passed = launch("simt_naive", *tensors)
    assert not passed[negative].is_neg()
    assert torch.equal(passed[negative], -(A, B)[negative])
    with pytest.raises(ValueError, match="out is a view with the negative bit set"):
        launch("simt_naive", A, B, on_gpu_1(torch._neg_view(OUT)))


@pytest.mark.parametrize(("capability", "overlaps"), [((8, 0), False), ((9, 0), True)])
def test_copies_overlap_the_launch_in_front_from_hopper_on(monkeypatch, capability, overlaps):
    """Older GPUs have no griddepcontrol."""
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    monkeypatch.setattr(copies, "_launcher", lambda plan, device: plan)
    matrix = SimpleNamespace(shape=(64, 64), dtype=torch.float16, device=torch.device("cuda"))
    assert copies._copies((matrix, matrix)).overlap is overlaps
