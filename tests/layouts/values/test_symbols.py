"""Shapes and strides with symbols: each result is compared with those on numbers."""

import math
import random
from functools import cache
from itertools import product as cartesian

import numpy as np
import pytest
import sympy

from layouts import (
    ComplementLaws,
    ComposedLayout,
    CompositionLaw,
    DivideLaw,
    E,
    Equivalent,
    Layout,
    LayoutError,
    LeftInverseLaw,
    ProductLaw,
    RightInverseLaw,
    Swizzle,
    blocked_product,
    coalesce,
    complement,
    composition,
    cosize,
    elem_less,
    equivalent,
    filter,
    idx2crd,
    left_inverse,
    local_tile,
    logical_divide,
    logical_product,
    make_identity_layout,
    make_ordered_layout,
    make_rmem_tensor,
    make_tensor,
    parse,
    prove,
    raked_product,
    right_inverse,
    sectors,
    size,
    substitute,
    symbols,
    table,
    tile_to_shape,
    tiled_divide,
    wavefronts,
    zipped_divide,
)
from layouts.algebra.partition import get_flat_coord
from layouts.values.symbols import (
    at_least,
    ceil_div,
    divided,
    divides,
    equal,
    free_symbols,
    has_symbols,
    less,
    plain,
    quotient,
)
from layouts.values.tuples import leaves

m, n, k, d, p = symbols("m n k d p")
ROW = Layout((8 * m, 64 * n), (64 * n, 1))

#: Operation, arguments: each has a result for all values of the symbols.
CASES = [
    (composition, ROW, Layout(4, 2 * m)),
    (composition, ROW, Layout((4, 2 * m), (1, 4))),
    (composition, ROW, (4, None)),
    (composition, ROW, (8, Layout(16, 4))),
    (composition, Layout((m, n), (n, 1)), Layout((n, m), (m, 1))),
    (composition, Layout((4 * m, 8 * n), (d, 1)), Layout((2, 2 * m, 4 * n), (1, 2, 8 * m))),
    (composition, Layout((m + 9, n), (1, d)), Layout(4, 3)),
    (composition, Layout(m, d), Layout(4, k)),
    (logical_divide, ROW, (8, 64)),
    (logical_divide, ROW, 8),
    (logical_divide, Layout((k * m, p * n), (d, 1)), (k, p)),
    (logical_divide, Layout((k * m, p * n), (d, 1)), (k, None)),
    (logical_divide, Layout(8 * m, d), Layout(4, 2)),
    (zipped_divide, ROW, (4, 16)),
    (tiled_divide, ROW, (4, 16)),
    (logical_product, Layout((m, n), (1, m)), Layout((4, k))),
    (logical_product, Layout((4, 8)), Layout((m, n), (n, 1))),
    (logical_product, Layout(m, 2), Layout(4)),
    (blocked_product, Layout((m, n), (1, m)), Layout((4, k))),
    (raked_product, Layout((m, n), (1, m)), Layout((4, k))),
    (tile_to_shape, Layout((8, 64), (64, 1)), (8 * m, 64 * n)),
    (coalesce, Layout((m, n), (d, m * d))),
    (coalesce, Layout((m, (1, n), k), (n * k, (0, k), 1))),
    (coalesce, Layout((m, (n, k)), (1, (m, m * n))), (1, 1)),
    (filter, Layout((m, n, k), (0, 1, n))),
    (complement, Layout(m, n)),
    (complement, Layout(m, 0)),
    (complement, Layout(m, n), m * n * k),
    (complement, Layout((2, m), (1, 6)), 12 * m),
    (complement, Layout(4), 8 * m),
    (right_inverse, Layout((m, n), (n, 1))),
    (right_inverse, Layout(((4, 8, 4), (2, 2, n)), ((128, 1, 16), (64, 8, 512)))),
    (right_inverse, Layout((m, n), (0, 1))),
    (left_inverse, Layout((m, n), (n, 1))),
    (left_inverse, Layout((m, n), (2 * n, 1))),
    (make_ordered_layout, (m, n, 4), (2, 0, 1)),
]

LAWS = {
    composition: CompositionLaw,
    logical_divide: DivideLaw,
    logical_product: ProductLaw,
    complement: ComplementLaws,
    right_inverse: RightInverseLaw,
    left_inverse: LeftInverseLaw,
}


def values_of(*names):
    """Values from 1 to 3 for each symbol, all of them or a hundred at random."""
    points = list(cartesian((1, 2, 3), repeat=len(names)))
    chosen = random.Random(0).sample(points, min(len(points), 30))
    return [dict(zip(names, point, strict=True)) for point in chosen]


def offsets(layout):
    return [layout(i) for i in range(size(layout))]


def name(case):
    return f"{case[0].__name__} {', '.join(map(str, case[1:]))}"


@pytest.mark.parametrize("case", CASES, ids=name)
def test_numbers_in_the_result_give_the_result_for_numbers(case):
    op, *args = case
    result = op(*args)
    for values in values_of(*free_symbols(tuple(args))):
        put = substitute(result, values)
        concrete = op(*(substitute(arg, values) for arg in args))
        if op is right_inverse:  # at some values an inverse may reach further
            assert offsets(put) == [concrete(i) for i in range(size(put))]
        elif op in (complement, left_inverse):  # of several that fulfil the law
            given = [substitute(arg, values) for arg in args] + [None] * (op is complement)
            assert prove(LAWS[op](*given[: 1 + (op is complement)], put))
        else:
            assert offsets(put) == offsets(concrete)


@pytest.mark.parametrize("case", CASES, ids=name)
def test_results_are_ints_and_polynomials(case):
    op, *args = case
    result = op(*args)
    for leaf in leaves(result.shape) + leaves(result.stride):
        assert type(leaf) is int or free_symbols(leaf)
        assert plain(leaf) == leaf or sympy.expand(plain(leaf) - leaf) == 0


@pytest.mark.parametrize("case", [case for case in CASES if case[0] in LAWS], ids=name)
def test_the_law_is_proved_for_all_values(case):
    op, *args = case
    if op is composition and isinstance(args[1], tuple):
        pytest.skip("a law for each mode")
    law = LAWS[op](*args)
    proof = prove(law)
    assert proof
    assert proof.verify()
    assert has_symbols(law)


def test_a_tile_of_symbols():
    tile = local_tile(ROW, (8, 64), (1, 2))
    assert str(tile.layout) == "(8,64):(64*n,1)"
    assert plain(tile.offset - 512 * n - 128) == 0
    assert cosize(ROW) == 512 * m * n
    assert plain(size(ROW)) == 512 * m * n


def test_a_swizzled_tile_of_symbols():
    tile = composition(Swizzle(3, 3, 3), Layout((8 * m, 64), (64, 1)))
    divided_ = zipped_divide(tile, (8, 64))
    assert divided_ == ComposedLayout(
        Swizzle(3, 3, 3), 0, Layout(((8, 64), (m, 1)), ((64, 1), (512, 0)))
    )


def test_what_is_not_so_for_all_values_is_refused_with_the_inequality():
    with pytest.raises(LayoutError, match=r"9 < m.* For m = 4, n = 1 there is none: .* at index 3"):
        composition(Layout((m, n), (n, 1)), Layout(4, 3))
    with pytest.raises(LayoutError, match="carry"):
        logical_divide(Layout((m, n), (n, 1)), 4)


# -------------------------------------------------------------------------------- remainders


def test_a_plain_symbol_is_tiled_with_a_remainder():
    assert str(zipped_divide(Layout(m), 128)) == "(128,ceiling(m/128)):(1,128)"
    matrix = Layout((m, n), (n, 1))
    tiles = zipped_divide(matrix, (128, 64))
    assert str(tiles) == "((128,64),(ceiling(m/128),ceiling(n/64))):((n,1),(128*n,64))"
    assert parse(str(tiles)) == tiles
    assert substitute(tiles, {m: 128 * k}).shape[1][0] == k
    for law in (DivideLaw(matrix, (128, 64)), ComplementLaws(Layout(4), m)):
        proof = prove(law)
        assert proof
        assert proof.verify()
    assert not prove(ComplementLaws(Layout(4), m, Layout(m, 4 * m)))


@pytest.mark.parametrize("values", [(1, 1), (4, 6), (9, 5), (3, 12), (8, 8)])
def test_the_tiles_of_a_plain_symbol_are_those_of_each_number(values):
    numbers = dict(zip((m, n), values, strict=True))
    for matrix in (Layout((m, n), (n, 1)), Layout((m, n), (1, d)), make_identity_layout((m, n))):
        known = {**numbers, d: 20}
        put = substitute(zipped_divide(matrix, (4, 3)), known)
        concrete = zipped_divide(substitute(matrix, known), (4, 3))
        assert put.shape == concrete.shape
        assert [put(i) for i in range(size(put))] == [concrete(i) for i in range(size(put))]


@pytest.mark.parametrize("extents", [(1, 1), (4, 6), (9, 5), (3, 12)])
def test_the_predicate_keeps_each_element_once(extents):
    matrix, predicate = Layout((m, n), (n, 1)), make_identity_layout((m, n))
    numbers = dict(zip((m, n), extents, strict=True))
    data, coords = (substitute(zipped_divide(x, (4, 3)), numbers) for x in (matrix, predicate))
    kept = [i for i in range(size(coords)) if elem_less(coords(i), extents)]
    plain_matrix = substitute(matrix, numbers)
    assert sorted(data(i) for i in kept) == sorted(map(plain_matrix, range(size(plain_matrix))))
    assert all(data(i) == plain_matrix(coords(i)) for i in kept)
    for tile in range(size(coords[1])):  # a tile is full if its last coordinate is in range
        whole = elem_less(coords(size(coords[0]) - 1, tile), extents)
        inside = [elem_less(coords(i, tile), extents) for i in range(size(coords[0]))]
        assert whole == all(inside)


def test_the_bounds_of_a_ceiling():
    tiles = ceil_div(m, 128)
    assert at_least(128 * tiles, m) is True
    assert at_least(m + 127, 128 * tiles) is True
    for false in ((m + 126, 128 * tiles), (m, 128 * tiles), (128 * tiles, m + 1), (tiles, m)):
        assert at_least(*false) is not True
    for value in (1, 127, 128, 129, 1000):
        assert substitute(tiles, {m: value}) == -(-value // 128)
    for a, by, c in ((m, 3, n), (2 * m + n + 1, 4, n + 2)):
        up = ceil_div(a, by)
        for more, fewer in ((by * up, a), (a + by - 1, by * up), (a, up), (up, c), (m, by * up)):
            answer = at_least(more, fewer)
            for x in ({m: 1, n: 1}, {m: 7, n: 2}, {m: 3, n: 8}) if answer is not None else ():
                assert (substitute(more, x) >= substitute(fewer, x)) == answer
    with pytest.raises(LayoutError, match="or divide by a number"):
        ceil_div(m, n)


def test_a_wrong_claim_is_refuted_by_small_values():
    proof = prove(CompositionLaw(Layout((m, n), (n, 1)), Layout(4, 3), Layout(4, 3 * n)))
    assert not proof
    assert proof.verify()
    found = proof.counterexample
    values = {symbol: dict(found.symbols)[str(symbol)] for symbol in (m, n)}
    a = substitute(Layout((m, n), (n, 1)), values)
    assert a(3 * found.index) == found.left != found.right == 3 * values[n] * found.index


def test_equality():
    assert equivalent(Layout((m, n), (d, m * d)), Layout(m * n, d))
    assert equivalent(Layout((m, n + 1), (n + 1, 1)), Layout((m, (n + 1, 1)), (n + 1, (1, 7))))
    proof = equivalent(Layout((m, n), (d, m * d + 1)), Layout(m * n, d))
    assert not proof
    assert proof.verify()
    assert not equivalent(Layout(m), Layout(m + 1))
    proof = prove(Equivalent(Layout(m * m + m), Layout(m * (m + 1) * n)))
    assert proof.counterexample.symbols == (("m", 1), ("n", 2))
    assert proof.counterexample.index == 2


# ------------------------------------------------------------------------------ arithmetic


def some_polynomial(rng):
    terms = [rng.choice([0, 1, 1, 2, 3, 4]) * x for x in (1, m, n, m * n, m * m)]
    return plain(sum(terms))


def test_arithmetic_on_random_polynomials():
    rng = random.Random(1)
    points = [{"m": a, "n": b} for a in (1, 2, 3, 7) for b in (1, 2, 5)]

    written = cache(lambda x: compile(str(x), "polynomial", "eval"))

    def at(x, point):
        return eval(written(x), {**point, "ceiling": math.ceil})

    decided = dict.fromkeys(["quotient", "at_least", "equal", "less", "ceil_div"], 0)
    for _ in range(200):
        a, b, c = (some_polynomial(rng) for _ in range(3))
        if b == 0:
            continue
        if rng.random() < 0.5:
            a = plain(b * c)
        q, r = divided(a, b)
        assert plain(q * b + r - a) == 0
        for point in points:
            assert at(r, point) >= 0 <= at(q, point)
        exact = quotient(a, b)
        assert divides(b, a) == (exact is not None)
        if exact is not None:
            decided["quotient"] += 1
            assert all(at(a, x) == at(b, x) * at(exact, x) for x in points)
        for fact, holds in ((at_least, lambda x, y: x >= y), (equal, lambda x, y: x == y)):
            answer = fact(a, c)
            decided[fact.__name__] += answer is not None
            if answer is not None:
                assert all(holds(at(a, x), at(c, x)) == answer for x in points)
        if less(a, c):
            decided["less"] += 1
            assert all(at(a, x) < at(c, x) for x in points)
        try:
            up = ceil_div(a, b)
        except LayoutError:
            continue
        decided["ceil_div"] += 1
        assert all(-(-at(a, x) // at(b, x)) == at(up, x) for x in points)
    assert min(decided.values()) > 15, decided


def test_symbols_are_positive_integers():
    with pytest.raises(LayoutError, match="not known to be a positive integer"):
        plain(sympy.Symbol("x") + 1)
    with pytest.raises(LayoutError, match="polynomial with integer coefficients"):
        plain(m / 2)
    with pytest.raises(LayoutError, match="polynomial with integer coefficients"):
        plain(sympy.floor(m / 2))
    with pytest.raises(LayoutError, match="sympy expression"):
        plain(2.5)
    zero = sympy.Symbol("z", integer=True, nonnegative=True)
    assert at_least(zero, 0)
    assert at_least(zero, 1) is None


def test_a_composition_by_coincidence_takes_symbols_for_strides():
    m, n = symbols("m n")
    a, b = Layout((3, 3, 4), (3 * n, 9 * n, m - 1)), Layout((2, 4, 100), (1, 5, 36))
    found = composition(a, b)
    assert str(found) == "(2,(2,2),100):(3*n,(15*n,m + 3*n - 1),4*m - 4)"
    coordinates = Layout(a.shape, tuple(d * E(k // 2) for k, d in enumerate(a.stride)))
    of_coordinates = composition(coordinates, b)
    for values in ({m: 1, n: 1}, {m: 5, n: 2}):
        numbers = substitute(a, values)
        assert offsets(substitute(found, values)) == [numbers(b(i)) for i in range(size(b))]
        tuples = substitute(coordinates, values)
        assert all(
            substitute(of_coordinates, values)(i) == tuples(b(i)) for i in range(0, size(b), 7)
        )
    with pytest.raises(LayoutError, match=r"A\(9\) = m, but .* has 27\*n there"):
        composition(Layout((3, 3, 4), (3 * n, 9 * n, m)), Layout((2, 3, 4), (1, 4, 36)))


def test_a_remainder_of_a_remainder_is_right():
    """sympy 1.14 has ``Mod(2*Mod(7, m), 3) == Mod(2*Mod(7, m)**2, 3)``, and
    ``Mod(2*Mod(m, 3), 3) == 2*Mod(m, 3)``."""
    m, n = symbols("m n")
    for after, before in (
        (Layout((3, 1), (1, 0)), Layout((m, 1), (2, 0))),
        (Layout((3, 1), (E(0), 0)), Layout((m, 1), (2, 0))),
        (Layout((2, 3), (n, 1)), Layout((m + 1, m + 1), (m, m * (m + 1)))),
        (Layout((3, 4), (4, 1)), Layout((3, n), (2, 5))),
    ):
        layout = ComposedLayout(after, 0, before)
        for index, value in cartesian((5, 7, 19), (1, 2, 3, 4, 5)):
            at = {m: value, n: value + 2}
            assert substitute(layout(index), at) == substitute(layout, at)(index)
    three = Layout((3, 4), (4, 1))
    for value in range(1, 9):
        at = 2 * (n % 3)
        assert substitute(three(at), {n: value}) == three(2 * (value % 3))
        assert substitute(idx2crd(at, (3, 4)), {n: value}) == idx2crd(2 * (value % 3), (3, 4))
        assert substitute(get_flat_coord(three, at), {n: value}) == get_flat_coord(
            three, 2 * (value % 3)
        )
    assert substitute(parse("4:(2*Mod(m,3))%3").stride, {m: 2}) == 1
    assert substitute(parse("4:Mod(2*Mod(m,3),3)").stride, {m: 2}) == 1


def test_sympy_is_loaded_where_the_first_symbol_is_met():
    import subprocess
    import sys

    code = (
        "import sys, layouts as l;"
        "A = l.Layout((8, 8), (8, 1));"
        "l.prove(l.DivideLaw(A, (4, 4))); l.explain(l.complement, A, 128);"
        "l.composition(A, l.Layout(8, 8)); l.equivalent(A, A);"
        "print('sympy' in sys.modules, 'numpy' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["False", "False"]


def test_substitute_takes_symbols_to_integers_or_expressions_alone():
    tile = Layout((8 * m, 4), (4, 1))
    assert substitute(tile, {m: np.int64(2)}) == Layout((16, 4), (4, 1))
    assert substitute(tile, {m: 2 * n}) == Layout((16 * n, 4), (4, 1))
    assert substitute(local_tile(tile, (4, 4), (1, 0)), {m: 2}).layout == Layout((4, 4), (4, 1))
    for mistake in ({"m": 2}, {m: -1}, {m: True}, {m: 1.5}, {m: "2"}, {8: 2}, [(m, 2)], m, None):
        with pytest.raises(LayoutError, match=r"substitute: .* must be "):
            substitute(tile, mistake)


NEEDING_NUMBERS = {
    "table": table,
    "wavefronts": wavefronts,
    "sectors": sectors,
    "make_tensor": lambda tile: make_tensor(np.zeros(64), tile),
    "make_rmem_tensor": lambda tile: make_rmem_tensor(tile, np.float32),
}


@pytest.mark.parametrize("name", NEEDING_NUMBERS)
def test_what_needs_numbers_says_how_to_give_them(name):
    with pytest.raises(LayoutError, match=r"give the symbols values first, as in substitute\("):
        NEEDING_NUMBERS[name](Layout((8 * m, 4), (4, 1)))
