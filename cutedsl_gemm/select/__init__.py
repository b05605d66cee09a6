"""Which plan a product gets.

registry     the kernels by name, and the best one for a device
candidate    the plans among which gemm chooses on Hopper
model        the time that each of them should take
choose       the plan that should be fastest
timing       launches timed by CUDA events
tune         the plan that was measured to be fastest
explain      the choice and its reasons, as text
precompile   every kernel that gemm can choose, compiled ahead of time
"""
