"""CuTe's layout algebra in pure Python: layouts, swizzles, and the operations on them.

>>> from layouts import Layout, Swizzle, composition
>>> tile = composition(Swizzle(3, 3, 3), Layout((8, 64), (64, 1)))
>>> print(tile, tile(1, 0))
S<3,3,3> o 0 o (8,64):(64,1) 72
"""

from . import banks, gf2
from .algebra import (
    coalesce,
    complement,
    composition,
    logical_divide,
    right_inverse,
    zipped_divide,
)
from .atoms import MatrixAtom, ldmatrix, stmatrix, wgmma_accumulator
from .banks import Wavefronts, wavefronts
from .descriptor import WgmmaDescriptor, wgmma_descriptor
from .draw import Table, compare, table, table_tv
from .errors import LayoutError
from .layout import Layout, cosize, flatten, make_layout, make_ordered_layout
from .notation import parse
from .partition import Tile, local_tile
from .proof import Bijective, ConflictFree, Injective, Proof, prove
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

__version__ = "0.1.0"

__all__ = [
    "Bijective",
    "ComposedLayout",
    "ConflictFree",
    "Injective",
    "Layout",
    "LayoutError",
    "MatrixAtom",
    "Proof",
    "Swizzle",
    "Table",
    "Tile",
    "Wavefronts",
    "WgmmaDescriptor",
    "banks",
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
    "flatten",
    "gf2",
    "idx2crd",
    "ldmatrix",
    "local_tile",
    "logical_divide",
    "make_layout",
    "make_ordered_layout",
    "parse",
    "product",
    "prove",
    "rank",
    "right_inverse",
    "size",
    "stmatrix",
    "table",
    "table_tv",
    "unflatten",
    "wavefronts",
    "weakly_congruent",
    "wgmma_accumulator",
    "wgmma_descriptor",
    "zipped_divide",
]
