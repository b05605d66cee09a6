"""The copy kernel: exact for rows at any address, each element stored once, compiled as planned."""

from dataclasses import replace

import cutlass.cute as cute
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cutedsl_gemm.calls import copies
from cutedsl_gemm.kernels.compile import build
from cutedsl_gemm.kernels.copies import execute
from cutedsl_gemm.kernels.copies.plan import TILES, WIDTHS, copy_plan
from cutedsl_gemm.kernels.plan.checks import PlanError
from cutedsl_gemm.kernels.plan.tv_layout import TVLayout, load_layout

SMALL = [copy_plan(tile=(8, 4 * width), threads=16, width=width) for width in WIDTHS]
PLANS = [*(copy_plan(tile=tile) for tile in TILES), *SMALL]
GAPS, STARTS = st.integers(0, 9), st.integers(0, 9)


def memory(rows, columns, gap, start):
    """Random memory, and the matrix in it that begins at `start`, its rows `gap` apart."""
    stride = columns + gap
    flat = torch.randint(-(2**15), 2**15, (start + rows * stride + 5,), dtype=torch.int16)
    flat = flat.view(torch.bfloat16)
    return flat, flat.as_strided((rows, columns), (stride, 1), start)


def bits(tensor):
    return tensor.view(torch.int16)


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: f"{plan.tile}-{plan.width}")
def test_its_layouts_are_proved(plan):
    assert all(plan.proofs())


@given(
    plan=st.sampled_from(SMALL),
    shape=st.tuples(st.integers(1, 20), st.integers(1, 80)),
    gaps=st.tuples(GAPS, GAPS),
    starts=st.tuples(STARTS, STARTS),
)
def test_the_executor_copies_to_the_bit_and_writes_nothing_else(plan, shape, gaps, starts):
    (_, source), (flat, target) = (
        memory(*shape, gap, start) for gap, start in zip(gaps, starts, strict=True)
    )
    expected = flat.clone()
    expected.as_strided(target.shape, target.stride(), starts[1]).copy_(source)
    plan.execute((source, target))
    assert torch.equal(bits(flat), bits(expected))


@pytest.mark.parametrize("start", range(9))
@pytest.mark.parametrize("shape", [(1, 1), (9, 33), (33, 257)], ids=str)
def test_every_element_of_the_target_is_stored_once(shape, start):
    _, source = memory(*shape, 3, 5)
    _, target = memory(*shape, 2, start)
    offsets = torch.cat([at for at, _ in execute.stores(copy_plan(), source, target)])
    rows, columns = (torch.arange(extent) for extent in shape)
    wanted = rows[:, None] * target.stride(0) + columns
    assert torch.equal(offsets.sort().values, wanted.flatten())


def test_rows_may_overlap_in_the_source():
    source = torch.arange(20).bfloat16().as_strided((5, 16), (1, 1))
    target = torch.empty(5, 17, dtype=torch.bfloat16)[:, :16]
    for each in (source, source[:1].expand(5, 16)):
        copy_plan().execute((each, target))
        assert torch.equal(target, each)


@pytest.mark.parametrize(
    ("source", "target", "by_torch"),
    [
        ((7, 1), (8, 1), False),
        ((1, 5), (1, 8), False),
        ((7, 1), (1, 8), True),  # a transposition
        ((14, 2), (8, 1), True),
        ((0, 0), (8, 1), True),
        ((0, 1), (8, 1), False),
    ],
    ids=str,
)
def test_torch_copies_what_has_no_contiguous_mode_in_common(source, target, by_torch):
    values = torch.arange(100).bfloat16()
    pair = values.as_strided((5, 7), source, 1), torch.empty_strided((5, 7), target).bfloat16()
    assert (copies._rows(*pair) is None) == by_torch
    copies.copy(pair)
    assert torch.equal(*pair)


def test_a_target_whose_rows_overlap_is_refused_by_torch():
    source, target = torch.ones(4, 8).bfloat16(), torch.ones(8).bfloat16().expand(4, 8)
    with pytest.raises(RuntimeError, match="more than one element"):
        copies.copy((source, target))


def changed(plan, **change):
    return replace(plan, copy=TVLayout(**{**vars(plan.copy), **change}))


PLAN = copy_plan()


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (replace(PLAN, dtype="float32"), "dtype is 'float32'"),
        (replace(PLAN, tile=(32,)), "tile is .* 2 positive integers"),
        (replace(PLAN, tile=(32, 512)), "16384 elements once"),
        (replace(PLAN, matrices=0), "matrices is 0; it must be an integer of at least 1"),
        (replace(PLAN, copy=load_layout(*TILES[0], "MN", 256, 8)), "neighbours along a row"),
        (
            replace(PLAN, copy=load_layout(*TILES[0], "K", 256, 1)),
            "one of .* neighbours along a row",
        ),
        (changed(PLAN, columns=PLAN.copy.rows), "4096 elements once"),
    ],
    ids=str,
)
def test_a_plan_altered_anywhere_is_refused(plan, message):
    with pytest.raises(PlanError, match=message):
        plan.check()


@pytest.mark.slow
def test_registers_are_viewed_whole_in_words_of_one_register(monkeypatch):
    """The DSL's view of one Uint32 as elements of 16 bits has one element: the other was lost."""
    recast, views = cute.recast_tensor, []

    def bits_of(tensor):
        return cute.size(tensor) * tensor.element_type.width

    def recorded(tensor, dtype):
        view = recast(tensor, dtype)
        views.append((bits_of(tensor), bits_of(view)))
        return view

    monkeypatch.setattr(cute, "recast_tensor", recorded)
    build.compile_plan(copy_plan(tile=(8, 32), threads=128, width=2))
    assert {*views} == {(32, 32), (64, 64)}  # a word, and two


@pytest.mark.slow
def test_words_move_whole_and_two_are_in_flight():
    plan = copy_plan(matrices=2)
    report, words = build.inspect(plan), plan.copy.lines * plan.copy.vectors
    assert report.instructions["LDG.E.128"] == 2 * words
    assert report.instructions["STG.E.128"] == words == 2
    assert report.instructions["LDG.E.U16"] == 2 * words * plan.width  # at the ends of the memory
    assert report.instructions["STG.E.U16"] == words * plan.width  # at the ends of rows
    assert report.registers <= 32  # eight blocks of 256 threads on a multiprocessor
    assert report.spills == report.stack_bytes == 0
    assert (report.count("ACQBULK"), report.count("PREEXIT")) == (1, 1)
    assert report.code.index("MUFU.RCP") < report.code.index("ACQBULK")  # divides, then waits
    trigger = report.code.index("PREEXIT")  # behind all stores
    assert not any(opcode.startswith("STG") for opcode in report.code[trigger:])
