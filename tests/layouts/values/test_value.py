"""What holds of every value: how it is shown and formatted."""

import pytest

from layouts import (
    Access,
    Injective,
    Layout,
    Swizzle,
    banks,
    coalesce,
    explain,
    padding_for,
    prove,
    sectors,
    staging_report,
    swizzle_for,
    table,
    wavefronts,
)

TILE = Layout((64, 64), (64, 1))
ROWS = [Access(16, Layout(8))]

ANSWERS = [
    prove(Injective(TILE)),
    prove(Injective(Layout((4, 2), (1, 2)))),
    banks(TILE, "ldmatrix.x1", lanes=Layout(8)),
    wavefronts(Layout(8, 64)),
    sectors(Layout(32), unit=32),
    swizzle_for(TILE, ROWS),
    padding_for(TILE, ROWS),
    staging_report(),
    explain(coalesce, Layout((2, 4))),
    table(TILE),
]


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: type(answer).__name__)
def test_the_repr_of_an_answer_is_its_text(answer):
    assert repr(answer) == str(answer)


@pytest.mark.parametrize(
    "value", [Layout((2, 4)), Swizzle(3, 3, 3), Injective(Layout(4)), *ANSWERS]
)
def test_a_value_is_formatted_as_its_text_is(value):
    assert f"{value}" == str(value)
    assert f"{value:>200}" == f"{value!s:>200}"
