"""Calls with arguments of every kind: each gives a result, or raises LayoutError."""

import inspect
import random
from collections import Counter

import numpy
from hypothesis import settings

import layouts
from layouts import (
    F2,
    ComposedLayout,
    E,
    Layout,
    LayoutError,
    Swizzle,
    ldmatrix,
    local_tile,
    make_copy_atom,
    make_counting_tensor,
    make_identity_tensor,
    make_rmem_tensor,
    make_tensor,
    make_tiled_copy_A,
    make_tiled_copy_tv,
    make_tiled_mma,
    mma,
    symbols,
    universal_fma,
    volta_mma,
    wgmma,
)

CALLS = 10 * settings().max_examples

MMA = make_tiled_mma(mma("m16n8k16", "f16"), (2, 1, 1))
LOAD = make_tiled_copy_A(make_copy_atom(ldmatrix(4), 16), MMA)
WIDE = make_tiled_copy_tv(make_copy_atom(4, 16), Layout((8, 4)), Layout((1, 2)))
XOR = Layout((32, 16), (F2(1), F2(33)))
m, k = symbols("m k")
ATOMS = [mma("m16n8k16", "f16"), volta_mma(), universal_fma(), wgmma(16, "f16"), ldmatrix(2)]
LAYOUTS = [
    *(Layout(4), Layout((), ()), Layout((4, 8), (0, 0)), Layout((32, 16), (16, 1)), XOR),
    *(Layout((4, 8), (E(0), E(1))), Layout((32 * m, 16 * k), (16 * k, 1)), Layout(m)),
    *(Swizzle(2, 0, 3) @ Layout((32, 16), (16, 1)), ComposedLayout(Swizzle(2, 0, 3), 3, XOR)),
]
TENSORS = [
    *(make_tensor(numpy.zeros((32, 16), dtype)) for dtype in (numpy.float16, numpy.float64)),
    *(make_identity_tensor(shape) for shape in ((32, 16), ((4, 8), 16))),
    *(make_rmem_tensor((2, 2, 2), numpy.float32), make_counting_tensor(Layout(m))),
]
VALUES = [
    *(None, 0, 1, -1, 16, True, 2.5, "x", m, (), (1,), (2, 3), (4, None), (2, 2, 1)),
    *(*ATOMS, *LAYOUTS, *TENSORS, Swizzle(2, 0, 3), make_copy_atom(4, 16), MMA, LOAD, WIDE),
    *(MMA.get_slice(3), local_tile(Layout((32, 16)), (4, 4), (0, 0)), [], TENSORS[:1] * 2),
    *(numpy.arange(4), numpy.float32),
]


def calls():
    """Every function of layouts.tiled, and every method of some of its values."""
    for name in layouts.__all__:
        found = getattr(layouts, name)
        if inspect.isfunction(found) and found.__module__.startswith("layouts.tiled."):
            yield name, found
    for value in (MMA, LOAD, MMA.get_slice(3), LOAD.get_slice(3), WIDE.get_slice(3), *TENSORS):
        for name, _ in inspect.getmembers(type(value), inspect.isfunction):
            if name in ("__getitem__", "__setitem__") or not name.startswith(("_", "with_")):
                yield name, getattr(value, name)


def test_a_call_with_anything_gives_a_result_or_a_layout_error():
    rng, outcomes = random.Random(0), Counter()
    known = [(name, call, len(inspect.signature(call).parameters)) for name, call in calls()]
    for _ in range(CALLS):
        name, call, most = rng.choice(known)
        arguments = [rng.choice(VALUES) for _ in range(3 if name == "copy" else most)]
        try:
            call(*arguments)
        except LayoutError:
            outcomes["refused"] += 1
        else:
            outcomes["answered"] += 1
    assert min(outcomes["refused"], outcomes["answered"]) > 0.1 * CALLS
