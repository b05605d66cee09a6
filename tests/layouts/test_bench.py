"""The benchmark asks every library the same questions; here they are only asked."""

import importlib
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


def answer(bench, library, case):
    function, arguments = case.make(library)
    return bench.answers(library, function(*arguments))


def test_every_case_has_an_answer_and_a_time(bench):
    for case in bench.CASES:
        assert answer(bench, bench.Library(), case) is not None
        assert bench.best([case.make(bench.Library())], repeats=1, least=0.0)[0] > 0


@pytest.mark.parametrize(
    ("peer", "module"), [("Pycute", "pycute"), ("Torch", "torch.distributed._pycute")]
)
def test_pycute_and_the_fork_of_it_with_its_modes_reversed_give_the_same_answers(
    bench, peer, module
):
    pytest.importorskip(module)
    library = getattr(bench, peer)()
    for case in bench.CASES:
        if not case.name.startswith(("left", "Swizzle")):
            assert answer(bench, library, case) == answer(bench, bench.Library(), case), case.name


def test_the_floor_constructs_the_same_layouts_and_does_nothing_else(bench):
    floor, own = bench.Floor(), bench.Library()
    for case in bench.CASES:
        if case.name.startswith("new"):
            assert answer(bench, floor, case) == answer(bench, own, case), case.name
        elif not case.name.startswith("construct"):
            with pytest.raises((AttributeError, TypeError)):
                answer(bench, floor, case)


def test_every_way_to_make_a_value_holds_its_parts_and_every_check_takes_them(monkeypatch):
    pytest.importorskip("rich")
    monkeypatch.syspath_prepend(str(FILE.parent))
    construction = importlib.import_module("construction")
    shape, stride = (4, 8), (8, 1)
    for way in construction.WAYS.values():
        made = way(shape, stride)
        assert (made.shape, made.stride) == (shape, stride)
        if way is not construction.Unfrozen:
            with pytest.raises(AttributeError):
                made.shape = shape
    for name, check in construction.CHECKS.items():
        assert bool(check(shape, stride)) != ("dictionary" in name), name
