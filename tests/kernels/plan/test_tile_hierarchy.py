"""The hierarchy of every rung: tiles within each other, and loops within loops that give A · B."""

import functools
from math import prod

import pytest
import torch

from cutedsl_gemm import KERNELS
from cutedsl_gemm.kernels.plan.checks import PlanError
from cutedsl_gemm.kernels.plan.tile_hierarchy import gemm, nested
from cutedsl_gemm.measure.hierarchy import MNK, TILES, hierarchy_of, main
from layouts import size

of_every_rung = pytest.mark.parametrize("kernel", [None, *KERNELS])


@functools.cache  # many rungs have the same tiles
def multiplies(hierarchy):
    m, n, k = MNK
    a, b = torch.randint(-4, 5, (m, k)).float(), torch.randint(-4, 5, (k, n)).float()
    return torch.equal(gemm(hierarchy, a, b), a @ b)


@of_every_rung
def test_loops_within_loops_multiply(kernel):
    assert multiplies(hierarchy_of(kernel))


@of_every_rung
def test_tiles_lie_within_each_other(kernel):
    hierarchy = hierarchy_of(kernel)
    threads, values = map(size, hierarchy.outputs)
    for outer, inner in ((hierarchy.block, hierarchy.warp), (hierarchy.warp, hierarchy.thread)):
        assert all(o % i == 0 for o, i in zip(outer, inner, strict=True))
    assert prod(hierarchy.thread[:2]) == values
    assert prod(hierarchy.warp[:2]) == values * hierarchy.lanes
    assert prod(hierarchy.block[:2]) == values * threads


def test_tiles_are_cut_at_the_edges():
    a, b = torch.randint(-4, 5, (13, 7)).float(), torch.randint(-4, 5, (7, 37)).float()
    assert torch.equal(gemm(nested(*TILES), a, b), a @ b)


def test_tiles_that_do_not_divide_are_refused():
    with pytest.raises(PlanError, match=r"warp tile \(4, 8, 3\).*multiples of \(3, 4, 1\)"):
        nested((8, 32, 6), (4, 8, 3), (3, 4, 1))


def test_it_is_printed_and_drawn(tmp_path, capsys):
    main(hierarchy_of("simt_block1d"))
    assert "M, N, K = 48, 128, 12: equal to torch" in capsys.readouterr().out
    main(hierarchy_of(), tmp_path / "tiles.svg")
    assert (tmp_path / "tiles.svg").read_text().startswith("<svg")
