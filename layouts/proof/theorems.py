"""Theorems about swizzles, for all B, M and S at once, and for given ones.

Bit by bit, ``Swizzle(B, M, S)`` adds bit ``j + S`` to bit j, modulo 2, where j is in Z, the B bits
from ``M + max(0, -S)`` up, and leaves all other bits.  What its laws need is that some integers do
not exist, such as a bit of Z that is read from a bit of Z.  That a set of linear constraints, each
of which says that an expression is at least 0, has no solution is certified as Farkas says: by
multipliers with which the expressions add up to a negative number.

>>> from layouts.proof import prove
>>> print(prove(SwizzleInvolution()))
proved: T(T(x)) == x for T = Swizzle(B,M,S), all B, M and |S| >= B, and all x
  bit by bit, T(T(x)) has x[j] + 2*x[j+S] + x[j+2*S], modulo 2, where j and j+S are both in Z;
  2*x[j+S] is 0, and the last is not there:
  S >= 0: no bit of Z is read from a bit of Z, or j-M >= 0, M+B-1-(j+S) >= 0 and S-B >= 0,
  whose sum is -1
  S = -U < 0: no bit of Z is read from a bit of Z, or M+U+B-1-j >= 0, (j-U)-(M+U) >= 0 and U-B
  >= 0, whose sum is -1
"""

from __future__ import annotations

from typing import Any

from ..values.swizzle import Swizzle
from ..values.value import Value
from .certificate import Cancels, Farkas, Permutes, evaluate
from .prove import Counterexample, Proof

__all__ = ["SwizzleAlignment", "SwizzleInvolution"]

#: Z reads from Z: bit j of Z, from bit j+S of Z (S >= 0), or j-U of Z (S = -U < 0).
NOT_READ_FROM_ITSELF = (
    Farkas("S >= 0: no bit of Z is read from a bit of Z", ("j-M", "M+B-1-(j+S)", "S-B"), (1, 1, 1)),
    Farkas(
        "S = -U < 0: no bit of Z is read from a bit of Z",
        ("M+U+B-1-j", "(j-U)-(M+U)", "U-B"),
        (1, 1, 1),
    ),
)

#: Bit j of T(T(x)), where z and w say whether j and j+S are in Z, and a, b, c are x[j], x[j+S] and
#: x[j+2*S].
TWICE = Cancels("a + z*b + z*(b + w*c)", "a", ("z*w",))

#: The low M bits are not in Z.
LOW_BITS_STAY = (
    Farkas("S >= 0: no bit below M is in Z", ("M-1-j", "j-M"), (1, 1)),
    Farkas("S = -U < 0: no bit below M is in Z", ("M-1-j", "j-(M+U)", "U"), (1, 1, 1)),
)

#: The bits from M + B + max(0, -S) up are not in Z.
HIGH_BITS_STAY = (
    Farkas("S >= 0: no bit from M+B up is in Z", ("j-(M+B)", "M+B-1-j"), (1, 1)),
    Farkas("S = -U < 0: no bit from M+B+U up is in Z", ("j-(M+B+U)", "M+U+B-1-j"), (1, 1)),
)

#: The bits from M + B + |S| up are not read.
HIGHER_BITS_UNREAD = (
    Farkas("S >= 0: no bit from M+B+S up is read", ("j-(M+B+S)", "M+S+B-1-j"), (1, 1)),
    Farkas("S = -U < 0: no bit from M+B+U up is read", ("j-(M+B+U)", "M+B-1-j", "U"), (1, 1, 1)),
)


class _OfSwizzles(Value):
    """A theorem about `swizzle`, or about all swizzles if it is None."""

    __slots__ = __match_args__ = ("swizzle",)
    swizzle: Swizzle | None

    def __init__(self, swizzle: Swizzle | None = None) -> None:
        self._set(swizzle)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({'' if self.swizzle is None else repr(self.swizzle)})"

    def lemmas(self) -> tuple[Farkas, ...]:
        """What does not exist."""
        raise NotImplementedError

    def algebra(self) -> tuple[Cancels, ...]:
        """What is left to calculate, over GF(2)."""
        return ()

    def opening(self) -> str:
        """Why that is enough."""
        raise NotImplementedError

    def decide(self) -> Proof:
        """By the lemmas, which hold for all B, M, S; for a given swizzle, by its matrix as well."""
        told = (self.opening(), *map(_told, self.lemmas()))
        if self.swizzle is None:
            return Proof(self, True, told, None, self.lemmas() + self.algebra())
        matrix = Permutes(self.swizzle, 0, self.swizzle.block)
        return Proof(self, True, told, None, (*self.lemmas(), *self.algebra(), matrix))

    def follows_from(self) -> list[list[Any]]:
        """Every lemma."""
        needed = [lemma.claim for lemma in self.lemmas() + self.algebra()]
        if self.swizzle is not None:
            needed.append(("permutes", self.swizzle, 0, self.swizzle.block))
        return [needed]

    def refuted_by(self, found: Counterexample) -> bool:
        """A theorem has no counterexample, but a swizzle that is none would: T(T(x)) is not x."""
        if self.swizzle is None:
            return False
        twice = evaluate((self.swizzle, self.swizzle), found.index)
        return bool(twice != found.index)


def _told(lemma: Farkas) -> str:
    *most, last = [f"{constraint} >= 0" for constraint in lemma.constraints]
    return f"{lemma.name}, or {', '.join(most)} and {last}, whose sum is {lemma.total()}"


class SwizzleInvolution(_OfSwizzles):
    """``T(T(x)) == x`` for every x from 0 up."""

    __slots__ = ()

    def __str__(self) -> str:
        return f"T(T(x)) == x for T = {_named(self.swizzle)}, and all x"

    def lemmas(self) -> tuple[Farkas, ...]:
        """No bit that changes is read."""
        return NOT_READ_FROM_ITSELF

    def algebra(self) -> tuple[Cancels, ...]:
        """Bit j twice."""
        return (TWICE,)

    def opening(self) -> str:
        """Twice, bit by bit."""
        return (
            "bit by bit, T(T(x)) has x[j] + 2*x[j+S] + x[j+2*S], modulo 2, where j and j+S are "
            "both in Z; 2*x[j+S] is 0, and the last is not there:"
        )


class SwizzleAlignment(_OfSwizzles):
    """Runs of ``2**M`` stay together, each aligned block of ``2**(M+B+max(0,-S))`` is permuted in
    itself, and ``T(x + k*P) == T(x) + k*P`` for ``P = 2**(M+B+|S|)``."""

    __slots__ = ()

    def __str__(self) -> str:
        return (
            f"T = {_named(self.swizzle)} keeps the low M bits, permutes each aligned block of "
            f"2**(M+B+max(0,-S)) in itself, and has the period 2**(M+B+|S|)"
        )

    def lemmas(self) -> tuple[Farkas, ...]:
        """No low bit and no high bit changes, and none beyond is read."""
        return LOW_BITS_STAY + HIGH_BITS_STAY + HIGHER_BITS_UNREAD

    def opening(self) -> str:
        """What changes, and what is read."""
        return (
            "only the bits of Z change, and only those S above them are read; below and above "
            "these a bit is not touched:"
        )


def _named(swizzle: Swizzle | None) -> str:
    return "Swizzle(B,M,S), all B, M and |S| >= B" if swizzle is None else str(swizzle)
