"""Each operation's example, from its docstring, in the language of expressions.

print(composition(Layout((6, 2), (8, 2)), tile))    composition((6,2):(8,2), (4,3):(3,1))
"""

from __future__ import annotations

import ast
import doctest
import inspect
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

from layouts import Layout, LayoutError, Swizzle
from layouts.draw.summary import words
from layouts.notation.expression import evaluate, operations
from layouts.values.tuples import is_int, leaves

SIGNS = {ast.Mult: "*", ast.MatMult: "@", ast.Add: "+"}


@lru_cache(maxsize=1)
def examples() -> dict[str, str]:
    """For each operation an example: of its own docstring, or else of another's that calls it."""
    calls = {name: [*calls_of(value)] for name, value in operations().items()}
    every = [text for found in calls.values() for text in found]
    first = {
        name: next((text for text in [*own, *every] if is_call_of(name, text)), "")
        for name, own in calls.items()
    }
    return {name: text for name, text in first.items() if text}


def calls_of(value: object) -> Iterator[str]:
    """The calls in the examples of a docstring, each before those that are part of it."""
    known: dict[str, str] = {}  # a variable of the docstring → its value
    for statement in statements(inspect.getdoc(value) or ""):
        for node in ast.walk(statement):
            if text := written(node, known) if isinstance(node, ast.Call) else "":
                yield text
        if isinstance(statement, ast.Assign):
            for target, assigned in pairs(statement.targets[0], statement.value):
                if text := written(assigned, known):
                    known[target] = text


def is_call_of(name: str, text: str) -> bool:
    """Whether an expression calls an operation, and has a value."""
    return bool(re.search(rf"\b{name}\(", text)) and is_defined(text)


def statements(docstring: str) -> Iterator[ast.stmt]:
    """The statements of the examples of a docstring."""
    for found in doctest.DocTestParser().get_examples(docstring):
        yield from ast.parse(found.source).body


def pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """The variables of an assignment, each with its value."""
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        for one, its in zip(target.elts, value.elts, strict=False):
            yield from pairs(one, its)


def written(node: ast.expr, known: Mapping[str, str]) -> str:
    """A Python expression in the language of expressions, or nothing if it has no such form."""
    parts: list[str] = []
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, str, type(None))):
        quoted = f'"{node.value}"' if isinstance(node.value, str) else str(node.value)
        return "_" if node.value is None else quoted
    if isinstance(node, ast.Name):
        return known.get(node.id, node.id if node.id in operations() else "")
    if isinstance(node, (ast.Tuple, ast.List)):
        parts = [written(entry, known) for entry in node.elts]
        return f"({','.join(parts)}{',' * (len(parts) == 1)})" if all(parts) else ""
    if isinstance(node, ast.BinOp) and type(node.op) in SIGNS:
        parts = [written(node.left, known), written(node.right, known)]
        return f" {SIGNS[type(node.op)]} ".join(parts) if all(parts) else ""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return ""
    parts = [written(argument, known) for argument in node.args]
    given = [(str(one.arg), written(one.value, known)) for one in node.keywords]
    if node.func.id not in operations() or not all([*parts, *(text for _, text in given)]):
        return ""
    arguments = [*parts, *(f"{keyword}={text}" for keyword, text in given)]
    return printed(f"{node.func.id}({', '.join(arguments)})")


def printed(call: str) -> str:
    """A call that makes a layout or a swizzle of integers as that prints; others as they are."""
    if not call.startswith(("Layout(", "Swizzle(")):
        return call
    try:
        value = evaluate(call)
    except LayoutError:
        return call
    plain = isinstance(value, Swizzle) or (
        isinstance(value, Layout) and all(map(is_int, leaves((value.shape, value.stride))))
    )
    return words(value) if plain else call


def is_defined(expression: str) -> bool:
    """Whether an expression has a value, without an error."""
    try:
        evaluate(expression)
    except Exception:
        return False
    return True
