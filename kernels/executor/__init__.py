"""What the executors of all families share.

driver     an executor from a generator of its steps
tensors    the tensors that a plan takes
tiles      matrices as tiles, thread-value layouts as indices, the tiles that the blocks visit
epilogue   the epilogue of a tile, through the layouts of the kernel
blocks     one tile of C a block: k-tiles through shared memory to units that multiply
"""

from cutedsl_gemm.kernels.executor.driver import executor
from cutedsl_gemm.kernels.executor.tensors import check_tensors, empty_tensors, on_cpu
from cutedsl_gemm.kernels.executor.tiles import (
    check_visits,
    multiply_one_by_one,
    thread_values,
    tiles,
    write_tiles,
)

__all__ = [
    "check_tensors",
    "check_visits",
    "empty_tensors",
    "executor",
    "multiply_one_by_one",
    "on_cpu",
    "thread_values",
    "tiles",
    "write_tiles",
]
