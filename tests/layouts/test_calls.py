"""Every public operation: it can be called by an expression, and refuses what is no argument."""

from inspect import signature
from itertools import chain
from types import ModuleType

import numpy as np
import pytest
from hypothesis import settings

import layouts
from layouts import F2, ComposedLayout, E, Layout, LayoutError, Swizzle, prove, symbols
from layouts.draw.summary import words
from layouts.notation.expression import evaluate, operations
from layouts.proof.prove import Statement
from tests.layouts.calls import CALLS, ON_DATA, RESULTS, arguments

m, n = symbols("m n")


def nested(depth):
    return (nested(depth - 1),) if depth else 2


#: What somebody may pass by mistake.
MISTAKES = {
    "numbers": [None, True, -1, 0, 3, 7, 10**30, 1.5, float("nan"), 1j, np.int64(3), np.arange(6)],
    "texts": ["", "x", b"x", "ldmatrix.x4", "K"],
    "tuples": [(), (None,), ((),), (2, (3,)), (1.5, 2), ("a", "b"), (-1, 2), (m, n), nested(300)],
    "containers": [[3], [], {}, {"a": 1}, {1, 2}, object(), int, len],
    "symbols": [m, m / 2, Layout((m, n), (1, m)), ComposedLayout(Swizzle(2, 0, 3), 0, Layout(m))],
    "layouts": [Layout(7, 3), Layout((3, 5), (7, 2)), Layout(()), Layout(1, 0), Layout(10**12)],
    "strides": [Layout((4, 8), (E(0), E(1))), Layout((4, 2), (F2(1), F2(5))), E(0), F2(5)],
    "composed": [
        Swizzle(3, 3, 3),
        ComposedLayout(Swizzle(2, 0, 3), 1, Layout((8, 8), (8, 1))),
        ComposedLayout(Swizzle(3, 4, 3), 0, Layout((8, 64), (64, 1)), 8),
        ComposedLayout(Layout((4, 8), (E(0), E(1))), 0, Layout(32)),
    ],
    "values": [
        layouts.ldmatrix(2),
        layouts.mma("m16n8k16", "bf16"),
        layouts.Injective(Layout(4)),
        prove(layouts.Injective(Layout(4))),
        layouts.make_counting_tensor(Layout((4, 2))),
        layouts.named(m=4, k=8),
        layouts.composition,
        layouts.LayoutRight,
        layouts.table(Layout(4)),
    ],
}


def test_every_operation_has_a_call():
    callable_names = {name for name in operations() if name in layouts.__all__}
    values = {name for name in callable_names if not callable(getattr(layouts, name))}
    values |= {"QUAD_PAIRS", "TMEM"}
    assert callable_names - values == {*CALLS} | ({*RESULTS} & callable_names)
    others = {name for name in layouts.__all__ if isinstance(getattr(layouts, name), ModuleType)}
    others |= {"LayoutError", "Undecided", "budget", "parse", "substitute", "symbols"}
    assert {*layouts.__all__} == {*CALLS} | {*RESULTS} | {*ON_DATA} | values | others


@pytest.mark.parametrize("name", CALLS)
def test_an_expression_calls_every_operation(name):
    assert words(evaluate(f"{name}({CALLS[name]})")) is not None


@pytest.mark.filterwarnings("ignore:Data type alias")  # numpy's, of a dtype that is a mistake
@pytest.mark.parametrize("name", CALLS)
def test_a_mistake_raises_layout_error_alone(name):
    """Each argument in turn, one more, and each option is a mistake; all in the profile ci."""
    function, good = getattr(layouts, name), arguments(name)
    mistakes = list(chain(*MISTAKES.values()))
    places = range(len(good) + 1)
    tries = [((*good[:at], x, *good[at + 1 :]), {}) for at in places for x in mistakes]
    tries += [(good, {option: x}) for option in options(function, len(good)) for x in mistakes]
    step = max(100 // settings().max_examples, 1)
    for given, named in tries[len(name) % step :: step]:
        call(function, *given, **named)


def options(function, given):
    """The names of the parameters after the `given` first ones."""
    found = list(signature(function).parameters.values())
    if any(each.kind is each.VAR_POSITIONAL for each in found):
        given = 0
        found = [each for each in found if each.kind is each.KEYWORD_ONLY]
    return [each.name for each in found[given:] if each.kind is not each.VAR_KEYWORD]


def call(function, *given, **named):
    """Call it and show the result; nothing but `LayoutError` may be raised."""
    try:
        result = function(*given, **named)
        if isinstance(result, Statement):
            prove(result)
        words(result)
    except LayoutError:
        pass
    except TypeError as error:
        if error.__traceback__.tb_next is not None:  # else Python refuses the call itself
            raise
