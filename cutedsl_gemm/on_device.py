"""A launch on its device, whichever is torch's current one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def on_device(launch: Callable[..., None], device: torch.device) -> Callable[..., None]:
    """The launch, with its device as torch's current one: a kernel runs on the stream of that.

    If there is one device, this is the launch itself.
    """
    if torch.cuda.device_count() == 1:
        return launch

    def launch_on_device(*arguments: Any) -> None:
        if torch.cuda.current_device() == device.index:
            launch(*arguments)
        else:
            with torch.cuda.device(device):
                launch(*arguments)

    return launch_on_device
