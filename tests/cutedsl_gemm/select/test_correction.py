"""The correction: its inputs, its bounds, and the file of its weights."""

import csv
from dataclasses import replace

import numpy as np
import pytest

from cutedsl_gemm.inputs.problem import Problem
from cutedsl_gemm.kernels.epilogue.cost import cost
from cutedsl_gemm.kernels.epilogue.trace import trace
from cutedsl_gemm.select.candidate import CANDIDATES, LONG_EPILOGUES
from cutedsl_gemm.select.correction import (
    BATCH,
    FACTS,
    FILE,
    LEARNED,
    LIMIT,
    ROWS,
    TERMS,
    UNITS,
    WORK,
    candidate_inputs,
    read,
    row_inputs,
    times_facts,
    work_inputs,
    write,
)
from cutedsl_gemm.select.formulas import NO_WORK, work_of
from cutedsl_gemm.select.model import ranking

EXTREMES = [(1, 1, 1), (1, 8, 1 << 20), (1 << 20, 8, 8), (1 << 17, 1 << 17, 1 << 17)]


def test_each_input_has_a_weight_for_each_unit():
    units = UNITS + 1  # with the one that is 1
    assert LEARNED.terms.shape == (len(TERMS), units)
    assert LEARNED.facts.shape == (len(FACTS), units)
    assert LEARNED.rows.shape == (len(ROWS), units)
    assert LEARNED.work.shape == (len(WORK), units)
    assert LEARNED.batch.shape == (len(BATCH), units)
    assert LEARNED.bias.shape == (1, units)
    assert (LEARNED.hidden.shape, LEARNED.output.shape) == ((units, units), (units,))
    assert candidate_inputs(CANDIDATES).shape == (len(FACTS), len(CANDIDATES))
    assert row_inputs((0, 1, 3)).shape == (len(ROWS), 1)


def test_three_consumers_are_a_fact():
    two = [replace(each, consumers=2) for each in LONG_EPILOGUES]
    assert not np.array_equal(candidate_inputs(LONG_EPILOGUES), candidate_inputs(two))


def test_the_work_of_an_epilogue_is_an_input_and_a_product_alone_has_none():
    facts = candidate_inputs(CANDIDATES)
    assert not times_facts(work_inputs(*NO_WORK[:2], NO_WORK.accumulators), facts).any()
    swiglu = trace(lambda gate, value: gate.sigmoid() * gate * value, accumulators=2)
    work = work_of(replace(Problem.dense(512, 512, 512), epilogue=swiglu))
    found = times_facts(work_inputs(work.slots, work.matrices, work.accumulators), facts)
    slots, matrices, two = found.reshape(3, 1 + len(FACTS), len(CANDIDATES))
    assert 2 ** slots[0] == pytest.approx(1 + cost(swiglu).issue_slots / 2)
    assert slots[1:] == pytest.approx(slots[0] * facts)
    assert not matrices.any()
    assert (two == [np.ones(len(CANDIDATES)), *facts]).all()


@pytest.mark.parametrize("mnk", EXTREMES, ids=str)
def test_the_factor_is_at_most_four_either_way_whatever_the_problem(mnk):
    factors = [found.correction for found in ranking(Problem.dense(*mnk))]
    assert all(0.2499 < factor < 4.0001 for factor in factors)


def test_the_factor_is_that_of_two_layers_of_rectified_sums():
    """Of the rows of the file: the last one of each layer has the biases."""
    with FILE.open(newline="", encoding="utf-8") as stream:
        weights = [np.array(row, float) for _, *row in csv.reader(stream)]
    *layers, output, offset = weights
    first, second = np.split(np.array(layers), [-UNITS - 1])
    rng = np.random.default_rng(0)
    terms, facts = (rng.normal(size=(len(names), 5)) for names in (TERMS, FACTS))
    rows = row_inputs((0, 1, 3)).repeat(5, axis=1)
    work = work_inputs(np.arange(5), np.arange(5) % 2, 1 + np.arange(5) % 2)
    of_batch, matrices = times_facts(np.ones((1, 1)), facts), 2 ** rng.integers(0, 5, 5)
    batch = of_batch * np.log2(matrices)
    units = np.vstack([terms, facts, rows, times_facts(work, facts), batch])
    for *each, biases in (first, second):
        units = np.maximum(np.einsum("iu,ic->uc", each, units) + biases[:, None], 0)
    expected = np.exp(np.clip(output @ units + offset, -LIMIT, LIMIT))
    others = LEARNED.others(facts, rows, work)
    others += np.log2(matrices)[:, None] * LEARNED.by_batch(facts)
    found = np.exp(LEARNED.log_factor(terms.astype(np.float32), others))
    assert np.allclose(found, expected, rtol=1e-3)


def test_alignments_are_marked_and_those_of_a_and_b_averaged():
    assert row_inputs((0, 0, 0)).sum() == 0
    assert row_inputs((1, 3, 2))[:, 0].tolist() == [0.5, 0, 0.5, 0, 1, 0]


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
