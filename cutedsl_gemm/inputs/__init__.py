"""What gemm is given, and the problem that it makes.

problem     Problem: extents, dtype, strides, alignment; what a kernel requires
checks      the errors for matrices that no kernel multiplies
tensors     a torch tensor as a matrix of a problem
aliasing    whether elements of a tensor, or of two, share memory
views       views of tensors that take less host time than torch's
pairs       two weights as the two parts of one tensor
operands    what an epilogue reads
request     a product with its epilogue, before a plan is chosen
transforms  torch's transforms around a call
remember    a cache of bounded size
"""
