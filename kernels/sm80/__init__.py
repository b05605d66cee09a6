"""The sm80 family (cp.async, ldmatrix, mma.m16n8k16): plans, device code, executor."""
