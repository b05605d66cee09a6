"""The operations, each with its random arguments and its post-condition.

check       what the post-conditions are written with
values      values, sizes and coordinates; parsing
composing   coalesce, filter, composition
tiling      complement, divides, products, tile_to_shape
parts       slices, tiles of a block, elements of a thread
inverses    inverses, nullspace, common vectors
units       upcast, downcast, recast
memory      wavefronts, sectors
proofs      prove
shown       postcondition, explain, table
"""

from . import composing, inverses, memory, parts, proofs, shown, tiling, units, values
from .check import LAWS

__all__ = [
    "LAWS",
    "composing",
    "inverses",
    "memory",
    "parts",
    "proofs",
    "shown",
    "tiling",
    "units",
    "values",
]
