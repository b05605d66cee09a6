"""The code of a kernel on its page: what differs from the rung below's, then the rest, folded."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from itertools import groupby

from cutedsl_gemm.kernels.plan.kernel_plan import KernelPlan

from kernel_source import Part, parts
from page_text import fenced, html
from side_by_side import alone, code, side_by_side


def source(plan: KernelPlan, lower: KernelPlan | None) -> Iterator[str]:
    """The code of a plan's kernel, beside that of the rung below."""
    kernel = plan.device_code()
    own = type(kernel).__module__
    here = parts(kernel)
    known = parts(lower.device_code()) if lower else {}
    shown = differing(here, known) if lower else [x for x in here.values() if x.module == own]
    shown.sort(key=lambda part: (part.module != own, ".device." in part.module))
    yield fenced(inspect.getdoc(sys.modules[own]) or "", "text")
    yield how_to_read(lower, shown, known)
    if shown:
        kinds = ("new" if lower and part.name not in known else "" for part in shown)
        pairs = zip(shown, kinds, strict=True)
        yield html("".join(in_page(x, here, known.get(x.name), kind) for x, kind in pairs))
    gone = [part for name, part in known.items() if name not in here]
    if gone and lower:
        title = f"Functions of {lower.name} that this rung does not use"
        yield html(folded(title, gone, {}, {}, "gone"))
    rest = sorted((part for part in here.values() if part not in shown), key=lambda x: x.file)
    if rest:
        yield "The rest of its code, file by file:"
    for file, group in groupby(rest, lambda part: part.file):
        yield html(folded(f"<code>{file}</code>", list(group), here, known))


def differing(here: dict[str, Part], known: dict[str, Part]) -> list[Part]:
    """The parts that the rung below lacks or has with other code; if none, those of other values.

    Of the other values there are many where the tile differs, and the plan above shows them.
    """
    code_differs = [
        part
        for name, part in here.items()
        if name not in known or part.source != known[name].source
    ]
    return code_differs or [
        part for name, part in here.items() if part.values != known[name].values
    ]


def how_to_read(lower: KernelPlan | None, shown: list[Part], known: dict[str, Part]) -> str:
    """What the code below shows."""
    notes = "A note at the end of a line is the value that the plan gives to an expression there."
    if lower is None:
        return notes
    if not shown:
        return (
            f"The code is that of `{lower.name}`, and so is every value that it names: the change "
            "is in what the plan computes."
        )
    if all(part.name in known and part.source == known[part.name].source for part in shown):
        return (
            f"The code is that of `{lower.name}`, line by line. These functions run with other "
            f"values of the plan: a note at the end of a line has that of `{lower.name}`, struck "
            "out, then this rung's."
        )
    return (
        f"Lines that both have stand once. Of the others, those of `{lower.name}` are red, and "
        f"those of this rung are green. {notes}"
    )


def in_page(part: Part, here: dict[str, Part], known: Part | None, kind: str = "") -> str:
    """A function, beside the rung below's; names lead to the parts of `here`.

    `kind` is "new" or "gone" for one that only one of them has.
    """
    links = {
        line: {column: here[name].anchor for column, name in names.items() if name in here}
        for line, names in part.names.items()
    }
    text = code(part.source, part.values, links)
    shown = alone(text) if known is None else side_by_side(code(known.source, known.values), text)
    place = f'<div class="place"><code>{part.name}</code> {part.file} <b>{kind}</b></div>'
    anchor = f' id="{part.anchor}"' if part.name in here else ""
    return f'<div class="part {kind}"{anchor}>{place}{shown}</div>'


def folded(
    title: str,
    members: list[Part],
    here: dict[str, Part],
    known: dict[str, Part],
    kind: str = "",
) -> str:
    """Functions that are shown on demand."""
    names = ", ".join(f"<code>{part.name}</code>" for part in members)
    inside = "".join(in_page(part, here, known.get(part.name), kind) for part in members)
    summary = f"<summary>{title} <small>{names}</small></summary>"
    return f'<details class="code">{summary}{inside}</details>'
