"""What all plans share.

kernel_plan     KernelPlan: what a plan of any family answers
block_plan      BlockPlan: what plans share whose blocks work alone
arguments       the matrices that a kernel takes: extents, majors, alignment
checks          PlanError, and the checks that families share
raster          tile index → tile coordinate
tv_layout       TVLayout: thread-value layouts of copies
smem            stages and bytes of shared memory
tma             the boxes by which TMA copies a tile
memory_report   the memory report: sectors and wavefronts of each FMA
tile_hierarchy  block, warp and thread tiles
rung            a rung of a ladder: the one below with one change
"""
