"""C (M, N) = A (M, K) · B (K, N) as a plan sees it: extents, strides, alignment, epilogue."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch

from cutedsl_gemm.kernels.epilogue.expression import PLAIN, Epilogue
from cutedsl_gemm.kernels.plan.checks import PER_VECTOR
from layouts.hardware.descriptor import Major

BYTES = {"bfloat16": 2, "float16": 2, "float32": 4}  # of an element
MAX_EXTENT = 2**31 - 256  # coordinates have 32 bits, and the last tile may extend past the matrix


def dtype_name(dtype: torch.dtype) -> str:
    """The name that a plan has for a type.

    >>> dtype_name(torch.bfloat16)
    'bfloat16'
    """
    return str(dtype).removeprefix("torch.")


@dataclass(frozen=True)
class Requirements:
    """What a kernel requires of its tensors.

    Addresses and leading strides must be multiples of `alignment` elements, those of the result
    multiples of `c_alignment`, if that is another. A kernel that `stores_anywhere` also has plans
    for a result whose contiguous rows have any length, stride and address.
    """

    owner: str  # the kernel, or the hardware unit, that messages name
    dtypes: tuple[torch.dtype, ...]
    alignment: int
    c_alignment: int | None = None
    stores_anywhere: bool = False
    devices: tuple[str, ...] = ("cpu", "cuda")

    @property
    def alignment_bytes(self) -> int:
        """The alignment of addresses, in bytes."""
        return self.alignment * self.dtypes[0].itemsize

    @property
    def with_meta(self) -> Requirements:
        """The same, for tensors on the meta device too."""
        return replace(self, devices=(*self.devices, "meta"))

    @property
    def for_c(self) -> Requirements:
        """What the kernel requires of the result alone, as its `alignment`.

        >>> TMA.for_c.alignment, replace(TMA, c_alignment=1).for_c.alignment
        (8, 1)
        """
        return self if self.c_alignment is None else replace(self, alignment=self.c_alignment)


# A TMA store clips rows exactly, but columns only to 16 bytes (observed on an H100): threads store
# all other results.
TMA = Requirements("TMA", (torch.bfloat16, torch.float16), PER_VECTOR, stores_anywhere=True)

WIDEST_ALIGNMENT = 32  # bytes, eight elements of fp32: no plan needs a wider one


@dataclass(frozen=True)
class Matrix:
    """The extents of a matrix, and the strides in elements that the kernel receives."""

    shape: tuple[int, int]
    stride: tuple[int, int]

    @property
    def row_major(self) -> bool:
        """Whether rows are contiguous."""
        return self.stride[1] == 1

    @property
    def row_alignment(self) -> int:
        """The alignment in bytes of contiguous rows or columns of 2-byte elements, 16 to 128.

        >>> [Matrix((64, k), (k, 1)).row_alignment for k in (4096, 4104, 4112, 4128)]
        [128, 16, 32, 64]
        """
        lead = self.stride[0] if self.row_major else self.stride[1]
        return max(16, min(128, 2 * (lead & -lead)))

    @property
    def transposed(self) -> Matrix:
        """The same memory with both modes exchanged."""
        return Matrix(self.shape[::-1], self.stride[::-1])


@dataclass(frozen=True)
class Problem:
    """C (M, N) = A (M, K) · B (K, N). `b` is one part of B, if the epilogue takes two.

    Of a batch, a and b are the first matrices, and all others have their strides.
    """

    a: Matrix
    b: Matrix
    dtype: str
    alignment: int = PER_VECTOR  # of leading strides and addresses, in elements
    invariant: bool = False  # whether M and N must not change the order of the sum over K
    c_alignment: int = PER_VECTOR  # of C's row length, leading stride and address, in elements
    epilogue: Epilogue = PLAIN
    batch: int = 1  # how many such products

    @classmethod
    def dense(
        cls,
        m: int,
        n: int,
        k: int,
        dtype: str = "bfloat16",
        majors: tuple[Major, Major] = ("K", "K"),
        batch: int = 1,
    ) -> Problem:
        """The product of contiguous matrices; by default, A is row-major and B column-major.

        >>> Problem.dense(16, 32, 64, majors=("K", "MN")).b
        Matrix(shape=(64, 32), stride=(32, 1))
        """
        of_a = (k, 1) if majors[0] == "K" else (1, m)
        of_b = (1, k) if majors[1] == "K" else (n, 1)
        return cls(Matrix((m, k), of_a), Matrix((k, n), of_b), dtype, batch=batch)

    @property
    def transposed(self) -> Problem:
        """Cᵀ = Bᵀ · Aᵀ."""
        epilogue = self.epilogue if self.epilogue is PLAIN else self.epilogue.transposed
        return replace(self, a=self.b.transposed, b=self.a.transposed, epilogue=epilogue)

    @property
    def majors(self) -> tuple[Major, Major]:
        """The contiguous modes of A (M, K) and of B (N, K), as PTX names them."""
        return "K" if self.a.row_major else "MN", "MN" if self.b.row_major else "K"

    @property
    def mnk(self) -> tuple[int, int, int]:
        """The extents M, N and K."""
        return (*self.a.shape[:1], *self.b.shape[1:], self.a.shape[1])

    @property
    def columns(self) -> int:
        """The columns of B: N of each part."""
        return self.b.shape[1] * self.epilogue.accumulators

    @property
    def flops(self) -> int:
        """Multiplications and additions of the products."""
        m, _, k = self.mnk
        return 2 * self.batch * m * self.columns * k

    @property
    def bytes(self) -> int:
        """Bytes of A, B, the operands and the results of the epilogue, each once per matrix.

        >>> Problem.dense(2, 3, 4).bytes  # 8 elements of A, 12 of B and 6 of C
        52
        """
        (m, n, k), epilogue = self.mnk, self.epilogue
        extents = {"M": m, "N": n}
        moved = BYTES[self.dtype] * k * (m + self.columns)
        for result in epilogue.results:
            dtype = "float32" if result.reduction else result.dtype or self.dtype
            kept = (extent for mode, extent in extents.items() if mode != result.over)
            moved += BYTES[dtype] * math.prod(kept)
        for operand in epilogue.operands:
            if not operand.by_value:
                moved += BYTES[operand.dtype] * math.prod(extents[mode] for mode in operand.modes)
        return moved * self.batch


def round_up(extent: int, multiple: int) -> int:
    """The smallest multiple of `multiple` that is at least `extent`.

    >>> round_up(23, 8), round_up(24, 8)
    (24, 24)
    """
    return -(-extent // multiple) * multiple
