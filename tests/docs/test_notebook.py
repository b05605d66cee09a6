"""The notebook runs from top to bottom, and what its cells end with draws itself."""

import ast
import json
from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).parents[2] / "docs" / "layouts.ipynb"


def test_every_cell_runs_and_every_value_draws_itself(capsys):
    names = {}
    cells = [
        "".join(cell["source"])
        for cell in json.loads(NOTEBOOK.read_text())["cells"]
        if cell["cell_type"] == "code"
    ]
    assert len(cells) > 5
    for source in cells:
        tree = ast.parse(source)
        last = tree.body.pop()
        assert isinstance(last, ast.Expr)
        exec(compile(tree, str(NOTEBOOK), "exec"), names)
        value = eval(compile(ast.Expression(last.value), str(NOTEBOOK), "eval"), names)
        if value is None:
            assert capsys.readouterr().out.strip()
        else:
            assert "<table" in value._repr_html_() or pytest.fail(source)
