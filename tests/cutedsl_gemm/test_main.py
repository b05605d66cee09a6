"""The command line: an impossible request gets a message before anything is measured."""

import os
import re
import subprocess
import sys
from concurrent.futures.process import BrokenProcessPool
from importlib.metadata import version
from pathlib import Path

import pytest
import torch

from cutedsl_gemm import __main__, __version__, command_line, doctor
from cutedsl_gemm.kernels.compile import cache
from cutedsl_gemm.kernels.device.cards import Card, Driver
from cutedsl_gemm.select.registry import KERNELS

ROOT = Path(__file__).parents[2]


def ask(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["cutedsl_gemm", *words])
    __main__.main()


def refused(monkeypatch, *words):
    """The exit status of a command that does not run."""
    with pytest.raises(SystemExit) as ended:
        ask(monkeypatch, *words)
    return ended.value.code


def test_an_encoding_without_the_signs_is_not_an_error():
    command = [sys.executable, "-m", "cutedsl_gemm", "explain", "128", "128", "128"]
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=ROOT, env=environment
    )
    assert "A (128, 128) ? B (128, 128)" in done.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["hierarchy", "foo"], "kernel is 'foo': it must be one of simt_naive"),
        (["hierarchy", "sm90", "--svg", "/nowhere/x.svg"], "must be a file in an existing folder"),
        (["build", "--folder", "/etc/hostname"], "'/etc/hostname' cannot be a folder"),
        (["build", "--folder", "/proc/nope"], "'/proc/nope' cannot be a folder"),
        (["build", "--folder", ""], "'' must be the name of a folder"),
        (["build", "--folder", " "], "' ' must be the name of a folder"),
        (["bench", "--csv", "/nowhere/x.csv"], "must be a file in an existing folder"),
        (["bench", "--plot", "/tmp/plot.txt"], "must end in .svg, .png, .pdf"),
        (["ladder", "--csv", "/nowhere/x.csv"], "must be a file in an existing folder"),
        (["ladder", "--plot", "/nowhere/p.svg"], "must be a file in an existing folder"),
        (["wavefronts", "--markdown", "/tmp"], "must be a file in an existing folder"),
        (["build", "--folder", "/proc"], "'/proc' cannot be a folder to write to"),
        (["wavefronts", "--markdown", "/proc/x.md"], "'/proc/x.md' cannot be written"),
        (["wavefronts", "--markdown", "/proc/version"], "'/proc/version' cannot be written"),
        (["ladder", "--size", "100"], "'100' must be a multiple of 8, from 8 to 32768"),
        (["ladder", "--size", "0"], "'0' must be a multiple of 8, from 8 to 32768"),
        (["ladder", "--size", "32776"], "'32776' must be a multiple of 8, from 8 to 32768"),
        (["explain", "8", "8"], "the following arguments are required: K"),
        (["explain", "8", "8", "0"], "'0' must be a positive integer"),
        (["explain", "8", "8", "9" * 30], "M, N and K must be at most 2147483392, and one is 999"),
        (["explain", "8", "8", "8", "--dtype", "bfloat"], "did you mean bfloat16?"),
        (
            ["explain", "8", "8", "8", "--dtype", "float32"],
            "--dtype is float32: sm90 takes bfloat16 and float16",
        ),
        (["explain", "8", "8", "8", "--kernel", "sm80_wild"], "did you mean sm80_wide?"),
        (["explain", "8", "8", "8", "--tile", "7", "8", "64"], "tile"),
        (["explain", "8", "8", "8", "--kernel", "sm80_wide", "--pipeline"], "has no pipeline"),
        (["climb"], "invalid choice: 'climb'"),
        (["explian"], "did you mean explain?"),
        ([], "usage: python -m cutedsl_gemm [-h] [--version] COMMAND"),
    ],
)
def test_what_cannot_be_done_gets_a_message(monkeypatch, capsys, words, message):
    assert refused(monkeypatch, *words) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("output", "status", "message"),
    [
        (">/dev/full", 2, "explain: what it prints does not fit: No space left on device\n"),
        (">&-", 0, ""),
        ("| true", 0, ""),
    ],
)
def test_an_output_that_takes_nothing_gets_no_traceback(output, status, message):
    command = f"set -o pipefail; {sys.executable} -m cutedsl_gemm explain 128 128 128 {output}"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert (done.returncode, done.stderr) == (status, message)


def test_a_file_that_takes_nothing_is_not_blamed_on_the_output():
    command = [sys.executable, "-m", "cutedsl_gemm", "hierarchy", "sm80_mma", "--svg", "/dev/full"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    message = "hierarchy: what it writes does not fit: No space left on device\n"
    assert (done.returncode, done.stderr) == (2, message)
    assert "equal to torch" in done.stdout


def test_a_pipe_is_not_opened_before_it_is_written(tmp_path, monkeypatch):
    """Its reader would leave, and the writer would wait for another."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    monkeypatch.setattr(Path, "open", None)
    assert command_line.file(str(pipe)) == pipe


def test_products_over_several_gpus_are_not_measured_on_one(monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert refused(monkeypatch, "bench", "--shapes", "gathered") == 2
    assert "needs two GPUs or more, and torch sees 1" in capsys.readouterr().err


def test_the_version_is_that_of_the_library(monkeypatch, capsys):
    assert refused(monkeypatch, "--version") == 0
    assert capsys.readouterr().out == f"cutedsl_gemm {__version__}\n"


def bare(*words):
    """The command in a Python without packages."""
    command = [sys.executable, "-S", "-m", "cutedsl_gemm", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("words", [["demo"], ["explain", "8", "8", "8"], ["build"], ["bench"]])
def test_without_the_extras_a_command_says_what_to_install(words):
    done = bare(*words)
    wanted = f"{words[0]}: needs torch, which is not installed: pip install -e '.[gpu]'\n"
    assert (done.returncode, done.stderr) == (2, wanted)


def test_the_doctor_needs_no_package_and_says_what_runs_without_any():
    done = bare("doctor")
    assert (done.returncode, done.stderr) == (0, "")
    rows = dict(row.strip("| ").split("|", 1) for row in done.stdout.splitlines() if "|" in row)
    answers = {use.strip(): rest.split("|")[0].strip() for use, rest in rows.items()}
    assert answers["layouts"] == "yes"
    assert answers["layouts: arrays"] == answers["gemm of CPU tensors, explain, hierarchy"] == "no"
    assert re.search(r"\n    pip install -e '.\[gpu\]'  # torch, .*nvidia-cutlass", done.stdout)


def test_the_doctor_names_what_the_kernels_were_compiled_with(monkeypatch, capsys):
    ask(monkeypatch, "doctor")
    printed = capsys.readouterr().out
    assert re.search(rf"\| torch +\| {re.escape(version('torch'))} \|", printed)
    assert re.search(r"\| gemm of CPU tensors, explain, hierarchy +\| yes ", printed)


A100 = Card("NVIDIA A100-SXM4-80GB", (8, 0), 108)


@pytest.mark.parametrize(
    ("card", "card_fault", "hopper_fault"),
    [
        (Card("NVIDIA H100 80GB HBM3", (9, 0), 132), "", ""),
        (A100, "", "no card of compute capability 9.0, a Hopper"),
        (Card("Tesla T4", (7, 5), 40), "kernels need 8.0 or later", "no card of compute"),
        (None, "the driver shows no card", "no card of compute capability 9.0, a Hopper"),
    ],
)
def test_the_doctor_knows_which_kernels_a_card_runs(monkeypatch, card, card_fault, hopper_fault):
    cards = () if card is None else (card,)
    monkeypatch.setattr(doctor, "driver", lambda: Driver("570.86.15", (12, 8), cards))
    monkeypatch.setattr(torch.version, "cuda", "12.8")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: bool(cards))
    found = doctor.parts()
    assert found["card"].fault == card_fault
    assert found["Hopper"].fault.startswith(hopper_fault or "")
    assert bool(found["Hopper"].fault) == bool(hopper_fault)
    assert found["driver"].found == "570.86.15, runs CUDA 12.8"
    assert bool(found["CUDA of torch"].fault) == (card is None)


def test_the_doctor_tells_of_a_torch_that_has_no_cuda_beside_a_driver(monkeypatch):
    monkeypatch.setattr(doctor, "driver", lambda: Driver("570.86.15", (12, 8), (A100,)))
    monkeypatch.setattr(torch.version, "cuda", None)
    printed = "\n".join(doctor.report(doctor.parts()))
    assert re.search(r"gemm of CUDA tensors +\| no +\| torch \S+ is built without CUDA", printed)
    assert "    pip install --force-reinstall torch  # CUDA of torch" in printed


def test_the_doctors_oldest_versions_are_those_of_pyproject():
    text = (ROOT / "pyproject.toml").read_text()
    for name, oldest in (doctor.CORE | doctor.GPU).items():
        assert f'"{name}>={oldest}' in text


def test_ctrl_c_ends_a_command_with_one_line(monkeypatch, capsys):
    def interrupted(folder):
        raise KeyboardInterrupt

    monkeypatch.setattr("cutedsl_gemm.select.precompile.main", interrupted)
    assert refused(monkeypatch, "build") == 130
    assert capsys.readouterr().err.startswith("build: stopped; what is compiled is kept")


def test_a_compiler_that_was_killed_gets_a_message(monkeypatch, capsys):
    def killed(folder):
        raise BrokenProcessPool("terminated abruptly")

    monkeypatch.setattr("cutedsl_gemm.select.precompile.main", killed)
    assert refused(monkeypatch, "build") == 2
    assert "was killed, perhaps for lack of memory" in capsys.readouterr().err


def test_help_in_an_encoding_without_the_signs_is_not_an_error():
    command = [sys.executable, "-m", "cutedsl_gemm", "ladder", "--help"]
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    subprocess.run(command, capture_output=True, check=True, cwd=ROOT, env=environment)


def test_a_cache_folder_that_is_a_file_is_one_line(monkeypatch, capsys, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "file"))
    assert refused(monkeypatch, "build") == 2
    assert re.fullmatch(r"build: .*\(it is a file\); set .*\n", capsys.readouterr().err)


@pytest.mark.parametrize("command", ["bench", "ladder", "wavefronts"])
def test_without_a_gpu_nothing_is_measured(monkeypatch, capsys, command):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert refused(monkeypatch, command) == 2
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
    ask(monkeypatch, "explain", *["99999"] * 3, "--dtype", "float16", "--a-major", "m")
    printed = capsys.readouterr().out
    assert "float16" in printed
    assert "card         NVIDIA H100 SXM" in printed
    assert "MN-major" in printed


@pytest.mark.parametrize("kernel", [[], ["--kernel", "sm90_split"], ["--kernel", "sm90_single"]])
def test_the_pipeline_of_a_plan_is_listed_and_decided(monkeypatch, capsys, kernel):
    ask(monkeypatch, "explain", "512", "512", "8192", "--pipeline", *kernel)
    printed = capsys.readouterr().out
    assert "TMA load A[k] → its stage" in printed
    assert "right        in every interleaving" in printed
