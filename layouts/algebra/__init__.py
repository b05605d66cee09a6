"""The algebra: operations that make layouts from layouts.

Each operation returns a result only if the result provably satisfies the law in its docstring.
Otherwise it raises `LayoutError` with the condition that fails.  Where C++ CuTe and the CuTe DSL
are right, the result is structurally theirs.

    coalesce     coalesce, filter                         the same offsets in fewer modes
    composition  composition                              a layout after a layout; read it first
      compose_*  its steps, one for each kind of stride and for swizzles
      digits     its core: one layout read through another, digit by digit
      as_layout  a composed layout as an offset and a layout, where it is one
    complement   complement                               the offsets that a layout leaves free
    by_mode      by_mode, logical, zipped, tiled, flat    one operation on every mode
    divide       logical, zipped, tiled, flat             cutting into tiles
    product      logical, ..., blocked, raked             repeating
    inverse      right, left, nullspace                   from offsets to indices
    common       max_common_vector, max_common_layout     what one copy may move
    recast       upcast, downcast, recast                 another unit
    on_tensors   on_tensor                                an operation on the layout of a tensor
    slice        slice_, dice, slice_and_offset           some of the modes
    rearrange    select, group_modes, append, ...         modes in another order or nesting
    partition    local_tile, local_partition              the part of a block or of a thread
    injectivity  collision                                two indices with one offset
    gf2          matrix, rank, kernel, image              layouts as bit matrices
    bit_matrix   to_bits, from_bits                       bit matrices out and in
    named        named, NamedLayout                       modes with names; loaded when it is used
"""

from __future__ import annotations

from . import gf2
from .bit_matrix import from_bits, to_bits
from .coalesce import coalesce, filter
from .common import max_common_layout, max_common_vector
from .complement import complement
from .composition import composition
from .divide import flat_divide, logical_divide, tiled_divide, zipped_divide
from .inverse import left_inverse, nullspace, right_inverse
from .partition import Tile, local_partition, local_tile
from .product import (
    blocked_product,
    flat_product,
    logical_product,
    raked_product,
    tile_to_shape,
    tiled_product,
    zipped_product,
)
from .rearrange import append, group_modes, prepend, replace, select
from .recast import downcast, recast, upcast
from .slice import dice, slice_, slice_and_offset

__all__ = [
    "Tile",
    "append",
    "blocked_product",
    "coalesce",
    "complement",
    "composition",
    "dice",
    "downcast",
    "filter",
    "flat_divide",
    "flat_product",
    "from_bits",
    "gf2",
    "group_modes",
    "left_inverse",
    "local_partition",
    "local_tile",
    "logical_divide",
    "logical_product",
    "max_common_layout",
    "max_common_vector",
    "nullspace",
    "prepend",
    "raked_product",
    "recast",
    "replace",
    "right_inverse",
    "select",
    "slice_",
    "slice_and_offset",
    "tile_to_shape",
    "tiled_divide",
    "tiled_product",
    "to_bits",
    "upcast",
    "zipped_divide",
    "zipped_product",
]
