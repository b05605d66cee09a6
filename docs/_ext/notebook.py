"""`python docs/_ext/notebook.py` runs the notebook and stores the outputs, as Jupyter does."""

from __future__ import annotations

import ast
import io
import json
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "docs" / "layouts.ipynb"


def ran(notebook: dict[str, Any]) -> dict[str, Any]:
    """The notebook with the outputs of its cells, run from top to bottom."""
    names: dict[str, Any] = {}
    cells = []
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            count = 1 + sum("execution_count" in done for done in cells)
            outputs = outputs_of("".join(cell["source"]), names, count)
            cell = {**cell, "execution_count": count, "outputs": outputs}
        cells.append(cell)
    return {**notebook, "cells": cells}


def outputs_of(source: str, names: dict[str, Any], count: int) -> list[dict[str, Any]]:
    """What a cell prints, and the HTML and text of its last expression."""
    tree, printed = ast.parse(source), io.StringIO()
    last = tree.body.pop()
    assert isinstance(last, ast.Expr)
    with redirect_stdout(printed):
        exec(compile(tree, str(NOTEBOOK), "exec"), names)
        value = eval(compile(ast.Expression(last.value), str(NOTEBOOK), "eval"), names)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append(
            {"name": "stdout", "output_type": "stream", "text": lines(printed.getvalue())}
        )
    if value is not None:
        data = {"text/html": lines(value._repr_html_()), "text/plain": lines(repr(value))}
        result = {"data": data, "execution_count": count, "metadata": {}}
        outputs.append({**result, "output_type": "execute_result"})
    return outputs


def lines(text: str) -> list[str]:
    """Text as notebooks store it."""
    return text.splitlines(keepends=True)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))  # the cells import this checkout, not an installed one
    written = json.dumps(ran(json.loads(NOTEBOOK.read_text())), indent=1, ensure_ascii=False)
    NOTEBOOK.write_text(written + "\n")
