"""What a claim is, a certificate of it, a counterexample to it, and the check of a whole proof.

A statement says what it claims, and a certificate gives a witness for one claim.  The check takes
the claims from the statement, never from the certificates: a witness has to establish the claim as
the statement makes it.

>>> from layouts import Bijective, Layout, prove
>>> proof = prove(Bijective(Layout((4, 8), (8, 1))))
>>> proof.statement.claims()
[Bijection((Layout((4, 8), (8, 1)),), 0)]
>>> proof.certificates
(Certificate(Bijection((Layout((4, 8), (8, 1)),), 0), Chain((1, 0))),)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...values.symbols import free_symbols, substitute
from ...values.value import Value
from .definition import check_made, exact
from .numbers import Malformed

__all__ = ["Certificate", "Claim", "Counterexample", "proves", "refutes"]


class Claim(Value):
    """A property of chains or of numbers, written down in full."""

    __slots__ = ()

    def established_by(self, witness: Any) -> bool:
        """Whether `witness` shows that this holds; whoever made the witness is not trusted.

        It may raise anything on a witness that makes no sense.
        """
        raise NotImplementedError

    def counterexample(self, index: Any) -> tuple[Any, Any, Any, Any] | None:
        """(index, coordinate, left, right) if this fails at `index`, computed from the definition;
        None if it holds there."""
        return None


class Certificate(Value):
    """A claim with a witness that establishes it."""

    __slots__ = __match_args__ = ("claim", "witness")
    claim: Claim
    witness: Any

    def __init__(self, claim: Claim, witness: Any) -> None:
        self._set(claim, witness)

    def verify(self) -> bool:
        """Whether the witness establishes the claim; False if the witness makes no sense."""
        try:
            return self.claim.established_by(self.witness) is True
        except Exception:  # whatever a forged witness raises, it shows nothing
            return False


class Counterexample(Value):
    """Where a statement fails: an index, its coordinate, and the two values there.

    If two indices collide, `index` and `coordinate` are pairs, and `left` and `right` are their
    offsets.  `symbols` are the pairs (name, value) for which the statement fails.
    """

    __slots__ = __match_args__ = ("index", "coordinate", "left", "right", "symbols")
    index: Any
    coordinate: Any
    left: Any
    right: Any
    symbols: tuple[tuple[str, int], ...]

    def __init__(
        self,
        index: Any,
        coordinate: Any,
        left: Any,
        right: Any,
        symbols: tuple[tuple[str, int], ...] = (),
    ) -> None:
        self._set(index, coordinate, left, right, symbols)


# ------------------------------------------------------------------------------------ the check


def proves(statement: Any, certificates: Sequence[Certificate]) -> bool:
    """Whether every claim of `statement` is established by the witness of its certificate.

    The certificates are in the order of the claims, one for each.
    """
    try:
        _check_statement(statement)
        claims = statement.claims()
        return len(claims) == len(certificates) and all(
            Certificate(claim, certificate.witness).verify()
            for claim, certificate in zip(claims, certificates, strict=True)
        )
    except Exception:  # a statement without a meaning, or not a certificate
        return False


def refutes(statement: Any, found: Counterexample) -> bool:
    """Whether a claim of `statement` fails at the index of `found`, exactly as `found` says.

    Only the index and the values of the symbols are taken from `found`; the coordinate and both
    values are computed from the definition and compared with it.
    """
    try:
        _check_statement(statement)
        statement = _at_symbols(statement, found.symbols)
        return any(_fails(claim, found) for claim in statement.claims())
    except Exception:  # a statement without a meaning, or symbols without values
        return False


def _check_statement(statement: Any) -> None:
    """Raise unless `statement` is a statement of this library, as its constructor makes it."""
    if not isinstance(statement, Value):
        raise Malformed(f"{statement!r} is not a statement of this library")
    check_made(statement)


def _fails(claim: Claim, found: Counterexample) -> bool:
    """Whether `claim` fails as `found` says."""
    try:
        return exact(claim.counterexample(found.index), found._fields()[:4])
    except Exception:  # not an index of this claim
        return False


def _at_symbols(statement: Any, values: tuple[tuple[str, int], ...]) -> Any:
    """`statement` with these values for its symbols, all of them at least 1."""
    symbols = {str(symbol): symbol for symbol in free_symbols(statement)}
    given = dict(values)
    if set(given) != set(symbols) or not all(type(n) is int and n >= 1 for n in given.values()):
        raise ValueError(f"{values} does not give every symbol of {statement} a value")
    return substitute(statement.with_results(), {symbols[name]: n for name, n in given.items()})
