"""`prove` decides a statement about layouts, with the reason or a counterexample.

>>> from layouts import Bijective, Injective, Layout
>>> print(prove(Bijective(Layout((4, 8), (8, 1)))))
proved: (4,8):(8,1) is a bijection onto the offsets 0 to 31
  in the order 8:1 4:8 the modes form a chain: each stride is the product of the extents
  before it, 1 -> 8 -> 32, so each offset occurs exactly once
>>> print(prove(Injective(Layout((4, 2), (1, 2)))))
refuted: (4,2):(1,2) is injective
  coordinates (2,0) and (0,1) both have the offset 2

A proof carries certificates, and a refutation its counterexample.  `Proof.verify` checks either
without the code that found it, and trusts neither.  A statement with symbols is about all their
values:

>>> from layouts import symbols
>>> m, n = symbols("m n")
>>> proof = prove(Bijective(Layout((m, n), (n, 1))))
>>> print(proof, proof.verify())
proved: (m,n):(n,1) is a bijection onto the offsets 0 to m*n - 1
  in the order n:1 m:n the modes form a chain: each stride is the product of the extents
  before it, 1 -> n -> m*n, so each offset occurs exactly once True
"""

from __future__ import annotations

from textwrap import wrap
from typing import Any

from ..errors import LayoutError, Undecided
from ..values.steps import budget
from ..values.symbols import free_symbols, small_values, substitute
from ..values.value import Report, Value
from .certificates import Certificate, Claim, Counterexample, proves, refutes

__all__ = ["Counterexample", "Proof", "Statement", "prove"]

#: How many values of the symbols are tried before a statement is left undecided.
SMALL_VALUES = 30

#: How many steps of a search each of them may take.
SMALL_STEPS = 1 << 12


class Proof(Report):
    """The answer to a statement: whether it holds, and why, or where it fails.

    `reason` has one line for each step; the steps of a part are indented below it.  A proof is true
    if its statement holds; `verify` then checks the `certificates`, one for each claim of the
    statement, otherwise the `counterexample`.
    """

    __slots__ = __match_args__ = ("statement", "holds", "reason", "counterexample", "certificates")
    statement: Statement
    holds: bool
    reason: tuple[str, ...]
    counterexample: Counterexample | None
    certificates: tuple[Certificate, ...]

    def __init__(
        self,
        statement: Statement,
        holds: bool,
        reason: tuple[str, ...],
        counterexample: Counterexample | None = None,
        certificates: tuple[Certificate, ...] = (),
    ) -> None:
        self._set(statement, holds, reason, counterexample, certificates)

    def __bool__(self) -> bool:
        return self.holds

    def verify(self) -> bool:
        """Whether the statement follows from the certificates, or fails where the counterexample
        says, checked from the definitions alone (layouts/proof/certificates).

        Never raises: a certificate or a counterexample that makes no sense is False.

        >>> from layouts import Bijective, Layout
        >>> prove(Bijective(Layout((4, 8), (8, 1)))).verify()
        True
        """
        if self.holds is True:
            return proves(self.statement, self.certificates)
        return type(self.counterexample) is Counterexample and refutes(
            self.statement, self.counterexample
        )

    def __str__(self) -> str:
        lines = [f"{'proved' if self.holds else 'refuted'}: {self.statement.sentence()}"]
        for step in self.reason:
            margin = " " * (2 + len(step) - len(step.lstrip()))
            lines += wrap(step, 94, initial_indent="  ", subsequent_indent=margin)
        return "\n".join(lines)


class Statement(Value):
    """A claim about layouts that can be decided: a question, which `prove` answers.

    ``str`` asks it.  It has no truth value of its own: ``bool`` raises `LayoutError`.

    >>> from layouts import Injective, Layout
    >>> print(Injective(Layout((4, 8), (7, 1))))
    is it true that (4,8):(7,1) is injective?
    """

    __slots__ = ()

    def sentence(self) -> str:
        """What it claims, without saying whether that holds."""
        raise NotImplementedError

    def __str__(self) -> str:
        return f"is it true that {self.sentence()}?"

    def __bool__(self) -> bool:
        raise LayoutError(f"{self!r} is a question: prove(...) answers it, and its proof is a bool")

    def decide(self) -> Proof:
        """The proof or the refutation; `Undecided` if symbols leave it open."""
        raise NotImplementedError

    def claims(self) -> list[Claim]:
        """What it says, in full: it holds exactly if each of these does."""
        raise NotImplementedError

    def with_results(self) -> Statement:
        """The same statement, with the results of operations that it is about written into it.

        For a value of a symbol, it is about these results for that value.  The operation itself may
        give another result for the value, as right as this one.
        """
        return self


def prove(statement: Any) -> Proof:
    """Decide `statement`: a true `Proof` with its certificates, or a false one that shows where.

    A statement with symbols is about all their values.  If no method proves it, small values of the
    symbols are tried, and the first that fail refute it.

    Without a method that decides the statement, indices are tried one by one, as many as the
    `budget` allows.  Raises `Undecided`, naming what could not be shown, if there are more and none
    of those refutes it.

    >>> from layouts import Bijective, ComposedLayout, Layout, Swizzle
    >>> bool(prove(Bijective(ComposedLayout(Swizzle(3, 3, 3), 0, Layout((8, 64), (64, 1))))))
    True
    """
    if not isinstance(statement, Statement):
        raise LayoutError(
            f"prove: {statement!r} is not a statement; pass one, such as Injective(layout) or "
            f"Equivalent(A, B)"
        )
    names = free_symbols(statement)
    if not names:
        return statement.decide()
    try:
        proof = statement.decide()
        why = "it fails for some values of its symbols"
    except LayoutError as error:
        proof, why = None, str(error)
    return proof if proof else _tried(statement, names, why)


def _tried(statement: Any, names: tuple[Any, ...], why: str) -> Proof:
    """The refutation by small values of the symbols, or `Undecided`."""
    general, tried = statement.with_results(), 0
    for values in small_values(names, SMALL_VALUES):
        try:
            with budget(SMALL_STEPS):
                proof = substitute(general, values).decide()
        except LayoutError:
            continue
        tried += 1
        if not proof:
            return _refuted_at(statement, values, proof)
    raise Undecided(
        f"{statement.sentence()}: not decided. {why}. It holds for the {tried} small values of "
        f"{', '.join(map(str, names))} that were tried"
    )


def _refuted_at(statement: Any, values: dict[Any, int], proof: Proof) -> Proof:
    at = ", ".join(f"{name} = {value}" for name, value in values.items())
    found = proof.counterexample
    if found is not None:
        pairs = tuple((str(name), value) for name, value in values.items())
        found = Counterexample(found.index, found.coordinate, found.left, found.right, pairs)
    reason = (f"for {at} this is: {proof.statement.sentence()}", *proof.reason)
    return Proof(statement, False, reason, found)
