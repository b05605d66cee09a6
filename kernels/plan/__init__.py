"""What all plans share.

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
