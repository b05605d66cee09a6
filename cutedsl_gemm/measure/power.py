"""The GPU's clock and power while something runs, as nvidia-smi tells them; it changes nothing."""

from __future__ import annotations

import shutil
import subprocess
import threading
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import IO

QUERY = "clocks.sm,power.draw.instant"  # power.draw is the mean of a second
INTERVAL = 20  # milliseconds


@dataclass(frozen=True)
class Reading:
    """The clock and the power of one moment."""

    megahertz: float
    watts: float


class Gauge:
    """nvidia-smi, read in the background until the block ends; without it, no readings.

    `device` is what nvidia-smi calls the GPU: its number, or its UUID.
    """

    def __init__(self, device: str) -> None:
        self.device = device
        self.seen: list[Reading] = []
        self.until = ExitStack()

    def __enter__(self) -> Gauge:
        if (program := shutil.which("nvidia-smi")) is not None:
            asked = [f"--query-gpu={QUERY}", "--format=csv,noheader,nounits", f"-lms={INTERVAL}"]
            process = self.until.enter_context(
                subprocess.Popen(
                    [program, f"--id={self.device}", *asked],
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    text=True,
                )
            )
            reader = threading.Thread(target=self._read, args=[process.stdout], daemon=True)
            reader.start()
            self.until.callback(reader.join)
            self.until.callback(process.terminate)
        return self

    def __exit__(self, *_: object) -> None:
        self.until.close()

    def _read(self, lines: IO[str]) -> None:
        for line in lines:
            with suppress(ValueError):  # "[N/A]"
                self.seen.append(Reading(*map(float, line.split(","))))

    def peak(self) -> Reading | None:
        """The moment of the most power since the last time; None where nothing was seen.

        A burst is shorter than the rest before it, in which the clock is as high as it can be.
        """
        seen, self.seen = self.seen, []
        return max(seen, key=lambda reading: reading.watts, default=None)
