"""Which plan a product gets.

registry     the kernels by name, and the best one for a device
candidate    the plans among which gemm chooses on Hopper
costs        what each of them costs, whatever the problem
formulas     the time that each of them should take for a problem
correction   what measurements say beyond the formulas
model        both together: the expected times, and the fastest candidate
choose       the plan that should be fastest
preference   whether gemm should be as fast as torch.mm
timing       launches timed by CUDA events
tune         the plan that was measured to be fastest
precompile   every kernel that gemm can choose, compiled ahead of time
"""
