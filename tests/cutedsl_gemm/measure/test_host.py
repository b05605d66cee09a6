"""The calls whose host time the bench measures; the measuring needs a GPU."""

import csv
from pathlib import Path

import torch
from torch import nn

from cutedsl_gemm.measure import host
from cutedsl_gemm.measure.host import CALLED, COLUMNS, CONVERTED, LINEAR, TORCH, Call


def test_all_providers_compute_the_same_layer():
    torch.manual_seed(0)
    layer, x = nn.Linear(16, 24).bfloat16(), torch.randn(1, 8, 16).bfloat16()
    results = [call() for call in host.calls(layer, x).values()]
    assert all(torch.allclose(each, results[0], atol=0.02) for each in results)


def test_a_call_takes_the_least_of_the_rounds_after_the_first(monkeypatch):
    clock = iter([0, 2, 10, 14, 20, 23])  # seconds: rounds of 2, 4 and 3
    monkeypatch.setattr(host, "ROUNDS", 2)
    monkeypatch.setattr(host, "CALLS", 1)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(host.time, "perf_counter", lambda: next(clock))
    assert host.microseconds({"run": lambda: None}) == {"run": 3e6}


def test_the_table_of_the_docs_is_the_benchs():
    head, *rows = csv.reader(Path("docs/performance/llama_host.csv").read_text().splitlines())
    assert head == [*COLUMNS]
    times = {TORCH: 20.0, CONVERTED: 15.0, LINEAR: 14.0}
    found = [Call(*each, times).cells for each in CALLED]
    assert [each[:3] for each in found] == [tuple(row[:3]) for row in rows]
    assert found[0][3:] == ("20.0", "15.0", "0.75", "14.0")
