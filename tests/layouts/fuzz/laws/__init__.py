"""The operations, each with its random arguments and its post-condition.

check       what the post-conditions are written with
values      values, sizes and coordinates; parsing
composing   coalesce, filter, composition
tiling      complement, divides, products, tile_to_shape
parts       slices, tiles of a block, elements of a thread
inverses    inverses, nullspace, common vectors
units       upcast, downcast, recast
names       named modes, Triton's linear layouts
memory      wavefronts, sectors
proofs      prove
shown       postcondition, explain, table
"""

from . import composing, inverses, memory, names, parts, proofs, shown, tiling, units, values
from .check import LAWS

__all__ = [
    "LAWS",
    "composing",
    "inverses",
    "memory",
    "names",
    "parts",
    "proofs",
    "shown",
    "tiling",
    "units",
    "values",
]
