"""Statements about layouts, decided for all indices with a certificate or a counterexample.

prove         `prove`, and what a proof and a statement are
injective     a layout is injective
bijective     a layout is a bijection onto a range of offsets
laws          the laws of the operations: composition, inverses, complement, divide, product
theorems      theorems about all swizzles
equivalence   how it is decided that two chains of functions agree
digits        layouts read digit by digit
certificates  what remains to be checked, and the independent checker
"""

from .bijective import Bijective
from .injective import Injective
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
from .prove import Counterexample, Proof, prove
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
