"""What gemm is given, and the problem that it makes.

problem     Problem: extents, dtype, strides, alignment; what a kernel requires
checks      the errors of two matrices that no kernel multiplies
tensors     a torch tensor as a matrix of a problem
aliasing    whether elements of a tensor, or of two, share memory
views       a tensor under other shapes, at little host time
pairs       two weights as the two parts of one tensor
operands    what an epilogue reads
request     a product with its epilogue, before a plan is chosen
transforms  torch's transforms around a call
remember    results by what they were made of, so many at most
"""
