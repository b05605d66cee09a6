"""The arithmetic of `layouts.arith` on sympy expressions in positive integer symbols."""

from __future__ import annotations

from typing import Any

from .errors import LayoutError

__all__ = ["ceil_div", "divided", "divides", "equal", "less"]


def divided(n: Any, d: Any) -> tuple[Any, Any]:
    """(q, r) with ``n == q * d + r``."""
    raise _refusal(n, d)


def divides(d: Any, n: Any) -> bool:
    """Whether it is proved that `n` is a multiple of `d`."""
    raise _refusal(n, d)


def less(a: Any, b: Any) -> bool:
    """Whether it is proved that ``a < b``."""
    raise _refusal(a, b)


def equal(a: Any, b: Any) -> bool:
    """Whether it is proved that ``a == b``."""
    raise _refusal(a, b)


def ceil_div(n: Any, d: Any) -> Any:
    """`n` divided by `d`, rounded up."""
    raise _refusal(n, d)


def _refusal(a: Any, b: Any) -> LayoutError:
    return LayoutError(
        f"{a} and {b} must be integers known now; give the symbols values first"
    )
