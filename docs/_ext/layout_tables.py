"""The directive `layout`: an expression, evaluated and drawn while the site is built.

    ```{layout} S<3,3,3> o 0 o (8,64):(64,1)
    :show: bank
    ```

The option `facts` adds size, cosize and injectivity. After `=` comes Python, which knows the names
of the page's code blocks: `= plan.a.smem`. An expression that cannot be evaluated is an error of
the build; the message has the file and the line, and marks the place.
"""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import ClassVar
from urllib.parse import quote

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from figures import drawing, figure
from sources import depend

from layouts.draw import Table
from layouts.draw.html import style_sheet
from layouts.draw.summary import answer, facts, words

MOST = 64  # rows, and columns, of a panel


class LayoutTable(SphinxDirective):
    """A picture of a value, its expression, and a link to the playground."""

    required_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar = {
        "unit": directives.positive_int,
        "banks": directives.positive_int,
        "limit": directives.positive_int,
        "show": lambda word: directives.choice(word, ("offset", "byte", "bank")),
        "facts": directives.flag,
    }

    def run(self) -> list[nodes.Node]:
        depend(self.env)
        expression = " ".join(self.arguments[0].split())
        given = {name: x for name, x in self.options.items() if name != "facts"}
        try:
            if expression.startswith("="):
                expression = str(eval(expression[1:], self.env.temp_data.get("run_code", {})))
            found = answer(expression)
            if not isinstance(found.value, Table):  # which has its own limit
                given.setdefault("limit", MOST)
            table = found.picture(**given)
            wanted = "facts" in self.options and found.layout is not None
            shown = facts(found.layout) if wanted else []
        except Exception as error:  # the page's own Python may raise anything
            raise self.error(f"layout: {error}") from error
        drawn = f"<pre>{escape(words(found.value))}</pre>" if table is None else drawing(table)
        below = "".join(f"<pre>{escape(fact)}</pre>" for fact in shown)
        unit = f"&unit={given['unit']}" if "unit" in given else ""
        playground = f"{self._root()}playground.html#{quote(expression, safe='')}{unit}"
        caption = f'<code>{escape(expression)}</code> <a href="{playground}">try it</a>'
        return [figure(drawn, f"<figcaption>{caption}</figcaption>{below}")]

    def _root(self) -> str:
        """The path from this page to the site's root."""
        return "../" * self.env.docname.count("/")


def write_style(app: Sphinx, error: Exception | None) -> None:
    """Writes the style sheet of the pictures."""
    if error is None and app.builder.format == "html":
        (Path(app.outdir) / "_static" / "layouts.css").write_text(style_sheet())


def setup(app: Sphinx) -> dict[str, bool]:
    """Registers the extension; the site has the script _static/layouts.js."""
    app.add_directive("layout", LayoutTable)
    app.add_css_file("layouts.css")
    app.add_js_file("layouts.js", loading_method="defer")
    app.connect("build-finished", write_style)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
