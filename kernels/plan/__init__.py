"""What all plans share.

A kernel's plan is one frozen value that holds every layout by which its data moves. Device code
lowers these layouts to `cute` objects; the executor moves data by them on the CPU; proofs and
pictures use them too. What an instruction does with a layout is modelled, not lowered: the DSL
makes stmatrix from `PanelPlan.stmatrix_tv`, and `stmatrix_rows` is the model of the rows that its
lanes then address.

kernel_plan     KernelPlan: what a plan of any family answers
block_plan      BlockPlan: what plans share whose blocks work alone
arguments       the matrices that a kernel takes: extents, majors, alignment
checks          PlanError, and the checks that families share
raster          tile index → tile coordinate
tile_scheduler  which block computes which tiles and k-tiles
tv_layout       TVLayout: thread-value layouts of copies
smem            stages and bytes of shared memory
tma             the boxes by which TMA copies a tile
epilogue        what threads store and read, by C's thread-value layout
memory_report   the memory report: sectors and wavefronts of each FMA
tile_hierarchy  block, warp and thread tiles
rung            a rung of a ladder: the one below with one change
"""
