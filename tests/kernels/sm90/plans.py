"""The sm90 plans whose compiled kernels are run on the CPU: few of each kind, or many if `deep`."""

from dataclasses import replace

import pytest
from torch.nn import functional as F

from cutedsl_gemm.kernels.epilogue.expression import EpilogueOperand
from cutedsl_gemm.kernels.epilogue.trace import trace
from cutedsl_gemm.kernels.plan.raster import Raster
from cutedsl_gemm.kernels.sm90.rungs import cooperative, pingpong, single, split


def deep(*plans):
    """Parameters that run in CI alone."""
    return [pytest.param(plan, marks=pytest.mark.deep) for plan in plans]


def name(plan):
    kinds = {
        " gathered": plan.gathered,
        " scattered": plan.scattered,
        " batched": plan.batched,
        " gated": plan.matrices > 1,
        " loaded": plan.loaded_panels,
    }
    kind = next((each for each, of in kinds.items() if of), "")
    return f"{plan.kind} {plan.tile} {plan.cluster}{kind}"


SWIGLU = trace(lambda gate, value: F.silu(gate) * value, [], accumulators=2)

# Operands come by TMA, through the panels of the results.
RESIDUAL = EpilogueOperand("residual", ("M", "N"), "float16", alignment=8)
OTHER = EpilogueOperand("other", ("M", "N"), "bfloat16", alignment=8)
ADDED = trace(lambda acc, residual: acc + residual, [RESIDUAL])
TWICE = trace(lambda acc, residual: (acc + residual, acc - residual), [RESIDUAL])
SCALED = trace(lambda acc, residual, other: acc * residual + other, [RESIDUAL, OTHER])
BOTH = trace(
    lambda acc, residual, other: (acc * residual + other, acc - residual * other),
    [RESIDUAL, OTHER],
)

TMA = [
    pingpong((128, 72, 64), c_stages=2, cluster=(1, 2), swapped=True, b_major="MN"),
    pingpong((64, 32, 128), cluster=(2, 2), raster=Raster(3, "columns")),
    cooperative((192, 48, 64), c_stages=2, cluster=(2, 1), a_major="MN", b_major="MN"),
    single((128, 64, 64)),
    pingpong((64, 64, 64), cluster=(2, 1), b_major="MN", epilogue=SWIGLU),
    pingpong((64, 48, 64), epilogue=ADDED),  # 3 panels, 2 buffers
    pingpong((64, 48, 64), c_stages=2, epilogue=BOTH),  # a panel in flight, of 2 buffers
    pingpong((64, 72, 64), cluster=(2, 2)),  # 3 panels without a swizzle, 3 slices of B
    cooperative((192, 208, 64), cluster=(1, 2), swapped=True),  # 104 columns of each consumer
    *deep(
        pingpong((128, 104, 64)),
        pingpong((64, 136, 64), cluster=(4, 1), swapped=True),  # 17 slices of B
        cooperative((128, 160, 64), cluster=(4, 1), epilogue=SWIGLU),  # 10 slices
        pingpong((64, 40, 64), epilogue=ADDED),
        pingpong((64, 120, 128), epilogue=TWICE),
        pingpong((128, 176, 64), epilogue=SWIGLU),  # 88 columns of each
        cooperative((192, 24, 64), cluster=(1, 4), a_major="MN"),
        single((64, 56, 64), epilogue=ADDED),
        pingpong((64, 72, 64), swapped=True, epilogue=ADDED),
        pingpong((128, 192, 64), cluster=(2, 1), epilogue=ADDED),
        pingpong((128, 176, 64), cluster=(2, 1), swapped=True, epilogue=BOTH),
        cooperative((128, 160, 64), epilogue=SCALED),
        single((64, 96, 64), epilogue=SCALED),
        pingpong((64, 96, 64), c_stages=1, epilogue=ADDED),
        pingpong((64, 96, 128), b_major="MN", epilogue=TWICE),
        pingpong((128, 80, 64), cluster=(1, 2), swapped=True, epilogue=TWICE),
        cooperative((256, 128, 64), cluster=(2, 2), epilogue=ADDED),
        cooperative((192, 96, 64), epilogue=TWICE),
        cooperative((192, 240, 64)),
        cooperative((192, 224, 64), cluster=(2, 2), b_major="MN"),
        cooperative((192, 256, 64), a_major="MN"),
        single((64, 64, 64), epilogue=ADDED),
        pingpong((128, 192, 64), b_major="MN", epilogue=SWIGLU),
        pingpong((128, 80, 64), cluster=(1, 2), swapped=True, epilogue=SWIGLU),
        cooperative((128, 128, 64), cluster=(4, 2), epilogue=SWIGLU),
        cooperative((128, 256, 64), b_major="MN", cluster=(2, 1), epilogue=SWIGLU),
        single((64, 96, 128), epilogue=SWIGLU),
        pingpong((128, 96, 64), cluster=(2, 1), consumers=3, epilogue=ADDED),
        pingpong(consumers=3),
        pingpong(),
        pingpong((128, 192, 64)),
        pingpong((128, 144, 64), swapped=True),
        pingpong((64, 80, 64), swapped=True, a_major="MN"),
        pingpong((64, 96, 64), cluster=(2, 4)),
        cooperative(),
        cooperative((64, 48, 64)),
        cooperative((64, 128, 64)),
        cooperative((128, 256, 64), c_stages=2),
        cooperative((192, 144, 64), cluster=(1, 2), a_major="MN"),
        cooperative((192, 64, 64), swapped=True),
        cooperative((256, 64, 64), cluster=(2, 2), b_major="MN"),
        cooperative((256, 128, 64), cluster=(2, 2), c_stages=2),
        cooperative((256, 96, 64), b_major="MN", swapped=True),
        cooperative((256, 168, 64), swapped=True),  # 7 panels
        single(),
        single((64, 32, 64)),
        pingpong((64, 96, 16), cluster=(2, 1)),
        pingpong((64, 32, 48), swapped=True, b_major="MN"),
    ),
]
OF_EACH = replace(RESIDUAL, batched=True)
BATCHED = [
    pingpong((64, 72, 64), cluster=(2, 2), batched=True),
    cooperative((192, 48, 64), swapped=True, b_major="MN", batched=True),
    pingpong((64, 64, 64), cluster=(2, 1), b_major="MN", epilogue=SWIGLU, batched=True),
    pingpong(
        (64, 48, 64),
        batched=True,
        epilogue=trace(lambda acc, residual, other: acc * residual + other, [OF_EACH, OTHER]),
    ),
    pingpong((64, 72, 64), swapped=True, c_alignment=1, batched=True),
    *deep(
        pingpong((128, 48, 64), cluster=(2, 1), raster=Raster(3), batched=True),
        pingpong((64, 32, 128), raster=Raster(2, "columns"), a_major="MN", batched=True),
        cooperative((256, 64, 64), cluster=(1, 2), batched=True),
        cooperative((128, 160, 64), cluster=(4, 1), epilogue=SWIGLU, batched=True),
        pingpong((128, 80, 64), cluster=(1, 2), swapped=True, epilogue=SWIGLU, batched=True),
        pingpong((128, 80, 64), swapped=True, c_alignment=1, batched=True),  # in words of 8
        cooperative((128, 72, 64), c_alignment=1, batched=True),
        pingpong(
            (128, 176, 64),
            swapped=True,
            batched=True,
            epilogue=trace(lambda acc, residual: acc + residual, [OF_EACH]),
        ),
    ),
]
GATHERED = deep(
    replace(pingpong((64, 48, 64), cluster=(2, 1), raster=Raster(3, "columns")), gathered=True),
    replace(cooperative((128, 64, 64), epilogue=ADDED), gathered=True),
)
SCATTERED = deep(
    replace(pingpong((64, 48, 64), cluster=(2, 1), raster=Raster(2)), scattered=True),
    replace(cooperative((128, 80, 64), cluster=(1, 2)), scattered=True),
    replace(cooperative((128, 112, 64)), scattered=True),  # 7 panels at once
    replace(cooperative((192, 256, 64)), scattered=True),
    replace(pingpong((64, 96, 64), b_major="MN", consumers=3), scattered=True),
)
THREADS = [  # store C, whose rows may start anywhere
    pingpong((64, 72, 64), swapped=True, c_alignment=1),  # 3 panels
    pingpong((128, 80, 64), swapped=True, c_alignment=1),  # in words of 8 elements
    *deep(
        pingpong((64, 16, 64), swapped=True, c_alignment=1),
        pingpong((64, 48, 64), c_alignment=1, consumers=3),
        pingpong(c_alignment=1),
        pingpong((64, 48, 64), c_alignment=1),
        pingpong((64, 80, 64), swapped=True, c_alignment=1),
        pingpong((192, 40, 64), swapped=True, c_alignment=1),  # of 4
        cooperative((192, 80, 64), swapped=True, c_alignment=1),
        cooperative((192, 224, 64), c_alignment=1),
        cooperative((128, 256, 64), c_alignment=1, cluster=(1, 2)),
        single((64, 48, 64), c_alignment=1),
        pingpong((64, 136, 64), c_alignment=1),
        cooperative((128, 72, 64), c_alignment=1),
        pingpong((64, 96, 64), c_alignment=1, epilogue=SWIGLU),
        pingpong((128, 72, 64), swapped=True, c_alignment=1, b_major="MN", epilogue=SWIGLU),
    ),
]
SPLIT = [
    split((128, 40, 64), splits=3, cluster=(2, 1), swapped=True),  # two consumers, 5 slices of B
    *deep(
        split((64, 64, 64), splits=3, cluster=(2, 1)),
        split(splits=4),
        split((64, 104, 64), splits=3),
        split((192, 208, 64), splits=3),
        split((128, 48, 64), splits=3, epilogue=SWIGLU),
        split((64, 72, 64), splits=2, c_alignment=1),
        split((128, 64, 64), splits=3, epilogue=SWIGLU),
        split((128, 48, 64), splits=2, swapped=True, epilogue=SWIGLU),
        split((64, 24, 64), splits=2, swapped=True, b_major="MN", epilogue=SWIGLU),
        split((128, 48, 64), splits=2, swapped=True, cluster=(1, 2)),
        split((64, 128, 64), splits=5, c_alignment=1),
        split((128, 80, 64), splits=5, dtype="float16"),
        split((128, 24, 64), splits=4, swapped=True, c_alignment=1),
        split((256, 96, 64), splits=2, swapped=True, c_alignment=1),
    ),
]
