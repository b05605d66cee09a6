"""Flags in global memory by which GPUs tell each other what has come."""

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
    """Add to a flag, also of another GPU, which shows what this thread has seen or written."""
    cute.arch.atomic_add(flag, value, sem="release", scope="sys")
