"""The allocator of shared memory, which the CuTe DSL 4.8 has moved."""

try:
    from cutlass.memory import SmemAllocator
except ModuleNotFoundError:  # 4.7; in 4.8 the old name is deprecated
    from cutlass.utils import SmemAllocator

__all__ = ["SmemAllocator"]
