"""The directive `puzzle`: a question, conditions in Python, and sample answers to check.

    ```{puzzle} A row-major layout of 4 rows and 8 columns.
    :solution: (4,8):(8,1)
    :wrong: (4,8):(1,4) | 32:1

    rank(answer) == 2 :: it has {rank(answer)} modes, not 2
    answer(0, 1) == 1 :: a step to the right must be one element
    ```

Each line has a condition on `answer`, and the message if it does not hold. The build fails if the
conditions refuse the solution or accept a wrong answer.
"""

from __future__ import annotations

import json
import sys
from html import escape
from pathlib import Path
from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from sources import depend

sys.path.append(str(Path(__file__).parents[1] / "live"))
import answer


class Puzzle(SphinxDirective):
    """A question, a box for the answer, and the solution, hidden until opened."""

    has_content = True
    required_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar = dict.fromkeys(("solution", "wrong"), directives.unchanged_required)

    def run(self) -> list[nodes.Node]:
        depend(self.env)
        question = " ".join(self.arguments[0].split())
        checks = json.dumps([line.split(" :: ") for line in self.content if line.strip()])
        solution = self.options["solution"]
        if not (verdict := json.loads(answer.judge(solution, checks))).get("right"):
            raise self.error(f"puzzle: {solution} is not a solution: {verdict}")
        for wrong in self.options["wrong"].split(" | "):
            if not json.loads(answer.judge(wrong, checks)).get("why"):
                raise self.error(f"puzzle: {wrong} is wrong, and no condition refuses it")
        return [
            nodes.raw(
                "",
                f'<div class="puzzle" data-checks="{escape(checks)}"><p>{escape(question)}</p>'
                '<input type="text" aria-label="answer" placeholder="an expression" '
                'autocapitalize="off" autocomplete="off" spellcheck="false">'
                '<p class="verdict" role="status"></p>'
                f"<details><summary>A solution</summary><code>{escape(solution)}</code></details>"
                "</div>",
                format="html",
            )
        ]


def setup(app: Sphinx) -> dict[str, bool]:
    """Registers the extension."""
    app.add_directive("puzzle", Puzzle)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
