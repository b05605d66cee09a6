"""The packages of kernels/ import one way, and a plan loads neither torch nor the DSL."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KERNELS = "cutedsl_gemm.kernels."
SHARED = {"plan", "device", "executor", "epilogue"}
BELOW = {  # package → the packages from which it imports
    "epilogue": set(),
    "plan": {"epilogue"},
    "pipeline": set(),
    "device": {"plan", "epilogue"},
    "executor": {"plan", "epilogue"},
    "compile": {"plan", "device"},
    "copies": SHARED,
    "simt": SHARED,
    "sm80": SHARED,
    "sm70": SHARED | {"sm80"},
    "sm90": SHARED | {"compile", "pipeline"},
}
FILES = [path.relative_to(ROOT) for path in sorted((ROOT / "kernels").rglob("*.py"))]
PLANS = [
    f"cutedsl_gemm.{'.'.join(file.with_suffix('').parts)}"
    for file in FILES
    if file.stem.endswith("plan") or file.stem == "rungs"
]


def imported(file: Path) -> set[str]:
    """The modules of kernels/ that a file imports, at its top or in a function."""
    nodes = ast.walk(ast.parse((ROOT / file).read_text()))
    names = {
        f"{node.module}.{alias.name}"
        for node in nodes
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    return {name.removeprefix(KERNELS) for name in names if name.startswith(KERNELS)}


@pytest.mark.parametrize("file", FILES, ids=str)
def test_packages_of_kernels_import_one_way(file):
    package = file.with_suffix("").parts[1]
    assert {name.split(".")[0] for name in imported(file)} <= BELOW[package] | {package}


def test_plans_load_neither_torch_nor_the_dsl():
    """As many processes compile ahead as there are cores: each makes plans, and needs no torch."""
    code = f"import sys, {', '.join(PLANS)}, {KERNELS}compile.build; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert loaded.returncode == 0, loaded.stderr
    assert not {"torch", "cutlass"} & {*loaded.stdout.split()}
