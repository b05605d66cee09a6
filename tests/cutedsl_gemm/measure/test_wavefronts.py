"""The bank model, held against an H100's counters."""

import pytest

from cutedsl_gemm.measure import wavefronts


def test_there_are_cases_enough_of_every_kind():
    cases = wavefronts.every()
    assert len(cases) == len(set(cases)) >= 60
    names = {case.name for case in cases}
    assert {"rows of 128 bytes", "rows of 128 + 16 bytes", "rows of 128 bytes, S<3,4,3>"} <= names


def test_a_difference_is_seen_in_the_table():
    counts = [wavefronts.predicted(case) for case in wavefronts.every()]
    assert "predicted" not in wavefronts.report(counts)
    counts[7] = wavefronts.Count(counts[7].wavefronts + 1, counts[7].conflicts)
    assert wavefronts.report(counts).count("predicted") == 1


@pytest.mark.gpu
def test_every_case_is_counted_as_predicted():
    for case, count in zip(wavefronts.every(), wavefronts.measure(), strict=True):
        assert wavefronts.predicted(case) == count, case
