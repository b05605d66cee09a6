"""What happens to the accumulators of a product before they are stored, as data.

expression   Epilogue: operands, a straight-line program, results; frozen, hashable, printable
operations   the operations of a program: arguments, and how each prints
listing      an Epilogue as text
checks       whether a program is valid
text         an Epilogue as one line of JSON, and back
trace        an Epilogue from a Python function
traced       `trace`, with a cache
value        what the function computes with: records each operation on it
functions    torch's functions, by the operations that compute them
refusal      the errors for functions that cannot be traced
derivative   the derivative of an Epilogue
evaluate     a program on torch tensors: executor, derivatives
forms        how a kernel computes each operation, and how exactly
cost         how many instructions a program takes
registers    a program on the registers of a kernel
"""
