"""All faults, by room and name: "device/phase_inverted"."""

from __future__ import annotations

from collections.abc import Collection

from . import (
    cache,
    choice,
    device,
    distributed,
    epilogue,
    executor,
    ladder,
    launch,
    legality,
    models,
    plan,
    protocol,
    shared,
)
from .fault import Fault, Room

GEMM = tuple(f"tests/cutedsl_gemm/test_{each}.py" for each in ("gemm", "batches", "invariance"))
KERNELS = "tests/kernels/sm90", "tests/kernels/sm80", "tests/kernels/device"
CHECKED = "tests/kernels/sm90/test_plan.py", "tests/kernels/sm80", "tests/kernels/simt"
SELECT = "tests/cutedsl_gemm/select", "tests/cutedsl_gemm/measure/test_ladder.py"
ONE_TILE = "tests/kernels/test_one_tile_per_block.py", "tests/kernels/test_shared_memory.py"
FAMILIES = tuple(f"tests/kernels/{family}" for family in ("sm90", "sm80", "sm70", "simt"))
EPILOGUES = (
    "tests/kernels/sm90/test_epilogue.py",
    *(f"tests/cutedsl_gemm/test_{each}.py" for each in ("epilogue", "batch_epilogue")),
)
OF_GEMM = "test_gemm.py", "test_epilogue.py", "test_transforms.py", "test_main.py"
PLANS_ALONE = "test_execute.py", "test_plan.py"  # no device code runs there

ROOMS = {
    "plan": Room(plan.FAULTS, (*KERNELS, *GEMM)),
    "legality": Room(legality.FAULTS, (*CHECKED, *GEMM, *SELECT), ("test_execute.py",)),
    "choice": Room(choice.FAULTS, (*SELECT, *GEMM)),
    "cache": Room(cache.FAULTS, (*GEMM, *SELECT, "tests/kernels/device")),
    "protocol": Room(protocol.FAULTS, ("tests/kernels/pipeline",), PLANS_ALONE),
    "device": Room(
        device.FAULTS, ("tests/kernels/device", "tests/kernels/compile/test_sass.py"), PLANS_ALONE
    ),
    "ladder": Room(ladder.FAULTS, (*ONE_TILE, "tests/kernels/device")),
    "shared": Room(shared.FAULTS, (*ONE_TILE, *FAMILIES)),
    "launch": Room(launch.FAULTS, (*GEMM, *SELECT, "tests/kernels/device")),
    "executor": Room(executor.FAULTS, ("tests/kernels/sm90", *GEMM)),
    "epilogue": Room(epilogue.FAULTS, EPILOGUES),
    "models": Room(models.FAULTS, ("tests/cutedsl_gemm/models",), OF_GEMM),
    "distributed": Room(distributed.FAULTS, ("tests/cutedsl_gemm/distributed",)),
}

FAULTS: dict[str, Fault] = {
    f"{name}/{fault.name}": fault for name, room in ROOMS.items() for fault in room.faults
}


def named(asked: Collection[str]) -> list[str]:
    """The faults of some rooms and of some names; all if none are asked for.

    ValueError for a name that is neither.
    """
    if unknown := [name for name in asked if name not in ROOMS and name not in FAULTS]:
        raise ValueError(
            f"{', '.join(unknown)}: each must be a room, {', '.join(ROOMS)}, or one of its faults, "
            "as room/name"
        )
    return [
        name for name in FAULTS if not asked or name in asked or name.partition("/")[0] in asked
    ]


def nearest(name: str) -> list[str]:
    """The tests to run first for a fault."""
    return ROOMS[name.partition("/")[0]].nearest(FAULTS[name])
