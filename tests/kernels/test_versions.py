"""Installations of the CuTe DSL, whole and broken, as importlib.metadata would tell of them."""

from __future__ import annotations

import importlib.metadata
import re
from email.message import Message
from pathlib import Path
from types import SimpleNamespace

import pytest

from cutedsl_gemm.kernels import versions
from cutedsl_gemm.kernels.versions import VersionError

WHOLE = {
    "nvidia-cutlass-dsl": "4.8.1",
    "nvidia-cutlass-dsl-libs-base": "4.8.1",
    "nvidia-cutlass-dsl-libs-core": "4.8.1",
    "nvidia-cutlass-dsl-libs-cu12": "4.8.1",
}


@pytest.fixture
def install(monkeypatch):
    def distribution(name: str | None, version: str) -> SimpleNamespace:
        metadata = Message()
        if name is not None:
            metadata["Name"] = name
        return SimpleNamespace(metadata=metadata, version=version)

    def install(*pairs: tuple[str | None, str]) -> None:
        found = [distribution(*pair) for pair in [("numpy", "2.4.6"), *pairs]]
        monkeypatch.setattr(importlib.metadata, "distributions", lambda: found)

    return install


def test_whole(install):
    install(*WHOLE.items())
    assert versions.check() == "4.8.1"


def test_the_one_installed_here_is_whole():
    assert versions.check() == importlib.metadata.version("nvidia-cutlass-dsl")


def test_missing(install):
    install()
    with pytest.raises(VersionError, match=re.escape("pip install 'cutedsl-gemm[gpu]'")):
        versions.check()


def test_parts_that_differ_are_named(install):
    install(*{**WHOLE, "nvidia-cutlass-dsl-libs-base": "4.8.0"}.items())
    with pytest.raises(VersionError) as error:
        versions.check()
    assert str(error.value) == (
        "the parts of the CuTe DSL differ in version: nvidia-cutlass-dsl 4.8.1, "
        "nvidia-cutlass-dsl-libs-base 4.8.0, nvidia-cutlass-dsl-libs-core 4.8.1, "
        "nvidia-cutlass-dsl-libs-cu12 4.8.1; "
        "mend it with: pip install --force-reinstall 'nvidia-cutlass-dsl>=4.8,<4.9'"
    )


def test_a_stale_cuda_13_part_is_mended_by_its_extra(install):
    install(*WHOLE.items(), ("nvidia-cutlass-dsl-libs-cu13", "4.7.0"))
    with pytest.raises(VersionError, match=re.escape("'nvidia-cutlass-dsl[cu13]>=4.8,<4.9'")):
        versions.check()


@pytest.mark.parametrize("version", ["4.7.9", "4.9.0.dev0", "4.10.0rc1", "5.0.0"])
def test_out_of_range(install, version):
    install(*dict.fromkeys(WHOLE, version).items())
    with pytest.raises(VersionError, match=f"dsl {version}: must be at least 4.8, below 4.9"):
        versions.check()


def test_a_name_may_be_spelt_otherwise_or_be_lost(install):
    install(("NVIDIA_cutlass.dsl", "4.8.1"), (None, "4.7.0"))
    assert versions.parts() == {"nvidia-cutlass-dsl": "4.8.1"}


def test_of_two_the_first_on_the_path_counts(install):
    install(*WHOLE.items(), ("nvidia-cutlass-dsl", "4.7.0"))
    assert versions.check() == "4.8.1"


def test_the_range_is_that_of_the_gpu_extra():
    project = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    assert f'"{versions.DSL}>={versions.OLDEST},<{versions.BELOW}"' in project
