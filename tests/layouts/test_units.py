"""The unit of a layout: one rule for every answer that depends on it."""

import pytest

from layouts import (
    Access,
    ComposedLayout,
    ConflictFree,
    Layout,
    LayoutError,
    NoSwizzle,
    Swizzle,
    banks,
    compare,
    make_counting_tensor,
    make_tensor,
    padding_for,
    prove,
    sectors,
    swizzle_for,
    table,
    wavefronts,
)
from layouts.values.unit import in_units

ROWS = Layout((8, 64), (64, 1))
COLUMN = Access("ldmatrix.x1", Layout(8))

#: What is asked of a tile of eight rows, in a unit.
ANSWERS = {
    "table": lambda tile, unit: table(tile, unit, show="byte"),  # offsets alone need no unit
    "compare": lambda tile, unit: compare(tile, unit=unit),
    "banks": lambda tile, unit: banks(tile, "ldmatrix.x1", Layout(8), unit=unit),
    "wavefronts": lambda tile, unit: wavefronts(tile[0], 16, unit),
    "sectors": lambda tile, unit: sectors(tile[0], 16, unit),
    "swizzle_for": lambda tile, unit: swizzle_for(tile, [COLUMN], unit),
    "padding_for": lambda tile, unit: padding_for(tile, [COLUMN], unit),
    "ConflictFree": lambda tile, unit: ConflictFree(tile[0], 16, unit),
    "a proof": lambda tile, unit: prove(ConflictFree(tile[0], 16, unit)),
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
class TestTheRule:
    """A layout's own unit, else the one that is given, else 16 bits; the answer names it."""

    @pytest.mark.parametrize("unit", [8, 16, 32])
    def test_a_layout_s_own_unit_comes_first(self, answer, unit):
        tile = ComposedLayout(Swizzle(0, 3, 3), 0, ROWS, unit)
        assert in_units(unit) in str(answer(tile, None))
        assert answer(tile, None) == answer(tile, unit)
        with pytest.raises(LayoutError, match=f"unit 64 bits: .* has {in_units(unit)}: omit unit"):
            answer(tile, 64)

    def test_a_layout_without_one_takes_the_given_one_else_16_bits(self, answer):
        assert in_units(32) in str(answer(ROWS, 32))
        assert in_units(16) in str(answer(ROWS, None))
        assert answer(ROWS, None) == answer(ROWS, 16)

    @pytest.mark.parametrize("unit", [0, -8, "16", 16.0, (16,)])
    def test_a_unit_is_a_number_of_bits(self, answer, unit):
        with pytest.raises(LayoutError, match="unit"):
            answer(ROWS, unit)


def test_no_swizzle_names_its_unit():
    assert in_units(16) in str(NoSwizzle(ROWS, (COLUMN,)))
    assert NoSwizzle(ROWS, (COLUMN,)) == NoSwizzle(ROWS, (COLUMN,), 16)


def test_a_tensor_has_the_unit_of_its_elements_else_of_its_layout():
    numpy = pytest.importorskip("numpy")
    data = make_tensor(numpy.zeros(512, dtype="float32"), ROWS)
    assert table(data).unit == 32
    with pytest.raises(LayoutError, match="has offsets in elements of 32 bits"):
        table(data, unit=16)
    assert make_counting_tensor(ComposedLayout(Swizzle(3, 4, 3), 0, ROWS, unit=8)).unit == 8


@pytest.mark.parametrize("unit", [0, (8, 16), "8", 1.5])
def test_the_unit_of_a_composed_layout_is_a_number_of_bits(unit):
    with pytest.raises(LayoutError, match="must be the bits of one offset"):
        ComposedLayout(Swizzle(3, 4, 3), 0, ROWS, unit)
    with pytest.raises(LayoutError, match="must be the bits of one offset"):
        Swizzle(3, 4, 3).recast(8, unit)
