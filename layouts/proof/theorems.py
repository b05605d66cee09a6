"""Theorems about swizzles, for all B, M and S at once, and for given ones.

Let Z be the B bits from ``M + max(0, -S)`` up.  ``Swizzle(B, M, S)`` adds bit ``j + S`` to bit j,
modulo 2, for each j in Z, and keeps all other bits.  Its laws hold because certain bits do not
exist, such as a bit of Z that is read from a bit of Z.  Such a bit would satisfy linear
constraints, each of the form "an expression is at least 0".  By Farkas' lemma they have no solution
if their sum with some multipliers is negative; the multipliers are the witness, here all 1.

>>> from layouts import prove
>>> print(prove(SwizzleInvolution()))
proved: T(T(x)) == x for every x and T = Swizzle(B,M,S) with any B, M and |S| >= B
  bit j of T(T(x)) is x[j], plus 2*x[j+S] if j is in Z, plus x[j+2*S] if j and j+S are in Z.
  Modulo 2 the second term is 0. The third never occurs:
  S >= 0: no bit of Z is read from a bit of Z. Otherwise j-M >= 0, M+B-1-(j+S) >= 0 and S-B >=
  0, but their sum is -1
  S = -U < 0: no bit of Z is read from a bit of Z. Otherwise M+U+B-1-j >= 0, (j-U)-(M+U) >= 0
  and U-B >= 0, but their sum is -1
"""

from __future__ import annotations

from typing import Any

from ..errors import LayoutError
from ..values.swizzle import Swizzle
from .certificates import (
    Certificate,
    Claim,
    EqualModulo2,
    Farkas,
    Infeasible,
    Permutation,
    combination,
)
from .prove import Proof, Statement

__all__ = ["SwizzleAlignment", "SwizzleInvolution"]

#: A bit j of Z that reads a bit of Z would read j+S (S >= 0) or j-U (S = -U < 0).
NOT_READ_FROM_ITSELF = (
    Infeasible("S >= 0: no bit of Z is read from a bit of Z", ("j-M", "M+B-1-(j+S)", "S-B")),
    Infeasible(
        "S = -U < 0: no bit of Z is read from a bit of Z",
        ("M+U+B-1-j", "(j-U)-(M+U)", "U-B"),
    ),
)

#: Bit j of T(T(x)), where z and w say whether j and j+S are in Z, and a, b, c are x[j], x[j+S] and
#: x[j+2*S].
TWICE = EqualModulo2("a + z*b + z*(b + w*c)", "a", ("z*w",))

#: The low M bits are not in Z.
LOW_BITS_STAY = (
    Infeasible("S >= 0: no bit below M is in Z", ("M-1-j", "j-M")),
    Infeasible("S = -U < 0: no bit below M is in Z", ("M-1-j", "j-(M+U)", "U")),
)

#: The bits from M + B + max(0, -S) up are not in Z.
HIGH_BITS_STAY = (
    Infeasible("S >= 0: no bit from M+B up is in Z", ("j-(M+B)", "M+B-1-j")),
    Infeasible("S = -U < 0: no bit from M+B+U up is in Z", ("j-(M+B+U)", "M+U+B-1-j")),
)

#: The bits from M + B + |S| up are not read.
HIGHER_BITS_UNREAD = (
    Infeasible("S >= 0: no bit from M+B+S up is read", ("j-(M+B+S)", "M+S+B-1-j")),
    Infeasible("S = -U < 0: no bit from M+B+U up is read", ("j-(M+B+U)", "M+B-1-j", "U")),
)


class _OfSwizzles(Statement):
    """A theorem about `swizzle`, or about all swizzles if it is None."""

    __slots__ = __match_args__ = ("swizzle",)
    swizzle: Swizzle | None

    def __init__(self, swizzle: Swizzle | None = None) -> None:
        self._set(swizzle)
        if swizzle is not None and not isinstance(swizzle, Swizzle):
            raise LayoutError(f"{self!r}: it is about a Swizzle, or about all without one")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({'' if self.swizzle is None else repr(self.swizzle)})"

    def lemmas(self) -> tuple[Infeasible, ...]:
        """The bits that do not exist."""
        raise NotImplementedError

    def identities(self) -> tuple[EqualModulo2, ...]:
        """The identities over GF(2) that the theorem uses."""
        return ()

    def opening(self) -> str:
        """Why the lemmas are enough."""
        raise NotImplementedError

    def decide(self) -> Proof:
        """By the lemmas, which hold for all B, M, S; for a given swizzle, by its matrix as well."""
        reason = (self.opening(), *map(_reason, self.lemmas()))
        certificates = tuple(Certificate(claim, _witness(claim)) for claim in self.claims())
        return Proof(self, True, reason, None, certificates)

    def claims(self) -> list[Claim]:
        """Every lemma and identity; for a given swizzle, that it permutes a block."""
        claims: list[Claim] = [*self.lemmas(), *self.identities()]
        if self.swizzle is not None:
            claims.append(Permutation(self.swizzle, 0, self.swizzle.block))
        return claims


def _witness(claim: Claim) -> Farkas | None:
    return Farkas((1,) * len(claim.constraints)) if isinstance(claim, Infeasible) else None


def _reason(lemma: Infeasible) -> str:
    *most, last = [f"{constraint} >= 0" for constraint in lemma.constraints]
    return f"{lemma.name}. Otherwise {', '.join(most)} and {last}, but their sum is {_sum(lemma)}"


def _sum(lemma: Infeasible) -> Any:
    return combination(lemma.constraints, (1,) * len(lemma.constraints))


class SwizzleInvolution(_OfSwizzles):
    """``T(T(x)) == x`` for every x from 0 up."""

    __slots__ = ()

    def sentence(self) -> str:
        """T is its own inverse."""
        return f"T(T(x)) == x for every x and T = {_named(self.swizzle)}"

    def lemmas(self) -> tuple[Infeasible, ...]:
        """No bit of Z is read from a bit of Z."""
        return NOT_READ_FROM_ITSELF

    def identities(self) -> tuple[EqualModulo2, ...]:
        """Bit j of T(T(x))."""
        return (TWICE,)

    def opening(self) -> str:
        """Bit j of T(T(x))."""
        return (
            "bit j of T(T(x)) is x[j], plus 2*x[j+S] if j is in Z, plus x[j+2*S] if j and j+S are "
            "in Z. Modulo 2 the second term is 0. The third never occurs:"
        )


class SwizzleAlignment(_OfSwizzles):
    """T keeps aligned runs of ``2**M`` offsets, permutes each aligned block of
    ``2**(M+B+max(0,-S))`` offsets, and has the period ``P = 2**(M+B+|S|)``: ``T(x + k*P) == T(x) +
    k*P``."""

    __slots__ = ()

    def sentence(self) -> str:
        """What T keeps and permutes, and its period."""
        return (
            f"T keeps the low M bits, permutes each aligned block of 2**(M+B+max(0,-S)) offsets, "
            f"and has the period 2**(M+B+|S|), for T = {_named(self.swizzle)}"
        )

    def lemmas(self) -> tuple[Infeasible, ...]:
        """No bit below or above Z changes, and none above the highest source is read."""
        return LOW_BITS_STAY + HIGH_BITS_STAY + HIGHER_BITS_UNREAD

    def opening(self) -> str:
        """Which bits change, and which are read."""
        return "only the bits j of Z change, and only the bits j+S are read:"


def _named(swizzle: Swizzle | None) -> str:
    return "Swizzle(B,M,S) with any B, M and |S| >= B" if swizzle is None else str(swizzle)
