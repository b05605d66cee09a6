"""A compiled kernel as a shared library, which loads in milliseconds without the DSL's Python.

The DSL exports an object file, the linker turns it into a shared library, and TVM-FFI finds the
function in it. The library depends only on the DSL's runtime library. Importing the DSL takes 3 s
on the host of an H100; loading a library takes 2 ms (docs/performance).
"""

from __future__ import annotations

import ctypes
import functools
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from cutedsl_gemm.kernels.compile import versions

ENTRY = "gemm"
RUNTIME = "libcute_dsl_runtime.so"


class LibraryError(OSError):
    """A kernel cannot be linked or loaded; the message says what is missing."""


def link(compiled: Any, path: Path) -> None:
    """Link the DSL's compiled function into a shared library at `path`.

    It is linked elsewhere and copied: ld does not say that a disk is full in a way that a program
    understands.
    """
    tool = linker()
    with tempfile.TemporaryDirectory() as folder:
        objects, linked = Path(folder, "kernel.o"), Path(folder, "kernel.so")
        compiled.export_to_c(str(objects), function_name=ENTRY)
        command = [tool, "-shared", "-o", str(linked), str(objects)]
        try:
            subprocess.run(command, check=True, capture_output=True, text=True)
        except subprocess.CalledProcessError as error:
            raise LibraryError(f"{' '.join(command)} failed: {error.stderr.strip()}") from error
        shutil.copyfile(linked, path)


def linker() -> str:
    """The path of ld. LibraryError if it is not on the PATH."""
    found = shutil.which("ld") or shutil.which("ld.lld")
    if found is None:
        raise LibraryError(
            "compiled kernels are linked by ld, which is not on the PATH: install binutils, or "
            "build them elsewhere (python -m cutedsl_gemm build) and copy the folder here"
        )
    return found


def load(path: Path) -> Callable[..., None]:
    """The kernel in the library at `path`."""
    import tvm_ffi

    load_runtime()
    return tvm_ffi.load_module(str(path))[ENTRY]


@functools.cache
def load_runtime() -> ctypes.CDLL:
    """Load the DSL's runtime library; kernels loaded later find its symbols."""
    spec = find_spec("nvidia_cutlass_dsl")
    folders = spec.submodule_search_locations if spec is not None else None
    found = [path for folder in folders or () for path in Path(folder).glob(f"cu*/lib/{RUNTIME}")]
    if not found:
        raise LibraryError(
            f"{RUNTIME} is missing from the package nvidia-cutlass-dsl: {versions.repair()}"
        )
    return ctypes.CDLL(str(max(found)), ctypes.RTLD_GLOBAL)
