"""One operation, step by step, as a teacher would write it.

    views         what the picture of an operation shows, and the table of the pictures
    steps         `explain`, and the table of what it explains
    checks        the last line of an explanation: the law, checked on the result
    by_mode       one operation on every mode; tiles and rests gathered
    apply         a swizzle or a layout applied to an index
    composition   composition
    coalesce      coalesce, filter
    complement    complement
    inverse       right and left inverse, nullspace, max_common_*
    divide        logical_divide and its gathered forms
    product       logical_product and its gathered forms, blocked, raked, tile_to_shape
    recast        upcast, downcast, recast
    bit_matrix    to_bits, from_bits
    coordinates   idx2crd, crd2idx, crd2crd
    slice         slice_, dice, slice_and_offset
    rearrange     select, group_modes, append, prepend, replace
    partition     local_tile, local_partition

Each file registers its explanations, and its views, when it is imported.
"""

from . import apply as apply
from . import bit_matrix as bit_matrix
from . import coalesce as coalesce
from . import complement as complement
from . import composition as composition
from . import coordinates as coordinates
from . import divide as divide
from . import inverse as inverse
from . import partition as partition
from . import product as product
from . import rearrange as rearrange
from . import recast as recast
from . import slice as slice
from .steps import explain

__all__ = ["explain"]
