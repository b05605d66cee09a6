"""A launch on its device, whichever is torch's current one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def on_device(launch: Callable[..., Any], device: torch.device) -> Callable[..., Any]:
    """The launch, with its device as torch's current one: a kernel runs on the stream of that.

    If there is one device, this is the launch itself.
    """
    if torch.cuda.device_count() == 1:
        return launch

    def launch_on_device(*arguments: Any) -> Any:
        if torch.cuda.current_device() == device.index:
            return launch(*arguments)
        with torch.cuda.device(device):
            return launch(*arguments)

    return launch_on_device
