"""The explanation says what gemm does, and agrees with the plan and the model."""

import re

import pytest
import torch

from cutedsl_gemm import PlanError, explain, gemm, plan_for
from cutedsl_gemm.inputs.problem import Problem
from cutedsl_gemm.inputs.tensors import check_call
from cutedsl_gemm.measure.random_shapes import draw
from cutedsl_gemm.select.model import ranking

SHAPES = [(8448, 9216, 64), (512, 512, 16384), (16, 8192, 8192), (1, 8, 8), (1024, 1024, 1024)]


def matrix(rows, columns, device):
    return torch.empty(rows, columns, dtype=torch.bfloat16, device=device)


@pytest.mark.parametrize("mnk", SHAPES, ids=str)
def test_it_names_the_choice_the_best_candidates_and_all_layouts(mnk):
    m, n, k = mnk
    a, b = matrix(m, k, "cpu"), matrix(n, k, "cpu").mT
    text, ranked = explain(a, b), ranking(Problem.dense(m, n, k))
    best = ranked[0]
    assert f"choice       {best.candidate.name}, expected in {best.seconds * 1e6:.1f} µs" in text
    assert all(found.candidate.name in text for found in ranked[:3])
    assert text.endswith(plan_for(a, b).explain())


@pytest.mark.parametrize("column", range(2), ids=["aligned", "askew"])
@pytest.mark.parametrize("invariant", [False, True])
@pytest.mark.parametrize(("pitch", "n"), [(264, 48), (264, 45), (259, 48), (259, 45)])
def test_the_plan_that_gemm_runs_is_planned_and_explained(pitch, n, invariant, column, monkeypatch):
    """Also where gemm runs on copies, of a matrix whose stride or address TMA cannot read.

    A C of rows that TMA cannot store is not copied.
    """
    ran = []
    monkeypatch.setattr(
        "cutedsl_gemm.calls.call.runner",
        lambda kernel, requirements, plan, device, invariant: (
            lambda a, b, out: (
                check_call(a, b, out, requirements),
                ran.append(plan),
            )
        ),
    )
    monkeypatch.setattr("cutedsl_gemm.calls.call._calls", {})
    wide = torch.zeros(40, pitch, dtype=torch.bfloat16)
    a, b = wide[:, column : column + 257], torch.zeros(257, 48, dtype=torch.bfloat16)[:, :n]
    gemm(a, b, invariant=invariant)
    assert ran == [plan_for(a, b, invariant=invariant)]
    text = explain(a, b, invariant=invariant)
    assert text.endswith(ran[0].explain())
    assert ("copies       A:" in text) == (pitch == 259 or column > 0)
    assert ("stores       C: by threads" in text) == (ran[0].c_alignment == 1) == (n == 45)


TINY_AND_HUGE = [(1, 1, 1), (8, 8, 8), (64, 64, 64), (65536, 65536, 65536)]


@pytest.mark.parametrize("mnk", TINY_AND_HUGE, ids=str)
def test_no_figure_has_an_exponent_or_is_zero(mnk):
    m, n, k = mnk
    text = explain(matrix(m, k, "meta"), matrix(n, k, "meta").mT if k > 1 else matrix(k, n, "meta"))
    assert not re.search(r"\de[-+]\d|(?<![\d.])0(\.0+)? (µs|GB|TB|TFLOP)", text)


@pytest.mark.parametrize(
    ("mnk", "starts", "evicted"),
    [
        ((4096, 4096, 4096), "when", None),
        ((2048, 2048, 256), "before", None),
        ((16, 28672, 4096), "before", "B"),  # a cluster, and swapped operands
        ((128256, 8, 4096), "when", "A"),
    ],
    ids=str,
)
def test_it_says_what_the_host_decides_of_a_launch(mnk, starts, evicted):
    m, n, k = mnk
    text = explain(matrix(m, k, "meta"), matrix(n, k, "meta").mT)
    assert f"launch       starts {starts} the previous launch has ended" in text
    assert re.findall(r"L2 evicts (.*) first", text) == ([evicted] if evicted else [])


def test_meta_tensors_suffice():
    a, b = (16, 32), (32, 24)
    assert explain(matrix(*a, "meta"), matrix(*b, "meta")) == explain(
        matrix(*a, "cpu"), matrix(*b, "cpu")
    )


def test_the_tile_asked_for_is_explained():
    a, b = matrix(512, 64, "meta"), matrix(64, 512, "meta")
    assert "pingpong 128×128×64, as asked, expected" in explain(a, b, tile=(128, 128, 64))
    assert "tile 192×64×64, as asked; the model" in explain(a, b, tile=(192, 64, 64))
    with pytest.raises(PlanError, match="the accumulator takes 256 registers"):
        explain(a, b, tile=(256, 256, 64))


def test_no_kernel_is_chosen_for_an_empty_product():
    text = explain(matrix(16, 0, "meta"), matrix(0, 8, "meta"))
    assert "no kernel: C is empty or zero" in text


def test_what_gemm_refuses_is_not_explained():
    with pytest.raises(ValueError, match="a must have as many columns as b has rows"):
        explain(matrix(16, 32, "meta"), matrix(16, 32, "meta"))
    with pytest.raises(TypeError, match="a is on the device meta"):
        gemm(matrix(16, 32, "meta"), matrix(32, 24, "cpu"))


def test_gemm_explain_is_explain():
    assert gemm.explain is explain


def test_the_tiles_of_a_line_are_as_many_as_it_says():
    """Also where a cluster has tiles beyond C, and where operands are swapped."""
    for m, n, k in draw(60, seed=5):
        text = explain(matrix(m, k, "meta"), matrix(n, k, "meta").mT)
        down, across, tiles = re.search(r"(\d+) × (\d+) = ([\d,]+), in", text).groups()
        assert int(down) * int(across) == int(tiles.replace(",", ""))
