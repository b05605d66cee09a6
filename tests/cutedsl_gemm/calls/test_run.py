"""A launch on a GPU, with a kernel and a device that are fakes."""

from contextlib import contextmanager
from types import SimpleNamespace

import pytest
import torch

from cutedsl_gemm.calls import copies, run
from cutedsl_gemm.select.registry import named


@pytest.fixture
def launch(monkeypatch):
    """launch(kernel, *tensors, devices): the operands, sms and device with which it is called."""
    seen, current = [], ["none"]

    @contextmanager
    def device(wanted):
        current.append(str(wanted))
        yield
        current.pop()

    monkeypatch.setattr(torch.cuda, "device", device)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    monkeypatch.setattr(run, "multiprocessors", lambda device, plan: 120)
    compiled = lambda a, b, out, sms: seen.append((a, b, out, sms, current[-1]))  # noqa: E731
    monkeypatch.setattr(run.build, "load", lambda plan, arch: compiled)

    def launch(kernel, *tensors, devices=1):
        monkeypatch.setattr(torch.cuda, "device_count", lambda: devices)
        run._launcher(named(kernel), None, torch.device("cuda", 1))(*tensors)
        return seen.pop()

    return launch


A, B, OUT = (torch.full((8, 8), value) for value in (1.0, 2.0, 0.0))


@pytest.mark.parametrize("kernel", ["sm90", "sm80_wide", "simt_naive"])
def test_a_kernel_fills_the_multiprocessors_of_its_device_and_runs_on_it(launch, kernel):
    """If there is one device, it is torch's current one: the context would take a microsecond."""
    *tensors, sms, device = launch(kernel, A, B, OUT, devices=2)
    assert (sms, device) == (120, "cuda:1")
    assert all(one is other for one, other in zip(tensors, (A, B, OUT), strict=True))
    assert launch(kernel, A, B, OUT)[3] == 120


def test_a_launch_on_the_current_device_enters_no_context(launch, monkeypatch):
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
    with pytest.raises(ValueError, match="share a device"):
        launch("sm90", A, B, OUT.to("meta"), devices=2)
    assert launch("sm90", A, B, OUT, devices=2)[-1] == "none"


@pytest.mark.parametrize("negative", [0, 1])
def test_a_float32_operand_with_the_negative_bit_is_resolved(launch, negative):
    """A kernel reads memory, which holds the values before their sign is inverted."""
    tensors = [A, B, OUT]
    tensors[negative] = torch._neg_view(tensors[negative])
    passed = launch("simt_naive", *tensors)
    assert not passed[negative].is_neg()
    assert torch.equal(passed[negative], -(A, B)[negative])
    with pytest.raises(ValueError, match="out is a view with the negative bit set"):
        launch("simt_naive", A, B, torch._neg_view(OUT))


@pytest.mark.parametrize(("capability", "overlaps"), [((8, 0), False), ((9, 0), True)])
def test_copies_overlap_the_launch_in_front_from_hopper_on(monkeypatch, capability, overlaps):
    """Older GPUs have no griddepcontrol."""
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    monkeypatch.setattr(copies, "_launcher", lambda plan, device: plan)
    matrix = SimpleNamespace(shape=(64, 64), dtype=torch.float16, device=torch.device("cuda"))
    assert copies._copies((matrix, matrix)).overlap is overlaps
