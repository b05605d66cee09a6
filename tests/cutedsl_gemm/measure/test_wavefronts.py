"""The bank model, compared with an H100's counters."""

import pytest

from cutedsl_gemm.measure import wavefronts


def test_there_are_enough_cases_of_every_kind():
    cases = wavefronts.all_cases()
    assert len(cases) == len(set(cases)) >= 60
    names = {case.name for case in cases}
    assert {"rows of 128 bytes", "rows of 128 + 16 bytes", "rows of 128 bytes, S<3,4,3>"} <= names


def test_the_table_shows_a_difference():
    counts = [wavefronts.predicted(case) for case in wavefronts.all_cases()]
    assert "predicted" not in wavefronts.report(counts)
    counts[7] = wavefronts.Count(counts[7].wavefronts + 1, counts[7].conflicts)
    assert wavefronts.report(counts).count("predicted") == 1


@pytest.mark.gpu
def test_the_counters_confirm_every_prediction():
    for case, count in zip(wavefronts.all_cases(), wavefronts.measure(), strict=True):
        assert wavefronts.predicted(case) == count, case
