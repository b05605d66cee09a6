"""Expressions of the algebra, as typed on a command line.

    composition(Swizzle(3,3,3), (8,64):(64,1))      an operation of this package on its arguments
    logical_divide((4,8):(8,1), <2:1,4>)[0]         a mode of its result
    S<3,3,3> o 0 o (8,64):(64,1)                    what `parse` reads
    Swizzle(3,3,3) @ (8,64):(64,1)                  composition
    compare(naive=(8,64):(64,1), padded=(8,64):(72,1))
    prove(Injective((8*m,4):(4,1)))                 an unknown name is a positive integer, a symbol
    mma("m16n8k16", "bf16")                         a string is in quotation marks
    wavefronts(32:8, ldmatrix.x4)                   or has dots

Nothing is passed to ``eval``: a name is that of a public operation or value, or a symbol.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from .names import CONSTRUCTORS
from .reader import Reader

__all__ = ["evaluate", "operations", "read"]

#: Public names that an expression cannot use: of errors and contexts, and of what acts on data.
EXCLUDED = (
    *("LayoutError", "Undecided", "budget", "gf2", "parse", "substitute", "symbols"),
    *("Tensor", "copy", "gemm", "make_tensor", "Proof", "StagingReport", "Table"),
)


def evaluate(expression: str, **defaults: Any) -> Any:
    """The value of an expression of the algebra.

    `defaults` are keyword arguments, such as ``unit=32``, for each operation that has such
    a parameter and is not given it in the expression.

    Raises `LayoutError` if it cannot be read, if it is nothing but a name that is unknown, or if an
    operation raises; a caret marks the place.

    >>> print(evaluate("composition(Swizzle(3,3,3), (8,64):(64,1))"))
    S<3,3,3> o 0 o (8,64):(64,1)
    >>> evaluate("logical_divide((4,8):(8,1), (2:1, 4:1))[1]"), evaluate("Swizzle(3,3,3)(64)")
    (Layout((4, 2), (1, 4)), 72)
    >>> evaluate("table((2,4):(4,1))", unit=8).unit
    8
    >>> evaluate("composition((4,3):(1,100), 5)")
    Traceback (most recent call last):
    layouts.errors.LayoutError: ...
    """
    return read(expression, **defaults)[0]


def read(expression: str, **defaults: Any) -> tuple[Any, Reader]:
    """The value of an expression, and its reader, which knows how the expression is written.

    `defaults` and errors are those of `evaluate`.

    >>> value, reader = read("size((2,4))")
    >>> operation, arguments = reader.asked
    >>> value, operation.__name__, arguments
    (8, 'size', ((2, 4),))
    >>> read("(2,4):(4,1)")[1].asked, read("coalesce((2,4):(1,2))(3)")[1].asked
    (None, (Layout(8, 1), (3,)))
    >>> [read(written)[1].is_literal for written in ("(2,4)", "idx2crd(9, (2,4))", "((2,4),3)[0]")]
    [True, False, False]
    """
    reader = Reader(expression, operations(), "", defaults)
    return reader.read_answer(), reader


@lru_cache(maxsize=1)
def operations() -> dict[str, Any]:
    """The names that an expression can use: the public operations and values.

    >>> operations()["coalesce"].__name__, operations()["LayoutLeft"], "parse" in operations()
    ('coalesce', LayoutLeft, False)
    """
    import layouts

    public = {name: getattr(layouts, name) for name in dir(layouts) if name not in EXCLUDED}
    return {**public, **CONSTRUCTORS, "True": True, "False": False, "print": _printed}


def _printed(value: Any) -> Any:
    """The value itself: an expression is shown with or without ``print``.

    >>> evaluate("print(size((2,4)))")
    8
    """
    return value


_printed.__name__ = "print"  # as messages name it
