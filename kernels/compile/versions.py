"""Is the installed CuTe DSL whole? It comes in parts, and pip can leave them at different versions.

Parts that differ fail deep in the compiler, with a text that names none of them (flashinfer#4555);
`check` names them, and the command that mends it. Standard library only, since it runs before the
DSL is imported, and instead of it where a kernel is on disk.
"""

from __future__ import annotations

import importlib.metadata

DSL = "nvidia-cutlass-dsl"
PARTS = (DSL, *(f"{DSL}-libs-{part}" for part in ("base", "core", "cu12", "cu13")))
OLDEST, BELOW = "4.8", "4.9"  # the range of the gpu extra in pyproject.toml


class VersionError(ImportError):
    """The CuTe DSL is missing, mixed, or of a version not tried; the message says what to run."""


def check() -> str:
    """Return the version of the CuTe DSL; raise unless all its parts have it and it is in range."""
    found = parts()
    if DSL not in found:
        raise VersionError(
            "gemm on CUDA tensors needs the gpu extra: pip install 'cutedsl-gemm[gpu]'"
        )
    extra = "[cu13]" if f"{DSL}-libs-cu13" in found else ""
    mend = f"mend it with: pip install --force-reinstall '{DSL}{extra}>={OLDEST},<{BELOW}'"
    if len(set(found.values())) > 1:
        listed = ", ".join(f"{name} {version}" for name, version in found.items())
        raise VersionError(f"the parts of the CuTe DSL differ in version: {listed}; {mend}")
    version = found[DSL]
    if not _release(OLDEST) <= _release(version) < _release(BELOW):
        raise VersionError(f"{DSL} {version}: must be at least {OLDEST}, below {BELOW}; {mend}")
    return version


def parts() -> dict[str, str]:
    """The installed distributions of the DSL and their versions; of two, the one Python imports."""
    found: dict[str, str] = {}
    for name in PARTS:  # asked by name: to read the names of all takes a tenth of a second
        for distribution in importlib.metadata.distributions(name=name):
            if distribution.read_text("METADATA"):  # pip can leave an empty folder behind
                found.setdefault(name, distribution.version)
    return found


def _release(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in version.split(".")[:2])
