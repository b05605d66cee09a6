"""The machine code for sm_90a, compiled here without a GPU, is what the plan says and no more."""

from collections import Counter
from math import gcd
from pathlib import Path

import pytest

from cutedsl_gemm.kernels.compile import build, sass
from cutedsl_gemm.kernels.plan import tma
from cutedsl_gemm.kernels.plan.raster import Raster
from cutedsl_gemm.kernels.sm90.resources import SMEM_BYTES
from cutedsl_gemm.kernels.sm90.rungs import cooperative, pingpong, single, split

PLANS = [
    pingpong(),
    pingpong(dtype="float16", raster=Raster(1)),
    pytest.param(pingpong(a_major="MN"), marks=pytest.mark.deep),
    pytest.param(pingpong(b_major="MN"), marks=pytest.mark.deep),
    pingpong(a_major="MN", b_major="MN"),
    pingpong(tile=(128, 192, 64)),
    cooperative(c_stages=2),
    cooperative((256, 128, 64), a_major="MN"),
    cooperative((256, 192, 64)),
    pingpong((64, 16, 64)),
    pingpong((128, 96, 64), b_major="MN"),
    cooperative((256, 176, 64), b_major="MN"),
    cooperative((192, 176, 64), a_major="MN"),
    pingpong((128, 144, 64), swapped=True),
    cooperative((256, 96, 64), b_major="MN", swapped=True),
    pingpong((128, 8, 64), swapped=True),
]


def overlaps_the_launch_before(report):
    """And waits for it, once."""
    return (report.count("PREEXIT"), report.count("ACQBULK")) == (1, 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    "plan", PLANS, ids=lambda plan: f"{plan.tile}-{plan.dtype}-{plan.a.major}-{plan.b.major}"
)
def test_instructions_and_resources(plan):
    _, bn, bk = plan.tile
    report = build.inspect(plan)
    boxes = [
        len(tma.boxes(operand.smem, operand.contiguous).origins) for operand in (plan.a, plan.b)
    ]
    wgmmas = 2 * (plan.rows // 64) * (bk // 16)  # the first k-tile is peeled
    assert report.count("HGMMA") == report.count(f"HGMMA.64x{bn}x16") == wgmmas
    assert report.count("UTMALDG") == sum(boxes)
    # the boxes of each panel: more would mean a wrong swizzle unit
    boxes = tma.boxes(plan.staging, plan.contiguous).origins
    assert report.count("UTMASTG") == plan.panels * len(boxes)
    stores = f"STSM.16.M{'T' * plan.swapped}88.{plan.stmatrix.matrices}"
    count = plan.rows * bn // (64 * plan.stmatrix_columns)
    assert report.count("STSM") == report.count(stores) == count
    assert report.register_split == (plan.producer_registers, plan.consumer_registers)
    least = plan.producer_registers + plan.consumers * plan.consumer_registers
    assert (1 + plan.consumers) * report.registers == least
    # each panel: wait until TMA has read the last one, fence what stmatrix wrote, store, commit
    assert report.count("UTMACMDFLUSH") == plan.panels
    assert report.count("DEPBAR.LE") == plan.panels + 1  # and once before the block ends
    assert (
        report.count("FENCE.VIEW.ASYNC") == plan.panels + 1
    )  # and one before mbarrier.init, by ptxas
    assert report.spills == report.stack_bytes == 0
    assert overlaps_the_launch_before(report)
    assert plan.smem_bytes <= SMEM_BYTES


@pytest.mark.slow
@pytest.mark.parametrize(
    "plan",
    [
        pingpong((128, 192, 64), c_alignment=1),
        pingpong((128, 192, 64), swapped=True, c_alignment=1),
        pytest.param(cooperative(c_alignment=1), marks=pytest.mark.deep),
        pytest.param(cooperative((256, 192, 64), c_alignment=1), marks=pytest.mark.deep),
        pytest.param(single(c_alignment=1), marks=pytest.mark.deep),
        pytest.param(pingpong((192, 80, 64), swapped=True, c_alignment=1), marks=pytest.mark.deep),
        pytest.param(cooperative((192, 192, 64), c_alignment=1), marks=pytest.mark.deep),
    ],
    ids=lambda plan: f"{plan.kind}-{plan.tile}",
)
def test_threads_store_a_panel_in_words_and_single_elements(plan):
    report, lines, copy = build.inspect(plan), plan.lines, plan.lines.words
    assert report.count("UTMASTG") == report.count("UTMACMDFLUSH") == 0
    words, bits = plan.panels * copy.lines * copy.vectors, 16 * lines.width
    if lines.width > 1:
        assert report.instructions[f"STG.E.{bits}"] == words
        assert report.instructions[f"LDS.{bits}"] == 2 * words  # one of C lies in two of the panel
        elements = plan.panels * copy.lines * lines.rest_per_thread
    else:
        words = 0
        elements = plan.panels * copy.vectors * gcd(copy.lines, 8)  # of one turn of each loop
    assert report.instructions["LDS.U16"] == report.instructions["STG.E.U16"] == elements
    assert report.count("STG") == words + elements
    assert report.spills == report.stack_bytes == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "plan",
    [
        pingpong(cluster=(2, 1)),
        cooperative(b_major="MN", cluster=(2, 1)),
        cooperative((256, 128, 64), a_major="MN", cluster=(1, 2)),
        pingpong(cluster=(4, 2)),
        pingpong((128, 104, 64), cluster=(4, 2)),
        split((64, 128, 64), splits=3, cluster=(2, 1)),
    ],
    ids=lambda plan: f"{plan.kind}-{plan.cluster}",
)
def test_a_shared_operand_is_multicast(plan):
    report = build.inspect(plan)
    expected = Counter({"UTMALDG.2D.MULTICAST": 0, "UTMALDG.2D": 0})
    for operand in (plan.a, plan.b):
        boxes = tma.boxes(operand.slice_smem, operand.contiguous).origins
        loads = len(boxes) * len(operand.slices_of(0))
        expected["UTMALDG.2D.MULTICAST" if operand.sharers > 1 else "UTMALDG.2D"] += loads
    assert {name: report.instructions[name] for name in expected} == expected
    # cluster_sync: after the mbarriers are initialised; no block waits for another at its end
    assert report.count("UCGABAR_ARV") == report.count("UCGABAR_WAIT") == 1
    assert report.register_split == (plan.producer_registers, plan.consumer_registers)
    assert report.spills == report.stack_bytes == 0


DIVISION, WAIT = "MUFU.RCP", "ACQBULK"


@pytest.mark.slow
@pytest.mark.parametrize("cluster", [(1, 1), (4, 2)])
@pytest.mark.parametrize("make", [pingpong, cooperative])
def test_coordinates_are_divided_out_before_what_waits_for_them(make, cluster):
    """The first tile's before the wait for the previous launch; none behind the last product.

    The divisions for further tiles come after the wait and before the first load.
    """
    for raster, divisions in ((Raster(4), 2), (Raster(1), 1)):
        code = build.inspect(make((128, 64, 64), cluster=cluster, raster=raster)).code
        assert code[: code.index(WAIT)].count(DIVISION) == divisions
        products = max(at for at, opcode in enumerate(code) if opcode.startswith("HGMMA"))
        assert DIVISION not in code[products:]


@pytest.mark.slow
@pytest.mark.parametrize("cluster", [(1, 1), (4, 2)])
def test_both_kernels_of_a_split_divide_before_they_wait(cluster):
    """Once for the tile of a block of the reduction, and twice for a tile and its k-tiles."""
    code = build.inspect(split((128, 64, 64), cluster=cluster)).code
    reduction, product = (at for at, opcode in enumerate(code) if opcode == WAIT)
    begin = max(at for at in range(product) if code[at] == "EXIT")  # of the reduction
    loads = max(at for at, opcode in enumerate(code) if opcode.startswith("UTMALDG"))
    assert code[:reduction].count(DIVISION) == 1
    assert code[begin:product].count(DIVISION) == 2
    assert DIVISION not in code[reduction:begin] + code[product:loads]


@pytest.mark.slow
def test_a_single_warpgroup_keeps_its_registers():
    plan = single()
    report = build.inspect(plan)
    assert report.count("HGMMA.64x128x16") == 2 * 4  # one k-tile, two m64, four k16
    assert report.count("STSM.16.M88.4") == 128 * 128 // (64 * 16)
    assert report.register_split == ()
    assert report.spills == report.stack_bytes == 0
    assert overlaps_the_launch_before(report)


@pytest.mark.slow
@pytest.mark.parametrize("splits", [2, pytest.param(6, marks=pytest.mark.deep), 16])
def test_partial_sums_move_in_eight_and_sixteen_bytes(splits):
    plan = split(splits=splits)
    report = build.inspect(plan)
    assert report.instructions["STG.E.64"] == plan.registers // 2 + 1  # and four results of C
    assert report.count("LDG.E.128") == report.count("LDG.E") == splits
    assert report.count("HGMMA.64x128x16") == 2 * 4
    assert report.register_split == (plan.producer_registers, plan.consumer_registers)
    assert report.spills == report.stack_bytes == 0
    # both kernels wait for the launch before; the first starts the second after its stores
    assert (report.count("ACQBULK"), report.count("PREEXIT")) == (2, 1)


@pytest.mark.slow
def test_partial_sums_of_swapped_operands_move_in_four_and_sixteen_bytes():
    plan = split((128, 16, 64), splits=4, swapped=True)
    report = build.inspect(plan)
    assert report.instructions["STG.E"] == plan.registers
    assert report.instructions["STG.E.64"] == 1  # four results of C
    assert report.count("LDG.E.128") == report.count("LDG.E") == plan.splits
    assert report.spills == report.stack_bytes == 0


@pytest.mark.slow
@pytest.mark.deep
def test_the_reduction_stores_rows_that_start_anywhere_element_by_element():
    plan = split((128, 80, 64), splits=3, c_alignment=1)
    report = build.inspect(plan)
    assert report.instructions["STG.E.U16"] == plan.reduction.values
    assert report.instructions["STG.E.64"] == plan.registers // 2  # partial sums
    assert report.spills == report.stack_bytes == 0


def test_a_cubin_without_a_kernel_is_refused(monkeypatch):
    monkeypatch.setattr(sass, "_run", lambda tool, *arguments: "Resource usage:\n")
    with pytest.raises(ValueError, match=r"empty\.cubin: it must be the cubin of a kernel"):
        sass.report(Path("empty.cubin"))
