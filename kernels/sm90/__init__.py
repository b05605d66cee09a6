"""The sm90 family: TMA loads, wgmma, warp specialization.

rungs            the ladder: single, cooperative, pingpong, split
plan, checks     Sm90Plan, what all plans share, and what the hardware cannot do
panel_plan       PanelPlan: C is stored by stmatrix and TMA, or by threads if its rows are not
                 multiples of 16 bytes. `stmatrix_rows` is the row address of each lane;
                 `panel_store` proves that the stores are free of bank conflicts
                 (ConflictFree, layouts/hardware/conflict_free.py)
explain          a plan as text
panels           panels of C in shared memory: their widths, their layout
split_k_plan     SplitKPlan: K is split over blocks, a second kernel adds partial sums
launch_policy    whether a launch starts early, and which operands stay in L2
pipeline         when data may be touched: the steps of every warp
operand          A and B: the swizzled tile in shared memory, its TMA slices
resources        schedules, warpgroups, registers, shared memory
mainloop         device code that all kernels share: roles, TMA loads, mainloop
epilogue         device code: what the plan's epilogue makes of the accumulators, to C
panel_fragments  device code: stmatrix and ldmatrix of a panel
panel_stores     device code: a panel in shared memory goes to C, by TMA or by threads
panel_lines      the words and elements of a panel that each thread stores
word_panels      device code: threads store a panel in aligned words
panel_loads      device code: a matrix operand comes by TMA, into the panels of C
thread_reads     device code: operands that threads read from global memory
thread_results   device code: results that threads store from registers, and reductions
scattered_rows   device code: reduce-scatter, the rows of C that other GPUs get
single, cooperative, pingpong, split_k    device code: a kernel each
execute          the executor; execute_epilogue: from accumulators to C;
                 execute_addresses: where instructions put data, and where they find it
"""
