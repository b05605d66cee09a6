"""The model: its laws, and its errors on a sample of the measurements that it was fitted to."""

import csv
import lzma
import math
import statistics
import sys
from dataclasses import replace
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from itertools import product
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cutedsl_gemm.inputs.problem import Matrix, Problem
from cutedsl_gemm.kernels.epilogue.expression import EpilogueOperand
from cutedsl_gemm.kernels.epilogue.trace import trace
from cutedsl_gemm.kernels.plan.checks import PlanError
from cutedsl_gemm.kernels.sm90.rungs import cooperative, pingpong, split
from cutedsl_gemm.measure.decode import WEIGHTS
from cutedsl_gemm.measure.random_shapes import draw
from cutedsl_gemm.select import model
from cutedsl_gemm.select.candidate import (
    ALL_CANDIDATES,
    CANDIDATES,
    FEW_ROWS,
    FILL,
    LEAST_K,
    MOST_SPLITS,
    Candidate,
    candidate_of,
    distinct,
)
from cutedsl_gemm.select.choose import choose
from cutedsl_gemm.select.costs import BLOCKS_AT_ONCE, LONG_PAIRS, LONG_PINGPONG
from cutedsl_gemm.select.model import _may_split, best, estimate, estimates, ranking

BENCH = Path(__file__).parents[3] / "bench"
EACH = 40  # one of so many measured shapes is looked at; of epilogues and of batches, eight are

extents = st.one_of(st.integers(1, 300), st.integers(1, 300).map(lambda x: 64 * x))
candidates = st.sampled_from(CANDIDATES)


def padded(m, n, k, padding):
    """A product of matrices whose rows start `padding` elements after the end of the row before."""
    return Problem(Matrix((m, k), (k + padding, 1)), Matrix((k, n), (1, k + padding)), "bfloat16")


@given(candidates, extents, extents, extents, st.integers(2, 300))
def test_a_batch_has_the_tiles_of_all_its_matrices_and_splits_no_k(candidate, m, n, k, batch):
    one = Problem.dense(m, n, k)
    several = replace(one, batch=batch)
    assert estimate(several, candidate).tiles == batch * estimate(one, candidate).tiles
    assert (several.flops, several.bytes) == (batch * one.flops, batch * one.bytes)
    chosen = best(several)
    assert chosen.splits == 1
    assert chosen == ranking(several)[0].candidate


@pytest.mark.parametrize("candidate", CANDIDATES, ids=lambda candidate: candidate.name)
def test_a_candidate_is_a_legal_plan_of_the_majors_that_it_serves_and_of_no_others(candidate):
    for dtype, *majors in product(("bfloat16", "float16"), ("K", "MN"), ("K", "MN")):
        problem = Problem.dense(64, 64, 64, dtype, majors)
        if not candidate.serves(problem.majors):
            with pytest.raises(PlanError):
                candidate.plan(problem)
            continue
        plan = candidate.plan(problem)
        assert [plan.dtype, plan.a_major, plan.b_major] == [dtype, *majors]
        assert candidate_of(plan) == candidate.over(plan.splits)


@pytest.mark.parametrize("candidate", [*CANDIDATES, Candidate(cooperative, (128, 256, 64))])
def test_panels_of_c_cost_no_stage_of_a_and_b(candidate):
    """A candidate may stage more panels than its maker does, if all stages still fit."""
    if candidate.maker is not split:
        tile, cluster, swapped = candidate.tile, candidate.cluster, candidate.swapped
        plain = candidate.maker(tile, cluster=cluster, swapped=swapped)
        assert candidate.plan(Problem.dense(64, 64, 64)).stages == plain.stages


@pytest.mark.parametrize("candidate", CANDIDATES, ids=lambda candidate: candidate.name)
def test_a_candidate_knows_the_stages_of_its_plan(candidate):
    assert candidate.stages == candidate.plan(Problem.dense(64, 64, 64)).stages


@given(extents, extents, extents, candidates)
def test_the_raster_of_a_problem_is_one_of_the_candidates_rasters(m, n, k, candidate):
    assert candidate.raster(padded(m, n, k, 8)) in candidate.rasters


def test_rasters_follow_the_depth_of_k():
    """The groups that were fastest (docs/performance), for K up to 256, up to 1024, and beyond."""
    tiles = (pingpong, (128, 128, 64), 1), (pingpong, (128, 144, 64), 1), (split, (128, 64, 64), 4)
    groups = [
        [Candidate(*each).raster(Problem.dense(8192, 8192, k)).group for k in (256, 1024, 4096)]
        for each in tiles
    ]
    assert groups == [[1, 4, 4], [1, 4, 8], [1, 1, 1]]


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("few", range(1, 7))
def test_the_tiles_of_a_row_follow_each_other_where_the_plan_has_few_columns(few, swapped):
    candidate = Candidate(pingpong, (64, 64, 64), swapped=swapped)
    m, n = (64 * few, 64 * 9) if swapped else (64 * 9, 64 * few)
    raster = candidate.plan(Problem.dense(m, n, 4096)).raster
    assert [raster(index, 9, few) for index in range(few)] == [(0, at) for at in range(few)]


@pytest.mark.parametrize("tile", [(64, 64, 64), (128, 192, 64)])  # groups of 4 and of 8
@pytest.mark.parametrize("down", range(1, FEW_ROWS + 1))
def test_of_a_few_tile_rows_the_last_group_is_not_low(down, tile):
    candidate = Candidate(pingpong, tile)
    group = candidate.raster(Problem.dense(down * tile[0], 20 * tile[1], 4096)).group
    assert group in (candidate.deep_group, 3 * candidate.deep_group // 4)
    assert down < group or down % group == 0 or down % group > group // 4


@pytest.mark.parametrize("swapped", [False, True])
def test_a_wave_of_a_short_k_stores_whole_rows_of_c(swapped):
    plan = Candidate(pingpong, (128, 128, 64), swapped=swapped).plan(Problem.dense(512, 1024, 256))
    down, across = plan.exchanged((512 // 128, 1024 // 128))
    tiles = [plan.exchanged(plan.raster(index, down, across)) for index in range(32)]
    assert tiles == [(row, column) for row in range(4) for column in range(8)]


@given(extents, extents, extents, *[st.sampled_from(["row", "column"])] * 2)
def test_every_choice_is_a_plan(m, n, k, a_order, b_order):
    a, b = (
        Matrix(shape, (8 * shape[1], 1) if order == "row" else (1, 8 * shape[0]))
        for shape, order in (((m, k), a_order), ((k, n), b_order))
    )
    problem = Problem(a, b, "float16")
    assert candidate_of(choose(problem)) == best(problem) == ranking(problem)[0].candidate


def physical(found):
    """The time before the correction."""
    return found.seconds / found.correction


@given(extents, extents, extents, candidates.map(lambda each: each.over(4)))
def test_more_work_never_takes_less_time(m, n, k, candidate):
    """Whole tiles: a partial one is slower. More blocks that split K may be faster."""
    bm, bn, bk = candidate.tile
    bm, bn = bm * candidate.cluster[0], bn * candidate.cluster[1]
    m, n, k = -(-m // bm) * bm, -(-n // bn) * bn, -(-k // bk) * bk
    deeper = Problem.dense(m, n, k + bk * candidate.splits)
    whole, more = (estimate(each, candidate) for each in (Problem.dense(m, n, k), deeper))
    if candidate.raster(Problem.dense(m, n, k)) == candidate.raster(deeper):
        assert more.mainloop > whole.mainloop
        assert physical(more) >= physical(whole) * (1 - 1e-9)  # the stores of C may take longer


@given(extents, extents, extents, candidates.filter(lambda each: each.columns % 32 == 0))
def test_a_swapped_candidate_takes_the_time_of_the_transposed_product(m, n, k, candidate):
    """Panels of 16 columns are stored in short rows, unless operands are swapped."""
    swapped, plain = (replace(candidate, swapped=each) for each in (True, False))
    problem = padded(m, n, k, 8)
    found, expected = estimate(problem, swapped), estimate(problem.transposed, plain)
    assert physical(found) == pytest.approx(physical(expected))
    learned = {"candidate": None, "seconds": 0, "correction": 1}
    assert found._replace(**learned) == expected._replace(**learned)


@pytest.mark.parametrize(
    ("maker", "cluster", "factor"),
    [
        (cooperative, (1, 1), 1),
        (pingpong, (1, 1), LONG_PINGPONG),
        (pingpong, (2, 1), LONG_PINGPONG * LONG_PAIRS),
    ],
)
def test_a_long_launch_runs_at_the_clock_that_its_own_power_leaves(
    maker, cluster, factor, monkeypatch
):
    candidate = Candidate(maker, (128, 192, 64), cluster=cluster)
    problems = Problem.dense(4096, 4096, 4096), Problem.dense(16384, 16384, 16384)
    short, long = (estimate(each, candidate).seconds for each in problems)
    monkeypatch.setattr(model, "LONG", math.inf)
    at_any_clock = [estimate(each, candidate).seconds for each in problems]
    assert [short, long] == pytest.approx([at_any_clock[0], factor * at_any_clock[1]])


def test_the_choice_is_the_first_of_the_ranking():
    """Also where DRAM decides, so that many candidates are as fast before the correction."""
    chosen = set()
    tied = [(8672, 15344, 57), (7648, 7194, 19), (5009, 9744, 43), (256, 1744, 168)]
    long = [(12288, 12288, 12288), (16384, 16384, 16384), (13312, 11008, 14464)]
    for mnk in (*draw(60, seed=7), *tied, *long):
        found = best(Problem.dense(*mnk))
        assert found == ranking(Problem.dense(*mnk))[0].candidate
        chosen.add(found.swapped)
    assert chosen == {False, True}


@given(extents, extents, extents, candidates.filter(lambda each: each.cluster == (1, 1)))
def test_worse_alignment_never_helps_where_l2_decides(m, n, k, candidate):
    """Where a GPC has many tiles: with one, no line is asked for twice."""
    m, n = m + 64 * 16, n + 256 * 16
    l2 = [estimate(padded(m, n, 64 * k, 8 * step), candidate).l2 for step in (0, 4, 2, 1)]
    assert l2 == sorted(l2)


def askew(m, n, k, a=0, b=0):
    """A product whose rows of A, or columns of B, start off lines by so many elements."""
    return Problem(Matrix((m, k), (k + a, 1)), Matrix((k, n), (1, k + b)), "bfloat16")


def test_each_operand_counts_for_its_own_rows():
    """Of a tile of 64 × 160, B has more rows than A: it costs more if they start off lines."""
    mnk = 4096, 4096, 4096
    on_lines, of_a, of_b = askew(*mnk), askew(*mnk, a=8), askew(*mnk, b=8)
    candidate = Candidate(pingpong, (64, 160, 64))
    l2 = [estimate(problem, candidate).l2 for problem in (on_lines, of_a, of_b)]
    assert l2[0] < l2[1] < l2[2]
    assert len({best(problem) for problem in (on_lines, of_a, of_b)}) > 1  # remembered apart


@given(extents, extents, extents, st.sampled_from([each for each in CANDIDATES if not each.splits]))
@example(128, 128, 1024, Candidate(split, (64, 64, 64), FILL))
@example(64, 64, 1 << 20, Candidate(split, (64, 64, 64), FILL))
def test_as_many_blocks_split_k_as_fill_a_wave(m, n, k, candidate):
    """One more would begin a second wave, leave the blocks too little of K, or is not allowed."""
    problem = Problem.dense(m, n, k)
    found = estimate(problem, candidate)
    splits, blocks = found.candidate.splits, BLOCKS_AT_ONCE[math.prod(candidate.cluster)]
    assert candidate.over(splits) == found.candidate
    assert splits >= 2
    fits = (found.tiles * splits <= blocks, k >= LEAST_K * splits, splits <= MOST_SPLITS)
    more = (found.tiles * (splits + 1) <= blocks, k >= LEAST_K * (splits + 1), splits < MOST_SPLITS)
    assert found.serves <= all(fits)
    assert not all(more)
    same = estimate(problem, found.candidate)
    assert (same.seconds, same.tiles) == (pytest.approx(found.seconds), found.tiles)


def test_blocks_that_split_k_serve_in_one_wave_alone():
    plan = Candidate(split, (128, 128, 64), 4)
    square = [estimate(Problem.dense(n, n, 16384), plan) for n in (512, 1024)]
    assert [(found.waves, found.serves) for found in square] == [(1, True), (2, False)]


def test_a_choice_leaves_out_only_splits_that_serve_nothing():
    """Also where K, or C, is at the bound from which splits serve."""
    splits = tuple(each for each in CANDIDATES if each.splits == FILL)
    _, bm, bn = max((each.tile[0] * each.tile[1], *each.tile[:2]) for each in splits)
    longest = (bm, 66 * bn, 8192)  # half of a wave of the largest tiles
    bounds = [(512, 512, 2 * LEAST_K), (512, 512, 2 * LEAST_K - 8), longest, (bm, 67 * bn, 8192)]
    for mnk in (*bounds, *draw(200, seed=31)):
        serving = any(found.serves for found in estimates(Problem.dense(*mnk), splits))
        assert _may_split(*mnk) or not serving
    assert [_may_split(*mnk) for mnk in bounds] == [True, False, True, False]
    assert best(Problem.dense(256, 256, 8192)).splits > 1


def test_twice_as_many_partial_sums_take_twice_as_long_to_add():
    times = {
        splits: estimate(
            Problem.dense(512, 512, 16384), Candidate(split, (128, 128, 64), splits)
        ).reduction
        for splits in (2, 4, 8)
    }
    assert times[8] == 2 * times[4] == 4 * times[2] > 0


@given(
    extents,
    extents,
    extents,
    st.sampled_from([each for each in CANDIDATES if each.cluster > (1, 1)]),
)
def test_a_cluster_asks_less_of_l2(m, n, k, candidate):
    """Of whole clusters: C has as many tiles without them."""
    (bm, bn, _), (down, across) = candidate.tile, candidate.cluster
    rows, columns = (bn * across, bm * down) if candidate.swapped else (bm * down, bn * across)
    problem = padded(-(-m // rows) * rows, -(-n // columns) * columns, 64 * k, 8)
    alone = replace(candidate, cluster=(1, 1))
    clustered, single = (estimate(problem, each) for each in (candidate, alone))
    assert clustered.tiles == single.tiles
    assert clustered.l2 < single.l2
    assert clustered.launch > single.launch


@pytest.mark.parametrize("mnk", [(4096, 4096, 4104), (8192, 8192, 8200), (3000, 5000, 1000)])
def test_clusters_are_chosen_where_rows_start_off_lines(mnk):
    """On an H100, the best plan of these had a cluster, and was 1.2 to 1.4 × as fast as without."""
    assert best(Problem.dense(*mnk)).cluster != (1, 1)


def test_rows_on_lines_are_padding_enough():
    """The stride counts, not K: 4104 columns in rows of 4160 elements start on lines."""
    problems = [padded(4096, 4096, 4104, padding) for padding in (56, 0)]
    assert [best(each).cluster == (1, 1) for each in problems] == [True, False]
    for candidate in CANDIDATES:
        on_lines, askew = (estimate(each, candidate) for each in problems)
        assert physical(on_lines) <= physical(askew) * (1 + 1e-9)
        assert on_lines.l2 < askew.l2


@cache
def bench(name):
    """A module of bench, which the others import by this name."""
    spec = spec_from_file_location(name, BENCH / f"{name}.py")
    sys.modules[name] = module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def pools():
    """bench/candidates.py, which drew the measured shapes."""
    return bench("candidates")


def measured(asked="products"):
    """(problem, {candidate: seconds}) of some of the measured shapes of a kind."""
    drawn, runs = pools(), bench("runs")
    by_name = {candidate.name: candidate for candidate in distinct(ALL_CANDIDATES)}
    shapes = {}
    with lzma.open(BENCH / "runs.csv.xz", "rt", newline="") as stream:
        for row in csv.DictReader(stream):
            batch, *mnk = (int(row[name]) for name in ("L", "M", "N", "K"))
            kind = "epilogues" if row["kind"] in drawn.EPILOGUES else "products"
            times = shapes.setdefault((row["pool"], row["kind"], batch, *mnk), {})
            candidate = by_name.get(row["plan"])
            if candidate and (kind if batch == 1 else "batches") == asked:
                times[candidate] = runs.seconds_today(row, candidate)
    step = EACH if asked == "products" else EACH // 8
    some = [each for each in shapes.items() if len(each[1]) > 1][::step]
    return [
        (drawn.Case((*mnk,), kind, batch=batch).problem, times)
        for (_, kind, batch, *mnk), times in some
    ]


@pytest.mark.parametrize(
    ("kind", "least"), [("products", 0.985), ("epilogues", 0.98), ("batches", 0.98)]
)
def test_the_choice_is_close_to_the_best_measured(kind, least):
    shares, errors, chosen = [], [], []
    for problem, times in (shapes := measured(kind)):
        ranked = [found for found in ranking(problem) if found.candidate in times]
        if len(ranked) < 2:  # blocks that do not fill a wave split K
            continue
        shares.append(min(times[each.candidate] for each in ranked) / times[ranked[0].candidate])
        chosen.append(math.log(ranked[0].seconds / times[ranked[0].candidate]))
        errors += [math.log(found.seconds / times[found.candidate]) for found in ranked]
    assert len(shares) > 0.95 * len(shapes) > 50
    assert statistics.geometric_mean(shares) > least
    assert statistics.pstdev(errors) < 0.17
    assert abs(statistics.fmean(chosen)) < 0.05


def test_a_worse_model_would_be_noticed():
    """A plan at random, of those that the model expected to be fast, is far from the best."""
    shares = [
        statistics.fmean(min(times.values()) / t for t in times.values()) for _, times in measured()
    ]
    assert statistics.geometric_mean(shares) < 0.96


def test_shapes_of_all_kinds_use_most_candidates():
    """A candidate that nothing chooses costs a compile for nothing."""
    few = [(m, n, k) for m in (1, 4, 24, 48, 96, 200, 300, 700) for n, k in WEIGHTS]
    short = [(m // 64, n, k) for m, n, k in draw(500, seed=12)]
    long = [(m // 8, n // 8, 16 * k) for m, n, k in draw(500, seed=14)]
    shapes = [*draw(15000, seed=11), *few, *short, *long]
    chosen = {best(Problem.dense(*mnk)) for mnk in shapes if min(mnk) > 0}
    gradients = product(draw(1000, seed=13), [("K", "MN"), ("MN", "MN")])
    chosen |= {best(Problem.dense(*mnk, majors=majors)) for mnk, majors in gradients}
    chosen = {each.family for each in chosen}
    unused = {*CANDIDATES} - chosen
    assert len(unused) <= len(CANDIDATES) // 80, unused


@given(st.integers(1, 300), st.integers(1, 300), st.integers(1, 40).map(lambda x: 8 * x))
@example(16, 16, 16)
@example(14, 53, 136)
def test_c_fills_more_than_half_of_every_cluster_that_may_serve(m, n, k):
    problem = Problem.dense(m, n, k)
    for candidate in {best(problem), *(found.candidate for found in ranking(problem))}:
        extents = candidate.as_planned(problem).mnk[:2]
        for extent, tile, blocks in zip(extents, candidate.tile, candidate.cluster, strict=False):
            assert blocks == 1 or extent > tile * blocks / 2


def test_tiny_products_get_small_tiles():
    for mnk in ((1, 1, 1), (8, 8, 8), (16, 16, 16), (64, 64, 64), (1000, 16, 16)):
        bm, bn, _ = best(Problem.dense(*mnk)).tile
        assert bm * bn <= 64 * 96


@pytest.mark.parametrize("swapped", [False, True])
def test_short_rows_of_b_in_shared_memory_slow_the_loads(swapped):
    """An H100 took 377 µs, not 185, with tiles of 176 columns at 4096³, neither along K."""

    def k_tile(bn, *majors):
        found = estimate(
            Problem.dense(4096, 4096, 4096, majors=majors),
            Candidate(pingpong, (128, bn, 64), swapped=swapped),
        )
        return found.mainloop / found.waves / 64, found.bound

    of_b, of_a = (("MN", "K"), ("K", "MN")) if swapped else (("K", "MN"), ("MN", "K"))
    for bn, factor in (128, 1), (160, 1.5), (176, 2.5):
        (fast, bound), (slow, slow_bound) = k_tile(bn, "K", "K"), k_tile(bn, *of_b)
        assert k_tile(bn, *of_a) == (fast, bound)
        assert slow >= factor * fast
        assert slow_bound == ("TMA" if factor > 1 else bound)


def test_the_choice_follows_the_majors():
    """The gradient of a weight: its tiles have rows of 64 bytes or more."""
    for mnk in ((4096, 4096, 4096), (2048, 8192, 2048), (14336, 4096, 8192)):
        problem = Problem.dense(*mnk, majors=("MN", "MN"))
        assert best(problem).tile[1] % 32 == 0
        assert best(problem) == ranking(problem)[0].candidate


def reading(alignment):
    """Epilogues of no matrix, one and two: the same arithmetic."""
    c = EpilogueOperand("c", ("M", "N"), "bfloat16", alignment=alignment)
    modes = ("N",), ("M", "N")
    return [
        trace(
            lambda acc, x, y: acc * x * y,
            [replace(c, name="x", modes=of_x), replace(c, name="y", modes=of_y)],
        )
        for of_x, of_y in ((modes[0], modes[0]), modes[::-1], (modes[1], modes[1]))
    ]


@pytest.mark.parametrize("tile", [(128, 128, 64), (128, 176, 64), (128, 192, 64)], ids=str)
def test_two_matrices_that_threads_read_cost_four_times_one(tile):
    def epilogues(alignment):
        product = Problem.dense(8192, 8192, 2048)
        candidate = Candidate(pingpong, tile, swapped=tile[1] == 176)
        return [
            estimate(replace(product, epilogue=each), candidate).epilogue
            for each in reading(alignment)
        ]

    none, one, two = epilogues(alignment=4)
    assert one > none
    assert two - none == pytest.approx(4 * (one - none), rel=1e-3)
    assert epilogues(alignment=8) == [none] * 3  # TMA loads them
