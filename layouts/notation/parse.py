"""Reading layouts as CuTe prints them.

    (4,8):(8,1)                          shape:stride, as the DSL and this package print it
    (_4,_8):(_8,_1)                      C++, whose static integers have an underscore
    (4, 8):(8, 1)                        pycute, with blanks
    Layout((4, 8), (8, 1))               what ``repr`` gives, here and elsewhere
    S<3,4,3>   Sw<3,4,3>   SW_3_4_3      a swizzle, as the DSL, C++ and pycute print it
    S<3,3,3> o 0 o (8,64):(64,1)         a composed layout: inner o offset o outer
    Sw<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)
                                         C++, a swizzle on the bytes of a pointer to 16-bit elements
    tensor<ptr<f16, smem, align<128>, S<3,4,3>> o (8,64):(64,1)>    the same, as the DSL prints it
    (4,8):(1@1,1@0)   E<0>               strides that are coordinates
    (4,2):(F1,F5)                        strides that XOR, as PyCuTe prints them
    (4,8)   (4:1,_)                      a shape alone; a tiler
    (8*m,n):(1,8*m)                      symbols: positive integers, and what sympy prints of them:
                                         floor(m/8), ceiling(m/8), Mod(m, 8)

``str`` gives the first form of each, so that ``parse(str(x)) == x``; a unit is not printed.

The grammar, where {x} is x any number of times and [x] is x or nothing:

    expression = composed {@ composed}              composition
    composed   = layout {o layout}                  inner o offset o outer, inner o outer
    layout     = sum [: sum]                        shape:stride
    sum        = term {+ term | - term}
    term       = factor {* factor | / factor | // factor | % factor}
    factor     = - factor | suffixed [** integer] {@ integer}
    suffixed   = value {[ entries ] | ( entries )}  a mode; an offset
    value      = integer | swizzle | pointer | name [( entries )] | ( entries )
    entries    = [expression {, expression} [,]]
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

from ..errors import LayoutError
from ..values.layout import Composable, Layout
from ..values.stride import F2, E
from ..values.swizzle import ComposedLayout, Swizzle
from ..values.tuples import DEEPEST, is_symbolic, leaves, text

__all__ = ["Reader", "parse"]

SWIZZLE = r"\s*(\d+)\s*,\s*(\d+)\s*,\s*(-?\d+)\s*"

TOKEN = (
    rf"(?P<swizzle>(?:Sw?|Swizzle)<{SWIZZLE}(?:>|(?=\s*(?:o|$)))"  # the DSL prints S<2,0,-3 o 0 o
    rf"|Swizzle\({SWIZZLE}\)"
    r"|SW_(\d+)_(\d+)_(-?\d+))"
    r"|(?P<cpp_pointer>_?(?:\w+_)?ptr\[(\d+)b\]\(([^()]*)\))"
    rf"|(?P<dsl_pointer>ptr<\s*[a-z]+(\d+)[^<>,]*(?:,[^<>,]*)?(?:,\s*align<\d+>)?"
    rf"(?:\s*,\s*S<{SWIZZLE}>?)?>)"
    r"|(?P<basis>E<[\d\s,]*>)"
    r"|(?P<xor>F\d+(?![\w(]))"
    r"|(?P<unknown>\?(?:\{[^}]*\})?)"
    r"|(?P<integer>_?\d+(?:@\d+)*(?![.\d]))"
    r"|(?P<sign>tensor<|//|\*\*|[][():,;<>@=+*/%∘-]|o(?![A-Za-z]))"
    r"|(?P<name>[A-Za-z_]\w*)"
)

#: What stands between tokens: blanks, and the MLIR type that a layout may be printed in.
BLANK = r'(?:\s|!cute\.\w+<"|">)*'

#: An operation in a message, as Python prints it.
FUNCTION = r"<function (\w+) at 0x[0-9a-f]+>"

ASSIGNED = r"[A-Za-z]\w*\s*="

LARGEST_EXPONENT = 64

CLOSING = {"(": ")", "<": ">", "[": "]"}

#: What can be called, and what has modes.
SUFFIXES = {"(": (Layout, ComposedLayout, Swizzle), "[": (Layout, ComposedLayout, tuple)}


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compiled where it is first used, since that takes milliseconds."""
    return re.compile(pattern)


def parse(expression: str) -> Any:
    """The Layout, Swizzle, ComposedLayout or integer tuple that `expression` spells.

    ``A o B`` without an offset has offset 0.  A swizzle before a pointer counts bytes: the result
    is the same function on elements, with their width as its unit, and an address gives the offset
    inside the swizzle's block.  Raises `LayoutError` with the place marked by a caret if
    `expression` cannot be read, or spells what cannot be.

    >>> parse("(_4,_8):(_8,_1)"), parse("((2,4),8)")
    (Layout((4, 8), (8, 1)), ((2, 4), 8))
    >>> parse("Sw<3,3,3> o _0 o (_8,_64):(_64,_1)") == parse("S<3,3,3> o (8,64):(64,1)")
    True
    >>> parse("Sw<1,4,3> o smem_ptr[16b](unset) o (_64,_16):(_16,_1)")
    ComposedLayout(Swizzle(1, 3, 3), 0, Layout((64, 16), (16, 1)), unit=16)
    >>> parse("(4,8):(8,1")
    Traceback (most recent call last):
    layouts.errors.LayoutError: parse: expected ',' or ')'
        (4,8):(8,1
                  ^
    """
    return Reader(expression, CONSTRUCTORS, "parse: ").whole()


class Pointer:
    """A pointer in what was printed: the bits of an element, the swizzle on its bytes, where it
    points."""

    def __init__(self, bits: int, swizzle: Swizzle | None, address: int) -> None:
        self.bits, self.swizzle, self.address = bits, swizzle, address

    def over(self, layout: Layout) -> Layout | ComposedLayout:
        """The offsets in elements, from the start of the swizzle's block where there is one."""
        if self.swizzle is None:
            return layout
        inside = self.address % self.swizzle.block * 8 // self.bits
        return ComposedLayout(self.swizzle.recast(8, self.bits), inside, layout, self.bits)


class Reader:
    """Reads one expression from left to right; `kind` and `token` are what stands at hand.

    `names` has what a name may stand for; others are symbols.  `verb` opens the errors.
    """

    def __init__(self, expression: str, names: Mapping[str, Any], verb: str) -> None:
        if not isinstance(expression, str):
            raise LayoutError(f"{verb}expected a text such as '(4,8):(8,1)', not {expression!r}")
        self.expression, self.names, self.verb = expression, names, verb
        self.end = self.depth = 0
        self.token: Any = None
        self.step()

    def step(self) -> Any:
        """Go to the next token, and give the one that was at hand."""
        before, blank = self.token, _compiled(BLANK).match(self.expression, self.end)
        self.start = blank.end() if blank else self.end
        self.kind, self.token = "end", None
        if self.start == len(self.expression):
            return before
        found = _compiled(TOKEN).match(self.expression, self.start)
        if found is None:
            raise self.error("this cannot be read: expected an integer, a tuple or a swizzle")
        self.end = found.end()
        self.kind = str(found.lastgroup)
        self.token = found if self.kind in READ else found.group()
        return before

    def error(self, what: str, at: int | None = None) -> LayoutError:
        """`what`, with the place of the token at hand, or `at`, marked under the expression."""
        place = self.start if at is None else at
        line = self.expression.expandtabs(1).replace("\n", " ").replace("\r", " ")
        return LayoutError(f"{self.verb}{what}\n    {line}\n    {' ' * place}^")

    def done(self, at: int, function: Callable[..., Any], *args: Any, **named: Any) -> Any:
        """What `function` gives, its refusal marked at `at`."""
        try:
            return function(*args, **named)
        except LayoutError as error:
            said = _compiled(FUNCTION).sub(r"the operation \1", str(error))
            raise self.error(said, at) from error.__cause__
        except (TypeError, ValueError, AttributeError, ArithmeticError, LookupError) as error:
            raise self.error(f"this cannot be computed: {error}", at) from None

    # ------------------------------------------------------------------------ the grammar

    def whole(self) -> Any:
        """The value of the expression up to its end."""
        value = self.composition()
        if self.kind != "end":
            raise self.error("expected ':' or 'o' or the end")
        if isinstance(value, Pointer):
            raise self.error("expected 'o' and a layout after the pointer")
        return value

    def composition(self) -> Any:
        """expression = composed {@ composed}"""
        value = self.composed()
        while self.token == "@":
            at = self.start
            self.step()
            other = self.composed()
            if not isinstance(value, Composable):
                raise self.error("'@' composes layouts; a coordinate stride is written 1@0", at)
            value = self.done(at, operator.matmul, value, other)
        return value

    def composed(self) -> Any:
        """composed = layout {o layout}"""
        parts = [self.layout()]
        while self.token in ("o", "∘") or self.kind == "cpp_pointer":
            if self.kind != "cpp_pointer":  # C++ also prints Sw<3,4,3>_smem_ptr[16b](0x400)
                self.step()
            last = self.start
            parts.append(self.layout())
        return self.done(last, _composed, parts) if len(parts) > 1 else parts[0]

    def layout(self) -> Any:
        """layout = sum [: sum]"""
        start, shape = self.start, self.sum()
        if self.token != ":":
            return shape
        self.step()
        return self.done(start, Layout, shape, self.sum())

    def sum(self) -> Any:
        """sum = term {+ term | - term}"""
        return self.chain(self.term, {"+": operator.add, "-": operator.sub})

    def term(self) -> Any:
        """term = factor {* factor | / factor | // factor | % factor}"""
        return self.chain(self.factor, PRODUCTS)

    def chain(self, part: Callable[[], Any], operations: Mapping[str, Any]) -> Any:
        """Parts with operations of one rank between them, from left to right."""
        value = part()
        while self.kind == "sign" and self.token in operations:
            at, sign = self.start, self.step()
            left, right = _number(value), _number(part())
            if isinstance(left, tuple) or isinstance(right, tuple):
                raise self.error(f"'{sign}' stands between integers or symbols", at)
            value = self.done(at, operations[sign], left, right)
        return value

    def factor(self) -> Any:
        """factor = - factor | suffixed [** integer] {@ integer}"""
        at = self.start
        if self.token == "-":
            self.step()
            value = _number(self.factor())
            if is_symbolic(value):
                return -value
            raise self.error("there are no negative extents, strides and offsets in a layout", at)
        value = self.suffixed()
        if self.token == "**":
            self.step()
            value = self.done(at, _power, _number(value), self.value())
        if self.token == "@" and is_symbolic(_number(value)):  # m@0; an integer's is one token
            self.step()
            if self.kind != "integer":
                raise self.error("expected the mode of a coordinate, as in m@0")
            value = _number(value) * E(*_path(self.step()))
        return value

    def suffixed(self) -> Any:
        """suffixed = value {[ entries ] | ( entries )}"""
        start, value = self.start, self.value()
        while self.token in SUFFIXES and isinstance(value, SUFFIXES[self.token]):
            take: Any = value if self.token == "(" else partial(operator.getitem, value)
            entries, _ = self.entries()
            value = self.done(start, take, *entries)
        return value

    def value(self) -> Any:
        """value = integer | swizzle | pointer | name [( entries )] | ( entries )"""
        if self.kind in READ:
            start, read = self.start, READ[self.kind]
            return self.done(start, read, self.step())
        if self.kind == "name":
            return self.named()
        if self.token in ("(", "<", "["):
            return self.parenthesised()
        if self.token == "tensor<":
            return self.tensor()
        raise self.error("expected an integer or '('")

    def parenthesised(self) -> Any:
        """( entries ), or a layout in parentheses."""
        entries, trailing = self.entries()
        grouped = len(entries) == 1 and isinstance(entries[0], (Layout, ComposedLayout, Swizzle))
        return entries[0] if grouped and not trailing else tuple(entries)

    def tensor(self) -> Any:
        """tensor< expression >, as the DSL prints it."""
        self.step()
        value = self.composition()
        if self.token != ">":
            raise self.error("expected '>'")
        self.step()
        return value

    def entries(self, named: dict[str, Any] | None = None) -> tuple[list[Any], bool]:
        """entries = [expression {, expression} [,]], and whether there is a last comma.

        `named` takes the entries of the form name = expression.
        """
        closing, trailing = CLOSING[self.step()], False
        values: list[Any] = []
        self.depth += 1
        if self.depth > DEEPEST + 2:  # and those of ComposedLayout(Layout(
            raise self.error(f"more than {DEEPEST} parentheses within one another")
        while self.token != closing:
            if named is not None and _compiled(ASSIGNED).match(self.expression, self.start):
                name = self.step()
                self.step()
                named[name] = self.composition()
            else:
                values.append(self.composition())
            trailing = self.token in (",", ";")
            if trailing:
                self.step()
            elif self.token != closing:
                raise self.error(f"expected ',' or '{closing}'")
        self.depth -= 1
        self.step()
        return values, trailing

    def named(self) -> Any:
        """name [( entries )]: an operation on its arguments, a constant, or a symbol."""
        at, name = self.start, self.step()
        known = name in self.names
        if self.token == "(" and known and callable(self.names[name]):
            keywords: dict[str, Any] = {}
            arguments, _ = self.entries(keywords)
            return self.called(at, name, arguments, keywords)
        if known and (self.depth or not callable(self.names[name])):
            return self.names[name]
        if known:
            raise self.error(f"{name} is an operation: write {name}(...)", at)
        if self.token == "(":
            raise self.error(f"there is no operation {name}{self.likely(name)}", at)
        try:
            from ..values.symbols import (
                symbols,  # where the first symbol is met, since it needs sympy
            )

            return symbols(name)
        except ImportError as missing:
            raise self.error(f"{name} would be a symbol, which needs sympy", at) from missing

    def called(self, at: int, name: str, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        """The operation `name` on its arguments, which must be as many as it takes."""
        from inspect import signature

        function = self.names[name]
        try:
            signature(function).bind(*arguments, **keywords)
        except TypeError as error:
            takes = ", ".join(signature(function).parameters)
            raise self.error(f"{name}({takes}) does not take these: {error}", at) from None
        return self.done(at, function, *arguments, **keywords)

    def likely(self, name: str) -> str:
        """The name that may have been meant."""
        from difflib import get_close_matches

        close = get_close_matches(name, [known for known in self.names if known != "_"], 1)
        return f"; did you mean {close[0]}?" if close else ""


# ------------------------------------------------------------------------- reading a token


def _swizzle(found: re.Match[str]) -> Swizzle:
    return Swizzle(*[int(n) for n in found.groups()[1:] if n is not None][:3])


def _cpp_pointer(found: re.Match[str]) -> Pointer:
    bits, address = re.findall(r"ptr\[(\d+)b\]\((.*)\)", found["cpp_pointer"])[0]
    return Pointer(int(bits), None, int(address, 16) if re.fullmatch(HEXADECIMAL, address) else 0)


def _dsl_pointer(found: re.Match[str]) -> Pointer:
    bits = re.findall(r"ptr<\s*[a-z]+(\d+)", found["dsl_pointer"])[0]
    swizzle = re.search(rf"S<{SWIZZLE}", found["dsl_pointer"])
    return Pointer(int(bits), Swizzle(*map(int, swizzle.groups())) if swizzle else None, 0)


def _integer(found: re.Match[str]) -> Any:
    """4, or 4@0@1: four times the unit of mode 0 of mode 1."""
    *path, value = _path(found)
    return value * E(*path) if path else value


def _path(found: re.Match[str]) -> list[int]:
    """The integers of 0@1, outermost first."""
    return [int(entry) for entry in reversed(found["integer"].lstrip("_").split("@"))]


def _unknown(found: re.Match[str]) -> Any:
    raise LayoutError(
        f"'{found['unknown']}' is a number that is known only when the kernel runs: write the "
        f"number, or a symbol such as m, or 8*m for {{div=8}}"
    )


#: The tokens that are values by themselves.
READ: dict[str, Callable[[re.Match[str]], Any]] = {
    "swizzle": _swizzle,
    "cpp_pointer": _cpp_pointer,
    "dsl_pointer": _dsl_pointer,
    "basis": lambda found: E(*map(int, re.findall(r"\d+", found["basis"]))),
    "xor": lambda found: F2(int(found["xor"][1:])),
    "unknown": _unknown,
    "integer": _integer,
}


def _quotient(a: Any, b: Any) -> Any:
    """``a / b``, exact: a fraction is for a rounding function to make whole."""
    if b == 0:
        raise LayoutError(f"{a} / 0 is no number")
    if type(a) is int and type(b) is int and a % b == 0:
        return a // b
    from sympy import S

    return _known(S(a) / b)


def _rounding(name: str) -> Callable[..., Any]:
    """sympy's function `name`, which is imported when it is called."""

    def function(*values: Any) -> Any:
        import sympy

        return _known(getattr(sympy, name)(*values))

    return function


def _known(value: Any) -> Any:
    """A sympy expression, or the int that it is."""
    return int(value) if value.is_Integer else value


PRODUCTS = {"*": operator.mul, "/": _quotient, "//": operator.floordiv, "%": operator.mod}
HEXADECIMAL = r"0x[0-9a-fA-F]+"


def _arithmetic(*coordinate: Any) -> Any:
    """ArithTuple(0,0) of C++: where a tensor of coordinates starts."""
    return tuple(coordinate)


#: What `parse` reads by name.
CONSTRUCTORS: dict[str, Any] = {
    "Layout": Layout,
    "Swizzle": Swizzle,
    "ComposedLayout": ComposedLayout,
    "E": E,
    "F2": F2,
    "ArithTuple": _arithmetic,
    "floor": _rounding("floor"),
    "ceiling": _rounding("ceiling"),
    "Mod": _rounding("Mod"),
    "None": None,
    "_": None,
}


def _number(value: Any) -> Any:
    """An integer or symbol without the parentheses it may stand in."""
    return value[0] if isinstance(value, tuple) and len(value) == 1 else value


def _power(base: Any, exponent: Any) -> Any:
    """A power of a symbol or of an integer, no larger than layouts have use for."""
    if type(exponent) is not int or exponent > LARGEST_EXPONENT:
        raise LayoutError(f"an exponent is an integer of at most {LARGEST_EXPONENT}")
    return base**exponent


def _composed(parts: list[Any]) -> Any:
    """The value of ``inner o offset o outer``, ``inner o outer``, ``pointer o layout`` ..."""
    *before, outer = parts
    if not isinstance(outer, (Layout, ComposedLayout)) or len(before) > 2:
        raise LayoutError(WRITTEN)
    inner, offset = before[0], before[1] if len(before) == 2 else 0
    if isinstance(inner, tuple) and len(before) == 1:
        return _from_origin(inner, outer)
    if not isinstance(outer, Layout):
        raise LayoutError(WRITTEN)
    if isinstance(inner, Pointer) and len(before) == 1:
        return inner.over(outer)
    if isinstance(offset, Pointer) and isinstance(inner, Swizzle):
        return Pointer(offset.bits, inner, offset.address).over(outer)
    function = isinstance(inner, (Swizzle, Layout, ComposedLayout))
    if not function or isinstance(offset, (Pointer, Composable)):
        raise LayoutError(WRITTEN)
    return ComposedLayout(inner, offset, outer)


WRITTEN = "a composed layout is written: swizzle o offset o shape:stride"


def _from_origin(origin: Any, layout: Any) -> Any:
    """A tensor of coordinates, which is a layout if it starts at 0."""
    if any(leaves(origin)):
        raise LayoutError(
            f"a tensor of coordinates that starts at {text(origin)} is no layout: leave the start "
            f"out, and add it to the coordinates that the layout gives"
        )
    return layout
