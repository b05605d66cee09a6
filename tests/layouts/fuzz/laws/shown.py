"""What shows an operation: its post-condition as a statement, `explain`, and pictures."""

from __future__ import annotations

from random import Random
from typing import Any

import layouts as L
from layouts import LayoutError
from layouts.proof.postcondition import PROMISES

from .. import generate as g
from .check import LAWS, law, must, same, two

#: What `explain` explains.
EXPLAINED = {
    *("coalesce", "filter", "composition", "complement", "logical_divide", "zipped_divide"),
    *("tiled_divide", "flat_divide", "logical_product", "zipped_product", "tiled_product"),
    *("flat_product", "blocked_product", "raked_product", "tile_to_shape", "right_inverse"),
    *("left_inverse", "nullspace", "max_common_layout", "max_common_vector", "upcast"),
    *("downcast", "recast", "slice_", "dice", "slice_and_offset", "local_tile"),
    *("local_partition", "idx2crd", "crd2idx", "crd2crd"),
}


def _operation(rng: Random) -> tuple[Any, ...]:
    chosen = rng.choice([x for x in LAWS if x.name in EXPLAINED])
    return (getattr(L, chosen.name), *chosen.arguments(rng))


def prove_postcondition(operation: Any, *arguments: Any) -> Any:
    """What the operation promises for these arguments, decided."""
    return L.prove(L.postcondition(operation, *arguments))


def _promised(rng: Random) -> tuple[Any, ...]:
    chosen = rng.choice([x for x in LAWS if getattr(L, x.name, None) in PROMISES])
    return (getattr(L, chosen.name), *chosen.arguments(rng))


@law(prove_postcondition, _promised, "postcondition", weight=3, by_value=False)
def _(r: Any, operation: Any, *arguments: Any) -> None:
    """It holds, and verify accepts the proof."""
    must(r.holds, "refuted")
    must(r.verify(), "verify rejects it")


@law(L.explain, _operation, weight=4, by_value=False)
def _(r: Any, operation: Any, *arguments: Any) -> None:
    """The result is the operation's, or the last line says why there is none."""
    try:
        want = operation(*arguments)
    except LayoutError:
        want = None
    same(r.result, want, "result")
    must(bool(str(r)), "text")


def _drawn(r: Any, *_: Any) -> None:
    """It can be written as text, HTML, SVG and LaTeX."""
    must(all((str(r), r.html(), r.svg(), r.latex())), "text")


law(L.table, lambda rng: (g.any_layout(rng, 24),), weight=0.3, by_value=False)(_drawn)
law(L.compare, two(24, 24), weight=0.3, by_value=False)(_drawn)
law(L.table_tv, lambda rng: (g.any_layout(rng, 24), (4, 6)), weight=0.3, by_value=False)(_drawn)
