"""Drawn shapes: what is drawn, and what the tables say; the measuring itself needs a GPU."""

import csv
import statistics
import sys
from functools import partial

import pytest
import torch
from rich.console import Console

from cutedsl_gemm import __main__, plan_for
from cutedsl_gemm.measure import batches, distribution, odd_shapes, random_shapes
from cutedsl_gemm.measure.distribution import Product, Sample, percentile
from cutedsl_gemm.measure.random_shapes import CLASSES, LINES, draw, line_bytes

SAMPLES = [
    Sample(Product((64 * number, 4096, k)), 1e-5 * number, 1e-5, f"plan {number}")
    for number, k in zip(range(1, 41), (64, 16, 40, 128) * 10, strict=True)
]
EMPTY = partial(torch.empty, dtype=torch.bfloat16)


def test_shapes_are_log_uniform_multiples_of_eight():
    shapes = draw(4000, seed=7)
    assert shapes == draw(4000, seed=7) != draw(4000, seed=8)
    extents = [extent for mnk in shapes for extent in mnk]
    assert min(extents) == 64
    assert max(extents) == 16384
    assert all(extent % 8 == 0 for extent in extents)
    for power in range(8, 14):  # each octave has an eighth; rounding moves those below 256
        within = sum(2**power <= extent < 2 ** (power + 1) for extent in extents)
        assert within == pytest.approx(len(extents) / 8, rel=0.15)
    whole = sum(all(extent % 64 == 0 for extent in mnk) for mnk in shapes)
    assert whole == pytest.approx(0.4 * len(shapes), rel=0.1)  # q is 64 or 128


def test_odd_shapes_have_rows_that_tma_cannot_read_or_store():
    products = odd_shapes.draw(1000, seed=7)
    assert products == odd_shapes.draw(1000, seed=7) != odd_shapes.draw(1000, seed=8)
    for (m, n, k), _, batch in products:
        assert batch == 1
        assert min(m, n, k) >= 64
        assert max(m, n, k) <= 8192
        assert n % 8 or k % 8
        assert 2 * m * n * k >= 1e9
    k_major = sum(each.b_major == "K" for each in products)
    assert k_major == pytest.approx(500, rel=0.1)


def test_three_of_ten_batches_have_rows_that_tma_cannot_read_or_store():
    products = batches.draw(1000, seed=7)
    assert products == batches.draw(1000, seed=7) != batches.draw(1000, seed=8)
    for each in products:
        assert all(8 < extent <= 4096 for extent in each.mnk)
        assert 2 <= each.batch <= 256
        assert each.flops >= 1e8
    assert sum(map(batches.in_place, products)) == pytest.approx(700, rel=0.1)


@pytest.mark.parametrize("b_major", ["K", "N"])
def test_the_operands_of_a_product_are_contiguous_along_its_majors(b_major):
    a, b = Product((2, 3, 5), b_major).operands(EMPTY)
    assert (a.shape, a.stride()) == ((2, 5), (5, 1))
    assert (b.shape, b.stride()) == ((5, 3), (1, 5) if b_major == "K" else (3, 1))
    a, b = Product((2, 3, 5), b_major, 4).operands(EMPTY)
    assert (a.shape, b.shape) == ((4, 2, 5), (4, 5, 3))
    assert b.stride() == ((15, 1, 5) if b_major == "K" else (15, 3, 1))


def test_the_plan_that_is_named_is_the_one_that_gemm_runs():
    drawn = *random_shapes.products(9, seed=3), *odd_shapes.NAMED, *batches.draw(9, seed=3)
    for product in drawn:
        for invariant in (False, True):
            ran = plan_for(*product.operands(EMPTY), invariant=invariant)
            assert distribution.plan_of(product, invariant) == ran


@pytest.mark.parametrize(
    ("k", "line"), [(64, 128), (128, 128), (32, 32), (16, 32), (8, 16), (72, 16), (80, 32)]
)
def test_a_leading_stride_is_of_the_largest_class_that_divides_it(k, line):
    assert line_bytes((64, 64, k)) == line


def test_a_percentile_is_the_value_that_so_many_do_not_exceed():
    values = [*range(1, 101)]
    assert [percentile(values, share / 100) for share in values] == values


def shown(*tables):
    console = Console(width=160, record=True)
    console.print(*tables)
    return rows_of(console.export_text())


def rows_of(text):
    lines = [line for line in text.splitlines() if line.startswith("│")]
    return [[cell.strip() for cell in line.strip("│").split("│")] for line in lines]


def test_the_summary_has_a_row_for_each_class_with_its_distribution():
    rows = {name: cells for name, *cells in shown(distribution.summary(SAMPLES, CLASSES, "title"))}
    assert [*rows] == [*CLASSES]
    mean = statistics.geometric_mean(range(1, 41))
    assert rows["all"] == (
        ["40", f"{mean:.3f}", "1.000", "2.000", "10.000", "20.000", "30.000", "38.000", "0"]
    )
    assert [rows[name][0] for name in LINES.values()] == ["20", "10", "10"]
    assert rows["fewer than 132 tiles of 128×128"][0] == "8"  # M at most 512
    assert rows["M or N at most 128"][0] == "2"


def test_a_class_without_samples_has_no_row_and_slow_shapes_are_counted():
    slow = [Sample(Product((512, 512, 8)), ratio, 1.0, "") for ratio in (0.5, 0.94, 0.96)]
    rows = shown(distribution.summary(slow, CLASSES, "title"))
    assert [row[0] for row in rows] == (
        ["all", "leading strides of 16 bytes", "fewer than 132 tiles of 128×128"]
        + ["M at least 256"]
    )
    assert [row[-1] for row in rows] == ["2"] * 4


def test_each_product_has_one_colour_of_the_plot():
    for population in (each.POPULATION for each in (random_shapes, odd_shapes, batches)):
        colours = [population.classes[name] for name in population.colours]
        for product in (*population.named, *population.draw(100, 1)):
            assert sum(belongs(product) for belongs in colours) == 1


def test_the_worst_come_first():
    rows = shown(distribution.worst(SAMPLES))
    assert len(rows) == distribution.WORST
    assert rows[0] == ["1", "64", "4096", "64", "K-major", "10.0", "10.0", "1.000", "plan 1"]
    assert [float(row[7]) for row in rows] == [*range(1, 21)]


def test_the_csv_has_a_row_for_each_shape(tmp_path):
    distribution.write(SAMPLES, tmp_path / "table.csv")
    first, *others = csv.DictReader((tmp_path / "table.csv").read_text().splitlines())
    assert first == (
        {"L": "1", "M": "64", "N": "4096", "K": "64", "B": "K-major"}
        | {"torch, µs": "10.00", "gemm, µs": "10.00", "plan": "plan 1"}
    )
    assert len(others) == 39


@pytest.mark.parametrize(
    ("shapes", "drawn"), [("random", random_shapes), ("odd", odd_shapes), ("batches", batches)]
)
def test_named_shapes_are_listed_first_and_do_not_count_in_the_distribution(
    monkeypatch, capsys, tmp_path, shapes, drawn
):
    pytest.importorskip("matplotlib")
    files = tmp_path / "table.csv", tmp_path / "plot.svg"
    words = ["--shapes", shapes, "--count", "2", "--csv", str(files[0]), "--plot", str(files[1])]
    compiled, calls = [], []

    def timed(product, invariant):  # torch.mm takes twice as long at each shape as at the last
        calls.append((product, invariant))
        return [1e-6 * 2 ** len(calls), 1e-6]

    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr(distribution, "machine", lambda: "a machine")
    monkeypatch.setattr(distribution, "compiled_with_bar", compiled.extend)
    monkeypatch.setattr(distribution, "_seconds", timed)
    monkeypatch.setattr(sys, "argv", ["cutedsl_gemm", "bench", *words])
    __main__.main()
    named = len(drawn.POPULATION.named)
    assert len(calls) == named + 2
    assert 0 < len(compiled) <= len(calls)
    rows = rows_of(capsys.readouterr().out)
    for row, product in zip(rows, drawn.POPULATION.named, strict=False):
        assert [int(each) for each in row[:4]] == [product.batch, *product.mnk]
        assert row[4] == f"{product.b_major}-major"
    assert next(row[1:3] for row in rows if row[0] == "all") == ["2", f"{2 ** (named + 1.5):.3f}"]
    assert len(files[0].read_text().splitlines()) == 1 + len(calls)
    assert files[1].read_text().startswith("<?xml")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--shapes", "random", "--sustained"], "omit it with --shapes random"),
        (["--shapes", "odd", "--sustained"], "omit it with --shapes odd"),
        (["--shapes", "decode", "--sustained"], "omit it with --shapes decode"),
        (["--shapes", "decode", "--plot", "x.svg"], "--plot does not draw --shapes decode"),
        (["--shapes", "epilogues", "--sustained"], "omit it with --shapes epilogues"),
        (["--shapes", "epilogues", "--plot", "x.svg"], "does not draw --shapes epilogues"),
        (["--seed", "3"], "--seed is for --shapes random, odd or batches"),
        (["--shapes", "squares", "--count", "3"], "--count is for --shapes random, odd or batches"),
        (["--invariant"], "--invariant is for --shapes random, odd or batches"),
        (["--shapes", "random", "--count", "0"], "'0' must be a positive integer"),
    ],
)
def test_options_that_do_not_fit_together_are_refused(monkeypatch, capsys, words, message):
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr(sys, "argv", ["cutedsl_gemm", "bench", *words])
    with pytest.raises(SystemExit) as ended:
        __main__.main()
    assert ended.value.code == 2
    assert message in capsys.readouterr().err
