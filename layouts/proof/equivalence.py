"""The statement that two layouts are the same function of the index."""

from __future__ import annotations

from typing import Any

from ..values.layout import Layout
from ..values.stride import kind
from ..values.swizzle import ComposedLayout, layout_for
from ..values.symbols import free_symbols, plain
from ..values.tuples import leaves, size, text
from .agreement import floors
from .certificates import Claim, SameSize, Stages, stages_of
from .law_bases import ChainsAgree
from .prove import Proof, prove

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

    def sentence(self) -> str:
        """A and B are the same function."""
        return f"{self.a} and {self.b} are the same function of the index"

    def sides(self) -> tuple[Stages, Stages, Any]:
        """The two layouts."""
        return stages_of(self.a), stages_of(self.b), plain(size(self.a))

    def written_sides(self) -> tuple[str, str]:
        """The two layouts, as the sentence writes them."""
        return str(self.a), str(self.b)

    def conditions(self) -> list[tuple[Claim, Any, str]]:
        """They have the same size."""
        sizes = [plain(size(layout)) for layout in (self.a, self.b)]
        claim = SameSize(stages_of(self.a), stages_of(self.b))
        if free_symbols(sizes):
            return [(claim, None, f"their sizes are {sizes[0]} and {sizes[1]}")]
        longer = self.b if sizes[0] < sizes[1] else self.a
        index = min(sizes)
        why = f"their sizes are {sizes[0]} and {sizes[1]}: only {longer} has the index {index}"
        return [(claim, index, why)]

    def decide(self) -> Proof:
        """Decided as every law; the reason adds where they differ beyond the size."""
        proof = super().decide()
        if not proof:
            return proof
        return Proof(self, True, (*proof.reason, *_beyond(self.a, self.b)), *proof._fields()[3:])


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
