"""Flags and counts in global memory, by which kernels and copy engines tell what is there."""

import cutlass.cute as cute
from cutlass import Int32

# A kernel that has waited this long traps: the GPU that should write the flag has failed.
PATIENCE_NANOSECONDS = 20 * 10**9


@cute.jit
def wait_for_flag(flag, value):
    """Wait until the flag reaches `value`. It only grows, and wraps around.

    This thread then sees what the writer released, or wrote earlier in its stream.
    """
    begin = cute.arch.globaltimer()
    while cute.arch.load(flag, Int32, sem="acquire", scope="sys") - value < 0:
        if cute.arch.globaltimer() - begin > PATIENCE_NANOSECONDS:
            cute.arch.inline_ptx("trap;")


def add_to_flag(flag, value):
    """Add to a flag or count. Whoever reads it then sees what this thread has seen or written.

    A thread sees what TMA has stored only after cp.async.bulk.wait_group without .read: the end of
    the store is followed by a proxy fence (PTX ISA, "Async proxy"). The release at system scope
    orders it before the count (PTX ISA, "Memory consistency model"), on which copy engines wait.
    """
    cute.arch.atomic_add(flag, value, sem="release", scope="sys")
