"""CuTe's layout algebra in pure Python: layouts, swizzles, and the operations on them.

>>> from layouts import Layout, Swizzle, composition
>>> tile = composition(Swizzle(3, 3, 3), Layout((8, 64), (64, 1)))
>>> print(tile, tile(1, 0))
S<3,3,3> o 0 o (8,64):(64,1) 72
"""

from importlib import import_module

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
from .errors import LayoutError
from .layout import (
    Layout,
    cosize,
    flatten,
    make_identity_layout,
    make_layout,
    make_layout_like,
    make_ordered_layout,
)
from .partition import Tile, local_partition, local_tile
from .stride import F2, ArithTuple, E
from .swizzle import ComposedLayout, Swizzle
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

TYPE_CHECKING = (
    False  # type checkers take it for typing's, whose import costs as much as all of these
)
if TYPE_CHECKING:
    from . import gf2
    from .access import Access, BankReport, banks
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
    from .bank_model import Wavefronts, wavefronts
    from .coalescing import Sectors, sectors
    from .descriptor import WgmmaDescriptor, wgmma_descriptor, wgmma_smem_atom
    from .draw import Table, compare, table, table_tv
    from .explanation import explain
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
    from .notation import parse
    from .proof import Bijective, ConflictFree, Counterexample, Injective, Proof, prove
    from .staging import StagingReport, staging_report
    from .synthesis import NoSwizzle, Padding, SwizzleChoice, padding_for, swizzle_for
    from .theorems import SwizzleAlignment, SwizzleInvolution

__version__ = "0.1.0"

#: Module -> the names that it is loaded for, when one of them is first asked for.
_LATER = {
    "access": ("Access", "BankReport", "banks"),
    "atoms": (
        "MMA",
        "QUAD_PAIRS",
        "MatrixAtom",
        "MmaAtom",
        "ldmatrix",
        "mma",
        "stmatrix",
        "volta_mma",
        "wgmma_accumulator",
        "wgmma_operand",
    ),
    "bank_model": ("Wavefronts", "wavefronts"),
    "coalescing": ("Sectors", "sectors"),
    "descriptor": ("WgmmaDescriptor", "wgmma_descriptor", "wgmma_smem_atom"),
    "draw": ("Table", "compare", "table", "table_tv"),
    "explanation": ("explain",),
    "instructions": ("INSTRUCTIONS", "Instruction", "instruction"),
    "laws": (
        "ComplementLaws",
        "CompositionLaw",
        "DivideLaw",
        "Equivalent",
        "LeftInverseLaw",
        "ProductLaw",
        "RightInverseLaw",
        "equivalent",
    ),
    "notation": ("parse",),
    "proof": ("Bijective", "ConflictFree", "Counterexample", "Injective", "Proof", "prove"),
    "staging": ("StagingReport", "staging_report"),
    "synthesis": ("NoSwizzle", "Padding", "SwizzleChoice", "padding_for", "swizzle_for"),
    "theorems": ("SwizzleAlignment", "SwizzleInvolution"),
}
_HOME = {name: module for module, names in _LATER.items() for name in names}

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
    "MMA",
    "MatrixAtom",
    "MmaAtom",
    "NoSwizzle",
    "Padding",
    "ProductLaw",
    "Proof",
    "QUAD_PAIRS",
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
    "mma",
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
    "volta_mma",
    "wavefronts",
    "weakly_congruent",
    "wgmma_accumulator",
    "wgmma_descriptor",
    "wgmma_operand",
    "wgmma_smem_atom",
    "zipped_divide",
    "zipped_product",
]


def __getattr__(name: str) -> object:
    """The names that are loaded later, so that `import layouts` takes milliseconds."""
    if name == "gf2":
        return import_module(".gf2", __name__)
    if name not in _HOME:
        raise AttributeError(f"module 'layouts' has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f".{_HOME[name]}", __name__), name)
    return found
