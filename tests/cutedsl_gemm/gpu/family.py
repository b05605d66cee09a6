"""Plans that cover the sm90 family, by what they have in common."""

import itertools
from dataclasses import replace

from cutedsl_gemm.inputs.problem import Problem
from cutedsl_gemm.kernels.plan.checks import PlanError
from cutedsl_gemm.kernels.sm90.rungs import cooperative, pingpong, single, split
from cutedsl_gemm.select.candidate import ALL_CANDIDATES

FAMILY = [
    single(),
    pingpong((64, 64, 128)),
    pingpong((128, 192, 64), "float16", c_stages=3),
    cooperative(c_stages=2),
    cooperative((256, 128, 64), "float16", "MN", "MN"),
    cooperative((256, 192, 64)),
    pingpong(cluster=(2, 1)),
    pingpong((128, 192, 64), "float16", "MN", "MN", cluster=(1, 2)),
    cooperative(c_stages=2, cluster=(2, 1)),
    cooperative((256, 128, 64), b_major="MN", cluster=(1, 2)),
    split((128, 128, 64), splits=6),
    split((128, 128, 64), "float16", "MN", "MN", splits=8),
    split((128, 64, 64), splits=16),
    split((256, 128, 64), splits=2),
    single((64, 48, 64), "float16", "MN", "MN"),
    pingpong((64, 16, 64)),
    pingpong((64, 80, 128), b_major="MN", cluster=(8, 1)),
    pingpong((128, 128, 32)),
    cooperative((128, 176, 96), a_major="MN"),
    pingpong((128, 96, 64), "float16", b_major="MN"),
    pingpong((128, 176, 64)),
    pingpong((128, 176, 64), c_stages=1),
    pingpong((192, 112, 64), a_major="MN", cluster=(1, 2)),
    pingpong((128, 160, 64), b_major="MN", cluster=(2, 1)),
    cooperative((128, 240, 64), c_stages=2),
    cooperative((256, 144, 64), b_major="MN"),
    cooperative((256, 160, 64)),
    cooperative((256, 176, 64), cluster=(2, 1)),
    cooperative((256, 184, 64), "float16", b_major="MN", swapped=True),
    cooperative((192, 176, 64)),
    cooperative((192, 192, 64), "float16", "MN", "MN"),
    cooperative((192, 160, 64), cluster=(2, 1)),
    split((192, 128, 64), splits=3),
    split((128, 176, 64), splits=3),
    split((128, 48, 64), "float16", "MN", "MN", splits=8),
    pingpong((128, 104, 64), cluster=(4, 2)),
    pingpong((64, 72, 64), "float16", a_major="MN", cluster=(1, 4)),
    cooperative((192, 120, 64)),
    split((64, 136, 64), splits=4, cluster=(8, 1)),
    pingpong((64, 72, 128), cluster=(2, 4), swapped=True),
    pingpong((128, 144, 64), a_major="MN", swapped=True),
    pingpong((64, 16, 128), "float16", swapped=True),
    pingpong((64, 8, 64), swapped=True),
    pingpong((128, 136, 64), b_major="MN", swapped=True),
    cooperative((192, 160, 64), "float16", "MN", "MN", swapped=True),
    split((128, 32, 64), splits=8, swapped=True),
    split((128, 80, 64), "float16", "MN", "MN", splits=3, swapped=True),
    pingpong(cluster=(2, 2)),
    pingpong((64, 192, 64), a_major="MN", b_major="MN", cluster=(1, 8)),
    pingpong((128, 160, 64), b_major="MN", cluster=(4, 2), swapped=True),
    cooperative((192, 160, 64), a_major="MN", cluster=(2, 4)),
    cooperative((128, 256, 64), "float16", cluster=(4, 1), swapped=True),
    cooperative((64, 128, 64)),
    cooperative((64, 256, 64), "float16", "MN", "MN", cluster=(1, 2), swapped=True),
    cooperative((192, 208, 64), cluster=(1, 2), swapped=True),
    cooperative((192, 224, 64), "float16", "MN", "MN", cluster=(2, 1)),
    cooperative((192, 256, 64)),
    split((192, 208, 64), splits=3),
    split((64, 128, 64), splits=4),
    split((64, 24, 64), "float16", splits=8, swapped=True),
    split((64, 16, 64), b_major="MN", splits=3, cluster=(1, 8), swapped=True),
    split((64, 256, 64), a_major="MN", splits=2, cluster=(1, 4)),
    split((128, 64, 64), splits=6, cluster=(2, 1)),
    split((128, 128, 64), "float16", "MN", "MN", splits=3, cluster=(2, 2)),
    split((192, 96, 64), splits=16, cluster=(4, 2)),
    split((128, 32, 64), splits=8, cluster=(2, 4), swapped=True),
]


def named(plan):
    """The name of a plan among the parameters of a test."""
    swapped = " swapped" if plan.swapped else ""
    return f"{plan.kind} {plan.tile} {plan.cluster}{swapped}"


DENSE = Problem.dense(64, 64, 64)
M_AND_N_MAJOR = Problem(DENSE.a.transposed, DENSE.b.transposed, "float16")
# Every candidate, for two problems, or for the one that it serves.
CHOSEN = [
    candidate.plan(problem)
    for candidate, problem in itertools.product(ALL_CANDIDATES, (DENSE, M_AND_N_MAJOR))
    if candidate.serves(problem.majors)
]
# Whose threads store C.
ANYWHERE = [
    single((64, 48, 64), c_alignment=1),
    pingpong(c_alignment=1),
    pingpong((128, 192, 64), "float16", "MN", "MN", c_alignment=1),
    pingpong((64, 16, 64), c_alignment=1),
    pingpong((64, 88, 64), c_alignment=1),
    pingpong((192, 80, 64), c_stages=1, c_alignment=1),
    pingpong((64, 96, 64), cluster=(4, 2), c_alignment=1),
    pingpong((128, 136, 64), b_major="MN", swapped=True, c_alignment=1),
    pingpong((192, 40, 64), c_stages=1, swapped=True, c_alignment=1),
    pingpong((128, 160, 64), "float16", cluster=(2, 2), swapped=True, c_alignment=1),
    cooperative(c_stages=2, c_alignment=1),
    cooperative((256, 192, 64), cluster=(1, 2), c_alignment=1),
    cooperative((64, 128, 64), c_alignment=1),
    cooperative((192, 240, 64), c_alignment=1),
    cooperative((192, 144, 64), a_major="MN", swapped=True, c_alignment=1),
    split((128, 80, 64), splits=3, c_alignment=1),
    split((64, 128, 64), "float16", "MN", "MN", splits=4, cluster=(2, 1), c_alignment=1),
    split((128, 24, 64), splits=8, swapped=True, c_alignment=1),
]
BATCHED = [
    replace(plan, batched=True).check()
    for plan in FAMILY
    if plan.splits == 1 and plan.schedule != "single"
]
TILES = [
    (pingpong, (64, 80, 64)),
    (pingpong, (64, 32, 128)),
    (pingpong, (128, 96, 32)),
    (pingpong, (128, 160, 64)),
    (pingpong, (192, 112, 64)),
    (cooperative, (64, 144, 64)),
    (cooperative, (128, 224, 64)),
    (cooperative, (192, 128, 64)),
    (cooperative, (256, 96, 64)),
]
CLUSTERS = [(1, 1), (2, 1), (1, 2), (2, 2), (4, 2), (1, 8), (8, 1)]


def _persistent():
    """Plans whose blocks make tile after tile: every tile, swapped or not, with both stores of C.

    Clusters and numbers of staged panels take turns, among those that a tile can have.
    """
    kinds = itertools.product((8, 1), (False, True), TILES)
    for number, (c_alignment, swapped, (maker, tile)) in enumerate(kinds):
        options = {"swapped": swapped, "c_alignment": c_alignment}
        first = number % len(CLUSTERS)
        for cluster in CLUSTERS[first:] + CLUSTERS[:first]:
            try:
                plan = maker(tile, cluster=cluster, **options)
            except PlanError:
                continue  # a block's slice must be whole periods of the swizzle
            yield maker(tile, cluster=cluster, c_stages=1 + number % plan.panels % 4, **options)
            break


PERSISTENT = [*_persistent()]
