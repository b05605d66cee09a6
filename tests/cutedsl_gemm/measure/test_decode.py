"""The tables of decoding show what was measured."""

import csv

import pytest
from rich.console import Console

from cutedsl_gemm.measure import decode
from cutedsl_gemm.measure.decode import ROWS, WEIGHTS, Sample, copies

SAMPLES = [
    Sample((m, n, k), cold, cublas=2e-5, ours=1e-5 if cold else 4e-5)
    for n, k in WEIGHTS
    for m in ROWS
    for cold in (True, False)
]


def test_cold_weights_exceed_l2_eight_times():
    for n, k in WEIGHTS:
        assert (copies(n, k) - 1) * 2 * n * k < 8 * 50e6 <= copies(n, k) * 2 * n * k


@pytest.mark.parametrize(("cold", "cell"), [(True, "2.00 10.0 3355"), (False, "0.50 40.0 839")])
def test_a_table_has_a_cell_for_each_shape(cold, cell, monkeypatch):
    monkeypatch.setattr(decode, "machine", lambda: "a machine")
    with (console := Console(width=250)).capture() as text:
        console.print(decode.table(SAMPLES, cold))
    rows = [line for line in text.get().splitlines() if " × " in line and "M =" not in line]
    assert len(rows) == len(WEIGHTS)
    assert rows[1].count(cell) == len(ROWS)  # of 4096 × 4096


def test_the_samples_are_written(tmp_path):
    decode.write(SAMPLES, tmp_path / "table.csv")
    first, *rest = csv.DictReader((tmp_path / "table.csv").read_text().splitlines())
    assert (first["M"], first["weights"], first["gemm, µs"]) == ("1", "cold", "10.00")
    assert len(rest) == len(SAMPLES) - 1
