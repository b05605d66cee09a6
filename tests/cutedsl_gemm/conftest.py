"""What the tests of calls share."""

from types import SimpleNamespace

import pytest


@pytest.fixture
def small_tiles(monkeypatch):
    """gemm chooses small tiles, which the executor computes fast: the plan does not matter here."""
    from cutedsl_gemm.calls import call, fused
    from cutedsl_gemm.kernels.sm90.rungs import pingpong
    from cutedsl_gemm.select import choose
    from cutedsl_gemm.select.candidate import Candidate

    candidates = [Candidate(pingpong, tile) for tile in ((64, 16, 32), (64, 32, 32))]
    ranked = [SimpleNamespace(candidate=each) for each in candidates]
    monkeypatch.setattr(choose, "best", lambda problem: candidates[0])
    monkeypatch.setattr(choose, "ranking", lambda problem: ranked)
    for module in (call, fused):
        monkeypatch.setattr(module, "_calls", {})


@pytest.fixture
def executed(monkeypatch):
    """The sm90 plans that were executed."""
    from cutedsl_gemm.calls import call, fused
    from cutedsl_gemm.kernels.sm90.panel_plan import PanelPlan

    plans, execute = [], PanelPlan.execute

    def recorded(plan, *args, **kwargs):
        plans.append(plan)
        execute(plan, *args, **kwargs)

    monkeypatch.setattr(PanelPlan, "execute", recorded)
    for module in (call, fused):  # remembered calls have the former one
        monkeypatch.setattr(module, "_calls", {})
    return plans


@pytest.fixture
def one_rank():
    """A process group of this process alone."""
    import torch.distributed as dist

    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.fixture
def on_the_executor(monkeypatch):
    """Converted models run on gemm's executor, which is exact, and slow; short steps, too."""
    from cutedsl_gemm.models import faster, faster_mlp

    monkeypatch.setattr(faster, "LEAST_TRAINED", 0)
    monkeypatch.setattr(faster_mlp, "LEAST_TRAINED_FUSED", 0)
    monkeypatch.setattr(faster, "DEVICES", ("cpu", "cuda"))
    monkeypatch.setattr(faster, "_runs", {})
    monkeypatch.setattr(faster, "_trained", {})


@pytest.fixture
def undefined():
    """x → a copy of x, through which no gradient is defined."""
    import torch

    class Undefined(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            return None

    return Undefined.apply
