"""The correction: its inputs, its bounds, and the file of its weights."""

import numpy as np
import pytest

from cutedsl_gemm.problem import Problem
from cutedsl_gemm.select.candidate import CANDIDATES
from cutedsl_gemm.select.correction import (
    FACTS,
    LEARNED,
    LIMIT,
    ROWS,
    TERMS,
    UNITS,
    of_candidates,
    of_rows,
    read,
    write,
)
from cutedsl_gemm.select.model import ranking

EXTREMES = [(1, 1, 1), (1, 8, 1 << 20), (1 << 20, 8, 8), (1 << 17, 1 << 17, 1 << 17)]


def test_each_input_has_a_weight_for_each_unit():
    assert LEARNED.terms.shape == (UNITS, len(TERMS))
    assert LEARNED.facts.shape == (UNITS, len(FACTS))
    assert LEARNED.rows.shape == (UNITS, len(ROWS))
    assert LEARNED.hidden.shape == (UNITS, UNITS)
    assert LEARNED.bias.shape == LEARNED.hidden_bias.shape == (UNITS, 1)
    assert (LEARNED.output.shape, LEARNED.offset.shape) == ((UNITS,), (1,))
    assert of_candidates(CANDIDATES).shape == (len(FACTS), len(CANDIDATES))
    assert of_rows((0, 1, 3)).shape == (len(ROWS), 1)


@pytest.mark.parametrize("mnk", EXTREMES, ids=str)
def test_the_factor_is_at_most_two_either_way_whatever_the_problem(mnk):
    factors = [found.correction for found in ranking(Problem.dense(*mnk))]
    assert all(0.4999 < factor < 2.0001 for factor in factors)


def test_the_factor_is_that_of_two_layers_of_rectified_sums():
    rng = np.random.default_rng(0)
    terms = rng.normal(size=(len(TERMS), 5)).astype(np.float32)
    others = rng.normal(size=(UNITS, 5)).astype(np.float32)
    first = np.maximum(np.einsum("ut,tc->uc", LEARNED.terms, terms) + others, 0)
    second = np.maximum(np.einsum("vu,uc->vc", LEARNED.hidden, first) + LEARNED.hidden_bias, 0)
    found = np.einsum("v,vc->c", LEARNED.output, second) + LEARNED.offset
    expected = np.exp(np.clip(found, -LIMIT, LIMIT))
    assert np.allclose(LEARNED.factor(terms, others), expected, rtol=1e-3)


def test_alignments_are_marked_and_those_of_a_and_b_averaged():
    assert of_rows((0, 0, 0)).sum() == 0
    assert of_rows((1, 3, 2))[:, 0].tolist() == [0.5, 0, 0.5, 0, 1, 0]


def test_what_is_written_is_read(tmp_path):
    write(tmp_path / "weights.csv", LEARNED)
    for found, expected in zip(read(tmp_path / "weights.csv"), LEARNED, strict=True):
        assert np.array_equal(found, expected)


def test_a_file_of_other_inputs_is_refused(tmp_path):
    write(tmp_path / "weights.csv", LEARNED)
    text = (tmp_path / "weights.csv").read_text("utf-8")
    (tmp_path / "weights.csv").write_text(text.replace("swapped", "turned"), "utf-8")
    with pytest.raises(ValueError, match="a row for each of NAMES"):
        read(tmp_path / "weights.csv")


def test_all_candidates_are_corrected_with_the_weights_of_the_file():
    found = {each.correction for each in ranking(Problem.dense(1000, 2000, 3000))}
    assert len(found) > len(CANDIDATES) / 2
