"""Run the tests of the packages that a change touches, and of those above them: make check.

A change is everything since the branch left main, committed or not. Tests marked `slow` are left to
make test, and property tests take few examples.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]
OPTIONS = (
    *("-q", "-n", "2", "--dist", "worksteal"),
    *("-m", "not slow and not gpu", "--hypothesis-profile=quick"),
)
# Importing the DSL takes each worker seconds.
DSL = [f"--ignore=tests/layouts/{package}/test_dsl.py" for package in ("algebra", "tiled")]

# Of each top package: its packages, each of which imports only those before it.
PACKAGES = {
    "layouts": (
        *("values", "algebra", "notation", "proof"),
        *("hardware", "tiled", "explanation", "draw"),
    ),
    "kernels": (
        *("epilogue", "plan", "pipeline", "device", "executor", "compile"),
        *("copies", "simt", "sm70", "sm80", "sm90"),
    ),
    "cutedsl_gemm": ("layers", "models", "distributed", "measure"),  # the others are below api.py
}
FAMILIES = "simt", "sm70", "sm80", "sm90"  # which do not import each other, but for sm80 in sm70


def changed() -> list[str]:
    """The files that differ from main, and those that git does not know yet."""
    base = git("merge-base", "HEAD", "main") or ["HEAD"]
    return git("diff", "--name-only", *base) + git("ls-files", "--others", "--exclude-standard")


def git(*arguments: str) -> list[str]:
    run = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    return run.stdout.split()


def selection(files: Iterable[str]) -> list[str]:
    """What pytest runs after a change of these files.

    A source file selects its package and those that import it in its top package; a test file
    selects its package alone.

    >>> selection(["layouts/hardware/banks.py"])
    ['layouts/draw', 'layouts/explanation', 'layouts/hardware', 'layouts/tiled', \
'tests/layouts/draw', 'tests/layouts/explanation', 'tests/layouts/hardware', 'tests/layouts/tiled']
    >>> selection(["kernels/sm80/plan.py", "tests/kernels/plan/test_raster.py"])
    ['cutedsl_gemm/kernels/sm80', 'tests/kernels/plan', 'tests/kernels/sm80']
    >>> selection(["cutedsl_gemm/calls/call.py"])
    ['cutedsl_gemm', 'tests/cutedsl_gemm']
    >>> selection(["docs/start.md", "README.md"])
    ['tests/docs', 'tests/test_readme.py']
    >>> selection(["tests/layouts/hardware/measured/h100_wavefronts.json.gz"])
    ['tests/layouts/hardware']
    """
    found: set[str] = set()
    for file in files:
        first, *rest = Path(file).parts
        if first == "tests":
            found |= of_test(rest)
        elif first in PACKAGES:
            packages = touched(first, rest[0])
            found |= {path for package in packages for path in package_paths(first, package)}
        elif first in ("docs", "README.md", "CONTRIBUTING.md", "CHANGELOG.md"):
            found |= {"tests/test_readme.py"} | ({"tests/docs"} if first == "docs" else set())
        elif first == "pyproject.toml":
            found.add("tests/test_packaging.py")
    return sorted(path for path in found if (ROOT / path).exists() and not covered(path, found))


def of_test(parts: list[str]) -> set[str]:
    """The package of a test file: its folder; a file at the top is run alone."""
    if len(parts) == 1:
        return set() if parts == ["conftest.py"] else {f"tests/{parts[0]}"}
    folder = Path("tests", *parts[:-1])
    return {str(folder if any((ROOT / folder).glob("test_*.py")) else folder.parent)}


def touched(top: str, package: str) -> tuple[str, ...]:
    """A package and those after it; "" for the whole top package, if the file is in none."""
    packages = PACKAGES[top]
    if package not in packages:
        return ("",)
    return (package,) if package in FAMILIES else packages[packages.index(package) :]


def package_paths(top: str, package: str) -> tuple[str, str]:
    """The doctests and the tests of a package. Plans are imported as cutedsl_gemm.kernels."""
    source = Path("cutedsl_gemm", "kernels") if top == "kernels" else Path(top)
    return str(source / package), str(Path("tests", top, package))


def covered(path: str, found: set[str]) -> bool:
    """Whether a folder above the path is selected, too."""
    return any(str(parent) in found for parent in Path(path).parents)


def main() -> int:
    """Run them; the status is pytest's."""
    paths = selection(changed())
    if not paths:
        print("no package is touched")
        return 0
    print("testing", *paths)
    pytest = [sys.executable, "-m", "pytest", *OPTIONS, *DSL]
    return subprocess.run([*pytest, *paths], cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main())
