"""The directive `puzzle`: a question, conditions in Python, and sample answers to check.

    ~~~{puzzle} A row-major layout of 4 rows and 8 columns.
    :hint: A layout is written `shape:stride`.
    :solution: (4,8):(8,1)
    :why: A step down is a whole row.
    :wrong: (4,8):(1,4) | 32:1

    rank(answer) == 2 :: it has {rank(answer)} modes, not 2
    answer(0, 1) == 1 :: a step to the right must be one element
    ~~~

Each line has a condition on `answer`, and the message if it does not hold. The build fails if the
conditions refuse the solution or accept a wrong answer. The puzzles of a page are numbered. The
option `shown`, in Python too, makes the table that is shown of an answer.
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

from figures import figure
from sources import depend

sys.path.append(str(Path(__file__).parents[1] / "live"))
import answer

BOX = (
    '<input type="text" aria-label="answer" placeholder="an expression" '
    'autocapitalize="off" autocomplete="off" spellcheck="false">'
    '<p class="verdict" role="status"></p><figure class="layout"><div class="drawn"></div></figure>'
)


class Puzzle(SphinxDirective):
    """A question, a box for the answer, and a hint and the solution, hidden until opened."""

    has_content = True
    required_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar = dict.fromkeys(
        ("hint", "solution", "why", "wrong", "shown"), directives.unchanged_required
    )

    def run(self) -> list[nodes.Node]:
        depend(self.env)
        checks = json.dumps([line.split(" :: ") for line in self.content if line.strip()])
        solution = self.options["solution"]
        self.check(checks, solution)
        number = self.env.temp_data["puzzles"] = self.env.temp_data.get("puzzles", 0) + 1
        shown = self.options.get("shown", "")
        data = f'data-checks="{escape(checks)}" data-shown="{escape(shown)}"'
        return [
            html(f'<div class="puzzle" {data}>'),
            self.sentences(f"{number}. {' '.join(self.arguments[0].split())}"),
            html(BOX),
            *folded("Hint", self.sentences(self.options["hint"])),
            *folded(
                "A solution",
                html(f"<p><code>{escape(solution)}</code></p>"),
                self.sentences(self.options["why"]),
                figure(answer.drawn(answer.ask(solution), shown)),
            ),
            html("</div>"),
        ]

    def check(self, checks: str, solution: str) -> None:
        """Raises an error of the build unless the conditions tell right from wrong."""
        if not (verdict := json.loads(answer.judge(solution, checks))).get("right"):
            raise self.error(f"puzzle: {solution} is not a solution: {verdict}")
        for wrong in self.options["wrong"].split(" | "):
            if not json.loads(answer.judge(wrong, checks)).get("why"):
                raise self.error(f"puzzle: {wrong} is wrong, and no condition refuses it")

    def sentences(self, text: str) -> nodes.paragraph:
        """A paragraph with the page's own markup."""
        return nodes.paragraph("", "", *self.parse_inline(text, lineno=self.lineno)[0])


def html(text: str) -> nodes.raw:
    """HTML as it is."""
    return nodes.raw("", text, format="html")


def folded(summary: str, *body: nodes.Node) -> list[nodes.Node]:
    """Nodes that are hidden until the reader opens them."""
    return [html(f"<details><summary>{summary}</summary>"), *body, html("</details>")]


def setup(app: Sphinx) -> dict[str, bool]:
    """Registers the extension."""
    app.add_directive("puzzle", Puzzle)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
