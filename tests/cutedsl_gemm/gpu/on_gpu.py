"""Matrices on the GPU, the plans of their products, and processes that may not hang."""

import itertools
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import torch

from cutedsl_gemm import gemm, plan_for
from cutedsl_gemm.kernels.compile import build
from cutedsl_gemm.kernels.device.occupancy import multiprocessors

DTYPES = [torch.bfloat16, torch.float16]
MAJORS = list(itertools.product(("row", "column"), repeat=2))


def matrix(rows, columns, order="row", dtype=torch.bfloat16):
    if order == "row":
        return torch.randn(rows, columns, device="cuda").to(dtype)
    return torch.randn(columns, rows, device="cuda").to(dtype).mT


def integers(rows, columns, order="row", dtype=torch.bfloat16, device="cuda"):
    """Integers from -3 to 3: their products are summed without rounding, in any order."""
    if order == "column":
        return integers(columns, rows, "row", dtype, device).mT
    return torch.empty(rows, columns, dtype=dtype, device=device).random_(-3, 4)


def planned_integers(plan, m, n, k):
    """A (M, K) and B (K, N) of integers, of the dtype and the majors of a plan."""
    dtype = getattr(torch, plan.dtype)
    a = integers(m, k, "row" if plan.a_major == "K" else "column", dtype)
    return a, integers(k, n, "column" if plan.b_major == "K" else "row", dtype)


def poisoned(m, n, dtype):
    return torch.full((m, n), torch.nan, dtype=dtype, device="cuda")


def error(c, a, b):
    truth = a.double() @ b.double()
    return float((c.double() - truth).norm() / truth.norm())


def product(a, b):
    """The product of integers, exact, then rounded once."""
    return (a.double() @ b.double()).to(a.dtype)


def launcher(kernel):
    """A function (a, b, out) of a kernel's name or a plan."""
    if isinstance(kernel, str):
        return lambda a, b, out: gemm(a, b, out=out, kernel=kernel)
    loaded = build.load(kernel)
    return lambda a, b, out: loaded(a, b, out, multiprocessors(out.device, kernel))


def plan_of(mnk, majors=("row", "row"), dtype=torch.bfloat16, **options):
    """The plan of `gemm` for contiguous matrices, found without a GPU."""

    def empty(rows, columns, order):
        shape = (rows, columns) if order == "row" else (columns, rows)
        made = torch.empty(shape, dtype=dtype)
        return made if order == "row" else made.mT

    m, n, k = mnk
    return plan_for(empty(m, k, majors[0]), empty(k, n, majors[1]), **options)


def run_apart(*command, seconds, **environment):
    """The exit status and the output of a process; it fails the test after so many seconds.

    It is then killed with its children: a sanitizer's child has the kernel that hangs. It imports
    what this process imports.
    """
    path = os.pathsep.join(each or str(Path.cwd()) for each in sys.path)
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        process = subprocess.Popen(
            command,
            env={**os.environ, "PYTHONPATH": path, **environment},
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()  # if the driver holds it, the test's own limit ends this process
        output.seek(0)
        text = output.read()
    if status is None:
        pytest.fail(f"{' '.join(command[:4])} … took more than {seconds} s:\n{text[-2000:]}")
    return status, text
