"""A capture of a CUDA graph refuses a plan that is not compiled; threads compile a plan once."""

import threading

import pytest
import torch

from cutedsl_gemm.kernels.compile import build, cache
from cutedsl_gemm.kernels.sm90.rungs import pingpong, split


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path))


@pytest.fixture
def linked(monkeypatch):
    """The plans that were compiled; the compiler and the linker are replaced."""
    plans = []

    def link(plan, path):
        plans.append(plan)
        path.write_bytes(b"library")

    monkeypatch.setattr(build, "compile_plan", lambda plan, arch: plan)
    monkeypatch.setattr(build.library, "link", link)
    return plans


def capture(monkeypatch):
    monkeypatch.setattr("torch.cuda.is_initialized", lambda: True)
    monkeypatch.setattr("torch.cuda.is_current_stream_capturing", lambda: True)


def test_a_capture_refuses_a_plan_that_is_not_compiled(monkeypatch, linked):
    capture(monkeypatch)
    message = r"sm90_pingpong 128×128×64 bfloat16 is not compiled for sm_90a.* before the capture"
    with pytest.raises(RuntimeError, match=message):
        build.make(pingpong())
    assert not linked
    monkeypatch.setattr("torch.cuda.is_current_stream_capturing", lambda: False)
    build.make(pingpong())
    assert linked == [pingpong()]


def test_a_capture_takes_a_plan_that_is_on_disk(monkeypatch, linked):
    path = build.make(pingpong())
    capture(monkeypatch)
    assert build.make(pingpong()) == path


def test_a_capture_takes_a_plan_that_is_in_memory_whatever_happens_to_the_folder(
    monkeypatch, linked, tmp_path
):
    monkeypatch.setattr(build.library, "load", lambda path: print)
    plan = pingpong((64, 16, 64), "float16", a_major="MN")
    try:
        build.load(plan)
        capture(monkeypatch)
        monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "another"))
        assert build.load(plan) is print
    finally:
        build.load.cache_clear()


def test_threads_that_ask_for_one_plan_compile_it_once(linked):
    paths = []
    threads = [
        threading.Thread(target=lambda: paths.append(build.make(pingpong()))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(paths) == 4
    assert len({*paths}) == len(linked) == 1


def test_the_workspace_has_what_the_plan_asks_of_the_shape_of_c():
    """It stands before the last argument, whatever the epilogue takes."""
    plan, seen = split((128, 64, 64), splits=3), []
    run = build._with_workspace(plan, lambda *given: seen.append(given))
    a, b, c = (torch.empty(shape).bfloat16() for shape in ((520, 40), (40, 72), (520, 72)))
    run(a, b, c, 132)
    run(a, b.expand(2, 40, 72), "bias", c, "another result", 0.5, 132)
    for given, others in zip(seen, ([c], ["bias", c, "another result", 0.5]), strict=True):
        *tensors, workspace, sms = given
        assert tensors[2:] == others
        assert (workspace.dtype, sms) == (torch.float32, 132)
        assert workspace.numel() == plan.workspace(520, 72)
