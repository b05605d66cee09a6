"""What the kernel traces is what the plan says.

CuTe's own objects, read back on the CPU, equal the Python ones.
"""

import ast
import itertools
from dataclasses import replace
from pathlib import Path

import cutlass.cute as cute
import pytest

from cutedsl_gemm.kernels.compile import build
from cutedsl_gemm.kernels.compile.build import ARCH
from cutedsl_gemm.kernels.device import lower
from cutedsl_gemm.kernels.plan.smem import staged_layout
from cutedsl_gemm.kernels.sm90.pingpong import Pingpong
from cutedsl_gemm.kernels.sm90.rungs import pingpong
from layouts import ComposedLayout, Layout, LayoutError, Swizzle, wgmma_accumulator

TILES = [(128, 128, 64), (128, 192, 64), (64, 256, 64)]
MAJORS = [("K", "K"), ("MN", "MN")]


def traced(function):
    """What `function` returns while the DSL traces it: plain values read off CuTe objects."""
    found = []

    @cute.jit
    def trace():
        found.append(function())

    cute.compile(trace, options=f"--gpu-arch {ARCH}")
    return found[0]


def plain(layout):
    return Layout(layout.shape, layout.stride)


@pytest.mark.parametrize("tile", TILES)
@pytest.mark.parametrize("majors", MAJORS)
def test_layouts_lower_to_themselves(tile, majors):
    plan = pingpong(tile, a_major=majors[0], b_major=majors[1])
    every = [
        plan.accumulator,
        plan.fragment,
        plan.stmatrix_tv,
        staged_layout(plan.a.smem, plan.stages).outer,
    ]
    every += [buffer.outer for buffer in plan.buffers.values()]
    assert traced(lambda: [plain(lower.layout(layout)) for layout in every]) == every


def test_a_pointer_carries_the_swizzle_in_bytes():
    def swizzle():
        swizzle = lower.byte_swizzle(pingpong().a.smem)
        return swizzle.num_bits, swizzle.num_base, swizzle.num_shift

    assert traced(swizzle) == (3, 4, 3)


@pytest.mark.parametrize(("inner", "unit"), [(Swizzle(3, 3, 3), None), (Layout(8192), 16)])
def test_without_a_swizzle_in_a_unit_there_is_none_in_bytes(inner, unit):
    with pytest.raises(LayoutError, match="a Swizzle over a Layout, with its unit"):
        lower.byte_swizzle(ComposedLayout(inner, 0, Layout((128, 64), (64, 1)), unit=unit))


@pytest.mark.parametrize("tile", TILES)
def test_the_accumulator_is_laid_out_as_the_tensor_core_leaves_it(tile):
    plan = pingpong(tile)
    kernel = Pingpong(plan)
    bm, bn, _ = tile
    atom = traced(lambda: plain(kernel.make_mma().tv_layout_C))
    assert atom == wgmma_accumulator(bn)
    fragment = traced(
        lambda: plain(
            cute.make_rmem_tensor(
                kernel.make_mma().partition_shape_C((bm, bn)), cute.Float32
            ).layout
        )
    )
    # CuTe's registers, in the order of the plan's values
    assert fragment.shape == ((2, 2, bn // 8), bm // 64, 1)
    assert [fragment(i) for i in range(plan.registers)] == list(range(plan.registers))


@pytest.mark.parametrize(("bn", "swapped"), [(16, False), (16, True), (8, True)])
def test_the_lanes_of_stmatrix_address_the_rows_of_the_plan(bn, swapped):
    plan = pingpong((64, bn, 64), swapped=swapped)
    copy = traced(lambda: plain(Pingpong(plan).make_stmatrix().layout_dst_tv_tiled))
    for lane, warp in itertools.product(range(8 * plan.stmatrix.matrices), range(4)):
        assert copy(lane + 32 * warp, 0) == plan.stmatrix_rows(lane, warp, 0, 0)


@pytest.mark.parametrize("swapped", [False, True])
def test_stmatrix_takes_its_values_as_the_tensor_core_left_them(swapped):
    plan = pingpong(swapped=swapped)
    kernel, narrow = Pingpong(plan), Pingpong(replace(plan, tile=(64, 16, 64)))

    def source():
        return plain(kernel.make_stmatrix().layout_src_tv_tiled), plain(
            narrow.make_mma().tv_layout_C
        )

    copy, accumulator = traced(source)
    for thread, value in itertools.product(range(128), range(8)):
        assert copy(thread, value) == plan.stmatrix_tv(thread, value)
    assert accumulator == plan.stmatrix_tv


def test_shared_memory_is_what_the_plan_counts():
    for tile in TILES:
        plan = pingpong(tile)
        assert (
            traced(lambda plan=plan: Pingpong(plan).shared_storage().size_in_bytes())
            == plan.smem_bytes
        )


def test_every_layout_in_the_kernel_is_lowered_from_the_plan(monkeypatch):
    """What `compile_plan` lowers is the plan's layouts and nothing else."""
    plan, lowered = pingpong(a_major="MN"), []
    genuine = lower.layout
    monkeypatch.setattr(lower, "layout", lambda plain: lowered.append(plain) or genuine(plain))
    build.compile_plan(plan)
    tiles = [plan.a.slice_smem, plan.b.slice_smem, plan.staging]
    rings = [
        staged_layout(plan.a.smem, plan.stages),
        staged_layout(plan.b.smem, plan.stages),
        staged_layout(plan.staging, 2),
    ]
    expected = [plan.stmatrix_tv, plan.fragment, *(tile.outer for tile in tiles + rings)]
    assert set(lowered) == set(expected)


def test_no_layout_is_written_in_device_code():
    """Only `lower` builds layouts in CuTe; device code names none of its own."""
    builders = {"make_layout", "make_ordered_layout", "make_composed_layout", "make_swizzle"}
    for path in Path(build.__file__).parents[1].glob("s*/**/*.py"):
        called = {
            node.func.attr
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        }
        assert not called & builders, path
