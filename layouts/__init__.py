"""CuTe's layout algebra in pure Python: layouts, swizzles, and the operations on them.

>>> from layouts import Layout, Swizzle, composition
>>> tile = composition(Swizzle(3, 3, 3), Layout((8, 64), (64, 1)))
>>> print(tile, tile(1, 0))
S<3,3,3> o 0 o (8,64):(64,1) 72

Its packages, each of which imports only from those above it:

    values       what a layout is made of, and what it is
    algebra      layouts from layouts
    notation     text to layouts
    proof        statements about layouts, and how they are decided
    hardware     instructions, fragments, banks, sectors, swizzle synthesis
    tiled        tensors, tiled copies and tiled MMAs
    explanation  one operation, step by step
    draw         pictures: text, HTML, SVG, LaTeX
"""

from importlib import import_module

from . import algebra, values
from .algebra import *
from .errors import LayoutError as LayoutError
from .errors import Undecided as Undecided
from .values import *

TYPE_CHECKING = False  # type checkers take it for typing's, whose import costs as much as the rest
if TYPE_CHECKING:
    from .algebra.named import *
    from .draw import *
    from .explanation import *
    from .hardware.atoms import *
    from .hardware.banks import *
    from .hardware.conflict_free import *
    from .hardware.descriptor import *
    from .hardware.instructions import *
    from .hardware.mfma import *
    from .hardware.no_swizzle import *
    from .hardware.padding import *
    from .hardware.sectors import *
    from .hardware.stmatrix_report import *
    from .hardware.synthesis import *
    from .hardware.tensor_memory import *
    from .hardware.wavefronts import *
    from .notation import *
    from .notation.linear_layout import *
    from .proof.bijective import *
    from .proof.equivalence import *
    from .proof.injective import *
    from .proof.laws import *
    from .proof.postcondition import *
    from .proof.prove import *
    from .proof.theorems import *
    from .tiled.algorithm import *
    from .tiled.copy_atom import *
    from .tiled.tensor import *
    from .tiled.thread_value import *
    from .tiled.tiled_copy import *
    from .tiled.tiled_mma import *

__version__ = "0.1.0"

#: What loads when it is first used, by module: `import layouts` takes milliseconds.
_LAZY = {
    "algebra.named": "NamedLayout named",
    "draw": "Table compare table table_tv",
    "explanation": "explain",
    "hardware.atoms": (
        "MMA QUAD_PAIRS MatrixAtom MmaAtom ldmatrix mma stmatrix universal_fma volta_mma wgmma "
        "wgmma_accumulator wgmma_operand"
    ),
    "hardware.banks": "Access BankReport banks",
    "hardware.conflict_free": "ConflictFree",
    "hardware.descriptor": "WgmmaDescriptor wgmma_descriptor wgmma_smem_atom",
    "hardware.instructions": "INSTRUCTIONS Instruction instruction",
    "hardware.mfma": "MFMA mfma",
    "hardware.no_swizzle": "NoSwizzle",
    "hardware.padding": "Padding padding_for",
    "hardware.sectors": "Sectors sectors",
    "hardware.stmatrix_report": "StagingReport staging_report",
    "hardware.synthesis": "SwizzleChoice swizzle_for",
    "hardware.tensor_memory": "TMEM TmemAtom tcgen05_accumulator tcgen05_ld tcgen05_st",
    "hardware.wavefronts": "Wavefronts wavefronts",
    "notation": "parse",
    "notation.linear_layout": "LinearLayout from_linear_layout to_linear_layout",
    "proof.bijective": "Bijective",
    "proof.equivalence": "Equivalent equivalent",
    "proof.injective": "Injective",
    "proof.laws": (
        "ComplementLaws CompositionLaw DivideLaw LeftInverseLaw ProductLaw RightInverseLaw"
    ),
    "proof.postcondition": "postcondition",
    "proof.prove": "Counterexample Proof prove",
    "proof.theorems": "SwizzleAlignment SwizzleInvolution",
    "tiled.algorithm": "copy elem_less gemm",
    "tiled.copy_atom": "CopyAtom make_copy_atom",
    "tiled.tensor": (
        "Tensor make_counting_tensor make_fragment_like make_identity_tensor make_rmem_tensor "
        "make_tensor"
    ),
    "tiled.thread_value": "make_layout_tv",
    "tiled.tiled_copy": (
        "ThrCopy TiledCopy make_tiled_copy make_tiled_copy_A make_tiled_copy_B make_tiled_copy_C "
        "make_tiled_copy_C_atom make_tiled_copy_D make_tiled_copy_S make_tiled_copy_tv"
    ),
    "tiled.tiled_mma": "ThrMma TiledMma make_tiled_mma",
}
_MODULE_OF = {name: module for module, names in _LAZY.items() for name in names.split()}

__all__ = sorted(["LayoutError", "Undecided", *values.__all__, *algebra.__all__, *_MODULE_OF])


def __getattr__(name: str) -> object:
    if name in ("draw", "explanation", "hardware", "notation", "proof", "tiled"):
        return import_module(f".{name}", __name__)
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'layouts' has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f".{_MODULE_OF[name]}", __name__), name)
    return found


def __dir__() -> list[str]:
    return [*__all__]
