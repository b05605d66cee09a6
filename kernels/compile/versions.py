"""The CuTe DSL is several packages; `check` requires one version of them, in range.

pip can leave their versions mixed. Such an installation fails deep in the compiler, with a message
that names none of the packages (flashinfer#4555). `check` names them and the command that repairs
them. It uses only the standard library: it runs before the DSL is imported, or instead of it if the
kernel is on disk.
"""

from __future__ import annotations

import importlib.metadata
import re
from pathlib import Path

DSL = "nvidia-cutlass-dsl"
PARTS = (DSL, *(f"{DSL}-libs-{part}" for part in ("base", "core", "cu12", "cu13")))
OLDEST, BELOW = "4.7", "4.9"  # the range of the gpu extra in pyproject.toml


class VersionError(ImportError):
    """The CuTe DSL is missing, mixed, or out of range; the message gives the command to run."""


def check() -> str:
    """The version of the CuTe DSL; VersionError unless all its parts share one that is in range."""
    found = parts()
    if DSL not in found:
        raise VersionError(f"compiled kernels need {DSL}, which is not installed: {installation()}")
    if len(set(found.values())) > 1:
        listed = ", ".join(f"{name} {version}" for name, version in found.items())
        raise VersionError(
            f"the parts of the CuTe DSL differ in version: {listed}; repair it with: {repair()}"
        )
    version = found[DSL]
    if not _release(OLDEST) <= _release(version) < _release(BELOW):
        raise VersionError(
            f"{DSL} {version}: must be at least {OLDEST}, below {BELOW}; repair it with: {repair()}"
        )
    return version


def repair() -> str:
    """The command that installs the DSL anew, with all its parts."""
    extra = "[cu13]" if f"{DSL}-libs-cu13" in parts() else ""
    return f"pip install --force-reinstall '{DSL}{extra}>={OLDEST},<{BELOW}'"


def installation(extra: str = "gpu") -> str:
    """The command that installs an extra: of the wheel, or of the checkout that this file is in."""
    root = Path(__file__).resolve().parents[2]
    if not (root / "pyproject.toml").is_file():
        return f"pip install 'cutedsl-gemm[{extra}]'"
    return f"pip install -e '{'.' if root == Path.cwd() else root}[{extra}]'"


def parts() -> dict[str, str]:
    """The installed parts of the DSL and their versions; of duplicates, the one Python imports."""
    found: dict[str, str] = {}
    for name in PARTS:  # by name: reading the names of all distributions takes 0.1 s
        for distribution in importlib.metadata.distributions(name=name):
            if distribution.read_text("METADATA"):  # pip can leave an empty folder behind
                found.setdefault(name, distribution.version)
    return found


def _release(version: str) -> tuple[int, ...]:
    """Major and minor: (4, 8) of 4.8.1, of 4.8rc1 and of 4.8+cu13."""
    return tuple(map(int, re.findall(r"\d+", version)[:2]))
