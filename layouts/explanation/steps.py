"""One operation, step by step, as it is written on a board.

>>> from layouts import composition
>>> print(explain(composition, Layout((6, 2), (8, 2)), Layout((4, 3), (3, 1))))
composition((6,2):(8,2), (4,3):(3,1)) = ((2,2),3):((24,2),8)
  B = (4,3):(3,1) has the digits x0 < 4, x1 < 3 and takes them to 3*x0 + x1
  A = (6,2):(8,2) reads that mode by mode, each dividing by its extent what the one before left:
    6:8   3*x0 reaches 9, and 6 is the limit: split x0 at 6/3 = 2
          now B takes x0 < 2, x1 < 2, x2 < 3 to 3*x0 + 6*x1 + x2
          3*x0 + 6*x1 + x2 = 6*(x1) + (3*x0 + x2), and 3*x0 + x2 <= 5 < 6: nothing carries
          the remainder gets the stride 8: 24*x0 + 8*x2
    2:2   the last mode takes what is left, x1: 2*x1
  together 24*x0 + 2*x1 + 8*x2
  each digit is a mode, its weight the stride: 2:24 2:2 3:8
  hung on the shape of B, (4,3): ((2,2),3):((24,2),8)
  check R(i) == A(B(i)): 0 24 2 26 8 32 10 34 16 40 18 42 on both sides, for all 12 indices

Every line is computed.  The steps are those that the law is proved by, and the last line checks the
law on what the operation itself returns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from textwrap import fill
from typing import Any

from .. import algebra
from ..algebra.digits import Split
from ..errors import LayoutError
from ..proof.certificates import stages_of
from ..proof.digits import Carry, Form, Reading, read, spelled
from ..proof.laws import ComplementLaws, CompositionLaw, DivideLaw, Equivalent
from ..proof.prove import Proof, prove
from ..values.arith import ceil_div, divided, divides, equal
from ..values.layout import Layout, cosize, make_layout
from ..values.modes import assembled
from ..values.stride import ArithTuple, kind_of
from ..values.swizzle import ComposedLayout, Swizzle
from ..values.symbols import free_symbols, plain
from ..values.tuples import leaves, place_values, shallow, size, text
from ..values.value import Value

__all__ = ["Explanation", "explain"]

#: So many values are written out where a law is checked.
SHOWN = 24


class Explanation(Value):
    """The steps of one operation; `str` writes them, `result` is what the operation returns."""

    __slots__ = __match_args__ = ("call", "lines", "result")
    call: str
    lines: tuple[str, ...]
    result: Any

    def __init__(self, call: str, lines: tuple[str, ...], result: Any) -> None:
        self._set(call, lines, result)

    def heading(self) -> str:
        """The call, and what it gives."""
        return f"{self.call} " + (
            "has no result" if self.result is None else f"= {text(self.result)}"
        )

    def __str__(self) -> str:
        return "\n".join([self.heading(), *map(_wrapped, self.lines)])


def _wrapped(line: str) -> str:
    """`line` set in by two; what is too long goes on below, further in."""
    margin = " " * (len(line) - len(line.lstrip()) + 2)
    return fill(line.lstrip(), 98, initial_indent=margin, subsequent_indent=margin + "    ")


def explain(op: Any, *args: Any) -> Explanation:
    """The steps of ``op(*args)``, for `op` an operation of the algebra, or a swizzle or layout
    applied to an index.

    An operation that is refused is explained as far as it goes, with the reason.  Raises
    `LayoutError` for another `op`.

    >>> print(explain(Swizzle(2, 0, 3), 10))
    S<2,0,3>(10) = 11
      bit      4 3 2 1 0
      10       0 1 0 1 0
      read     0 1        bits 3 to 4
      onto           0 1  bits 0 to 1: added without carry
      11       0 1 0 1 1
      check: a second time gives 10 back
    """
    from .operations import LESSONS  # above this file: they are made of those in it
    from .parts import PART_LESSONS

    name = getattr(op, "__name__", type(op).__name__)
    teachers = TEACHERS | LESSONS | PART_LESSONS
    teacher = teachers.get(name)
    if teacher is None:
        raise LayoutError(f"explain: {op!r} is none of {', '.join(sorted(teachers))}")
    if isinstance(op, (Swizzle, Layout, ComposedLayout)):
        explanation: Explanation = teacher(op, *args)
        return explanation
    call = f"{name}({', '.join(map(_argument, shallow(args)))})"
    board: list[str] = []
    try:
        result = op(*args)
    except LayoutError as error:
        result, refusal = None, str(error)
    try:
        if result is not None or isinstance(args[0], (Layout, ComposedLayout)):
            teacher(board, result, *args)
    except LayoutError as error:
        board.append(f"here it ends: {error}")
    if result is None:
        board.append(f"refused: {refusal}")
    return Explanation(call, tuple(board), result)


def _argument(x: Any) -> str:
    if isinstance(x, tuple):
        return f"<{','.join(map(_argument, x))}>"
    return "_" if x is None else text(x)


def inside(board: list[str], op: Callable[..., Any], *args: Any) -> Any:
    """An operation that is a step of another, written further in."""
    steps = explain(op, *args)
    board.append(steps.heading())
    board += [f"  {line}" for line in steps.lines]
    return steps.result


def each_mode(board: list[str], op: Any, modes: Sequence[Any], tilers: Sequence[Any]) -> None:
    for k, (mode, tiler) in enumerate(zip(modes, tilers, strict=False)):
        if tiler is None:
            board.append(f"mode {k}: {mode} stays as it is")
        else:
            board.append(f"mode {k}:")
            steps: list[str] = []
            inside(steps, op, mode, tiler)
            board += [f"  {line}" for line in steps]
    for k in range(len(tilers), len(modes)):
        board.append(f"mode {k}: {modes[k]} has no tiler")


def check(board: list[str], law: Any, said: str) -> None:
    """The law, proved for the result that the operation returned."""
    try:
        proof = prove(law)
    except LayoutError as error:
        board.append(f"check {said}: {error}")
        return
    board.append(f"check {said}: {_verdict(proof)}")


def _verdict(proof: Proof) -> str:
    if proof:
        return "proved" + (
            " for all values of the symbols" if free_symbols(proof.statement) else ""
        )
    return f"refuted, {proof.reason[-1]}"


def check_values(board: list[str], said: str, left: Any, right: Any, count: Any) -> None:
    """The two sides of a law, written out, where they are few enough."""
    values = [[text(side(i)) for i in range(min(count, SHOWN))] for side in (left, right)]
    more = " ..." if count > SHOWN else ""
    if values[0] == values[1] and all(left(i) == right(i) for i in range(min(count, 4096))):
        of = f"all {count}" if count <= 4096 else "the first 4096"
        board.append(f"check {said}: {' '.join(values[0])}{more} on both sides, for {of} indices")
    else:
        board.append(f"check {said} FAILS: {' '.join(values[0])} and {' '.join(values[1])}")


def elsewhere(board: list[str], layout: Any, how: str) -> bool:
    """Whether `layout` has no modes with integer strides, which could be told one by one."""
    if isinstance(layout, Layout) and kind_of(layout.modes) is None:
        return False
    board.append(f"of {layout} it is found {how}")
    return True


# ------------------------------------------------------------------------------ composition


def _composition(board: list[str], result: Any, a: Any, b: Any) -> None:
    if isinstance(b, tuple) and isinstance(a, (Layout, ComposedLayout)):
        board.append("a tuple of tilers composes mode by mode, and drops the modes beyond it")
        each_mode(board, algebra.composition, list(a), b)
        return
    if type(b) is int:
        b = Layout(b)
    if isinstance(a, (Swizzle, ComposedLayout)) or not isinstance(b, Layout):
        board.append(f"kept as it is composed: R(i) = {a}, after {b}(i)")
        return
    splits: list[Split] = []
    digits = tuple(extent for extent in leaves(b.shape) if not equal(extent, 1))
    _, (before,) = read((b,), digits)
    board.append(f"B = {b} has the digits {_bounds(digits)} and takes them to {_form(before)}")
    try:
        final, readings = read((a, b), digits, splits)
    except Carry as carry:
        _told_carry(board, result, a, b, carry)
        return
    board.append(
        f"A = {a} reads that mode by mode, each dividing by its extent what the one before left:"
    )
    _told_reading(board, b, digits, splits, readings[-1], final)
    board.append(f"together {spelled(readings[-1].after)}")
    board.append(f"each digit is a mode, its weight the stride: {_read_off(final, readings[-1])}")
    _check_composition(board, result, a, b)


def _read_off(digits: Sequence[Any], reading: Reading) -> str:
    modes = [f"{s}:{text(d)}" for s, d in zip(digits, reading.after[1:], strict=True)]
    return " ".join(modes) or "1:0"


def _check_composition(board: list[str], result: Any, a: Any, b: Any) -> None:
    if result is None:
        return
    board.append(f"hung on the shape of B, {text(b.shape)}: {result}")
    if free_symbols((a, b)) or kind_of(a.modes) is ArithTuple:
        check(board, CompositionLaw(a, b, result), "R(i) == A(B(i))")
    else:
        check_values(board, "R(i) == A(B(i))", lambda i: a(b(i)), result, size(b))


def _bounds(digits: Sequence[Any]) -> str:
    return ", ".join(f"x{k} < {extent}" for k, extent in enumerate(digits)) or "none"


def _form(reading: Reading) -> str:
    return spelled(reading.after)


def _told_reading(
    board: list[str],
    b: Layout,
    digits: tuple[Any, ...],
    splits: Sequence[Split],
    reading: Reading,
    final: tuple[Any, ...],
) -> None:
    """A line for each split, where it is made, then for the division, mode by mode."""
    modes = [("" if s is None else str(s), text(d)) for s, d in reading.modes]
    width = max(len(s) + len(d) for s, d in modes) + 3
    rest, todo = reading.before, list(splits)
    for (extent, stride), step in zip(reading.modes[:-1], reading.steps, strict=True):
        lines = []
        while todo and equal(todo[0].extent, extent):
            split = todo.pop(0)
            lines += _told_split(split, digits)
            digits = (
                *digits[: split.digit],
                split.at,
                divided(digits[split.digit], split.at)[0],
                *digits[split.digit + 1 :],
            )
        if lines:
            _, (again,) = read((b,), digits)
            lines.append(f"now B takes {_bounds(digits)} to {_form(again)}")
        lines += _told_step(step, rest, final)
        rest = step.quotient
        _beside(board, f"{extent}:{text(stride)}", width, lines)
    last = reading.modes[-1][1]
    taken = spelled(tuple(plain_times(weight, last) for weight in rest))
    name = f"{leaves(reading.stage.shape)[-1]}:{text(last)}"
    _beside(board, name, width, [f"the last mode takes what is left, {spelled(rest)}: {taken}"])


def _beside(board: list[str], name: str, width: int, lines: Sequence[str]) -> None:
    for k, line in enumerate(lines):
        board.append(f"  {name if k == 0 else '':<{width}} {line}")


def _told_split(split: Split, digits: Sequence[Any]) -> list[str]:
    name, extent = f"x{split.digit}", digits[split.digit]
    reaches = plain(split.weight * (extent - 1))
    term = spelled((0, *(0,) * split.digit, split.weight))
    return [
        f"{term} reaches {reaches}, and {split.extent} is the limit: split {name} at "
        f"{split.extent}/{split.weight} = {split.at}"
    ]


def _told_step(step: Any, rest: Form, digits: Sequence[Any]) -> list[str]:
    if all(equal(weight, 0) for weight in step.remainder):
        return [f"{step.extent} divides {spelled(rest)}: {spelled(step.quotient)} is left"]
    high = step.remainder[0]
    for weight, extent in zip(step.remainder[1:], digits, strict=True):
        high = plain(high + weight * (extent - 1))
    remainder = spelled(step.remainder)
    got = spelled(tuple(plain_times(weight, step.stride) for weight in step.remainder))
    return [
        f"{spelled(rest)} = {step.extent}*({spelled(step.quotient)}) + ({remainder}), and "
        f"{remainder} <= {high} < {step.extent}: nothing carries",
        f"the remainder gets the stride {text(step.stride)}: {got}",
    ]


def plain_times(weight: Any, stride: Any) -> Any:
    """A weight times a stride of any kind."""
    total = weight * stride
    return plain(total) if hasattr(total, "free_symbols") else total


def _told_carry(board: list[str], result: Any, a: Any, b: Any, carry: Carry) -> None:
    board.append(f"A = {a} reads that mode by mode, but there is a {carry}")
    if free_symbols((a, b)):
        return
    board.append("so every index is looked at: a mode of B ends where its values stop being linear")
    values = " ".join(text(a(b(i))) for i in range(min(size(b), SHOWN)))
    board.append(f"A(B(i)) = {values}{' ...' if size(b) > SHOWN else ''}")
    _check_composition(board, result, a, b)


# --------------------------------------------------------------------------------- coalesce


def _coalesce(board: list[str], result: Any, layout: Any, profile: Any = None) -> None:
    if isinstance(layout, ComposedLayout):
        board.append(f"{layout.inner} and the offset {layout.offset} stay; the outer layout:")
        inside(board, algebra.coalesce, layout.outer, profile)
        return
    if isinstance(profile, tuple):
        board.append("each mode that the profile has is coalesced by itself")
        each_mode(board, algebra.coalesce, list(layout), [p if p is None else 1 for p in profile])
        return
    if profile is not None:
        board.append("the profile is one leaf, so that the whole layout is one mode")
    done = _told_merging(board, list(modes_of(layout)))
    board.append(f"what is left: {spelled_modes(done)}")
    if result is not None:
        check(board, Equivalent(layout, result), f"R(i) == L(i) with R = {result}")


def modes_of(layout: Layout) -> Sequence[tuple[Any, Any]]:
    return list(zip(leaves(layout.shape), leaves(layout.stride), strict=True))


def spelled_modes(modes: Sequence[tuple[Any, Any]]) -> str:
    return " ".join(f"{s}:{text(d)}" for s, d in modes) or "none, which is 1:0"


def _told_merging(board: list[str], modes: Sequence[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """The modes from left to right, each left out, merged, or kept."""
    board.append(f"the modes from left to right: {spelled_modes(modes)}")
    width = max(len(f"{s}:{text(d)}") for s, d in modes) if modes else 0
    done: list[tuple[Any, Any]] = []
    for extent, stride in modes:
        name = f"{extent}:{text(stride)}"
        if equal(extent, 1):
            said = "has one entry, so that its stride is never used: left out"
        elif not done:
            said = "is the first that moves"
            done.append((extent, stride))
        else:
            before, step = done[-1]
            end = plain_times(before, step)
            if equal(stride, end):
                done[-1] = (plain(before * extent), step)
                said = (
                    f"goes on where {before}:{text(step)} ends, {text(stride)} = "
                    f"{before}*{text(step)}: merged into {done[-1][0]}:{text(step)}"
                )
            else:
                done.append((extent, stride))
                said = (
                    f"is a step of {text(stride)} where {before}:{text(step)} would go on by "
                    f"{text(end)}: a mode of its own"
                )
        board.append(f"  {name:<{width}}  {said}")
    return done


# ------------------------------------------------------------------------------- complement


def _complement(board: list[str], result: Any, layout: Any, cotarget: Any = None) -> None:
    if elsewhere(board, layout, "by elimination: the bits that lead none of its offsets"):
        return
    target = plain(cosize(layout) if cotarget is None else size(cotarget))
    moving = [(s, d) for s, d in modes_of(layout) if not (equal(s, 1) or equal(d, 0))]
    by_stride = rising(moving)
    board.append(f"the modes that move the offset, by rising stride: {spelled_modes(by_stride)}")
    reach: Any = 1
    gaps: list[tuple[Any, Any]] = []
    for extent, stride in by_stride:
        if not divides(reach, stride):
            board.append(
                f"  {extent}:{stride} steps by {stride}, which is no multiple of the {reach} "
                f"offsets filled so far: copies overlap or leave a hole"
            )
            return
        copies = divided(stride, reach)[0]
        reach = _told_gap(board, extent, stride, copies, reach, gaps)
    rest = ceil_div(target, reach)
    board.append(
        f"  to reach {target}, {rest} of these {reach}: "
        + ("nothing to add" if equal(rest, 1) else f"{rest}:{reach}")
    )
    gaps += [] if equal(rest, 1) else [(rest, reach)]
    told_result(board, gaps, result)
    if result is not None:
        check(
            board, ComplementLaws(layout, target, result), "L and R together meet each offset once"
        )


def told_result(board: list[str], modes: Sequence[tuple[Any, Any]], result: Any) -> None:
    """The modes that the steps have led to, as one layout; and if the operation knows better."""
    found = algebra.coalesce(assembled(modes))
    board.append(f"R = {spelled_modes(modes)}, coalesced {found}")
    if result is not None and result != found:
        board.append(f"the operation goes further than these steps: {text(result)}")


def rising(modes: Sequence[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    from ..values.arith import ascending

    return ascending(modes, lambda mode: mode[1])


def _told_gap(
    board: list[str],
    extent: Any,
    stride: Any,
    copies: Any,
    reach: Any,
    gaps: list[tuple[Any, Any]],
) -> Any:
    """One mode of L, and the mode of R that fills what lies before its second entry."""
    filled = plain(extent * stride)
    if equal(copies, 1):
        said = f"goes on right after the {reach} filled: no gap"
    else:
        gaps.append((copies, reach))
        said = f"steps by {stride} over {reach} filled: {copies} copies fit, {copies}:{reach}"
    board.append(f"  {extent}:{stride} {said}; with it 0 to {plain(filled - 1)} are filled")
    return filled


# -------------------------------------------------------------------------- right inverse


def _right_inverse(board: list[str], result: Any, layout: Any) -> None:
    if elsewhere(board, layout, "by elimination, or by the inverse of the swizzle"):
        return
    done = _told_merging(board, list(modes_of(layout)))
    places = place_values([s for s, _ in done])
    pairs = list(zip(done, places, strict=True))
    named = ", ".join(f"{s}:{text(d)} counts in {place}s" for (s, d), place in pairs)
    board.append(f"in the index of L, {named or 'nothing counts'}")
    reach: Any = 1
    chain: list[tuple[Any, Any]] = []
    while True:
        here = next((pair for pair in pairs if equal(pair[0][1], reach)), None)
        if here is None:
            board.append(f"  no mode steps by {reach}: R reaches {reach}")
            break
        pairs.remove(here)
        (extent, _), place = here
        after = plain(reach * extent)
        board.append(
            f"  the offsets in steps of {reach}: mode {extent}:{reach}, so {extent}:{place}"
        )
        chain.append((extent, place))
        reach = after
    told_result(board, chain, result)
    if result is not None:
        _told_inverse_check(board, layout, result)


def _told_inverse_check(board: list[str], layout: Any, result: Any) -> None:
    if free_symbols((layout, result)):
        count = plain(size(result))
        both = ComposedLayout(layout, 0, result)
        check(board, Equivalent(both, Layout(count, 1)), "L(R(i)) == i")
    else:
        check_values(board, "L(R(i)) == i", lambda i: layout(result(i)), int, size(result))


# ------------------------------------------------------------------------- divide, product


def _logical_divide(board: list[str], result: Any, layout: Any, tiler: Any) -> None:
    if tiler is None:
        board.append(f"no tiler: {layout} stays as it is")
        return
    if isinstance(layout, ComposedLayout):
        board.append(f"{layout.inner} and the offset {layout.offset} stay; the outer layout:")
        inside(board, algebra.logical_divide, layout.outer, tiler)
        return
    if isinstance(tiler, tuple):
        board.append("a tuple of tilers divides mode by mode")
        each_mode(board, algebra.logical_divide, list(layout), tiler)
        board.append(f"side by side: {text(result)}")
        return
    tile = tiler if isinstance(tiler, Layout) else Layout(tiler)
    board.append(f"the tile is T = {tile}; what it leaves of 0 to {plain(size(layout) - 1)}:")
    rest = inside(board, algebra.complement, tile, plain(size(layout)))
    if rest is None:
        return
    both = make_layout(tile, rest)
    board.append(f"inside the tile, and from tile to tile: (T, T*) = {both}")
    inside(board, algebra.composition, layout, both)
    if result is not None:
        check(board, DivideLaw(layout, tiler, result), f"R((t,r)) == A(T(t) + T*(r)), R = {result}")


def _logical_product(board: list[str], result: Any, layout: Any, tiler: Any) -> None:
    if isinstance(tiler, tuple):
        board.append("a tuple of tilers multiplies mode by mode")
        each_mode(board, algebra.logical_product, list(layout), tiler)
        board.append(f"side by side: {text(result)}")
        return
    if isinstance(layout, ComposedLayout) or tiler is None:
        board.append(f"{layout} stays, but for its outer layout")
        return
    copies = tiler if isinstance(tiler, Layout) else Layout(tiler)
    target = plain(size(layout) * cosize(copies))
    board.append(
        f"B = {copies} has offsets below {cosize(copies)}: make room for as many copies of "
        f"A = {layout}, of {size(layout)} entries each"
    )
    places = inside(board, algebra.complement, layout, target)
    if places is None:
        return
    board.append(f"copy k of A lies at A*(B(k)), A* = {places}:")
    inside(board, algebra.composition, places, copies)
    board.append(f"A, and where its copies lie: {text(result)}")
    if result is not None and not free_symbols((layout, copies)):
        check_values(
            board,
            "R(a, b) == A(a) + A*(B(b))",
            lambda i: layout(i % size(layout)) + places(copies(i // size(layout))),
            result,
            size(result),
        )


# -------------------------------------------------------------------------------- applying


def _swizzle(swizzle: Swizzle, x: int) -> Explanation:
    """The bits, those that are read, where they are added, and the sum."""
    result = swizzle(x)
    width = max(x.bit_length(), swizzle.source.bit_length(), swizzle.target.bit_length(), 1)
    moved = (
        (x & swizzle.source) >> swizzle.shift
        if swizzle.shift >= 0
        else ((x & swizzle.source) << -swizzle.shift)
    )
    column = max(len(str(x)), len(str(result)), 4) + 4
    rows = [
        ("bit", _cells(range(width - 1, -1, -1))),
        (str(x), _bits(x, width, -1)),
        ("read", f"{_bits(x, width, swizzle.source)}  {_range(swizzle.source)}"),
        (
            "onto",
            f"{_bits(moved, width, swizzle.target)}  {_range(swizzle.target)}: added without carry",
        ),
        (str(result), _bits(result, width, -1)),
    ]
    lines = [f"{name:<{column}} {cells}".rstrip() for name, cells in rows]
    lines.append(f"check: a second time gives {swizzle(result)} back")
    return Explanation(f"{swizzle}({x})", tuple(lines), result)


def _cells(entries: Any) -> str:
    return " ".join(str(entry % 10) for entry in entries)


def _bits(x: int, width: int, mask: int) -> str:
    """The bits of `x` that are in `mask`, blanks elsewhere."""
    return " ".join(
        str(x >> bit & 1) if mask >> bit & 1 else " " for bit in range(width - 1, -1, -1)
    )


def _range(mask: int) -> str:
    if not mask:
        return "no bits"
    low, high = (mask & -mask).bit_length() - 1, mask.bit_length() - 1
    return f"bit {low}" if low == high else f"bits {low} to {high}"


def _layout(layout: Any, *coord: Any) -> Explanation:
    """A coordinate or an index, digit by digit; a composed layout, stage by stage."""
    at = coord[0] if len(coord) == 1 else coord
    result = layout(at)
    call = f"({layout})({text(at)})"
    lines: list[str] = []
    value: Any = at
    for stage in reversed(stages_of(layout)):
        if isinstance(stage, Layout):
            value = _told_offset(lines, stage, value)
        elif isinstance(stage, Swizzle):
            steps = _swizzle(stage, value)
            lines += [steps.call + f" = {steps.result}", *(f"  {line}" for line in steps.lines)]
            value = steps.result
        else:
            lines.append(f"plus the offset: {value} + {stage} = {value + stage}")
            value = value + stage
    return Explanation(call, tuple(lines), result)


def _told_offset(lines: list[str], layout: Layout, at: Any) -> Any:
    from ..values.tuples import idx2crd

    coord = idx2crd(at, layout.shape)
    if coord != at:
        lines.append(f"{text(at)} in {text(layout.shape)}, leftmost fastest, is {text(coord)}")
    pairs = zip(leaves(coord), leaves(layout.stride), strict=True)
    terms = " + ".join(f"{x}*{text(d)}" for x, d in pairs)
    value = layout(at)
    lines.append(f"{text(coord)} times {text(layout.stride)}: {terms} = {text(value)}")
    return value


#: The name of an operation, or of the class of what is applied -> who explains it.
TEACHERS: dict[str, Callable[..., Any]] = {
    "ComposedLayout": _layout,
    "Layout": _layout,
    "Swizzle": _swizzle,
    "coalesce": _coalesce,
    "complement": _complement,
    "composition": _composition,
    "logical_divide": _logical_divide,
    "logical_product": _logical_product,
    "right_inverse": _right_inverse,
}
