"""The sm70 family: one rung, fp16 by mma.m8n8k4.

plan       the plan, an sm80 plan with other fragments, and the rung
volta      device code
execute    the executor
"""
