"""The precompiled kernels are those that gemm can choose."""

import functools
import os
import signal
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutedsl_gemm.inputs.problem import Problem
from cutedsl_gemm.kernels.compile import build, cache, library
from cutedsl_gemm.kernels.copies.plan import copy_plans
from cutedsl_gemm.select import precompile
from cutedsl_gemm.select.candidate import plans
from cutedsl_gemm.select.choose import choose
from cutedsl_gemm.select.model import ranking

extents = st.one_of(st.integers(1, 300), st.integers(1, 300).map(lambda x: 128 * x))
majors = st.tuples(*[st.sampled_from(["K", "MN"])] * 2)


@functools.cache
def precompiled():
    """The plans, made when first needed: it takes a second."""
    return frozenset(plans())


@given(extents, extents, extents, st.sampled_from(["bfloat16", "float16"]), majors)
def test_every_choice_is_precompiled(m, n, k, dtype, majors):
    problem = Problem.dense(m, n, k, dtype, majors)
    assert choose(problem) in precompiled()
    for found in ranking(problem):  # nor does another constant of the model leave them
        assert found.candidate.plan(problem) in precompiled()
    assert choose(replace(problem, invariant=True)) in precompiled()


def test_a_signal_to_terminate_ends_the_processes_too(monkeypatch, tmp_path):
    """Python would end at once, and leave them behind."""
    ended = []

    def compiled(plans):
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            return []
        finally:
            ended.append(True)

    monkeypatch.setenv(cache.VARIABLE, str(tmp_path))
    monkeypatch.setattr(precompile, "plans", list)
    monkeypatch.setattr(precompile, "compiled_with_bar", compiled)
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit, match=str(128 + signal.SIGTERM)):
        precompile.main(tmp_path)
    assert ended
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.slow
def test_a_folder_of_precompiled_kernels_serves_without_being_written(
    monkeypatch, tmp_path, capsys
):
    gemm, copy = min(precompiled(), key=repr), copy_plans()[0]
    some = [gemm, copy]
    monkeypatch.setenv(cache.VARIABLE, "elsewhere")
    monkeypatch.setattr(precompile, "plans", lambda: [gemm])
    monkeypatch.setattr(precompile, "copy_plans", lambda: [copy])
    precompile.main(tmp_path)
    assert capsys.readouterr().out.startswith("2 kernels, ")
    assert {*tmp_path.glob("*.so")} == {build.make(plan) for plan in some}
    before = {path.name for path in tmp_path.iterdir()}
    assert {path.suffix for path in tmp_path.iterdir()} == {".so"}  # neither locks nor drafts

    def refuse(*_, **__):
        raise OSError("read-only")

    monkeypatch.setattr("filelock.FileLock.acquire", refuse)
    assert all(callable(library.load(build.make(plan))) for plan in some)
    assert {path.name for path in tmp_path.iterdir()} == before
    with pytest.raises(cache.CacheError, match="cannot be written"):
        build.make(sorted(precompiled(), key=repr)[2])
