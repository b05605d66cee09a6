"""The reference: for each package a list of names by task, and the details of each task on a page.

The names come from the package, their words from its docstrings.  `TASKS` says only which module,
or which name, belongs to which task; a public name without a task is an error of the build.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from textwrap import fill
from types import ModuleType
from typing import NamedTuple

from sphinx.pycode import ModuleAnalyzer

from page_text import escaped, fenced, paragraphs


class Task(NamedTuple):
    """A page of details: its file, its title, and the modules or names that are on it."""

    page: str
    title: str
    members: str


#: Of each package, in the order of the list.  The longest module that matches takes a name.
TASKS = {
    "layouts": (
        Task("make", "Make a layout", "values NamedLayout named parse"),
        Task("ask", "Ask about shapes, coordinates and sizes", "values.tuples cosize flatten"),
        Task("modes", "Select, group and slice modes", "algebra.rearrange algebra.slice"),
        Task("algebra", "Compose, complement and invert", "algebra"),
        Task("divide", "Divide into tiles", "algebra.divide algebra.partition"),
        Task("product", "Repeat a block", "algebra.product"),
        Task("swizzle", "Swizzle and pad", "values.swizzle hardware.synthesis hardware.padding"),
        Task("units", "Change the unit", "algebra.recast"),
        Task("banks", "Count bank conflicts and sectors", "hardware"),
        Task(
            "instructions",
            "Fragments and descriptors of instructions",
            "hardware.atoms hardware.mfma hardware.descriptor hardware.tensor_memory",
        ),
        Task("tensors", "Tensors, tiled copies and tiled MMAs", "tiled"),
        Task("prove", "Prove and refute", "proof hardware.conflict_free hardware.no_swizzle"),
        Task("show", "Draw and explain", "draw explanation"),
        Task(
            "bits",
            "Layouts as bit matrices, and Triton's linear layouts",
            "gf2 algebra.bit_matrix notation.linear_layout",
        ),
        Task("errors", "Errors, and the limit of a search", "errors budget"),
    ),
    "cutedsl_gemm": (
        Task("gemm", "Multiply, and see the plan", "gemm plan_for explain KERNELS PlanError"),
        Task("layers", "Layers of networks", "layers"),
        Task("models", "Models of torch", "models"),
        Task("gpus", "Several GPUs", "distributed"),
    ),
}


def pages(package: ModuleType) -> dict[str, str]:
    """The list of a package and its pages of details, by file."""
    name = package.__name__
    tasks = by_task(package)
    files = {f"{name}.md": _list(package, tasks)}
    for task, names in tasks.items():
        parts = [f"# {task.title}", *(_details(package, public) for public in names)]
        files[f"{name}/{task.page}.md"] = "\n\n".join(parts) + "\n"
    return files


def addresses(package: ModuleType) -> dict[str, str]:
    """Where the details of each name are, from the folder of the written pages."""
    return {
        public: f"{package.__name__}/{task.page}.html#{_anchor(package, public)}"
        for task, names in by_task(package).items()
        for public in names
    }


def by_task(package: ModuleType) -> dict[Task, list[str]]:
    """The public names of each task, in alphabetic order."""
    tasks: dict[Task, list[str]] = {task: [] for task in TASKS[package.__name__]}
    for public in sorted(package.__all__, key=str.lower):
        if not public.startswith("__"):
            tasks[_task(package, public)].append(public)
    return tasks


def _task(package: ModuleType, public: str) -> Task:
    """The task that names the object, or else the longest part of its module's path."""
    module = _module(package, public).removeprefix(f"{package.__name__}.").split(".")
    places = [public, *(".".join(module[:n]) for n in range(len(module), 0, -1))]
    for place in places:
        for task in TASKS[package.__name__]:
            if place in task.members.split():
                return task
    raise ValueError(f"{package.__name__}.{public} has no task in docs/_ext/reference_pages.py")


def _module(package: ModuleType, public: str) -> str:
    """The module that defines the object, or from which the package loads a constant."""
    value = getattr(package, public)
    if inspect.isclass(value) or inspect.isroutine(value):
        return str(value.__module__)
    if isinstance(value, ModuleType):
        return value.__name__
    lazy: Mapping[str, str] = getattr(package, "_MODULE_OF", {})
    if public in lazy:
        return f"{package.__name__}.{lazy[public]}"
    found = type(value).__module__
    return found if found.startswith(package.__name__) else package.__name__


def _list(package: ModuleType, tasks: dict[Task, list[str]]) -> str:
    """Every name with a line, by task."""
    name = package.__name__
    parts = [f"# Reference: {name}", _first_sentence(inspect.getdoc(package) or "")]
    for task, names in tasks.items():
        parts.append(f"## [{task.title}]({name}/{task.page}.md)")
        lines = (
            f"- {{name}}`{name}.{public}` {_first_sentence(words(package, public))}"
            for public in names
        )
        parts.append("{.names}\n" + "\n".join(lines))
    hidden = "\n".join(f"{name}/{task.page}" for task in tasks)
    parts.append(f"```{{toctree}}\n:hidden:\n\n{hidden}\n```")
    return "\n\n".join(parts) + "\n"


def _anchor(package: ModuleType, public: str) -> str:
    return f"{package.__name__}.{public}"


def _details(package: ModuleType, public: str) -> str:
    """The heading of a name, its signature, its docstring, and its methods with a line each."""
    value = getattr(package, public)
    parts = [f'<span id="{_anchor(package, public)}"></span>', f"## {public}"]
    if inspect.isclass(value) or inspect.isroutine(value):
        parts.append(fenced(signature(public, value), "python"))
    elif not isinstance(value, ModuleType):
        shown = ", ".join(map(str, value)) if isinstance(value, (Mapping, tuple)) else str(value)
        parts.append(fenced(fill(shown, 90, break_on_hyphens=False), "text"))
    parts += paragraphs(words(package, public))
    methods = [*_methods(value)] if inspect.isclass(value) else []
    if methods:
        parts += ["**Methods and properties**", "\n".join(methods)]
    return "\n\n".join(parts)


def words(package: ModuleType, public: str) -> str:
    """The docstring of an object; of a constant, the comment `#:` above it."""
    value = getattr(package, public)
    if inspect.isclass(value) or inspect.isroutine(value) or isinstance(value, ModuleType):
        return inspect.getdoc(value) or ""
    module = _module(package, public)
    return "\n".join(ModuleAnalyzer.for_module(module).find_attr_docs()["", public])


def _methods(value: type) -> Iterator[str]:
    """The public methods and properties that a class defines, as items of a list."""
    for name, member in vars(value).items():
        words = inspect.getdoc(member)
        if name.startswith("_") or not words or not isinstance(member, (property, *_ROUTINES)):
            continue
        call = "" if isinstance(member, property) else _parameters(getattr(value, name))
        yield f"- `{name}{call}`: {_first_sentence(words)}"


_ROUTINES = type(_methods), classmethod, staticmethod


def _first_sentence(words: str) -> str:
    """The first sentence, as Markdown."""
    return escaped(first_sentence(words))


def first_sentence(words: str) -> str:
    """The first sentence of a docstring, on one line."""
    first = " ".join(re.split(r"\n\s*\n", words)[0].split())
    return re.split(r"(?<=\.)\s+(?=[A-Z`(])", first)[0]


def signature(name: str, value: object) -> str:
    """The name and its parameters: on one line if that has at most 90 columns, else a line each."""
    parameters = _parameters(value)
    if len(name + parameters) <= 90:
        return name + parameters
    found = inspect.signature(value)  # type: ignore[arg-type]
    lines = "".join(f"    {_plain(str(each))},\n" for each in _separated(found))
    return f"{name}(\n{lines})" + parameters[parameters.rindex(")") + 1 :]


def _separated(found: inspect.Signature) -> Iterator[object]:
    """The parameters, and `/` and `*` where Python writes them."""
    before = None
    for each in found.parameters.values():
        if before == each.POSITIONAL_ONLY != each.kind:
            yield "/"
        starred = each.VAR_POSITIONAL, each.KEYWORD_ONLY
        if each.kind == each.KEYWORD_ONLY and before not in starred:
            yield "*"
        yield each
        before = each.kind


def _parameters(value: object) -> str:
    """The parameters in parentheses, or nothing if Python does not know them."""
    try:
        found = _plain(str(inspect.signature(value)))  # type: ignore[arg-type]
        return re.sub(r"^\(self(, )?", "(", found).removesuffix(" -> None")
    except (TypeError, ValueError):
        return ""


def _plain(text: str) -> str:
    """Annotations without the quotes of those that are strings."""
    return re.sub(r"""(: |-> )(['"])(.*?)\2""", r"\1\3", text)
