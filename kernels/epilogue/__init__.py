"""What happens to the accumulators of a product before they are stored, as data.

expression   Epilogue: operands, a straight-line program, results; frozen, hashable, printable
operations   the operations of a program: their names, and what each computes
trace        an Epilogue from a Python function
evaluate     a program on torch tensors: executor, derivatives
device       a program on the registers of a kernel
"""
