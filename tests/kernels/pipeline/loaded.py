"""Epilogues one of whose operands comes through the panels of C."""

from cutedsl_gemm.kernels.epilogue.expression import EpilogueOperand
from cutedsl_gemm.kernels.epilogue.trace import trace

C = EpilogueOperand("c", ("M", "N"), "bfloat16", alignment=8)
RESIDUAL = trace(lambda acc, c: acc + c, [C])
TWICE = trace(lambda acc, c: (acc + c, acc - c), [C])  # two results
D = EpilogueOperand("d", ("M", "N"), "bfloat16", alignment=8)
SCALED = trace(lambda acc, c, d: acc * c + d, [C, D])
BOTH = trace(lambda acc, c, d: (acc * c, acc + d), [C, D])
