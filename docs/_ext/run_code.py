"""The directive `run`: Python that runs while the site is built, shown with what it prints.

Blocks of one page share their names. Code that raises is an error of the build, with file and line;
with the option `raises`, the sentence of the error is what is shown. Printed lines that are longer
than the page are broken, or, with the option `columns`, scrolled.
"""

from __future__ import annotations

import ast
import io
from contextlib import redirect_stdout
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from sources import depend


class Run(SphinxDirective):
    """A block of code and its output."""

    has_content = True
    option_spec: ClassVar = {"raises": directives.flag, "columns": directives.flag}

    def run(self) -> list[nodes.Node]:
        depend(self.env)
        source = "\n".join(self.content)
        names = self.env.temp_data.setdefault("run_code", {})
        try:
            printed = executed(source, names)
        except Exception as error:
            if "raises" not in self.options:
                raise self.error(f"run: {type(error).__name__}: {error}") from error
            printed = f"{type(error).__name__}: {error}"
        else:
            if "raises" in self.options:
                raise self.error("run: this must raise, and it does not")
        shown = [nodes.literal_block(source, source, language="python")]
        if printed.strip():
            output = nodes.literal_block(printed.rstrip(), printed.rstrip(), language="text")
            output["classes"] += ["output", *(["columns"] if "columns" in self.options else [])]
            shown.append(output)
        return shown


def executed(source: str, names: dict[str, Any]) -> str:
    """What the code prints, and its last expression as a person would print it."""
    tree, printed = ast.parse(source), io.StringIO()
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with redirect_stdout(printed):
        exec(compile(tree, "<page>", "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), "<page>", "eval"), names)
            if value is not None:
                print(value)
    return printed.getvalue()


def setup(app: Sphinx) -> dict[str, bool]:
    """What Sphinx asks of an extension."""
    app.add_directive("run", Run)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
