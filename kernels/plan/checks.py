"""The checks that the plans of all families share, and PlanError.

`check` refuses a plan that the hardware cannot run, with a message, before anything is compiled.

Each `…_problem` yields a message if its condition does not hold, and nothing if it does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

from cutedsl_gemm.kernels.plan.raster import Raster, Side
from layouts import ComposedLayout, Layout, LayoutError, size
from layouts.hardware.descriptor import Major

BITS = 16  # of an element: bfloat16 or float16
PER_VECTOR = 8  # elements of 16 bits in 16 bytes, to which TMA aligns rows and addresses
THREADS = 1024  # of a block, at most, on every device (CUDA C++ Programming Guide)


class PlanError(ValueError):
    """A plan that the hardware cannot run; the message names the part, its value and its limits."""


def refuse(name: str, problems: Iterator[str]) -> None:
    """Raise PlanError with the first of a plan's problems, if there is one."""
    try:
        for problem in problems:
            raise PlanError(f"{name}: {problem}")
    except LayoutError as error:  # from a layout that cannot even be compared
        raise PlanError(f"{name}: {error}") from error


def field_problem(name: str, found: object, wanted: object, why: str) -> Iterator[str]:
    """The hardware, or the rest of the plan, determines the value of a field.

    >>> list(field_problem("stages", 1, 2, "since a k-tile is loaded ahead"))
    ['stages is 1; it must be 2, since a k-tile is loaded ahead']
    """
    if found != wanted:
        yield f"{name} is {found}; it must be {wanted}, {why}"


def choice_problem(name: str, found: object, choices: tuple[str, ...]) -> Iterator[str]:
    """A field must be one of these values.

    >>> list(choice_problem("a_major", "M", ("K", "MN")))
    ["a_major is 'M'; it must be one of ('K', 'MN')"]
    """
    if found not in choices:
        yield f"{name} is {found!r}; it must be one of {choices}"


def majors_problem(a_major: object, b_major: object) -> Iterator[str]:
    """The contiguous modes of A and B must be K, or MN.

    >>> list(majors_problem("K", "N"))
    ["b_major is 'N'; it must be one of ('K', 'MN')"]
    """
    yield from choice_problem("a_major", a_major, get_args(Major))
    yield from choice_problem("b_major", b_major, get_args(Major))


def count_problem(name: str, count: object, least: int) -> Iterator[str]:
    """A count must be an integer of at least `least`.

    >>> list(count_problem("stages", 2.5, 1))
    ['stages is 2.5; it must be an integer of at least 1']
    """
    if type(count) is not int or count < least:
        yield f"{name} is {count!r}; it must be an integer of at least {least}"


def extents_problem(name: str, extents: Any, rank: int) -> Iterator[str]:
    """A tile, or the like, must be a tuple of `rank` positive integers.

    >>> list(extents_problem("tile", (128, 0), 3))
    ['tile is (128, 0); it must be a tuple of 3 positive integers']
    """
    if (
        type(extents) is not tuple
        or len(extents) != rank
        or not all(type(extent) is int and extent > 0 for extent in extents)
    ):
        yield f"{name} is {extents!r}; it must be a tuple of {rank} positive integers"


def shape_problem(
    name: str, buffer: Layout | ComposedLayout, shape: tuple[int, int]
) -> Iterator[str]:
    """A buffer in shared memory must have the shape of its part of the tile."""
    found = tuple(map(size, buffer))
    if found != shape:
        yield f"{name} has the shape {found} in shared memory; the tile makes it {shape}"


def raster_problem(raster: Raster) -> Iterator[str]:
    """The raster must be one that visits every tile."""
    if not isinstance(raster, Raster) or raster.of not in get_args(Side):
        yield f"raster is {raster!r}; it must be a Raster, of rows or of columns"
    else:
        yield from count_problem("group", raster.group, 1)


def smem_problem(smem_bytes: int, limit: int) -> Iterator[str]:
    """A block's shared memory must not exceed the limit."""
    if smem_bytes > limit:
        yield f"{smem_bytes} bytes of shared memory; a block has {limit}"


def threads_problem(threads: int) -> Iterator[str]:
    """A block's threads must not exceed the limit of every device."""
    if threads > THREADS:
        yield f"a block has {threads} threads; it can have at most {THREADS}"
