"""When data may be touched: the protocol of a kernel as data, and whether it is right.

steps         what warps do: Wait, Load, Multiply, …; Loop, Agent, Pipeline
actions       a pipeline for a problem: what each warp does, with all indices known
moments       phases, arrivals, waits, calls of barriers, accesses
step_moments  the moments of each step
order         what lies before what in every interleaving
schedule      a deterministic run: when each moment comes, if every step has a duration
decide        the rules, for every problem; a violation is an interleaving

And as text:

listing          what each agent does: print(plan.pipeline)
timeline         a run: agents down, time across; timeline_svg draws it
counterexample   a violation: its interleaving as a table and as a chart
report           all of this, for `python -m cutedsl_gemm explain M N K --pipeline`
"""
