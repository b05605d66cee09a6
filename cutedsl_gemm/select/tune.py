"""The fastest plan for a problem on this GPU: measured once, then stored on disk.

The model's best candidates take part, the first two with other rasters as well. The winner is
stored in `tuned-<release>.json` in the cache folder:

    {"NVIDIA H100 80GB HBM3": {
        "4096×4096×64 bfloat16 K-K rows 128/128/128": {"plan": …, "group": 8, "of": "rows"}}}

Another release of the kernels measures again. Only calls with tune=True read the file: the plan of
a plain gemm(a, b) does not depend on what a machine has measured.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

from cutedsl_gemm.inputs.problem import Problem
from cutedsl_gemm.kernels.compile import build, cache
from cutedsl_gemm.kernels.compile.progress import bar
from cutedsl_gemm.kernels.epilogue.expression import PLAIN, Epilogue
from cutedsl_gemm.kernels.plan.checks import PER_VECTOR, PlanError
from cutedsl_gemm.kernels.plan.raster import Raster
from cutedsl_gemm.kernels.sm90.plan import Sm90Plan
from cutedsl_gemm.select.candidate import ALL_CANDIDATES, Candidate, distinct
from cutedsl_gemm.select.costs import ALIGNMENTS
from cutedsl_gemm.select.model import possible, row_alignments
from cutedsl_gemm.select.timing import Launch, race

Entry: TypeAlias = tuple[Candidate, Raster]

ENTRIES = 12  # of a race
OWN, WITH_ALL_RASTERS = 6, 2  # of them: the best by the model; those that run with all rasters
_unstored: dict[tuple[str, str], Any] = {}  # winners by device and shape, if no file takes them
RASTERS = Raster(1), Raster(4), Raster(8), Raster(4, "columns")


def tuned(problem: Problem, device: str, launch: Callable[[Sm90Plan], Launch]) -> Sm90Plan:
    """The fastest plan on the device: the stored one, or the winner of a race.

    `launch(plan)` returns a launch of the plan's kernel. RuntimeError if a race would be needed
    during the capture of a CUDA graph.
    """
    winner = _stored(problem, device)
    if winner is None:
        if build.capturing():
            raise RuntimeError(
                "tune=True measures at the first call with a shape, which is not possible during "
                "the capture of a CUDA graph: call gemm once before the capture"
            )
        winner = _fastest(problem, launch)
        _store(problem, device, winner)
    return _plan(problem, winner)


def entries(problem: Problem) -> list[Entry]:
    """The plans of a race: the model's best candidates, and its first two with all rasters."""
    ranked = [found.candidate for found in islice(possible(problem), ENTRIES)]
    own = [(candidate, candidate.raster(problem)) for candidate in ranked]
    whole = [candidate for candidate in ranked[:WITH_ALL_RASTERS] if candidate.splits == 1]
    others = [(candidate, raster) for candidate in whole for raster in RASTERS]
    return list(dict.fromkeys([*own[:OWN], *others, *own[OWN:]]))[:ENTRIES]


def _plan(problem: Problem, entry: Entry) -> Sm90Plan:
    candidate, raster = entry
    return candidate.plan(problem, raster)


def _fastest(problem: Problem, launch: Callable[[Sm90Plan], Launch]) -> Entry:
    running = entries(problem)
    launches: list[Launch] = []
    with bar(f"measuring {len(running)} plans of {_shape(problem)}") as report:
        for entry in running:
            launches.append(launch(_plan(problem, entry)))
            launches[-1]()  # compiles and loads the kernel
            report(0.8 * len(launches) / len(running))
        times = race(launches, lambda share: report(0.8 + 0.2 * share))
    return min(zip(times, running, strict=True), key=lambda found: found[0])[1]


def _stored(problem: Problem, device: str) -> Entry | None:
    shape = _shape(problem)
    try:
        found = _unstored.get((device, shape)) or _read(_file())[device][shape]
        candidate = next(each for each in distinct(ALL_CANDIDATES) if each.name == found["plan"])
        entry = candidate, Raster(found["group"], found["of"])
        _plan(problem, entry)
    except (cache.CacheError, KeyError, StopIteration, TypeError, PlanError):
        # there is none, or one that no longer exists
        return None
    return entry


def _store(problem: Problem, device: str, winner: Entry) -> None:
    """Add the winner to the file; if that cannot be written, only this process knows it."""
    candidate, raster = winner
    shape, found = _shape(problem), {"plan": candidate.name, "group": raster.group, "of": raster.of}
    try:
        file = _file()
        with cache.lock(file.stem):
            known = _read(file)
            known.setdefault(device, {})[shape] = found
            draft = file.with_suffix(".draft")
            draft.write_text(json.dumps(known, ensure_ascii=False, indent=1), encoding="utf-8")
            draft.replace(file)
    except cache.CacheError as error:
        cache.warn(error, "each process measures for itself")
        _unstored[device, shape] = found


def _file() -> Path:
    return cache.folder() / f"tuned-{build.release()[:16]}.json"


def _read(file: Path) -> dict[str, Any]:
    """The entries of the file, by device; none if the file is missing or damaged."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    shapes = found.items() if isinstance(found, dict) else ()
    return {device: known for device, known in shapes if isinstance(known, dict)}


def _shape(problem: Problem) -> str:
    """What the model knows of the problem: its entry in the file."""
    rows = "/".join(str(ALIGNMENTS[at]) for at in row_alignments(problem))
    of_c = "" if problem.c_alignment == PER_VECTOR else f" C at {problem.c_alignment}"
    invariant = " invariant" if problem.invariant else ""
    fused = "" if problem.epilogue is PLAIN else f" epilogue {_digest(problem.epilogue)}"
    kind = f"{problem.dtype} {'-'.join(problem.majors)} rows {rows}{of_c}{invariant}{fused}"
    return f"{'×'.join(map(str, problem.mnk))} {kind}"


def _digest(epilogue: Epilogue) -> str:
    return hashlib.sha256(repr(epilogue).encode()).hexdigest()[:16]
