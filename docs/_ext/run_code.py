"""The directive `run`: Python that runs while the site is built, shown with its output.

Blocks of one page share their names. A last expression that can draw itself, such as a table, a
timeline or a plot, is drawn; any other is printed. Code that raises is an error of the build, with
file and line; with the option `raises` it must raise, and the page shows the error. Long lines of
output wrap; with the option `columns` they stay whole.
"""

from __future__ import annotations

import ast
import io
import linecache
from contextlib import redirect_stdout
from typing import Any, ClassVar

import matplotlib as mpl
from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from figures import can_draw, drawing, figure
from plots import STYLE
from sources import depend

PAGE = "<page>"  # the file of a block, in messages


class Run(SphinxDirective):
    """A block of code and its output."""

    has_content = True
    option_spec: ClassVar = {"raises": directives.flag, "columns": directives.flag}

    def run(self) -> list[nodes.Node]:
        depend(self.env)
        source = "\n".join(self.content)
        names = self.env.temp_data.setdefault("run_code", {})
        value = None
        try:
            with mpl.rc_context(STYLE):
                printed, value = executed(source, names)
        except Exception as error:
            if "raises" not in self.options:
                raise self.error(f"run: {type(error).__name__}: {error}") from error
            printed = f"{type(error).__name__}: {error}"
        else:
            if "raises" in self.options:
                raise self.error("run: this must raise, and it does not")
        blocks = [nodes.literal_block(source, source, language="python")]
        if printed.strip():
            output = nodes.literal_block(printed.rstrip(), printed.rstrip(), language="text")
            output["classes"] += ["output", *(["columns"] if "columns" in self.options else [])]
            blocks.append(output)
        if can_draw(value):
            blocks.append(figure(drawing(value)))
        return blocks


def executed(source: str, names: dict[str, Any]) -> tuple[str, Any]:
    """What the code prints, and its last expression, printed if it cannot draw itself."""
    tree, printed = ast.parse(source), io.StringIO()
    linecache.cache[PAGE] = len(source), None, source.splitlines(), PAGE  # messages quote lines
    value = None
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with redirect_stdout(printed):
        exec(compile(tree, PAGE, "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), PAGE, "eval"), names)
            if value is not None and not can_draw(value):
                print(value)
    return printed.getvalue(), value


def setup(app: Sphinx) -> dict[str, bool]:
    """Registers the extension."""
    app.add_directive("run", Run)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
