"""The directive `kernels`: which element types, majors, alignments and cards each kernel takes."""

from __future__ import annotations

from itertools import groupby, product

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from cutedsl_gemm.kernels.plan.checks import PlanError
from cutedsl_gemm.inputs.problem import Matrix, Problem
from cutedsl_gemm.select.registry import KERNELS, Kernel

from sources import depend

#: Compute capability → cards that have it.
CARDS = {
    (7, 0): "V100",
    (7, 5): "T4",
    (8, 0): "A100",
    (8, 6): "A10, RTX 30",
    (8, 9): "L4, RTX 40",
    (9, 0): "H100, H200",
    (10, 0): "B200",
    (12, 0): "RTX 50",
}
EXTENT = 256  # of the matrices with which a kernel is asked for a plan


class Kernels(SphinxDirective):
    """A row for each run of kernels that take the same."""

    def run(self) -> list[nodes.Node]:
        depend(self.env)
        head = "kernel", "A and B", "A · B major", "read in place at multiples of", "GPUs"
        rows: list[tuple[str, ...]] = [head, ("---",) * len(head)]
        for taken, kernels in groupby(KERNELS.values(), takes):
            names = [kernel.name for kernel in kernels]
            first, last = f"`{names[0]}`", f"`{names[-1]}`"
            rows.append((first if len(names) == 1 else f"{first} to {last}", *taken))
        return self.parse_text_to_nodes("\n".join(f"| {' | '.join(row)} |" for row in rows))


def takes(kernel: Kernel) -> tuple[str, ...]:
    """The element types, majors, alignments and cards of a kernel, in words."""
    dtypes = [str(dtype).removeprefix("torch.") for dtype in kernel.requirements.dtypes]
    majors = [
        f"{a} · {b}"
        for a, b in product(("K", "M"), ("N", "K"))
        if all(plans(kernel, a, b, dtype) for dtype in dtypes)
    ]
    aligned = [each.alignment_bytes for each in (kernel.requirements, *kernel.narrower)]
    cards = [name for capability, name in CARDS.items() if kernel.arch(capability)]
    return (
        " or ".join(dtypes),
        "any" if len(majors) == 4 else ", ".join(majors),
        f"{', '.join(map(str, aligned))} bytes",
        f"{', '.join(cards)}",
    )


def plans(kernel: Kernel, a_major: str, b_major: str, dtype: str) -> bool:
    """Whether a kernel has a plan for square matrices of these majors."""
    rows, columns = (EXTENT, 1), (1, EXTENT)
    a = Matrix((EXTENT, EXTENT), rows if a_major == "K" else columns)
    b = Matrix((EXTENT, EXTENT), rows if b_major == "N" else columns)
    try:
        kernel.plan(Problem(a, b, dtype), None)
    except PlanError:
        return False
    return True


def setup(app: Sphinx) -> dict[str, bool]:
    """Registers the extension."""
    app.add_directive("kernels", Kernels)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
