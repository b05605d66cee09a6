"""Statements about layouts, how they are decided, their certificates, and the checker of these."""

from .laws import (
    ComplementLaws,
    CompositionLaw,
    DivideLaw,
    Equivalent,
    LeftInverseLaw,
    ProductLaw,
    RightInverseLaw,
    equivalent,
)
from .prove import Bijective, Counterexample, Injective, Proof, prove
from .theorems import SwizzleAlignment, SwizzleInvolution

__all__ = [
    "Bijective",
    "ComplementLaws",
    "CompositionLaw",
    "Counterexample",
    "DivideLaw",
    "Equivalent",
    "Injective",
    "LeftInverseLaw",
    "ProductLaw",
    "Proof",
    "RightInverseLaw",
    "SwizzleAlignment",
    "SwizzleInvolution",
    "equivalent",
    "prove",
]
