"""What `explain --pipeline` prints: a pipeline's listing, whether it is right, its timeline."""

from __future__ import annotations

from cutedsl_gemm.kernels.pipeline.counterexample import counterexample
from cutedsl_gemm.kernels.pipeline.decide import RULES, violation
from cutedsl_gemm.kernels.pipeline.steps import Pipeline
from cutedsl_gemm.kernels.pipeline.timeline import timeline


def report(pipeline: Pipeline) -> str:
    """The steps of all agents, the rules that hold or the one that is broken, and a timeline.

    >>> from cutedsl_gemm.kernels.sm90.rungs import pingpong
    >>> print(report(pingpong().pipeline))  # doctest: +ELLIPSIS
    6 stages...
    right        in every interleaving, for every number of tiles and k-tiles:
                 no deadlock: ...
    """
    return "\n\n".join((str(pipeline), verdict(pipeline), str(timeline(pipeline))))


def verdict(pipeline: Pipeline) -> str:
    """The rules, if all of them hold; or the violation of one."""
    found = violation(pipeline)
    if found is not None:
        return f"wrong        {counterexample(found)}"
    lines = (f"{'':<12} {rule}: {meaning}" for rule, meaning in RULES.items())
    where = "in every interleaving, for every number of tiles and k-tiles:"
    return "\n".join((f"right        {where}", *lines))
