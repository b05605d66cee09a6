"""Mutants: small faults in a copy of the repository, one at a time, and the test that notices each.

    python -m tests.mutants                     # every fault (make mutants)
    python -m tests.mutants --only device       # one room, or one fault: device/phase_inverted

A fault is data: a snippet of one file and what takes its place (`fault.Fault`). The rooms hold them
by what they break. `noticed.csv` keeps the outcome of each; `test_faults.py` holds that no fault
rots: each snippet still stands in its file, once.
"""
