"""The source of a kernel: its methods and the functions that they call, with the plan's values.

It is found from the object that `plan.device_code()` returns, so that a new kernel needs nothing
here. An expression such as `plan.stages` in the code has its value of this plan beside it, and a
name has the place of its definition.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

OURS = "cutedsl_gemm.kernels"
IMPORTS_CUTE = re.compile(r"^(?:import|from) cutlass\b", re.M)
LAYOUTS = "layouts", f"{OURS}.plan.tv_layout"
LONGEST = 110  # characters of a value that is shown

# Both are by line, counted from 0.
Values: TypeAlias = dict[int, dict[str, str]]  # expression → its value
Names: TypeAlias = dict[int, dict[int, str]]  # column → the name of the part that stands there


@dataclass(frozen=True)
class Part:
    """A function of a kernel, or a method: `load_to_smem`, `mainloop`, `TmaPanels.store`."""

    name: str
    module: str
    source: str
    values: Values
    names: Names
    calls: dict[str, str]  # functions of device code that it names → their modules

    @property
    def anchor(self) -> str:
        """Its place in a page."""
        return f"{self.module}.{self.name}".replace(".", "-").replace("_", "-").lower()

    @property
    def file(self) -> str:
        """Its file, from the root of the repository."""
        return path_of(self.module)


def path_of(module: str) -> str:
    """The file of a module of `cutedsl_gemm.kernels`, from the root of the repository."""
    return f"{module.removeprefix('cutedsl_gemm.').replace('.', '/')}.py"


def parts(kernel: Any) -> dict[str, Part]:
    """The methods of a kernel object, those of its base classes, and what they call, by name.

    A method comes from the class that defines it last. Objects of device code that the kernel
    holds, such as the stores of an epilogue, follow it, and functions come after methods.
    """
    holders = [x for x in vars(kernel).values() if _is_device_code(type(x))]
    found: dict[str, Part] = {}
    for holder, prefix in ((kernel, ""), *((x, f"{type(x).__name__}.") for x in holders)):
        for kind in type(holder).__mro__:
            for name, method in _definitions(kind.__module__).items():
                owner, _, own = name.rpartition(".")
                if owner == kind.__name__ and prefix + own not in found:
                    known = {"self": holder}
                    found[prefix + own] = _part(prefix + own, kind.__module__, method, known)
    waiting = list(found.values())
    while waiting:
        for name, module in waiting.pop(0).calls.items():
            if name not in found:
                definition = _definitions(module)[name]
                found[name] = _part(name, module, definition, {"plan": kernel.plan})
                waiting.append(found[name])
    return found


def _is_device_code(thing: Any) -> bool:
    """Whether a class or function is defined in a module of the kernels that imports CuTe."""
    module = getattr(thing, "__module__", None) or ""
    return module.startswith(OURS) and _imports_cute(module)


@cache
def _imports_cute(module: str) -> bool:
    return bool(IMPORTS_CUTE.search(_text(module)))


@cache
def _text(module: str) -> str:
    return Path(inspect.getfile(sys.modules[module])).read_text()


@cache
def _definitions(module: str) -> dict[str, ast.FunctionDef]:
    """The functions and methods that a module of the kernels defines, by qualified name."""
    found: dict[str, ast.FunctionDef] = {}
    for node in ast.parse(_text(module)).body if module.startswith(OURS) else ():
        if isinstance(node, ast.FunctionDef):
            found[node.name] = node
        elif isinstance(node, ast.ClassDef):
            methods = (each for each in node.body if isinstance(each, ast.FunctionDef))
            found.update({f"{node.name}.{method.name}": method for method in methods})
    return found


def _part(name: str, module: str, definition: ast.FunctionDef, known: Mapping[str, Any]) -> Part:
    """The part of a definition; `known` are the objects behind its names "self" or "plan"."""
    first = min(node.lineno for node in (definition, *definition.decorator_list))
    lines = _text(module).splitlines()[first - 1 : definition.end_lineno]
    taken = {argument.arg for argument in definition.args.args}
    known = {name: value for name, value in known.items() if name in taken}
    values: Values = {}
    for line, expression, value in _values(definition, dict(known)):
        if not any(expression in each for each in values.values()):
            values.setdefault(line - first, {})[expression] = value
    bound, names, calls = _bound(definition), Names(), dict[str, str]()
    for node in _references(definition):
        function = _function(node, module, bound)
        called = _method(node, known.get("self")) if function is None else function.__qualname__
        if function is not None:
            calls[called] = function.__module__
        if called is not None:
            line, end = node.end_lineno - first, node.end_col_offset
            start = len(lines[line].encode()[:end].decode()) - len(called.rpartition(".")[2])
            names.setdefault(line, {})[start - definition.col_offset] = called
    source = inspect.cleandoc("\n" + "\n".join(lines))
    return Part(name, module, source, values, names, calls)


def _method(node: ast.AST, holder: Any) -> str | None:
    """The part that `self.load` or `self.panels.store` names, in a method of `holder`."""
    if holder is None or not isinstance(node, ast.Attribute):
        return None
    owner = _value(node.value, {"self": holder})
    if not (_is_device_code(type(owner)) and inspect.isroutine(getattr(owner, node.attr, None))):
        return None
    return node.attr if owner is holder else f"{type(owner).__name__}.{node.attr}"


@cache  # a definition belongs to many kernels
def _references(definition: ast.FunctionDef) -> tuple[ast.Name | ast.Attribute, ...]:
    """The names and attributes in a function."""
    every = ast.walk(definition)
    return tuple(node for node in every if isinstance(node, ast.Name | ast.Attribute))


@cache
def _bound(definition: ast.FunctionDef) -> frozenset[str]:
    """The names that a function gives to its own values."""
    stored = (each for each in _references(definition) if isinstance(each.ctx, ast.Store))
    return frozenset(
        (
            *(node.arg for node in ast.walk(definition) if isinstance(node, ast.arg)),
            *(each.id for each in stored if isinstance(each, ast.Name)),
        )
    )


def _function(node: ast.AST, module: str, bound: frozenset[str]) -> Any:
    """The function of device code that a name stands for: `load_to_smem`, `lower.layout`."""
    names, found = vars(sys.modules[module]), None
    if isinstance(node, ast.Name) and node.id not in bound:
        found = names.get(node.id)
    elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        holder = names.get(node.value.id)
        found = getattr(holder, node.attr, None) if isinstance(holder, ModuleType) else None
    known = inspect.isfunction(found) and _is_device_code(found)
    return found if known and found.__qualname__ in _definitions(found.__module__) else None


def _values(node: ast.AST, names: dict[str, Any]) -> Iterator[tuple[int, str, str]]:
    """(line, expression, value) of each attribute that the plan decides, in the code's order.

    `names` have the objects that are known so far; assignments in the code add to them.
    """
    if isinstance(node, ast.Assign):
        yield from _values(node.value, names)
        for target in node.targets:
            _bind(target, node.value, names)
    elif isinstance(node, ast.Attribute):
        value = _value(node, names)
        if value is None:
            yield from _values(node.value, names)
        elif (shown := _shown(value)) is not None:
            yield node.lineno, ast.unparse(node).removeprefix("self."), shown
    else:
        for child in ast.iter_child_nodes(node):
            yield from _values(child, names)


def _bind(target: ast.AST, value: ast.AST, names: dict[str, Any]) -> None:
    """Give the names of an assignment their values, where the plan decides them."""
    if isinstance(target, ast.Name):
        names[target.id] = _value(value, names)
    elif isinstance(target, ast.Tuple):
        unknown = [ast.Constant(None)] * len(target.elts)
        given = value.elts if isinstance(value, ast.Tuple) else unknown
        for each, one in zip(target.elts, given, strict=True):
            _bind(each, one, names)


def _value(node: ast.AST, names: Mapping[str, Any]) -> Any:
    """The value of a name or of its attributes; None if the plan does not decide it."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute):
        return getattr(_value(node.value, names), node.attr, None)
    return None


def _shown(value: Any) -> str | None:
    """A number, a word, a layout or a tuple of these as text; None for what would not help."""
    if isinstance(value, tuple):
        each = [_shown(one) for one in value]
        text = None if None in each else f"({', '.join(map(str, each))}{',' * (len(each) == 1)})"
    elif isinstance(value, int | str) or type(value).__module__.startswith(LAYOUTS):
        text = str(value)
    else:
        text = None
    return text if text is not None and len(text) <= LONGEST and "\n" not in text else None
