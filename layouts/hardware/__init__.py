"""What the hardware does with layouts: instructions, fragments, banks, sectors, synthesis."""

from .atoms import (
    MMA,
    QUAD_PAIRS,
    MatrixAtom,
    MmaAtom,
    ldmatrix,
    mma,
    stmatrix,
    volta_mma,
    wgmma_accumulator,
    wgmma_operand,
)
from .banks import Access, BankReport, banks
from .conflict_free import ConflictFree
from .descriptor import WgmmaDescriptor, wgmma_descriptor, wgmma_smem_atom
from .instructions import INSTRUCTIONS, Instruction, instruction
from .sectors import Sectors, sectors
from .staging import StagingReport, staging_report
from .synthesis import NoSwizzle, Padding, SwizzleChoice, padding_for, swizzle_for
from .wavefronts import Wavefronts, wavefronts

__all__ = [
    "INSTRUCTIONS",
    "MMA",
    "QUAD_PAIRS",
    "Access",
    "BankReport",
    "ConflictFree",
    "Instruction",
    "MatrixAtom",
    "MmaAtom",
    "NoSwizzle",
    "Padding",
    "Sectors",
    "StagingReport",
    "SwizzleChoice",
    "Wavefronts",
    "WgmmaDescriptor",
    "banks",
    "instruction",
    "ldmatrix",
    "mma",
    "padding_for",
    "sectors",
    "staging_report",
    "stmatrix",
    "swizzle_for",
    "volta_mma",
    "wavefronts",
    "wgmma_accumulator",
    "wgmma_descriptor",
    "wgmma_operand",
    "wgmma_smem_atom",
]
