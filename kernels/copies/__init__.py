"""The copy kernel: rows at any address, to rows at any address.

plan       CopyPlan: the tile, and who copies which words
rows       device code: two words of the source, shifted into one of the target
execute    the executor
"""
