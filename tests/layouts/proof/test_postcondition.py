"""Every operation's post-condition is a statement: proved of its result, refuted of another."""

from random import Random

import pytest
from hypothesis import settings

import layouts as L
from layouts import (
    F2,
    ComposedLayout,
    E,
    Layout,
    LayoutError,
    Swizzle,
    postcondition,
    prove,
    symbols,
)
from layouts.proof.postcondition import PROMISES
from layouts.values.symbols import free_symbols
from tests.layouts.fuzz.laws import LAWS

M = symbols("m")
ROWS, PADDED = Layout((8, 64), (64, 1)), Layout((8, 8), (9, 1))
SWIZZLED = ComposedLayout(Swizzle(2, 1, 3), 0, Layout((8, 16), (16, 1)))

CALLS = [
    (L.blocked_product, PADDED, Layout((2, 3))),
    (L.coalesce, Layout((2, (1, 6)), (1, (6, 2)))),
    (L.complement, Layout((4, 8), (1, 5)), 80),
    (L.complement, ComposedLayout(Layout((2, 4), (4, 1)), 0, Layout((4, 2))), 24),
    (L.complement, ComposedLayout(Layout((3, 16), (0, F2(15))), 0, Layout(2, 16)), 40),
    (L.complement, ComposedLayout(Swizzle(1, 0, 2), 0, Layout((3, 4), (8, 1))), 100),
    (L.composition, ROWS, (4, Layout(8, 2))),
    (L.composition, SWIZZLED, Layout((4, 8), (8, 1))),
    (L.dice, (None, 3), ROWS),
    (L.downcast, ROWS, 2),
    (L.filter, Layout((4, 8, 2), (0, 2, 1))),
    (L.flat_divide, SWIZZLED, (4, 4)),
    (L.flat_product, Layout((2, 5), (5, 1)), Layout((3, 4))),
    (L.flatten, Layout(((2, 4), 8))),
    (L.from_bits, (1, 2, 5, 8)),
    (L.group_modes, ROWS, 0, 2),
    (L.left_inverse, PADDED),
    (L.left_inverse, Layout((4, 3, 2), (2, 0, 8))),
    (L.left_inverse, ComposedLayout(Layout((), ()), 0, Layout(2))),
    (L.left_inverse, ComposedLayout(Layout((3, 2), (0, 1)), 0, Layout((2, 3), (3, 1)))),
    (L.left_inverse, ComposedLayout(Layout((2, 2), (F2(1), 0)), 0, Layout(4))),
    (L.left_inverse, ComposedLayout(Layout((2, 2, 2), (F2(1), 0, F2(2))), 4, Layout((2, 2)))),
    (L.local_partition, ROWS, Layout((4, 8), (8, 1)), 9),
    (L.local_tile, SWIZZLED, (4, 4), (1, 2)),
    (L.logical_divide, Layout((8 * M, 64), (64, 1)), (4, None)),
    (L.logical_product, PADDED, 4),
    (L.max_common_layout, Layout((4, (2, 4)), (1, (4, 16))), Layout((4, 8), (1, 4))),
    (L.nullspace, Layout((2, 4, 3), (0, 1, 0))),
    (L.raked_product, Layout((2, 5), (5, 1)), Layout((3, 4), (1, 3))),
    (L.recast, SWIZZLED, 16, 8),
    (L.right_inverse, SWIZZLED),
    (L.select, Layout((2, 3, 4)), [2, 0]),
    (L.slice_, (None, 3), ROWS),
    (L.slice_, 1, ComposedLayout(Swizzle(3, 0, -3), 3, Layout(1, 32))),
    (L.slice_and_offset, (2, None), ROWS),
    (L.slice_and_offset, 1, Layout(1, 32)),
    (L.slice_and_offset, (1, None), Layout((2, 4), (F2(1), F2(3)))),
    (L.tile_to_shape, PADDED, (16, 32), (1, 0)),
    (L.tiled_divide, Layout((8, 6), (E(0), E(1))), (4, 3)),
    (L.tiled_product, Layout((2, 2), (F2(1), F2(6))), 4),
    (L.to_bits, SWIZZLED),
    (L.upcast, ROWS, 4),
    (L.zipped_divide, ROWS, (4, 16)),
    (L.zipped_product, Layout((2, 5), (1, 2)), Layout((3, 4))),
]


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call[0].__name__)
def test_what_an_operation_returns_is_proved_to_be_what_it_promises(call):
    proof = prove(postcondition(*call))
    assert proof, str(proof)
    assert proof.verify()


@pytest.mark.parametrize(
    "layout", [Layout((1, 6, 4), (0, 5, 7)), Layout((2, 4), (0, F2(1)))], ids=str
)
def test_a_mode_that_is_selected_twice_keeps_its_strides(layout):
    proof = prove(postcondition(L.select, layout, [1, 1, 0]))
    assert proof
    assert proof.verify()
    wrong = L.select(layout, [1, 0, 1])
    assert not prove(postcondition(L.select, layout, [1, 1, 0], result=wrong))


def test_every_operation_is_here():
    assert {call[0] for call in CALLS} == set(PROMISES)
    structural = {"append", "prepend", "replace", "gf2", "Tile", "max_common_vector"}
    assert {operation.__name__ for operation in PROMISES} == (
        {*L.algebra.__all__, "flatten"} - structural
    )


def test_another_result_is_refuted():
    for call, wrong in (
        ((L.zipped_divide, ROWS, (4, 16)), Layout(((4, 16), (2, 4)), ((64, 1), (256, 8)))),
        ((L.coalesce, Layout((4, 8))), Layout(16)),
        ((L.complement, ComposedLayout(Swizzle(1, 0, 1), 0, Layout(3))), Layout(2, 3)),
        ((L.complement, ComposedLayout(Swizzle(1, 0, 1), 0, Layout(3)), 9), Layout(2, 4)),
        ((L.complement, ComposedLayout(Layout(4, 2), 0, Layout(2))), Layout(1, 0)),
        ((L.tile_to_shape, PADDED, (16, 32)), L.tile_to_shape(PADDED, (16, 32), (1, 0))),
        ((L.slice_and_offset, (2, None), ROWS), (Layout(64), 64)),
        ((L.upcast, ROWS, 4), Layout((8, 16), (16, 2))),
        ((L.to_bits, Layout(8)), (1, 2, 8)),
        ((L.nullspace, Layout((2, 4), (0, 1))), Layout(4)),
    ):
        proof = prove(postcondition(*call, result=wrong))
        assert not proof
        assert proof.verify()


def test_random_results_are_what_their_operations_promise():
    """Over all kinds of layouts: proved and verified, or undecided where a statement cannot say."""
    operations = {operation.__name__: operation for operation in PROMISES}
    laws = [law for law in LAWS if law.name in operations]
    proved = 0
    for case in range(3 * settings().max_examples):
        rng = Random(f"postcondition/{case}")
        law = rng.choice(laws)
        call = operations[law.name], *law.arguments(rng)
        try:
            proof = prove(postcondition(*call))
        except LayoutError:
            continue
        assert proof or _is_no_inverse(call), f"{call}: {proof}"
        assert proof.verify(), f"{call}: {proof}"
        proved += 1
    assert proved > settings().max_examples


def _is_no_inverse(call):
    """A left inverse of an XOR layout that is not injective, which is one up to its nullspace."""
    return call[0] is L.left_inverse and not free_symbols(call)


def test_what_promises_nothing_says_so():
    with pytest.raises(LayoutError, match="it takes one of"):
        postcondition(L.append, Layout(8), Layout(4))
    with pytest.raises(LayoutError, match="beyond the extent"):
        postcondition(L.slice_and_offset, (9, None), ROWS)
