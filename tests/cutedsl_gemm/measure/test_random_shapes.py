"""Random shapes: what is drawn, and what the tables say; the measuring itself needs a GPU."""

import csv
import statistics
import sys

import pytest
from rich.console import Console

from cutedsl_gemm import __main__
from cutedsl_gemm.measure import random_shapes
from cutedsl_gemm.measure.random_shapes import Sample, draw, line_bytes, percentile

SAMPLES = [
    Sample((64 * number, 4096, k), 1e-5 * number, 1e-5, f"plan {number}")
    for number, k in zip(range(1, 41), (64, 16, 40, 128) * 10, strict=True)
]


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
    lines = [line for line in console.export_text().splitlines() if line.startswith("│")]
    return [[cell.strip() for cell in line.strip("│").split("│")] for line in lines]


def test_the_summary_has_a_row_for_each_class_with_its_distribution():
    rows = {name: cells for name, *cells in shown(random_shapes.summary(SAMPLES, "title"))}
    assert [*rows] == [*random_shapes.CLASSES]
    mean = statistics.geometric_mean(range(1, 41))
    assert rows["all"] == (
        ["40", f"{mean:.3f}", "1.000", "2.000", "10.000", "20.000", "30.000", "38.000", "0"]
    )
    assert [rows[name][0] for name in random_shapes.LINES.values()] == ["20", "10", "10"]
    assert rows["fewer than 132 tiles of 128×128"][0] == "8"  # M at most 512
    assert rows["M or N at most 128"][0] == "2"


def test_a_class_without_samples_has_no_row_and_slow_shapes_are_counted():
    slow = [Sample((512, 512, 8), ratio, 1.0, "") for ratio in (0.5, 0.94, 0.96)]
    rows = shown(random_shapes.summary(slow, "title"))
    assert [row[0] for row in rows] == (
        ["all", "leading strides of 16 bytes", "fewer than 132 tiles of 128×128"]
        + ["M at least 256"]
    )
    assert [row[-1] for row in rows] == ["2"] * 4


def test_the_worst_come_first():
    rows = shown(random_shapes.worst(SAMPLES))
    assert len(rows) == random_shapes.WORST
    assert rows[0] == ["64", "4096", "64", "10.0", "10.0", "1.000", "plan 1"]
    assert [float(row[5]) for row in rows] == [*range(1, 21)]


def test_the_csv_has_a_row_for_each_shape(tmp_path):
    random_shapes.write(SAMPLES, tmp_path / "table.csv")
    first, *others = csv.DictReader((tmp_path / "table.csv").read_text().splitlines())
    assert first == (
        {"M": "64", "N": "4096", "K": "64", "torch.mm, µs": "10.00", "gemm, µs": "10.00"}
        | {"plan": "plan 1"}
    )
    assert len(others) == 39


def test_the_plot_is_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    random_shapes.plot(SAMPLES, "title", tmp_path / "plot.svg")
    assert (tmp_path / "plot.svg").read_text().startswith("<?xml")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--shapes", "random", "--sustained"], "omit it with --shapes random"),
        (["--shapes", "decode", "--sustained"], "omit it with --shapes decode"),
        (["--shapes", "decode", "--plot", "x.svg"], "--plot does not draw --shapes decode"),
        (["--seed", "3"], "--seed is for --shapes random"),
        (["--shapes", "squares", "--count", "3"], "--count is for --shapes random"),
        (["--invariant"], "--invariant is for --shapes random"),
        (["--shapes", "random", "--count", "0"], "0 must be a positive integer"),
    ],
)
def test_options_that_do_not_fit_together_are_refused(monkeypatch, capsys, words, message):
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr(sys, "argv", ["cutedsl_gemm", "bench", *words])
    with pytest.raises(SystemExit) as ended:
        __main__.main()
    assert ended.value.code == 2
    assert message in capsys.readouterr().err
