"""The command line: an impossible request gets a message before anything is measured."""

import sys

import pytest

from cutedsl_gemm import __main__
from cutedsl_gemm.select.registry import KERNELS


def ask(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["cutedsl_gemm", *words])
    __main__.main()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["hierarchy", "foo"], "kernel is 'foo': it must be one of simt_naive"),
        (["hierarchy", "sm90", "--svg", "/nowhere/x.svg"], "must be a file in an existing folder"),
        (["build", "--folder", "/etc/hostname"], "/etc/hostname cannot be a folder"),
        (["build", "--folder", "/proc/nope"], "/proc/nope cannot be a folder"),
        (["bench", "--csv", "/nowhere/x.csv"], "must be a file in an existing folder"),
        (["bench", "--plot", "/tmp/plot.txt"], "must end in .svg, .png, .pdf"),
        (["ladder", "--plot", "/nowhere/p.svg"], "must be a file in an existing folder"),
        (["wavefronts", "--markdown", "/tmp"], "must be a file in an existing folder"),
        (["build", "--folder", "/proc"], "/proc cannot be a folder to write to"),
        (["wavefronts", "--markdown", "/proc/x.md"], "/proc/x.md cannot be written"),
        (["ladder", "--size", "100"], "100 must be a positive multiple of 8"),
        (["ladder", "--size", "0"], "0 must be a positive multiple of 8"),
        (["explain", "8", "8"], "the following arguments are required: K"),
        (["explain", "8", "8", "0"], "0 must be a positive integer"),
        (["explain", "8", "8", "8", "--tile", "7", "8", "64"], "tile"),
        (["explain", "8", "8", "8", "--kernel", "sm80_wide", "--pipeline"], "has no pipeline"),
        (["climb"], "invalid choice: 'climb'"),
    ],
)
def test_what_cannot_be_done_gets_a_message(monkeypatch, capsys, words, message):
    with pytest.raises(SystemExit) as ended:
        ask(monkeypatch, *words)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("command", ["bench", "ladder", "wavefronts"])
def test_without_a_gpu_nothing_is_measured(monkeypatch, capsys, command):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(SystemExit) as ended:
        ask(monkeypatch, command)
    assert ended.value.code == 2
    assert "needs a CUDA GPU; none was found" in capsys.readouterr().err


@pytest.mark.parametrize("kernel", [[], ["sm80_wide"], ["sm90"]])
def test_the_hierarchy_of_a_kernel_is_printed_and_drawn(monkeypatch, capsys, tmp_path, kernel):
    ask(monkeypatch, "hierarchy", *kernel, "--svg", str(tmp_path / "x.svg"))
    assert "equal to torch" in capsys.readouterr().out
    assert (tmp_path / "x.svg").read_text().startswith("<svg")
    assert not kernel or kernel[0] in KERNELS


def test_a_product_is_explained(monkeypatch, capsys):
    ask(monkeypatch, "explain", "512", "512", "512")
    assert "choice       pingpong" in capsys.readouterr().out
    ask(monkeypatch, "explain", "512", "512", "512", "--kernel", "sm80_wide")
    assert capsys.readouterr().out.startswith("kernel     sm80_wide")


@pytest.mark.parametrize("kernel", [[], ["--kernel", "sm90_split"], ["--kernel", "sm90_single"]])
def test_the_pipeline_of_a_plan_is_listed_and_decided(monkeypatch, capsys, kernel):
    ask(monkeypatch, "explain", "512", "512", "8192", "--pipeline", *kernel)
    printed = capsys.readouterr().out
    assert "TMA load A[k] → its stage" in printed
    assert "right        in every interleaving" in printed
