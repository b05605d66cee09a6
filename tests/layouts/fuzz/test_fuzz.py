"""A few random calls of each operation; `python -m tests.layouts.fuzz` makes as many as wanted."""

from inspect import isfunction
from random import Random

import pytest
from hypothesis import settings

import layouts
from layouts import Layout, LayoutError, composition

from .call import FAULTS, Law, outcome
from .laws import LAWS
from .laws.composing import check_composition
from .odd import odd_arguments, unchecked
from .shrink import shrunk

CASES = settings().max_examples // 3  # of the profile, for each operation

#: Public functions without random arguments of their own.  The tests of their packages hold tiled
#: copies and the tables of the hardware against the DSL.
ELSEWHERE = ("layouts.tiled", "layouts.hardware")
NOT_FUZZED = {"E", "substitute", "symbols", "rank", "product"}
NOT_FUZZED |= {"from_linear_layout", "to_linear_layout"}


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_random_calls_give_what_brute_force_gives(law: Law) -> None:
    for case in range(CASES):
        arguments = law.arguments(Random(f"{law.name}/{case}"))
        found = outcome(law, arguments)
        if found.is_fault and not (
            found.kind == "slow" and found.seconds < 5
        ):  # CI's cores are busy
            arguments, found = shrunk(law, arguments, found)
            pytest.fail(f"{found.kind}: {law.name}{arguments}: {found.what}")


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_an_argument_out_of_place_raises_layout_error_alone(law: Law) -> None:
    for case in range(max(1, CASES // 4)):
        arguments = odd_arguments(Random(f"odd/{law.name}/{case}"), law)
        if arguments is not None:
            found = outcome(unchecked(law), arguments)
            assert found.kind != "foreign", f"{law.name}{arguments}: {found.what}"


def test_every_operation_has_a_law():
    public = {name: getattr(layouts, name) for name in layouts.__all__}
    operations = {
        name
        for name, x in public.items()
        if isfunction(x) and not x.__module__.startswith(ELSEWHERE)
    }
    assert operations <= {law.name for law in LAWS} | NOT_FUZZED


def test_a_wrong_operation_is_found_and_shrunk():
    """A composition that forgets the stride of B is wrong, and a small call shows it."""

    def forgetful(a, b):
        return composition(a, Layout(b.shape))

    def arguments(rng):
        return Layout((4, 8), (8, 1)), Layout((2, 4), (rng.choice((8, 16)), 1))

    law = Law("forgetful", forgetful, arguments, check_composition)
    call = arguments(Random(0))
    found = outcome(law, call)
    assert found.kind == "wrong"
    (a, b), again = shrunk(law, call, found)
    assert again.kind == "wrong"
    assert max(len(a.modes), len(b.modes)) == 1


def test_another_exception_is_a_fault_and_a_refusal_is_none():
    def refuses(_):
        raise LayoutError("no")

    kinds = [outcome(Law("", call, None, None), (1,)).kind for call in (refuses, len)]
    assert kinds == ["refused", "foreign"]
    assert [kind in FAULTS for kind in kinds] == [False, True]
