"""Installations of the CuTe DSL, whole and broken, as importlib.metadata reports them."""

from __future__ import annotations

import importlib.metadata
import re
import sys
from pathlib import Path

import pytest

from cutedsl_gemm.kernels.compile import versions
from cutedsl_gemm.kernels.compile.versions import VersionError

WHOLE = {
    "nvidia-cutlass-dsl": "4.8.1",
    "nvidia-cutlass-dsl-libs-base": "4.8.1",
    "nvidia-cutlass-dsl-libs-core": "4.8.1",
    "nvidia-cutlass-dsl-libs-cu12": "4.8.1",
}


@pytest.fixture
def install(monkeypatch, tmp_path):
    folders = (tmp_path / str(number) for number in range(100))

    def install(*pairs: tuple[str, str]) -> None:
        """Install each in its own folder on sys.path, in this order."""
        path = []
        for name, version in [("numpy", "2.4.6"), *pairs]:
            path.append(str(folder := next(folders)))
            described = folder / f"{name.replace('-', '_')}-{version}.dist-info" / "METADATA"
            described.parent.mkdir(parents=True)
            described.write_text(f"Name: {name}\nVersion: {version}\n")
        monkeypatch.setattr(sys, "path", path)

    return install


def test_whole(install):
    install(*WHOLE.items())
    assert versions.check() == "4.8.1"


def test_the_oldest(install):
    install(*dict.fromkeys(WHOLE, "4.7.0").items())
    assert versions.check() == "4.7.0"


def test_the_installed_one_is_whole():
    assert versions.check() == importlib.metadata.version("nvidia-cutlass-dsl")


def test_missing(install):
    install()
    with pytest.raises(VersionError, match="nvidia-cutlass-dsl, which is not installed: pip inst"):
        versions.check()


def test_the_command_that_installs_is_that_of_the_checkout_or_of_the_wheel(monkeypatch, tmp_path):
    root = Path(__file__).parents[3]
    monkeypatch.chdir(root)
    assert versions.installation("cu13") == "pip install -e '.[cu13]'"
    monkeypatch.chdir(tmp_path)
    assert versions.installation() == f"pip install -e '{root}[gpu]'"
    monkeypatch.setattr(versions, "__file__", str(tmp_path / "cutedsl_gemm/kernels/compile/x.py"))
    assert versions.installation() == "pip install 'cutedsl-gemm[gpu]'"


def test_parts_that_differ_are_named(install):
    install(*{**WHOLE, "nvidia-cutlass-dsl-libs-base": "4.8.0"}.items())
    with pytest.raises(VersionError) as error:
        versions.check()
    assert str(error.value) == (
        "the parts of the CuTe DSL differ in version: nvidia-cutlass-dsl 4.8.1, "
        "nvidia-cutlass-dsl-libs-base 4.8.0, nvidia-cutlass-dsl-libs-core 4.8.1, "
        "nvidia-cutlass-dsl-libs-cu12 4.8.1; "
        "repair it with: pip install --force-reinstall 'nvidia-cutlass-dsl>=4.7,<4.9'"
    )


def test_a_stale_cuda_13_part_is_repaired_by_its_extra(install):
    install(*WHOLE.items(), ("nvidia-cutlass-dsl-libs-cu13", "4.7.0"))
    with pytest.raises(VersionError, match=re.escape("'nvidia-cutlass-dsl[cu13]>=4.7,<4.9'")):
        versions.check()


@pytest.mark.parametrize("version", ["4.6.3", "4.9.0.dev0", "4.10.0rc1", "5.0.0", "4.9rc1"])
def test_out_of_range(install, version):
    install(*dict.fromkeys(WHOLE, version).items())
    with pytest.raises(VersionError, match=f"dsl {version}: must be at least 4.7, below 4.9"):
        versions.check()


def test_a_name_may_be_spelled_differently(install):
    install(("NVIDIA_cutlass.dsl", "4.8.1"))
    assert versions.parts() == {"nvidia-cutlass-dsl": "4.8.1"}


def test_a_folder_without_metadata_is_ignored(install, tmp_path):
    install(*WHOLE.items())
    (tmp_path / "1" / "nvidia_cutlass_dsl_libs_cu13-4.7.0.dist-info").mkdir()
    assert versions.check() == "4.8.1"


def test_the_first_duplicate_on_the_path_counts(install):
    install(*WHOLE.items(), ("nvidia-cutlass-dsl", "4.7.0"))
    assert versions.check() == "4.8.1"


def test_the_range_is_that_of_the_gpu_extra():
    project = (Path(__file__).parents[3] / "pyproject.toml").read_text()
    assert f'"{versions.DSL}>={versions.OLDEST},<{versions.BELOW}"' in project
