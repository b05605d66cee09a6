"""The algebra on cases with known answers, and every trap in which another library fell.

C1, M2, ... number the traps as studies/algebra.md, section 3, does.
"""

import random

import pytest

from layouts import (
    F2,
    ComplementLaws,
    ComposedLayout,
    DivideLaw,
    E,
    Injective,
    Layout,
    LayoutError,
    ProductLaw,
    Swizzle,
    Undecided,
    budget,
    coalesce,
    complement,
    composition,
    left_inverse,
    local_partition,
    local_tile,
    logical_divide,
    logical_product,
    make_layout,
    parse,
    prove,
    right_inverse,
    size,
    symbols,
    tile_to_shape,
    zipped_divide,
)


def check(result, expected):
    assert str(result) == expected


# --------------------------------------------------------------------------------- coalesce


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        ("(2,(1,6)):(1,(6,2))", "12:1"),
        ("(2,4,6):(1,6,2)", "(2,4,6):(1,6,2)"),
        ("(4,8):(8,1)", "(4,8):(8,1)"),
        ("(4,8):(1,4)", "32:1"),
        ("(2,2,2):(0,0,0)", "8:0"),
        ("(2,3):(0,5)", "(2,3):(0,5)"),
        ("((2,3),(4,1)):((1,2),(6,9))", "24:1"),
        ("():()", "1:0"),
        ("1:5", "1:0"),  # K2
        ("(1,1):(5,7)", "1:0"),  # K2
    ],
)
def test_coalesce(layout, expected):
    check(coalesce(parse(layout)), expected)


def test_coalesce_by_mode():
    layout = parse("(2,(1,6)):(1,(6,2))")
    check(coalesce(layout, (1, 1)), "(2,6):(1,2)")
    check(coalesce(layout, (1, None)), "(2,(1,6)):(1,(6,2))")
    check(coalesce(layout, (1,)), "(2,(1,6)):(1,(6,2))")
    check(
        coalesce(parse("((4,3),((2,2),5)):((15,5),((9,18),1))"), (1, (1, 1))),
        "((4,3),(4,5)):((15,5),(9,1))",
    )


def test_k1_the_leaves_of_a_profile_are_flags_not_sizes():
    check(coalesce(parse("((2,2),4):((2,1),4)"), (4, 4)), "((2,2),4):((2,1),4)")
    check(coalesce(parse("((2,2),4):((1,2),4)"), (7, 99)), "(4,4):(1,4)")


def test_a_profile_with_too_many_modes_is_refused():
    with pytest.raises(LayoutError, match="3 tilers for the 2 modes"):
        coalesce(Layout((4, 8)), (1, 1, 1))


# ------------------------------------------------------------------------------ composition


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("(6,2):(8,2)", "(4,3):(3,1)", "((2,2),3):((24,2),8)"),  # whitepaper's example
        ("20:2", "(5,4):(4,1)", "(5,4):(8,2)"),
        ("(10,2):(16,4)", "(5,4):(1,5)", "(5,(2,2)):(16,(80,4))"),
        ("(4,8):(8,1)", "8:4", "8:1"),
        ("(4,8):(8,1)", "(2,2):(0,4)", "(2,2):(0,1)"),
        ("(4,2,8):(3,12,97)", "3:3", "3:9"),  # C3: the third value falls inside a mode
        ("(4,1):(1,0)", "8:1", "(4,2):(1,0)"),  # C4: the last mode goes on, here with stride 0
        ("(5,3):(7,1)", "1:3", "1:1"),  # C5: as C++
        ("8:1", "(1,4):(0,1)", "(1,4):(0,1)"),
        ("(4,3):(1,100)", "2:5", "2:101"),  # C++ gives 2:200
        ("((8,8)):((8,1))", "6:3", "(3,2):(24,9)"),  # a digit carries, and yet there is a layout
        ("(8,1):(4,2)", "(6):(3)", "((3,2)):((12,6))"),
    ],
)
def test_composition(a, b, expected):
    result = composition(parse(a), parse(b))
    check(result, expected)
    assert [result(i) for i in range(size(result))] == [
        parse(a)(parse(b)(i)) for i in range(size(parse(b)))
    ]


@pytest.mark.parametrize(
    ("a", "b", "witness"),
    [
        ("(4,3):(1,100)", "4:3", "at index 3, .*A\\(9\\) = 201, but every .* has 105"),  # C1
        ("(6,4):(1,100)", "6:4", "at index 3, .*A\\(12\\) = 200, but every .* has 106"),  # C1
        ("(5,3):(7,1)", "7:1", "at index 5, .*A\\(5\\) = 1, but every .* has 35"),  # C2
        (
            "(4,3):(1,100)",
            "(2,2):(3,3)",
            "at index 3, coordinate \\(1,1\\).*= 102, but every .* has 6",
        ),
    ],
)
def test_composition_that_has_no_layout_is_refused_with_its_witness(a, b, witness):
    with pytest.raises(LayoutError, match=witness):
        composition(parse(a), parse(b))


def test_c6_a_short_tuple_of_tilers_drops_modes_in_composition_and_keeps_them_in_divides():
    layout = Layout((4, 6, 8))
    check(composition(layout, (2, 3)), "(2,3):(1,4)")
    check(logical_divide(layout, (2, 3)), "((2,2),(3,2),8):((1,2),(4,12),24)")
    check(zipped_divide(layout, (2, 3)), "((2,3),(2,2,8)):((1,4),(2,12,24))")


def test_c7_none_passes_a_mode():
    layout = Layout((4, 8), (8, 1))
    check(composition(layout, (2, None)), "(2,8):(8,1)")
    check(composition(layout, None), "(4,8):(8,1)")
    check(logical_divide(layout, (2, None)), "((2,2),8):((8,16),1)")
    check(zipped_divide(layout, (2, None)), "((2,8),(2,1)):((8,1),(16,0))")
    assert zipped_divide(layout, (2, None))[0] == composition(layout, (2, None))


def test_tilers_are_nested_like_the_modes():
    layout = Layout(((4, 6), 8), ((8, 32), 1))
    check(composition(layout, ((2, Layout(3, 2)), 4)), "((2,3),4):((8,64),1)")
    check(zipped_divide(layout, ((2, 3), 4)), "(((2,3),4),((2,2),2)):(((8,32),1),((16,96),4))")


@pytest.mark.parametrize("tiler", [(1, 2, 3), "4", 2.0, (4, "8"), -1, 0])
def test_what_is_no_tiler_is_refused(tiler):
    for operation in (composition, logical_divide, zipped_divide):
        with pytest.raises(LayoutError):
            operation(Layout((4, 8)), tiler)


def test_composition_of_what_is_no_layout_is_refused():
    with pytest.raises(LayoutError, match="must be a Layout"):
        composition((4, 8), Layout(4))


def test_at_composes():
    a, b = Layout((6, 2), (8, 2)), Layout((4, 3), (3, 1))
    assert a @ b == composition(a, b)


def test_a_composition_too_large_to_look_at_says_so():
    with pytest.raises(Undecided, match="not decided"):
        composition(Layout((3, 3, 4), (3, 9, 2)), Layout((2, 4, 1 << 28), (1, 5, 36)))


def test_a_large_composition_is_refused_by_its_first_counterexample():
    with pytest.raises(LayoutError, match="at index 3") as caught:
        composition(Layout((3, 1 << 40), (1, 7)), Layout(1 << 30, 2))
    assert caught.value.counterexample == (3, 3, 14, 10)


def test_a_budget_bounds_each_search_inside_and_no_other():
    a, b = Layout((3, 3, 4), (3, 9, 2)), Layout((2, 4, 1000), (1, 5, 36))
    modes = random.Random(1).sample(range(1 << 59, 1 << 60), 28)
    with budget(1000):
        with pytest.raises(Undecided, match="1000 steps"):
            composition(a, b)
        with pytest.raises(Undecided, match="1000 steps"):
            prove(Injective(Layout((2,) * 28, tuple(modes))))
        with pytest.raises(Undecided, match="1000 steps"):
            left_inverse(Layout((5, 5), (48, 128)))
    with budget(size(b) - 1):  # the value at index 0 needs no step
        assert size(composition(a, b)) == 8000
    with pytest.raises(LayoutError, match="at least 1 step"):
        budget(0)


def test_large_compositions_are_decided_without_looking():
    a = Layout((1 << 20, 1 << 20), (1 << 20, 1))
    check(composition(a, Layout((1 << 25, 2))), "((1048576,32),2):((1048576,1),32)")


# ------------------------------------------------------------------------------- complement


@pytest.mark.parametrize(
    ("layout", "cotarget", "expected"),
    [
        ("4:1", 24, "6:4"),
        ("6:4", 24, "4:1"),
        ("(4,6):(1,4)", 24, "1:0"),  # M2
        ("4:2", 24, "(2,3):(1,8)"),
        ("(2,4):(1,6)", 24, "3:2"),
        ("(2,2):(1,6)", 24, "(3,2):(2,12)"),
        ("(2,2):(6,1)", 24, "(3,2):(2,12)"),
        ("(2,1):(1,8)", 4, "2:2"),  # M2
        ("4:0", 24, "24:1"),
        ("1:5", 6, "6:1"),
        ("4:1", 10, "3:4"),  # rounded up
        ("4:2", None, "2:1"),
        ("(2,4):(1,2)", None, "1:0"),
    ],
)
def test_complement(layout, cotarget, expected):
    check(complement(parse(layout), cotarget), expected)


def test_m1_a_layout_that_is_not_injective_has_no_complement():
    with pytest.raises(LayoutError, match="the offset 2 occurs more than once"):
        complement(parse("(4,2):(1,2)"), 16)
    with pytest.raises(LayoutError, match="more than once"):
        complement(parse("(2,2):(1,1)"))


@pytest.mark.parametrize(
    ("layout", "cotarget", "expected"),
    [
        ("(4,2):(1,6)", 24, "2:12"),
        ("(4,8):(1,5)", None, "1:0"),
        ("(4,8):(1,5)", 80, "2:40"),
        ("(64,64):(72,1)", 4 * 4608, "4:4608"),
        ("(4,2):(1,10)", 40, "(2,2):(4,20)"),  # whitepaper: two copies of 4 fit below 10
        ("(2,2):(2,3)", 24, "4:6"),  # its modes interleave; C++ takes it for not injective
        ("(3,3):(2,3)", 24, "3:11"),
    ],
)
def test_the_complement_of_a_layout_whose_gaps_cannot_be_filled(layout, cotarget, expected):
    check(complement(parse(layout), cotarget), expected)


@pytest.mark.parametrize(
    ("layout", "cotarget", "expected"),
    [
        ("4:1@0", 16, "(4):(4@0)"),
        ("(4,8):(1@0,1@1)", (8, 32), "(2,4):(4@0,8@1)"),
        ("(4,8):(1@0,1@1)", None, "(1,1):(4@0,8@1)"),
        ("4:2@0", 16, "((2,2)):((1@0,8@0))"),
        ("4:1@1", (16, 8), "(16,2):(1@0,4@1)"),
        ("4:1@0@1", (2, (8, 3)), "(2,(2,3)):(1@0,(4@0@1,1@1@1))"),
    ],
)
def test_the_complement_of_a_layout_of_coordinates_is_that_of_each(layout, cotarget, expected):
    check(complement(parse(layout), cotarget), expected)


def test_a_tiler_of_coordinates_divides_by_the_shape():
    tile = Layout(4, E(0))
    check(logical_divide(Layout((8, 16), (1, 8)), tile), "(4,(2,16)):(1,(4,8))")
    check(logical_divide(Layout((8, 16), (16, 1)), tile), "(4,(2,16)):(16,(64,1))")
    check(logical_divide(parse("(8,16):(1@0,1@1)"), tile), "(4,(2,16)):(1@0,(4@0,1@1))")
    assert prove(DivideLaw(Layout((8, 16), (16, 1)), tile)).verify()


def test_the_complement_of_a_composed_layout_that_is_a_layout_is_that_of_it():
    twice = ComposedLayout(Layout((3, 4), (2, 6)), 0, Layout(12))
    assert complement(twice, 48) == complement(Layout(12, 2), 48) == Layout((2, 2), (1, 24))


def test_a_diagonal_step_has_no_complement():
    with pytest.raises(LayoutError, match="several coordinates"):
        complement(Layout(4, E(0) + E(1)), (8, 8))


@pytest.mark.parametrize(
    ("block", "copies", "expected"),
    [
        ("(64,64):(72,1)", 4, "((64,64),4):((72,1),4608)"),
        ("(4,8):(1,5)", 3, "((4,8),3):((1,5),40)"),
        ("(10,10,2):(1,19,370)", 3, "((10,10,2),3):((1,19,370),740)"),  # in C++ 3:0, three times 0
        ("(2,2):(2,3)", 3, "((2,2),3):((2,3),6)"),
        ("(4,4):(F5,F1)", 4, "((4,4),4):((F5,F1),F16)"),
        ("(3,4):(0,F1)", 2, "((3,4),2):((0,1),4)"),
        ("8:1", "(4,2):(F1,F5)", "(8,(4,2)):(F1,(F8,F40))"),
        ("(4,8):(1@0,1@1)", 3, "((4,8),3):((1@0,1@1),4@0)"),
    ],
)
def test_padded_xor_and_coordinate_layouts_are_repeated(block, copies, expected):
    tiler = parse(copies) if isinstance(copies, str) else copies
    result = logical_product(parse(block), tiler)
    check(result, expected)
    proof = prove(ProductLaw(parse(block), tiler, result))
    assert proof
    assert proof.verify()


def test_a_padded_tile_fills_a_shape():
    padded = parse("(64,64):(72,1)")
    check(tile_to_shape(padded, (128, 256)), "((64,2),(64,4)):((72,4608),(1,9216))")
    check(tile_to_shape(padded, (128, 256), (1, 0)), "((64,2),(64,4)):((72,18432),(1,4608))")
    m = symbols("m")
    check(logical_product(padded, m), "((64,64),m):((72,1),4608)")


def test_the_law_of_complement_says_whether_every_offset_is_covered():
    covered = prove(ComplementLaws(parse("(2,2):(1,6)"), 24))
    padded = prove(ComplementLaws(parse("(4,8):(1,5)"), 80))
    assert "a bijection" in str(covered)
    assert "no layout has, together with (4,8):(1,5), every offset of a range" in str(padded)
    for wrong in ("2:39", "2:4", "1:0", "3:20"):
        assert not prove(ComplementLaws(parse("(4,8):(1,5)"), 80, parse(wrong)))


@pytest.mark.parametrize("cotarget", [0, -4, 2.5, (4, 0), True, "4"])
def test_the_cotarget_is_an_integer(cotarget):
    with pytest.raises(LayoutError, match=r"cotarget|at least 1"):
        complement(Layout(4), cotarget)


# ----------------------------------------------------------------------------------- divide


@pytest.mark.parametrize(
    ("layout", "tiler", "expected"),
    [
        ("(4,2,3):(2,1,8)", Layout(4, 2), "((2,2),(2,3)):((4,1),(2,8))"),
        ("(4,8):(1,4)", 2, "(2,16):(1,2)"),  # D1: an integer tiles the index, not each mode
        (
            "(8,8):(1,8)",
            Layout(3, 6),
            "(3,(6,4)):(6,(1,18))",
        ),  # C9: reaches past the end, never misses
        ("(9,(4,8)):(59,(13,1))", (Layout(3, 3), Layout((2, 4), (1, 8))), None),
        ("10:1", 4, "(4,3):(1,4)"),
        ("(4,8):(8,1)", (), "(4,8):(8,1)"),
    ],
)
def test_logical_divide(layout, tiler, expected):
    result = logical_divide(parse(layout), tiler)
    check(result, expected or "((3,3),((2,4),(2,2))):((177,59),((13,2),(26,1)))")


def test_c9_a_tile_that_does_not_divide_is_refused_not_misplaced():
    with pytest.raises(LayoutError, match="has no layout"):
        logical_divide(Layout((3, 4), (4, 1)), Layout(2, 1))


def test_d6_nested_one_tuples_stay():
    check(zipped_divide(Layout((8,)), (4,)), "((4),(2)):((1),(4))")


def test_d1_zipped_divide_by_an_integer():
    check(zipped_divide(Layout((4, 8)), 2), "(2,16):(1,2)")


# ---------------------------------------------------------------------------------- inverse


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        ("(4,8):(8,1)", "(8,4):(4,1)"),
        ("(4,8):(1,4)", "32:1"),
        ("(2,4):(0,1)", "4:2"),  # I1: a mode of stride 0 is passed over
        ("(3,7):(0,0)", "1:0"),
        ("4:2", "1:0"),
        ("(2,2,2):(1,1,2)", "2:1"),  # I2: as C++; it is not injective
        ("(4,8):(1,5)", "4:1"),
        ("((4,8),(2,2)):((32,1),(16,8))", "(8,2,2,4):(4,64,32,1)"),
        ("1:7", "1:0"),
    ],
)
def test_right_inverse(layout, expected):
    result = right_inverse(parse(layout))
    check(result, expected)
    assert [parse(layout)(result(i)) for i in range(size(result))] == list(range(size(result)))


# -------------------------------------------------------------------------------- local_tile


MATRIX = Layout((128, 64), (64, 1))


def test_local_tile_is_a_tile_and_where_it_starts():
    divided = zipped_divide(MATRIX, (32, 16))
    for coord in [(0, 0), (1, 2), (3, 3)]:
        tile, offset = local_tile(MATRIX, (32, 16), coord)
        for i in range(0, 32, 5):
            for j in range(16):
                assert offset + tile(i, j) == divided((i, j), coord)
                assert offset + tile(i, j) == MATRIX(32 * coord[0] + i, 16 * coord[1] + j)


@pytest.mark.parametrize("coord", [(4, 0), (9, 0), (None, 4), 16, (0, 10**30)], ids=str)
def test_local_tile_refuses_a_tile_beyond_the_grid(coord):
    with pytest.raises(LayoutError, match=r"local_tile of .*: tile .* is outside \(4,4\)"):
        local_tile(MATRIX, (32, 16), coord)


def test_local_tile_keeps_the_rest_modes_that_are_none():
    tile, offset = local_tile(MATRIX, (32, 16), (1, None))
    check(tile, "(32,16,4):(64,1,16)")
    assert offset == 2048
    assert local_tile(MATRIX, (32, 16), (1,)) == (tile, offset)
    check(local_tile(MATRIX, (32, 16), ()).layout, "(32,16,4,4):(64,1,2048,16)")


def test_local_tile_takes_an_integer_as_the_index_of_a_tile():
    divided = zipped_divide(MATRIX, (32, 16))
    for index in range(16):
        tile, offset = local_tile(MATRIX, (32, 16), index)
        check(tile, "(32,16):(64,1)")
        assert offset == divided((0, index))


def test_local_tile_projects_tiler_and_coordinate():
    tiler, coord = (32, 8, 16), (1, 5, None)
    assert local_tile(MATRIX, tiler, coord, (1, None, 1)) == local_tile(MATRIX, (32, 16), (1, None))
    with pytest.raises(LayoutError, match="proj"):
        local_tile(MATRIX, (32, 16), (1, 1), (1, None, 1))


def test_local_tile_of_a_swizzled_layout_keeps_the_offset_inside():
    swizzled = parse("S<3,3,3> o 0 o (128,64):(64,1)")
    tile, offset = local_tile(swizzled, (8, 16), (5, 2))
    check(tile, "S<3,3,3> o 2592 o (8,16):(64,1)")
    assert offset == 0
    assert all(tile(i, j) == swizzled(40 + i, 32 + j) for i in range(8) for j in range(16))


def test_local_tile_refuses_a_coordinate_with_too_many_modes():
    with pytest.raises(LayoutError, match="at most one per mode"):
        local_tile(MATRIX, (32, 16), (0, 0, 0))


def test_the_modes_of_a_divide_recombine():
    tiles = zipped_divide(MATRIX, (32, 16))
    assert make_layout(tiles[0], tiles[1]) == tiles


XOR = Layout((2, 4), (F2(1), F2(3)))


@pytest.mark.parametrize("layout", [XOR, ComposedLayout(Swizzle(1, 0, 2), 5, XOR)])
def test_tiles_and_parts_of_xor_layouts_start_at_their_offset_by_xor(layout):
    for column in range(4):
        tile = local_tile(layout, (2, 1), (0, column))
        assert [tile.offset + tile.layout(i, 0) for i in range(2)] == [
            layout(i, column) for i in range(2)
        ]
    for thread in range(4):
        part = local_partition(layout, Layout((2, 2)), thread)
        for j in range(2):
            expected = layout(thread % 2, thread // 2 + 2 * j)
            assert part.offset + part.layout(0, j) == expected
