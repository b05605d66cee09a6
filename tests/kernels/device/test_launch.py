"""What kernels are launched with: blocks, threads, clusters, shared memory, overlap.

The DSL traces the host's part for the extents of a problem. The launches are recorded, and the
kernels themselves are not traced.
"""

from math import ceil, prod

import cutlass
import cutlass.cute as cute
import pytest
from cutlass.cutlass_dsl import cutlass as dsl

from cutedsl_gemm.kernels.device import lower
from cutedsl_gemm.kernels.device.compiler import compile_kernel
from cutedsl_gemm.kernels.plan.arguments import arguments
from cutedsl_gemm.kernels.plan.tile_scheduler import TileScheduler
from cutedsl_gemm.kernels.plan.tma import EVICT_FIRST, EVICT_NORMAL
from cutedsl_gemm.kernels.simt.rungs import block2d, naive
from cutedsl_gemm.kernels.sm70.plan import volta884
from cutedsl_gemm.kernels.sm80.rungs import large, mma_k8, raster
from cutedsl_gemm.kernels.sm90 import mainloop
from cutedsl_gemm.kernels.sm90.plan import Sm90Plan
from cutedsl_gemm.kernels.sm90.rungs import cooperative, pingpong, single, split

SMS = 132
PROBLEMS = (1000, 520, 264), (8, 4104, 64)
PANELS = [
    single((128, 64, 64)),
    pingpong(),
    pingpong((64, 32, 128), cluster=(1, 4), swapped=True),
    cooperative((192, 144, 64)),
    cooperative((256, 128, 64), cluster=(1, 2)),
]
SPLIT = [split(splits=3), split((64, 96, 64), splits=4, cluster=(2, 4), swapped=True)]
ONE_TILE = [naive(), block2d(), volta884(), mma_k8(), raster(), large()]


class Launched(Exception):
    """All launches of a call are recorded."""


@pytest.fixture
def launches(monkeypatch):
    """launches(plan, mnk, count): the keywords of the call's launches, except the stream.

    Also the cache policies of an sm90 product: for A and B, what is asked, and the answers.
    """
    blocks = TileScheduler.blocks
    monkeypatch.setattr(TileScheduler, "blocks", lambda self, tiles, *_: blocks(self, tiles, SMS))
    monkeypatch.setattr(mainloop, "uses_pdl", lambda plan, *asked: constants(asked[:3]))
    monkeypatch.setattr(
        mainloop, "pass_through_l2", lambda plan, *asked: [[x, *constants(asked)] for x in "AB"]
    )
    monkeypatch.setattr(cutlass, "select_", lambda first, *ways: (first, *constants(ways)))

    def launches(plan, mnk, count=1):
        found = []

        def launch(self, *, stream, **keywords):
            self._launched = True
            if isinstance(plan, Sm90Plan) and not found:
                keywords["policies"] = [*self.func_args[-1]]
            found.append(keywords)
            if len(found) == count:
                raise Launched

        monkeypatch.setattr(dsl.KernelLauncher, "launch", launch)
        with pytest.raises(Launched):
            compile_kernel(plan.device_code(), *call(plan, *mnk), arch="sm_90a")
        return found

    return launches


def constants(values):
    """Numbers that are known as the DSL traces."""
    return [each.value for each in values]


def call(plan, m, n, k):
    """The arguments of a plan's kernel, for a product of these extents."""
    extents, dtype = {"M": m, "N": n, "K": k}, lower.DTYPES[plan.dtype]
    tensor = cute.runtime.make_fake_tensor
    for each in arguments(plan).values():
        rows, columns = shape = tuple(extents[mode] for mode in each.modes)
        stride = (columns, 1) if each.row_major else (1, rows)
        yield tensor(dtype, shape, stride, assumed_align=16)
    if elements := plan.workspace(m, n):
        yield tensor(cutlass.Float32, (elements,), (1,), assumed_align=16)
    yield cutlass.Int32(SMS)


def tile_count(plan, mnk, tile):
    """Tiles of the plan's C, those at the edges included."""
    return prod(ceil(extent / of) for extent, of in zip(plan.exchanged(mnk[:2]), tile, strict=True))


def multiplies(plan, mnk):
    """What the product of an sm90 plan is launched with."""
    blocks = plan.tile_scheduler.blocks(tile_count(plan, mnk, plan.cluster_tile), SMS)
    extents = [*plan.exchanged(mnk[:2]), mnk[2]]
    return {
        "grid": (blocks, 1, 1),
        "block": (plan.threads, 1, 1),
        "cluster": (plan.cluster_size, 1, 1) if plan.cluster_size > 1 else None,
        "smem": plan.smem_bytes,
        "min_blocks_per_mp": 1,
        "use_pdl": extents,
        "policies": [([x, *extents], EVICT_FIRST, EVICT_NORMAL) for x in "AB"],
    }


@pytest.mark.parametrize("mnk", PROBLEMS, ids=str)
@pytest.mark.parametrize("plan", PANELS, ids=lambda plan: f"{plan.kind} {plan.cluster}")
def test_an_sm90_kernel_has_the_blocks_and_the_memory_of_its_plan(launches, plan, mnk):
    assert launches(plan, mnk) == [multiplies(plan, mnk)]


@pytest.mark.parametrize("mnk", PROBLEMS, ids=str)
@pytest.mark.parametrize("plan", SPLIT, ids=lambda plan: f"{plan.cluster}")
def test_a_split_has_a_block_for_every_split_and_for_every_part_of_its_sums(launches, plan, mnk):
    product, reduction = launches(plan, mnk, count=2)
    assert product == multiplies(plan, mnk)
    tiles = tile_count(plan, mnk, plan.cluster_tile) * plan.cluster_size
    assert reduction == {
        "grid": (tiles * plan.c_tile[0] // plan.reduction_rows, 1, 1),
        "block": (plan.reduction.threads, 1, 1),
        "use_pdl": True,
    }


@pytest.mark.parametrize("mnk", PROBLEMS, ids=str)
@pytest.mark.parametrize("plan", ONE_TILE, ids=lambda plan: plan.name)
def test_the_other_families_have_a_block_for_every_tile(launches, plan, mnk):
    tiles = prod(ceil(extent / of) for extent, of in zip(mnk[:2], plan.tile[:2], strict=True))
    assert launches(plan, mnk) == [
        {"grid": (tiles, 1, 1), "block": (plan.threads, 1, 1), "smem": plan.smem_bytes}
    ]
