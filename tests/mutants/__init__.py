"""Mutants: small faults in a copy of the repository, one at a time, and the test that notices each.

    python -m tests.mutants                     # every fault (make mutants)
    python -m tests.mutants --new               # those that nothing has noticed yet
    python -m tests.mutants --only device       # one room, or one fault: device/phase_inverted
    python -m tests.mutants --new --gpu         # the tests that need an H100, on one

A fault is data: a snippet of one file and what takes its place (`fault.Fault`). The rooms hold them
by what they break. `noticed.csv` keeps the outcome of each, and a run begins with the test that
noticed it last time. `test_faults.py` holds that no fault rots: each snippet stands in its file,
once.
"""
