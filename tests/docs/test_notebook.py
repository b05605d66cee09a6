"""The notebook shows what its cells give, each a picture or words."""

import json
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "docs" / "_ext"))

from notebook import NOTEBOOK, ran


def test_the_stored_outputs_are_those_of_the_cells():
    """To store them anew: python docs/_ext/notebook.py"""
    stored = json.loads(NOTEBOOK.read_text())
    assert ran(stored) == stored
    code = [cell for cell in stored["cells"] if cell["cell_type"] == "code"]
    assert len(code) > 5
    for cell in code:
        (output,) = cell["outputs"]
        assert "<table" in "".join(output.get("data", {}).get("text/html", ())) or output["text"]
