"""Certificates: what remains to be checked once a statement is decided, and the check itself.

A certificate is a witness: the digits, the quotients and remainders, the order of the modes, the
multipliers.  Its `claim` is what it establishes, and `verify` checks it from the witness alone.
This package is the part that must be trusted.  It shares no code with the search for a proof: sympy
expands the identities of polynomials and multiplies the matrices over GF(2), and offsets are
computed bit by bit from the definitions.

    claims       what a certificate can establish
    definition   the value of a layout or a swizzle at an index, from the definition
    polynomials  sympy: identities, signs, sums of floor(i/P)
    matrices     sympy: matrices over GF(2)
    same         two chains are the same function
    injective    a layout is injective or a bijection; a swizzle permutes a range
    theorem      no integers satisfy some constraints; an identity over GF(2); an inequality
    exhaustive   a claim checked at every index
"""

from __future__ import annotations

from .claims import (
    Bijection,
    Certificate,
    Claim,
    EqualModulo2,
    Holds,
    Infeasible,
    Injection,
    NotLess,
    Permutation,
    SameFunction,
)
from .definition import Stages, evaluate, index_count, modes_of, stages_of
from .exhaustive import Exhaustive
from .injective import Chain, FullRank, Growing, NoDifference, Permutes
from .matrices import matrix_of_columns
from .same import SameComponents, SameDigits, SameFloors, SameMatrix, SameStages
from .theorem import Cancels, Farkas, NeverNegative

__all__ = [
    "Bijection",
    "Cancels",
    "Certificate",
    "Chain",
    "Claim",
    "EqualModulo2",
    "Exhaustive",
    "Farkas",
    "FullRank",
    "Growing",
    "Holds",
    "Infeasible",
    "Injection",
    "NeverNegative",
    "NoDifference",
    "NotLess",
    "Permutation",
    "Permutes",
    "SameComponents",
    "SameDigits",
    "SameFloors",
    "SameFunction",
    "SameMatrix",
    "SameStages",
    "Stages",
    "evaluate",
    "index_count",
    "matrix_of_columns",
    "modes_of",
    "stages_of",
]
