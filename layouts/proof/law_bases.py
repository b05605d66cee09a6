"""What laws have in common: two chains agree, a result satisfies its law, every part holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..errors import LayoutError, Undecided
from ..values.symbols import free_symbols
from ..values.tuples import text
from .agreement import agree, written
from .certificates import (
    Certificate,
    Claim,
    Counterexample,
    HasResult,
    SameFunction,
    Stages,
    check_chain,
)
from .prove import Proof, Statement

__all__ = ["AllOf", "ChainsAgree", "EveryPart", "OfResult", "failed"]


def failed(statement: Any, claim: Claim, index: Any, *reason: str) -> Proof:
    """The refutation of `statement`, since its `claim` fails at `index`."""
    found = claim.counterexample(index)
    if found is None:
        raise Undecided(f"{statement.sentence()}: index {index} is no counterexample to {claim}")
    return Proof(statement, False, reason, Counterexample(*found))


class ChainsAgree(Statement):
    """A law that two chains of functions agree."""

    __slots__ = ()

    def sides(self) -> tuple[Stages, Stages, Any]:
        """Left, right, and the number of indices; the indices have the coordinates of the left."""
        raise NotImplementedError

    def written_sides(self) -> tuple[str, str]:
        """Left and right as a message writes them."""
        left, right, _ = self.sides()
        return written(left), written(right)

    def conditions(self) -> list[tuple[Claim, Any, str]]:
        """What must hold besides: claims that need no witness, each with an index at which it would
        fail, and what to say then."""
        return []

    def claims(self) -> list[Claim]:
        """The conditions, and that the two sides are the same function."""
        return [*(claim for claim, _, _ in self.conditions()), SameFunction(*self.sides())]

    def decide(self) -> Proof:
        """Decided by `agree`, once the conditions are seen to hold."""
        left, right, count = self.sides()
        for chain in (left, right):
            check_chain(chain)
        conditions = self.conditions()
        for claim, index, why in conditions:
            if not claim.established_by(None):
                if free_symbols(self):
                    raise Undecided(f"{self.sentence()}: not shown, since {why}")
                return failed(self, claim, index, why)
        found, same = agree(left, right, count), SameFunction(left, right, count)
        if found.witness is None:
            return _differs(self, same, found.index)
        certificates = [Certificate(claim, None) for claim, _, _ in conditions]
        return Proof(
            self, True, found.reason, None, (*certificates, Certificate(same, found.witness))
        )


def _differs(law: ChainsAgree, same: SameFunction, index: Any) -> Proof:
    proof = failed(law, same, index)
    index, coord, left, right, _ = proof.counterexample._fields()  # type: ignore[union-attr]
    one, other = law.written_sides()
    reason = (
        f"at index {index}, coordinate {text(coord)}, {one} is {text(left)} and {other} is "
        f"{text(right)}"
    )
    return Proof(law, False, (reason,), proof.counterexample)


class EveryPart(Statement):
    """A statement that holds exactly if each of its parts does."""

    __slots__ = ()

    def parts(self) -> list[Statement]:
        """The statements."""
        raise NotImplementedError

    def claims(self) -> list[Claim]:
        """Those of every part."""
        return [claim for part in self.parts() for claim in part.claims()]

    def with_results(self) -> Statement:
        """Each part with its results."""
        try:
            return AllOf(part.with_results() for part in self.parts())
        except LayoutError:  # an operation refuses
            return self

    def decide(self) -> Proof:
        """Decide the parts one after the other; the first that fails refutes it."""
        proofs = []
        for part in self.parts():
            proof = part.decide()
            if not proof:
                reason = (f"false: {proof.statement.sentence()}", *proof.reason)
                return Proof(self, False, reason, proof.counterexample)
            proofs.append(proof)
        reason = tuple(line for proof in proofs for line in _with_heading(proof))
        certificates = tuple(each for proof in proofs for each in proof.certificates)
        return Proof(self, True, reason, None, certificates)


class AllOf(EveryPart):
    """All `statements` hold."""

    __slots__ = __match_args__ = ("statements",)
    statements: tuple[Statement, ...]

    def __init__(self, statements: Iterable[Statement]) -> None:
        self._set(tuple(statements))
        for each in self.statements:
            if not isinstance(each, Statement):
                raise LayoutError(f"AllOf: {each!r} is not a statement, such as Injective(layout)")

    def sentence(self) -> str:
        """Every sentence."""
        return ", and ".join(each.sentence() for each in self.statements) or "nothing is said"

    def parts(self) -> list[Statement]:
        """The statements."""
        return [*self.statements]


def _with_heading(proof: Proof) -> list[str]:
    """The statement, and its reason indented below it."""
    if not proof.reason:
        return [proof.statement.sentence()]
    return [f"{proof.statement.sentence()}:", *(f"  {line}" for line in proof.reason)]


class OfResult(Statement):
    """A statement about the result R of an operation on operands.

    The fields are the operands and then R, which is None for what the operation returns.  A law
    derives from this class first, and then from one that says what holds of R.
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

    def needed(self) -> list[Statement]:
        """Statements about the operands alone that hold if any layout satisfies this law."""
        return []

    def claims(self) -> list[Claim]:
        """What holds of R; if the operation refuses, that there is a result, and what it needs."""
        try:
            self.result()
        except LayoutError:
            claims = [claim for statement in self.needed() for claim in statement.claims()]
            return [HasResult(type(self).__name__, self._fields()), *claims]
        return super().claims()

    def decide(self) -> Proof:
        """Decide what holds of R.  If the operation refuses, the law is refuted where something
        fails that any result needs, and else it is undecided."""
        try:
            self.result()
        except LayoutError as error:
            return self._refused(error)
        return super().decide()

    def with_results(self) -> Statement:
        """The law of R as it is now; without a result, the law stays as it is."""
        try:
            result = self.result()
        except LayoutError:
            return self
        law: Any = type(self)
        *operands, _ = self._fields()
        return super(OfResult, law(*operands, result)).with_results()

    def _refused(self, error: LayoutError) -> Proof:
        if not free_symbols(self):
            for statement in self.needed():
                proof = statement.decide()
                if not proof:
                    reason = tuple(dict.fromkeys((str(error), *proof.reason)))
                    return Proof(self, False, reason, proof.counterexample)
        raise Undecided(str(error)) from None

    def sentence(self) -> str:
        """R is what the description says."""
        try:
            return f"{self.result()} is {self.description()}"
        except LayoutError:
            return f"a layout is {self.description()}"

    def __repr__(self) -> str:
        given = list(self._fields())
        while given and given[-1] is None:
            given.pop()
        return f"{type(self).__name__}({', '.join(map(repr, given))})"
