"""What ships, under which names it imports, and what may import what."""

from __future__ import annotations

import ast
import csv
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tests.layouts.calls import CALLS
from tests.versions import __main__ as versions

ROOT = Path(__file__).parents[1]
PACKAGES = "layouts", "kernels", "cutedsl_gemm"
FILES = [path.relative_to(ROOT) for top in PACKAGES for path in sorted(ROOT.glob(f"{top}/**/*.py"))]


def shipped(file: Path) -> Path:
    return Path("cutedsl_gemm", file) if file.parts[0] == "kernels" else file


def run(*arguments: str | Path, start: Path = ROOT, path: str | Path = "") -> str:
    """Return what a Python of its own prints, which starts in the folder `start`."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=start,
        env=os.environ | {"PYTHONPATH": str(path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("dist")
    run("-m", "hatchling", "build", "-t", "wheel", "-d", folder)
    (file,) = folder.iterdir()
    return zipfile.ZipFile(file)


def test_wheel_holds_layouts_and_cutedsl_gemm_alone(wheel):
    names = {Path(name) for name in wheel.namelist() if ".dist-info/" not in name}
    assert {name.parts[0] for name in names} == {"layouts", "cutedsl_gemm"}
    assert {name for name in names if name.suffix == ".py"} == {shipped(file) for file in FILES}


PLAN = "import cutedsl_gemm.kernels.plan.checks as checks; print(checks.__file__)"


def test_docs_list_the_versions_that_the_command_tries():
    with versions.FILE.open(newline="") as file:
        lines = [*csv.DictReader(file)]
    assert {*lines[0], versions.TESTED} == {*versions.COLUMNS}
    assert [line["environment"] for line in lines] == [*map(str, versions.ENVIRONMENTS)]


def test_the_table_of_versions_names_the_extra_that_an_environment_lacks():
    error = "ModuleNotFoundError: cutedsl_gemm.gemm needs torch: pip install 'cutedsl-gemm[gpu]'"
    done = subprocess.CompletedProcess([], 1, "", f"Traceback\n{error}\n")
    assert versions.outcome(done) == "no: needs the gpu extra"


def test_the_table_of_versions_has_a_column_of_tests_if_any_ran(tmp_path, monkeypatch):
    monkeypatch.setattr(versions, "FILE", tmp_path / "versions.csv")
    row = dict.fromkeys(versions.COLUMNS, "yes")
    names = map(str, versions.ENVIRONMENTS)
    versions.write(row | {"environment": next(names), versions.TESTED: versions.NOT_RUN})
    assert versions.TESTED not in versions.FILE.read_text()
    versions.write(row | {"environment": next(names), versions.TESTED: "9 passed"})
    with versions.FILE.open(newline="") as file:
        tests = [line[versions.TESTED] for line in csv.DictReader(file)]
    assert tests == ["not run", "9 passed"]


def test_wheel_imports(wheel, tmp_path):
    wheel.extractall(tmp_path)
    assert run("-c", PLAN, start=tmp_path) == str(tmp_path / "cutedsl_gemm/kernels/plan/checks.py")


ALONE = """
import json, sys
from layouts.draw.summary import words
from layouts.notation.expression import evaluate
for expression in json.load(open(sys.argv[1])):
    try:
        words(evaluate(expression))
    except ValueError as error:
        print(expression.partition("(")[0], str(error).splitlines()[0], sep=": ")
"""


def test_wheel_alone_runs_layouts_and_says_what_to_install(wheel, tmp_path):
    """Without site-packages: no sympy, no numpy, no torch."""
    wheel.extractall(tmp_path)
    calls = tmp_path / "calls.json"
    calls.write_text(json.dumps([f"{name}({given})" for name, given in CALLS.items()]))
    said = dict(
        line.split(": ", 1) for line in run("-S", "-c", ALONE, calls, start=tmp_path).splitlines()
    )
    assert {*said} == {"SwizzleAlignment", "SwizzleInvolution", "make_rmem_tensor"}
    assert all("which is not installed: pip install" in message for message in said.values())
    shown = run("-S", "-m", "layouts", "S<3,3,3> o 0 o (8,64):(64,1)", start=tmp_path)
    assert "proved: S<3,3,3> o 0 o (8,64):(64,1) is injective" in shown


def test_bare_checkout_imports(tmp_path):
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tmp_path / package, symlinks=True)
    file = run("-c", PLAN, start=tmp_path.parent, path=tmp_path)
    assert file == str(tmp_path / "cutedsl_gemm/kernels/plan/checks.py")


def test_a_foreign_package_named_kernels_imports_from_our_root(tmp_path):
    # Hugging Face's, which transformers imports: a kernels/__init__.py of ours would hide it
    theirs = tmp_path / "kernels/__init__.py"
    theirs.parent.mkdir()
    theirs.touch()
    assert run("-c", "import kernels; print(kernels.__file__)", path=tmp_path) == str(theirs)


def test_import_layouts_loads_the_standard_library_alone():
    code = "import sys; before = {*sys.modules}; import layouts; print(*{*sys.modules} - before)"
    loaded = {name.split(".")[0] for name in run("-c", code).split()}
    assert loaded - sys.stdlib_module_names == {"layouts"}


def test_a_name_loads_what_it_needs_alone():
    """A picture needs no proof, and a failed look-up loads nothing."""
    code = "import sys, layouts; hasattr(layouts, 'nope'); layouts.table; print(*sys.modules)"
    loaded = {name for name in run("-c", code).split() if name.startswith("layouts.")}
    assert not {"layouts.proof.prove", "layouts.hardware.synthesis", "layouts.explanation"} & loaded


PRODUCT = """
import sys, cutedsl_gemm, torch
a = torch.ones(8, 8, dtype=torch.float16)
cutedsl_gemm.gemm(a, a, epilogue=lambda acc: acc + 1)
print(*sys.modules)
"""


def test_gemm_loads_neither_the_dsl_nor_torchs_compiler():
    """They take seconds; a kernel on disk needs neither."""
    pytest.importorskip("torch")
    loaded = {*run("-c", PRODUCT).split()}
    assert not {"cutlass", "torch._dynamo", "sympy", "rich", "matplotlib"} & loaded


def test_what_compiles_loads_no_torch():
    """It takes a second, and as many processes compile ahead as there are cores."""
    code = "import sys, cutedsl_gemm.kernels.compile.build; print(*sys.modules)"
    assert not {"torch", "cutlass"} & {*run("-c", code).split()}


@pytest.mark.parametrize("file", FILES, ids=str)
def test_imports_point_down(file):
    package = ".".join(shipped(file).parent.parts)
    for name, deferred in imports(ast.parse((ROOT / file).read_text()), package):
        top = name.split(".")[0]
        assert top != "kernels", f"{name}: its name is cutedsl_gemm.kernels"
        if file.parts[0] == "kernels" and top == "cutedsl_gemm":
            assert f"{name}.".startswith("cutedsl_gemm.kernels."), f"{name} is above kernels"
        if file.parts[0] == "layouts":
            third_party = {"numpy", "sympy"} if deferred else set()
            assert top in {"layouts", *sys.stdlib_module_names, *third_party}, name


#: The packages of layouts: each imports from the lines above its own.
FLOORS = (
    ("errors",),
    ("values",),
    ("algebra",),
    ("notation", "proof"),
    ("hardware",),
    ("tiled",),
    ("explanation",),
    ("draw",),
    ("__init__",),
    ("__main__",),  # the command line, of the package as users see it
)
FLOOR = {package: floor for floor, packages in enumerate(FLOORS) for package in packages}
LAYOUTS = {
    ".".join(file.with_suffix("").parts).removesuffix(".__init__"): file
    for file in FILES
    if file.parts[0] == "layouts"
}


def floor_of(module: str) -> int:
    return FLOOR[module.split(".")[1] if "." in module else "__init__"]


def imported_modules(file: Path) -> Iterator[tuple[str, bool]]:
    """Yield the modules of layouts that a file imports, and whether a call has to come first."""
    package = ".".join(file.parent.parts)
    for name, deferred in imports(ast.parse((ROOT / file).read_text()), package):
        module = name if name in LAYOUTS else name.rpartition(".")[0]
        if module in LAYOUTS:
            yield module, deferred


@pytest.mark.parametrize("module", LAYOUTS)
def test_packages_of_layouts_import_one_way(module):
    for other, deferred in imported_modules(LAYOUTS[module]):
        if deferred and floor_of(other) == FLOOR["draw"]:
            continue  # a method that draws
        if deferred and floor_of(module) == FLOOR["values"]:
            continue  # a method that needs the algebra
        if module == "layouts.notation.expression" and other == "layouts":
            assert deferred  # it looks up the public names
            continue
        same_package = module.split(".")[1:2] == other.split(".")[1:2]
        assert same_package or floor_of(other) < floor_of(module), other


def test_modules_of_layouts_import_in_no_circle():
    graph = {
        module: {other for other, deferred in imported_modules(file) if not deferred}
        for module, file in LAYOUTS.items()
    }
    assert len([*TopologicalSorter(graph).static_order()]) == len(LAYOUTS)


def test_modules_of_cutedsl_gemm_import_in_no_circle():
    """In select, measure and the calls above them; measure is above select."""
    graph: dict[str, set[str]] = {}
    for file in (file for file in FILES if file.parts[0] == "cutedsl_gemm"):
        module = ".".join(file.with_suffix("").parts).removesuffix(".__init__")
        tree, package = ast.parse((ROOT / file).read_text()), ".".join(file.parent.parts)
        names = [*imports(tree, package)]
        if file.parts[1] == "select":
            assert not any(name.startswith("cutedsl_gemm.measure") for name, _ in names), file
        graph[module] = {name.rpartition(".")[0] for name, deferred in names if not deferred}
        graph[module] |= {name for name, deferred in names if not deferred}
    inside = {module: others & graph.keys() - {module} for module, others in graph.items()}
    assert len([*TopologicalSorter(inside).static_order()]) == len(graph) > 20


def imports(node: ast.AST, package: str, deferred: bool = False) -> Iterator[tuple[str, bool]]:
    """Yield the full name of every import, and whether it waits for a call or a type checker."""
    if isinstance(node, ast.Import):
        yield from ((alias.name, deferred) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
        yield from ((f"{base}.{alias.name}", deferred) for alias in node.names)
    else:
        deferred |= isinstance(node, ast.FunctionDef)
        deferred |= isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for child in ast.iter_child_nodes(node):
            yield from imports(child, package, deferred)
