"""Random calls of every operation, over every kind of stride, held against brute force.

    python -m tests.layouts.fuzz --cases 200000 --seed 1
    python -m tests.layouts.fuzz --cases 20000 --odd

    model      what a layout is: its value at an index, computed from its fields alone
    generate   random layouts, tilers and coordinates
    call       one call of one operation, and its outcome
    laws       the operations, each with its arguments and its post-condition
    shrink     the smallest call with the same outcome
    odd        calls with an argument out of place, which must end and raise LayoutError alone
    __main__   many calls, and the table of their outcomes

The model shares no code with the library.  A post-condition is written from CuTe's documents; it
calls the library only for an operation in whose terms CuTe states it, which has a law of its own.
"""
