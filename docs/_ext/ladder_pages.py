"""The ladder: a page for each kernel of the registry, and the page that lists them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cutedsl_gemm.kernels.plan.kernel_plan import KernelPlan
from cutedsl_gemm.measure.hierarchy import hierarchy_of
from cutedsl_gemm.measure.ladder import ROW_MAJOR, SIZES
from cutedsl_gemm.measure.providers import CUBLAS
from cutedsl_gemm.measure.report import OURS, markdown, read
from cutedsl_gemm.problem import Matrix, Problem
from cutedsl_gemm.select.registry import DEFAULT, KERNELS, Kernel

from page_text import fenced, paragraphs

# The kernels that bench measures, by the names that it gives them.
BENCHED = {"sm90": OURS, "sm90_pingpong": f"{OURS} 128×128"}
RESULTS = Path(__file__).parents[1] / "performance" / "README.md"


def ladder() -> str:
    """The page that lists the kernels, with the picture of tiling."""
    hierarchy = hierarchy_of()
    kernels = "\n".join(f"rungs/{name}" for name in KERNELS)
    parts = (
        "# The ladder",
        "The kernels go from a naive SGEMM to Hopper's pingpong kernel; each adds one idea. "
        "`python -m cutedsl_gemm ladder` measures all of them. The results are on the page "
        "[Performance](../performance/README.md).",
        "## Block, warp, thread",
        "Blocks divide C into tiles, warps divide the tile of a block, and threads divide the tile "
        "of a warp:",
        fenced(hierarchy.explain(), "text"),
        '````{raw} html\n<figure class="layout"><div class="drawn">'
        f"{hierarchy.picture().svg()}</div></figure>\n````",
        "## The kernels",
        f"```{{toctree}}\n:maxdepth: 1\n\n{kernels}\n```",
    )
    return "\n\n".join(parts) + "\n"


def rung(kernel: Kernel) -> str:
    """The page of a kernel: its idea, device code, plan, results, and shared-memory layouts."""
    dtype, plan = dtype_of(kernel), plan_of(kernel)
    device = inspect.getmodule(type(plan.device_code()))
    assert device is not None
    file = Path(inspect.getfile(device))
    lines = len(file.read_text().splitlines())
    parts = [
        f"# {kernel.name}",
        *idea(kernel),
        fenced(inspect.getdoc(device) or "", "text"),
        f"Device code: `{'/'.join(file.parts[-3:])}`, {lines} lines. "
        f"`gemm(a, b, kernel={kernel.name!r})` takes {dtype}.",
        "## Plan",
        f"For {shape(kernel)}:",
        fenced(plan.explain(), "text"),
        *changes(kernel, plan),
        *memory(plan),
        "## Results",
        *results(kernel),
        *buffers(plan, dtype),
    ]
    return "\n\n".join(parts) + "\n"


def dtype_of(kernel: Kernel) -> str:
    """The element type with which the ladder measures the kernel."""
    return str(kernel.requirements.dtypes[0]).removeprefix("torch.")


def plan_of(kernel: Kernel) -> Any:
    """The plan for the shape and majors with which the ladder measures the kernel."""
    size = SIZES[kernel.family]
    a, b = (
        Matrix((size, size), (size, 1) if row_major else (1, size))
        for row_major in ROW_MAJOR[kernel.family]
    )
    return kernel.plan(Problem(a, b, dtype_of(kernel)), None)


def shape(kernel: Kernel) -> str:
    """That shape, type and majors in words."""
    a, b = ("row" if row_major else "column" for row_major in ROW_MAJOR[kernel.family])
    return f"{SIZES[kernel.family]}³ in {dtype_of(kernel)}, {a}-major A × {b}-major B"


def idea(kernel: Kernel) -> Iterator[str]:
    """The docstring of the plan's maker, without its examples."""
    for paragraph in paragraphs(inspect.getdoc(kernel.maker) or ""):
        if "pycon" not in paragraph:
            yield paragraph
    if kernel.name == DEFAULT:
        yield "For the shape below it chooses this kernel:"


def changes(kernel: Kernel, plan: Any) -> Iterator[str]:
    """The lines of the plan that the previous rung does not have."""
    names = [rung.name for rung in KERNELS.values() if rung.family == kernel.family]
    place = names.index(kernel.name)
    if place and kernel.name != DEFAULT:  # the default is one of the kernels before it
        previous = KERNELS[names[place - 1]]
        known = plan_of(previous).explain().splitlines()
        new = [line for line in plan.explain().splitlines() if line not in known]
        yield f"Lines that differ from `{previous.name}`:"
        yield fenced("\n".join(new), "text")


def memory(plan: KernelPlan) -> Iterator[str]:
    """The memory report of the plan, if its family has one."""
    report = plan.memory_report()
    if report is not None:
        yield "Memory accesses, computed from the layouts:"
        yield fenced(str(report), "text")


def results(kernel: Kernel) -> Iterator[str]:
    """The kernel's row of the ladder in docs/performance, or of the tables that bench wrote."""
    text = RESULTS.read_text()
    rows = re.findall(rf"^\| {kernel.name}(?: .*?)? \|.*$", text, re.M)
    head = re.search(r"^\| kernel \|.*\n\|.*$", text, re.M)
    page = "[Performance](../../performance/README.md)"
    if rows and head:
        yield f"On an H100, at {shape(kernel)}. Protocol and all kernels: {page}."
        yield "\n".join([head[0], *rows])
    elif kernel.name in BENCHED:
        yield f"On an H100, bfloat16, row-major A × column-major B, TFLOP/s. Protocol: {page}."
        for name in ("sweep", "squares"):
            whole = markdown(read(RESULTS.parent / f"{name}.csv")).splitlines()
            kept = (CUBLAS, BENCHED[kernel.name])
            yield "\n".join([*whole[:2], *(x for x in whole if x.split(" | ")[0][2:] in kept)])
    else:
        yield f"Measured on an H100, called directly, with the other kernels of its family: {page}."


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
