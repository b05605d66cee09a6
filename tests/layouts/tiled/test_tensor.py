"""Tensors: their elements are those of the data at the offsets of the layout."""

import itertools
import random

import numpy
import pytest

from layouts import (
    F2,
    ComposedLayout,
    E,
    Layout,
    LayoutError,
    Swizzle,
    coalesce,
    composition,
    copy,
    cosize,
    filter,
    flat_divide,
    idx2crd,
    local_partition,
    local_tile,
    logical_divide,
    make_counting_tensor,
    make_fragment_like,
    make_identity_tensor,
    make_rmem_tensor,
    make_tensor,
    max_common_layout,
    max_common_vector,
    size,
    slice_,
    symbols,
    tiled_divide,
    zipped_divide,
)

#: One of each kind of layout that gives integers; all have four rows and eight columns.
LAYOUTS = [
    Layout((4, 8), (8, 1)),
    Layout((4, (2, 4)), (2, (1, 8))),
    Layout((4, 8), (10, 1)),
    Layout((4, 8), (0, 1)),
    Layout((4, 8), (F2(1), F2(5))),
    ComposedLayout(Swizzle(2, 0, 3), 0, Layout((4, 8), (8, 1))),
    ComposedLayout(Swizzle(2, 0, 3), 3, Layout((4, 8), (8, 1))),
    ComposedLayout(Swizzle(1, 0, 2), 5, Layout((4, 8), (F2(1), F2(5)))),
]


def filled(layout):
    """A tensor whose element is its own place in the data."""
    return make_tensor(numpy.arange(cosize(layout)), layout)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_an_element_is_that_of_the_data_at_the_offset_of_the_layout(layout):
    tensor = filled(layout)
    for row in range(4):
        for column in range(8):
            assert tensor[row, column] == tensor[row + 4 * column] == layout(row, column)
    expected = [[layout(row, column) for column in range(8)] for row in range(4)]
    assert (tensor.load() == expected).all()


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_a_tensor_is_called_with_one_coordinate_or_several_as_a_layout_is(layout):
    tensor = filled(layout)
    assert tensor(1, 5) == tensor((1, 5)) == tensor(1 + 4 * 5) == tensor[1, 5]
    assert tensor(1, None).load().tolist() == tensor[1, None].load().tolist()


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_a_slice_has_the_elements_of_its_row_or_column(layout):
    tensor = filled(layout)
    for row in range(4):
        assert [tensor[row, None][j] for j in range(8)] == [layout(row, j) for j in range(8)]
    for column in range(8):
        assert [tensor[None, column][i] for i in range(4)] == [layout(i, column) for i in range(4)]
    assert tensor[None, None].load().tolist() == tensor.load().tolist()


#: The operations of the algebra that take a tensor, as functions of a layout or a tensor.
OPERATIONS = {
    "composition": lambda x: composition(x, Layout((2, 8), (1, 4))),
    "composition by mode": lambda x: composition(x, (2, Layout(4, 2))),
    "logical_divide": lambda x: logical_divide(x, (2, 4)),
    "zipped_divide": lambda x: zipped_divide(x, (2, 4)),
    "tiled_divide": lambda x: tiled_divide(x, (2, 4)),
    "flat_divide": lambda x: flat_divide(x, (2, 4)),
    "coalesce": coalesce,
    "coalesce by mode": lambda x: coalesce(x, (1, 1)),
    "filter": filter,
}


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_on_a_tensor_is_the_one_on_its_layout(layout, name):
    tensor = filled(layout)
    found, expected = OPERATIONS[name](tensor), OPERATIONS[name](layout)
    assert found.data is tensor.data
    assert [found[i] for i in range(size(found))] == [expected(i) for i in range(size(expected))]


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_tiles_and_parts_of_a_tensor_have_the_elements_of_their_coordinates(layout):
    tensor, identity = filled(layout), make_identity_tensor((4, 8))
    for tile in range(4):
        coord = idx2crd(tile, (2, 2))
        found, where = (local_tile(x, (2, 4), coord) for x in (tensor, identity))
        for i in range(8):
            assert found[i] == layout(*where[i])
    for thread in range(8):
        threads = Layout((2, 4), (4, 1))
        found, where = (local_partition(x, threads, thread) for x in (tensor, identity))
        for i in range(4):
            assert found[i] == layout(*where[i])


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_a_tile_is_called_as_the_tensor_of_that_tile_is(layout):
    tensor = make_counting_tensor(layout)
    for coord in ((1, 0), (0, 1), (0, None)):
        part, elements = local_tile(layout, (2, 4), coord), local_tile(tensor, (2, 4), coord)
        assert [part(i) for i in range(size(elements))] == [
            elements[i] for i in range(size(elements))
        ]
    tile = local_tile(layout, (2, 4), (1, 0))
    for row in range(2):
        assert [tile(row, None)(j) for j in range(4)] == [tile(row, j) for j in range(4)]


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_the_cosize_and_the_common_vectors_of_tensors_are_those_of_their_layouts(layout):
    tensor = filled(layout)
    assert cosize(tensor) == cosize(layout)
    assert max_common_vector(tensor, tensor) == max_common_vector(layout, layout)
    if layout(0) == 0:
        assert max_common_layout(tensor, layout) == max_common_layout(layout, layout)


def test_the_elements_of_an_identity_tensor_are_their_coordinates():
    tensor = make_identity_tensor((4, (2, 3)))
    assert [tensor[i] for i in range(24)] == [idx2crd(i, (4, (2, 3))) for i in range(24)]
    part = local_tile(tensor[None, (1, None)], (2, 3), (1, 0))
    assert [part[i, j] for i in range(2) for j in range(3)] == [
        (2 + i, (1, j)) for i in range(2) for j in range(3)
    ]


def test_a_ragged_tile_of_an_identity_tensor_gives_coordinates_beyond_the_shape():
    tile = local_tile(make_identity_tensor((100, 64)), (32, 64), (3, 0))
    assert [tile[i, 5] for i in (0, 3, 4)] == [(96, 5), (99, 5), (100, 5)]


def test_setting_elements_changes_the_data():
    data = numpy.zeros(32, int)
    tensor = make_tensor(data, Layout((4, 8), (8, 1)))
    tensor[1, 2] = 7
    tensor[3, None] = numpy.arange(8)
    tensor[None, 0].fill(9)
    assert data.reshape(4, 8).tolist() == [
        [9, 0, 0, 0, 0, 0, 0, 0],
        [9, 0, 7, 0, 0, 0, 0, 0],
        [9, 0, 0, 0, 0, 0, 0, 0],
        [9, 1, 2, 3, 4, 5, 6, 7],
    ]


def test_arrays_of_coordinates_give_arrays_of_elements():
    tensor = filled(LAYOUTS[5])
    rows, columns = numpy.arange(4)[:, None], numpy.arange(8)
    assert (tensor[rows, columns] == tensor.load()).all()


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 3)])
@pytest.mark.parametrize("name", ["numpy", "torch"])
def test_an_empty_array_of_coordinates_gives_an_empty_array(layout, shape, name):
    library = pytest.importorskip(name)
    tensor = make_tensor(library.arange(cosize(layout)), layout)
    none = library.zeros(shape, dtype=library.int64)
    for found in (tensor[none], tensor[none, 3], tensor[none, none]):
        assert tuple(found.shape) == shape
        assert found.dtype == tensor.element_type


@pytest.mark.parametrize("strides", [(3, 1), (1, 2), (12, 4), (0, 1)])
def test_an_array_gives_the_tensor_of_its_own_strides(strides):
    array = numpy.lib.stride_tricks.as_strided(
        numpy.arange(100), (2, 3), tuple(8 * stride for stride in strides)
    )
    tensor = make_tensor(array)
    assert tensor.layout == Layout((2, 3), strides)
    assert tensor.load().tolist() == array.tolist()
    if 0 not in strides:
        tensor[1, 2] = -1
        assert array[1, 2] == -1


def test_torch_tensors_are_data():
    torch = pytest.importorskip("torch")
    array = torch.arange(24).reshape(4, 6)[1:, ::2]
    tensor = make_tensor(array)
    assert tensor.layout == Layout((3, 3), (6, 2))
    assert tensor.load().tolist() == array.tolist()
    held = make_fragment_like(tensor[None, 1], torch.bfloat16)
    copy(tensor[None, 1], held)
    assert held.data.dtype is torch.bfloat16
    assert held.data.tolist() == array[:, 1].tolist()
    assert repr(held) == "bfloat16[0] o (3):(1)"


def test_a_copy_goes_by_index_whatever_the_shapes():
    source, destination = filled(Layout((4, 8), (8, 1))), make_rmem_tensor(((2, 2), 8), numpy.int32)
    copy(source, destination)
    assert [destination[i] for i in range(32)] == [source[i] for i in range(32)]


def test_a_copy_within_one_array_reads_before_it_writes():
    data = numpy.arange(8)
    copy(make_tensor(data[:7]), make_tensor(data[1:]))
    assert data.tolist() == [0, 0, 1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("name", ["numpy", "torch"])
def test_a_copy_under_a_predicate_reads_before_it_writes(name):
    library, rng = pytest.importorskip(name), random.Random(0)
    outcomes = set()
    for _ in range(200):
        data = library.arange(20)
        layouts = [Layout((2, 4), (rng.randrange(3), rng.randrange(3))) for _ in range(2)]
        starts = [rng.randrange(11) for _ in range(2)]
        src, dst = (
            make_tensor(data[start:], layout) for start, layout in zip(starts, layouts, strict=True)
        )
        chance = rng.choice((0, 0.5, 1))
        chosen = [rng.random() < chance for _ in range(8)]
        pred = make_tensor(library.asarray(chosen), Layout((2, 4)))
        expected, writes = [*range(20)], {}
        for index in range(8):
            if chosen[index]:
                into = starts[1] + layouts[1](index)
                expected[into] = starts[0] + layouts[0](index)
                writes.setdefault(into, set()).add(expected[into])
        if any(len(values) > 1 for values in writes.values()):
            outcomes.add("refused")
            with pytest.raises(LayoutError, match="several values"):
                copy(src, dst, pred=pred)
            assert data.tolist() == [*range(20)]
        else:
            outcomes.add("copied")
            copy(src, dst, pred=pred)
            assert data.tolist() == expected
    assert outcomes == {"refused", "copied"}


def test_setting_an_array_of_coordinates_is_a_store():
    tensor = make_tensor(numpy.zeros(8), LAYOUTS[3])
    rows = numpy.arange(4)
    tensor[rows, 2] = 5
    tensor[rows, rows] = numpy.arange(4.0)
    with pytest.raises(LayoutError, match="several values"):
        tensor[rows, 2] = rows
    with pytest.raises(LayoutError, match=r"it takes one value, or an array of the extents \(4,\)"):
        tensor[rows, 2] = numpy.zeros((2, 4))
    assert tensor.data.tolist() == [0, 1, 2, 3, 0, 0, 0, 0]


REFUSED = {
    "beyond the data": lambda: make_tensor(numpy.zeros(31), Layout((4, 8))),
    "a swizzle beyond the data": lambda: make_tensor(numpy.zeros(32), LAYOUTS[6]),
    "coordinates": lambda: make_tensor(numpy.zeros(32), Layout((4, 8), (E(0), E(1)))),
    "symbols": lambda: make_tensor(numpy.zeros(32), Layout(symbols("m"))),
    "a list": lambda: make_tensor([1, 2, 3]),
    "a negative stride": lambda: make_tensor(numpy.zeros(8)[::-1]),
    "an array that is not contiguous": lambda: make_tensor(numpy.zeros((4, 8))[:, :4], Layout(16)),
    "an empty array": lambda: make_tensor(numpy.zeros((4, 0))),
    "an element beyond the data": lambda: filled(LAYOUTS[0])[0, 32],
    "a negative index": lambda: filled(LAYOUTS[0])[-1],
    "a coordinate of another rank": lambda: filled(LAYOUTS[0])[1, 2, 3],
    "a Python slice": lambda: filled(LAYOUTS[0])[1:2, 0],
    "a store of another shape": lambda: filled(LAYOUTS[0]).store(numpy.zeros((3, 8))),
    "two values for one element": lambda: filled(LAYOUTS[3]).store(numpy.arange(32).reshape(4, 8)),
    "sizes that differ": lambda: copy(filled(Layout(4)), filled(Layout(5))),
    "no data": lambda: make_counting_tensor(Layout(4)).load(),
    "a layout as a tensor": lambda: copy(Layout(4), filled(Layout(4))),
    "a divide of no tensor": lambda: zipped_divide(numpy.zeros(4), 2),
    "a slice of a tensor by name": lambda: slice_((None, 1), filled(LAYOUTS[0])),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_tensor_can_do_is_refused(name):
    with pytest.raises(LayoutError):
        REFUSED[name]()


@pytest.mark.parametrize("name", ["numpy", "torch"])
def test_a_store_takes_the_extents_of_load_or_one_value(name):
    library = pytest.importorskip(name)
    tensor = make_tensor(library.zeros(32), Layout((4, (2, 4)), (8, (4, 1))))
    for shape in [(), (1,), (8,), (4, 1), (1, 8), (32,), (4, 2, 4), (1, 4, 8), (4, 8)]:
        values = library.ones(shape)
        if shape in ((), tuple(tensor.load().shape)):
            tensor.fill(0)
            tensor.store(values)
            assert tensor.data.tolist() == [1] * 32
        else:
            with pytest.raises(LayoutError, match=r"array of the extents \(.*\(4, 8\)"):
                tensor.store(values)


def read_only(array):
    array.flags.writeable = False
    return array


#: Data that cannot be written, by what the error says of it.
NOT_WRITABLE = [
    ("read-only", lambda: read_only(numpy.zeros(4))),
    ("read-only", lambda: read_only(numpy.zeros((2, 2)))),
    ("requires grad", lambda: pytest.importorskip("torch").zeros(4, requires_grad=True)),
    ("requires grad", lambda: pytest.importorskip("torch").zeros((2, 2), requires_grad=True)),
]

WRITES = {
    "fill": lambda tensor: tensor.fill(1),
    "store": lambda tensor: tensor.store(tensor.load() + 1),
    "an element": lambda tensor: tensor.__setitem__(0, 1),
    "a copy": lambda tensor: copy(filled(tensor.layout), tensor),
}


@pytest.mark.parametrize(("why", "data"), NOT_WRITABLE)
@pytest.mark.parametrize("name", WRITES)
def test_data_that_cannot_be_written_is_refused_as_that(why, data, name):
    tensor = make_tensor(data())
    with pytest.raises(LayoutError, match=f"needs data that can be written: .*{why}"):
        WRITES[name](tensor)
    assert tensor.data.tolist() == [0, 0, 0, 0]


def test_what_torch_writes_under_autograd_is_written():
    torch = pytest.importorskip("torch")
    leaf = torch.ones(4, requires_grad=True)
    result = leaf * 2
    tensor = make_tensor(result)
    tensor[0] = 7
    tensor.store(tensor.load() + 1)
    result.sum().backward()
    assert leaf.grad.tolist() == [0, 2, 2, 2]
    with torch.no_grad():
        make_tensor(leaf).fill(5)
    assert leaf.tolist() == [5, 5, 5, 5]


def test_a_tensor_is_said_to_be_sliced_as_a_tensor():
    with pytest.raises(LayoutError, match=r"is a tensor: slice it as tensor\[None, 3\]"):
        slice_((None, 1), filled(LAYOUTS[0]))


@pytest.mark.parametrize("pred", [numpy.ones((2, 2), bool), make_identity_tensor((2, 2)), 1, "x"])
def test_a_predicate_is_a_tensor_of_bools(pred):
    src, dst = filled(Layout((2, 2))), make_rmem_tensor((2, 2), numpy.int64)
    for wrong in (pred, make_tensor(numpy.ones((2, 2), int))):
        with pytest.raises(LayoutError, match=r"(?s)pred is .* and must be a tensor of bools"):
            copy(src, dst, pred=wrong)
    assert not dst.data.any()


#: Types of elements, by library, and three values that they have.
TYPES = [
    *(("torch", name, (0.5, -2.0, 1.0)) for name in ("float8_e4m3fn", "float8_e5m2", "bfloat16")),
    *(("torch", name, (True, False, True)) for name in ("bool",)),
    *(("torch", name, (3, 2, 1)) for name in ("uint8", "int64", "complex64")),
    ("numpy", "<U3", ("abc", "b", "")),
    ("numpy", "datetime64[D]", ("2026-01-02", "2026-01-03", "2026-01-04")),
    ("numpy", "i4,f4", ((1, 2.0), (3, 4.0), (5, 6.0))),
    ("numpy", "O", (None, "a", 1)),
]


@pytest.mark.parametrize(("name", "dtype", "values"), TYPES)
def test_elements_of_every_type_are_copied(name, dtype, values):
    library = pytest.importorskip(name)
    if name == "torch":
        data = library.tensor(values).to(getattr(library, dtype))
    else:
        data = library.array([*values], dtype)
    src, dst = make_tensor(data), make_tensor(data[[1, 2, 0]])
    copy(src, dst)
    dst[1] = data[1]
    assert dst.data.tolist() == data.tolist()


@pytest.mark.parametrize("dtype", ["uint16", "uint32", "uint64", "float8_e8m0fnu"])
def test_elements_that_torch_cannot_set_are_refused(dtype):
    torch = pytest.importorskip("torch")
    tensor = make_tensor(torch.zeros(4).to(getattr(torch, dtype)))
    for write in (lambda: tensor.fill(1), lambda: tensor.__setitem__(0, 1)):
        with pytest.raises(LayoutError, match="needs elements that torch can set"):
            write()


@pytest.mark.parametrize("name", ["numpy", "torch"])
def test_what_would_wrap_around_is_refused_whatever_holds_it(name):
    library = pytest.importorskip(name)
    unsigned = make_tensor(library.zeros(4, dtype=library.uint8))
    signed = make_tensor(library.zeros(4, dtype=library.int8))
    of_one = [lambda x: x, numpy.int64, library.asarray]
    for tensor, value in ((unsigned, -3), (signed, 255)):
        for made in (*(of(value) for of in of_one), library.full((4,), value)):
            with pytest.raises(LayoutError, match="elements cannot be"):
                tensor.fill(made)
        with pytest.raises(LayoutError, match="elements cannot be"):
            tensor[0] = value
        assert tensor.data.tolist() == [0] * 4


@pytest.mark.parametrize("value", ["abcd", 1])
def test_a_string_that_would_be_cut_or_made_is_refused(value):
    tensor = make_tensor(numpy.array(["abc", "b"]))
    with pytest.raises(LayoutError, match="elements cannot be these values"):
        tensor[0] = value
    assert tensor.data.tolist() == ["abc", "b"]


@pytest.mark.parametrize("name", ["numpy", "torch"])
@pytest.mark.parametrize(
    "value", [300, -129, 1 << 70, "x", None, 1.5, numpy.nan, numpy.int64(300), numpy.array(300)]
)
def test_a_value_that_no_element_can_hold_is_refused(name, value):
    library = pytest.importorskip(name)
    tensor = make_tensor(library.zeros(4, dtype=library.int8))
    for write in (tensor.fill, tensor.store, lambda value: tensor.__setitem__(2, value)):
        with pytest.raises(LayoutError, match="elements cannot be"):
            write(value)
    assert tensor.data.tolist() == [0, 0, 0, 0]


def test_a_refused_store_changes_nothing():
    tensor = filled(LAYOUTS[3])
    with pytest.raises(LayoutError, match="several values"):
        tensor.store(numpy.arange(32).reshape(4, 8))
    assert tensor.data.tolist() == list(range(8))
    tensor.store(numpy.arange(8) + 100 + numpy.zeros((4, 1), int))
    assert tensor.data.tolist() == list(range(100, 108))


@pytest.mark.parametrize("name", ["numpy", "torch"])
def test_an_element_takes_one_value_and_nan_is_one(name):
    library = pytest.importorskip(name)
    for first in itertools.product((numpy.nan, 0.0, 1.0), repeat=2):
        for second in itertools.product((numpy.nan, 0.0, 1.0), repeat=2):
            tensor = make_tensor(library.full((2,), 7.0), Layout((2, 2), (0, 1)))
            values = library.asarray([first, second])
            if str(first) == str(second):
                tensor.store(values)
                assert str(tensor.data.tolist()) == str([*first])
            else:
                with pytest.raises(LayoutError, match="several values"):
                    tensor.store(values)
                assert tensor.data.tolist() == [7.0, 7.0]


def test_a_fragment_has_a_register_for_each_value_though_strides_are_equal():
    """The DSL gives both modes of stride 1 the stride 4, so that registers would be shared."""
    layout = make_fragment_like(Layout(((2, 2), 4, 2), ((3, 16), 1, 1)))
    assert layout == Layout(((2, 2), 4, 2), ((1, 2), 4, 16))


def test_tensors_compare_by_identity_and_can_be_hashed():
    a, b = filled(LAYOUTS[0]), filled(LAYOUTS[0])
    assert a == a
    assert a != b
    assert len({a, b}) == 2


def test_a_value_that_equals_nothing_is_stored():
    tensor = make_tensor(numpy.zeros(2, object))
    tensor.fill(float("nan"))
    assert all(each != each for each in tensor.data)


def test_a_fraction_that_fp32_loses_is_refused():
    torch = pytest.importorskip("torch")
    with pytest.raises(LayoutError, match="cannot be these values"):
        make_tensor(torch.zeros(2, dtype=torch.int32)).fill(3.0000000001)
