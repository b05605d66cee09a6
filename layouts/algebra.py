"""The algebra: operations that make layouts from layouts.

Each gives a result only if it provably satisfies the law in its docstring; otherwise it raises
`LayoutError` with the condition that fails and the smallest index that shows it.  Where C++ CuTe
and the CuTe DSL are right, the result is structurally theirs.

    core      coalesce, filter, composition            what all others stand on
    gaps      complement                               what a layout leaves out
    gather    logical, zipped, tiled, flat             halves of modes, mode by mode
    divide    logical, zipped, tiled, flat             cutting into tiles
    product   logical, ..., blocked, raked             repeating
    inverse   right, left, nullspace, max_common_*     going back
    units     upcast, downcast, recast                 counting in another unit
    slicing   slice_, dice, slice_and_offset           keeping some modes
"""

from __future__ import annotations

from .core import Tiler, coalesce, composition, filter
from .divide import flat_divide, logical_divide, tiled_divide, zipped_divide
from .gaps import complement
from .inverse import (
    left_inverse,
    max_common_layout,
    max_common_vector,
    nullspace,
    right_inverse,
)
from .product import (
    blocked_product,
    flat_product,
    logical_product,
    raked_product,
    tile_to_shape,
    tiled_product,
    zipped_product,
)
from .slicing import dice, slice_, slice_and_offset
from .units import downcast, recast, upcast

__all__ = [
    "Tiler",
    "blocked_product",
    "coalesce",
    "complement",
    "composition",
    "dice",
    "downcast",
    "filter",
    "flat_divide",
    "flat_product",
    "left_inverse",
    "logical_divide",
    "logical_product",
    "max_common_layout",
    "max_common_vector",
    "nullspace",
    "raked_product",
    "recast",
    "right_inverse",
    "slice_",
    "slice_and_offset",
    "tile_to_shape",
    "tiled_divide",
    "tiled_product",
    "upcast",
    "zipped_divide",
    "zipped_product",
]
