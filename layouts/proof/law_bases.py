"""What laws have in common: two chains agree, a result satisfies its law, every part holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import LayoutError
from ..values.symbols import free_symbols
from ..values.tuples import idx2crd, text
from ..values.value import Value
from .agreement import Undecided, agree, written
from .certificates import Claim, Holds, SameFunction, Stages, evaluate
from .prove import Counterexample, Proof, Statement

__all__ = ["ChainsAgree", "EveryPart", "OfResult", "without_result"]


class ChainsAgree(Value):
    """A law that two chains of functions agree."""

    __slots__ = ()

    def sides(self) -> tuple[Stages, Stages, Any]:
        """Left, right, and the number of indices; raises `LayoutError` if there is no result."""
        raise NotImplementedError

    def shape(self) -> Any:
        """The shape of the counterexample's coordinate."""
        raise NotImplementedError

    def decide(self) -> Proof:
        """Decided by `agree`."""
        try:
            left, right, count = self.sides()
        except LayoutError as error:
            return without_result(self, error)
        found = agree(left, right, count)
        if found.certificate is None:
            return _differs(self, left, right, found.index)
        return Proof(self, True, found.reason, None, (found.certificate,))

    def follows_from(self) -> list[list[Claim]]:
        """The two sides are the same function."""
        return [[SameFunction(*self.sides())]]

    def refuted_by(self, found: Counterexample) -> bool:
        """The two sides, computed again, differ."""
        left, right, count = self.sides()
        values = [evaluate(side, found.index) for side in (left, right)]
        return bool(
            found.index < count and values == [found.left, found.right] and values[0] != values[1]
        )


def _differs(law: ChainsAgree, left: Stages, right: Stages, index: Any) -> Proof:
    coord, values = idx2crd(index, law.shape()), [evaluate(side, index) for side in (left, right)]
    reason = (
        f"at index {index}, coordinate {text(coord)}, {written(left)} is {text(values[0])} and "
        f"{written(right)} is {text(values[1])}"
    )
    found = Counterexample(index, coord, *values)
    return Proof(law, False, (reason,), found)


def without_result(law: Any, error: LayoutError) -> Proof:
    """The refutation of a law whose operation has no result; with symbols it is undecided."""
    if free_symbols(law) or isinstance(error, Undecided):
        raise Undecided(str(error)) from None
    found = None if error.counterexample is None else Counterexample(*error.counterexample)
    return Proof(law, False, (str(error),), found)


class OfResult(Value):
    """A statement about the result R of an operation on operands.

    The fields are the operands and then R, which is None for what the operation returns.
    """

    __slots__ = ()
    r: Any
    #: The operation whose result this is about.
    operation: Callable[..., Any]

    def result(self) -> Any:
        """R as given, or what the operation returns."""
        *operands, given = self._fields()
        return type(self).operation(*operands) if given is None else given

    def description(self) -> str:
        """What R is, in the operands."""
        raise NotImplementedError

    def __str__(self) -> str:
        try:
            return f"{self.result()} is {self.description()}"
        except LayoutError:
            return f"a layout is {self.description()}"

    def __repr__(self) -> str:
        given = list(self._fields())
        while given and given[-1] is None:
            given.pop()
        return f"{type(self).__name__}({', '.join(map(repr, given))})"


class EveryPart(Value):
    """A statement that holds exactly if each of its parts does."""

    __slots__ = ()

    def parts(self) -> list[Statement]:
        """The statements; raises `LayoutError` if there is no result."""
        raise NotImplementedError

    def decide(self) -> Proof:
        """Decide the parts one after the other; the first that fails refutes it."""
        try:
            parts = self.parts()
        except LayoutError as error:
            return without_result(self, error)
        proofs = [part.decide() for part in parts]
        for proof in proofs:
            if not proof:
                reason = (f"false: {proof.statement}", *proof.reason)
                return Proof(self, False, reason, proof.counterexample)
        reason = tuple(line for proof in proofs for line in _with_heading(proof))
        return Proof(self, True, reason, None, tuple(map(Part, proofs)))

    def follows_from(self) -> list[list[Claim]]:
        """Every part holds."""
        return [[Holds(part) for part in self.parts()]]

    def refuted_by(self, found: Any) -> bool:
        """It refutes a part."""
        return any(part.refuted_by(found) for part in self.parts())


def _with_heading(proof: Proof) -> list[str]:
    """The statement, and its reason indented below it."""
    if not proof.reason:
        return [str(proof.statement)]
    return [f"{proof.statement}:", *(f"  {line}" for line in proof.reason)]


class Part(Value):
    """A certificate that is the whole proof of another statement."""

    __slots__ = __match_args__ = ("proof",)
    proof: Proof

    def __init__(self, proof: Proof) -> None:
        self._set(proof)

    @property
    def claim(self) -> Holds:
        """The statement holds."""
        return Holds(self.proof.statement)

    def verify(self) -> bool:
        """It is a proof, not a refutation, and verifies."""
        return self.proof.holds and self.proof.verify()
