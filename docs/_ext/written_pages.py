"""Pages written by the library while the site is built: the ladder's rungs, and the reference.

They lie in docs/written, which git ignores: a rung or a function that is added has its page.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from sphinx.application import Sphinx

import cutedsl_gemm
import layouts
from cutedsl_gemm.measure.report import OURS, markdown, plot, read
from cutedsl_gemm.measure.hierarchy import hierarchy_of
from cutedsl_gemm.kernels.plan.kernel_plan import KernelPlan
from cutedsl_gemm.measure.ladder import ROW_MAJOR, SIZES
from cutedsl_gemm.measure.providers import CUBLAS
from cutedsl_gemm.problem import Matrix, Problem
from cutedsl_gemm.select.registry import DEFAULT, KERNELS, Kernel


# What bench calls the rungs that it measures.
BENCHED = {"sm90": OURS, "sm90_pingpong": f"{OURS} 128×128"}
MEASURED = Path(__file__).parents[1] / "performance" / "README.md"


def write(app: Sphinx) -> None:
    """All pages, only where they differ from what is there."""
    folder = Path(app.srcdir) / "written"
    pages = {f"rungs/{name}.md": rung(kernel) for name, kernel in KERNELS.items()}
    pages["ladder.md"] = ladder()
    pages["plots.md"] = plots(Path(app.srcdir) / "performance", folder)
    pages["layouts.md"] = reference("layouts", layouts)
    pages["cutedsl_gemm.md"] = reference("cutedsl_gemm", cutedsl_gemm)
    for name, text in pages.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
    for path in folder.rglob("*.md"):
        if str(path.relative_to(folder)) not in pages:
            path.unlink()


def ladder() -> str:
    """The page that all rungs hang on, and the picture of tiling."""
    hierarchy = hierarchy_of()
    rungs = "\n".join(f"rungs/{name}" for name in KERNELS)
    return (
        "\n\n".join(
            (
                "# The ladder",
                "From the naive SGEMM to Hopper's pingpong kernel; at each rung one idea changes. "
                "`python -m cutedsl_gemm ladder` measures them all; the figures are on the page "
                "[Performance](../performance/README.md).",
                "## Block, warp, thread",
                "A tile of C falls into the tiles of blocks, these into those of warps, these into "
                "those of threads:",
                fenced(hierarchy.explain(), "text"),
                '````{raw} html\n<figure class="layout"><div class="drawn">'
                f"{hierarchy.picture().svg()}</div></figure>\n````",
                "## The rungs",
                f"```{{toctree}}\n:maxdepth: 1\n\n{rungs}\n```",
            )
        )
        + "\n"
    )


# How bench is asked for what the name of a CSV does not say.
ASKED = {"sustained": "--sustained", "weights": "--sustained --shapes weights"}


def plots(measured: Path, folder: Path) -> str:
    """Every table of docs/performance that lies there as CSV, drawn."""
    parts = [
        "# Performance, drawn",
        "What it says and how it was measured: [Performance](../performance/README.md).",
    ]
    for file in sorted(measured.glob("*.csv")):
        folder.mkdir(exist_ok=True)
        title = f"TFLOP/s, bench {ASKED.get(file.stem, f'--shapes {file.stem}')}"
        plot(read(file), title, folder / f"{file.stem}.svg")
        parts.append(f"![{file.stem}]({file.stem}.svg)")
    return "\n\n".join(parts) + "\n"


def rung(kernel: Kernel) -> str:
    """A rung's page: what is new, its device file's words, its plan, its figures, its layouts."""
    dtype, plan = dtype_of(kernel), plan_of(kernel)
    device = inspect.getmodule(type(plan.device_code()))
    assert device is not None
    file = Path(inspect.getfile(device))
    lines = file.read_text().splitlines()
    parts = [
        f"# {kernel.name}",
        *ideas(kernel.maker),
        *(["Here it is this one:"] if kernel.name == DEFAULT else []),
        fenced(inspect.getdoc(device) or "", "text"),
        f"Device code: `{'/'.join(file.parts[-3:])}`, {len(lines)} lines. "
        f"`gemm(a, b, kernel={kernel.name!r})` takes {dtype}.",
        "## Its plan",
        f"For {shape(kernel)}:",
        fenced(plan.explain(), "text"),
        *changes(kernel, plan),
        *costs(plan),
        *figures(kernel),
    ]
    parts += drawings(plan, dtype)
    return "\n\n".join(parts) + "\n"


def dtype_of(kernel: Kernel) -> str:
    """The type of its elements that the ladder measures."""
    return str(kernel.requirements.dtypes[0]).removeprefix("torch.")


def plan_of(kernel: Kernel) -> Any:
    """The plan for the shape and the majors at which the ladder measures it."""
    size = SIZES[kernel.family]
    a, b = (
        Matrix((size, size), (size, 1) if row_major else (1, size))
        for row_major in ROW_MAJOR[kernel.family]
    )
    return kernel.plan(Problem(a, b, dtype_of(kernel)), None)


def shape(kernel: Kernel) -> str:
    """That shape, in words."""
    a, b = ("row" if row_major else "column" for row_major in ROW_MAJOR[kernel.family])
    return f"{SIZES[kernel.family]}³ in {dtype_of(kernel)}, {a}-major A × {b}-major B"


def ideas(maker: Any) -> Iterator[str]:
    """What the maker of a plan says of it, without its examples."""
    return (part for part in told(inspect.getdoc(maker) or "") if "pycon" not in part)


def changes(kernel: Kernel, plan: Any) -> Iterator[str]:
    """The lines of a plan that the rung below has not."""
    names = [rung.name for rung in KERNELS.values() if rung.family == kernel.family]
    place = names.index(kernel.name)
    if place and kernel.name != DEFAULT:  # which is one of those below
        below = KERNELS[names[place - 1]]
        known = plan_of(below).explain().splitlines()
        new = [line for line in plan.explain().splitlines() if line not in known]
        yield f"Of these lines, `{below.name}` has others, or none, in place of:"
        yield fenced("\n".join(new), "text")


def costs(plan: KernelPlan) -> Iterator[str]:
    """The memory report of a rung, where its family has one."""
    report = plan.memory_report()
    if report is not None:
        yield "What its accesses cost, from the layouts alone:"
        yield fenced(str(report), "text")


def figures(kernel: Kernel) -> Iterator[str]:
    """The rung's row of the ladder in docs/performance, or of the tables that bench wrote."""
    text = MEASURED.read_text()
    rows = re.findall(rf"^\| {kernel.name}(?: .*?)? \|.*$", text, re.M)
    head = re.search(r"^\| kernel \|.*\n\|.*$", text, re.M)
    yield "## Measured"
    more = "[Performance](../../performance/README.md)"
    if rows and head:
        yield f"On an H100, at {shape(kernel)}; the protocol, and all rungs: {more}."
        yield "\n".join([head[0], *rows])
    elif kernel.name in BENCHED:
        yield f"On an H100, bfloat16, row-major A × column-major B, TFLOP/s; the protocol: {more}."
        for name in ("sweep", "squares"):
            whole = markdown(read(MEASURED.parent / f"{name}.csv")).splitlines()
            kept = (CUBLAS, BENCHED[kernel.name])
            yield "\n".join([*whole[:2], *(x for x in whole if x.split(" | ")[0][2:] in kept)])
    else:
        yield f"On an H100, its kernel called directly, beside the family's others: {more}."


def drawings(plan: Any, dtype: str) -> Iterator[str]:
    """What a plan keeps in shared memory, where it keeps anything: the first rows and columns."""
    buffers = getattr(plan, "buffers", None)
    if buffers is None:  # of the older families: the tiles of A and B
        stages = {"A": getattr(plan, "a", None), "B": getattr(plan, "b", None)}
        buffers = {name: stage.smem for name, stage in stages.items() if stage is not None}
    for name, buffer in buffers.items():
        unit = getattr(buffer, "unit", None) or (32 if dtype == "float32" else 16)
        yield f"## {name} in shared memory, tinted by groups of four banks"
        yield f"```{{layout}} {buffer}\n:unit: {unit}\n:limit: 16\n```"


def reference(name: str, package: ModuleType) -> str:
    """A page of all that a package exports, in the words of its docstrings."""
    parts = [f"# {name}", fenced(inspect.getdoc(package) or "", "text")]
    for public in sorted(package.__all__):
        value = getattr(package, public)
        if isinstance(value, ModuleType) or not (inspect.isclass(value) or callable(value)):
            continue
        parts += [f"## {public}", fenced(f"{public}{signature(value)}", "python")]
        parts += list(told(inspect.getdoc(value) or ""))
    return "\n\n".join(parts) + "\n"


def signature(value: object) -> str:
    """The parameters, or nothing where Python does not know them."""
    try:
        return str(inspect.signature(value))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return ""


def told(docstring: str) -> Iterator[str]:
    """Paragraphs as text, examples as code."""
    for block in re.split(r"\n\s*\n", docstring):
        if block.lstrip().startswith(">>>"):
            yield fenced(re.sub(r" *# doctest:.*", "", inspect.cleandoc(block)), "pycon")
        elif block.strip():
            words = re.sub(r"``?([^`]+)``?", r"`\1`", block)
            yield fenced(block, "text") if block.startswith(" ") else escaped(words)


def escaped(words: str) -> str:
    """Text as Markdown that shows it: only what stands in backticks is marked up."""
    pieces = re.split(r"(`[^`]+`)", words)
    safe = (
        piece if piece.startswith("`") else re.sub(r"([\\*_<>\[\]$|#~{}])", r"\\\1", piece)
        for piece in pieces
    )
    return "".join(safe)


def fenced(text: str, language: str) -> str:
    """A block of code."""
    return f"````{language}\n{text.rstrip()}\n````"


def setup(app: Sphinx) -> dict[str, bool]:
    """What Sphinx asks of an extension."""
    importlib.invalidate_caches()
    app.connect("builder-inited", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
