"""What the hardware does with layouts.

Read in this order; each file imports from those above it only:

    facts            warps, banks, sectors: the numbers and their sources
    instructions     the shared-memory instructions: lanes, width, phases
    byte_addresses   lanes to byte addresses
    wavefronts       how many wavefronts an access to shared memory takes
    conflict_free    the statement that it takes one per phase, and its certificate
    sectors          how many sectors an access to global memory moves
    atoms            fragments: thread-value layouts of wgmma, mma, ldmatrix, stmatrix
    row_addresses    the row address that each lane supplies to ldmatrix or stmatrix
    banks            an instruction on a tile: which address each lane supplies, and the wavefronts
    padding          the padding that frees accesses of conflicts
    no_swizzle       the statement that no swizzle does, and its certificate
    synthesis        the smallest swizzle that does
    stmatrix_report  the accumulator staged by stmatrix: naive, padded, swizzled
    descriptor       the matrix descriptor of wgmma and its canonical layouts
"""

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
from .no_swizzle import NoSwizzle
from .padding import Padding, padding_for
from .sectors import Sectors, sectors
from .stmatrix_report import StagingReport, staging_report
from .synthesis import SwizzleChoice, swizzle_for
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
