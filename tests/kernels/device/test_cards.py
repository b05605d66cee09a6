"""What the driver tells of the cards; a fake stands for libcuda."""

import ctypes
from types import SimpleNamespace

import pytest

from cutedsl_gemm.kernels.device import cards


def libcuda(status=0):
    """A driver of CUDA 12.8 with an H100 and an A100."""
    found = [
        ("NVIDIA H100 80GB HBM3", {75: 9, 76: 0, 16: 132}),
        ("NVIDIA A100-SXM4-80GB", {75: 8, 76: 0, 16: 108}),
    ]

    def to(reference, value):
        reference._obj.value = value
        return 0

    return SimpleNamespace(
        cuDriverGetVersion=lambda out: to(out, 12080),
        cuInit=lambda flags: status,
        cuDeviceGetCount=lambda out: to(out, len(found)),
        cuDeviceGet=lambda out, ordinal: to(out, ordinal),
        cuDeviceGetName=lambda out, size, device: setattr(
            out, "value", found[device.value][0].encode()
        ),
        cuDeviceGetAttribute=lambda out, key, device: to(out, found[device.value][1][key]),
    )


def test_the_cards_are_those_of_the_driver(monkeypatch, tmp_path):
    (tmp_path / "version").write_text("570.86.15\n")
    monkeypatch.setattr(cards, "RELEASE", tmp_path / "version")
    monkeypatch.setattr(ctypes, "CDLL", lambda name: libcuda())
    found = cards.driver()
    assert found[:2] == ("570.86.15", (12, 8))
    assert [*map(tuple, found.cards)] == [
        ("NVIDIA H100 80GB HBM3", (9, 0), 132),
        ("NVIDIA A100-SXM4-80GB", (8, 0), 108),
    ]


def test_a_driver_that_does_not_start_is_named(monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lambda name: libcuda(status=100))
    with pytest.raises(cards.DriverError, match="shows no card: cuInit returns 100"):
        cards.driver()


def test_a_machine_without_a_driver_is_told_so(monkeypatch, tmp_path):
    def missing(name):
        raise OSError(name)

    monkeypatch.setattr(cards, "RELEASE", tmp_path / "none")
    monkeypatch.setattr(ctypes, "CDLL", missing)
    with pytest.raises(cards.DriverError, match=r"no NVIDIA driver was found: libcuda"):
        cards.driver()
