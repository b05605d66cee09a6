"""Copy atoms: which thread reads, and which writes, each element that one instruction moves."""

from __future__ import annotations

from typing import Any

from ..algebra import coalesce, composition, right_inverse, upcast
from ..errors import LayoutError
from ..hardware.atoms import MATRIX_BITS, MATRIX_COLUMNS, MATRIX_ROWS, MatrixAtom
from ..hardware.facts import WARP
from ..hardware.instructions import instruction
from ..values.layout import Layout, cosize, joined, make_layout
from ..values.tuples import as_int, is_int, size
from ..values.value import Value

__all__ = ["CopyAtom", "make_copy_atom"]


class CopyAtom(Value):
    """What one instruction copies (C++ ``Copy_Atom``, DSL ``CopyAtom``).  Made by `make_copy_atom`.

    `layout_src_tv`  (thread, value) → element that the thread supplies
    `layout_dst_tv`  (thread, value) → element that the thread receives
    `layout_ref_tv`  the one of the two that a thread-value layout of a tiled copy speaks of: the
                     registers, of ldmatrix and of stmatrix (C++ ``RefLayout``)

    Elements have `value_bits` bits, and are numbered from 0 within the instruction.

    Raises `LayoutError` unless both sides have the same threads and all elements, and the reference
    has each element once.
    """

    __slots__ = __match_args__ = (
        "name",
        "layout_src_tv",
        "layout_dst_tv",
        "layout_ref_tv",
        "value_bits",
    )
    name: str
    layout_src_tv: Layout
    layout_dst_tv: Layout
    layout_ref_tv: Layout
    value_bits: int

    def __init__(
        self, name: str, src_tv: Layout, dst_tv: Layout, ref_tv: Layout, value_bits: int
    ) -> None:
        self._set(name, src_tv, dst_tv, ref_tv, as_int(value_bits))
        count = size(ref_tv)
        for of, layout in (("reference", ref_tv), ("source", src_tv), ("destination", dst_tv)):
            threads_agree = size(layout[0]) == size(ref_tv[0])
            if not threads_agree or not cosize(layout) == size(right_inverse(layout)) == count:
                raise LayoutError(
                    f"{name} of {value_bits}-bit values: the {of} is {layout}; it must give "
                    f"elements to each of the atom's {size(ref_tv[0])} threads, and cover all "
                    f"{count}"
                )

    @property
    def thr_id(self) -> Layout:
        """The threads of the atom, from 0 (C++ ``ThrID``)."""
        return Layout(size(self.layout_ref_tv[0]))

    @property
    def dst_to_src(self) -> Layout:
        """(destination thread, value) → source thread + threads * value: where each element comes
        from.

        >>> from layouts import ldmatrix
        >>> atom = make_copy_atom(ldmatrix(1), 16)
        >>> atom.dst_to_src(5, 1), atom.layout_dst_tv(5, 1)   # row 1, column 3: lane 1, value 3
        (97, 11)
        """
        found: Layout = composition(right_inverse(self.layout_src_tv), self.layout_dst_tv)
        return found


def make_copy_atom(op: Any, value_bits: int) -> CopyAtom:
    """The copy atom of an instruction, for elements of `value_bits` bits (DSL ``make_copy_atom``).

    `op`  `ldmatrix` or `stmatrix`; or the access of one thread: bytes from 1 to 16, or a name of
          `INSTRUCTIONS` such as ``"ld.shared.v4.b32"`` (C++ ``UniversalCopy``, ``Copy_Traits``)

    Raises `LayoutError` if elements of that width do not fit the instruction.

    >>> from layouts import ldmatrix
    >>> atom = make_copy_atom(ldmatrix(4), 16)
    >>> print(atom.layout_src_tv, atom.layout_dst_tv)
    (32,8):(8,1) (32,(2,4)):(2,(1,64))
    >>> print(make_copy_atom(16, 16).layout_src_tv)         # one thread moves 16 bytes
    (1,8):(0,1)
    """
    if not is_int(value_bits) or value_bits < 1:
        raise LayoutError(
            f"make_copy_atom: value_bits {value_bits!r} must be the bits of an element, such as 16"
        )
    if isinstance(op, MatrixAtom):
        return _of_matrices(op, value_bits)
    access = instruction(op)
    bits = 8 * access.width
    if access.moves_matrices or bits % value_bits:
        raise LayoutError(
            f"make_copy_atom of {op!r}: give ldmatrix() or stmatrix(), or an access whose "
            f"{bits} bits per thread hold whole elements of {value_bits} bits"
        )
    moved = Layout((1, bits // value_bits), (0, 1))
    return CopyAtom(access.name or f"{access.width}-byte copy", moved, moved, moved, value_bits)


def _of_matrices(op: MatrixAtom, value_bits: int) -> CopyAtom:
    """The atom of ldmatrix or stmatrix; lanes beyond the matrices repeat the rows of the others."""
    lanes = MATRIX_ROWS * op.matrices
    lane = (lanes, WARP // lanes) if lanes < WARP else lanes
    row = (MATRIX_COLUMNS, 0) if lanes < WARP else MATRIX_COLUMNS
    rows = _recast(Layout((lane, MATRIX_COLUMNS), (row, 1)), value_bits, op)
    held = _recast(op.fragment, value_bits, op)
    src, dst = (rows, held) if op.name == "ldmatrix" else (held, rows)
    return CopyAtom(op.instruction, src, dst, held, value_bits)


def _recast(layout: Layout, value_bits: int, op: MatrixAtom) -> Layout:
    """(thread, value) → element of 16 bits, as (thread, value) → element of `value_bits`.

    The bits of an element are the fastest mode of the values.
    """
    threads, values = (Layout(x.shape, _scaled(x.stride)) for x in layout)
    bits = coalesce(joined([Layout(MATRIX_BITS), *values]), None)
    found = upcast(make_layout(threads, bits), value_bits)
    if size(found[0]) != WARP:
        raise LayoutError(
            f"{op.instruction} of {value_bits}-bit elements: parts of one element are in several "
            f"lanes; {'use it without .trans' if op.transposed else 'use elements of 16 bits'}"
        )
    return found


def _scaled(stride: Any) -> Any:
    if isinstance(stride, tuple):
        return tuple(map(_scaled, stride))
    return stride * MATRIX_BITS
