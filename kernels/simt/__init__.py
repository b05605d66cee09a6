"""The SIMT family: fp32 by FMA, without tensor cores.

rungs            the ladder: five plans, each the one before with one change
plan             the plan, and what the hardware cannot do
direct           device code: operands from global memory
staged           device code: operands through shared memory
execute          the executor
memory_report    sectors of global memory, wavefronts of shared memory
"""
