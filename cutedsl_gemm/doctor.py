"""python -m cutedsl_gemm doctor: what is installed, what runs here and why not, how to fix it.

    part    torch, the driver, the cache, …    what was found, its fault, the command that fixes it
    use     gemm, bench, plots, …              runs if no part that it needs has a fault

The report is Markdown, to be pasted. Any package may be missing or broken, so that each is looked
up without being imported; the card is asked through its driver.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

from cutedsl_gemm.kernels.compile import cache, library, sass, versions
from cutedsl_gemm.kernels.device.cards import DriverError, driver
from layouts import __version__

ROOT = Path(__file__).resolve().parents[1]
CORE = {"numpy": "1.26", "sympy": "1.13"}  # the oldest that pyproject.toml allows
GPU = {
    "torch": "2.11",
    "apache-tvm-ffi": "0.1.15",
    "cuda-python": "12.8",
    "platformdirs": "4",
    "filelock": "4.1",
    "rich": "13",
}
VARIABLES = cache.VARIABLE, "CUDA_VISIBLE_DEVICES", "CUDA_HOME", "CUTE_DSL_ARCH", "PYTHONPATH"
OLDEST, HOPPER = (8, 0), (9, 0)  # compute capabilities: that have kernels, that sm90 is for

RUNNING = "torch", "numpy"
COMPILING = (
    *("torch", versions.DSL, "apache-tvm-ffi", "cuda-python", "linker"),
    *("platformdirs", "filelock"),  # of the cache
)
A_CARD = "driver", "card", "CUDA of torch"
USES: dict[str, tuple[str, ...]] = {  # and the parts that each needs
    "layouts": (),
    "layouts: arrays": ("numpy",),
    "layouts: symbols and their proofs": ("sympy",),
    "gemm of CPU tensors, explain, hierarchy": RUNNING,
    "gemm of CUDA tensors": (*RUNNING, *COMPILING, *A_CARD),
    "the sm90 kernels": (*RUNNING, *COMPILING, *A_CARD, "Hopper"),
    "kernels compiled for another machine: build": (*COMPILING, "cache"),
    "kernels kept on disk": ("cache",),
    "demo": (*RUNNING, "rich"),
    "demo: machine code": (*COMPILING, "cuobjdump", "nvdisasm"),
    "bench, ladder": (*RUNNING, *COMPILING, *A_CARD, "Hopper", "rich"),
    "bench: quack and Triton beside it": ("quack-kernels", "triton"),
    "bench --plot, ladder --plot": ("matplotlib",),
    "wavefronts": (*COMPILING, *A_CARD, "Hopper", "ncu"),
}

MISSING = "not installed"


class Part(NamedTuple):
    """What was found of a part; its fault, if it does not serve; the command that fixes it."""

    found: str
    fault: str = ""
    remedy: str = ""


def main() -> None:
    """Print the report."""
    print("\n".join(report(parts())))


def report(found: Mapping[str, Part]) -> Iterator[str]:
    """The lines of the report: the parts, the uses, the remedies."""
    yield from _table(["part", "found"], ([name, part.found] for name, part in found.items()))
    yield ""
    reasons = ((use, _faults({name: found[name] for name in needs})) for use, needs in USES.items())
    rows = ([use, "no" if reason else "yes", reason] for use, reason in reasons)
    yield from _table(["use", "runs here", "if not, why"], rows)
    remedies: dict[str, list[str]] = {}
    for name, part in found.items():
        if part.remedy:
            remedies.setdefault(part.remedy, []).append(name)
    if remedies:
        yield from ("", "To fix what can be fixed here:", "")
        yield from (f"    {command}  # {', '.join(names)}" for command, names in remedies.items())


def _faults(needed: Mapping[str, Part]) -> str:
    """What is wrong with the parts that a use needs: first those that are not installed."""
    missing = [name for name, part in needed.items() if part.found == MISSING]
    others = (part.fault for part in needed.values() if part.fault and part.found != MISSING)
    listed = [f"{MISSING}: {', '.join(missing)}"] if missing else []
    return "; ".join(dict.fromkeys((*listed, *others)))


def parts() -> dict[str, Part]:
    """All parts by name, in the order in which they are shown."""
    variables = [f"{name}={os.environ[name]}" for name in VARIABLES if name in os.environ]
    found = {
        "cutedsl_gemm": Part(f"{__version__}{_commit()}, in {ROOT}"),
        "Python": Part(f"{platform.python_version()}, {sys.executable}"),
        "system": Part(f"{platform.platform()}, {os.cpu_count()} cores"),
        "variables": Part(", ".join(variables) or "none is set"),
    }
    for name, oldest in GPU.items():
        found[name] = _package(name, oldest, versions.installation())
    found[versions.DSL] = _dsl()
    for name in (*CORE, "matplotlib"):
        found[name] = _package(name, CORE.get(name, "0"), f"pip install {name}")
    for name in ("triton", "quack-kernels"):  # for a comparison, on a card
        found[name] = _package(name, "0", "")
    if not found["torch"].fault:
        found["torch"] = _imported("torch", found["torch"])
    found |= _cards(found["torch"])
    found["linker"] = _executable("apt-get install binutils", "ld", "ld.lld")
    for tool in ("cuobjdump", "nvdisasm"):
        found[tool] = _tool(tool)
    found["ncu"] = _executable("", "ncu")
    found["cache"] = _cache()
    return found


def _package(name: str, oldest: str, remedy: str) -> Part:
    try:
        installed = version(name) or "?"
    except PackageNotFoundError:
        return Part(MISSING, f"{name} is {MISSING}", remedy)
    if _numbers(installed) < _numbers(oldest):
        return Part(installed, f"{name} {installed} must be at least {oldest}", remedy)
    return Part(installed)


def _numbers(text: str) -> list[int]:
    """The numbers with which a version begins.

    >>> _numbers("2.13.0+cpu") >= _numbers("2.11"), _numbers("2.9.1") >= _numbers("2.11")
    (True, False)
    """
    numbers: list[int] = []
    for part in text.partition("+")[0].split("."):
        if not part.isdecimal():
            break
        numbers.append(int(part))
    return numbers


def _dsl() -> Part:
    installed = versions.parts()
    if not installed:
        return _package(versions.DSL, "0", versions.installation())
    listed = ", ".join(f"{name.removeprefix(versions.DSL)} {installed[name]}" for name in installed)
    try:
        versions.check()
        library.load_runtime()
    except (versions.VersionError, OSError) as error:
        return Part(listed.strip(), str(error), versions.repair())
    return Part(listed.strip())


def _cards(torch: Part) -> dict[str, Part]:
    """The driver, the cards that run a kernel, those that run the sm90 kernels, torch's CUDA."""
    try:
        found = driver()
    except DriverError as error:
        none = Part("none", str(error))
        return {"driver": none, "card": none, "Hopper": none, "CUDA of torch": _cuda(torch, False)}
    cards = "; ".join(
        f"{card.name}, compute capability {_dotted(card.capability)}, "
        f"{card.multiprocessors} multiprocessors"
        for card in found.cards
    )
    capabilities = [card.capability for card in found.cards]
    older = "" if max(capabilities, default=OLDEST) >= OLDEST else "kernels need 8.0 or later"
    hopper = "" if HOPPER in capabilities else "no card of compute capability 9.0, a Hopper"
    return {
        "driver": Part(f"{found.release}, runs CUDA {_dotted(found.cuda)}"),
        "card": Part(cards or "none", older if cards else "the driver shows no card"),
        "Hopper": Part("yes" if not hopper else "no", hopper),
        "CUDA of torch": _cuda(torch, True),
    }


def _dotted(numbers: tuple[int, int]) -> str:
    return ".".join(map(str, numbers))


def _cuda(torch: Part, driven: bool) -> Part:
    """The CUDA for which torch is built, and whether it finds the cards of the driver."""
    if torch.fault:
        return Part("unknown")  # whatever needs it needs torch
    module = import_module("torch")
    built = module.version.cuda or "none"
    if not driven:
        return Part(built)
    if built == "none":
        fault = f"torch {torch.found} is built without CUDA"
        return Part(built, fault, "pip install --force-reinstall torch")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        reached = module.cuda.is_available()
    if reached:
        return Part(built)
    reason = "".join(f": {warning.message}" for warning in told[:1])
    return Part(built, f"torch, built for CUDA {built}, finds no card{reason}")


def _imported(name: str, part: Part) -> Part:
    """A part that is installed; with a fault if it cannot be imported."""
    try:
        import_module(name)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}".partition("\n")[0]
        remedy = f"pip install --force-reinstall {name}"
        return Part(part.found, f"{name} {part.found} cannot be imported ({reason})", remedy)
    return part


def _executable(remedy: str, *names: str) -> Part:
    """The first of the executables that is on the PATH."""
    found = next(filter(None, map(shutil.which, names)), None)
    return Part(found) if found else Part("none", f"{names[0]} is not on the PATH", remedy)


def _tool(name: str) -> Part:
    try:
        return Part(str(sass.tool(name)))
    except sass.ToolError:
        return Part("none", f"{name} was not found", versions.installation())


def _cache() -> Part:
    """The folder of compiled kernels: what is in it, and whether it can be written."""
    try:
        held = [path.stat().st_size for path in cache.entries()]
        kernels = "1 kernel" if len(held) == 1 else f"{len(held)} kernels"
        found = f"{cache.folder()}: {kernels}, {sum(held) / 1e6:.1f} MB"
        cache.check()
    except ModuleNotFoundError as error:
        return Part("unknown", f"{error.name} is not installed", versions.installation())
    except cache.CacheError as error:
        remedy = f"export {cache.VARIABLE}=/a/folder/that/can/be/written"
        return Part(str(os.environ.get(cache.VARIABLE, "unusable")), str(error), remedy)
    return Part(found)


def _commit() -> str:
    """The commit of a checkout, as part of a sentence; nothing elsewhere."""
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        return ""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return f" at {done.stdout.strip()}" if done.returncode == 0 else ""


def _table(head: list[str], rows: Iterable[list[str]]) -> Iterator[str]:
    """A table of Markdown, with aligned columns except the last.

    >>> print(*_table(["part", "found"], [["torch", "2.13"], ["a|b", ""]]), sep="\\n")
    | part  | found |
    |-------|-------|
    | torch | 2.13 |
    | a\\|b  |  |
    """
    cells = [[" ".join(cell.replace("|", "\\|").split()) for cell in row] for row in (head, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    widths[-1] = len(head[-1])
    for number, row in enumerate(cells):
        padded = (cell.ljust(width) for cell, width in zip(row[:-1], widths, strict=False))
        yield f"| {' | '.join((*padded, row[-1]))} |"
        if number == 0:
            yield f"|{'|'.join('-' * (width + 2) for width in widths)}|"
