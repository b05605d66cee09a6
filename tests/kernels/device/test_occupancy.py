"""The questions that the driver is asked; its answers are fakes."""

import pytest
import torch

from cutedsl_gemm.kernels.device import occupancy
from cutedsl_gemm.kernels.sm90.rungs import pingpong

driver = pytest.importorskip("cuda.bindings.driver")
OK, ERROR = driver.CUresult.CUDA_SUCCESS, driver.CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED


@pytest.fixture
def asked(monkeypatch):
    """The calls of the driver, in order. It answers that 60 clusters run at once."""
    calls = []
    answers = {
        "cuDeviceGet": (OK, "gpu"),
        "cuDevicePrimaryCtxRetain": (OK, "context"),
        "cuCtxPushCurrent": (OK,),
        "cuCtxPopCurrent": (OK, "context"),
        "cuModuleLoadData": (OK, "module"),
        "cuModuleGetFunction": (OK, "kernel"),
        "cuFuncSetAttribute": (OK,),
        "cuOccupancyMaxActiveClusters": (OK, 60),
        "cuModuleUnload": (ERROR,),
    }
    for name, answer in answers.items():
        monkeypatch.setattr(
            driver, name, lambda *_, name=name, answer=answer: (calls.append(name), answer)[1]
        )
    forget()
    yield calls
    forget()


def forget():
    for answer in (occupancy._clusters, occupancy._empty_kernel, occupancy._retained_context):
        answer.cache_clear()


def test_clusters_are_counted_by_a_kernel_that_stays_loaded(asked):
    """To unload it would end the capture of a CUDA graph."""
    device = torch.device("cuda", 0)
    for cluster, expected in (((2, 1), 120), ((2, 2), 240), ((1, 2), 120)):
        assert occupancy.multiprocessors(device, pingpong(cluster=cluster)) == expected
    assert asked.count("cuModuleLoadData") == 1
    assert asked.count("cuOccupancyMaxActiveClusters") == 2  # (1, 2) is asked as (2, 1)
    assert "cuModuleUnload" not in asked


def test_each_question_has_a_context_whatever_the_thread_did_before(asked):
    """It is retained once, since the kernel stays loaded in it; the thread's own is back after."""
    for cluster in ((2, 1), (2, 2)):
        occupancy.multiprocessors(torch.device("cuda", 0), pingpong(cluster=cluster))
    contexts = [name for name in asked if "Ctx" in name]
    switched = ["cuCtxPushCurrent", "cuCtxPopCurrent"]
    assert contexts == ["cuDevicePrimaryCtxRetain", *switched, *switched]
    assert [asked[2], asked[-1]] == switched


def test_the_driver_is_asked_about_the_blocks_of_the_plan(asked, monkeypatch):
    def active(kernel, config):
        (shape,) = config.attrs
        asked.append((config.sharedMemBytes, shape.value.clusterDim.x, config.gridDimX))
        return OK, 33

    monkeypatch.setattr(driver, "cuOccupancyMaxActiveClusters", active)
    plan = pingpong(cluster=(2, 2))
    assert occupancy.multiprocessors(torch.device("cuda", 0), plan) == 132
    assert (plan.smem_bytes, 4, 4) in asked


def test_an_error_of_the_driver_is_named(asked, monkeypatch):
    monkeypatch.setattr(driver, "cuModuleLoadData", lambda _: (ERROR, None))
    with pytest.raises(RuntimeError, match="CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"):
        occupancy.multiprocessors(torch.device("cuda", 0), pingpong(cluster=(2, 1)))


def test_a_device_that_fits_no_cluster_is_refused(asked, monkeypatch):
    monkeypatch.setattr(driver, "cuOccupancyMaxActiveClusters", lambda *_: (OK, 0))
    with pytest.raises(RuntimeError, match="cannot run a cluster of 2 blocks with 230,400 bytes"):
        occupancy.multiprocessors(torch.device("cuda", 0), pingpong(cluster=(2, 1)))
