"""The statement that two layouts are the same function of the index."""

from __future__ import annotations

from typing import Any

from ..values.arith import equal
from ..values.layout import Layout
from ..values.stride import kind
from ..values.swizzle import ComposedLayout, layout_for
from ..values.symbols import free_symbols, plain
from ..values.tuples import idx2crd, leaves, size, text
from .agreement import Undecided, floors
from .certificates import Claim, Stages, stages_of
from .law_bases import ChainsAgree
from .prove import Counterexample, Proof, prove

__all__ = ["Equivalent", "equivalent"]


def equivalent(a: Layout | ComposedLayout, b: Layout | ComposedLayout) -> Proof:
    """Whether `a` and `b` are the same function of the index, whatever their shapes; a `Proof`.

    >>> bool(equivalent(Layout((4, 2)), Layout(8))), Layout((4, 2)) == Layout(8)
    (True, False)
    >>> print(equivalent(Layout((4, 1), (1, 0)), Layout(4)))
    proved: (4,1):(1,0) and 4:1 are the same function of the index
      as sums of floor(i/P) with P below the size, (4,1):(1,0) and 4:1 are both i
      beyond the size they differ: at index 4 the first is 0, the second 4
    """
    return prove(Equivalent(a, b))


class Equivalent(ChainsAgree):
    """`a` and `b` have the same size, and the same value at every index."""

    __slots__ = __match_args__ = ("a", "b")
    a: Layout | ComposedLayout
    b: Layout | ComposedLayout

    def __init__(self, a: Layout | ComposedLayout, b: Layout | ComposedLayout) -> None:
        self._set(layout_for("Equivalent", a), layout_for("Equivalent", b))

    def __str__(self) -> str:
        return f"{self.a} and {self.b} are the same function of the index"

    def sides(self) -> tuple[Stages, Stages, Any]:
        """The two layouts."""
        return stages_of(self.a), stages_of(self.b), plain(size(self.a))

    def shape(self) -> Any:
        """The shape of the first."""
        return self.a.shape

    def decide(self) -> Proof:
        """Decided as every law; the reason adds where they differ beyond the size."""
        sizes = [plain(size(layout)) for layout in (self.a, self.b)]
        if not equal(*sizes):
            if free_symbols(self):
                raise Undecided(f"the sizes {sizes[0]} and {sizes[1]} are not shown to be equal")
            return _sizes_differ(self, *sizes)
        proof = super().decide()
        beyond = _beyond(self.a, self.b) if proof else ()
        return Proof(self, proof.holds, (*proof.reason, *beyond), *proof._fields()[3:])

    def follows_from(self) -> list[list[Claim]]:
        """They are the same function, and have the same size."""
        return super().follows_from() if equal(size(self.a), size(self.b)) else []

    def refuted_by(self, found: Counterexample) -> bool:
        """They differ at the index, or only one of them has it."""
        if found.left is None or found.right is None:
            sizes = sorted((size(self.a), size(self.b)))
            return bool(sizes[0] <= found.index < sizes[1])
        return super().refuted_by(found)


def _sizes_differ(law: Equivalent, a: int, b: int) -> Proof:
    index = min(a, b)
    longer = law.b if a < b else law.a
    coord, value = idx2crd(index, longer.shape), longer(index)
    reason = f"their sizes are {a} and {b}: only {longer} has the index {index}, with {text(value)}"
    pair = (None, value) if a < b else (value, None)
    return Proof(law, False, (reason,), Counterexample(index, coord, *pair))


def _beyond(a: Any, b: Any) -> tuple[str, ...]:
    """Where two layouts that agree below their size first differ beyond it."""
    if not all(isinstance(x, Layout) and kind(leaves(x.stride)) is None for x in (a, b)):
        return ()
    if free_symbols((a, b)):
        return ()
    one, other = floors(a), floors(b)
    places = [p for p in {**one, **other} if one.get(p, 0) != other.get(p, 0)]
    if not places:
        return ()
    at = min(places)
    return (
        f"beyond the size they differ: at index {at} the first is {text(a(at))}, the second "
        f"{text(b(at))}",
    )
