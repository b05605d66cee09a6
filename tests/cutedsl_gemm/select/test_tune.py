"""The winner of a race is used from then on, in any process. The clock here is a fake."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest
import torch

from cutedsl_gemm import gemm
from cutedsl_gemm.inputs.problem import Matrix, Problem
from cutedsl_gemm.kernels.compile import build, cache
from cutedsl_gemm.kernels.epilogue.trace import trace
from cutedsl_gemm.select import tune
from cutedsl_gemm.select.choose import choose
from cutedsl_gemm.select.model import ranking

SHAPES = [(8448, 9216, 1984), (512, 512, 16384), (16, 8192, 8192), (1, 8, 8), (4096, 4096, 4096)]


def problem(m=8448, n=9216, k=1984):
    return Problem.dense(m, n, k)


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path))
    return tmp_path


@pytest.fixture
def clock(monkeypatch):
    """A race that launch number `clock.first` wins."""

    class Clock:
        first, races = 0, 0

        def race(self, launches, report):
            self.races += 1
            for launch in launches:
                launch()
            report(1.0)
            return [float(number != self.first) for number in range(len(launches))]

    clock = Clock()
    monkeypatch.setattr(tune, "race", clock.race)
    return clock


def test_plans_that_refuse_an_epilogue_take_no_part_and_each_epilogue_has_its_entry():
    plain = problem(512, 512, 16384)
    row_sums = replace(plain, epilogue=trace(lambda acc: (acc, acc.sum(dim=1))))
    gated = replace(plain, epilogue=trace(lambda gate, up: gate * up, (), 2))
    for asked in (row_sums, gated):
        found = tune.entries(asked)
        plans = [tune._plan(asked, entry) for entry in found]
        assert all(plan.epilogue == asked.epilogue for plan in plans)
        assert plans[0] == choose(asked)
    assert len({*map(tune._shape, (plain, row_sums, gated))}) == 3


def test_rows_off_lines_and_rows_of_c_at_any_address_have_entries_of_their_own():
    square = problem(4096, 4096, 4096)
    a, b = Matrix((4096, 4096), (4104, 1)), Matrix((4096, 4096), (1, 4104))
    others = replace(square, a=a), replace(square, b=b), replace(square, c_alignment=1)
    assert len({*map(tune._shape, (square, *others))}) == 4


def run(asked, device="H100"):
    launched = []
    plan = tune.tuned(asked, device, lambda plan: lambda: launched.append(plan))
    return plan, launched


@pytest.mark.parametrize("mnk", SHAPES, ids=str)
def test_a_dozen_candidates_with_the_models_choice_first(mnk):
    found = tune.entries(problem(*mnk))
    assert len(found) == len({*found}) == tune.ENTRIES
    assert tune._plan(problem(*mnk), found[0]) == choose(problem(*mnk))
    assert found[1][0] == ranking(problem(*mnk))[1].candidate


def test_the_winner_is_remembered(clock):
    clock.first = 7
    winner, launched = run(problem())
    assert winner == launched[7]
    assert run(problem()) == (winner, [])
    assert clock.races == 1


def test_each_problem_and_each_device_has_its_own(clock):
    ours = problem()
    row_major = Matrix(ours.b.shape, (ours.b.shape[1], 1))
    cases = (
        (ours, "H100"),
        (ours, "H200"),
        (problem(k=2048), "H100"),
        (ours.transposed, "H100"),
        (replace(ours, dtype="float16"), "H100"),
        (replace(ours, b=row_major), "H100"),
        (replace(ours, invariant=True), "H100"),
    )
    for races, (asked, device) in enumerate(cases, 1):
        assert run(asked, device)[1]
        assert clock.races == races
    assert not any(run(asked, device)[1] for asked, device in cases)


def test_a_capture_takes_a_stored_winner_and_refuses_a_race(clock, monkeypatch):
    run(problem())
    monkeypatch.setattr(build, "capturing", lambda: True)
    assert not run(problem())[1]
    with pytest.raises(RuntimeError, match="call gemm once before the capture"):
        run(problem(k=2048))


def test_another_release_measures_again(clock, monkeypatch):
    run(problem())
    monkeypatch.setattr(build, "_source", lambda: "another source")
    assert run(problem())[1]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"H100": {}}', '{"H100": []}', '{"H100": null}']
)
def test_a_damaged_file_is_replaced(clock, folder, text):
    run(problem())
    (file,) = folder.glob("tuned-*.json")
    file.write_text(text)
    assert run(problem())[1]
    assert not run(problem())[1]


def test_a_candidate_that_no_longer_exists_is_forgotten(clock, folder):
    run(problem())
    (file,) = folder.glob("tuned-*.json")
    known = json.loads(file.read_text())
    (known["H100"],) = ({shape: {"plan": "none"} for shape in known["H100"]},)
    file.write_text(json.dumps(known))
    assert run(problem())[1]


@pytest.mark.parametrize(
    "change", [{"group": "x"}, {"group": 0}, {"group": -1}, {"of": "diag"}, {"of": None}]
)
def test_an_impossible_raster_is_forgotten(clock, folder, change):
    run(problem())
    (file,) = folder.glob("tuned-*.json")
    known = json.loads(file.read_text())
    for shape in known["H100"].values():
        shape.update(change)
    file.write_text(json.dumps(known))
    assert run(problem())[1]


WRITERS = """
import os, sys
from cutedsl_gemm.select import tune
from cutedsl_gemm.select.candidate import CANDIDATES
from cutedsl_gemm.kernels.plan.raster import Raster
from cutedsl_gemm.inputs.problem import Matrix, Problem
child = os.fork()  # so that the two import torch once
for k in range(bool(child), 40, 2):
    tune._store(Problem.dense(8, 8, k), "H100", (CANDIDATES[0], Raster(1)))
if child:
    sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))
"""


@pytest.mark.slow
def test_processes_may_write_at_the_same_time(folder):
    subprocess.run([sys.executable, "-c", WRITERS], check=True)
    (file,) = folder.glob("tuned-*.json")
    assert len(json.loads(file.read_text())["H100"]) == 40


def test_what_cannot_be_tuned_gets_a_message():
    a, b = torch.ones(16, 32, dtype=torch.bfloat16), torch.ones(32, 24, dtype=torch.bfloat16)
    with pytest.raises(ValueError, match="tune=True measures kernels on a GPU, and a is on cpu"):
        gemm(a, b, tune=True)


def test_where_no_file_can_be_written_the_winner_lasts_as_long_as_the_process(
    clock, monkeypatch, folder
):
    monkeypatch.setattr(tune, "_unstored", {})
    (folder / "file").touch()
    monkeypatch.setenv(cache.VARIABLE, str(folder / "file"))
    clock.first = 3
    with pytest.warns(RuntimeWarning, match="each process measures for itself"):
        winner, _ = run(problem())
    assert run(problem()) == (winner, [])
    assert clock.races == 1
