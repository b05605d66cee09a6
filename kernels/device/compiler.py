"""The CuTe DSL's compiler, which one thread of a process may use at a time.

The state of the DSL is global: the MLIR context and location that tracing enters, the session, the
preprocessor's mode. Two threads that compile at once read each other's state. Most often that ends
the process (SIGABRT, SIGSEGV); else it raises errors that speak of neither thread's kernel.

A fork waits until no thread compiles. A child that was forked in the middle of a compile would
inherit the state as it was then, and locks that no thread of its own releases: its first compile
hangs.
"""

from __future__ import annotations

import concurrent.futures.thread  # noqa: F401
import logging  # noqa: F401  Both register locks to hold at a fork: before DSL_LOCK, taken first.
import os
import threading
from typing import Any

# Hold it to use the DSL in any way while another thread may call gemm; do not call gemm meanwhile,
# since a call takes the lock of the cache first. It is re-entrant.
DSL_LOCK = threading.RLock()

if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(
        before=DSL_LOCK.acquire,
        after_in_parent=DSL_LOCK.release,
        after_in_child=DSL_LOCK.release,
    )


def compile_kernel(kernel: Any, *arguments: Any, arch: str, options: str = "") -> Any:
    """A kernel object as a TVM-FFI function of its arguments, launched on torch's current stream.

    `arguments` are fake tensors and integers, which give types; the kernel's `__call__` takes a
    stream after them. `arch` is an architecture as ptxas names it, "sm_90a"; `options` are further
    ones of `cute.compile`. Needs no GPU. Waits while another thread compiles.
    """
    with DSL_LOCK:
        import cutlass.cute as cute

        stream = cute.runtime.make_fake_stream(use_tvm_ffi_env_stream=True)
        options = f"--enable-tvm-ffi --gpu-arch {arch} {options}"
        return cute.compile(kernel, *arguments, stream, options=options)
