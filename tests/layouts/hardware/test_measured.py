"""The bank model predicts what Nsight Compute counted on an H100, case by case."""

import gzip
import json
from pathlib import Path

import pytest

from layouts import wavefronts
from layouts.hardware.instructions import INSTRUCTIONS, instruction

CASES = json.loads(
    gzip.decompress((Path(__file__).parent / "measured" / "h100_wavefronts.json.gz").read_bytes())
)
NAMES = sorted({case["instruction"] for case in CASES})


@pytest.mark.parametrize("name", NAMES)
def test_every_count_of_the_hardware_is_predicted(name):
    how = instruction(name)
    of_name = [case for case in CASES if case["instruction"] == name]
    assert len(of_name) >= 35
    for case in of_name:
        found = wavefronts(case["offsets"][: how.lanes], how)
        predicted = found.count, found.conflicts
        assert predicted == (case["wavefronts"], case["conflicts"]), case["case"]


def test_there_are_1206_cases_of_14_instructions():
    assert len(CASES) == len({str(case) for case in CASES}) == 1206
    assert len(NAMES) == 14
    assert {str(instruction(name)) for name in NAMES} <= set(INSTRUCTIONS)
