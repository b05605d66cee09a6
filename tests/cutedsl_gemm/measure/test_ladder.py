"""gemm(a, b, kernel=...): every rung by its name, and messages where a rung refuses."""

from itertools import product
from types import SimpleNamespace

import pytest
import torch

import cutedsl_gemm
from cutedsl_gemm import KERNELS, PlanError, gemm, plan_for
from cutedsl_gemm.measure import ladder
from cutedsl_gemm.select.registry import named

SIMT = [name for name in KERNELS if name.startswith("simt")]
any_rung = pytest.mark.parametrize("kernel", KERNELS)


def integers(kernel, rows, columns):
    dtype = named(kernel).requirements.dtypes[0]
    return torch.randint(-2, 3, (rows, columns)).to(dtype)


def test_the_ladder_is_in_order():
    assert cutedsl_gemm.KERNELS[:5] == (
        "simt_naive",
        "simt_coalesced",
        "simt_shared",
        "simt_block1d",
        "simt_block2d",
    )
    assert KERNELS[-1] == named(None).name == "sm90"


@pytest.mark.parametrize(
    ("capability", "smem_bytes", "expected"),
    [
        ((9, 0), 232_448, "sm90"),
        ((8, 0), 166_912, "sm80_wide"),
        ((8, 9), 101_376, "sm80_ahead"),
        ((10, 0), 232_448, "sm80_wide"),
        ((7, 0), 98_304, "sm90"),  # which says what it needs
    ],
    ids=str,
)
def test_a_card_before_hopper_gets_the_sm80_kernel(monkeypatch, capability, smem_bytes, expected):
    """The last rung whose shared memory the card has."""
    properties = SimpleNamespace(shared_memory_per_block_optin=smem_bytes)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: properties)
    assert named(None, torch.device("cuda", 0)).name == expected
    assert named("simt_naive", torch.device("cuda", 0)).name == "simt_naive"


def test_sm70_names_the_k_that_it_accepts():
    a, b = integers("sm70_volta884", 33, 8), integers("sm70_volta884", 8, 64)
    with pytest.raises(PlanError, match="K is 7: sm70_volta884 computes the residue of K first"):
        gemm(a[:, :7], b[:7], kernel="sm70_volta884")
    a = integers("sm70_volta884", 8, 40).mT[:33, :7]
    expected = (a.double() @ b[:7].double()).half()
    assert torch.equal(gemm(a, b[:7], kernel="sm70_volta884"), expected)


def made_up(name, milliseconds, size=4096):
    setting = "128×128×64", "bfloat16", "row", "column"
    return ladder.Measured("sm80", name, size, *setting, milliseconds, 1e-3, "a GPU", "2026-11-22")


ROWS = [made_up("torch.mm", 0.5), made_up("sm80_mma_k8", 2.0), made_up("sm80_mma", 1.0)]


def test_the_tables_are_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    ladder.plot({"simt": ROWS, "sm80": ROWS[:2]}, tmp_path / "ladder.svg")
    drawn = (tmp_path / "ladder.svg").read_text()
    assert drawn.startswith("<?xml")


def test_the_table_says_over_what_each_speed_up_is():
    assert ladder.markdown(ROWS).splitlines() == [
        "| kernel | ms | TFLOP/s | × the rung below | × the first rung | % of torch.mm |",
        "|---|---|---|---|---|---|",
        "| sm80_mma_k8 | 2.00 | 68.7 |  | 1.00 | 25.0 |",
        "| sm80_mma | 1.00 | 137 | 2.00 | 2.00 | 50.0 |",
        "| torch.mm | 0.500 | 275 |  | 4.00 | 100.0 |",
    ]


def test_the_default_is_a_choice_and_has_no_rung_below():
    rows = [made_up(name, 1.0) for name in ("torch.mm", "sm90_single", "sm90_pingpong", "sm90")]
    assert {here: lower.name for here, lower in ladder.below(rows).items()} == {
        "sm90_pingpong": "sm90_single"
    }


def test_what_is_written_is_read_again(tmp_path):
    families = {"sm80": ROWS}
    ladder.write(families, tmp_path / "ladder.csv")
    assert ladder.read(tmp_path / "ladder.csv") == families
    (tmp_path / "other.csv").write_text("M,N,K\n")
    with pytest.raises(ValueError, match=r"the header is \['M', 'N', 'K'\]; it must be \['family'"):
        ladder.read(tmp_path / "other.csv")


@any_rung
def test_every_rung_is_exact_on_integers(kernel):
    for m, n, k in ((520, 264, 136), (48, 128, 16)):
        a, b = integers(kernel, m, k), integers(kernel, k, n)
        truth = (a.double() @ b.double()).to(a.dtype)
        assert torch.equal(gemm(a, b, kernel=kernel), truth)
        column_major = torch.full((n, m), torch.nan, dtype=a.dtype).mT
        gemm(a.mT.contiguous().mT, b, kernel=kernel, out=column_major)
        assert torch.equal(column_major, truth)


@any_rung
def test_the_default_dtype_of_torch_does_not_matter(kernel):
    a, b = integers(kernel, 40, 32), integers(kernel, 32, 24)
    expected = gemm(a, b, kernel=kernel)
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.equal(gemm(a, b, kernel=kernel), expected)
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("kernel", SIMT[:-1])
def test_odd_shapes_need_no_alignment(kernel):
    a, b = integers(kernel, 33, 7), integers(kernel, 7, 65)
    assert torch.equal(gemm(a, b, kernel=kernel), a @ b)


def test_simt_block2d_names_its_alignment():
    a, b = integers("simt_block2d", 33, 7), integers("simt_block2d", 7, 64)
    with pytest.raises(ValueError, match=r"a: shape \(33, 7\).*simt_block2d needs .* 4 elements"):
        gemm(a, b, kernel="simt_block2d")
    wide = torch.randint(-2, 3, (33, 8)).float()
    assert torch.equal(gemm(wide[:, :7], b, kernel="simt_block2d"), wide[:, :7] @ b)


SM80 = [name for name in KERNELS if name.startswith("sm80")]


@pytest.mark.parametrize("orders", list(product(("row", "column"), repeat=2)), ids="-".join)
@pytest.mark.parametrize("unit", [4, 2])
@pytest.mark.parametrize("kernel", SM80)
def test_the_sm80_rungs_accept_alignments_of_8_and_4_bytes(kernel, unit, orders):
    m, n, k = 128 + unit, 256 + unit, 64 + unit  # in lines of their own length
    a, b = (
        integers(kernel, *shape) if order == "row" else integers(kernel, *shape[::-1]).mT
        for shape, order in zip(((m, k), (k, n)), orders, strict=True)
    )
    assert plan_for(a, b, kernel=kernel).alignment == unit
    expected = (a.float() @ b.float()).to(a.dtype)
    assert torch.equal(gemm(a, b, kernel=kernel), expected)
    out = integers(kernel, m, n)
    assert out.stride() == (n, 1)
    assert torch.equal(gemm(a, b, kernel=kernel, out=out), expected)


def test_the_narrowest_of_three_tensors_counts():
    a, b, out = integers("sm80_wide", 16, 64), integers("sm80_wide", 64, 24), torch.empty(16, 26)
    out = out.to(a.dtype)[:, :24]  # rows of 52 bytes
    assert torch.equal(gemm(a, b, kernel="sm80_wide", out=out), gemm(a, b))
    with pytest.raises(
        ValueError, match=r"a: shape \(16, 63\).*multiple of 2 elements \(4 bytes\)"
    ):
        gemm(integers("sm80_wide", 16, 63), b[:63], kernel="sm80_wide")


@any_rung
def test_gradients_use_the_same_rung(kernel):
    a, b = (integers(kernel, *shape).requires_grad_() for shape in ((16, 24), (24, 32)))
    gemm(a, b, kernel=kernel).sum().backward()
    ours = a.grad, b.grad
    a.grad = b.grad = None
    (a @ b).sum().backward()
    assert torch.equal(ours[0], a.grad)
    assert torch.equal(ours[1], b.grad)


def test_a_wrong_kernel_gets_a_message():
    a, b = integers("simt_naive", 8, 8), integers("simt_naive", 8, 8)
    with pytest.raises(ValueError, match="kernel is 'best': it must be one of simt_naive, "):
        gemm(a, b, kernel="best")
    with pytest.raises(ValueError, match="kernel is \\['simt_naive'\\]"):
        gemm(a, b, kernel=["simt_naive"])
    with pytest.raises(TypeError, match=r"a is torch.float32: it must be torch.bfloat16"):
        gemm(a, b)
    with pytest.raises(TypeError, match=r"a is torch.bfloat16: it must be torch.float32"):
        gemm(a.bfloat16(), b.bfloat16(), kernel="simt_naive")
    with pytest.raises(PlanError, match=r"has the fixed tile \(32, 32, 1\)"):
        gemm(a, b, tile=(128, 128, 64), kernel="simt_naive")


@any_rung
def test_plan_for_takes_every_rung(kernel):
    a, b = integers(kernel, 16, 16), integers(kernel, 16, 16)
    plan = plan_for(a, b, kernel=kernel)
    assert plan.explain()
    assert all(plan.proofs())
