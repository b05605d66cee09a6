"""The allocator of shared memory, which the CuTe DSL moved between the versions that compile here."""

try:
    from cutlass.memory import SmemAllocator
except ModuleNotFoundError:  # 4.7, whose allocator 4.8 keeps under the old name, deprecated
    from cutlass.utils import SmemAllocator

__all__ = ["SmemAllocator"]
