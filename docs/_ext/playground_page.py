"""The page of the playground: its first answer, the instructions, and the list of operations."""

from __future__ import annotations

import inspect
import re
from html import escape

import answer
import layouts
from layouts.notation.expression import operations

from expression_examples import examples
from reference_pages import addresses, by_task, first_sentence, words

FIRST = "S<3,3,3> o 0 o (8,64):(64,1)", "ldmatrix.x4"  # an expression and an access


def playground(template: str) -> str:
    """The page: its template with what the library computes."""
    expression, access = FIRST
    shown = answer.show(expression, access)
    parts = {
        "first expression": escape(expression),
        "accesses": "".join(map(option, layouts.INSTRUCTIONS)),
        "first answer": shown.replace("</", r"<\/"),
        "operations": listed(),
    }
    for name, text in parts.items():
        mark = f"<!-- {name} -->"
        assert template.count(mark) == 1, mark
        template = template.replace(mark, text)
    return template


def option(access: str) -> str:
    """An access of the list of accesses."""
    return f"<option{' selected' * (access == FIRST[1])}>{access}</option>"


def listed() -> str:
    """The operations by task, each with its line, its example and a link to its details."""
    address = addresses(layouts)
    offered = {*examples(), *filter(str.islower, operations())}  # no classes of results
    parts = []
    for task, names in by_task(layouts).items():
        items = [item(name, address[name]) for name in names if name in offered]
        if items:
            parts.append(
                f"<section><h2>{escape(task.title)}</h2><dl>{''.join(items)}</dl></section>"
            )
    return "".join(parts)


def item(name: str, address: str) -> str:
    """An operation: `data-call` is its signature without the types."""
    line = code(first_sentence(words(layouts, name)))
    text = escape(examples().get(name, ""))
    example = f"<button type=button data-example>{text}</button>" if text else ""
    return (
        f'<div data-operation="{name}" data-call="{escape(parameters(name))}">'
        f'<dt><a href="written/{address}">{name}</a></dt><dd><p>{line}</p>{example}</dd></div>'
    )


def parameters(name: str) -> str:
    """The call of an operation, without the types: `table(layout, unit=None)`."""
    found = inspect.signature(operations()[name]).parameters.values()
    return f"{name}({', '.join(str(each.replace(annotation=each.empty)) for each in found)})"


def code(line: str) -> str:
    """A line of a docstring as HTML: what is in backticks is code."""
    return re.sub(r"``?([^`]+)``?", r"<code>\1</code>", escape(line, quote=False))
