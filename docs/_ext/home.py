"""What the home page computes: one plan with its four uses, and the summary of all measurements."""

from __future__ import annotations

from collections import Counter
from html import escape
from pathlib import Path
from statistics import geometric_mean
from typing import NamedTuple

import torch
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import cutedsl_gemm
from cutedsl_gemm.kernels.plan.kernel_plan import KernelPlan
from cutedsl_gemm.measure.providers import CUBLAS
from cutedsl_gemm.measure.report import ratios, read, summary
from layouts.draw.cells import hex_colour

from sources import depend

TILE = 128, 128, 64
SHOWN = "kernel", "A in smem", "accumulator", "C panel"  # the lines of the plan


class Use(NamedTuple):
    """One of the four uses: its title, where it is explained, what it does, and what it gave."""

    title: str
    page: str
    words: str
    result: str  # HTML


class Join(SphinxDirective):
    """A plan, and below it the kernel, the executor, the proofs and the picture made from it."""

    def run(self) -> list[nodes.Node]:
        depend(self.env)
        a, b = torch.randn(520, 136).bfloat16(), torch.randn(264, 136).bfloat16().T
        plan = cutedsl_gemm.plan_for(a, b, tile=TILE)
        lines = plan.explain().splitlines()
        shown = "\n".join(line for line in lines if line.startswith(SHOWN))
        measured = Path(self.env.srcdir) / "performance"
        self.env.note_dependency(str(measured / "sweep.csv"))
        uses = kernel(measured), executor(a, b), proofs(plan), picture(plan)
        cards = "".join(
            f'<div class="use"><a href="{use.page}">{use.title}</a> {escape(use.words)}'
            f'<div class="result">{use.result}</div></div>'
            for use in uses
        )
        call = f"plan = cutedsl_gemm.plan_for(a, b, tile={TILE})"
        drawn = (
            f'<figure class="join"><div class="plan"><code>{escape(call)}</code>'
            f'<pre>{escape(shown)}</pre></div><div class="uses">{cards}</div></figure>'
        )
        return [nodes.raw("", drawn, format="html")]


def kernel(measured: Path) -> Use:
    points = read(measured / "sweep.csv")
    m, n, _ = points[0].mnk
    mean = geometric_mean(ratios(points)[CUBLAS])
    result = (
        f"{m}×{n}×K on an H100: <b>gemm is {mean:.2f} × torch.mm</b>, "
        f"the geometric mean over {len(points)} values of K"
    )
    words = "The CuTe DSL kernel is compiled from it: TMA, wgmma and stmatrix use its layouts."
    return Use("Run", "tutorial/index.html", words, result)


def executor(a: torch.Tensor, b: torch.Tensor) -> Use:
    c, truth = cutedsl_gemm.gemm(a, b, tile=TILE).double(), a.double() @ b.double()
    error = float((c - truth).norm() / truth.norm())
    words = "The executor moves real data through the same addresses on a CPU."
    (m, k), n = a.shape, b.shape[1]
    result = f"{m}×{n}×{k} here: <b>relative error {error:.1e}</b>"
    return Use("Execute", "start.html#multiply-matrices", words, result)


def proofs(plan: KernelPlan) -> Use:
    found = plan.proofs()
    holds = sum(map(bool, found))
    kinds = Counter(type(proof.statement).__name__ for proof in found)
    words = "Proofs hold for all indices: no element is lost, and no banks conflict."
    counted = ", ".join(f"{count} × {kind}" for kind, count in kinds.items())
    result = f"<b>{holds} of {len(found)} proved</b>: {counted}"
    return Use("Prove", "layouts.html#proofs", words, result)


def picture(plan: KernelPlan) -> Use:
    """Eight rows of 128 bytes of A in shared memory, as 16-byte vectors, coloured by banks."""
    vectors = range(0, 64, 8)  # the first element of each vector of a row
    rows = [[plan.a.smem(row, k) // 8 for k in vectors] for row in range(8)]
    drawn = "".join(
        f'<i style="background:{hex_colour(vector % 8)}">{vector}</i>'
        for row in rows
        for vector in row
    )
    words = "Every picture is drawn from it: A in shared memory, coloured by its banks."
    return Use("See", "swizzles.html", words, f'<div class="vectors">{drawn}</div>')


class Speed(SphinxDirective):
    """A row for each set of measured shapes."""

    def run(self) -> list[nodes.Node]:
        folder = Path(self.env.srcdir) / "performance"
        for file in folder.glob("*.csv"):
            self.env.note_dependency(str(file))
        return self.parse_text_to_nodes(summary(folder))


def setup(app: Sphinx) -> dict[str, bool]:
    """Registers the extension."""
    app.add_directive("join", Join)
    app.add_directive("speed", Speed)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
