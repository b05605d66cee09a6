"""wgmma's descriptor addresses the elements where the layout puts them."""

import numpy as np
import pytest

from layouts import (
    ComposedLayout,
    Layout,
    LayoutError,
    Swizzle,
    WgmmaDescriptor,
    cosize,
    make_layout,
    size,
    tile_to_shape,
    wgmma_descriptor,
    wgmma_smem_atom,
)

S = Swizzle(3, 3, 3)


def half(swizzle, outer, offset=0):
    """A layout of 16-bit elements."""
    return ComposedLayout(swizzle, offset, outer, unit=16)


def stages(tile, count):
    """`count` consecutive copies of a tile."""
    return make_layout(*tile, Layout(count, cosize(tile)))


K_MAJOR = Layout((128, 64), (64, 1))
MN_MAJOR = Layout(((64, 2), 64), ((1, 4096), 64))
MN_MAJOR_WIDE = Layout(((64, 4), 64), ((1, 4096), 64))

CANONICAL = [  # layout, major, bytes of a swizzle row, leading and stride byte offset
    (half(S, K_MAJOR), "K", 128, 16, 1024),
    (half(S, Layout((64, 64), (64, 1))), "K", 128, 16, 1024),
    (half(S, Layout((256, (64, 2)), (64, (1, 16384)))), "K", 128, 16, 1024),
    (half(S, stages(K_MAJOR, 6)), "K", 128, 16, 1024),
    (
        half(S, Layout(((8, 16), (64, 1), (1, 6)), ((64, 512), (1, 0), (0, 8192)))),
        "K",
        128,
        16,
        1024,
    ),
    (half(S, MN_MAJOR), "MN", 128, 8192, 1024),
    (half(S, stages(MN_MAJOR_WIDE, 4)), "MN", 128, 8192, 1024),
    (half(S, Layout((64, 64), (1, 64))), "MN", 128, 0, 1024),
    (half(S, K_MAJOR, offset=8192), "K", 128, 16, 1024),
    (half(S, Layout((128, 48), (64, 1)), offset=8192 + 16), "K", 128, 16, 1024),
    (half(Swizzle(2, 3, 3), Layout((128, 32), (32, 1))), "K", 64, 16, 512),
    (half(Swizzle(1, 3, 3), Layout((128, 16), (16, 1))), "K", 32, 16, 256),
    (half(Swizzle(0, 3, 3), Layout(((8, 16), (8, 2)), ((8, 64), (1, 1024)))), "K", 16, 2048, 128),
    (half(Swizzle(2, 3, 3), Layout(((32, 4), 64), ((1, 2048), 32))), "MN", 64, 4096, 512),
    (half(Swizzle(1, 3, 3), Layout(((16, 4), 64), ((1, 1024), 16))), "MN", 32, 2048, 256),
    (half(Swizzle(0, 3, 3), Layout(((8, 16), (8, 2)), ((1, 64), (8, 1024)))), "MN", 16, 2048, 128),
    (ComposedLayout(Swizzle(3, 4, 3), 0, Layout((128, 128), (128, 1)), unit=8), "K", 128, 16, 1024),
    (ComposedLayout(Swizzle(3, 2, 3), 0, Layout((128, 32), (32, 1)), unit=32), "K", 128, 16, 1024),
]


@pytest.mark.parametrize(("layout", "major", "row", "leading", "stride"), CANONICAL, ids=str)
def test_the_descriptor_addresses_the_elements_of_the_layout(layout, major, row, leading, stride):
    descriptor = wgmma_descriptor(layout, major)
    assert descriptor == WgmmaDescriptor(major, row, leading, stride, layout.unit)
    element, instruction = layout.unit // 8, 256 // layout.unit
    mn, k = np.arange(size(layout, 0))[:, None], np.arange(instruction)
    for block in range(0, size(layout, 1), instruction):
        for stage in range(size(layout, 2) if len(layout) == 3 else 1):
            at = (stage,) if len(layout) == 3 else ()
            start = element * (layout.offset + layout.outer(0, block, *at))
            read = descriptor.address(start, mn, k)
            assert (read == element * layout(mn, block + k, *at)).all()


@pytest.mark.parametrize("major", ["K", "MN"])
def test_a_second_instruction_starts_64_rows_on(major):
    layout = half(S, K_MAJOR if major == "K" else MN_MAJOR)
    descriptor = wgmma_descriptor(layout, major)
    mn, k = np.arange(64)[:, None], np.arange(16)
    start = 2 * layout.outer(64, 32)
    assert (descriptor.address(start, mn, k) == 2 * layout(64 + mn, 32 + k)).all()


def test_starts_may_be_arrays():
    layout = half(S, stages(K_MAJOR, 3))
    starts = 2 * layout.outer(0, np.arange(0, 64, 16)[:, None], np.arange(3))
    read = wgmma_descriptor(layout, "K").address(starts[..., None], 5, np.arange(16))
    assert read[2, 1].tolist() == (2 * layout(5, 32 + np.arange(16), 1)).tolist()


@pytest.mark.parametrize(
    ("layout", "major", "words"),
    [
        (half(S, Layout((128, 64), (72, 1))), "K", "mode MN is 128:144 in bytes and must be"),
        (half(S, Layout((128, 128), (128, 1))), "K", "mode MN is 128:256 in bytes and must be"),
        (half(S, K_MAJOR), "MN", "not MN-major with a 128-byte swizzle: its mode MN is 128:128"),
        (half(S, MN_MAJOR), "K", "not K-major"),
        (half(S, Layout((128, 64), (1, 128))), "MN", "mode K is 16:256 in bytes and must be"),
        (half(Swizzle(3, 4, 3), K_MAJOR), "K", "S<3,5,3> on bytes.*the last is S<3,3,3>"),
        (half(Swizzle(3, 3, 4), K_MAJOR), "K", "S<3,4,4> on bytes; wgmma has"),
        (
            half(S, Layout((60, 64), (64, 1))),
            "K",
            "steps of 8 along MN and 16 along K; this one is 60 x 64",
        ),
        (half(S, Layout((128, 40), (64, 1))), "K", "steps of 8 along MN and 16 along K"),
        (half(S, Layout((32, 64), (1, 64))), "MN", "steps of 64 along MN"),
        (half(S, K_MAJOR, offset=64), "K", "starts at byte 128; .* multiple of 16 .* at most 96"),
        (half(S, K_MAJOR, offset=8), "K", "\\(3\\) of .* starts at byte 112; .* at most 96"),
        (half(S, K_MAJOR, offset=4), "K", "starts at byte 8; .* multiple of 16"),
        (half(S, MN_MAJOR, offset=16), "MN", "starts at byte 32; .* at most 0"),
        (half(S, stages(Layout((4, 64), (64, 1)), 2)), "K", "steps of 8"),
        (half(S, Layout((64, 64, 2), (64, 1, 4160))), "K", "starts at byte 8320"),
        (half(S, Layout(((8, 16), 64), ((64, 544), 1))), "K", "stride byte offset 1088 must be a"),
        (half(S, Layout((128, (8, 8)), (64, (1, 9)))), "K", "mode K"),
        (
            half(S, Layout((128, (3, 16)), (64, (1, 8)))),
            "K",
            "16 elements of K of one instruction are not a tile",
        ),
        (half(S, Layout(128)), "K", "has the modes"),
        (ComposedLayout(S, 0, K_MAJOR), "K", "give its unit"),
        (ComposedLayout(Swizzle(3, 4, 3), 0, K_MAJOR, unit=8), "MN", "but only 16 bits MN-major"),
        (ComposedLayout(Swizzle(3, 1, 3), 0, K_MAJOR, unit=64), "K", "8, 16 and 32 bits"),
        (K_MAJOR, "K", "is a Swizzle over a Layout"),
        (ComposedLayout(K_MAJOR, 0, Layout(8), unit=16), "K", "is a Swizzle over a Layout"),
        (half(S, K_MAJOR), "N", "major must be"),
    ],
    ids=str,
)
def test_layouts_that_wgmma_cannot_read_raise(layout, major, words):
    with pytest.raises(LayoutError, match=words):
        wgmma_descriptor(layout, major)


def test_fields_must_fit_their_bits():
    with pytest.raises(LayoutError, match="multiple of 16 bytes below 262144"):
        WgmmaDescriptor("K", 128, 16, 1 << 18, 16)
    with pytest.raises(LayoutError, match="multiple of 16 bytes"):
        WgmmaDescriptor("K", 128, 8, 1024, 16)
    with pytest.raises(LayoutError, match="swizzle_bytes 256: it must be one of 16, 32, 64, 128"):
        WgmmaDescriptor("K", 256, 16, 1024, 16)
    with pytest.raises(LayoutError, match="start 8"):
        WgmmaDescriptor("K", 128, 16, 1024, 16).encode(8)


def test_the_encoding_matches_cutlass():
    """Bits 0-13 start, 16-29 LBO, 32-45 SBO, 62-63 mode: 1, 2, 3 for 128, 64, 32 bytes."""
    assert WgmmaDescriptor("K", 128, 16, 1024, 16).encode(0) == 0x4000004000010000
    assert WgmmaDescriptor("K", 64, 16, 512, 16).encode(1 << 10) == 0x8000002000010040
    assert WgmmaDescriptor("MN", 32, 2048, 256, 16).encode(0) == 0xC000001000800000
    assert WgmmaDescriptor("K", 16, 2048, 128, 16).encode(0x3FFF0) == 0x0000000800803FFF


# ------------------------------------------------------------------------------- canonical tiles

ATOMS = [
    (major, row, unit) for major in ("K", "MN") for row in (16, 32, 64, 128) for unit in (8, 16, 32)
]


@pytest.mark.parametrize(("major", "row", "unit"), ATOMS, ids=str)
def test_tiles_of_the_canonical_atom_have_a_descriptor(major, row, unit):
    atom = wgmma_smem_atom(major, row, unit)
    shape = (256, 2048 // unit)  # at least two atoms in each direction
    tile = tile_to_shape(atom, shape)
    if major == "MN" and unit != 16:
        with pytest.raises(LayoutError, match="but only 16 bits MN-major"):
            wgmma_descriptor(tile, major)
        return
    descriptor = wgmma_descriptor(tile, major)
    assert (descriptor.swizzle_bytes, descriptor.unit) == (row, unit)
    element, count = unit // 8, 256 // unit
    mn, k = np.arange(size(tile[0]))[:, None], np.arange(count)
    for block in range(0, size(tile[1]), count):
        read = descriptor.address(element * tile.outer(0, block), mn, k)
        assert (read == element * tile(mn, block + k)).all()


def test_canonical_atoms_equal_the_dsl_s():
    """The DSL prints their swizzle on bytes, but strides that count elements."""
    cutlass, cute = pytest.importorskip("cutlass"), pytest.importorskip("cutlass.cute")
    from cutlass.cute.nvgpu import warpgroup

    kinds = {16: "INTER", 32: "SW32", 64: "SW64", 128: "SW128"}
    dtypes = {8: cutlass.Float8E4M3FN, 16: cutlass.BFloat16, 32: cutlass.TFloat32}
    found = {}

    @cute.jit
    def trace():
        for major, row, unit in ATOMS:
            kind = getattr(warpgroup.SmemLayoutAtomKind, f"{major}_{kinds[row]}")
            found[major, row, unit] = str(warpgroup.make_smem_layout_atom(kind, dtypes[unit]))

    cute.compile(trace, options="--gpu-arch sm_90a")
    for name in ATOMS:
        atom = wgmma_smem_atom(*name)
        on_bytes = atom.inner.recast(atom.unit, 8)
        assert f"{on_bytes} o 0 o {atom.outer}" == found[name]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("N", 128, 16), "major 'N'"),
        (("K", 48, 16), "swizzle_bytes 48"),
        (("K", "SW128", 16), "swizzle_bytes 'SW128'"),
        (("K", 128, 64), "unit 64"),
    ],
)
def test_an_argument_of_no_atom_is_named(arguments, named):
    with pytest.raises(LayoutError, match=f"^{named}: it must be one of "):
        wgmma_smem_atom(*arguments)
