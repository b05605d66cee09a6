"""Flags and counts in global memory, by which kernels and copy engines tell what is there."""

import cutlass.cute as cute
from cutlass import Int32

# A kernel that has waited so long ends with an error: who should write the flag has failed.
PATIENCE_NANOSECONDS = 20 * 10**9


@cute.jit
def wait_for_flag(flag, value):
    """Wait until the flag is `value`, or beyond it: it grows, and wraps around.

    What its writer released, or wrote before it in a stream, this thread then sees.
    """
    begin = cute.arch.globaltimer()
    while cute.arch.load(flag, Int32, sem="acquire", scope="sys") - value < 0:
        if cute.arch.globaltimer() - begin > PATIENCE_NANOSECONDS:
            cute.arch.inline_ptx("trap;")


def add_to_flag(flag, value):
    """Add to a flag or count: who then reads it sees what this thread has seen or written.

    What TMA has stored, a thread sees behind cp.async.bulk.wait_group, without .read: the end of
    the store is followed by a proxy fence (PTX ISA, "Async proxy"). The release at system scope
    orders it before the count (PTX ISA, "Memory consistency model"), on which copy engines wait.
    """
    cute.arch.atomic_add(flag, value, sem="release", scope="sys")
