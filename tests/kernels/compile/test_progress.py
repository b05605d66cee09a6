"""What slow work prints where stderr is no terminal."""

import pytest

from cutedsl_gemm.kernels.compile import progress


@pytest.fixture
def clock(monkeypatch):
    """A clock that `clock[0] = seconds` sets."""
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_a_line_now_and_then_says_how_much_is_left(clock, capsys):
    with progress.bar("work") as report:
        for second in range(161):
            clock[0] = second
            report(second / 160)
    printed = capsys.readouterr().err.splitlines()
    assert printed == [
        "work: 5 s, 3.1% done, about 3 min left",
        "work: 10 s, 6.2% done, about 2 min left",
        "work: 20 s, 12.5% done, about 2 min left",
        "work: 40 s, 25.0% done, about 2 min left",
        "work: 80 s, 50.0% done, about 80 s left",
        "work: 2 min, 87.5% done, about 20 s left",
    ]


def test_quick_work_prints_nothing(clock, capsys):
    with progress.spinner("work"), progress.bar("work") as report:
        clock[0] = 4.9
        report(0.5)
    assert capsys.readouterr().err == ""


def test_work_of_unknown_length_says_how_long_it_has_taken(monkeypatch, capsys):
    monkeypatch.setattr(progress, "FIRST_LINE", 0.01)
    with progress.spinner("compiling"):
        progress.time.sleep(0.1)
    assert "compiling: 0 s\n" in capsys.readouterr().err


def test_items_are_tracked_by_their_number(clock, capsys):
    def items():
        for second in (3, 6, 9):
            clock[0] = second
            yield second

    assert [*progress.track(items(), "work", 3)] == [3, 6, 9]
    assert capsys.readouterr().err == "work: 6 s, 66.7% done, about 3 s left\n"
