"""A plan's layouts fit one another; what the hardware cannot do is refused with a message."""

import re
from dataclasses import replace
from itertools import chain, product
from math import gcd

import pytest

from cutedsl_gemm.kernels.epilogue.expression import Epilogue, EpilogueOperand
from cutedsl_gemm.kernels.epilogue.trace import trace
from cutedsl_gemm.kernels.plan.checks import BITS, PlanError
from cutedsl_gemm.kernels.plan.raster import Raster
from cutedsl_gemm.kernels.sm90.checks import CLUSTERS
from cutedsl_gemm.kernels.sm90.operand import PERIOD, ROW, SWIZZLES, Operand, swizzled, unswizzled
from cutedsl_gemm.kernels.sm90.panel_plan import with_panels
from cutedsl_gemm.kernels.sm90.panels import STAGED_K, panel_layout, panel_widths
from cutedsl_gemm.kernels.sm90.resources import REGISTER_FILE, SMEM_BYTES
from cutedsl_gemm.kernels.sm90.rungs import cooperative, pingpong, single, split
from layouts import Bijective, ComposedLayout, ConflictFree, Layout, Swizzle, prove, size

MAJORS = [(a, b) for a in ("K", "MN") for b in ("K", "MN")]
TILES = [
    (128, 128, 64),
    (64, 128, 64),
    (128, 192, 64),
    (192, 128, 64),
    (64, 256, 64),
    (128, 128, 128),
    (128, 96, 64),
    (128, 176, 64),
    (64, 16, 64),
    (64, 48, 128),
    (192, 112, 64),
    (64, 16, 32),
    (128, 128, 96),
    (64, 64, 16),
    (128, 96, 48),
    (128, 128, 80),
]
ODD = [(64, 8, 64), (128, 24, 64), (64, 72, 64), (128, 104, 64), (64, 136, 128), (192, 120, 64)]


@pytest.mark.parametrize("tile", TILES)
@pytest.mark.parametrize("majors", MAJORS)
def test_every_buffer_is_a_bijection(tile, majors):
    for buffer in pingpong(tile, a_major=majors[0], b_major=majors[1]).buffers.values():
        assert prove(Bijective(buffer))


PLANS = [
    *map(pingpong, [*TILES, *ODD]),
    single(),
    cooperative(),
    cooperative((256, 128, 64), a_major="MN"),
    cooperative((256, 192, 64), b_major="MN"),
    cooperative((256, 176, 64), b_major="MN"),
    cooperative((256, 168, 64), swapped=True),  # panels of 24 columns, not 56
    cooperative((128, 240, 64), c_stages=2),
    cooperative((192, 176, 64), a_major="MN"),
    pingpong((128, 64, 64), swapped=True),
    pingpong((64, 16, 64), a_major="MN", swapped=True),
    pingpong((128, 144, 64), swapped=True),
    cooperative((256, 160, 64), b_major="MN", swapped=True),
    pingpong((64, 8, 64), swapped=True),
    cooperative((192, 72, 64), b_major="MN", swapped=True),
    cooperative((192, 208, 64), swapped=True),
    cooperative((192, 240, 64)),
    cooperative((192, 256, 64), b_major="MN"),
]
every_plan = pytest.mark.parametrize(
    "plan", PLANS, ids=lambda plan: f"{plan.schedule} {plan.tile}{' swapped' * plan.swapped}"
)


@every_plan
def test_accumulator_covers_what_a_consumer_multiplies_once(plan):
    assert prove(Bijective(plan.accumulator))
    assert size(plan.accumulator) == plan.rows * plan.columns
    assert size(plan.accumulator) * plan.consumers_per_tile == plan.tile[0] * plan.tile[1]
    assert prove(Bijective(plan.outputs))
    assert size(plan.outputs) == plan.tile[0] * plan.tile[1]


@every_plan
def test_threads_store_each_element_of_a_panel_once_and_load_it_without_conflicts(plan):
    anywhere = replace(plan, c_alignment=1).check()
    stored_once, conflict_free = anywhere.proofs()[-2:]
    assert stored_once.statement == Bijective(anywhere.lines.words.offsets(1, plan.panel_rows))
    assert conflict_free.statement == anywhere.panel_load.statement
    assert all(anywhere.proofs())
    assert len(anywhere.proofs()) == len(plan.proofs()) + 2


@pytest.mark.parametrize("c_alignment", [0, 2, 4, 16, True, "8"])
def test_an_alignment_of_c_that_no_store_has_is_refused(c_alignment):
    for plan in (pingpong(), split()):
        with pytest.raises(
            PlanError, match=f"c_alignment is {c_alignment!r}; it must be 8, .*or 1"
        ):
            replace(plan, c_alignment=c_alignment).check()


@every_plan
def test_stmatrix_stores_the_values_that_wgmma_left(plan):
    """Register `fragment(v, i, j, panel)` is what `store` sends to (64i, P * panel + S * j)."""
    bm, columns, width = plan.rows, plan.panel_columns, plan.stmatrix_columns
    last = width // 2 - 1, bm // 64 - 1, columns // width - 1, plan.panels - 1
    for thread in (0, 1, 37, 127):
        for v, i, j, panel in ((0, 0, 0, 0), (3, 0, last[2], 0), last):
            element = plan.accumulator(thread, plan.fragment(v, i, j, panel))
            n, m = divmod(plan.stmatrix_tv(thread, v), 64)  # of a (64, S) tile
            assert element == (64 * i + m) + bm * (columns * panel + width * j + n)


@pytest.mark.parametrize("c_stages", range(1, 8))
@pytest.mark.parametrize("bn", [16, 48, 80, 96, 112])
def test_a_panel_waits_for_the_store_that_read_its_buffer(bn, c_stages):
    """Only stores behind that one may be pending; and no fewer, or they would not overlap."""
    panels = pingpong((128, bn, 64)).panels
    if c_stages > panels:
        with pytest.raises(PlanError, match=f"c_stages is {c_stages}; it must be at most {panels}"):
            pingpong((128, bn, 64), c_stages=c_stages)
        return
    plan = pingpong((128, bn, 64), c_stages=c_stages)
    stored = []  # the buffer of each store, over four tiles
    for panel in [*range(panels)] * 4:
        buffer = panel % c_stages
        if buffer in stored:
            assert plan.pending_stores(panel) == stored[::-1].index(buffer)
        stored.append(buffer)


def test_stages_are_as_many_as_fit():
    plan = pingpong()
    assert (plan.stages, plan.smem_bytes) == (6, 230_400)
    with pytest.raises(PlanError, match=r"7 stages take 263168 bytes.*a block has 232448"):
        replace(plan, stages=7).check()


@pytest.mark.parametrize(
    ("tile", "message"),
    [
        ((128, 256, 64), "the accumulator takes 256 registers a thread.*at most 200"),
        ((128, 100, 64), "BN is 100; it must be a multiple of 8"),
        ((96, 128, 64), "BM is 96; it must be a multiple of 64"),
        ((128, 128, 72), "BK is 72; it must be a multiple of 16"),
        *(
            (tile, "tile is .*it must be a tuple of 3 positive integers")
            for tile in ((128, 128, 0), (-128, 128, 64), (128, 128), [128, 128, 64], None)
        ),
        ((128.0, 128, 64), r"tile is \(128[.]0, 128, 64\); it must be a tuple"),
        ((64, 320, 64), "BN is 320; a wgmma has at most 256 columns"),
        ((192, 128, 512), "shared memory has room for 0; take a smaller"),
        ((192, 128, 256), "shared memory has room for 1; take a smaller"),
    ],
)
def test_an_impossible_tile_is_refused(tile, message):
    with pytest.raises(PlanError, match=message):
        pingpong(tile)


def test_swapped_is_a_bool():
    """Else two equal plans would differ."""
    for maker in (pingpong, cooperative, split):
        with pytest.raises(PlanError, match="swapped is 'yes'; it must be True or False"):
            maker(swapped="yes")


def test_a_plan_of_one_stage_is_refused_and_says_how_many_fit():
    with pytest.raises(PlanError, match=r"stages is 1; it must be at least 2.* room for 6$"):
        replace(pingpong(), stages=1).check()


def test_a_residual_takes_registers_of_the_kernel_that_adds_it():
    """If K is split, that is the second kernel, which holds no accumulator."""
    tile, residual = (256, 200, 64), Epilogue(operands=(EpilogueOperand("r", ("M", "N")),))
    assert split(tile, epilogue=residual).registers == 200
    with pytest.raises(PlanError, match="must be at most 192 of 232, or it spills"):
        cooperative(tile, epilogue=residual)


def test_three_consumers_have_fewer_registers():
    plan = cooperative((192, 192, 64))
    assert (plan.consumers, plan.rows, plan.threads) == (3, 64, 512)
    assert plan.producer_registers + 3 * plan.consumer_registers == REGISTER_FILE // 128
    with pytest.raises(PlanError, match=r"one wgmma takes 130 registers a thread.* 128 each"):
        pingpong((64, 208, 64), consumers=3)


@pytest.mark.parametrize("make", [cooperative, split])
def test_two_consumers_divide_the_columns_of_192_rows_that_three_cannot_hold(make):
    for bn, consumers in ((200, (3, 1)), (208, (1, 2)), (256, (1, 2))):
        plan = make((192, bn, 64))
        assert plan.atom_layout == consumers
        assert (plan.rows, plan.columns) == (192 // consumers[0], bn // consumers[1])
        assert all(plan.proofs())


@pytest.mark.parametrize("make", [cooperative, split])
def test_each_consumer_multiplies_columns_of_whole_wgmmas_and_of_whole_rows_of_a_swizzle(make):
    with pytest.raises(PlanError, match="each consumer multiplies 108 columns; they must be a mul"):
        make((192, 216, 64))
    with pytest.raises(PlanError, match="has 104 contiguous elements in a tile, a part of 2"):
        make((192, 208, 64), b_major="MN")
    assert make((192, 224, 64), b_major="MN").b.smem.inner == Swizzle(1, 3, 3)
    plan = make((192, 224, 64))
    smem = swizzled(224, 64, "MN")  # rows of 32 elements: the fourth is of both consumers
    with pytest.raises(PlanError, match="shared memory of B, 112 of 224 columns"):
        replace(plan, b=replace(plan.b, major="MN", smem=smem)).check()


def test_consumers_that_divide_columns_hold_no_products_by_two_matrices():
    gated = trace(lambda gate, value: gate * value, [], accumulators=2)
    with pytest.raises(PlanError, match="112 of 224 columns, which are of 2 matrices"):
        cooperative((192, 224, 64), epilogue=gated)
    assert all(split((192, 224, 64), epilogue=gated).proofs())  # partial sums go to memory


def test_three_consumers_that_take_turns_hold_smaller_tiles():
    plan = pingpong(consumers=3)
    assert (plan.consumers, plan.consumers_per_tile, plan.rows, plan.threads) == (3, 1, 128, 512)
    assert plan.producer_registers + 3 * plan.consumer_registers == REGISTER_FILE // 128
    assert all(plan.proofs())
    with pytest.raises(PlanError, match=r"144 registers a thread.* at most 128 of 160"):
        pingpong((128, 144, 64), consumers=3)
    with pytest.raises(PlanError, match="consumers is 4; it must be 2 or 3"):
        pingpong(consumers=4)
    with pytest.raises(PlanError, match="consumers is 3; it must be 2 where"):
        replace(cooperative(), consumers=3).check()


@pytest.mark.parametrize("make", [cooperative, split])
def test_one_consumer_multiplies_64_rows(make):
    plan = make((64, 256, 64))
    assert (plan.consumers, plan.rows, plan.threads) == (1, 64, 256)
    assert all(plan.proofs())


def test_an_unsupported_dtype_is_refused():
    with pytest.raises(PlanError, match="dtype is float32"):
        pingpong(dtype="float32")


def padded(rows, columns):
    return Layout((rows, columns), (columns + 8, 1))


def over(swizzle, outer, unit=BITS):
    return ComposedLayout(swizzle, 0, outer, unit=unit)


@pytest.mark.parametrize(
    ("smem", "message"),
    [
        (over(Swizzle(0, 3, 3), padded(128, 64)), "TMA writes 128 rows of 64 contiguous elements"),
        (unswizzled(128, 64), "not K-major with a 16-byte swizzle"),
        (over(Swizzle(3, 4, 3), swizzled(128, 64, "K").outer), "not one of TMA's"),
        (over(Swizzle(3, 3, 3), padded(128, 64)), "TMA writes 128 rows of 64 contiguous elements"),
        (swizzled(128, 64, "MN"), "TMA writes"),
        (over(Swizzle(3, 3, 3), swizzled(128, 64, "K").outer, unit=None), "say its unit"),
    ],
    ids=[
        "padded without swizzle",
        "rows without swizzle",
        "swizzle in the wrong unit",
        "padded under the swizzle",
        "the other major",
        "no unit",
    ],
)
@pytest.mark.parametrize("name", ["A", "B"])
def test_an_operand_that_tma_or_wgmma_cannot_take_is_refused(name, smem, message):
    plan = pingpong()
    operand = getattr(plan, name.lower())
    with pytest.raises(PlanError, match=f"shared memory of {name}: .*{message}"):
        replace(plan, **{name.lower(): replace(operand, smem=smem)}).check()


def test_a_staging_panel_that_stmatrix_cannot_write_is_refused():
    plan = pingpong()
    column_major = over(Swizzle(3, 3, 3), Layout((128, 64)))
    with pytest.raises(PlanError, match=r"of row 0 .*stmatrix writes a row as 16 contiguous bytes"):
        replace(plan, staging=column_major).check()
    with pytest.raises(PlanError, match=r"of column 0 .*take a layout contiguous in rows"):
        replace(pingpong(swapped=True), staging=plan.staging).check()


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("bm", [128, 192, 256])
def test_panels_are_the_widest_beside_which_stages_hold_enough_of_k(bm, swapped):
    """All panels that a plan may have, 64 columns of them in flight at most."""
    for bn in range(64, 193, 8):
        plan = cooperative((bm, bn, 64), swapped=swapped)
        widths = panel_widths(bn, swapped)
        panels = [(w, c) for w in widths for c in range(max(1, min(64, bn) // w), 0, -1)]
        every = [with_panels(plan, *each).check() for each in panels]
        enough = [each for each in every if each.stages * 64 >= STAGED_K]
        assert plan == (enough or every)[0]


def test_a_panel_of_any_other_width_is_refused():
    plan = pingpong((128, 96, 64))
    with pytest.raises(PlanError, match=r"C panel: it has 8 columns; .* one of \(32, 16\)"):
        replace(plan, staging=panel_layout(128, 8)).check()
    assert with_panels(plan, 16, 2).check().panels == 6


def test_swapped_operands_change_places():
    """The plan's A is the caller's Bᵀ: it is contiguous along K if B's columns are."""
    plan = pingpong((128, 16, 64), a_major="K", b_major="MN", swapped=True)
    assert (plan.a_major, plan.b_major) == ("K", "MN")
    assert (plan.a.major, plan.b.major) == ("MN", "K")
    assert (plan.a.shape, plan.b.shape) == ((128, 64), (16, 64))
    assert "the kernel computes Cᵀ = Bᵀ · Aᵀ" in plan.explain()
    assert "stmatrix.x4.trans" in plan.explain()
    assert "swapped" not in pingpong().explain()


@pytest.mark.parametrize("bn", [8, 16, 24, 80, 96, 112, 136, 144, 256])
def test_swapped_panels_are_as_wide_as_64_columns_allow(bn):
    plan = pingpong((64, bn, 64), swapped=True)
    wider = range(plan.panel_columns + 8, 65, 8)
    assert plan.panels * plan.panel_columns == bn
    assert not [columns for columns in wider if bn % columns == 0]
    assert plan.stmatrix.matrices == (2 if plan.panel_columns % 16 else 4)


@pytest.mark.parametrize("bn", range(8, 257, 16))
def test_panels_of_odd_multiples_of_8_columns_need_no_swizzle(bn):
    plan = pingpong((64, bn, 64))
    assert plan.panels * plan.panel_columns == bn
    assert plan.panel_columns % 16 == 8
    assert plan.panel_columns <= 64 or plan.panels == 1
    assert plan.staging.inner == Swizzle(0, 3, 3)
    assert all(plan.proofs())


@pytest.mark.parametrize(
    ("tile", "options", "message"),
    [
        (
            (128, 12, 64),
            {},
            "BN is 12; it must be a multiple of 8, since a wgmma has a multiple of 8 columns",
        ),
        ((128, 8, 64), {"a_major": "MN"}, "8 × 64 elements, MN-major, has 8 contiguous"),
        ((128, 24, 64), {"a_major": "MN"}, "24 × 64 elements, MN-major, has 24 contiguous"),
        ((128, 8, 32), {}, "a stage of B takes 512 bytes; .* multiple of 1024"),
        ((128, 8, 64), {"cluster": (2, 1)}, "B has 8 rows for 2 blocks"),
    ],
)
def test_an_impossible_tile_of_swapped_operands_is_refused(tile, options, message):
    with pytest.raises(PlanError, match=message):
        pingpong(tile, swapped=True, **options)


def test_a_plan_is_a_value():
    assert pingpong() == pingpong()
    assert hash(pingpong()) == hash(pingpong())
    assert pingpong() != pingpong(b_major="MN")
    assert pingpong() != "a plan"


def test_explain_names_every_layout():
    plan = pingpong(a_major="MN")
    text = plan.explain()
    for layout in (plan.a.smem, plan.b.smem, plan.staging, plan.accumulator, plan.stmatrix_tv):
        assert str(layout) in text
    assert f"{plan.smem_bytes:,} of {SMEM_BYTES:,} bytes" in text


@every_plan
def test_a_conflict_free_claim_is_true(plan):
    """Counted bank by bank, eight row addresses a wavefront, for all that a consumer writes."""
    (claim,) = (proof for proof in plan.proofs() if isinstance(proof.statement, ConflictFree))
    counted = counted_wavefronts(plan)
    assert bool(claim) == (counted == plan.rows * plan.panel_columns * 2 // 128)
    assert claim
    assert claim.verify()
    assert plan.panel_store.wavefronts.count == counted
    assert f"{counted} wavefronts, ideal {counted}; ConflictFree proved" in plan.explain()


def counted_wavefronts(plan):
    rows, total = plan.stmatrix_rows, 0
    for first in range(0, size(rows), 8):
        at = [plan.staging(rows(lane)) * 2 // 4 for lane in range(first, first + 8)]
        words = {word + k for word in at for k in range(4)}
        total += max(sum(word % 32 == bank for word in words) for bank in range(32))
    return total


@pytest.mark.parametrize(
    ("staging", "count"),
    [
        (
            ComposedLayout(Swizzle(0, 3, 3), 0, swizzled(128, 64, "K").outer, unit=BITS),
            1024,
        ),
        (ComposedLayout(Swizzle(2, 3, 3), 0, swizzled(128, 64, "K").outer, unit=BITS), 256),
        (ComposedLayout(Swizzle(0, 3, 3), 0, Layout((128, 64), (72, 1)), unit=BITS), 128),
    ],
    ids=["no swizzle", "too few bits", "padded"],
)
def test_bank_conflicts_are_reported(staging, count):
    plan = replace(pingpong(), staging=staging)
    assert plan.panel_store.wavefronts.count == counted_wavefronts(plan) == count
    assert plan.proofs()[-1].holds == (count == 128)
    said = "proved" if count == 128 else "refuted: .* lanes 0 and [0-9]+ access different words"
    assert re.search(f"{count} wavefronts, ideal 128; ConflictFree {said}", plan.explain())


def test_a_plan_altered_anywhere_is_refused():
    """A field that the instructions determine must have the value that the kernel assumes."""
    plan = pingpong()
    gapped = Layout(((64, 2), (8, 8)), ((1, 8192), (64, 512)))
    late = ComposedLayout(SWIZZLES[64], 512, plan.staging.outer, unit=BITS)
    for change, message in (
        ({"accumulator": Layout((128, 128), (1, 128))}, "accumulator is"),
        ({"fragment": Layout((8, 2, 4, 2), (1, 8, 16, 64))}, "fragment is"),
        ({"stmatrix_tv": Layout((128, 8), (8, 1))}, "stmatrix_tv is"),
        ({"raster": Raster(0)}, "group is 0"),
        ({"raster": Raster(4, "diagonals")}, "it must be a Raster, of rows or of columns"),
        ({"raster": None}, "raster is None; it must be a Raster"),
        ({"stages": 2.5}, "stages is 2.5"),
        ({"splits": 2}, "splits is 2; it must be 1"),
        ({"b": replace(plan.b, sharers=16)}, r"cluster is \(16, 1\); it must be one of"),
        ({"schedule": "alone"}, "schedule is 'alone'; it must be one of"),
        ({"schedule": "cooperative"}, "accumulator is"),
        ({"c_stages": 3, "stages": 2}, "it must be at most 2, the buffers of a tile's panels"),
        ({"a": replace(plan.a, name="B")}, "they must be A and B"),
        ({"tile": (128, 128, 128)}, "A has the shape"),
        ({"staging": late}, "from offset 0"),
        (
            {"a": Operand("A", "MN", over(SWIZZLES[64], gapped)), "stages": 4},
            "without a gap: TMA copies 8192 elements, and the buffer has 12288",
        ),
    ):
        with pytest.raises(PlanError, match=message):
            replace(plan, **change).check()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: pingpong(cluster=(4, 4)), r"cluster is \(4, 4\); it must be one of"),
        (lambda: pingpong(cluster=[2, 1]), r"cluster is \[2, 1\]; it must be one of"),
        (
            lambda: pingpong((128, 24, 64), cluster=(4, 1)),
            "B has 24 rows for 4 blocks; each must load 8, a period",
        ),
        (lambda: replace(single(), b=replace(single().b, sharers=2)), "one warpgroup does everyth"),
        (lambda: split(cluster=(3, 1)), r"cluster is \(3, 1\); it must be one of"),
    ],
)
def test_impossible_clusters_are_refused(make, message):
    with pytest.raises(PlanError, match=message):
        make().check()


@pytest.mark.parametrize("majors", MAJORS)
@pytest.mark.parametrize("cluster", [(2, 1), (1, 2), (2, 2), (1, 4), (8, 1)])
@pytest.mark.parametrize("bn", [128, 80, 208])
def test_the_slices_of_a_cluster_tile_the_operand(cluster, majors, bn):
    plan = cooperative((128, bn, 64), a_major=majors[0], b_major=majors[1], cluster=cluster)
    for operand in (plan.a, plan.b):
        rows, columns = operand.slice_shape
        down, across = operand.slice_counts
        assert (rows * down, columns * across) == operand.shape
        loaded = chain(*(operand.slices_of(sharer) for sharer in range(operand.sharers)))
        assert sorted(part for part in loaded if part < operand.slices) == [*range(operand.slices)]
        of_swizzle = gcd(operand.shape[operand.contiguous], ROW)  # elements of a row
        for part in range(operand.slices):
            i, j = operand.slice_coord(part)
            start = operand.smem.outer(i * rows, j * columns)
            assert start % (PERIOD * of_swizzle) == 0
            for row, column in ((0, 0), (1, 5), (rows - 1, columns - 1)):
                whole = operand.smem(i * rows + row, j * columns + column)
                assert operand.slice_smem(row, column) + start == whole


@pytest.mark.parametrize(("bn", "major"), [(128, "K"), (80, "K"), (128, "MN"), (160, "MN")])
@pytest.mark.parametrize("sharers", [1, 2, 4])
def test_slices_have_every_row_of_both_matrices_once(bn, sharers, major):
    operand = Operand("B", major, swizzled(bn, 64, major, 2), sharers, matrices=2)
    (rows, matrices), columns = operand.slice_tiler
    found, of_each = [], bn // 2  # rows of a tile that are of each matrix
    for tile, k_tile, part in product(range(3), range(2), range(operand.slices)):
        (n, first), k = operand.gmem_coord(tile, k_tile, part)
        i, j = operand.slice_coord(part)
        for matrix, row in product(range(matrices), range(rows)):
            in_tile = i * operand.slice_shape[0] + matrix * rows + row
            place = first * matrices + matrix, n * rows + row
            assert place == (in_tile // of_each, tile * of_each + in_tile % of_each)
            found += [(*place, k * columns + column) for column in range(0, columns, 8)]
        assert k * columns == k_tile * 64 + j * columns
    assert sorted(found) == [*product(range(2), range(3 * of_each), range(0, 2 * 64, 8))]


@pytest.mark.parametrize("cluster", CLUSTERS)
@pytest.mark.parametrize("bn", [128, 136])
def test_a_block_receives_each_slice_once_from_its_loaders(bn, cluster):
    plan = cooperative((256, bn, 64), cluster=cluster)
    ranks = range(plan.cluster_size)
    for rank in ranks:
        loaders = set()
        for operand in (plan.a, plan.b):
            sent = ((other, *plan.multicast(operand, other)) for other in ranks)
            received = [
                (other, part)
                for other, parts, mask in sent
                for part in parts
                if mask >> rank & 1 and part < operand.slices
            ]
            assert sorted(part for _, part in received) == list(range(operand.slices))
            loaders |= {other for other, _ in received}
            side = int(operand.name == "B")  # the blocks of a row share A, those of a column B
            assert (
                len({plan.tile_scheduler.cluster_coord(other)[side] for other, _ in received}) == 1
            )
        assert sorted(loaders) == sorted(plan.loaders(rank))
        assert len(plan.loaders(rank)) == len(plan.loaders(0))  # the count of an empty mbarrier


SPLIT = [
    ((128, 128, 64), 8),
    ((128, 128, 64), 6),
    ((128, 64, 64), 16),
    ((256, 128, 64), 2),
    ((128, 256, 64), 3),
    ((128, 176, 64), 5),
    ((256, 48, 64), 4),
    ((192, 128, 64), 3),
    ((64, 80, 64), 2),
]
SPLIT_SWAPPED = [*SPLIT[2:3], *SPLIT[6:], ((64, 8, 64), 4), ((64, 24, 64), 3)]


@pytest.mark.parametrize(
    ("tile", "splits", "swapped"),
    [(*each, False) for each in SPLIT] + [(*each, True) for each in SPLIT_SWAPPED],
)
def test_partial_sums_move_in_whole_sectors(tile, splits, swapped):
    """Counted request by request; a reduction thread loads four.

    A lane stores two partial sums, or one if operands are swapped.
    """
    plan = split(tile, splits=splits, swapped=swapped)
    assert all(plan.proofs())
    bm, lanes, width = tile[0], range(32), 1 if swapped else 2
    for warp in range(4):
        for value in range(0, plan.registers, width):
            elements = [plan.accumulator(32 * warp + lane, value) for lane in lanes]
            words = [plan.partial_sums(e % plan.rows + bm * (e // plan.rows)) for e in elements]
            assert len({word // 8 for word in words}) == plan.store_sectors == 4 * width
            assert all(word % width == 0 for word in words)
    rows, columns, height = plan.reduction.rows, plan.reduction.columns, plan.c_tile[0]
    for first in range(0, plan.reduction.threads // 32 * 32, 32):
        elements = [rows(first + t, 0) + height * columns(first + t, 0) for t in lanes]
        words = [plan.c_partial_sums(element) for element in elements]
        assert len({(word + k) // 8 for word in words for k in range(4)}) == plan.load_sectors == 16


@pytest.mark.parametrize(
    ("tile", "splits", "swapped"),
    [(*each, False) for each in SPLIT] + [(*each, True) for each in (*SPLIT, *SPLIT_SWAPPED[-2:])],
)
def test_every_k_tile_has_one_split_and_every_row_one_reduction_block(tile, splits, swapped):
    plan = split(tile, splits=splits, swapped=swapped)
    for k_tiles in (1, splits - 1, splits, 3 * splits + 1, 257):
        ranges = [plan.tile_scheduler.k_tile_range(split, k_tiles) for split in range(splits)]
        assert [k for first, last in ranges for k in range(first, last)] == list(range(k_tiles))
    rows, columns = plan.c_tile
    assert rows % plan.reduction_rows == 0
    assert plan.workspace(rows + 1, columns) == splits * 2 * tile[0] * tile[1]


@pytest.mark.parametrize("swapped", [False, True])
def test_the_workspace_has_whole_clusters_of_tiles(swapped):
    plan = split((64, 32, 64), splits=3, cluster=(2, 4), swapped=swapped)
    extents = plan.exchanged((2 * 64 + 1, 4 * 32))  # two clusters
    assert plan.workspace(*extents) == 3 * 2 * 8 * 64 * 32


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: split(splits=33), "splits is 33; it must be 2 to 32"),
        (lambda: split(splits=1), "splits is 1; it must be 2 to 32"),
        (lambda: split((128, 204, 64)), "BN is 204; it must be a multiple of 8"),
        (lambda: split((32, 128, 64)), "BM is 32; it must be a multiple of 64"),
        (lambda: split((256, 256, 64)), "the accumulator takes 256 registers"),
        (
            lambda: replace(split(), reduction=split((128, 64, 64)).reduction).check(),
            "reduction is",
        ),
        (lambda: replace(split(), partial_sums=Layout((128, 128))).check(), "partial_sums is"),
    ],
)
def test_an_impossible_split_is_refused(call, message):
    with pytest.raises(PlanError, match=message):
        call()


def test_a_reduction_stores_vectors_only_where_rows_of_c_are_aligned():
    assert split().reduction_store == split().reduction
    anywhere = split(c_alignment=1)
    assert anywhere.reduction_store.width == 1
    assert anywhere.reduction.width == 4  # its loads are of the workspace
