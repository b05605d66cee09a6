"""CuTe's layout algebra in pure Python: layouts, swizzles, and the operations on them.

>>> from layouts import Layout, Swizzle, composition
>>> tile = composition(Swizzle(3, 3, 3), Layout((8, 64), (64, 1)))
>>> print(tile, tile(1, 0))
S<3,3,3> o 0 o (8,64):(64,1) 72
"""

from . import gf2
from .access import Access, BankReport, banks
from .algebra import (
    blocked_product,
    coalesce,
    complement,
    composition,
    dice,
    downcast,
    filter,
    flat_divide,
    flat_product,
    left_inverse,
    logical_divide,
    logical_product,
    max_common_layout,
    max_common_vector,
    nullspace,
    raked_product,
    recast,
    right_inverse,
    slice_,
    slice_and_offset,
    tile_to_shape,
    tiled_divide,
    tiled_product,
    upcast,
    zipped_divide,
    zipped_product,
)
from .atoms import MatrixAtom, ldmatrix, stmatrix, wgmma_accumulator
from .banks import Wavefronts, wavefronts
from .descriptor import WgmmaDescriptor, wgmma_descriptor
from .draw import Table, compare, table, table_tv
from .errors import LayoutError
from .explain import explain
from .instructions import INSTRUCTIONS, Instruction, instruction
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
from .layout import (
    Layout,
    cosize,
    flatten,
    make_identity_layout,
    make_layout,
    make_layout_like,
    make_ordered_layout,
)
from .notation import parse
from .partition import Tile, local_partition, local_tile
from .proof import Bijective, ConflictFree, Counterexample, Injective, Proof, prove
from .sectors import Sectors, sectors
from .staging import StagingReport, staging_report
from .stride import F2, ArithTuple, E
from .swizzle import ComposedLayout, Swizzle
from .synthesis import NoSwizzle, Padding, SwizzleChoice, padding_for, swizzle_for
from .theorems import SwizzleAlignment, SwizzleInvolution
from .tuples import (
    compatible,
    congruent,
    crd2crd,
    crd2idx,
    depth,
    idx2crd,
    product,
    rank,
    size,
    unflatten,
    weakly_congruent,
)

__version__ = "0.1.0"

__all__ = [
    "Access",
    "ArithTuple",
    "BankReport",
    "Bijective",
    "ComplementLaws",
    "ComposedLayout",
    "CompositionLaw",
    "ConflictFree",
    "Counterexample",
    "DivideLaw",
    "E",
    "Equivalent",
    "F2",
    "INSTRUCTIONS",
    "Injective",
    "Instruction",
    "Layout",
    "LayoutError",
    "LeftInverseLaw",
    "MatrixAtom",
    "NoSwizzle",
    "Padding",
    "ProductLaw",
    "Proof",
    "RightInverseLaw",
    "Sectors",
    "StagingReport",
    "Swizzle",
    "SwizzleAlignment",
    "SwizzleChoice",
    "SwizzleInvolution",
    "Table",
    "Tile",
    "Wavefronts",
    "WgmmaDescriptor",
    "banks",
    "blocked_product",
    "coalesce",
    "compare",
    "compatible",
    "complement",
    "composition",
    "congruent",
    "cosize",
    "crd2crd",
    "crd2idx",
    "depth",
    "dice",
    "downcast",
    "equivalent",
    "explain",
    "filter",
    "flat_divide",
    "flat_product",
    "flatten",
    "gf2",
    "idx2crd",
    "instruction",
    "ldmatrix",
    "left_inverse",
    "local_partition",
    "local_tile",
    "logical_divide",
    "logical_product",
    "make_identity_layout",
    "make_layout",
    "make_layout_like",
    "make_ordered_layout",
    "max_common_layout",
    "max_common_vector",
    "nullspace",
    "padding_for",
    "parse",
    "product",
    "prove",
    "raked_product",
    "rank",
    "recast",
    "right_inverse",
    "sectors",
    "size",
    "slice_",
    "slice_and_offset",
    "staging_report",
    "stmatrix",
    "swizzle_for",
    "table",
    "table_tv",
    "tile_to_shape",
    "tiled_divide",
    "tiled_product",
    "unflatten",
    "upcast",
    "wavefronts",
    "weakly_congruent",
    "wgmma_accumulator",
    "wgmma_descriptor",
    "zipped_divide",
    "zipped_product",
]
