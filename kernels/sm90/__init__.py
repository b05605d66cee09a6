"""The sm90 family: TMA loads, wgmma, warp specialization.

rungs            the ladder: single, cooperative, pingpong, split
plan, checks     Sm90Plan, what all plans share, and what the hardware cannot do
epilogue_plan    PanelPlan: C is stored by stmatrix and TMA, or by threads if its rows are no
                 multiples of 16 bytes. `stmatrix_rows` is the row address of each lane;
                 `panel_store` proves that the stores are free of bank conflicts
                 (ConflictFree, layouts/hardware/conflict_free.py)
split_k_plan     SplitKPlan: K is split over blocks, a second kernel adds partial sums
pipeline         when data may be touched: the steps of every warp
operand          A and B: the swizzled tile in shared memory, its TMA slices
resources        schedules, warpgroups, registers, shared memory
mainloop         device code that all kernels share: roles, TMA loads, mainloop
epilogue         device code: C through panels in shared memory, moved by TMA or by threads
panel_loads      device code: an operand of the epilogue, by TMA through the panels of C
single, cooperative, pingpong, split_k    device code: a kernel each
execute          the executor
launches         compiled kernels with their arguments, for the interpreter of PTX
"""
