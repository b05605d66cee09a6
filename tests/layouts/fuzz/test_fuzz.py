"""A few random calls of each operation; `python -m tests.layouts.fuzz` makes as many as wanted."""

from inspect import isclass, isfunction
from random import Random

import pytest
from hypothesis import settings

import layouts
from layouts import Layout, LayoutError, composition

from .call import FAULTS, Law, outcome
from .laws import LAWS
from .laws.composing import check_composition
from .shrink import shrunk

CASES = settings().max_examples // 3  # of the profile, for each operation

#: Public functions without random arguments of their own: names of tables, and what is made of
#: them, which the tests of `layouts.hardware` and `layouts.tiled` hold against the DSL.
NOT_FUZZED = {
    *(
        "E",
        "symbols",
        "instruction",
        "staging_report",
        "banks",
        "rank",
        "product",
    ),
    *("ldmatrix", "stmatrix", "mma", "mfma", "volta_mma", "wgmma", "wgmma_accumulator"),
    *("wgmma_operand", "wgmma_smem_atom", "wgmma_descriptor", "universal_fma"),
    *("tcgen05_accumulator", "tcgen05_ld", "tcgen05_st"),
    *("make_copy_atom", "make_tiled_copy", "make_tiled_copy_tv", "make_tiled_mma", "copy", "gemm"),
    *(f"make_tiled_copy_{side}" for side in ("A", "B", "C", "C_atom", "D", "S")),
    *("make_tensor", "make_rmem_tensor", "make_fragment_like", "make_counting_tensor"),
    *("make_identity_tensor", "make_layout_tv", "from_linear_layout", "to_linear_layout"),
}


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


def test_every_operation_has_a_law():
    public = {name: getattr(layouts, name) for name in layouts.__all__}
    named = {law.name for law in LAWS} | NOT_FUZZED
    assert {name for name, x in public.items() if isfunction(x) and not isclass(x)} <= named


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
