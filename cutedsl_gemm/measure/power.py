"""A power meter: the GPU's clock and power during a measurement, read from nvidia-smi."""

from __future__ import annotations

import shutil
import subprocess
import threading
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import IO

QUERY = "clocks.sm,power.draw.instant"  # power.draw is an average over one second
INTERVAL = 20  # milliseconds


@dataclass(frozen=True)
class Reading:
    """The clock and the power at one moment."""

    megahertz: float
    watts: float


class PowerMeter:
    """Reads nvidia-smi in the background until the block ends; no readings if it is not installed.

    `device` is the GPU's index or UUID, as nvidia-smi lists it.
    """

    def __init__(self, device: str) -> None:
        self.device = device
        self.readings: list[Reading] = []
        self.stack = ExitStack()

    def __enter__(self) -> PowerMeter:
        if (program := shutil.which("nvidia-smi")) is not None:
            options = [f"--query-gpu={QUERY}", "--format=csv,noheader,nounits", f"-lms={INTERVAL}"]
            process = self.stack.enter_context(
                subprocess.Popen(
                    [program, f"--id={self.device}", *options],
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    text=True,
                )
            )
            reader = threading.Thread(target=self._read, args=[process.stdout], daemon=True)
            reader.start()
            self.stack.callback(reader.join)
            self.stack.callback(process.terminate)
        return self

    def __exit__(self, *_: object) -> None:
        self.stack.close()

    def _read(self, lines: IO[str]) -> None:
        for line in lines:
            with suppress(ValueError):  # "[N/A]"
                self.readings.append(Reading(*map(float, line.split(","))))

    def peak(self) -> Reading | None:
        """The reading of highest power since the last call; None if there are no readings.

        The peak belongs to the burst: the card idles before it, longer, at the highest clock.
        """
        readings, self.readings = self.readings, []
        return max(readings, key=lambda reading: reading.watts, default=None)
