"""The executor is right for every shape and major, and refuses a layout that does not fit."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cutedsl_gemm.kernels.epilogue.expression import PLAIN
from cutedsl_gemm.kernels.epilogue.trace import trace
from cutedsl_gemm.kernels.executor import empty_tensors
from cutedsl_gemm.kernels.plan.arguments import GatheredRows, ScatteredRows
from cutedsl_gemm.kernels.plan.checks import BITS, PlanError
from cutedsl_gemm.kernels.plan.raster import Raster
from cutedsl_gemm.kernels.sm90 import execute
from cutedsl_gemm.kernels.sm90.checks import CLUSTERS
from cutedsl_gemm.kernels.sm90.rungs import cooperative, pingpong, single, split
from cutedsl_gemm.kernels.sm90.split_k_plan import reduction
from layouts import ComposedLayout, Layout, Swizzle, make_layout
from tests.kernels.pipeline.faults import faults

TWO_MATRICES = trace(lambda gate, value: gate - 2 * value, [], accumulators=2)


def run(plan, m=200, n=300, k=136):
    a, b, out = empty_tensors(plan, m, n, k)
    a.normal_(), b.normal_()
    execute.gemm(plan, a, b, out)
    truth = a.double() @ b.double()
    if plan.matrices == 2:
        truth = truth[0] - 2 * truth[1]
    return float((out.double() - truth).norm() / truth.norm())


@pytest.mark.parametrize("a_major", ["K", "MN"])
@pytest.mark.parametrize("b_major", ["K", "MN"])
@pytest.mark.parametrize("tile", [(128, 128, 64), (64, 192, 128), (192, 64, 64)])
def test_pingpong_is_right(tile, a_major, b_major):
    assert run(pingpong(tile, "bfloat16", a_major, b_major)) < 3e-3


def test_single_is_right():
    assert run(single(), 300, 200, 136) < 3e-3


@pytest.mark.parametrize("majors", [("K", "K"), ("MN", "MN")])
@pytest.mark.parametrize("tile", [(128, 256, 64), (256, 128, 64), (256, 192, 64), (192, 176, 64)])
def test_cooperative_is_right(tile, majors):
    assert run(cooperative(tile, "bfloat16", *majors), 300, 500, 136) < 3e-3


@pytest.mark.parametrize("a_major", ["K", "MN"])
@pytest.mark.parametrize("b_major", ["K", "MN"])
@pytest.mark.parametrize(
    ("make", "tile"),
    [
        (pingpong, (128, 144, 64)),
        (pingpong, (64, 16, 128)),
        (pingpong, (192, 80, 64)),
        (cooperative, (256, 96, 64)),
        (cooperative, (192, 64, 64)),
    ],
)
def test_swapped_operands_are_right(make, tile, a_major, b_major):
    plan = make(tile, "bfloat16", a_major, b_major, swapped=True)
    assert (plan.a_major, plan.b_major) == (a_major, b_major)
    assert run(plan, 136, 500, 136) < 3e-3  # rows of C are BN at a time, columns BM
    assert run(plan, 1, 72, 64 * 9 + 8) < 3e-3  # more k-tiles than stages


@pytest.mark.parametrize(
    ("make", "bn"),
    [(pingpong, bn) for bn in range(8, 257, 16)]
    + [(make, bn) for make in (cooperative, split) for bn in (8, 72, 152, 248)],
)
def test_swapped_operands_take_every_multiple_of_8_columns(make, bn):
    b_major = "MN" if bn % 32 == 8 else "K"
    plan = make((128 if make is not pingpong else 64, bn, 64), b_major=b_major, swapped=True)
    assert all(plan.proofs())
    assert run(plan, bn + 8, 200, 136) < 3e-3


@pytest.mark.parametrize("cluster", [(2, 1), (1, 2)])
def test_clusters_of_swapped_operands_are_right(cluster):
    plan = pingpong((128, 32, 64), cluster=cluster, swapped=True)
    assert run(plan, 72, 300, 64 * 9 + 8) < 3e-3


@pytest.mark.parametrize("majors", [("K", "K"), ("MN", "MN")])
@pytest.mark.parametrize("cluster", [(2, 1), (1, 2), (2, 2), (4, 1), (2, 4)])
@pytest.mark.parametrize("make", [pingpong, cooperative])
def test_clusters_are_right(make, cluster, majors):
    plan = make(dtype="bfloat16", a_major=majors[0], b_major=majors[1], cluster=cluster)
    assert run(plan, 300, 700, 136) < 3e-3  # odd numbers of tiles, down and across
    assert run(plan, 100, 72, 64) < 3e-3  # a cluster for one tile


@pytest.mark.parametrize("majors", [("K", "K"), ("MN", "MN")])
@pytest.mark.parametrize(
    ("tile", "splits"),
    [((128, 128, 64), 8), ((128, 128, 64), 6), ((128, 64, 64), 16), ((256, 128, 64), 2)],
)
def test_split_is_right(tile, splits, majors):
    plan = split(tile, "bfloat16", *majors, splits)
    assert run(plan, 300, 200, 64 * splits + 72) < 3e-3
    assert run(plan, 100, 72, 64) < 3e-3  # one k-tile: most of the blocks have none


@pytest.mark.parametrize(
    ("tile", "cluster", "swapped"),
    [
        ((128, 64, 64), (2, 1), False),
        ((64, 128, 64), (1, 4), False),
        ((128, 32, 64), (2, 2), True),
        ((64, 16, 64), (1, 8), True),
        ((64, 24, 64), (1, 1), True),  # 16 rows of 64 fill a block, and 24 is not a multiple
    ],
)
def test_split_in_clusters_and_of_64_rows_is_right(tile, cluster, swapped):
    plan = split(tile, splits=3, cluster=cluster, swapped=swapped)
    assert run(plan, 200, 300, 64 * 5 + 8) < 3e-3  # odd numbers of tiles, down and across
    assert run(plan, 8, 72, 64) < 3e-3  # a cluster for one tile; two splits have no k-tile


def test_one_consumer_is_right():
    assert run(cooperative((64, 128, 64))) < 3e-3
    assert run(cooperative((64, 48, 128), b_major="MN", cluster=(2, 1), swapped=True)) < 3e-3


@pytest.mark.parametrize("majors", [("K", "K"), ("MN", "K"), ("K", "MN")])
@pytest.mark.parametrize(
    ("tile", "splits"), [((128, 16, 64), 8), ((128, 64, 64), 2), ((256, 48, 64), 3)]
)
def test_split_of_swapped_operands_is_right(tile, splits, majors):
    plan = split(tile, "bfloat16", *majors, splits, swapped=True)
    assert run(plan, 72, 300, 64 * splits + 72) < 3e-3
    assert run(plan, 1, 72, 64) < 3e-3  # one k-tile: most of the blocks have none


ANYWHERE = [
    single((64, 48, 64), c_alignment=1),
    pingpong((192, 80, 64), "float16", "MN", "MN", c_alignment=1),
    pingpong((192, 40, 64), swapped=True, c_alignment=1),
    pingpong((128, 80, 64), swapped=True, c_alignment=1),
    pingpong((64, 96, 64), cluster=(2, 2), c_stages=1, c_alignment=1),
    cooperative((128, 64, 64), cluster=(1, 2), swapped=True, c_alignment=1),
    split((128, 48, 64), splits=3, cluster=(2, 1), c_alignment=1),
    split((128, 24, 64), splits=2, swapped=True, c_alignment=1),
]


@pytest.mark.parametrize("plan", ANYWHERE, ids=lambda plan: f"{plan.kind} {plan.tile}")
def test_threads_store_rows_of_any_length_at_any_address_and_nothing_beside_them(plan):
    a, b, out = empty_tensors(plan, 205, 211, 136)
    a.random_(-3, 4), b.random_(-2, 3)
    frame = torch.full((207, 223), 7.0, dtype=out.dtype)
    expected = frame.clone()
    expected[1:206, 5:216] = a.float() @ b.float()
    execute.gemm(plan, a, b, frame[1:206, 5:216])
    assert torch.equal(frame, expected)


def test_a_panel_whose_threads_miss_an_element_is_refused(monkeypatch):
    plan = pingpong(c_alignment=1)
    words = plan.lines.words
    first = replace(plan.lines, words=replace(words, columns=words.zeros))
    monkeypatch.setattr(type(plan), "lines", first)
    assert not all(plan.proofs())
    with pytest.raises(PlanError, match=r"threads, C panel.*written twice"):
        run(plan)


def test_partial_sums_that_are_written_twice_are_refused():
    plan = split()
    folded = Layout((128, (64, 2)), (128, (1, 0)))
    with pytest.raises(PlanError, match=r"sums.*written twice"):
        run(replace(plan, partial_sums=folded))


def test_a_reduction_of_too_few_rows_is_refused():
    with pytest.raises(PlanError, match=r"reduction, its rows.*never written"):
        run(replace(split(), reduction=reduction(4, 128)))


@st.composite
def calls(draw):
    """A maker of sm90 plans, and arguments of which the hardware takes some."""
    make = draw(st.sampled_from([single, pingpong, cooperative, split]))
    bm, bn = draw(st.sampled_from([64, 128, 192, 256, 96, 320])), 8 * draw(st.integers(1, 33))
    arguments = {
        "tile": (bm, bn, draw(st.sampled_from([64, 64, 32, 96, 128]))),
        "dtype": draw(st.sampled_from(["bfloat16", "float16"])),
        "a_major": draw(st.sampled_from(["K", "MN"])),
        "b_major": draw(st.sampled_from(["K", "MN"])),
    }
    if make is split:
        arguments["splits"] = draw(st.integers(2, 9))
    if make is not single:
        arguments["swapped"] = draw(st.booleans())
        arguments["cluster"] = draw(st.sampled_from(CLUSTERS))
    if make in (pingpong, cooperative):
        arguments["c_stages"] = draw(st.sampled_from([None, None, 1, 2, 3]))
    arguments["c_alignment"] = draw(st.sampled_from([1, 8]))
    arguments["epilogue"] = draw(st.sampled_from([PLAIN, PLAIN, TWO_MATRICES]))
    return make, arguments


@given(calls())
def test_a_plan_is_refused_or_proved_and_right(call):
    make, arguments = call
    try:
        plan = make(**arguments)
    except PlanError:
        return
    assert all(plan.proofs())
    m, n = plan.tile[0] + 24, 2 * plan.tile[1] + 8  # ragged, two rows and three columns of tiles
    assert run(plan, *((n, m) if plan.swapped else (m, n)), 264) < 3e-3


@pytest.mark.parametrize("b_major", ["K", "MN"])
@pytest.mark.parametrize("bn", range(16, 257, 16))
@pytest.mark.parametrize("make", [single, pingpong, cooperative, split])
def test_every_multiple_of_16_columns_is_right(make, bn, b_major):
    bm = 128 if make in (cooperative, split) else 64
    plan = make((bm, bn, 64), b_major=b_major)
    assert all(plan.proofs())
    assert run(plan, bm + 24, bn + 8, 136) < 3e-3


@pytest.mark.parametrize(
    ("m", "n", "k"), [(1, 1, 1), (128, 128, 64), (129, 127, 65), (7, 600, 1000), (520, 264, 136)]
)
def test_any_shape_is_right(m, n, k):
    assert run(pingpong(dtype="float16"), m, n, k) < 1e-3


def test_integers_are_exact():
    plan = pingpong(b_major="MN")
    a = torch.randint(-4, 5, (264, 136)).to(torch.bfloat16)
    b = torch.randint(-1, 2, (136, 136)).to(torch.bfloat16)
    out = torch.empty(264, 136, dtype=torch.bfloat16)
    execute.gemm(plan, a, b, out)
    assert torch.equal(out, (a.float() @ b.float()).to(torch.bfloat16))


def test_a_wrong_swizzle_is_refused():
    """TMA swizzles by its own rule, whatever the plan says."""
    plan = pingpong()
    staging = ComposedLayout(Swizzle(2, 3, 3), 0, plan.staging.outer, unit=BITS)
    with pytest.raises(ValueError, match="TMA writes 128 rows of 32 contiguous elements"):
        run(replace(plan, staging=staging))


def test_an_address_that_is_written_twice_is_refused():
    plan = pingpong()
    threads, values = plan.stmatrix_tv
    first_16_rows = Layout(threads.shape, (128, 1, 0))  # of all four warps
    folded = make_layout(first_16_rows, values)
    with pytest.raises(PlanError, match=r"stmatrix, C panel.*written twice"):
        run(replace(plan, stmatrix_tv=folded))


def test_an_accumulator_that_misses_an_element_is_refused():
    plan = pingpong()
    threads, values = plan.accumulator
    folded = make_layout(threads, Layout(values.shape, ((128, 8, 1024), 0)))
    with pytest.raises(PlanError, match=r"accumulator.*written twice"):
        run(replace(plan, accumulator=folded))


def test_a_wave_may_end_within_a_cluster():
    assert run(pingpong((64, 16, 64), cluster=(1, 8)), 64, 20 * 8 * 16, 9 * 64) < 3e-3


def test_a_raster_that_misses_a_tile_is_refused():
    class Incomplete(Raster):
        def __call__(self, index, tiles_m, tiles_n, minimum=min):
            m, n = super().__call__(index, tiles_m, tiles_n, minimum)
            return m, n - n % 2

    with pytest.raises(PlanError, match=r"visits tile \(0, 0\) 2 times"):
        run(replace(pingpong(), raster=Incomplete(1)))


@pytest.mark.parametrize("agent", ["producer", "consumer 0"])
def test_a_pipeline_that_does_not_wait_gives_a_wrong_result(agent, monkeypatch):
    plan = replace(pingpong((64, 64, 64)), stages=3)
    a, b, out = empty_tensors(plan, 600, 150, 64 * 5)
    a.copy_(torch.randint(-3, 4, a.shape)), b.copy_(torch.randint(-2, 3, b.shape))
    truth = (a.double() @ b.double()).to(out.dtype)
    waits = tuple(f"{agent}: no {step}(" for step in ("Wait", "MultiplyWait"))
    for name, pipeline in faults(plan.pipeline):
        if name.startswith(waits):
            monkeypatch.setattr(type(plan), "pipeline", property(lambda _, wrong=pipeline: wrong))
            assert any(not torch.equal(executed(plan, a, b, seed), truth) for seed in range(8))


def executed(plan, a, b, seed):
    *_, out = empty_tensors(plan, *a.shape[:1], b.shape[1], b.shape[0])
    execute.gemm(plan, a, b, out, seed=seed)
    return out


@pytest.mark.parametrize("plan", [pingpong((64, 64, 64)), cooperative(), split(), single()])
def test_the_order_of_the_warps_changes_no_bit(plan):
    a, b, _ = empty_tensors(plan, 300, 500, 136)
    a.normal_(), b.normal_()
    first, *others = (executed(plan, a, b, seed) for seed in range(3))
    assert all(torch.equal(first, other) for other in others)


# --- rows of A that other GPUs send

GATHERED = [
    replace(pingpong((64, 48, 64)), gathered=True),
    pytest.param(
        replace(
            cooperative((128, 64, 64), cluster=(2, 2), raster=Raster(3, "columns")), gathered=True
        ),
        marks=pytest.mark.deep,
    ),
]


def gathered(plan, gpus, number, rows=256, n=80):
    """The result, and the right one; this GPU's own rows are NaN where others are sent."""
    a = torch.randint(-3, 4, (gpus * rows, 136)).to(torch.bfloat16)
    b = torch.randint(-2, 3, (n, 136)).to(torch.bfloat16).mT
    out = torch.full((gpus * rows, n), torch.nan, dtype=torch.bfloat16)
    sent = a.clone()
    sent.view(gpus, rows, -1)[number] = torch.nan
    plan.execute(
        sent, b, out, exchange=GatheredRows(a.view(gpus, rows, -1)[number].clone(), number)
    )
    return out, (a.float() @ b.float()).to(out.dtype)


@pytest.mark.parametrize("plan", GATHERED, ids=lambda plan: plan.kind)
@pytest.mark.parametrize(("gpus", "number"), [(2, 1), (3, 0)])
def test_rows_that_other_gpus_send_are_multiplied_when_they_have_come(plan, gpus, number):
    assert torch.equal(*gathered(plan.check(), gpus, number))


@pytest.mark.parametrize("plan", GATHERED, ids=lambda plan: plan.kind)
def test_without_the_wait_a_tile_starts_before_its_rows_have_come(plan, monkeypatch):
    (wrong,) = (each for what, each in faults(plan.pipeline) if "no WaitForRows" in what)
    monkeypatch.setattr(type(plan), "pipeline", property(lambda _: wrong))
    found, truth = gathered(plan, 2, 0)
    assert torch.equal(found[:256], truth[:256])  # this GPU's own
    assert found[256:].isnan().all()


def test_a_plan_that_gathers_a_needs_whole_tiles_of_each_gpu():
    with pytest.raises(ValueError, match=r"with 96 of 192 rows.*a multiple of 64"):
        gathered(GATHERED[0], 2, 0, rows=96)
    a, b, out = empty_tensors(pingpong(), 256, 64, 64)
    with pytest.raises(
        ValueError, match=r"talks with other GPUs: pass exchange=GatheredRows\(own, number\)"
    ):
        GATHERED[0].execute(a, b, out)


@pytest.mark.parametrize("plan", [single(), split(), pingpong(swapped=True)], ids=lambda p: p.kind)
def test_only_a_producer_waits_for_rows(plan):
    with pytest.raises(PlanError, match="A is gathered, and the plan is"):
        replace(plan, gathered=True).check()


# --- rows of C that other GPUs have


def scattered(plan, gpus, number, rows=256, n=80):
    """What is stored here, what is sent, and both as they should be."""
    a = torch.randint(-3, 4, (gpus * rows, 136)).to(torch.bfloat16)
    b = torch.randint(-2, 3, (n, 136)).to(torch.bfloat16).mT
    parts = torch.randint(-9, 10, (gpus, rows, n)).to(torch.bfloat16)
    parts[number] = torch.nan  # its own part stays in registers
    out, partial = (torch.full((m, n), torch.nan).bfloat16() for m in (rows, gpus * rows))
    plan.execute(a, b, out, exchange=ScatteredRows(parts, number, partial))
    whole = (a.float() @ b.float()).view(gpus, rows, n)
    others = [(number + step) % gpus for step in range(1, gpus)]
    mine = whole[number] + parts[others].float().sum(0)
    whole[number] = torch.nan  # is not sent
    return out, partial, mine.to(out.dtype), whole.flatten(0, 1).to(out.dtype)


SCATTERED = [
    replace(pingpong((64, 48, 64)), scattered=True),
    replace(cooperative((128, 64, 64), cluster=(1, 2), raster=Raster(2)), scattered=True),
]


@pytest.mark.parametrize(("gpus", "number"), [(2, 0), (3, 1)])
@pytest.mark.parametrize("plan", SCATTERED, ids=lambda plan: plan.kind)
def test_parts_of_this_gpu_are_added_and_those_of_the_others_are_sent(plan, gpus, number):
    out, partial, mine, whole = scattered(plan.check(), gpus, number)
    assert torch.equal(out, mine)
    torch.testing.assert_close(partial, whole, rtol=0, atol=0, equal_nan=True)


def test_without_the_wait_parts_are_added_before_they_have_come(monkeypatch):
    plan = SCATTERED[1]
    wrong = next(each for what, each in faults(plan.pipeline) if "no WaitForRows" in what)
    monkeypatch.setattr(type(plan), "pipeline", property(lambda _: wrong))
    out, partial, _, whole = scattered(plan, 2, 0)
    assert out[:64].isnan().all()  # of the consumer that does not wait
    torch.testing.assert_close(partial, whole, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize(
    ("plan", "why"),
    [
        (single(), "C is scattered, and the plan is single"),
        (split(), "C is scattered, and the plan is"),
        (pingpong(swapped=True), "swapped: it must be pingpong or cooperative"),
        (replace(pingpong(), gathered=True), "with A gathered: it must be"),
        (pingpong(c_alignment=1), "TMA stores the products as they are"),
        (pingpong(raster=Raster(2, "columns")), "it must have groups of tile rows"),
    ],
)
def test_only_pingpong_and_cooperative_plans_send_rows_of_c(plan, why):
    with pytest.raises(PlanError, match=why):
        replace(plan, scattered=True).check()
