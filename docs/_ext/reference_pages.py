"""The reference: a page of everything that a package exports, from its docstrings."""

from __future__ import annotations

import inspect
import re
from types import ModuleType

from page_text import fenced, paragraphs


def reference(name: str, package: ModuleType) -> str:
    """The page of a package."""
    parts = [f"# {name}", fenced(inspect.getdoc(package) or "", "text")]
    for public in sorted(package.__all__):
        value = getattr(package, public)
        if isinstance(value, ModuleType) or not (inspect.isclass(value) or callable(value)):
            continue
        parts += [f"## {public}", fenced(f"{public}{signature(value)}", "python")]
        parts += paragraphs(inspect.getdoc(value) or "")
    return "\n\n".join(parts) + "\n"


def signature(value: object) -> str:
    """The parameters, or nothing if Python does not know them."""
    try:
        found = str(inspect.signature(value))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return ""
    return re.sub(r"(: |-> )'([^']*)'", r"\1\2", found)  # annotations are strings
