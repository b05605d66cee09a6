"""Modes selected, grouped, added and replaced, and the orders of compact layouts."""

import pytest

from layouts import (
    F2,
    ComposedLayout,
    E,
    Layout,
    LayoutError,
    LayoutLeft,
    LayoutRight,
    Swizzle,
    append,
    group_modes,
    make_counting_tensor,
    make_layout,
    make_ordered_layout,
    prepend,
    replace,
    select,
    size,
    tile_to_shape,
)

A, B = Layout((2, (3, 4), 5)), Layout((4, 2), (100, 1))


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (select(A, [2, 0]), "(5,2):(24,1)"),
        (select(A, 1), "((3,4)):((2,6))"),
        (select(A, [1, 1]), "((3,4),(3,4)):((2,6),(2,6))"),
        (group_modes(A, 0, 2), "((2,(3,4)),5):((1,(2,6)),24)"),
        (group_modes(A, 1), "(2,((3,4),5)):(1,((2,6),24))"),
        (group_modes(A, 0, 3), "((2,(3,4),5)):((1,(2,6),24))"),
        (append(Layout(8), B), "(8,(4,2)):(1,(100,1))"),
        (append(Layout((8, 2)), up_to_rank=4), "(8,2,1,1):(1,8,0,0)"),
        (append(Layout((8, 2)), B, 1), "(8,2):(1,8)"),
        (prepend(Layout((8, 2)), B, 4), "((4,2),(4,2),8,2):((100,1),(100,1),1,8)"),
        (replace(A, 1, B), "(2,(4,2),5):(1,(100,1),24)"),
        (select(Layout((2, 4), (F2(8), F2(1))), [1, 0]), "(4,2):(F1,F8)"),
        (append(Layout(2, E(0)), Layout(4, E(1))), "(2,4):(1@0,1@1)"),
        (make_layout(((2, 3), 4), LayoutRight), "((2,3),4):((12,4),1)"),
        (Layout(((2, 3), 4), LayoutRight), "((2,3),4):((12,4),1)"),
        (make_layout(((2, 3), 4), LayoutLeft), "((2,3),4):((1,2),6)"),
        (make_ordered_layout((4, (1, 8)), LayoutRight), "(4,(1,8)):(8,(0,1))"),
        (tile_to_shape(Layout((2, 2)), (4, 6), LayoutRight), "((2,2),(2,3)):((1,12),(2,4))"),
    ],
)
def test_results_are_those_of_cute(result, expected):
    assert str(result) == expected


def test_grouped_modes_are_the_same_function():
    for begin in range(3):
        for end in range(begin + 1, 4):
            grouped = group_modes(A, begin, end)
            assert [grouped(i) for i in range(size(A))] == [A(i) for i in range(size(A))]


def test_tuples_composed_layouts_and_tensors_are_rearranged_too():
    assert (select((2, 3, 4), [2, 0]), group_modes((2, 3, 4), 1)) == ((4, 2), (2, (3, 4)))
    assert (append((2, 3), 4), prepend(2, (3, 4)), replace((2, 3), 0, 7)) == (
        (2, 3, 4),
        ((3, 4), 2),
        (7, 3),
    )
    swizzled = ComposedLayout(Swizzle(3, 3, 3), 8, Layout((8, 64), (64, 1)), unit=16)
    assert group_modes(swizzled, 0, 2) == swizzled.over(group_modes(swizzled.outer, 0, 2))
    tensor = make_counting_tensor(Layout((2, 3, 4)))
    assert group_modes(tensor, 0, 2).layout == group_modes(Layout((2, 3, 4)), 0, 2)


@pytest.mark.parametrize(
    "call",
    [
        lambda: select(A, [3]),
        lambda: select(A, [-1]),
        lambda: select(A, 1.0),
        lambda: group_modes(A, 1, 1),
        lambda: group_modes(A, 0, 4),
        lambda: append(A, 4),
        lambda: append(A, B, "x"),
        lambda: append(Layout(2, E(0)), Layout(2)),
        lambda: replace(A, 0, 3),
        lambda: replace("abc", 0, 3),
        lambda: make_layout((4, 0), LayoutRight),
    ],
)
def test_what_is_no_mode_is_refused(call):
    with pytest.raises(LayoutError):
        call()
