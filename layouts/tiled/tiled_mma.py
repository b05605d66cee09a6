"""TiledMma: one matrix instruction repeated over threads and over a tile.

An atom multiplies M x K by N x K elements.  `atom_layout_mnk` places atoms side by side along M, N
and K, each executed by threads of its own; `permutation_mnk` says which rows and columns of the
matrices the tile takes, and in which order.  A, B and C are matrices of (M, K), (N, K) and (M, N).

    thrfrg_A(A)         ((ThrV, (ThrM, ThrK)), (FrgV, (RestM, RestK, ...)))
    partition_A(A)      (FrgV, RestM, RestK, ...)   of one thread
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any

from ..algebra import composition, logical_divide, right_inverse, tiled_product, zipped_divide
from ..algebra.by_mode import Tiler, tiler_layout
from ..algebra.partition import Tile, get_flat_coord
from ..errors import LayoutError
from ..hardware.atoms import MmaAtom, in_shared_memory
from ..hardware.fragment import Drawn, Fragment
from ..values.layout import Layout, make_layout
from ..values.tuples import IntTuple, as_int, is_int, size
from ..values.value import Value
from .tensor import make_fragment_like
from .thread_value import at_thread, by_layout, instance_of, require_bijective

__all__ = ["ThrMma", "TiledMma", "make_tiled_mma"]

#: Operand → the modes of (M, N, K) that its matrix has.
OPERAND_MODES = {"A": (0, 2), "B": (1, 2), "C": (0, 1)}


class TiledMma(Drawn):
    """An atom over threads and a tile (C++ ``TiledMMA``, DSL ``TiledMma``).  Made by
    `make_tiled_mma`.

    `atom`             the instruction, such as ``mma("m16n8k16", "bf16")``
    `atom_layout_mnk`  (m, n, k) of an atom → its place among the threads
    `permutation_mnk`  for each of M, N and K a tiler of the tile, or None for the atoms' extent
    `thr_layout_vmnk`  (thread of the atom, m, n, k of the atom) → thread (C++ ``ThrLayoutVMNK``)

    >>> from layouts import mma
    >>> print(make_tiled_mma(mma("m16n8k16", "bf16"), (2, 2, 1)).thr_layout_vmnk)
    (32,2,2,1):(1,32,64,0)
    """

    __slots__ = ("atom", "atom_layout_mnk", "permutation_mnk", "thr_layout_vmnk")
    __match_args__ = ("atom", "atom_layout_mnk", "permutation_mnk")
    atom: MmaAtom
    atom_layout_mnk: Layout
    permutation_mnk: tuple[Tiler, Tiler, Tiler]
    thr_layout_vmnk: Layout

    def __init__(
        self, atom: MmaAtom, atom_layout_mnk: Layout, permutation_mnk: tuple[Tiler, Tiler, Tiler]
    ) -> None:
        self._set(atom, atom_layout_mnk, permutation_mnk)
        _check_atom_layout(atom, atom_layout_mnk)
        threads = tiled_product(atom.thr_id, atom_layout_mnk)
        object.__setattr__(self, "thr_layout_vmnk", threads)
        for mode, name in enumerate("MNK"):
            _check_permutation(self, mode, name)

    @property
    def size(self) -> int:
        """The number of threads."""
        return int(size(self.thr_layout_vmnk))

    @property
    def heading(self) -> str:
        m, n, k = map(self.get_tile_size, range(3))
        return f"tiled MMA of {self.size} threads, {self.atom.name}: M = {m}, N = {n}, K = {k}"

    @property
    def fragments(self) -> tuple[Fragment, ...]:
        """A, B with k down, and C of a tile; no operand in shared memory."""
        m, n, k = map(self.get_tile_size, range(3))
        tiles = {"A": Layout((m, k)), "B": Layout((k, n), (n, 1)), "C": Layout((m, n))}
        modes = {"A": "M x K", "B": "K x N", "C": "M x N"}
        return tuple(
            Fragment(f"{operand}, {modes[operand]}", tv_layout_tiled(self, operand), tile)
            for operand, tile in tiles.items()
            if not in_shared_memory(operand_tv(self.atom, operand))
        )

    def get_tile_size(self, mode: int) -> int:
        """The rows of the tile along M, N or K: mode 0, 1 or 2 (DSL; C++ ``tile_size``)."""
        if not is_int(mode) or mode not in (0, 1, 2):
            raise LayoutError(f"mode {mode!r} of a tile: M, N and K are 0, 1 and 2")
        return int(size(self._tiler(mode)))

    def _tiler(self, mode: int) -> Layout:
        """The tiler along a mode; by default the extent of all atoms (C++ ``permutation_mnk``)."""
        given = self.permutation_mnk[mode]
        if given is not None:
            return tiler_layout(given)
        return Layout(self.atom.shape[mode] * size(self.atom_layout_mnk, mode))

    # ------------------------------------------------------------------------ all threads

    def thrfrg_A(self, x: Any) -> Any:
        """A of (M, K, ...) as ((ThrV, (ThrM, ThrK)), (FrgV, (RestM, RestK, ...))) (C++).

        `x` is a layout or a tensor, and so is the result.

        >>> from layouts import mma
        >>> mma = make_tiled_mma(mma("m16n8k16", "bf16"), (2, 2, 1))
        >>> print(mma.thrfrg_A(Layout((64, 32))))
        (((4,8),(2,1)),((2,2,2),(2,2))):(((128,1),(16,0)),((64,8,512),(32,1024)))
        """
        return self._thrfrg("A", x)

    def thrfrg_B(self, x: Any) -> Any:
        """B of (N, K, ...) as ((ThrV, (ThrN, ThrK)), (FrgV, (RestN, RestK, ...))) (C++)."""
        return self._thrfrg("B", x)

    def thrfrg_C(self, x: Any) -> Any:
        """C of (M, N, ...) as ((ThrV, (ThrM, ThrN)), (FrgV, (RestM, RestN, ...))) (C++)."""
        return self._thrfrg("C", x)

    def _thrfrg(self, operand: str, x: Any) -> Any:
        return by_layout(f"thrfrg_{operand}", partial(thrfrg, self, operand), x)

    @property
    def tv_layout_A_tiled(self) -> Layout:
        """(thread, value) → m + tile_m * k: what each thread holds of A in a tile (DSL).

        Atoms side by side along N hold the same elements of A: their threads have stride 0.

        >>> from layouts import mma
        >>> print(make_tiled_mma(mma("m16n8k16", "bf16"), (2, 2, 1)).tv_layout_A_tiled)
        ((4,8,2,2),((2,2,2),(1,1))):((64,1,16,0),((32,8,256),(0,0)))
        """
        return tv_layout_tiled(self, "A")

    @property
    def tv_layout_B_tiled(self) -> Layout:
        """(thread, value) → n + tile_n * k (DSL)."""
        return tv_layout_tiled(self, "B")

    @property
    def tv_layout_C_tiled(self) -> Layout:
        """(thread, value) → m + tile_m * n (DSL).

        Atoms side by side along K hold parts of one sum: their threads have stride 0, and the
        caller must add the parts.  (C++ and the DSL give these threads elements beyond the tile.)
        """
        return tv_layout_tiled(self, "C")

    def get_layoutA_TV(self) -> Layout:
        """`tv_layout_A_tiled` under its C++ name."""
        return self.tv_layout_A_tiled

    def get_layoutB_TV(self) -> Layout:
        """`tv_layout_B_tiled` under its C++ name."""
        return self.tv_layout_B_tiled

    def get_layoutC_TV(self) -> Layout:
        """`tv_layout_C_tiled` under its C++ name."""
        return self.tv_layout_C_tiled

    # ------------------------------------------------------------------------ one thread

    def get_slice(self, thr_idx: Any) -> ThrMma:
        """The part of thread `thr_idx` (C++ and DSL ``get_slice``).

        Raises `LayoutError` if there is no such thread.
        """
        return ThrMma(self, thr_idx)

    def partition_shape_A(self, shape_mk: IntTuple) -> IntTuple:
        """(FrgV, RestM, RestK, ...): the shape of what a thread has of A (C++, DSL)."""
        return self._partition_shape("A", shape_mk)

    def partition_shape_B(self, shape_nk: IntTuple) -> IntTuple:
        """(FrgV, RestN, RestK, ...): the shape of what a thread has of B (C++, DSL)."""
        return self._partition_shape("B", shape_nk)

    def partition_shape_C(self, shape_mn: IntTuple) -> IntTuple:
        """(FrgV, RestM, RestN, ...): the shape of what a thread has of C (C++, DSL).

        >>> from layouts import mma
        >>> make_tiled_mma(mma("m16n8k16", "bf16"), (2, 2, 1)).partition_shape_C((64, 64))
        ((2, 2), 2, 4)
        """
        return self._partition_shape("C", shape_mn)

    def _partition_shape(self, operand: str, shape: IntTuple) -> IntTuple:
        _, (held, rest) = thrfrg(self, operand, Layout(shape))
        return (held.shape, size(rest[0]), size(rest[1]), *shape[2:])

    def make_fragment_A(self, x: Any, dtype: Any = None) -> Any:
        """The registers for a partition of A (C++, DSL): `make_fragment_like` of a tensor or a
        layout, and the compact layout of a shape.  An operand that the instruction reads from
        shared memory needs no registers: the fragment is the partition itself.
        """
        return self._fragment("A", x, dtype)

    def make_fragment_B(self, x: Any, dtype: Any = None) -> Any:
        """The registers for a partition of B (C++, DSL), as `make_fragment_A`."""
        return self._fragment("B", x, dtype)

    def make_fragment_C(self, x: Any, dtype: Any = None) -> Any:
        """The registers for a partition of C (C++, DSL), compact from left to right.

        >>> from layouts import mma
        >>> tiled = make_tiled_mma(mma("m16n8k16", "bf16"), (2, 2, 1))
        >>> print(tiled.make_fragment_C(tiled.partition_shape_C((64, 64))))
        ((2,2),2,4):((1,2),4,8)
        """
        return self._fragment("C", x, dtype)

    def _fragment(self, operand: str, x: Any, dtype: Any) -> Any:
        if in_shared_memory(operand_tv(self.atom, operand)):
            return x
        if isinstance(x, tuple) and not isinstance(x, Tile):
            x = Layout(x)
        return make_fragment_like(x, dtype)

    def __str__(self) -> str:
        permutation = ["_" if tiler is None else str(tiler) for tiler in self.permutation_mnk]
        return "\n".join(
            [
                "Tiled MMA",
                f"  Thr Layout VMNK: {self.thr_layout_vmnk}",
                f"  Permutation MNK: ({','.join(permutation)})",
                f"MMA Atom {self.atom.name}",
                f"  ThrID:           {self.atom.thr_id}",
                f"  Shape MNK:       ({','.join(map(str, self.atom.shape))})",
                *(f"  TV Layout {o}:     {operand_tv(self.atom, o)}" for o in OPERAND_MODES),
            ]
        )


class ThrMma(Value):
    """What one thread has of the matrices (C++ ``ThrMMA``, DSL ``ThrMma``).  Made by
    `TiledMma.get_slice`.
    """

    __slots__ = __match_args__ = ("mma", "thr_idx")
    mma: TiledMma
    thr_idx: Any

    def __init__(self, mma: TiledMma, thr_idx: Any) -> None:
        self._set(mma, as_int(thr_idx))
        get_flat_coord(mma.thr_layout_vmnk, thr_idx)

    def partition_A(self, x: Any) -> Any:
        """(FrgV, RestM, RestK, ...): what the thread has of A (C++, DSL).

        Of a tensor it is a tensor over the same data; of a layout it is a `Tile`.

        >>> from layouts import make_identity_tensor, mma
        >>> thread = make_tiled_mma(mma("m16n8k16", "bf16"), (2, 2, 1)).get_slice(37)
        >>> part = thread.partition_A(make_identity_tensor((64, 32)))
        >>> print(part.layout, part[3, 0, 1])
        ((2,2,2),2,2):((1@1,8@0,8@1),32@0,16@1) (25, 19)
        """
        return self._partition("A", x)

    def partition_B(self, x: Any) -> Any:
        """(FrgV, RestN, RestK, ...): what the thread has of B (C++, DSL)."""
        return self._partition("B", x)

    def partition_C(self, x: Any) -> Any:
        """(FrgV, RestM, RestN, ...): what the thread has of C (C++, DSL)."""
        return self._partition("C", x)

    def partition_fragment_A(self, x: Any, dtype: Any = None) -> Any:
        """The registers for `partition_A` (C++)."""
        return self.mma.make_fragment_A(self.partition_A(x), dtype)

    def partition_fragment_B(self, x: Any, dtype: Any = None) -> Any:
        """The registers for `partition_B` (C++)."""
        return self.mma.make_fragment_B(self.partition_B(x), dtype)

    def _partition(self, operand: str, x: Any) -> Any:
        v, *mnk = get_flat_coord(self.mma.thr_layout_vmnk, self.thr_idx)
        thread = (v, tuple(mnk[mode] for mode in OPERAND_MODES[operand]))
        return at_thread(thread, self.mma._thrfrg(operand, x))


def make_tiled_mma(
    atom: MmaAtom,
    atom_layout_mnk: Layout | tuple[int, ...] = (1, 1, 1),
    permutation_mnk: Any = None,
) -> TiledMma:
    """The tiled MMA of an atom (C++ and DSL ``make_tiled_mma``).

    `atom_layout_mnk`  a Layout or a shape: atoms along M, N and K, and the order of their threads
    `permutation_mnk`  a tuple of three: an extent of the tile, or a Layout that permutes the rows
                       or columns, or None

    Raises `LayoutError` unless each place of an atom has threads of its own, and each permutation
    is a bijection onto a multiple of the atoms' extent.

    >>> from layouts import mma
    >>> tiled = make_tiled_mma(mma("m16n8k16", "bf16"), (2, 2, 1), (32, 32, 16))
    >>> tiled.size, [tiled.get_tile_size(mode) for mode in range(3)]
    (128, [32, 32, 16])
    >>> print(tiled.tv_layout_B_tiled)
    ((4,8,2,2),((2,2),(2,1))):((64,1,0,8),((32,256),(16,0)))
    """
    atoms = atom_layout_mnk
    if not isinstance(atoms, Layout):
        atoms = Layout(atoms)
    permutation = (None, None, None) if permutation_mnk is None else permutation_mnk
    if not isinstance(permutation, tuple) or len(permutation) != 3:
        raise LayoutError(f"permutation_mnk {permutation!r}: it has one tiler for each of M, N, K")
    return TiledMma(atom, atoms, permutation)


@lru_cache(maxsize=256)  # each thread of a block asks for the same
def thrfrg(mma: TiledMma, operand: str, matrix: Layout) -> Layout:
    """((ThrV, (ThrI, ThrJ)), (FrgV, (RestI, RestJ, ...))) of a matrix with the modes I and J."""
    modes = OPERAND_MODES[operand]
    if len(matrix) < 2:
        raise LayoutError(f"operand {operand} {matrix}: a matrix must have at least two modes")
    tiles = logical_divide(matrix, tuple(map(mma._tiler, modes)))
    atoms = zipped_divide(tiles, tuple(mma.atom.shape[mode] for mode in modes))
    thread, held = composition(atoms[0], operand_tv(mma.atom, operand))
    counts = tuple(size(mma.atom_layout_mnk, mode) for mode in modes)
    placed, rest = zipped_divide(atoms[1], counts)
    return make_layout(make_layout(thread, placed), make_layout(held, rest))


def tv_layout_tiled(mma: TiledMma, operand: str) -> Layout:
    """(thread, value) → element of the tile of an operand."""
    threads = mma.thr_layout_vmnk
    require_bijective("the threads", threads)
    modes = OPERAND_MODES[operand]
    tile = Layout(tuple(map(mma.get_tile_size, modes)))
    (thread, placed), values = thrfrg(mma, operand, tile)
    along = [Layout(size(mma.atom_layout_mnk, mode), 0) for mode in range(3)]
    for mode, layout in zip(modes, placed, strict=True):
        along[mode] = layout
    by_thread = composition(make_layout(thread, *along), right_inverse(threads))
    return make_layout(by_thread, values)


def operand_tv(atom: MmaAtom, operand: str) -> Layout:
    """(thread, value) → element of an operand of the atom."""
    return {"A": atom.a, "B": atom.b, "C": atom.c}[operand]


def _check_atom_layout(atom: MmaAtom, atoms: Layout) -> None:
    """Raises `LayoutError` unless `atoms` gives each place of an atom other threads."""
    instance_of("make_tiled_mma", MmaAtom, atom)
    if len(atoms) != 3 or not all(is_int(x) for mode in atoms.modes for x in mode):
        raise LayoutError(f"atom_layout_mnk {atoms}: it has one mode for each of M, N, K")
    require_bijective("atom_layout_mnk", atoms)


def _check_permutation(mma: TiledMma, mode: int, name: str) -> None:
    """Raises `LayoutError` unless the tiler along a mode is made of whole groups of atoms."""
    tiler = mma._tiler(mode)
    require_bijective(f"the permutation of {name}", tiler)
    rows, count = mma.atom.shape[mode], size(mma.atom_layout_mnk, mode)
    if size(tiler) % (rows * count):
        raise LayoutError(
            f"the permutation of {name} has {size(tiler)} elements: it must be a multiple of "
            f"{rows * count}, the extent of {count} atoms of {rows}"
        )
    try:
        zipped_divide(zipped_divide(tiler, rows)[1], count)
    except LayoutError as error:
        raise LayoutError(
            f"the permutation of {name}, {tiler}, cannot be cut into {count} atoms of {rows}: "
            f"{error}"
        ) from None
