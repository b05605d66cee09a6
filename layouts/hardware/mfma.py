"""Fragments of AMD's matrix instructions: MFMA of CDNA, with 64 lanes.

Source: AMD's matrix instruction calculator (ROCm/amd_matrix_instruction_calculator, 2ef9189),
`InstCalcGfx9`, for CDNA 1 to 3.  The table has its dense instructions of one block.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ..errors import LayoutError
from ..values.layout import Layout
from .atoms import MmaAtom, fragment

__all__ = ["MFMA", "mfma"]

#: Lanes of a wave.
WAVE = 64

#: Rows of A, columns of B, K → types of A and B.
MFMA_SHAPES = (
    (16, 4, "f32 f64"),
    (16, 8, "xf32 bf16"),
    (16, 16, "f16 bf16 i8"),
    (16, 32, "i8 fp8 bf8"),
    (32, 2, "f32"),
    (32, 4, "xf32 bf16"),
    (32, 8, "f16 bf16 i8"),
    (32, 16, "i8 fp8 bf8"),
)


def _operand(rows: int, k: int) -> Layout:
    """A or B, (lane, value) → row + rows * k: a lane holds consecutive k of one row."""
    held = k * rows // WAVE
    return fragment([(rows, 1), (WAVE // rows, held * rows)], [(held, rows)])


def _accumulator(rows: int, height: int) -> Layout:
    """C and D, (lane, value) → row + rows * column: a lane holds part of one column.

    It holds `height` consecutive rows, then those after the rows of the other lanes.
    """
    groups = WAVE // rows
    values = [(height, 1), (rows // (height * groups), height * groups)]
    return fragment([(rows, rows), (groups, height)], values)


def _mfma(rows: int, k: int, kind: str) -> MmaAtom:
    result, height = {"f64": ("f64", 1), "i8": ("i32", 4)}.get(kind, ("f32", 4))
    name = f"v_mfma_{result}_{rows}x{rows}x{k}_{kind}"
    operand = _operand(rows, k)
    source = "AMD matrix instruction calculator"
    return MmaAtom(name, (rows, rows, k), operand, operand, _accumulator(rows, height), source)


#: (shape, type of A and B) → the MFMA.
MFMA: Mapping[tuple[str, str], MmaAtom] = MappingProxyType(
    {
        (f"{rows}x{rows}x{k}", kind): _mfma(rows, k, kind)
        for rows, k, kinds in MFMA_SHAPES
        for kind in kinds.split()
    }
)


def mfma(shape: str, kind: str) -> MmaAtom:
    """v_mfma_{f32,f64,i32}_{shape}_{kind} of AMD's CDNA, for A and B of type `kind`.

    Lane l of 64 holds row ``l % rows`` of A, and column ``l % rows`` of B, at consecutive k; it
    holds column ``l % rows`` of D, four rows at a time (of f64, one row).  The table has 16x16x4 of
    f32 and f64, 16x16x8 of xf32 and bf16, 16x16x16 of f16, bf16 and i8, 16x16x32 of i8, fp8 and
    bf8, 32x32x2 of f32, 32x32x4 of xf32 and bf16, 32x32x8 of f16, bf16 and i8, and 32x32x16 of i8,
    fp8 and bf8.  A wave has 64 lanes.

    Raises `LayoutError` for any other.

    >>> atom = mfma("32x32x8", "f16")
    >>> print(atom.name, atom.a, atom.c)
    v_mfma_f32_32x32x8_f16 ((32,2),4):((1,128),32) ((32,2),(4,4)):((32,4),(1,8))
    >>> divmod(atom.c(33, 5), 32)           # value 5 of lane 33: column 1, row 13
    (1, 13)
    >>> print(mfma("16x16x16", "f16").c, mfma("16x16x4", "f64").c)
    ((16,4),4):((16,4),1) ((16,4),4):((16,1),4)
    """
    if not (isinstance(shape, str) and isinstance(kind, str)) or (shape, kind) not in MFMA:
        known = ", ".join(f"{name} of {of}" for name, of in MFMA)
        raise LayoutError(f"mfma {shape} of {kind}: the table has {known}")
    return MFMA[shape, kind]
