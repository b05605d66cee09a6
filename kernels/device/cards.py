"""The cards of this machine, as NVIDIA's driver tells them. Neither torch nor a toolkit is needed.

The functions are those of the CUDA driver API (cuInit, cuDeviceGetCount, cuDeviceGetAttribute).
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

LIBRARY = "libcuda.so.1"
RELEASE = Path("/sys/module/nvidia/version")  # of the kernel's module
# CUdevice_attribute
MULTIPROCESSOR_COUNT, CAPABILITY_MAJOR, CAPABILITY_MINOR = 16, 75, 76


class Card(NamedTuple):
    """A card: its name, its compute capability, its multiprocessors."""

    name: str
    capability: tuple[int, int]
    multiprocessors: int


class Driver(NamedTuple):
    """The driver's release, the newest CUDA that it runs, and the cards that it shows."""

    release: str
    cuda: tuple[int, int]
    cards: tuple[Card, ...]


class DriverError(RuntimeError):
    """There is no driver, or it does not start; the message says which."""


def driver() -> Driver:
    """The driver and the cards, in the order of torch's numbers; DriverError if none answers."""
    release = RELEASE.read_text().strip() if RELEASE.is_file() else ""
    try:
        api = ctypes.CDLL(LIBRARY)
    except OSError:
        only = f" (only its kernel module, {release})" if release else ""
        raise DriverError(f"no NVIDIA driver was found{only}: {LIBRARY} is missing") from None
    number = ctypes.c_int()
    api.cuDriverGetVersion(ctypes.byref(number))
    if status := api.cuInit(0):
        raise DriverError(f"the NVIDIA driver {release} shows no card: cuInit returns {status}")
    cuda = number.value // 1000, number.value % 1000 // 10
    return Driver(release or "of unknown release", cuda, tuple(_cards(api)))


def _cards(api: ctypes.CDLL) -> Iterator[Card]:
    count, device, value = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    name = ctypes.create_string_buffer(256)
    api.cuDeviceGetCount(ctypes.byref(count))
    for ordinal in range(count.value):
        api.cuDeviceGet(ctypes.byref(device), ordinal)
        api.cuDeviceGetName(name, len(name), device)
        values = []
        for attribute in (CAPABILITY_MAJOR, CAPABILITY_MINOR, MULTIPROCESSOR_COUNT):
            api.cuDeviceGetAttribute(ctypes.byref(value), attribute, device)
            values.append(value.value)
        major, minor, multiprocessors = values
        yield Card(name.value.decode(), (major, minor), multiprocessors)
