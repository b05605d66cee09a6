"""compute-sanitizer on the sm90 family and the copies, in processes of their own."""

import shutil
import sys
from pathlib import Path

import pytest
import sanitized
from on_gpu import run_apart

pytestmark = [pytest.mark.gpu, pytest.mark.compiles(plans=lambda: sanitized.every())]

SECONDS = 200  # of a run; a kernel that hangs is killed


def sanitize(tool, *arguments):
    """The exit status and the output of `sanitized.py` under a tool of compute-sanitizer.

    Each tensor has memory of its own, without torch's cache, and memcheck puts 64 KiB behind it
    that nobody may touch.
    """
    sanitizer = shutil.which("compute-sanitizer")
    if sanitizer is None:
        pytest.fail("compute-sanitizer is not on the PATH; it comes with the CUDA toolkit")
    return run_apart(
        *(sanitizer, "--tool", tool, "--error-exitcode", "9"),
        *("--report-api-errors", "no"),  # the DSL asks the driver for what it has not
        *(("--padding", "65536") if tool == "memcheck" else ()),
        *(sys.executable, Path(sanitized.__file__), *arguments),
        seconds=SECONDS,
        PYTORCH_NO_CUDA_MEMORY_CACHING="1",
    )


@pytest.mark.within(SECONDS + 40)
@pytest.mark.parametrize("what", [(), ("epilogues",)], ids=str)
@pytest.mark.parametrize("tool", ["memcheck", "racecheck", "synccheck"])
def test_the_sanitizer_finds_nothing(tool, what):
    status, output = sanitize(tool, *what)
    assert status == 0, output[-4000:]


@pytest.mark.within(SECONDS + 40)
def test_memcheck_finds_a_store_behind_the_memory_of_c():
    """Without this, a clean run would say little."""
    status, output = sanitize("memcheck", "planted")
    assert status == 9, output[-4000:]
    assert "Invalid __global__ write" in output
