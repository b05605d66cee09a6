"""Certificates: what remains to be checked once a statement is decided, and the check itself.

A statement makes claims (`Injection`, `SameFunction`), each with all its chains and numbers.  A
certificate gives a witness for one claim: the order of the modes, the digits, the quotients, the
multipliers.  A claim says itself which witnesses establish it.  This package is the part that must
be trusted, and it trusts nobody: it takes the claims from the statement, refuses every number that
is not whole, and computes everything else again.  It shares with the search for a proof what a
layout means (`definition`), and nothing more.

    claims       a claim, a certificate, a counterexample; the check of a whole proof
    numbers      whole numbers: ints, and polynomials with integer coefficients
    definition   the value of a chain of layouts, swizzles and offsets at an index
    bits         chains that are linear in the bits of the index
    same         two chains are the same function
    injective    a chain is injective or a bijection; a swizzle permutes a range
    quantities   inequalities, sizes, shapes; a chain is a layout
    theorem      no integers satisfy some constraints; an identity over GF(2)
"""

from __future__ import annotations

from .bits import affine, rank
from .claims import Certificate, Claim, Counterexample, proves, refutes
from .definition import (
    Stages,
    check_chain,
    component,
    coordinate,
    evaluate,
    exact,
    gives_coordinates,
    index_count,
    is_still,
    modes_of,
    stages_of,
    step,
    steps,
)
from .injective import (
    AsOne,
    Bijection,
    Chain,
    FullRank,
    Growing,
    Injection,
    NoDifference,
    Permutation,
    Swizzled,
    Weighted,
)
from .quantities import Equal, HasResult, IsLayout, NotLess, Refines, SameSize, refines
from .same import (
    Division,
    Exhaustive,
    SameBits,
    SameComponents,
    SameDigits,
    SameFloors,
    SameFunction,
    SameStages,
)
from .theorem import EqualModulo2, Farkas, Infeasible, combination

__all__ = [
    "AsOne",
    "Bijection",
    "Certificate",
    "Chain",
    "Claim",
    "Counterexample",
    "Division",
    "Equal",
    "EqualModulo2",
    "Exhaustive",
    "Farkas",
    "FullRank",
    "Growing",
    "HasResult",
    "Infeasible",
    "Injection",
    "IsLayout",
    "NoDifference",
    "NotLess",
    "Permutation",
    "Refines",
    "SameBits",
    "SameComponents",
    "SameDigits",
    "SameFloors",
    "SameFunction",
    "SameSize",
    "SameStages",
    "Stages",
    "Swizzled",
    "Weighted",
    "affine",
    "check_chain",
    "combination",
    "component",
    "coordinate",
    "evaluate",
    "exact",
    "gives_coordinates",
    "index_count",
    "is_still",
    "modes_of",
    "proves",
    "rank",
    "refines",
    "refutes",
    "stages_of",
    "step",
    "steps",
]
