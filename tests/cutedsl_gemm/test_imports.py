"""The packages of cutedsl_gemm, and the modules beside them, import one way."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Each imports only from those before it. An import inside a function may go the other way.
ORDER = (
    *("inputs", "select", "calls", "ops", "explanation", "api"),
    *("layers", "models", "distributed", "measure"),
    *("command_line", "doctor", "__main__"),
)
PACKAGE = ROOT / "cutedsl_gemm"
FILES = [
    path.relative_to(ROOT)
    for path in sorted(PACKAGE.glob("**/*.py"))
    if "kernels" not in path.parts and path != PACKAGE / "__init__.py"
]


@pytest.mark.parametrize("file", FILES, ids=str)
def test_packages_of_cutedsl_gemm_import_one_way(file):
    place = ORDER.index(file.with_suffix("").parts[1])
    for node in ast.parse((ROOT / file).read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.module.startswith("cutedsl_gemm."):
            package = node.module.split(".")[1]
            assert package == "kernels" or ORDER.index(package) <= place, node.module
