"""make demo: the library in one run, on any machine."""

from __future__ import annotations

import time

import torch
from rich.console import Console
from rich.markup import escape

from cutedsl_gemm.api import gemm
from cutedsl_gemm.kernels.compile import build
from cutedsl_gemm.kernels.compile.sass import ToolError
from cutedsl_gemm.kernels.compile.versions import VersionError
from cutedsl_gemm.kernels.sm90.plan import Sm90Plan
from cutedsl_gemm.kernels.sm90.resources import SMEM_BYTES
from cutedsl_gemm.kernels.sm90.rungs import pingpong
from cutedsl_gemm.measure.accuracy import relative_error
from layouts import ComposedLayout, Layout, Swizzle, table

TILE = (128, 128, 64)
INSTRUCTIONS = {
    "HGMMA": "wgmma: tensor core, 64 × 128 × 16 each",
    "STSM": "stmatrix: registers → swizzled staging buffer",
    "UTMALDG": "TMA load: a box of A or of B each",
    "UTMASTG": "TMA store: a panel of C each",
    "USETMAXREG": "setmaxnreg: 40 registers for the producer, 232 for a consumer",
}

console = Console(highlight=False, soft_wrap=True)


def main() -> None:
    """A swizzle, a plan, its proofs, its result and its machine code; on an H100 its speed."""
    a, b = torch.randn(1000, 776).bfloat16(), torch.randn(776, 1200).bfloat16()
    plan = pingpong(TILE, b_major="MN")  # the plan of gemm(a, b, tile=TILE)
    show_swizzle()
    show_plan(plan)
    show_result(a, b)
    show_machine_code(plan)
    if torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0):
        show_speed(a, b)
    else:
        title(
            "On an H100",
            "this demo also runs that machine code, and compares its speed with torch.mm",
        )


def title(name: str, text: str) -> None:
    console.print(f"\n[bold]{name}[/bold]  {text}")


def show_swizzle() -> None:
    title(
        "A swizzle",
        "eight rows of 128 bytes, as 16-byte vectors: stmatrix writes a column, and each column "
        "spreads over all eight groups of four banks",
    )
    vectors = Swizzle(3, 4, 3).recast(8, 128)  # TMA's 128-byte swizzle, from bytes to vectors
    rows = ComposedLayout(vectors, 0, Layout((8, 8), (8, 1)), unit=128)
    print(table(rows).text(colour=console.is_terminal))


def show_plan(plan: Sm90Plan) -> None:
    title(
        "The plan",
        "one frozen value: the kernel lowers it, the executor runs it, the proofs are about it",
    )
    console.print(escape(plan.explain()))
    title("Its proofs", "for all indices")
    for proof in plan.proofs():
        console.print(escape(str(proof)))


def show_result(a: torch.Tensor, b: torch.Tensor) -> None:
    title("Its result", "the executor moves real data through these layouts, on the CPU")
    start = time.perf_counter()
    c = gemm(a, b, tile=TILE)
    seconds = time.perf_counter() - start
    console.print(
        f"gemm {tuple(a.shape)} · {tuple(b.shape)}: "
        f"relative error {error(c, a, b):.1e} against float64, {seconds:.2f} s"
    )


def show_machine_code(plan: Sm90Plan) -> None:
    title("Its machine code", f"compiled here for {build.ARCH}, without a GPU")
    start = time.perf_counter()
    try:
        with console.status("compiling"):
            report = build.inspect(plan)
    except (VersionError, ToolError) as error:
        console.print(escape(f"not shown: {error}"))
        return
    console.print(
        f"{time.perf_counter() - start:.1f} s; "
        f"{report.registers} registers, {report.spills} spills, "
        f"{plan.smem_bytes:,} of {SMEM_BYTES:,} bytes of shared memory, "
        f"{sum(report.instructions.values())} instructions"
    )
    for opcode, meaning in INSTRUCTIONS.items():
        console.print(f"{report.count(opcode):4} {opcode:<11} {meaning}")


def show_speed(a: torch.Tensor, b: torch.Tensor) -> None:
    from cutedsl_gemm.measure.bench import sweep

    title("On this GPU", f"{torch.cuda.get_device_name()} runs that machine code")
    on_gpu = gemm(a.cuda(), b.cuda(), tile=TILE)
    console.print(f"the same call: relative error {error(on_gpu.cpu(), a, b):.1e} against float64")
    for point in sweep([(8448, 9216, 256), (8448, 9216, 1984)]):
        figures = ", ".join(f"{name} {tflops:.0f}" for name, tflops in point.tflops.items())
        console.print(f"{point.mnk}: {figures} TFLOP/s in bursts, outputs checked")


def error(c: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> float:
    return relative_error(c, a.double() @ b.double())
