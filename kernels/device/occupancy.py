"""How many blocks of a persistent grid run at the same time.

The blocks of a cluster run in one GPC. GPCs have different numbers of multiprocessors, and clusters
of four or eight blocks do not fill all of them: 120 of an H100's 132. One cluster too many would
wait until another one has walked all of its tiles, and double the time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch

from cutedsl_gemm.kernels.plan.kernel_plan import KernelPlan

# A kernel that does nothing: shared memory alone decides how many of its blocks run at once.
EMPTY_KERNEL = b".version 7.8 .target sm_90 .address_size 64 .visible .entry empty() { ret; }"


def multiprocessors(device: torch.device, plan: KernelPlan) -> int:
    """The multiprocessors of a device that the clusters of a plan fill at once, one block each.

    RuntimeError if not one cluster fits, as on a small MIG instance.
    """
    if plan.cluster_size == 1:
        return torch.cuda.get_device_properties(device).multi_processor_count
    clusters = _clusters(device, plan.cluster_size, plan.smem_bytes)
    if not clusters:
        raise RuntimeError(
            f"{device} cannot run a cluster of {plan.cluster_size} blocks with {plan.smem_bytes:,} "
            "bytes of shared memory each; for a plan without clusters, pass tile=(128, 128, 64) "
            "and omit kernel"
        )
    return clusters * plan.cluster_size


@cache
def _clusters(device: torch.device, size: int, smem_bytes: int) -> int:
    """Clusters that run at the same time (CUDA driver API, cuOccupancyMaxActiveClusters)."""
    from cuda.bindings import driver

    dynamic = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    shape = driver.CUlaunchAttribute()
    shape.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
    shape.value.clusterDim.x, shape.value.clusterDim.y, shape.value.clusterDim.z = size, 1, 1
    config = driver.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = size, 1, 1
    config.blockDimX, config.blockDimY, config.blockDimZ = 32, 1, 1
    config.sharedMemBytes = smem_bytes
    config.attrs, config.numAttrs = [shape], 1
    with _primary_context(device):
        kernel = _empty_kernel(device)
        _checked(driver.cuFuncSetAttribute(kernel, dynamic, smem_bytes))
        clusters: int = _checked(driver.cuOccupancyMaxActiveClusters(kernel, config))
    return clusters


@contextmanager
def _primary_context(device: torch.device) -> Iterator[None]:
    """The device's primary context, which torch uses, as the current one of this thread.

    torch.cuda.device does not give a new thread a context, such as that of a first backward pass.
    """
    from cuda.bindings import driver

    _checked(driver.cuCtxPushCurrent(_retained_context(device)))
    try:
        yield
    finally:
        _checked(driver.cuCtxPopCurrent())


@cache
def _retained_context(device: torch.device) -> Any:
    """The device's primary context, which is never released: `_empty_kernel` stays loaded in it."""
    from cuda.bindings import driver

    return _checked(driver.cuDevicePrimaryCtxRetain(_checked(driver.cuDeviceGet(device.index))))


@cache
def _empty_kernel(device: torch.device) -> Any:
    """`EMPTY_KERNEL` in the current context, which is the device's.

    It stays loaded. A driver of CUDA 12.3 or later loads a module while a CUDA graph is captured,
    but to unload one ends the capture (NVIDIA/warp#401).
    """
    from cuda.bindings import driver

    module = _checked(driver.cuModuleLoadData(EMPTY_KERNEL))
    return _checked(driver.cuModuleGetFunction(module, b"empty"))


def _checked(returned: tuple[Any, ...]) -> Any:
    """The result of a driver call, without the error code. RuntimeError if the call failed."""
    error, *found = returned
    if error.value:
        raise RuntimeError(f"the CUDA driver returned {error.name}")
    return found[0] if found else None
