"""Arithmetic that ptxas must not move: it would do it later, where the result is used."""

import functools
import operator
from typing import Any


def computed(*numbers: Any) -> Any:
    """True for numbers of 0 or more. ptxas cannot know, and computes them before the branch.

    Otherwise it would divide where a tile's coordinate is used: between the end of a wait and the
    load or store that is waited for. Divided before, while the wait lasts, a product of 2 to 8 µs
    takes 0.1 to 0.4 µs less (docs/performance/notebook.md, "Divisions before the waits").

    >>> computed(3, 0), computed()
    (True, True)
    """
    return functools.reduce(operator.or_, numbers, 0) >= 0
