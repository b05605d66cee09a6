"""The tables of hardware facts agree with each other."""

from itertools import pairwise

import pytest

from layouts import INSTRUCTIONS, MMA, size, wgmma_operand
from layouts.hardware import atoms, descriptor
from layouts.hardware.facts import ACCESS_BYTES, PHASE_LANES, WARP, WARPGROUP, WAVEFRONT_BYTES


def test_a_phase_is_what_one_wavefront_serves():
    assert dict(PHASE_LANES) == {1: 32, 2: 32, 4: 32, 8: 16, 16: 8}
    assert all(width * PHASE_LANES[width] <= WAVEFRONT_BYTES for width in ACCESS_BYTES)


@pytest.mark.parametrize("how", INSTRUCTIONS.values(), ids=str)
def test_an_instruction_has_whole_phases_and_words(how):
    assert how.lanes % how.phase == 0 or how.lanes == WARP
    assert how.word_bytes * how.words == WAVEFRONT_BYTES
    assert not how.merges or (how.width in (8, 16) and how.name.startswith("ld.shared"))


def test_the_fields_of_the_descriptor_do_not_overlap():
    starts = descriptor.START_BIT, descriptor.LBO_BIT, descriptor.SBO_BIT, descriptor.MODE_BIT
    assert all(b - a >= descriptor.FIELD_BITS for a, b in pairwise(starts))
    assert sorted(descriptor.SWIZZLE_MODES.values()) == [0, 1, 2, 3]
    assert starts[-1] + 2 == 64
    assert 1 << descriptor.OMITTED_BITS == descriptor.CORE_BYTES


@pytest.mark.parametrize("bits", descriptor.UNITS)
def test_the_fragment_of_wgmma_is_one_instruction_of_a_warpgroup(bits):
    operand = wgmma_operand(bits)
    assert size(operand) * bits == atoms.WGMMA_M * atoms.WGMMA_K_BITS
    assert size(operand[0]) == WARPGROUP


def test_a_row_of_a_matrix_is_one_vector():
    assert 8 * max(ACCESS_BYTES) == atoms.MATRIX_COLUMNS * atoms.MATRIX_BITS
    assert size(atoms.stmatrix(1).fragment) == atoms.MATRIX_ROWS * atoms.MATRIX_COLUMNS


@pytest.mark.parametrize("atom", MMA.values(), ids=lambda atom: atom.name)
def test_an_mma_is_executed_by_one_warp(atom):
    assert {size(fragment[0]) for fragment in (atom.a, atom.b, atom.c)} == {WARP}
