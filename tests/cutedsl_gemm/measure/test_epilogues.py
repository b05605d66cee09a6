"""The layers that the bench of epilogues times, and what it shows; the measuring needs a GPU."""

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from rich.console import Console

from cutedsl_gemm.calls import fused
from cutedsl_gemm.layers import functions
from cutedsl_gemm.measure import epilogues, experts, layers
from cutedsl_gemm.measure.epilogues import CASES, Sample, markdown, read, table, write
from cutedsl_gemm.measure.layers import ALONE, COMPILED, EAGER, FUSED, LAYERS, PROVIDERS, QUACK
from cutedsl_gemm.measure.report import OURS

BY_NAME = {layer.name: layer for layer in LAYERS}
ALL = {**BY_NAME, **{f"{layer.name} of experts": layer for layer in experts.LAYERS}}
SMALL, OF_EXPERTS = (24, 64, 48), (3, 24, 64, 48)
SAMPLES = [
    Sample("addmm", (8448, 9216, 256), {ALONE: 70e-6, OURS: 77e-6, FUSED: 231e-6}),
    Sample("swiglu", (4096, 4096, 4096), dict.fromkeys((ALONE, OURS, EAGER), 2e-4)),
    Sample("addmm", (8, 512, 4096, 1024), dict.fromkeys((ALONE, OURS, EAGER), 1e-4)),
]


def shape_of(layer):
    return OF_EXPERTS if layer in experts.LAYERS else SMALL


def inputs_of(layer):
    torch.manual_seed(0)
    return layer.inputs(shape_of(layer), lambda *of: (torch.randn(of) / 4).to(torch.bfloat16))


@pytest.mark.parametrize("layer", ALL.values(), ids=list(ALL))
def test_all_providers_compute_the_same_layer(layer):
    x, weight, *operands = inputs_of(layer)
    expected = layer.torch(*(each.float() for each in (x, weight, *operands)))
    assert torch.allclose(layer.torch(x, weight, *operands).float(), expected, atol=0.1)
    assert torch.allclose(layer.ours(x, weight, *operands).float(), expected, atol=0.02)
    if layer.name == "addmm" and layer.cublas:
        assert torch.allclose(layer.cublas(x, weight, *operands).float(), expected, atol=0.1)


@pytest.mark.parametrize("layer", ALL.values(), ids=list(ALL))
def test_the_plans_compiled_ahead_are_those_that_run(layer, monkeypatch):
    ran = []
    monkeypatch.setattr(fused, "_calls", {})
    monkeypatch.setattr(functions, "_runs", {})
    monkeypatch.setattr(
        fused,
        "fused_runner",
        lambda kernel, plan, *rest: ran.append(plan) or (lambda *inputs: None),
    )
    layer.ours(*inputs_of(layer))
    _, planned = layer.plans(shape_of(layer))
    assert ran == [planned]
    assert repr(ran[0]) == repr(planned)


def test_every_layer_has_shapes_and_its_plans_are_few():
    for cases, its in ((CASES, LAYERS), (experts.CASES, experts.LAYERS)):
        assert {layer for layer, _ in cases} == {*its}
        assert all(n % 16 == 0 for _, (*_, n, _) in cases)
        assert len({plan for each in cases for plan in each[0].plans(each[1])}) <= 2 * len(cases)


def test_quack_reads_a_repacked_weight(monkeypatch):
    monkeypatch.setattr(layers, "_quack_activated", lambda name, config, x, weight: weight)
    weight = torch.arange(6)[:, None]
    assert layers._quack_swiglu(None, None, weight).flatten().tolist() == [0, 3, 1, 4, 2, 5]


def test_a_provider_that_is_not_installed_or_raises_is_left_out(monkeypatch, capsys):
    def fails(*inputs):
        raise RuntimeError("no compiler\nfor this machine")

    monkeypatch.setattr(layers, "find_spec", lambda name: None)
    monkeypatch.setattr(epilogues, "captured", lambda run, count: run)
    monkeypatch.setattr(torch, "compile", lambda function, dynamic: fails)
    layer = BY_NAME["bias"]
    assert [name for name, _ in epilogues._that_run(layer, inputs_of(layer))] == [
        ALONE,
        OURS,
        EAGER,
    ]
    assert "bias by torch.compile: RuntimeError: no compiler\n" in capsys.readouterr().err


def test_the_table_has_times_ratios_and_a_dash_for_who_lacks_the_layer(monkeypatch):
    monkeypatch.setattr(epilogues, "machine", lambda: "a machine")
    console = Console(width=200, record=True)
    console.print(table(SAMPLES))
    rows = [line for line in console.export_text().splitlines() if "│ " in line]
    first, second, of_experts = (
        [cell.strip() for cell in row.strip("│").split("│")] for row in rows
    )
    assert of_experts[:5] == ["addmm", "8", "512", "4096", "1024"]
    assert first == [
        "addmm",
        "",
        "8448",
        "9216",
        "256",
        "70.0",
        "77.0",
        "1.100",
        "—",
        "—",
        "231.0  3.00",
        "—",
        "—",
    ]
    assert second[5:9] == ["200.0", "200.0", "1.000", "200.0  1.00"]


def test_the_samples_are_written(tmp_path):
    write(SAMPLES, tmp_path / "table.csv")
    first, second, _ = csv.DictReader((tmp_path / "table.csv").read_text().splitlines())
    assert (first["layer"], first["K"], first["gemm, µs"], first["torch, µs"]) == (
        "addmm",
        "256",
        "77.00",
        "",
    )
    assert [*second][5:] == [f"{name}, µs" for name in PROVIDERS]
    assert all(second[f"{name}, µs"] == "" for name in (COMPILED, *QUACK))


def test_what_is_written_is_read(tmp_path):
    file = tmp_path / "epilogues.csv"
    write(SAMPLES, file)
    assert [(each.layer, each.shape) for each in read(file)] == [
        (each.layer, each.shape) for each in SAMPLES
    ]
    for found, sample in zip(read(file), SAMPLES, strict=True):
        assert found.seconds == pytest.approx(sample.seconds)
    assert markdown(read(file)) == markdown(SAMPLES)
    assert "| — |" in markdown(SAMPLES)  # a provider that lacks a layer


def test_a_table_is_written_and_read_in_utf_8_whatever_the_locale(tmp_path):
    code = (
        "from tests.cutedsl_gemm.measure.test_epilogues import *; from pathlib import Path\n"
        f"file = Path({str(tmp_path / 'file.csv')!r}); write(SAMPLES, file)\n"
        "assert read(file) == SAMPLES"
    )
    posix = {**os.environ, "LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    root = Path(__file__).parents[3]
    subprocess.run([sys.executable, "-c", code], env=posix, cwd=root, check=True)
