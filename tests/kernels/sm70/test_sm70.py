"""The sm70 rung: exact on the executor, conflict-free by the bank model, real HMMA.884 by ptxas."""

import re
import struct
import subprocess
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, files
from itertools import product
from pathlib import Path

import pytest

from cutedsl_gemm.kernels.compile import build
from cutedsl_gemm.kernels.plan.checks import PlanError
from cutedsl_gemm.kernels.plan.raster import Raster
from cutedsl_gemm.kernels.plan.tv_layout import TVLayout, load_layout
from cutedsl_gemm.kernels.sm70.plan import volta884
from cutedsl_gemm.kernels.sm80.operand import tile_smem
from layouts import QUAD_PAIRS, Layout, volta_mma, wavefronts
from tests.kernels.ladder import exact

MAJORS = list(product(("K", "MN"), repeat=2))
by_majors = pytest.mark.parametrize("majors", MAJORS, ids="-".join)
HMMA_884 = 0x236  # the low 12 bits of an instruction of sm_70
PTXAS = "nvidia-cuda-nvcc-cu12"  # 12.9, the last that knows sm_70


@by_majors
@pytest.mark.parametrize("mnk", [(520, 264, 136), (48, 128, 12), (1, 1, 1), (33, 65, 7)], ids=str)
def test_the_executor_is_exact_on_integers(majors, mnk):
    (m, n, k), plan = mnk, volta884("float16", *majors)
    assert exact(plan, m, n, k if majors == ("MN", "MN") else -(-k // 8) * 8)


def test_the_executor_refuses_a_residue_of_k_that_the_kernel_cannot_load():
    with pytest.raises(PlanError, match="K is 12: sm70_volta884 computes the residue of K first"):
        exact(volta884("float16", "MN", "K"), 48, 128, 12)


@by_majors
def test_every_element_has_one_place(majors):
    assert all(volta884("float16", *majors).proofs())


def test_the_accumulator_is_made_of_the_atoms():
    """Of a quad pair, a mma: rows and columns as PTX has them, in the rows that its lanes read."""
    plan, atom = volta884(), volta_mma("col", "row")
    for pair, thread, value in product(range(4), range(8), range(8)):
        lane = QUAD_PAIRS(thread, pair)
        place = atom.c(thread, value)
        row, column = place % 8, place // 8
        # The lane of the pair that reads these rows of A, and these columns of B: its values.
        m_lane, n_lane = QUAD_PAIRS(4 * (row // 4), pair), QUAD_PAIRS(4 * (column // 4), pair)
        low, middle, high = value % 2, value // 2 % 2, value // 4
        for half_m, load_m, half_n, load_n in product(range(2), repeat=4):
            value_of_c = (middle, half_m, load_m), (low, (half_n, high, load_n))
            flat = (middle + 2 * half_m + 4 * load_m, (low, half_n + 2 * high + 4 * load_n))
            m = plan.fragment_copies["A"].rows(m_lane, (0, (row % 4 + 4 * half_m, load_m)))
            n = plan.fragment_copies["B"].rows(n_lane, (0, (column % 4 + 4 * half_n, load_n)))
            assert (plan.c.rows(lane, flat), plan.c.columns(lane, flat)) == (m, n)
            register = value + 8 * (half_m + 2 * load_m + 4 * half_n + 8 * load_n)
            assert plan.fragment(value_of_c) == register


def addresses(smem, copy, value):
    """The byte addresses of a warp's lanes."""
    return [2 * smem(copy.rows(i, value), copy.columns(i, value)) for i in range(32)]


def test_permuted_shared_memory_has_no_conflicts():
    """32 lanes move 512 bytes, at best in four wavefronts."""
    plan = volta884("float16", "MN", "MN")
    for name, stage in (("A", plan.a), ("B", plan.b)):
        for load in range(2):
            read = plan.fragment_copies[name], (0, (0, load))
            assert wavefronts(addresses(stage.smem, *read), "ld.shared.v4.b32").count == 4
            assert wavefronts(addresses(stage.smem.outer, *read), "ld.shared.v4.b32").count > 4
        written = addresses(stage.smem, stage.copy, 0)
        assert wavefronts(written, "st.shared.v4.b32").count == 4


PLAN = volta884()
# As if the rows of two mma went between the two rows that a thread has of one.
TURNED = ((4, 2, 16), (0, 0))
ROWS = Layout(PLAN.c.rows.shape, (PLAN.c.rows.stride[0], TURNED))
WRONG = TVLayout(ROWS, PLAN.c.columns)
NARROW = load_layout(128, 32, "K", threads=64, width=4)
NARROW_B = replace(PLAN.b, copy=load_layout(64, 32, "MN", threads=64, width=4))
ALONG_K = tile_smem(128, 32, "K", padding=8)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dtype": "bfloat16"}, "dtype is bfloat16; this tensor core takes float16"),
        ({"stages": 1}, "stages is 1; it must be 2, since a k-tile and a step are loaded ahead"),
        ({"prefetch_fragments": False}, "prefetch_fragments is False; it must be True"),
        (
            {"raster": Raster(8)},
            "raster is groups of 8 .* it must be tile rows, one after the other",
        ),
        ({"a": replace(PLAN.a, smem=ALONG_K, mma_smem=ALONG_K)}, "along MN must be 16 contiguous"),
        (
            {"a": replace(PLAN.a, smem=tile_smem(128, 32, "MN"))},
            "A in shared memory .* are read",
        ),
        ({"a_major": "MN"}, "neighbours along memory, and A is MN-major"),
        ({"a": replace(PLAN.a, copy=NARROW), "b": NARROW_B}, "alignment is 4; it must be 8"),
        ({"tile": (128, 64, 16)}, "layout of A"),
        ({"warps": (1, 2)}, r"warps is \(1, 2\); it must be \(2, 1\)"),
        ({"step": (128, 64, 8)}, r"step is .* it must be \(128, 64, 4\), since each of two warps"),
        ({"fragment": Layout(PLAN.fragment.shape)}, "fragment is .* as mma.m8n8k4 leaves"),
        ({"accumulator": WRONG, "c": WRONG}, "accumulator is .* as mma.m8n8k4 leaves"),
        ({"c": WRONG}, "c is .* as mma.m8n8k4 leaves"),
    ],
)
def test_a_plan_altered_anywhere_is_refused(change, message):
    with pytest.raises(PlanError, match=message):
        replace(PLAN, **change).check()


@pytest.mark.parametrize(
    "change",
    [{"fragment": Layout(PLAN.fragment.shape)}, {"accumulator": WRONG, "c": WRONG}],
    ids="-".join,
)
def test_a_plan_that_contradicts_the_instruction_gives_a_wrong_answer(change):
    assert not exact(replace(PLAN, **change), 128, 64, 32)


def ptxas() -> Path:
    try:
        listed = files(PTXAS) or ()
    except PackageNotFoundError:
        pytest.skip(f"ptxas for sm_70 is not installed: pip install {PTXAS}")
    path = next(Path(file.locate()) for file in listed if file.name == "ptxas")
    path.chmod(0o755)
    return path


def opcodes(cubin: bytes) -> list[int]:
    """Of the code of a cubin, 16 bytes an instruction; nvdisasm 13 does not read sm_70."""
    table, (count,) = struct.unpack_from("<Q", cubin, 40)[0], struct.unpack_from("<H", cubin, 60)
    sections = [struct.unpack_from("<IIQQQQ", cubin, table + 64 * i) for i in range(count)]
    code = next((at, size) for _, kind, flags, _, at, size in sections if kind == 1 and flags & 4)
    return [
        struct.unpack_from("<Q", cubin, place)[0] & 0xFFF for place in range(code[0], sum(code), 16)
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    "majors",
    [
        ("K", "MN"),  # one of each: A is transposed on its way, and B is not
        pytest.param(("MN", "MN"), marks=pytest.mark.deep),
        pytest.param(("K", "K"), marks=pytest.mark.deep),
    ],
    ids="-".join,
)
def test_machine_code_for_a_volta(majors, tmp_path):
    """The DSL begins at sm_80: its PTX, without what came later, goes to an older ptxas."""
    build.compile_plan(volta884("float16", *majors), "sm_80", f"--keep-ptx --dump-dir {tmp_path}")
    (path,) = tmp_path.glob("*.ptx")
    ptx = path.read_text()
    assert not re.search(r"cp\.async|ldmatrix", ptx)
    assert "ld.shared.v4.b32" in ptx
    ptx = re.sub(r"\.target sm_80\b", ".target sm_70", ptx)
    ptx = re.sub(
        r"cvt\.rn\.f16x2\.f32\s+(%r\d+), (%\w+), (%\w+);",
        r"{ .reg .b16 low, high; cvt.rn.f16.f32 high, \2; cvt.rn.f16.f32 low, \3; "
        r"mov.b32 \1, {low, high}; }",
        ptx,
    )
    path.write_text(ptx)
    cubin = tmp_path / "volta.cubin"
    subprocess.run([ptxas(), "-arch=sm_70", path, "-o", cubin], check=True)
    # Four instructions a mma; sixteen mma a step, eight steps; in the loop, and after it.
    assert opcodes(cubin.read_bytes()).count(HMMA_884) == 4 * 16 * 8 * 2
