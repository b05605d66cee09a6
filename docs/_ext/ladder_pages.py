"""The ladder: a page for each kernel of the registry, and the page that lists them.

A rung's page shows what it changes of the rung below: its recipe, its plan and its code, side by
side. All of it is found from the registry and from the plan's own classes.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from functools import cache
from html import escape
from itertools import groupby
from typing import Any

import torch
from cutedsl_gemm.kernels.plan.kernel_plan import KernelPlan
from cutedsl_gemm.measure.hierarchy import hierarchy_of
from cutedsl_gemm.measure.ladder import ROW_MAJOR, SIZES, markdown, measured_dtype
from cutedsl_gemm.measure.providers import CUBLAS
from cutedsl_gemm.measure.report import OURS, read
from cutedsl_gemm.measure.report import markdown as over_shapes
from cutedsl_gemm.inputs.problem import Matrix, Problem
from cutedsl_gemm.explanation import explain
from cutedsl_gemm.select.registry import DEFAULT, KERNELS, Kernel

import ladder_results
from figures import drawing
from kernel_code import source
from kernel_source import path_of
from page_text import fenced, html, paragraphs
from side_by_side import alone, plain, side_by_side

PAGE = "../performance/README.md"  # from the ladder's page; one folder more from a rung's
# The kernels that bench measures, by the names that it gives them.
BENCHED = {"sm90": OURS, "sm90_pingpong": f"{OURS} 128×128"}
FAMILIES = {
    "simt": "without tensor cores",
    "sm70": "Volta's mma.m8n8k4",
    "sm80": "Ampere's ldmatrix, cp.async and mma.m16n8k16",
    "sm90": "Hopper's TMA and wgmma",
}


def ladder() -> str:
    """The page that lists the kernels, with what each gains and the picture of tiling."""
    hierarchy = hierarchy_of()
    kernels = "\n".join(f"rungs/{name}" for name in KERNELS)
    sections = [
        family(name, list(group))
        for name, group in groupby(KERNELS.values(), lambda kernel: kernel.family)
    ]
    drawn = f'<div class="drawn">{drawing(hierarchy.picture())}</div>'
    parts = (
        "# The ladder",
        "The kernels go from a naive SGEMM to Hopper's pingpong kernel, and each adds one idea to "
        "the one below it. A bar is a rung's speed in TFLOP/s: grey is what the rung below "
        "reaches, green is what the idea gains, and red is what it loses. The small figure is "
        "the speed-up over the rung below. The mark on each bar is torch.mm, which is cuBLAS. "
        "The page of a rung shows its code and its plan beside those of the rung below.",
        "```{toctree}\n:hidden:\n:maxdepth: 1\n\n" + kernels + "\n```",
        *sections,
        "## Block, warp, thread",
        "Blocks divide C into tiles, warps divide the tile of a block, and threads divide the tile "
        "of a warp:",
        fenced(hierarchy.explain(), "text"),
        html(f'<figure class="layout">{drawn}</figure>'),
    )
    return "\n\n".join(parts) + "\n"


def family(name: str, kernels: list[Kernel]) -> str:
    """The section of a family: its bars, then the same figures as a table."""
    found = [f"## {name}: {FAMILIES.get(name, 'its kernels')}"]
    rows = ladder_results.measured().get(name)
    if rows is None:
        return "\n\n".join((*found, "Not measured yet."))
    ideas = {kernel.name: in_html(headline(kernel)) for kernel in kernels}
    return "\n\n".join(
        (
            *found,
            ladder_results.protocol(rows[0], PAGE),
            html(ladder_results.bars(rows, ideas, "rungs/")),
            markdown(rows),
        )
    )


def rung(kernel: Kernel) -> str:
    """The page of a kernel: its idea, results, plan, code, and shared-memory layouts."""
    plan, lower = plan_of(kernel), below(kernel)
    lower_plan = plan_of(lower) if lower else None
    own = plan.name == kernel.name  # the default has no code of its own
    dtypes = " or ".join(str(each).removeprefix("torch.") for each in kernel.requirements.dtypes)
    page = [
        "---\nhide-toc: true\n---",
        f"# {kernel.name}",
        *idea(kernel),
        f"Call it by `gemm(a, b, kernel={kernel.name!r})`, with {dtypes} elements.",
        *recipe(kernel),
        "## Results",
        *results(kernel),
        f"## The plan{beside(lower)}" if own else "## The choice",
        f"{chosen(kernel)} {shape(kernel)}:",
        html(differences(lower_plan, plan) if own else alone(plain(choice(kernel)))),
        *memory(plan, lower_plan),
        *((f"## The kernel{beside(lower)}", *source(plan, lower_plan)) if own else ()),
        *buffers(plan, measured_dtype(kernel)),
    ]
    return "\n\n".join(page) + "\n"


def in_html(words: str) -> str:
    """A sentence of a docstring as HTML."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(words))


def below(kernel: Kernel) -> Kernel | None:
    """The rung below in its family; the default, a choice among the others, has none."""
    names = [each.name for each in KERNELS.values() if each.family == kernel.family]
    place = names.index(kernel.name)
    return KERNELS[names[place - 1]] if place and kernel.name != DEFAULT else None


def beside(lower: Kernel | None) -> str:
    """The end of a heading."""
    return f", beside that of {lower.name}" if lower else ""


@cache
def plan_of(kernel: Kernel) -> Any:
    """The plan for the shape, the majors and the tile with which the ladder measured the kernel."""
    return kernel.plan(Problem(*matrices(kernel), measured_dtype(kernel)), measured_tile(kernel))


def chosen(kernel: Kernel) -> str:
    """The words before its shape: the model chooses fields of a Hopper plan, and may change."""
    return "The plan chosen today for" if kernel.family == "sm90" else "For"


def matrices(kernel: Kernel) -> Iterator[Matrix]:
    """A and B of that shape, with these majors."""
    size = SIZES[kernel.family]
    for row_major in ROW_MAJOR[kernel.family]:
        yield Matrix((size, size), (size, 1) if row_major else (1, size))


def measured_tile(kernel: Kernel) -> Any:
    """The tile that the ladder measured; None if it did not, or if the kernel is a choice."""
    row = ladder_results.of(kernel.name)
    return tuple(map(int, row.tile.split("×"))) if row and kernel.name != DEFAULT else None


def shape(kernel: Kernel) -> str:
    """That shape, type and majors in words."""
    a, b = ("row" if row_major else "column" for row_major in ROW_MAJOR[kernel.family])
    return f"{SIZES[kernel.family]}³ in {measured_dtype(kernel)}, {a}-major A × {b}-major B"


def headline(kernel: Kernel) -> str:
    """Its idea: the sentence after "New:", or the first."""
    text = " ".join((inspect.getdoc(kernel.maker) or "").split())
    found = re.search(r"New: (.*?)\. ", f"{text} ") or re.match(r"(.*?)\. ", f"{text} ")
    return found[1] if found else ""


def idea(kernel: Kernel) -> Iterator[str]:
    """The docstring of the plan's maker, without its examples; "New", "Gains", "Costs" in bold."""
    for paragraph in paragraphs(inspect.getdoc(kernel.maker) or ""):
        if "pycon" not in paragraph:
            labelled = re.sub(r"(?:^|\s)(New|Gains|Costs):", r"\n\n**\1:**", paragraph)
            yield labelled.strip()
    plan = plan_of(kernel)
    if plan.name != kernel.name:
        yield f"For the shape below it chooses [{plan.name}]({plan.name}.md)."


def recipe(kernel: Kernel) -> Iterator[str]:
    """The code that changes the rung below's recipe, if the kernel is made by a recipe."""
    function = getattr(kernel.maker, "__wrapped__", None)
    if function is None:
        return
    (definition,) = ast.parse(inspect.getsource(function)).body
    assert isinstance(definition, ast.FunctionDef)
    lines = inspect.getsource(function).splitlines()[definition.body[1].lineno - 1 :]
    file = path_of(function.__module__)
    yield f"All that it changes, in `{file}`:" if below(kernel) else f"Its recipe, in `{file}`:"
    yield fenced(inspect.cleandoc("\n" + "\n".join(lines)), "python")


def choice(kernel: Kernel) -> str:
    """The candidates, the bounds and the plan that the model chooses."""
    dtype = kernel.requirements.dtypes[0]
    a, b = (
        torch.empty_strided(each.shape, each.stride, dtype=dtype, device="meta")
        for each in matrices(kernel)
    )
    return explain(a, b)


def differences(lower: KernelPlan | None, plan: KernelPlan) -> str:
    """The plan as text, beside that of the rung below."""
    here = plain(plan.explain())
    return side_by_side(plain(lower.explain()), here) if lower else alone(here)


def memory(plan: KernelPlan, lower: KernelPlan | None) -> Iterator[str]:
    """The memory report of the plan, if its family has one, beside that of the rung below."""
    report, known = plan.memory_report(), lower.memory_report() if lower else None
    if report is not None:
        here = plain(str(report))
        yield "Memory accesses, computed from the layouts:"
        yield html(side_by_side(plain(str(known)), here) if known else alone(here))


def results(kernel: Kernel) -> Iterator[str]:
    """The kernel among its family, or its rows of the tables that bench wrote."""
    page, row = f"../{PAGE}", ladder_results.of(kernel.name)
    if row is None:
        yield "Not measured yet."
        return
    rows = ladder_results.measured()[row.family]
    yield sentence(kernel, rows)
    reason = ladder_results.reasons().get(kernel.name)
    if reason:
        yield reason
    yield html(ladder_results.bars(rows, {}, "", kernel.name))
    yield ladder_results.protocol(row, page)
    if kernel.name in BENCHED:
        yield (
            f"In bench, it is `{BENCHED[kernel.name]}`, in bfloat16, row-major A × column-major B, "
            f"TFLOP/s in bursts ([protocol]({page}#data-and-method)):"
        )
        for name in ("sweep", "squares"):
            whole = over_shapes(read(ladder_results.PERFORMANCE / f"{name}.csv")).splitlines()
            kept = (CUBLAS, BENCHED[kernel.name])
            yield "\n".join([*whole[:2], *(x for x in whole if x.split(" | ")[0][2:] in kept)])


def sentence(kernel: Kernel, rows: Any) -> str:
    """Its speed, and over what."""
    by_name, lower = {row.name: row for row in rows}, below(kernel)
    row, reference, first = by_name[kernel.name], rows[0], rows[1]
    parts = [f"**{row.tflops:.3g} TFLOP/s** at {row.setting}, with the tile {row.tile}"]
    if lower:
        parts.append(f"{row.speed_over(by_name[lower.name]):.2f} × `{lower.name}`, the rung below")
    if first.name not in (row.name, lower.name if lower else ""):
        parts.append(f"{row.speed_over(first):.2f} × `{first.name}`, the first of the family")
    parts.append(f"{100 * row.speed_over(reference):.3g} % of torch.mm")
    today = "×".join(map(str, plan_of(kernel).tile))
    other = f" Today it chooses the tile {today} there." if today != row.tile else ""
    return "; ".join(parts) + "." + other


def buffers(plan: Any, dtype: str) -> Iterator[str]:
    """The first rows and columns of each buffer in shared memory."""
    found = getattr(plan, "buffers", None)
    if found is None:  # the older families have the tiles of A and B
        stages = {"A": getattr(plan, "a", None), "B": getattr(plan, "b", None)}
        found = {name: stage.smem for name, stage in stages.items() if stage is not None}
    for name, buffer in found.items():
        unit = getattr(buffer, "unit", None) or (32 if dtype == "float32" else 16)
        yield f"## {name} in shared memory"
        yield f"```{{layout}} {buffer}\n:unit: {unit}\n:limit: 16\n```"
