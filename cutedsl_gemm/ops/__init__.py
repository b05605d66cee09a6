"""Products as torch knows them: with derivatives, and as operators of compiled graphs.

derivatives        those of gemm(a, b), and its rule for vmap
fused_derivatives  those of gemm(a, b, epilogue=…)
operator           torch.ops.cutedsl_gemm.gemm
fused_operator     torch.ops.cutedsl_gemm.fused
library            how an operator is defined
"""
