"""copy and gemm: tensors moved and multiplied as the instructions would (C++
``cute/algorithm/copy.hpp`` and ``gemm.hpp``).

An instruction such as ldmatrix works for a whole warp: what one lane receives, other lanes
addressed.  Its copy therefore takes the tensors of all threads, as lists by thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..algebra import composition, right_inverse
from ..errors import LayoutError, brief
from ..hardware.atoms import MmaAtom
from ..values.layout import Layout, cosize
from ..values.tuples import IntTuple, is_int, rank, size
from .copy_atom import CopyAtom
from .tensor import Tensor, library
from .thread_value import instance_of, require_bijective
from .tiled_copy import TiledCopy
from .tiled_mma import TiledMma

__all__ = ["copy", "elem_less", "gemm"]


def copy(*arguments: Any, pred: Any = None) -> None:
    """Copies the elements of a tensor to another, by index: ``dst[i] = src[i]`` (C++, DSL).

    ``copy(src, dst)``          two tensors of one size
    ``copy(atom, src, dst)``    what one thread copies by an atom, or a tiled copy, of one thread
    ``copy(atom, srcs, dsts)``  lists of the tensors of all threads: an atom of a warp needs them

    Mode 0 of a tensor begins with the values of one atom, as `partition_S` and `partition_D` give
    them.  What one instruction reads or writes in memory, 16 bytes for example, must be contiguous,
    and aligned if the data is.  With `pred`, a tensor of bools, only the elements where it is true
    are touched.

    Raises `LayoutError` if the sizes differ, if `pred` is no tensor of bools, if the atom is for
    elements of another width or cannot access its elements at once, or if an element of `dst` would
    get several values.

    >>> import numpy
    >>> from layouts import make_rmem_tensor, make_tensor
    >>> src = make_tensor(numpy.arange(8), Layout((2, 4), (4, 1)))
    >>> dst = make_rmem_tensor((2, 4), numpy.int64)
    >>> copy(src, dst)
    >>> dst.data
    array([0, 4, 1, 5, 2, 6, 3, 7])
    """
    if len(arguments) not in (2, 3):
        raise LayoutError(f"copy takes (src, dst) or (atom, src, dst), not {len(arguments)} values")
    *given, src, dst = arguments
    for tensors in (src, dst):
        if not isinstance(tensors, (list, tuple)):
            instance_of("copy", Tensor, tensors)
    atom = _copy_atom(given[0]) if given else None
    if not isinstance(src, Tensor) or not isinstance(dst, Tensor):
        if pred is not None or atom is None:
            raise LayoutError("copy of lists of tensors takes an atom, and no pred")
        _copy_collectively(atom, src, dst)
        return
    if atom is not None:
        if size(atom.thr_id) > 1:
            raise LayoutError(
                f"copy: {atom.name} needs all threads of its warp; give the lists of their tensors"
            )
        _check_access(atom, [src], [dst])
    _copy_elements(src, dst, pred)


def elem_less(coord: IntTuple, shape: IntTuple) -> bool:
    """Whether every entry of a coordinate is below that of a shape (C++, DSL ``elem_less``): the
    predicate of a tile that reaches beyond its tensor.

    >>> elem_less((96, 37), (100, 64)), elem_less((100, 0), (100, 64))
    (True, False)
    """
    if isinstance(coord, tuple) and isinstance(shape, tuple) and len(coord) == len(shape):
        return all(map(elem_less, coord, shape))
    if isinstance(coord, tuple) or isinstance(shape, tuple):
        raise LayoutError(f"elem_less: {coord} and {shape} must have the same nesting of tuples")
    if not is_int(coord) or not is_int(shape):
        raise LayoutError(f"elem_less of {coord!r} and {shape!r}: they must be known integers")
    return bool(coord < shape)


def gemm(mma: TiledMma, d: Any, a: Any, b: Any, c: Any) -> None:
    """``D = A * B^T + C`` on the fragments of all threads (C++, DSL ``gemm``).

    `a`, `b`, `c` and `d` are lists by thread: (FrgV, RestM, RestK), (FrgV, RestN, RestK) and
    (FrgV, RestM, RestN).  `d` may be `c`.  For a single thread they may be tensors.  Elements of A
    and B are converted to the type of C first; sums are not rounded between instructions.

    Raises `LayoutError` if a fragment is not one of the tiled MMA's.

    >>> import numpy
    >>> from layouts import make_rmem_tensor, make_tensor, make_tiled_mma, universal_fma
    >>> a, b = (make_tensor(numpy.arange(n * 2.0), (1, n, 2)) for n in (3, 2))
    >>> c = make_rmem_tensor((1, 3, 2), numpy.float64)
    >>> gemm(make_tiled_mma(universal_fma()), c, a, b, c)
    >>> c.load()[0]
    array([[ 6.,  9.],
           [ 8., 13.],
           [10., 17.]])
    """
    instance_of("gemm", TiledMma, mma)
    threads = mma.thr_layout_vmnk
    require_bijective("gemm: the threads", threads)
    fragments = [[x] if isinstance(x, Tensor) else x for x in (d, a, b, c)]
    for name, held in zip("dabc", fragments, strict=True):
        instance_of(f"gemm: {name}", Sequence, held)
        if len(held) != mma.size:
            raise LayoutError(f"gemm: {name} has {len(held)} fragments for {mma.size} threads")
    count = size(threads, 0)
    for first in range(0, mma.size, count):
        members = [threads(first + v) for v in range(count)]
        _multiply(mma.atom, *([held[t] for t in members] for held in fragments))


# ------------------------------------------------------------------------------------- copies


def _copy_atom(x: Any) -> CopyAtom:
    atom: CopyAtom = x.atom if isinstance(x, TiledCopy) else x
    instance_of("copy, before the tensors", CopyAtom, atom)
    return atom


def _flat_tensor(tensor: Tensor) -> Tensor:
    """The elements of a tensor by index, in one mode."""
    flat: Tensor = composition(tensor, Layout((size(tensor),)))
    return flat


def _check_access(atom: CopyAtom, srcs: Sequence[Tensor], dsts: Sequence[Tensor]) -> None:
    """Raises `LayoutError` unless each access to memory is to one aligned vector.

    The register side of ldmatrix and stmatrix accesses no memory.
    """
    matrices = size(atom.thr_id) > 1
    for tv, tensors in ((atom.layout_src_tv, srcs), (atom.layout_dst_tv, dsts)):
        count = size(tv, 1)
        for tensor in tensors:
            flat = _flat_tensor(tensor)
            if flat.element_bits != atom.value_bits:
                raise LayoutError(
                    f"{atom.name} of {atom.value_bits}-bit elements: {tensor!r} has "
                    f"elements of {flat.element_bits} bits"
                )
            if size(flat) % count:
                raise LayoutError(
                    f"{atom.name}: {tensor!r} has {size(flat)} elements, which must be a "
                    f"multiple of the {count} of one thread"
                )
            if matrices and tv == atom.layout_ref_tv:
                continue
            vectors = flat.offsets().reshape(-1, count)
            steps = vectors - library(vectors).arange(count)
            if (steps != steps[:, :1]).any() or (steps[:, 0] % count).any():
                raise LayoutError(
                    f"{atom.name}: {tensor!r} is not made of aligned runs of {count} "
                    f"elements, which the instruction accesses at once; use a narrower one, or a "
                    f"swizzle that keeps so many elements together"
                )


def _copy_elements(src: Tensor, dst: Tensor, pred: Tensor | None) -> None:
    if pred is not None and not (isinstance(pred, Tensor) and pred.element_name == "bool"):
        raise LayoutError(
            f"copy: pred is {brief(pred)} and must be a tensor of bools, such as "
            f"make_tensor(mask) of an array of bools"
        )
    if size(src) != size(dst) or (pred is not None and size(pred) != size(dst)):
        sizes = ", ".join(str(size(x)) for x in (src, dst, pred) if x is not None)
        raise LayoutError(f"copy of {src!r} to {dst!r}: their sizes are {sizes}; they must agree")
    if pred is None:
        _flat_tensor(dst).store(_flat_tensor(src).load())
        return
    touched = [index for index in range(size(dst)) if pred[index]]
    xp = library(dst.data)
    at = xp.asarray(touched, dtype=xp.int64)
    _flat_tensor(dst)[at] = _flat_tensor(src)[at]


def _copy_collectively(atom: CopyAtom, srcs: Sequence[Tensor], dsts: Sequence[Tensor]) -> None:
    """Each group of the atom's threads exchanges its values, once for each atom they hold."""
    for tensors in (srcs, dsts):
        instance_of("copy: the tensors of all threads", Sequence, tensors)
        for tensor in tensors:
            instance_of("copy", Tensor, tensor)
    threads, supplied = map(size, atom.layout_src_tv)
    received = size(atom.layout_dst_tv, 1)
    counts = {*(size(x) / supplied for x in srcs), *(size(x) / received for x in dsts)}
    if len(srcs) != len(dsts) or len(srcs) % threads or len(counts) > 1:
        raise LayoutError(
            f"{atom.name}: {len(srcs)} sources and {len(dsts)} destinations; there must "
            f"be the tensors of {threads} threads, or a multiple, with {supplied} values of a "
            f"source and {received} of a destination for each atom"
        )
    _check_access(atom, srcs, dsts)
    dst_to_src = atom.dst_to_src
    for first in range(0, len(srcs), threads):
        lanes = [
            _flat_tensor(src).load().reshape(-1, supplied) for src in srcs[first : first + threads]
        ]
        held = library(lanes[0]).stack(lanes)  # (thread, atom, value)
        for thread, dst in enumerate(dsts[first : first + threads]):
            sources = [dst_to_src(thread, value) for value in range(received)]
            moved = held[[s % threads for s in sources], :, [s // threads for s in sources]]
            _flat_tensor(dst).store(moved.T.reshape(-1))  # moved is (value, atom)


# ----------------------------------------------------------------------------- multiplication


def _multiply(atom: MmaAtom, d: Any, a: Any, b: Any, c: Any) -> None:
    """One atom of threads: all its instructions."""
    m, n, k = atom.shape
    for tv, fragments in ((atom.c, c), (atom.a, a), (atom.b, b), (atom.c, d)):
        _check_fragments(tv, fragments, c[0])
    (rows, steps), (columns, steps_b) = _rest(a), _rest(b)
    if steps != steps_b or not (rows, columns) == _rest(c) == _rest(d):
        raise LayoutError(
            f"gemm: A repeats the atom {_rest(a)} times along (M, K), B {_rest(b)} along (N, K), C "
            f"{_rest(c)} and D {_rest(d)} along (M, N); the counts must agree"
        )
    sums = _matrix(atom.c, c, None)  # (m + M * n, RestM, RestN)
    of_a = _matrix(atom.a, a, sums).reshape(k, m, *_rest(a))
    of_b = _matrix(atom.b, b, sums).reshape(k, n, *_rest(b))
    product = library(sums).einsum("kmar,knbr->nmab", of_a, of_b).reshape(sums.shape)
    total = sums + product
    for thread, fragment in enumerate(d):
        fragment.store(total[[atom.c(thread, v) for v in range(size(atom.c, 1))]])


def _rest(fragments: Sequence[Tensor]) -> tuple[int, int]:
    """How often the atom is repeated along the two modes of a matrix."""
    _, rows, columns = fragments[0].layout
    return size(rows), size(columns)


def _check_fragments(tv: Layout, fragments: Sequence[Any], first_of_c: Any) -> None:
    """Raises `LayoutError` unless all fragments have one shape, whose first mode has the values of
    `tv`, and the library of `first_of_c`; so C is checked first.
    """
    values = size(tv, 1)
    for x in fragments:
        if not isinstance(x, Tensor) or rank(x) != 3 or size(x, 0) != values:
            raise LayoutError(
                f"gemm: {x!r} must be a tensor of three modes, the first with the {values} values "
                f"of {tv}"
            )
    xp = library(first_of_c.data)
    extents = [tuple(map(size, x.layout)) for x in fragments]
    if any(library(x.data) is not xp for x in fragments) or len({*extents}) > 1:
        raise LayoutError(
            f"gemm: the fragments of all threads must have one shape, and be of {xp.__name__} as C "
            f"is; the first is {fragments[0]!r}"
        )


def _matrix(tv: Layout, fragments: Sequence[Tensor], like: Any) -> Any:
    """(element of the atom, rest, rest), from the fragments (value, rest, rest) of its threads."""
    loaded = [fragment.load() for fragment in fragments]
    held = library(loaded[0]).stack(loaded)
    holder = right_inverse(tv)  # element → thread + threads * value
    holders = [holder(element) for element in range(cosize(tv))]
    found = held[[h % len(held) for h in holders], [h // len(held) for h in holders]]
    if like is None:
        return found
    return found.astype(like.dtype) if hasattr(found, "astype") else found.to(like.dtype)
