"""No fault rots: each snippet stands in its file, once, and every fault was tried."""

import pytest

from tests.mutants import outcomes
from tests.mutants.fault import repository
from tests.mutants.rooms import FAULTS, ROOMS, named, nearest


def problem(fault):
    """What is wrong with a fault; None if it is a change of one place."""
    sound = (repository() / fault.file).read_text(encoding="utf-8")
    try:
        faulty = fault.applied(sound)
    except ValueError as error:
        return f"{fault.name}: {error}"
    return None if faulty != sound else f"{fault.name} changes nothing"


def test_a_fault_is_a_change_of_one_place():
    """If you changed the snippet's place, change the snippet, or write a fault of the new code."""
    assert not [*filter(None, map(problem, FAULTS.values()))]


def test_every_fault_has_its_own_name_and_tests_that_exist():
    assert len(FAULTS) == sum(len(room.faults) for room in ROOMS.values())
    assert all((repository() / path).exists() for name in FAULTS for path in nearest(name))


def test_nine_of_ten_faults_are_noticed_without_a_gpu():
    """`python -m tests.mutants --new` tries a fault that is missing here."""
    known = outcomes.read()
    assert list(known) == list(FAULTS)
    noticed = [name for name, outcome in known.items() if outcome.noticed_by]
    assert len(noticed) >= 0.9 * len(FAULTS)


def test_faults_are_named_by_room_and_name():
    assert named(["choice"]) == [name for name in FAULTS if name.startswith("choice/")]
    assert named(["device/no_proxy_fence"]) == ["device/no_proxy_fence"]
    with pytest.raises(ValueError, match=r"^nowhere: each must be a room, plan, legality"):
        named(["nowhere"])
