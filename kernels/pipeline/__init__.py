"""When data may be touched: the protocol of a kernel as data, and whether it is right.

steps      what warps do: Wait, Load, Multiply, …; Loop, Agent, Pipeline
actions    a pipeline for a problem: what each warp does, with all indices known
order      what lies before what in every interleaving
listing    a pipeline as text: print(plan.pipeline)
decide     the rules, for every problem; a violation is an interleaving
"""
