"""Pages with computed parts depend on the library and on the site's own Python.

Sphinx builds them again when one of these files changes.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from sphinx.environment import BuildEnvironment

ROOT = Path(__file__).parents[2]


@cache
def files() -> tuple[str, ...]:
    """Every source file of the library and of the site."""
    packages = ("layouts", "kernels", "cutedsl_gemm", "docs/_ext", "docs/live")
    found = (path for package in packages for path in (ROOT / package).rglob("*.py"))
    return tuple(map(str, sorted(found)))


def depend(env: BuildEnvironment) -> None:
    """Registers these files as dependencies of the current page, once."""
    if not env.temp_data.get(__name__):  # temp_data is that of the page
        env.temp_data[__name__] = True
        for file in files():
            env.note_dependency(file)
