"""The notebook stores the outputs of its cells, each a picture or text."""

import json
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "docs" / "_ext"))

from notebook import NOTEBOOK, ran


def test_the_stored_outputs_are_up_to_date():
    """To store them anew: python docs/_ext/notebook.py"""
    stored = json.loads(NOTEBOOK.read_text())
    assert ran(stored) == stored
    code = [cell for cell in stored["cells"] if cell["cell_type"] == "code"]
    assert len(code) > 5
    for cell in code:
        (output,) = cell["outputs"]
        assert "<table" in "".join(output.get("data", {}).get("text/html", ())) or output["text"]
