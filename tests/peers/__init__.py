"""The suites of other layout algebras, run on this one through shims.

    python -m tests.peers fetch    # clone their public repositories into .peers/
    python -m tests.peers          # run them all: counts, and what differs with the reason

    sources        the repositories, at fixed commits, and how they are fetched
    cplusplus      a reader of the layouts in C++ CuTe's unit tests
    cute_cases     C++ CuTe's cases, held against its post-conditions
    pycute_cases   CUTLASS pycute's unit tests
    pytest_suites  Colfax's tract and tensor-layouts, each in a pytest of its own
    shims/         modules with the names that those tests import, made of this library
    differs        the tests that differ, each with the reason

Nothing that is fetched is committed.
"""
