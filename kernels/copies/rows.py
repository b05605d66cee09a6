"""The copy kernel: each thread loads two neighbouring words of the source for one of the target.

Who    a block a tile; first the tiles of the first matrix, then those of the next
When   load all words of the thread │ shift them, and store
Where  words are aligned in memory. A word of the target starts `shift` elements inside a word of
       the source: a thread loads that word and, unless the shift is 0, the next. The second load
       hits L1, since another lane loads the same word.

A word that lies inside the source, from its first element to its last, is loaded whole, any other
element by element. A word of the target that the start or end of a row cuts is stored element by
element. So nothing outside the source is read, and nothing outside the target is written.
"""

from itertools import pairwise
from typing import Any

import cutlass
import cutlass.cute as cute
from cuda.bindings.driver import CUstream
from cutlass import Int32, Int64, select_

from cutedsl_gemm.kernels.copies.plan import CopyPlan
from cutedsl_gemm.kernels.device import lower
from cutedsl_gemm.kernels.device.opaque import wait_for_previous_launch
from cutedsl_gemm.kernels.device.tile import thread_coordinates
from cutedsl_gemm.kernels.device.words import funnel_shift, gmem_word


class CopyRows:
    """One kernel for matrices of every extent, stride and address."""

    def __init__(self, plan: CopyPlan) -> None:
        self.plan = plan
        self.dtype = lower.DTYPES[plan.dtype]
        self.element = self.dtype.width // 8  # bytes
        self.moves = plan.copy.lines * plan.copy.vectors  # words of a thread

    def arguments(self) -> tuple[Any, ...]:
        """What the kernel is compiled for: pairs (source, target) with contiguous rows."""

        def pair() -> tuple[Any, Any]:
            shape = cute.sym_int(), cute.sym_int()
            return matrix(shape), matrix(shape)

        def matrix(shape: tuple[Any, Any]) -> Any:
            stride = cute.sym_int64(), 1
            return cute.runtime.make_fake_tensor(
                self.dtype, shape, stride, assumed_align=self.element
            )

        return (tuple(pair() for _ in range(self.plan.matrices)),)

    @cute.jit
    def __call__(self, pairs, stream: CUstream):
        """Copy each source (rows, columns) to its target."""
        self.kernel(pairs).launch(
            grid=(sum(self.tile_count(target) for _, target in pairs), 1, 1),
            block=(self.plan.threads, 1, 1),
            stream=stream,
            use_pdl=self.plan.overlap,
        )

    def tile_counts(self, target):
        """The tiles (down, across) of a target; the first of a row starts at an aligned word."""
        (rows, columns), (bm, bn), plan = target.shape, self.plan.tile, self.plan
        start, stride = target.iterator.toint(), Int64(target.stride[0] * self.element)
        askew = ((start | stride) & (plan.word_bytes - 1)) != 0
        before = Int32(select_(askew, Int32(plan.width - 1), Int32(0)))  # elements, at most
        return cute.ceil_div(rows, bm), cute.ceil_div(columns + before, bn)

    def tile_count(self, target):
        """The tiles of a target."""
        down, across = self.tile_counts(target)
        return down * across

    def tile_of_block(self, pairs):
        """What `_memory` finds of the pair that this block copies, and the coordinate of its tile.

        The values of all pairs are computed, and selected: the code of a tile stands once.
        """
        block, first = cute.arch.block_idx()[0], Int32(0)
        found = [*_memory(pairs[0], self.element), self.tile_counts(pairs[0][1])[1], block]
        for before, pair in pairwise(pairs):
            first = first + self.tile_count(before[1])
            later = *_memory(pair, self.element), self.tile_counts(pair[1])[1], block - first
            found = [
                type(new)(select_(block >= first, new, old))
                for new, old in zip(later, found, strict=True)
            ]
        *memory, across, tile = found
        return memory, (tile // across, tile % across)

    @cute.kernel
    def kernel(self, pairs):
        matrices, (i, j) = self.tile_of_block(pairs)
        if cutlass.const_expr(self.plan.overlap):
            wait_for_previous_launch(i, j)
        (bm, bn), width = self.plan.tile, self.plan.width
        source, source_stride, target, target_stride, rows, columns = matrices
        end = source + (rows - 1) * source_stride + Int64(columns) * self.element
        # (elements of a word, this word and the next, words of a thread)
        loaded = cute.make_rmem_tensor((width, 2, self.moves), self.dtype)
        shifted = cute.make_rmem_tensor((width,), self.dtype)
        loaded.fill(0)
        coord = thread_coordinates(self.plan.copy, cute.arch.thread_idx()[0])
        words = []
        for move in cutlass.range_constexpr(self.moves):
            line, vector = move // self.plan.copy.vectors, move % self.plan.copy.vectors
            row, column = coord((line, (0, vector)))
            row, column = i * bm + row, j * bn + column
            start = target + row * target_stride
            column = column - Int32(start & (self.plan.word_bytes - 1)) // self.element
            inside = (row < rows) & (column < columns) & (column + width > 0)
            wanted = source + row * source_stride + Int64(column) * self.element
            shift = Int32(wanted & (self.plan.word_bytes - 1))  # bytes
            words.append((start, column, inside, shift))
            if inside:
                self.load(wanted - shift, source, end, loaded[None, 0, move])
            if inside & (shift > 0):
                at = wanted - shift + self.plan.word_bytes
                self.load(at, source, end, loaded[None, 1, move])
        for move in cutlass.range_constexpr(self.moves):
            start, column, inside, shift = words[move]
            funnel_shift(loaded[None, None, move], shift, shifted)
            if inside:
                self.store(shifted, start, column, columns)
        if cutlass.const_expr(self.plan.overlap):
            # At the end, so that the blocks of the next launch start in order (docs/performance).
            cute.arch.griddepcontrol_launch_dependents()

    @cute.jit
    def load(self, address, first, end, elements):
        """The word at an address, as far as it lies in the bytes from `first` to `end`."""
        if (address >= first) & (address + self.plan.word_bytes <= end):
            cute.autovec_copy(gmem_word(address, self.dtype, self.plan.width), elements)
        else:
            for i in cutlass.range_constexpr(self.plan.width):
                at = address + i * self.element
                if (at >= first) & (at < end):
                    elements[i] = gmem_word(at, self.dtype, 1)[0]

    @cute.jit
    def store(self, elements, start, column, columns):
        """The word of a row from a column on, as far as the row has these columns."""
        address = start + Int64(column) * self.element
        if (column >= 0) & (column + self.plan.width <= columns):
            cute.autovec_copy(elements, gmem_word(address, self.dtype, self.plan.width))
        else:
            for i in cutlass.range_constexpr(self.plan.width):
                if (column + i >= 0) & (column + i < columns):
                    target = gmem_word(address + i * self.element, self.dtype, 1)
                    target[0] = elements[i]


def _memory(pair, element):
    """(address, bytes between rows) of source and target; (rows, columns)."""
    source, target = pair
    places = (
        place
        for matrix in (source, target)
        for place in (matrix.iterator.toint(), Int64(matrix.stride[0]) * element)
    )
    return *places, *(Int32(extent) for extent in source.shape)
