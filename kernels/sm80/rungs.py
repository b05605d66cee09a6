"""The sm80 ladder: ten GEMMs on mma.m16n8, each the one before with one change.

mma_k8 → mma → padded → swizzled → ldmatrix_x4 → multistage → raster → ahead → large → wide. Three
device files serve all ten: `singlestage` the first five, which load a k-tile and then multiply it;
`multistage` the two that load k-tiles ahead; `register_pipeline` the three that also load fragments
ahead.

To add a rung, decorate a function with `Sm80Rung` that returns `replace(below.recipe, …)`, and add
it to `RUNGS`: the registry, the ladder and its page take it from there (docs/add-a-kernel.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from cutedsl_gemm.kernels.epilogue.expression import PLAIN, Epilogue
from cutedsl_gemm.kernels.plan.checks import PER_VECTOR, PlanError
from cutedsl_gemm.kernels.plan.raster import Raster
from cutedsl_gemm.kernels.plan.rung import Rung
from cutedsl_gemm.kernels.plan.tv_layout import load_layout
from cutedsl_gemm.kernels.sm80.accumulator import (
    Tile,
    Warps,
    accumulator,
    fragment,
    outputs,
    permuted_b,
)
from cutedsl_gemm.kernels.sm80.operand import ALIGNMENTS, Operand, tile_smem
from cutedsl_gemm.kernels.sm80.plan import Sm80Plan
from layouts.hardware.descriptor import Major


@dataclass(frozen=True)
class Recipe:
    """What a rung decides, whatever the dtype, the majors and the alignment are."""

    tile: Tile = (128, 128, 64)
    warps: Warps = (2, 2)  # along M, along N
    mma_k: int = 8  # the depth of one mma
    mma_per_ldmatrix: int = 1  # mma along N for which one ldmatrix loads B
    padding: int = 0  # elements between the lines of shared memory
    swizzle_bits: int = 0
    stages: int = 1
    raster: Raster = Raster(1)
    prefetch_fragments: bool = False
    permuted_mma: int = 1  # mma along N whose columns are permuted together, if B's can be


class Sm80Rung(Rung[Recipe]):
    """Called, it makes the checked plan of its recipe."""

    def __call__(
        self,
        dtype: str = "bfloat16",
        a_major: Major = "K",
        b_major: Major = "MN",
        alignment: int = PER_VECTOR,
        epilogue: Epilogue = PLAIN,
    ) -> Sm80Plan:
        """The checked plan for leading strides and addresses of multiples of `alignment` elements.

        PlanError if cp.async has no copy of that width, or the hardware cannot run the plan.
        """
        name, recipe = f"sm80_{self.__name__}", self.recipe
        if alignment not in ALIGNMENTS:
            raise PlanError(
                f"{name}: alignment is {alignment!r}; it must be one of {ALIGNMENTS} elements, "
                "since cp.async moves 16, 8 or 4 bytes"
            )
        tile, warps = recipe.tile, recipe.warps
        (bm, bn, bk), (down, along) = tile, warps
        # An MN-major B has its columns in 16-byte vectors, which ldmatrix transposes: they stay in
        # place. So do those of narrow copies, since rows of C are then not 16-byte aligned.
        permuted_mma = recipe.permuted_mma if b_major == "K" and alignment == PER_VECTOR else 1
        a_smem, b_smem = (
            tile_smem(rows, bk, major, recipe.padding, recipe.swizzle_bits)
            for rows, major in ((bm, a_major), (bn, b_major))
        )
        a_copy, b_copy = (
            load_layout(rows, bk, major, 32 * down * along, alignment)
            for rows, major in ((bm, a_major), (bn, b_major))
        )
        return Sm80Plan(
            name=name,
            dtype=dtype,
            a_major=a_major,
            b_major=b_major,
            tile=tile,
            warps=warps,
            step=(16 * down, 8 * recipe.mma_per_ldmatrix * along, recipe.mma_k),
            a=Operand(a_copy, a_smem, a_smem),
            b=Operand(b_copy, permuted_b(b_smem, warps, permuted_mma), b_smem),
            accumulator=accumulator(tile, warps, permuted_mma),
            c=outputs(tile, warps, permuted_mma),
            fragment=fragment(tile, warps, permuted_mma),
            stages=recipe.stages,
            prefetch_fragments=recipe.prefetch_fragments,
            raster=recipe.raster,
            epilogue=epilogue,
        ).check()


@Sm80Rung
def mma_k8() -> Recipe:
    """New: the tensor core. Four warps on a tile of 128×128, ldmatrix, mma.m16n8k8.

    Costs: rows of a tile are 128 bytes apart in shared memory, so that the eight rows of a matrix
    are in the same four banks: ldmatrix takes 8 wavefronts a matrix, where 1 is the least.
    """
    return Recipe()


@Sm80Rung
def mma() -> Recipe:
    """New: mma.m16n8k16, twice as deep.

    Gains: half as many mma and ldmatrix, though ldmatrix still takes 8 wavefronts a matrix. Costs:
    registers, since the fragments of a step are twice as deep.
    """
    return replace(mma_k8.recipe, mma_k=16)


@Sm80Rung
def padded() -> Recipe:
    """New: 16 bytes of padding between the lines of shared memory.

    Gains: the eight rows of a matrix are in different banks. Costs: an eighth more shared memory.
    """
    return replace(mma.recipe, padding=8)


@Sm80Rung
def swizzled() -> Recipe:
    """New: a swizzle in place of the padding; it XORs a line's number into its 16-byte vectors.

    Gains: no bank conflicts, as in `padded`, and no memory for padding. Costs: a few integer
    instructions, which XOR addresses.
    """
    return replace(padded.recipe, padding=0, swizzle_bits=3)


@Sm80Rung
def ldmatrix_x4() -> Recipe:
    """New: a warp takes two mma along N at a time, so that one ldmatrix loads four matrices of B.

    Gains: half as many ldmatrix of B. Costs: a few registers, for the B of two mma.
    """
    return replace(swizzled.recipe, mma_per_ldmatrix=2)


@Sm80Rung
def multistage() -> Recipe:
    """New: cp.async loads k-tiles into three stages of shared memory while the warps multiply.

    Gains: the tensor core no longer waits for global memory, and no register holds data in flight.
    Costs: three times the shared memory.
    """
    return replace(ldmatrix_x4.recipe, stages=3)


@Sm80Rung
def raster() -> Recipe:
    """New: blocks that run together compute tiles in eight rows of tiles, not in one.

    Gains: they read less of A and B, which matters where L2 does not hold both. Costs: no register,
    no memory.
    """
    return replace(multistage.recipe, raster=Raster(8))


@Sm80Rung
def ahead() -> Recipe:
    """New: ldmatrix loads the next step's fragments while mma multiplies this step's.

    Gains: the tensor core waits neither for shared memory nor at the barrier of a k-tile. Costs:
    the registers of two steps.
    """
    return replace(raster.recipe, prefetch_fragments=True)


@Sm80Rung
def large() -> Recipe:
    """New: eight warps on a tile of 128×256.

    Gains: an element of A serves twice the columns, which takes three quarters of the bytes into
    shared memory for a product. Costs: one block takes all registers of a multiprocessor, and no
    other block covers its start and end; 144 KB of shared memory, more than 8.6 and 8.9 have.
    """
    return replace(ahead.recipe, tile=(128, 256, 64), warps=(2, 4))


@Sm80Rung
def wide() -> Recipe:
    """New: the columns of B are permuted in shared memory so that a thread holds eight in a row.

    Gains: C is stored 16 bytes at a time, not 4, without a shuffle. Costs: no register, no memory.
    An MN-major B is not permuted, since ldmatrix transposes 16 bytes of its columns; nor is B if
    the rows of C are not 16-byte aligned.
    """
    return replace(large.recipe, permuted_mma=4)


RUNGS: tuple[Sm80Rung, ...] = (
    mma_k8,
    mma,
    padded,
    swizzled,
    ldmatrix_x4,
    multistage,
    raster,
    ahead,
    large,
    wide,
)
