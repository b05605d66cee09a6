"""What the bench shows of what it measured; the measuring itself needs a GPU."""

import csv
import time

import pytest
from rich.console import Console

from cutedsl_gemm import command_line
from cutedsl_gemm.measure import bench, ladder, providers, report
from cutedsl_gemm.measure.power import PowerMeter, Reading
from cutedsl_gemm.measure.report import Point
from cutedsl_gemm.select import timing

POINTS = [
    Point((8448, 9216, 64), {"torch.mm": 150.0, "gemm": 180.0, "quack": 160.0}),
    Point(
        (512, 512, 512),
        {"torch.mm": 50.0, "gemm": 60.0, "quack": 40.0},
        calls={"torch.mm": 14.0, "gemm": 5.0, "quack": 18.0},
        gpu=Reading(1980.0, 512.5),
    ),
]


def test_the_command_line_knows_all_shapes():
    assert tuple(bench.SHAPES) == command_line.SHAPES
    for shapes in bench.SHAPES.values():
        assert len({*shapes}) == len(shapes)
        assert all(n % 8 == k % 8 == 0 for _, n, k in shapes)


def test_the_best_peer_is_none_of_ours():
    assert POINTS[0].best_peer == 160.0


def test_whoever_is_installed_is_measured_and_torch_comes_first(monkeypatch):
    asked = {}
    monkeypatch.setattr(providers, "find_spec", lambda name: asked.setdefault(name))
    assert [*bench.providers()] == ["torch.mm", "gemm", "gemm 128×128"]
    assert [*asked] == ["quack", "triton"]


def test_the_table_has_ratios_calls_and_the_state_of_the_gpu():
    console = Console(width=200, record=True)
    console.print(report.table(POINTS, "title"))
    long, short = (line for line in console.export_text().splitlines() if "│ " in line)
    assert [cell.strip() for cell in long.strip("│").split("│")][3:] == (
        ["150", "180", "160", "1.200", "1.125", "", "", "", ""]
    )
    assert [cell.strip() for cell in short.strip("│").split("│")][6:] == (
        ["1.200", "1.200", "5.0", "14.0", "1980", "512"]
    )


def test_the_csv_says_what_each_column_is(tmp_path):
    report.write(POINTS, tmp_path / "table.csv")
    first, second = csv.DictReader((tmp_path / "table.csv").read_text().splitlines())
    assert (first["K"], first["gemm"], first["gemm, µs a call"]) == ("64", "180.0", "")
    assert (second["quack, µs a call"], second["W"]) == ("18.0", "512.5")


def test_what_was_written_is_read(tmp_path):
    report.write(POINTS, tmp_path / "table.csv")
    read = report.read(tmp_path / "table.csv")
    assert [(point.mnk, point.tflops) for point in read] == [(p.mnk, p.tflops) for p in POINTS]


@pytest.mark.parametrize("points", [POINTS, POINTS[:1] * 2], ids=["shapes", "over K"])
def test_the_plot_is_drawn(points, tmp_path):
    pytest.importorskip("matplotlib")
    report.plot(points, "title", tmp_path / "plot.svg")
    assert (tmp_path / "plot.svg").read_text().startswith("<?xml")


SMI = """#!/bin/sh
echo "1755, 300.5"
echo "[N/A], 20"
echo "1980, 120.0"
exec sleep 60
"""


def test_the_power_meter_keeps_the_reading_of_highest_power(monkeypatch, tmp_path):
    (tmp_path / "nvidia-smi").write_text(SMI)
    (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with PowerMeter("0") as meter:
        deadline = time.monotonic() + 60
        while len(meter.readings) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert meter.peak() == Reading(1755.0, 300.5)
        assert meter.peak() is None


def test_without_nvidia_smi_there_are_no_readings(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with PowerMeter("0") as meter:
        assert meter.peak() is None


@pytest.mark.parametrize(
    ("launch", "host", "short"),
    [(20e-6, 90e-6, True), (29e-6, 40e-6, True), (31e-6, 0, False), (1e-3, 0, False)],
)
def test_what_is_short_is_told_without_the_host(monkeypatch, launch, host, short):
    """Launches in a row wait for the host, those of a graph do not."""

    def captured(run, count):
        return (count, launch)

    def timed(run, count):
        return run[0] * run[1] if isinstance(run, tuple) else launch + host

    monkeypatch.setattr(bench, "captured", captured)
    monkeypatch.setattr(bench, "timed", timed)
    assert (bench._replays({"gemm": lambda: None}) is not None) == short


@pytest.mark.parametrize(
    ("once", "launches"), [(1e-4, 3 * (3 + 10)), (0.07, 3 * (3 + 4)), (2.1, 3 * (1 + 1))]
)
def test_a_burst_has_fewer_launches_where_each_takes_long(monkeypatch, once, launches):
    made = []

    def timed(launch, count):
        made.append(count)
        return once

    monkeypatch.setattr(timing, "timed", timed)
    monkeypatch.setattr(ladder, "timed", timed)
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    assert ladder.in_bursts(lambda: None) == once
    assert sum(made) == 1 + launches
