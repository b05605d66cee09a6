"""Epilogues one of whose operands comes through the panels of C."""

from cutedsl_gemm.kernels.epilogue.expression import Operand
from cutedsl_gemm.kernels.epilogue.trace import trace

C = Operand("c", ("M", "N"), "bfloat16", alignment=8)
RESIDUAL = trace(lambda acc, c: acc + c, [C])
TWICE = trace(lambda acc, c: (acc + c, acc - c), [C])  # two results
D = Operand("d", ("M", "N"), "bfloat16", alignment=8)
SCALED = trace(lambda acc, c, d: acc * c + d, [C, D])
BOTH = trace(lambda acc, c, d: (acc * c, acc + d), [C, D])
