"""Steps that go through the modes of a layout, or gather them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import algebra
from ..values.arith import equal
from ..values.modes import Mode, assembled
from ..values.swizzle import ComposedLayout
from ..values.symbols import plain, plain_if_symbolic
from ..values.tuples import text
from .steps import Lines, explain, substep

__all__ = ["coalesced", "each_mode", "gathered", "in_outer", "listed", "merged"]


def listed(modes: Sequence[Mode]) -> str:
    """`modes` as CuTe writes them.

    >>> listed([(4, 8), (8, 1)]), listed([])
    ('4:8 8:1', 'none, which is 1:0')
    """
    return " ".join(f"{s}:{text(d)}" for s, d in modes) or "none, which is 1:0"


def each_mode(
    lines: Lines, op: Callable[..., Any], modes: Sequence[Any], tilers: Sequence[Any]
) -> None:
    """``op(mode, tiler)`` for each mode that has a tiler."""
    for k, (mode, tiler) in enumerate(zip(modes, tilers, strict=False)):
        if tiler is None:
            lines.append(f"mode {k}: {mode} stays as it is")
        else:
            steps = explain(op, mode, tiler)
            lines += [f"mode {k}:", f"  {steps.heading()}"]
            lines += [f"    {line}" for line in steps.lines]
    for k in range(len(tilers), len(modes)):
        lines.append(f"mode {k}: {modes[k]} has no tiler")


def in_outer(lines: Lines, op: Callable[..., Any], layout: Any, *args: Any) -> bool:
    """Whether `layout` is composed; then `op` on its outer layout is explained."""
    if not isinstance(layout, ComposedLayout):
        return False
    lines.append(f"{layout.inner} and the offset {layout.offset} stay; the outer layout:")
    substep(lines, op, layout.outer, *args)
    return True


def gathered(logical: Callable[..., Any], where: str) -> Callable[[Lines, Any, Any, Any], None]:
    """The explainer of an operation that gathers the modes of `logical`; `where` says how."""

    def explainer(lines: Lines, result: Any, layout: Any, tiler: Any) -> None:
        found = substep(lines, logical, layout, tiler)
        if result is not None:
            lines.append(f"in {text(found)} {where}: {text(result)}")

    return explainer


def merged(lines: Lines, modes: Sequence[Mode]) -> list[Mode]:
    """The modes from left to right, each dropped, merged into the one before, or kept."""
    lines.append(f"the modes from left to right: {listed(modes)}")
    width = max((len(f"{s}:{text(d)}") for s, d in modes), default=0)
    done: list[Mode] = []
    for extent, stride in modes:
        name = f"{extent}:{text(stride)}"
        lines.append(f"  {name:<{width}}  {_merge(done, extent, stride)}")
    return done


def _merge(done: list[Mode], extent: Any, stride: Any) -> str:
    """Add a mode to `done`, and say how."""
    if equal(extent, 1):
        return "has one entry, so its stride is never used: dropped"
    if not done:
        done.append((extent, stride))
        return "is the first mode"
    before, step = done[-1]
    end = plain_if_symbolic(before * step)
    if not equal(stride, end):
        done.append((extent, stride))
        return (
            f"has the stride {text(stride)}, but {before}:{text(step)} would continue with "
            f"{text(end)}: a mode of its own"
        )
    done[-1] = (plain(before * extent), step)
    return (
        f"continues where {before}:{text(step)} ends, {text(stride)} = {before}*{text(step)}: "
        f"merged into {done[-1][0]}:{text(step)}"
    )


def coalesced(lines: Lines, modes: Sequence[Mode], result: Any) -> None:
    """The modes that the steps have led to, as one layout; and if the operation goes further."""
    found = algebra.coalesce(assembled(modes))
    lines.append(f"R = {listed(modes)}, coalesced {found}")
    if result is not None and result != found:
        lines.append(f"the operation goes further than these steps: {text(result)}")
