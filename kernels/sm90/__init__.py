"""The sm90 family: TMA loads, wgmma, warp specialization.

operand          A or B: its swizzled tile in shared memory, its TMA slices
base_plan        Sm90Plan, what all plans share
tma_store_plan   TmaStorePlan: C is stored by stmatrix and TMA
split_plan       SplitPlan: K is split over blocks, a second kernel adds partial sums
plan             single, cooperative, pingpong, split: the checked plans

gemm             device code that all kernels share: roles, TMA loads, mainloop
epilogue         the TMA-store epilogue
persistent       the persistent grid
single, cooperative, pingpong, split    the kernels

execute          the CPU executor
"""
