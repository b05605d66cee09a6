"""C++ CuTe's unit tests: their layouts, held against their post-conditions.

A case is a call of a test function, such as ``test_composition(a, b)``, or of a macro that expects
a truth.  The post-conditions are those of the test functions, for the same arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import layouts as L
from layouts import Layout, LayoutError, size

from .cplusplus import Call, calls, numbers
from .outcome import Cases, tried
from .sources import CUTLASS

FILES = (
    *("coalesce", "complement", "composition", "inverse_left", "inverse_right", "logical_divide"),
    *("logical_product", "nullspace", "swizzle_layout", "int_tuple", "compact_xmajor"),
)


def cases() -> Cases:
    """The cases of all files, numbered where two are the same."""
    for file in FILES:
        path = CUTLASS.folder / "test/unit/cute/core" / f"{file}.cpp"
        seen: dict[str, int] = {}
        for call in _joined(calls(path.read_text())):
            test = TESTS.get(call.function)
            if test is not None:
                name = written(call)
                seen[name] = seen.get(name, 0) + 1
                again = f" #{seen[name]}" if seen[name] > 1 else ""
                yield tried(f"{file}: {name}{again}", _without_errors(test), *call.arguments)


def _joined(calls: Iterable[Call]) -> Iterator[Call]:
    """The calls; of a layout's shape and its stride, compared one after the other, one call."""
    shape: Call | None = None
    for call in calls:
        if shape is not None:
            extents, strides = shape.arguments[0], call.arguments[0]
            sides = (Layout(*map(numbers, side)) for side in zip(extents, strides, strict=True))
            yield Call("same_layout", (*sides, extents.at_run_time), shape.text)
            shape = None
        elif call.text.startswith("bool(shape("):
            shape = call
        else:
            yield call


def same_layout(found: Layout, wanted: Layout, at_run_time: bool) -> None:
    """Equal; if extents are known at run time only, mode by mode the same function.

    C++ leaves such modes as they are, and symbols merge here.
    """
    if at_run_time:
        found, wanted = (L.coalesce(each, (1,) * L.rank(each)) for each in (found, wanted))
    check(found == wanted, f"{found}: not {wanted}")


def _without_errors(test: Callable[..., None]) -> Callable[..., None]:
    """The test, if no argument is an error; else it raises that."""

    def checked(*arguments: Any) -> None:
        for argument in arguments:
            if isinstance(argument, LayoutError):
                raise argument
        test(*arguments)

    return checked


def written(call: Call) -> str:
    """A case as its file writes it, with the values of names."""
    if call.function.startswith("test_"):
        shown = ("?" if isinstance(x, LayoutError) else str(x) for x in call.arguments)
        return f"{call.function}({', '.join(shown)})"
    return f"{call.function}({call.text})"


def check(condition: Any, what: str) -> None:
    """Raise unless the condition holds."""
    if not condition:
        raise AssertionError(what)


# ----------------------------------------------------------------------------- post-conditions


def coalesce(layout: Layout) -> None:
    """At most one level of nesting, and the same function."""
    r = L.coalesce(layout)
    check(L.depth(r) <= 1 and size(r) == size(layout), f"{r}: depth and size")
    check(all(r(i) == layout(i) for i in range(size(layout))), f"{r}: values")


def complement(layout: Layout, cotarget: Any = None) -> None:
    """Ordered, disjoint, large enough and no larger; nothing is left over."""
    r = L.complement(layout, cotarget)
    target = size(L.cosize(layout) if cotarget is None else cotarget)
    both = L.make_layout(layout, r)
    round_up = -(-target // L.cosize(layout)) * L.cosize(layout)
    check(L.cosize(both) >= target, f"{r}: reaches {target}")
    check(L.cosize(r) <= round_up, f"{r}: at most {round_up}")
    values = [r(i) for i in range(size(r))]
    check(values == sorted(set(values)), f"{r}: ordered")
    check(not {*values[1:]} & {layout(i) for i in range(size(layout))}, f"{r}: disjoint")
    check(size(r) >= target // size(L.filter(layout)), f"{r}: size")
    check(size(L.complement(both)) == 1, f"{r}: something is left over")


def composition(a: Any, b: Any) -> None:
    """``R(c) == A(B(c))``, and B is compatible with R."""
    r = L.composition(a, b)
    check(L.compatible(b, r), f"{r}: compatible")
    check(all(r(c) == a(b(c)) for c in range(size(b))), f"{r}: values")


def left_inverse(layout: Any) -> None:
    """``L(R(L(i))) == L(i)``."""
    r = L.left_inverse(layout)
    check(all(layout(r(layout(i))) == layout(i) for i in some(size(layout))), f"{r}: values")


def right_inverse(layout: Any) -> None:
    """``L(R(i)) == i``."""
    r = L.right_inverse(layout)
    check(all(layout(r(i)) == i for i in some(size(r))), f"{r}: values")


def some(count: int) -> range:
    """At most about a thousand of so many indices."""
    return range(0, count, max(1, count // 1009))


def logical_divide(layout: Any, tiler: Any) -> None:
    """Of rank 2; the tiler is compatible with mode 0."""
    r = L.logical_divide(layout, tiler)
    check(L.rank(r) == 2 and L.compatible(tiler, r[0]), f"{r}: tile")


def logical_product(layout: Any, tiler: Any) -> None:
    """Of rank 2: the layout, and what the tiler is compatible with."""
    r = L.logical_product(layout, tiler)
    check(L.rank(r) == 2 and r[0] == layout and L.compatible(tiler, r[1]), f"{r}: block and copies")


def nullspace(layout: Layout) -> None:
    """Of the size of the modes that do not move, and all 0."""
    r = L.nullspace(layout)
    check(size(r) == size(layout) // size(L.filter(layout)), f"{r}: size")
    check(all(layout(r(i)) == 0 for i in range(size(r))), f"{r}: values")


def swizzle_2d(layout: Any) -> None:
    """A slice has the values of the whole, along either mode."""
    rows, columns = size(layout, 0), size(layout, 1)
    for i in range(rows):
        check(
            [layout(i, None)(j) for j in range(columns)] == [layout(i, j) for j in range(columns)],
            f"row {i}",
        )
    for j in range(columns):
        check(
            [layout(None, j)(i) for i in range(rows)] == [layout(i, j) for i in range(rows)],
            f"column {j}",
        )


TESTS = {
    "same_layout": same_layout,
    **{
        f"test_{test.__name__}": test
        for test in (
            *(coalesce, complement, composition, left_inverse, right_inverse, logical_divide),
            *(logical_product, nullspace, swizzle_2d),
        )
    },
    **dict.fromkeys(
        ("EXPECT_TRUE", "ASSERT_TRUE", "CUTE_STATIC_ASSERT_V"), lambda x: check(x, "false")
    ),
    "EXPECT_FALSE": lambda x: check(not x, "true"),
}
