"""From a plan to a callable: compiled once for an architecture, kept in memory and on disk.

A compiled GEMM is a TVM-FFI function (a, b, c, sms) on torch tensors and torch's current stream.
With an epilogue it takes the operands and the results in place of c. It serves every M, N, K; `sms`
is the number of multiprocessors that a persistent grid fills. A split-K kernel also takes a
workspace, which `load` allocates. A compiled copy takes the pairs (source, target) that it copies.
"""

from __future__ import annotations

import functools
import hashlib
import platform
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import layouts
from cutedsl_gemm.kernels.compile import cache, library, progress, sass, versions
from cutedsl_gemm.kernels.device.compiler import DSL_LOCK, compile_kernel
from cutedsl_gemm.kernels.plan.kernel_plan import Plan

ARCH = "sm_90a"


@functools.cache
def load(plan: Plan, arch: str = ARCH) -> Callable[..., None]:
    """The plan's kernel as a function on CUDA tensors; compiled unless it is cached.

    Threads may call it, and launch what it returns: a plan is compiled once, and one plan at a
    time (`DSL_LOCK`). A kernel that is in memory needs no lock. If the cache folder lacks it and
    cannot be written, the kernel is compiled for this process alone, with a warning. RuntimeError
    if it would have to be compiled while torch's current stream captures a CUDA graph.
    """
    try:
        kernel = library.load(make(plan, arch))
    except cache.CacheError as error:
        cache.warn(error, "each process compiles its own kernels")
        with tempfile.TemporaryDirectory() as folder:
            draft = Path(folder, f"{library.ENTRY}.so")
            export(plan, draft, arch)
            kernel = library.load(draft)  # it stays in memory when its file is deleted
    return _with_workspace(plan, kernel) if plan.workspace(1, 1) else kernel


def _with_workspace(plan: Plan, kernel: Callable[..., None]) -> Callable[..., None]:
    """The kernel, with a workspace from torch's allocator, which reuses it in stream order."""
    import torch  # here, since it takes a second, and compiling needs none of it

    from cutedsl_gemm.kernels.device.allocation import allocator

    @functools.lru_cache
    def workspace(device: Any, m: int, n: int) -> Callable[[Any], Any]:
        return allocator(device, (plan.workspace(m, n),), torch.float32)

    def gemm(a: Any, b: Any, *others: Any) -> None:
        new = workspace(a.device, a.shape[0], b.shape[-1])
        kernel(a, b, *others[:-1], new(a), others[-1])

    return gemm


def make(plan: Plan, arch: str = ARCH) -> Path:
    """The plan's library in the cache folder; compiled if it is not there. Needs no GPU."""
    return cache.entry(key(plan, arch), lambda draft: export(plan, draft, arch))


def check() -> None:
    """VersionError, LibraryError or CacheError if kernels cannot be compiled, linked or kept."""
    _tools()
    library.linker()
    cache.check()


def export(plan: Plan, path: Path, arch: str = ARCH) -> None:
    """Compile the plan and write its library to `path`. Needs no GPU.

    RuntimeError if torch's current stream captures a CUDA graph.
    """
    if capturing():
        raise RuntimeError(
            f"{plan.name} {_brief(plan)} is not compiled for {arch} yet, and a CUDA graph is being "
            "captured: call gemm once with such tensors before the capture, or run python -m "
            "cutedsl_gemm build, which compiles the plans that gemm chooses for two matrices "
            "without an epilogue, if rows of C are multiples of 16 bytes"
        )
    with DSL_LOCK, progress.spinner(f"compiling {_brief(plan)} for {arch}, once"):
        library.link(compile_plan(plan, arch), path)


def capturing() -> bool:
    """Whether torch's current stream captures a CUDA graph; False if torch uses no GPU yet."""
    if sys.modules.get("torch") is None:  # a process that compiles ahead needs no torch
        return False
    import torch  # waits until a thread that is importing it has done so

    return torch.cuda.is_initialized() and bool(torch.cuda.is_current_stream_capturing())


def inspect(plan: Plan, arch: str = ARCH) -> sass.Report:
    """Registers, spills and instructions of the plan's machine code. Needs no GPU."""
    with _dumped(plan, arch, "cubin") as cubin:
        return sass.report(cubin)


def ptx(plan: Plan, arch: str = ARCH) -> str:
    """The PTX of the plan's kernels, from which ptxas makes the machine code. Needs no GPU."""
    with _dumped(plan, arch, "ptx") as path:
        return path.read_text()


@contextmanager
def _dumped(plan: Plan, arch: str, kind: str) -> Iterator[Path]:
    """The file of one kind, "cubin" or "ptx", that the DSL writes as it compiles the plan."""
    with DSL_LOCK, tempfile.TemporaryDirectory() as folder:  # a fork waits for the tools' pipes too
        compile_plan(plan, arch, f"--keep-{kind} --dump-dir {folder}")
        (path,) = Path(folder).glob(f"*.{kind}")
        yield path


def compile_plan(plan: Plan, arch: str = ARCH, options: str = "") -> Any:
    """The plan's kernel, compiled by the DSL for the arguments that its device code states."""
    _tools()  # refuses a DSL that is missing or mixed before it is imported
    with DSL_LOCK:
        code = plan.device_code()
        return compile_kernel(code, *code.arguments(), arch=arch, options=options)


def _brief(plan: Plan) -> str:
    return f"{'×'.join(map(str, plan.tile))} {plan.dtype}"


def key(plan: Plan, arch: str = ARCH) -> str:
    """The name of a plan's library in the cache.

    A digest of the plan, both architectures (the library holds host code too), our source, and the
    versions of the DSL and of TVM-FFI. The DSL's CUDA version is not part of it: a library made
    by its CUDA 12 build also runs under its CUDA 13 build (docs/performance).
    """
    return _digest(repr(plan), arch, platform.machine(), _source(), *_tools())


def release() -> str:
    """A digest of what all plans' libraries have in common: our source and the tools."""
    return _digest(_source(), *_tools())


def _digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


@functools.cache
def _tools() -> tuple[str, str]:
    """The versions of the DSL and of TVM-FFI. VersionError if the DSL is not whole."""
    return versions.check(), version("apache-tvm-ffi")


@functools.cache
def _source() -> str:
    """A digest of layouts and kernels, which hold all that can change the machine code."""
    digest = hashlib.sha256()
    for package in (Path(layouts.__file__).parent, Path(__file__).parents[1]):
        for path in sorted(package.rglob("*.py")):
            if not path.name.startswith("."):  # such as the lock of an editor
                digest.update(path.read_bytes())
    return digest.hexdigest()
