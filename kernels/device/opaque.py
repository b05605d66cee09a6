"""A condition that ptxas cannot decide, for code that it must not move."""

import functools
import operator
from typing import Any

import cutlass.cute as cute


def opaque_true(*numbers: Any) -> Any:
    """True for numbers of 0 or more, which ptxas does not know.

    ptxas computes the numbers before the branch, and what the branch guards stays behind it:

    - It would divide where a tile's coordinate is used, between the end of a wait and the load or
      store that is waited for. A wait that this guards by the coordinate comes after the division:
      a product of 2 to 8 µs takes 0.1 to 0.4 µs less (docs/performance/notebook.md, "Divisions
      before the waits").
    - It would move the release of a tile's last stage behind the arithmetic of the epilogue, and
      the producer would lack the stage for 9,000 clocks: with gelu at 8448×9216×256, clusters of
      two and three consumers, 101 µs, not 78 (docs/performance/notebook.md, "Long epilogues").

    >>> opaque_true(3, 0), opaque_true()
    (True, True)
    """
    return functools.reduce(operator.or_, numbers, 0) >= 0


@cute.jit
def wait_for_previous_launch(*coord):
    """griddepcontrol.wait, once a tile's coordinate is computed.

    No access to global memory may come before it.
    """
    if opaque_true(*coord):
        cute.arch.griddepcontrol_wait()
