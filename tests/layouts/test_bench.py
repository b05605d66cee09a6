"""The benchmark asks every library the same questions; here they are only asked."""

import importlib.util
from pathlib import Path

import pytest

FILE = Path(__file__).parents[2] / "bench" / "algebra.py"


@pytest.fixture(scope="module")
def bench():
    pytest.importorskip("rich")
    spec = importlib.util.spec_from_file_location("bench_algebra", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_case_has_an_answer_and_a_time(bench):
    for case in bench.CASES:
        call = case.make(bench.Ours())
        assert bench.answers(bench.Ours(), call()) is not None
        assert bench.best([call], repeats=1, least=0.0)[0] > 0


def test_the_fork_of_pytorch_gives_the_same_answers_with_its_modes_reversed(bench):
    pytest.importorskip("torch.distributed._pycute")
    fork = bench.Torch()
    asked = [case for case in bench.CASES if not case.name.startswith(("left", "Swizzle"))]
    for case in asked:
        ours = bench.answers(bench.Ours(), case.make(bench.Ours())())
        assert bench.answers(fork, case.make(fork)()) == ours, case.name
