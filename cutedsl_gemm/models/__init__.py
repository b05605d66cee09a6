"""A model of torch on gemm: its layers, its products, its compiled graphs.

converted    a module that convert gave another class, and the one before
recognition  which modules are MLPs
faster       linear and its like by gemm where that is expected to be faster, else by torch
faster_mlp   an MLP likewise
faster_batch products of batches likewise
conversion   convert(model), restore(model)
mode         enabled(): products of torch in a context
inductor     autotuned(): a candidate where Inductor measures products
"""
