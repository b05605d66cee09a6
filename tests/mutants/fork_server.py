"""pytest over and over, each time in a fork of a process that has imported what takes seconds.

A line of stdin is a run, as JSON: pytest's arguments, variables of its environment, seconds. The
answer is a line of stdout: the exit status, or null after so many seconds, and what was printed.
The process itself imports nothing of the repository, so that each fork imports it as it is then.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import tempfile
import time
import traceback
from typing import IO

import cutlass.cute
import numpy
import pytest
import sympy
import torch

IMPORTED = cutlass.cute, numpy, sympy, torch
POLL = 0.05  # seconds


def main() -> None:
    """Serve until stdin ends."""
    for line in sys.stdin:
        arguments, variables, seconds = json.loads(line)
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
            if (child := os.fork()) == 0:
                run(arguments, variables, output)
            status = ended(child, seconds)
            output.seek(0)
            print(json.dumps([status, output.read()]), flush=True)


def run(arguments: list[str], variables: dict[str, str], output: IO[str]) -> None:
    """Run pytest, and end the process."""
    os.setsid()  # so that whatever it starts can be ended with it
    os.environ.update(variables)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for stream in (1, 2):
        os.dup2(output.fileno(), stream)
    status: int = pytest.ExitCode.INTERNAL_ERROR
    try:
        status = pytest.main(arguments)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(status)


def ended(child: int, seconds: float) -> int | None:
    """The exit status of a child, negative for a signal; None if it had to be ended."""
    end = time.monotonic() + seconds
    while True:
        found, status = os.waitpid(child, os.WNOHANG)
        late = not found and time.monotonic() > end
        if found or late:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)  # and what it has left behind
            if late:
                os.waitpid(child, 0)
            return None if late else os.waitstatus_to_exitcode(status)
        time.sleep(POLL)


if __name__ == "__main__":
    main()
