"""python -m tests.versions [--only PATTERN] [--tests PATH ...]: what works with which versions.

For each of the ENVIRONMENTS: a new virtual environment, the wheel of this checkout installed in it
by pip, and the CHECKS, then the quick tests of the checkout. Each is a line of docs/versions.csv,
which docs/limits.md shows. One takes minutes, and up to 8 GB of disk until the next one starts.
"""

from __future__ import annotations

import argparse
import csv
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from datetime import date
from pathlib import Path
from typing import NamedTuple, TypeAlias

from cutedsl_gemm.kernels.compile import cache
from cutedsl_gemm.kernels.compile.versions import DSL
from tests.touched import OPTIONS, ROOT

FILE = ROOT / "docs" / "versions.csv"
Done: TypeAlias = "subprocess.CompletedProcess[str]"


class Environment(NamedTuple):
    """A version of Python, an extra of the wheel, and versions other than those of CI."""

    python: str
    extra: str = ""
    torch: str = ""
    dsl: str = ""

    @property
    def pins(self) -> dict[str, str]:
        return {name: pin for name, pin in (("torch", self.torch), (DSL, self.dsl)) if pin}

    def __str__(self) -> str:
        pins = (f"{name} {version}" for name, version in self.pins.items())
        return ", ".join((f"Python {self.python}", self.extra or "no extra", *pins))


ENVIRONMENTS = (
    *(Environment(python) for python in ("3.10", "3.11", "3.12", "3.13")),
    *(Environment(python, "gpu") for python in ("3.10", "3.11", "3.12", "3.13")),
    Environment("3.11", "gpu", dsl="4.7.1"),
    Environment("3.13", "gpu", dsl="4.7.0"),
    Environment("3.11", "gpu", torch="2.11.0"),
    Environment("3.12", "gpu", torch="2.11.0", dsl="4.7.1"),
    Environment("3.13", "gpu", torch="2.15.0"),
    Environment("3.12", "cu13"),
)

NAMES = """
import cutedsl_gemm, layouts
for package in (layouts, cutedsl_gemm):
    for name in package.__all__:
        getattr(package, name)
"""
EXECUTED = """
from cutedsl_gemm import gemm
import torch
a, b = (torch.randint(-2, 3, (128, 128)).bfloat16() for _ in "ab")
assert torch.equal(gemm(a, b, tile=(128, 128, 64)), a @ b)
assert torch.equal(gemm(a, b, epilogue=lambda acc: acc.relu()), (a @ b).relu())
"""
COMPILED = """
from cutedsl_gemm import gemm
from cutedsl_gemm.kernels.compile.build import make
from cutedsl_gemm.kernels.simt.rungs import block2d
from cutedsl_gemm.kernels.sm80.rungs import multistage
from cutedsl_gemm.kernels.sm90.rungs import pingpong, split
for rung in (block2d, multistage, pingpong, split):
    make(rung())
"""
# What a Python of the environment runs, and the use of which doctor says whether it runs.
CHECKS = {
    "layouts": (("-m", "layouts", "S<3,3,3> o 0 o (8,64):(64,1)"), "layouts"),
    "every name": (("-c", NAMES), ""),
    "gemm on the CPU": (("-c", EXECUTED), "gemm of CPU tensors, explain, hierarchy"),
    "compiles for sm_90a": (("-c", COMPILED), "kernels compiled for another machine: build"),
}
TESTED, NOT_RUN = "quick tests", "not run"
COLUMNS = ("environment", "torch", "CuTe DSL", *CHECKS, "doctor agrees", TESTED, "date")
SECONDS = 1800  # of a command
NEEDED = "hatchling", "hypothesis", "matplotlib", "pytest", "pytest-xdist"  # by the tests
ROOMS = "tests/layouts", "tests/kernels", "tests/cutedsl_gemm"


def main() -> None:
    """Try the environments, and write a line of the file for each."""
    parser = argparse.ArgumentParser(prog="python -m tests.versions", description=__doc__)
    parser.add_argument("--only", default="", help="a pattern in their descriptions")
    parser.add_argument("--tests", nargs="*", default=ROOMS, help="for pytest; none: no test")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        must(run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=ROOT))
        (wheel,) = Path(folder).glob("*.whl")
        for environment in ENVIRONMENTS:
            if re.search(options.only, str(environment)):
                python = installed(environment, wheel, Path(folder, "environment"))
                row = tried(python) | {"environment": str(environment), "date": f"{date.today()}"}
                row[TESTED] = tested(python, options.tests)
                write(row)
                print(*(f"{column}: {row[column]}" for column in COLUMNS), "", sep="\n", flush=True)


def installed(environment: Environment, wheel: Path, folder: Path) -> Path:
    """The Python of a new environment in the folder, with the wheel."""
    shutil.rmtree(folder, ignore_errors=True)
    must(run(interpreter(environment.python), "-m", "venv", folder))
    python = folder / "bin" / "python"
    # constraints.txt is of one set of versions: others ask for others of setuptools, protobuf, …
    limits = () if environment.pins else ("-c", ROOT / "constraints.txt")
    what = f"{wheel}[{environment.extra}]" if environment.extra else str(wheel)
    pins = [f"{name}=={pin}" for name, pin in environment.pins.items()]
    must(run(python, "-m", "pip", "install", "-q", "--no-compile", *limits, what, *pins))
    return python


def interpreter(python: str) -> str:
    """The executable of a version of Python: on the PATH, or one of pyenv's."""
    found = [shutil.which(f"python{python}")]
    found += sorted(map(str, Path.home().glob(f".pyenv/versions/{python}.*/bin/python")))
    for each in filter(None, found):
        if run(each, "-c", "").returncode == 0:  # pyenv's shim may stand for none
            return each
    sys.exit(f"Python {python} is not installed")


def tried(python: Path) -> dict[str, str]:
    """What the checks say, the versions, and whether doctor says so too."""
    row = {"torch": version(python, "torch"), "CuTe DSL": version(python, DSL)}
    said = dict(doctor(python))
    row |= {name: outcome(run(python, *given)) for name, (given, _) in CHECKS.items()}
    agree = all(row[name].startswith(said[use]) for name, (_, use) in CHECKS.items() if use)
    return row | {"doctor agrees": "yes" if agree else "no"}


def outcome(done: Done) -> str:
    """yes; or no, with what the error says."""
    if done.returncode == 0:
        return "yes"
    error, _, says = done.stderr.strip().splitlines()[-1].partition(": ")
    if extra := re.search(r"pip install 'cutedsl-gemm\[(\w+)\]'$", says):
        return f"no: needs the {extra[1]} extra"
    return f"no: {says or error}"


def version(python: Path, package: str) -> str:
    """The version of an installed package; "none" if it is missing."""
    code = f"from importlib.metadata import version; print(version({package!r}))"
    return run(python, "-c", code).stdout.strip() or "none"


def doctor(python: Path) -> Iterator[tuple[str, str]]:
    """The uses of doctor's table, and whether each runs: yes or no."""
    for line in must(run(python, "-m", "cutedsl_gemm", "doctor")).stdout.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 3 and cells[1] in ("yes", "no"):
            yield cells[0], cells[1]


def tested(python: Path, tests: Iterable[str]) -> str:
    """How many quick tests of the checkout pass; without torch, of those of layouts."""
    if version(python, "torch") == "none":
        tests = (each for each in tests if each.startswith("tests/layouts"))
    if not (tests := [*tests]):
        return NOT_RUN
    must(run(python, "-m", "pip", "install", "-q", "-c", ROOT / "constraints.txt", *NEEDED))
    options = *OPTIONS, "-p", "no:cacheprovider", *tests
    done = run(python, "-m", "pytest", *options, cwd=ROOT, PYTHONPATH=str(ROOT))
    if done.returncode:
        print(done.stdout)
    return done.stdout.strip().splitlines()[-1].strip("= ").partition(" in ")[0]


def write(row: dict[str, str]) -> None:
    """Write the row of an environment to the file, whose lines are in the order of the table.

    If no tests ran in any environment, the file has no column of them.
    """
    rows = {row["environment"]: row}
    if FILE.exists():
        with FILE.open(newline="") as file:
            rows = {each["environment"]: each for each in csv.DictReader(file)} | rows
    with FILE.open("w", newline="") as file:
        tested = any(each.get(TESTED, NOT_RUN) != NOT_RUN for each in rows.values())
        columns = [name for name in COLUMNS if tested or name != TESTED]
        writer = csv.DictWriter(file, columns, NOT_RUN, "ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows[name] for name in map(str, ENVIRONMENTS) if name in rows)


def run(*command: object, cwd: object = None, **variables: str) -> Done:
    """What a command does: in an empty folder, with a cache of its own, and no other PYTHONPATH."""
    with tempfile.TemporaryDirectory() as empty:
        environ = os.environ | {cache.VARIABLE: empty, "PYTHONPATH": ""} | variables
        return subprocess.run(
            [str(each) for each in command],
            cwd=str(cwd or empty),
            env=environ,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )


def must(done: Done) -> Done:
    """A command that has done what it should; SystemExit, with its errors, if not."""
    if done.returncode:
        sys.exit(f"{' '.join(done.args)}\n{done.stderr}")
    return done


if __name__ == "__main__":
    main()
