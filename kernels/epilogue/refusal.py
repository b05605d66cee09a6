"""What an epilogue says to a function that it cannot follow: which line, what, what to do."""

from __future__ import annotations

import inspect
import linecache
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType
from typing import NoReturn

from cutedsl_gemm.kernels.epilogue.expression import EpilogueError

_HERE = str(Path(__file__).parents[2]) + os.sep  # cutedsl_gemm, as frames spell it

SHOWN = 80  # characters of a line, at most

_ELEMENTWISE = "an epilogue computes each element of C by itself: apply it to the result of gemm"
_SHAPES = "a tensor has its shape before it is passed, and broadcasts against C"
_PRODUCT = "an epilogue follows one product, that of gemm"
_RANDOM = "draw the numbers before, and pass them by name"
_ADVICE = {
    **dict.fromkeys(("max", "min"), "write amax or amin, with dim=-2 or dim=-1"),
    **dict.fromkeys(("mean", "var", "std", "norm"), "return sums, and compute the rest of them"),
    **dict.fromkeys(("softmax", "log_softmax", "layer_norm", "rms_norm", "cumsum"), _ELEMENTWISE),
    **dict.fromkeys(("unsqueeze", "squeeze", "view", "reshape", "expand", "permute"), _SHAPES),
    **dict.fromkeys(("transpose", "t", "T", "mT", "chunk", "split", "index [ ]"), _SHAPES),
    **dict.fromkeys(("@", "matmul", "mm", "bmm", "einsum", "linear"), _PRODUCT),
    **dict.fromkeys(("dropout", "rand_like", "randn_like", "bernoulli"), _RANDOM),
}


def refuse(what: str, advice: str = "") -> NoReturn:
    """EpilogueError: that an epilogue cannot follow `what`."""
    name = what.rpartition(".")[2]
    if name.endswith("_"):
        advice = advice or f"it changes a tensor; write y = x.{name.rstrip('_')}(...)"
    say(f"an epilogue cannot follow {what}", advice or _ADVICE.get(name, ""))


def say(sentence: str, advice: str = "") -> NoReturn:
    """EpilogueError: the line of the function, the sentence, what to do."""
    raise EpilogueError(f"{place()}{sentence}" + (f"; {advice}" if advice else "")) from None


def place() -> str:
    """The line that is running outside of cutedsl_gemm and of torch: "file:line: text: "."""
    torch = sys.modules.get("torch")
    inside = _HERE, os.path.dirname(torch.__file__ or "") + os.sep if torch else _HERE  # noqa: PTH120
    frame = inspect.currentframe()
    while frame is not None and frame.f_code.co_filename.startswith(inside):
        frame = frame.f_back
    if frame is None:
        return ""
    file, line = frame.f_code.co_filename, frame.f_lineno
    text = linecache.getline(file, line).strip()
    text = text if len(text) <= SHOWN else f"{text[:SHOWN]} …"
    return f"{file}:{line}: {text}: " if text else f"{file}:{line}: "


def running(inside: Callable[..., object]) -> set[CodeType]:
    """The code of others on the stack, inside of the innermost call of a function."""
    found, frame = set(), inspect.currentframe()
    while frame is not None and frame.f_code is not inside.__code__:
        if not frame.f_code.co_filename.startswith(_HERE):
            found.add(frame.f_code)
        frame = frame.f_back
    return found


def of_function(function: Callable[..., object]) -> str:
    """A function, and where it is: "file:line: the epilogue name"."""
    code = getattr(function, "__code__", None)
    name = getattr(function, "__name__", type(function).__name__)
    if code is None:
        return f"{place()}the epilogue {name}"
    name = "" if name == "<lambda>" else f" {name}"
    return f"{code.co_filename}:{code.co_firstlineno}: the epilogue{name}"
