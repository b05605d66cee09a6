"""The sm80 family: cp.async, ldmatrix, mma.m16n8k16.

rungs                the ladder: ten plans, each the one before with one change
plan, checks         the plan, and what the instructions and kernels cannot do
operand              A and B: the copy into shared memory, the buffer, its swizzle or padding
fragments            A and B in registers: what mma takes, the rows that ldmatrix's lanes address
accumulator          C: the outputs of each thread, in which register
singlestage          device code: load a k-tile, multiply it
multistage           device code: k-tiles loaded ahead by cp.async
register_pipeline    device code: fragments loaded ahead too
warp_mma             what the three share: ldmatrix, mma, epilogue
execute              the executor
memory_report        wavefronts of ldmatrix, sectors of global memory
ceiling              the peak rate of mma.m16n8k16
"""
