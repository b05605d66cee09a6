"""The directive `puzzle`: a question, a check in Python, and a solution that the build checks.

    ```{puzzle} A row-major layout of 4 rows and 8 columns.
    :check: equivalent(answer, Layout((4, 8), (8, 1)))
    :solution: (4,8):(8,1)
    ```

A solution that the check refuses is an error of the build.
"""

from __future__ import annotations

from html import escape
from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from sources import depend

import layouts
from layouts.expression import evaluate


class Puzzle(SphinxDirective):
    """A question with a box for the answer, and the solution folded away."""

    required_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar = dict.fromkeys(("check", "solution"), directives.unchanged_required)

    def run(self) -> list[nodes.Node]:
        depend(self.env)
        question, check = " ".join(self.arguments[0].split()), self.options["check"]
        solution = self.options["solution"]
        if not eval(check, {**vars(layouts), "answer": evaluate(solution)}):
            raise self.error(f"puzzle: {solution} is no solution by {check}")
        return [
            nodes.raw(
                "",
                f'<div class="puzzle" data-check="{escape(check)}"><p>{escape(question)}</p>'
                '<input type="text" aria-label="answer" placeholder="an expression" '
                'autocapitalize="off" autocomplete="off" spellcheck="false">'
                '<p class="verdict" role="status"></p>'
                f"<details><summary>A solution</summary><code>{escape(solution)}</code></details>"
                "</div>",
                format="html",
            )
        ]


def setup(app: Sphinx) -> dict[str, bool]:
    """What Sphinx asks of an extension."""
    app.add_directive("puzzle", Puzzle)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
