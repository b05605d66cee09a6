"""One thread at a time uses the DSL's compiler: in threads, in processes, across a fork."""

import subprocess
import sys
from pathlib import Path

import pytest

from cutedsl_gemm.kernels.compile import cache

ROOT = Path(__file__).parents[3]


def test_every_compile_goes_through_compile_kernel():
    compiling = {
        str(file.relative_to(ROOT))
        for package in ("kernels", "cutedsl_gemm", "layouts", "bench")
        for file in (ROOT / package).rglob("*.py")
        if "cute.compile(" in file.read_text()
    }
    assert compiling == {"kernels/device/compiler.py"}


FORKED = """
import os, threading, time
from cutedsl_gemm.kernels.device.compiler import DSL_LOCK

def compile():
    with DSL_LOCK:
        held.set()
        time.sleep(0.2)
        done.append(True)

held, done = threading.Event(), []
threading.Thread(target=compile).start()
held.wait()
child = os.fork()  # waits until no thread compiles
assert done
other = threading.Thread(target=compile)
other.start()
other.join(10)
assert len(done) == 2, "the lock is still held"
if child:
    assert os.waitpid(child, 0)[1] == 0
"""


def test_a_fork_waits_for_the_compile_and_the_child_may_compile():
    subprocess.run([sys.executable, "-c", FORKED], check=True, timeout=60)


MANY = """
import os, sys, threading
sys.modules["torch"] = None  # TVM-FFI would import it, for 2 s
from concurrent.futures import ThreadPoolExecutor
from cutedsl_gemm.kernels.compile import build
from cutedsl_gemm.kernels.simt.rungs import coalesced, naive

MAJORS = ("K", "MN"), ("K", "K"), ("MN", "K")
PLANS = [rung(*majors) for rung in (coalesced, naive) for majors in MAJORS]
compiling, compile_plan = threading.Event(), build.compile_plan

def counted(*plan):
    os.write(1, b"compiled\\n")
    compiling.set()
    return compile_plan(*plan)

def ask(first):
    for plan in PLANS[first:] + PLANS[:first]:
        build.make(plan)

build.compile_plan = counted
early = ThreadPoolExecutor(3)
asked = early.map(ask, range(3))
compiling.wait()
child = os.fork()
late = ThreadPoolExecutor(3)
list(late.map(ask, range(3, 6)))
if child == 0:
    os._exit(0)
list(asked)
raise SystemExit(os.waitpid(child, 0)[1])
"""


@pytest.mark.slow
def test_plans_compile_in_many_threads_and_processes_each_once(monkeypatch, tmp_path):
    """Six plans, nine threads of two processes, one cache folder; the fork is during a compile."""
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path))
    run = subprocess.run([sys.executable, "-c", MANY], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr[-3000:]
    assert run.stdout.split() == ["compiled"] * 6
    assert len([*tmp_path.glob("*.so")]) == 6
