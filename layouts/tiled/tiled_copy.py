"""TiledCopy: one copy instruction repeated over threads and over a tile.

`layout_tv_tiled` takes (thread, value) to the index of an element in the tile that `tiler_mn` cuts
out of a tensor; thread and value are those of the registers.  The atom says which thread reads,
and which writes, each of the elements.

    partition_S(source)         (CPY, RestM, RestN, ...)   what a thread reads
    partition_D(destination)    (CPY, RestM, RestN, ...)   what it writes
    retile(registers)           the registers of another partition, as this copy counts them

CPY is (values of one atom, atoms of one tile).
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any

from ..algebra import (
    coalesce,
    composition,
    filter,
    left_inverse,
    logical_product,
    right_inverse,
    upcast,
    zipped_divide,
)
from ..algebra.by_mode import Tiler, tiler_layout
from ..algebra.partition import get_flat_coord
from ..errors import LayoutError
from ..hardware.fragment import Drawn, Fragment
from ..values.layout import Layout, cosize, make_layout
from ..values.modes import flat_modes
from ..values.tuples import as_int, size
from ..values.value import Value
from .copy_atom import CopyAtom
from .thread_value import at_thread, by_layout, instance_of, make_layout_tv
from .tiled_mma import OPERAND_MODES, TiledMma, make_tiled_mma, thrfrg, tv_layout_tiled

__all__ = [
    "ThrCopy",
    "TiledCopy",
    "make_tiled_copy",
    "make_tiled_copy_A",
    "make_tiled_copy_B",
    "make_tiled_copy_C",
    "make_tiled_copy_C_atom",
    "make_tiled_copy_D",
    "make_tiled_copy_S",
    "make_tiled_copy_tv",
]


class TiledCopy(Drawn):
    """An atom over threads and a tile (C++ and DSL ``TiledCopy``).  Made by `make_tiled_copy`.

    `atom`             the instruction, made by `make_copy_atom`
    `layout_tv_tiled`  (thread, value) → index of an element of the tile
    `tiler_mn`         a tiler of the tensor for each mode of the tile: an extent or a Layout
    """

    __slots__ = __match_args__ = ("atom", "layout_tv_tiled", "tiler_mn")
    atom: CopyAtom
    layout_tv_tiled: Layout
    tiler_mn: tuple[Tiler, ...]

    def __init__(self, atom: CopyAtom, layout_tv: Layout, tiler_mn: tuple[Tiler, ...]) -> None:
        self._set(atom, layout_tv, tiler_mn)
        instance_of("a tiled copy", CopyAtom, atom)
        instance_of("layout_tv", Layout, layout_tv)
        instance_of("the tiler, one for each mode", tuple, tiler_mn)
        if len(layout_tv) != 2:
            raise LayoutError(f"layout_tv {layout_tv}: its modes are (threads, values)")
        for layout in (layout_tv, self._tile):
            flat_modes(layout)  # raises unless all are integers known now
        for mode, name in enumerate(("threads", "values")):
            own, atoms = size(layout_tv, mode), size(atom.layout_ref_tv, mode)
            if own % atoms:
                raise LayoutError(
                    f"layout_tv {layout_tv} has {own} {name}: they must be a multiple of the "
                    f"{atoms} {name} of {atom.name}"
                )
        if cosize(layout_tv) > size(self._tile):
            raise LayoutError(
                f"layout_tv {layout_tv} reaches element {cosize(layout_tv) - 1} of a "
                f"tile of {size(self._tile)} elements"
            )

    @property
    def _tile(self) -> Layout:
        """The elements of the tile, by mode."""
        return Layout(tuple(size(tiler_layout(tiler)) for tiler in self.tiler_mn))

    @property
    def size(self) -> int:
        """The number of threads."""
        return int(size(self.layout_tv_tiled, 0))

    @property
    def heading(self) -> str:
        return f"tiled copy of {self.size} threads, {self.atom.name}"

    @property
    def fragments(self) -> tuple[Fragment, ...]:
        """The elements of a tile that each thread reads, and those that it writes."""
        rows, *columns = self._tile.shape
        tile = Layout((rows, size(tuple(columns))))
        return (
            Fragment("source", self.layout_src_tv_tiled, tile),
            Fragment("destination", self.layout_dst_tv_tiled, tile),
        )

    @property
    def layout_src_tv_tiled(self) -> Layout:
        """(thread, value) → element of the tile that the thread reads (DSL; C++
        ``get_layoutS_TV``).

        >>> from layouts import ldmatrix, make_copy_atom
        >>> layout_tv = Layout(((4, 8), (2, 2, 2)), ((32, 1), (16, 8, 128)))  # A of m16n8k16
        >>> copy = make_tiled_copy(make_copy_atom(ldmatrix(4), 16), layout_tv, (16, 16))
        >>> print(copy.layout_src_tv_tiled)
        ((16,2),(8,1)):((1,128),(16,0))
        """
        return _tv_layout(self, self.atom.layout_src_tv)

    @property
    def layout_dst_tv_tiled(self) -> Layout:
        """(thread, value) → element of the tile that the thread writes (DSL; C++
        ``get_layoutD_TV``)."""
        return _tv_layout(self, self.atom.layout_dst_tv)

    # ------------------------------------------------------------------------ all threads

    def tidfrg_S(self, x: Any) -> Any:
        """A source of (M, N, ...) as (thread, (CPY, (RestM, RestN, ...))) (C++ ``tidfrg_S``)."""
        return self._tidfrg("tidfrg_S", self.atom.layout_src_tv, x)

    def tidfrg_D(self, x: Any) -> Any:
        """A destination of (M, N, ...) as (thread, (CPY, (RestM, RestN, ...))) (C++
        ``tidfrg_D``)."""
        return self._tidfrg("tidfrg_D", self.atom.layout_dst_tv, x)

    def _tidfrg(self, name: str, atom_tv: Layout, x: Any) -> Any:
        return by_layout(name, partial(_tidfrg, self, atom_tv), x)

    # ------------------------------------------------------------------------- one thread

    def get_slice(self, thr_idx: Any) -> ThrCopy:
        """The part of thread `thr_idx` (C++ and DSL ``get_slice``).

        Raises `LayoutError` if there is no such thread.
        """
        return ThrCopy(self, thr_idx)

    def retile(self, x: Any) -> Any:
        """The registers of another partition of the tile, as this copy counts them (C++, DSL).

        `x` is a thread's (V, RestM, RestN, ...), a tensor or a layout: what a partition of the same
        threads and values gives, such as that of the `TiledMma` of `make_tiled_copy_C`.  The result
        (CPY, RestM, RestN, ...) has the same elements, in the order of `partition_S` and
        `partition_D`.

        Raises `LayoutError` unless the values of the tile are a multiple of V.
        """
        return by_layout("retile", partial(_retiled, self), x)

    def __str__(self) -> str:
        return "\n".join(
            [
                "Tiled Copy",
                f"  Tiler MN:        ({','.join(map(str, self.tiler_mn))})",
                f"  TV Layout tiled: {self.layout_tv_tiled}",
                f"Copy Atom {self.atom.name}",
                f"  ThrID:           {self.atom.thr_id}",
                f"  TV Layout Src:   {self.atom.layout_src_tv}",
                f"  TV Layout Dst:   {self.atom.layout_dst_tv}",
                f"  Value bits:      {self.atom.value_bits}",
            ]
        )


# Each thread of a block asks for the same layouts, so they are cached.


@lru_cache(maxsize=256)
def _tv_layout(tiled: TiledCopy, atom_tv: Layout) -> Layout:
    """(thread, (value of an atom, atom)) → element of the tile, for one side of the atom."""
    ref = tiled.atom.layout_ref_tv
    atoms, others = zipped_divide(tiled.layout_tv_tiled, tuple(map(size, ref)))
    threads, values = composition(atoms, composition(right_inverse(ref), atom_tv))
    both = make_layout(make_layout(threads, others[0]), make_layout(values, others[1]))
    return coalesce(both, (1, (1, 1)))


@lru_cache(maxsize=256)
def _tidfrg(tiled: TiledCopy, atom_tv: Layout, tensor: Layout) -> Layout:
    """(thread, (CPY, (RestM, RestN, ...))) of a tensor."""
    tile, rest = zipped_divide(tensor, tiled.tiler_mn)
    threads, values = composition(tile, _tv_layout(tiled, atom_tv))
    return make_layout(threads, make_layout(values, rest))


@lru_cache(maxsize=256)
def _retiled(tiled: TiledCopy, held: Layout) -> Layout:
    """(CPY, RestM, RestN, ...) of registers (V, RestM, RestN, ...)."""
    count, total = size(held[0]), size(tiled.layout_tv_tiled, 1)
    if total % count:
        raise LayoutError(
            f"retile of {held}: mode 0 has {count} values, which must divide the {total} values of "
            f"a thread in a tile"
        )
    tile = tiled._tile
    holders = right_inverse(tiled.layout_tv_tiled)  # m, n → thread + threads * value
    if size(holders) != size(tile):
        raise LayoutError(
            f"retile: {tiled.layout_tv_tiled} does not give every element of the tile "
            f"{tile.shape} a thread"
        )
    groups = upcast(composition(holders, tile), tiled.size * count)  # m, n → value / count
    values = logical_product(Layout(count), right_inverse(groups))  # → (value, m, n)
    order = zipped_divide(values, Layout(size(tiled.atom.layout_ref_tv, 1)))
    tiles, rest = zipped_divide(held, (count, *map(size, groups)))
    return make_layout(composition(tiles, order), *list(rest)[1:])


class ThrCopy(Value):
    """What one thread copies (C++ and DSL ``ThrCopy``).  Made by `TiledCopy.get_slice`."""

    __slots__ = __match_args__ = ("copy", "thr_idx")
    copy: TiledCopy
    thr_idx: Any

    def __init__(self, copy: TiledCopy, thr_idx: Any) -> None:
        self._set(copy, as_int(thr_idx))
        get_flat_coord(Layout(copy.size), thr_idx)

    def partition_S(self, x: Any) -> Any:
        """(CPY, RestM, RestN, ...): what the thread reads (C++, DSL).

        Of a tensor it is a tensor over the same data; of a layout it is a `Tile`.

        >>> from layouts import make_copy_atom, make_identity_tensor
        >>> threads, values = Layout((8, 16), (16, 1)), Layout((1, 8))
        >>> copy = make_tiled_copy_tv(make_copy_atom(16, 16), threads, values)
        >>> part = copy.get_slice(17).partition_S(make_identity_tensor((64, 256)))
        >>> print(part.layout, part[3, 0, 1])
        ((8,1),8,2):((1@1,0),8@0,128@1) (1, 139)
        """
        return at_thread(self.thr_idx, self.copy.tidfrg_S(x))

    def partition_D(self, x: Any) -> Any:
        """(CPY, RestM, RestN, ...): what the thread writes (C++, DSL)."""
        return at_thread(self.thr_idx, self.copy.tidfrg_D(x))

    def retile(self, x: Any) -> Any:
        """`TiledCopy.retile` (C++ ``retile_S`` and ``retile_D``)."""
        return self.copy.retile(x)


# ------------------------------------------------------------------------------------- makers


def make_tiled_copy(atom: CopyAtom, layout_tv: Layout, tiler: tuple[Tiler, ...]) -> TiledCopy:
    """The tiled copy of an atom, a thread-value layout and its tile (DSL ``make_tiled_copy``; C++
    ``make_tiled_copy_impl``).

    Raises `LayoutError` unless `layout_tv` has whole atoms and stays in the tile.
    """
    return TiledCopy(atom, layout_tv, tiler)


def make_tiled_copy_tv(atom: CopyAtom, thr_layout: Layout, val_layout: Layout) -> TiledCopy:
    """The tiled copy of threads and values, as `make_layout_tv` arranges them (DSL
    ``make_tiled_copy_tv``; C++ ``make_tiled_copy``).

    >>> from layouts import make_copy_atom
    >>> rows = make_tiled_copy_tv(make_copy_atom(16, 16), Layout((8, 16), (16, 1)), Layout((1, 8)))
    >>> print(rows.layout_tv_tiled, rows.tiler_mn)
    ((16,8),8):((64,1),8) (8, 128)
    """
    tiler, layout_tv = make_layout_tv(thr_layout, val_layout)
    return TiledCopy(atom, layout_tv, tiler)


def make_tiled_copy_A(atom: CopyAtom, mma: TiledMma) -> TiledCopy:
    """The tiled copy between memory and the registers of A in a tiled MMA (C++, DSL).

    `retile` of a partition or a fragment of the MMA fits the partitions of the copy.  If the MMA's
    permutation puts the values of a thread out of order, the tiler of the copy is the permutation.
    (With the extents of C++ and the DSL, `retile` would mix up the registers.)

    >>> from layouts import ldmatrix, make_copy_atom, make_tiled_mma, mma
    >>> tiled = make_tiled_mma(mma("m16n8k16", "f16"), (2, 2, 1), (32, 32, 16))
    >>> copy = make_tiled_copy_A(make_copy_atom(ldmatrix(4), 16), tiled)
    >>> print(copy.retile(tiled.make_fragment_A(tiled.partition_shape_A((64, 32)))))
    ((8,1),2,2):((1,0),8,16)
    """
    return _make_tiled_copy_of("A", atom, mma)


def make_tiled_copy_B(atom: CopyAtom, mma: TiledMma) -> TiledCopy:
    """The tiled copy between memory and the registers of B in a tiled MMA (C++, DSL), as
    `make_tiled_copy_A`."""
    return _make_tiled_copy_of("B", atom, mma)


def make_tiled_copy_C(atom: CopyAtom, mma: TiledMma) -> TiledCopy:
    """The tiled copy between the registers of C in a tiled MMA and memory (C++, DSL), as
    `make_tiled_copy_A`."""
    return _make_tiled_copy_of("C", atom, mma)


def _make_tiled_copy_of(operand: str, atom: CopyAtom, mma: TiledMma) -> TiledCopy:
    instance_of(f"make_tiled_copy_{operand}", TiledMma, mma)
    extents = tuple(map(mma.get_tile_size, range(3)))
    modes = OPERAND_MODES[operand]
    tile = tuple(extents[mode] for mode in modes)
    made = TiledCopy(atom, tv_layout_tiled(mma, operand), tile)
    if _retile_fits(made, mma, operand):
        return made
    in_order = make_tiled_mma(mma.atom, mma.atom_layout_mnk, extents)
    tilers = tuple(mma.permutation_mnk[mode] or extents[mode] for mode in modes)
    return TiledCopy(atom, tv_layout_tiled(in_order, operand), tilers)


def _retile_fits(made: TiledCopy, mma: TiledMma, operand: str) -> bool:
    """Whether `retile` of the MMA's partition is the copy's, on the side of the registers.

    Two tiles along each mode tell.  True also if `retile` refuses the partition.
    """
    matrix = Layout(tuple(2 * mma.get_tile_size(mode) for mode in OPERAND_MODES[operand]))
    _, (held, tiles) = thrfrg(mma, operand, matrix)
    _, (own, own_tiles) = _tidfrg(made, made.atom.layout_ref_tv, matrix)
    try:
        retiled = _retiled(made, make_layout(held, *tiles))
    except LayoutError:
        return True
    return bool(coalesce(retiled) == coalesce(make_layout(own, *own_tiles)))


def make_tiled_copy_S(atom: CopyAtom, copy: TiledCopy) -> TiledCopy:
    """The tiled copy whose registers are what `copy` reads (C++, DSL)."""
    instance_of("make_tiled_copy_S", TiledCopy, copy)
    return TiledCopy(atom, copy.layout_src_tv_tiled, copy.tiler_mn)


def make_tiled_copy_D(atom: CopyAtom, copy: TiledCopy) -> TiledCopy:
    """The tiled copy whose registers are what `copy` writes (C++, DSL)."""
    instance_of("make_tiled_copy_D", TiledCopy, copy)
    return TiledCopy(atom, copy.layout_dst_tv_tiled, copy.tiler_mn)


def make_tiled_copy_C_atom(atom: CopyAtom, mma: TiledMma) -> TiledCopy:
    """The smallest tiled copy of C's registers: each thread moves one atom's values, in the order
    of the MMA (C++, DSL).  An epilogue that stores C part by part uses it.

    Raises `LayoutError` if the atom has more values than a thread holds of a tile, or if the MMA's
    permutation puts the values out of order, so that `retile` would mix up the registers.

    >>> from layouts import make_copy_atom, make_tiled_mma, mma, stmatrix
    >>> tiled = make_tiled_mma(mma("m16n8k16", "bf16"), (2, 2, 1), (32, 64, 16))
    >>> copy = make_tiled_copy_C_atom(make_copy_atom(stmatrix(2), 16), tiled)
    >>> print(copy.layout_tv_tiled, *map(str, copy.tiler_mn))
    ((4,8,2,2),(2,2)):((32,1,8,128),(256,16)) (8,2,2):(1,16,8) (8,2):(2,1)
    """
    instance_of("make_tiled_copy_C_atom", CopyAtom, atom)
    instance_of("make_tiled_copy_C_atom", TiledMma, mma)
    held = mma.tv_layout_C_tiled
    threads, count = mma.size, size(atom.layout_src_tv, 1)
    if count > size(held, 1):
        raise LayoutError(
            f"make_tiled_copy_C_atom: {atom.name} has {count} values, and a thread holds "
            f"{size(held, 1)} of a tile of C"
        )
    moved = composition(held, Layout((threads, count)))  # (thread, value) → m + tile_m * n
    extents = tuple(map(mma.get_tile_size, OPERAND_MODES["C"]))
    along = ((1, 0), (0, 1))
    tiler = tuple(filter(composition(Layout(extents, stride), moved)) for stride in along)
    tile = composition(Layout(extents), tiler)  # (m, n) of the copy's tile → m + tile_m * n
    made = TiledCopy(atom, composition(left_inverse(tile), moved), tiler)
    if not _retile_fits(made, mma, "C"):
        raise LayoutError(
            f"make_tiled_copy_C_atom: the permutation {mma.permutation_mnk} puts the values of a "
            f"thread out of order, so that retile would mix up registers; use make_tiled_copy_C"
        )
    return made
