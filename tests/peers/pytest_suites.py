"""Suites that are made for pytest, each run in a pytest of its own with its shim on the path."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree

from .outcome import Case, Cases
from .sources import ROOT, TENSOR_LAYOUTS, TRACT, Source

SHIMS = Path(__file__).parent / "shims"


def tract_cases() -> Cases:
    """Colfax's tract: layouts from morphisms, each operation computed both ways."""
    return _run(TRACT, ["tract/tests/morphism_tests.py"], "tract/src", "seeded")


def tensor_layouts_cases() -> Cases:
    """tensor-layouts: what tests the algebra, its paper's examples, and its tensors."""
    files = [f"tests/{name}.py" for name in ("layouts", "composed", "tensor")]
    return _run(TENSOR_LAYOUTS, files, "src", "tensor_layouts_shim")


def _run(source: Source, files: list[str], package: str, plugin: str) -> Cases:
    """The cases of test files, with the folder of a package importable, and a plugin."""
    path = [SHIMS, ROOT, source.folder / package]
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull]
        options = ["-p", plugin, "--import-mode=importlib", f"--junit-xml={report}"]
        subprocess.run(
            [*command, *options, f"--rootdir={source.folder}", *files],
            cwd=source.folder,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path))},
            stdout=subprocess.DEVNULL,
            check=False,
        )
        for test in ElementTree.parse(report).iter("testcase"):
            name = f"{test.get('classname', '').rsplit('.', 1)[-1]}.{test.get('name')}"
            if test.find("skipped") is None:
                failure = next((x for tag in ("failure", "error") for x in test.iter(tag)), None)
                message = None if failure is None else failure.get("message", "").split("\n")[0]
                yield Case(name, message)
