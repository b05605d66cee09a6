"""Is the CuTe DSL installed whole? It is several packages, and pip can leave their versions mixed.

A mixed installation fails deep in the compiler, with a message that names none of the packages
(flashinfer#4555). `check` names them and the command that repairs them. It uses only the standard
library: it runs before the DSL is imported, or instead of it if the kernel is on disk.
"""

from __future__ import annotations

import importlib.metadata

DSL = "nvidia-cutlass-dsl"
PARTS = (DSL, *(f"{DSL}-libs-{part}" for part in ("base", "core", "cu12", "cu13")))
OLDEST, BELOW = "4.8", "4.9"  # the range of the gpu extra in pyproject.toml


class VersionError(ImportError):
    """The CuTe DSL is missing, mixed, or out of range; the message gives the command to run."""


def check() -> str:
    """The version of the CuTe DSL; VersionError unless all its parts share one that is in range."""
    found = parts()
    if DSL not in found:
        raise VersionError(
            "gemm on CUDA tensors needs the gpu extra: pip install 'cutedsl-gemm[gpu]'"
        )
    extra = "[cu13]" if f"{DSL}-libs-cu13" in found else ""
    repair = f"repair it with: pip install --force-reinstall '{DSL}{extra}>={OLDEST},<{BELOW}'"
    if len(set(found.values())) > 1:
        listed = ", ".join(f"{name} {version}" for name, version in found.items())
        raise VersionError(f"the parts of the CuTe DSL differ in version: {listed}; {repair}")
    version = found[DSL]
    if not _release(OLDEST) <= _release(version) < _release(BELOW):
        raise VersionError(f"{DSL} {version}: must be at least {OLDEST}, below {BELOW}; {repair}")
    return version


def parts() -> dict[str, str]:
    """The installed parts of the DSL and their versions; of duplicates, the one Python imports."""
    found: dict[str, str] = {}
    for name in PARTS:  # by name: reading the names of all distributions takes 0.1 s
        for distribution in importlib.metadata.distributions(name=name):
            if distribution.read_text("METADATA"):  # pip can leave an empty folder behind
                found.setdefault(name, distribution.version)
    return found


def _release(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in version.split(".")[:2])
