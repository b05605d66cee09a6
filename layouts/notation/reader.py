"""The grammar: one method for each rule, which reads it and gives its value.

{x} is x any number of times, and [x] is x or nothing:

    expression = composed {@ composed}              composition
    composed   = layout {o layout}                  inner o offset o outer, inner o outer
    layout     = sum [: sum]                        shape:stride
    sum        = term {+ term | - term}
    term       = factor {* factor | / factor | // factor | % factor}
    factor     = {-} power
    power      = suffixed [** integer] {@ integer}
    suffixed   = value {[ entries ] | ( entries )}  a mode; an offset
    value      = integer | swizzle | pointer | name [( arguments )] | ( entries ) | type < entries >
    entries    = [expression {, expression} [,]]
    arguments  = the same; an argument may also be name = expression, and any entry a string: in
                 quotation marks, or with dots between its words, as in ldmatrix.x4
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from ..errors import LayoutError, check_call, did_you_mean
from ..values.layout import Composable, Layout
from ..values.stride import E
from ..values.swizzle import ComposedLayout, Swizzle
from ..values.tuples import DEEPEST, is_int, is_symbolic, leaves, text
from .names import PRODUCTS, SUMS, power
from .tokens import ASSIGNED, BLANK, TOKEN, VALUES, Pointer, compiled, path_of

__all__ = ["Reader"]

#: A function in a message, as Python prints it.
FUNCTION = r"<function (\w+) at 0x[0-9a-f]+>"

CLOSING = {"(": ")", "<": ">", "[": "]"}

#: What can be called, and what has modes.
SUFFIXES = {"(": (Layout, ComposedLayout, Swizzle), "[": (Layout, ComposedLayout, tuple)}

#: The error at a suffix, `at`, of something else.
NO_LAYOUT = "'{at}' must follow a layout in parentheses, as in ((4,8):(8,1)){at}1{closing}"

#: The kinds of tokens that are texts.
TEXTS = ("quoted", "dotted")

#: A symbol of this many letters may be a string without its quotation marks, or a name misspelt.
SHORTEST_WORD = 3

#: The most characters of an expression that an error shows: as many before and after its place.
SHOWN = 80

COMPOSED_FORM = "a composed layout is written: swizzle o offset o shape:stride"


class Reader:
    """Reads one expression from left to right; `kind` and `token` are those of the current token.

    `names` maps names to values; any other name is a symbol.  Error messages begin with `prefix`.
    `defaults` are keyword arguments for each operation that has them and is not given them; `taken`
    are the names of those that an operation took.
    """

    def __init__(
        self,
        expression: str,
        names: Mapping[str, Any],
        prefix: str,
        defaults: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        if not isinstance(expression, str):
            raise LayoutError(
                f"{prefix}expected a string such as '(4,8):(8,1)', not {expression!r}"
            )
        self.expression, self.names, self.prefix = expression, names, prefix
        self.defaults = defaults
        self.taken: set[str] = set()
        self.end = self.depth = 0
        self.calls = 0  # of operations, around the current token
        self.stride_at = -1  # where the last stride begins
        self.token: Any = None
        self.advance()
        self.begin = self.start
        #: The call that is the whole expression, as an operation and its arguments.
        self.asked: tuple[Callable[..., Any], tuple[Any, ...]] | None = None
        #: Whether the value is written out: no operation, no mode, and no offset of a layout.
        self.is_literal = True

    def advance(self) -> Any:
        """Goes to the next token and returns the previous one."""
        before, blank = self.token, compiled(BLANK).match(self.expression, self.end)
        self.start = blank.end() if blank else self.end
        self.kind, self.token = "end", None
        if self.start == len(self.expression):
            return before
        found = compiled(TOKEN).match(self.expression, self.start)
        if found is None:
            raise self.error("this cannot be read: expected an integer, a tuple or a swizzle")
        self.end = found.end()
        self.kind = str(found.lastgroup)
        self.token = found if self.kind in VALUES else found.group()
        return before

    def error(self, message: str, at: int | None = None) -> LayoutError:
        """The error, with a caret under the current token, or under position `at`."""
        place = self.start if at is None else at
        line = self.expression.expandtabs(1).replace("\n", " ").replace("\r", " ")
        first, last = max(place - SHOWN, 0), place + SHOWN
        before, after = "… " * (first > 0), " …" * (last < len(line))
        caret = f"{' ' * (len(before) + place - first)}^"
        return LayoutError(
            f"{self.prefix}{message}\n    {before}{line[first:last]}{after}\n    {caret}"
        )

    def apply(self, at: int, function: Callable[..., Any], *args: Any, **keywords: Any) -> Any:
        """The value of `function`; an error that it raises is marked at position `at`."""
        try:
            return function(*args, **keywords)
        except LayoutError as error:
            message = compiled(FUNCTION).sub(r"the operation \1", str(error))
            raise self.error(message, at) from error.__cause__
        except (TypeError, ValueError, AttributeError, ArithmeticError, LookupError) as error:
            raise self.error(f"this cannot be computed: {error}", at) from None

    # ------------------------------------------------------------------------ the grammar

    def read(self) -> Any:
        """The value of the whole expression."""
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
            self.advance()
            other = self.composed()
            if not isinstance(value, Composable):
                raise self.error("'@' composes layouts; a coordinate stride is written 1@0", at)
            value = self.apply(at, operator.matmul, value, other)
        return value

    def composed(self) -> Any:
        """composed = layout {o layout}"""
        parts = [self.layout()]
        while self.token in ("o", "∘") or self.kind == "cpp_pointer":
            if self.kind != "cpp_pointer":  # C++ also prints Sw<3,4,3>_smem_ptr[16b](0x400)
                self.advance()
            last = self.start
            parts.append(self.layout())
        return self.apply(last, _composed, parts) if len(parts) > 1 else parts[0]

    def layout(self) -> Any:
        """layout = sum [: sum]"""
        start, shape = self.start, self.sum()
        if self.token != ":":
            return shape
        self.advance()
        self.stride_at = self.start
        stride = self.sum()
        if stride is None:  # which would make a compact layout
            raise self.error("_ is no stride; a shape alone is compact", self.stride_at)
        return self.apply(start, Layout, shape, stride)

    def sum(self) -> Any:
        """sum = term {+ term | - term}"""
        return self.left_to_right(self.term, SUMS)

    def term(self) -> Any:
        """term = factor {* factor | / factor | // factor | % factor}"""
        return self.left_to_right(self.factor, PRODUCTS)

    def left_to_right(self, operand: Callable[[], Any], operations: Mapping[str, Any]) -> Any:
        """Operands with operations of one precedence between them."""
        value = operand()
        while self.kind == "sign" and self.token in operations:
            at, sign = self.start, self.advance()
            left, right = _ungrouped(value), _ungrouped(operand())
            if isinstance(left, tuple) or isinstance(right, tuple):
                raise self.error(f"'{sign}' stands between integers or symbols", at)
            value = self.apply(at, operations[sign], left, right)
        return value

    def factor(self) -> Any:
        """factor = {-} power"""
        at, sign = self.start, 1
        while self.token == "-":
            self.advance()
            sign = -sign
        is_negated = self.start != at
        value = self.power()
        if not is_negated:
            return value
        if not is_symbolic(_ungrouped(value)):
            raise self.error("a layout has no negative extents, strides or offsets", at)
        return sign * _ungrouped(value)

    def power(self) -> Any:
        """power = suffixed [** integer] {@ integer}"""
        at, value = self.start, self.suffixed()
        if self.token == "**":
            self.advance()
            value = self.apply(at, power, _ungrouped(value), self.value())
        if self.token == "@" and is_symbolic(_ungrouped(value)):  # m@0; 4@0 is one token
            self.advance()
            if self.kind != "integer":
                raise self.error("expected the mode of a coordinate, as in m@0")
            value = _ungrouped(value) * E(*path_of(self.advance()))
        return value

    def suffixed(self) -> Any:
        """suffixed = value {[ entries ] | ( entries )}"""
        start, value = self.start, self.value()
        while self.token in SUFFIXES:
            is_stride = isinstance(value, tuple) and start == self.stride_at
            if is_stride or not isinstance(value, SUFFIXES[self.token]):
                raise self.error(NO_LAYOUT.format(at=self.token, closing=CLOSING[self.token]))
            self.is_literal = False
            take: Any = value if self.token == "(" else partial(_mode, value)
            entries, _ = self.entries()
            if take is value and start == self.begin and self.kind == "end":
                self.asked = value, tuple(entries)
            value = self.apply(start, take, *entries)
        return value

    def value(self) -> Any:
        """value = integer | swizzle | pointer | name [( entries )] | ( entries ) | type"""
        if self.kind in VALUES:
            start, value_of = self.start, VALUES[self.kind]
            return self.apply(start, value_of, self.advance())
        if self.kind == "name":
            return self.named()
        if self.kind == "type":
            return self.type()
        if self.token in CLOSING:
            return self.parenthesised()
        if self.token == "tensor<":
            return self.tensor()
        if self.kind == "quoted":
            raise self.error("only arguments of operations are strings: omit the quotation marks")
        if self.kind == "dotted":
            raise self.error("only an argument of an operation is a string, such as ldmatrix.x4")
        raise self.error("expected an integer or '('")

    def parenthesised(self) -> Any:
        """( entries ), or a layout in parentheses."""
        entries, trailing = self.entries()
        grouped = len(entries) == 1 and isinstance(entries[0], (Layout, ComposedLayout, Swizzle))
        return entries[0] if grouped and not trailing else tuple(entries)

    def type(self) -> Any:
        """type < entries >, as a C++ compiler prints it: Layout<Shape<_4,C<8>>,Stride<_8,_1>>."""
        at, name = self.start, self.advance()
        entries, _ = self.entries()
        return self.apply(at, TYPES.get(name, _tuple), *entries)

    def tensor(self) -> Any:
        """tensor< expression >, as the DSL prints it."""
        self.advance()
        if self.token == "tensor<":
            raise self.error("a tensor holds a pointer and a layout, not another tensor")
        value = self.composition()
        if self.token != ">":
            raise self.error("expected '>'")
        self.advance()
        return value

    def entries(self, keywords: dict[str, Any] | None = None) -> tuple[list[Any], bool]:
        """entries = [expression {, expression} [,]], and whether the last comma is there.

        Entries of the form name = expression go into `keywords`, if given.
        """
        closing, trailing = CLOSING[self.advance()], False
        values: list[Any] = []
        self.depth += 1
        if self.depth > DEEPEST + 2:  # two more for ComposedLayout(Layout(
            raise self.error(f"more than {DEEPEST} parentheses within one another")
        while self.token != closing:
            if keywords is not None and compiled(ASSIGNED).match(self.expression, self.start):
                at, name = self.start, self.advance()
                if name in keywords:
                    raise self.error(f"{name} is given twice", at)
                self.advance()
                keywords[name] = self.argument()
            else:
                values.append(self.argument())
            trailing = self.token in (",", ";")
            if trailing:
                self.advance()
            elif self.token != closing:
                raise self.error(f"expected ',' or '{closing}'")
        self.depth -= 1
        self.advance()
        return values, trailing

    def argument(self) -> Any:
        """An expression, or, within a call, a string such as the name of an instruction."""
        if not self.calls or self.kind not in TEXTS:
            return self.composition()
        return self.advance() if self.kind == "dotted" else self.advance()[1:-1]

    # ----------------------------------------------------------------------------- names

    def named(self) -> Any:
        """name [( entries )]: an operation on its arguments, a constant, or a symbol."""
        at, name = self.start, self.advance()
        known = self.names.get(name)
        is_operation = callable(known) and not isinstance(known, Composable)
        if is_operation and self.token == "(":
            return self.call(at, name)
        if is_operation and not self.depth:
            raise self.error(f"{name} is an operation: write {name}(...)", at)
        if name in self.names:
            return known
        if self.token == "(":
            raise self.unknown(at, name)
        return self.symbol(at, name)

    def read_answer(self) -> Any:
        """The value of the whole expression, which is more than a name that nothing has."""
        name = self.token
        if self.kind == "name" and name == self.expression.strip() and name not in self.names:
            raise self.unknown(self.start, name)
        return self.read()

    def call(self, at: int, name: str) -> Any:
        """The operation `name` on the arguments that follow, checked against its signature."""
        self.is_literal = False
        function = self.names[name]
        keywords: dict[str, Any] = {}
        self.calls += 1
        arguments, _ = self.entries(keywords)
        self.calls -= 1
        bound = self.apply(at, check_call, function, arguments, keywords)
        if at == self.begin and self.kind == "end" and not bound.kwargs:
            self.asked = function, bound.args
        for key, value in self.defaults.items():
            if key in bound.signature.parameters and key not in bound.arguments:
                keywords[key] = value
                self.taken.add(key)
        for given in (*arguments, *keywords.values()):
            if getattr(given, "is_Symbol", False) and len(str(given)) >= SHORTEST_WORD:
                hint = f"; {given} is a symbol here, and '{given}' would be a string"
                function = _hinting(function, hint + self.suggestion(str(given)))
        return self.apply(at, function, *arguments, **keywords)

    def unknown(self, at: int, name: str) -> LayoutError:
        """The error at a name that nothing has, with the closest one."""
        return self.error(f"there is no operation {name}{self.suggestion(name)}", at)

    def suggestion(self, name: str) -> str:
        """The known name that is closest to `name`, as part of a message."""
        return did_you_mean(name, [known for known in self.names if known != "_"])

    def symbol(self, at: int, name: str) -> Any:
        """The symbol `name`; sympy is imported at the first one."""
        from ..values.symbols import symbols

        return self.apply(at, symbols, name)


def _hinting(function: Callable[..., Any], hint: str) -> Callable[..., Any]:
    """`function`, with `hint` after the message of an error that it raises."""

    def hinting(*args: Any, **keywords: Any) -> Any:
        try:
            return function(*args, **keywords)
        except LayoutError as error:
            raise LayoutError(f"{error}{hint}") from error.__cause__

    return hinting


def _ungrouped(value: Any) -> Any:
    """An integer or a symbol without the parentheses around it."""
    return value[0] if isinstance(value, tuple) and len(value) == 1 else value


def _mode(value: Any, *modes: Any) -> Any:
    """A mode of a layout, or an entry of a tuple."""
    if len(modes) != 1 or type(modes[0]) is not int:
        raise LayoutError(f"mode {text(modes)} of {text(value)}: it must be one integer")
    if isinstance(value, tuple) and modes[0] >= len(value):
        raise LayoutError(f"entry {modes[0]} of {text(value)}: it has {len(value)} entries")
    return value[modes[0]]


def _composed(parts: list[Any]) -> Any:
    """The value of ``inner o offset o outer``, ``inner o outer``, ``pointer o layout`` ..."""
    *before, outer = parts
    if not isinstance(outer, (Layout, ComposedLayout)) or len(before) > 2:
        raise LayoutError(COMPOSED_FORM)
    inner, offset = before[0], before[1] if len(before) == 2 else 0
    if isinstance(inner, tuple) and len(before) == 1:
        return _from_origin(inner, outer)
    if not isinstance(outer, Layout):
        raise LayoutError(COMPOSED_FORM)
    if isinstance(inner, Pointer) and len(before) == 1:
        return inner.over(outer)
    if isinstance(offset, Pointer) and isinstance(inner, Swizzle):
        return Pointer(offset.bits, inner, offset.address).over(outer)
    function = isinstance(inner, (Swizzle, Layout, ComposedLayout))
    if not function or isinstance(offset, (Pointer, Composable)):
        raise LayoutError(COMPOSED_FORM)
    return ComposedLayout(inner, offset, outer)


def _from_origin(origin: Any, layout: Any) -> Any:
    """The layout of a tensor of coordinates, or of a counting tensor, which must start at 0."""
    if any(leaves(origin)):
        raise LayoutError(
            f"a tensor that counts from {text(origin)} is not a layout: omit the start, and add it "
            f"to what the layout gives"
        )
    return layout


def _tuple(*entries: Any) -> Any:
    return entries


def _constant(*value: Any) -> int:
    if len(value) != 1 or not is_int(value[0]):
        raise LayoutError(f"C<{text(value)[1:-1]}>: it must have one integer, as in C<8>")
    return int(value[0])


#: A class template of C++ → what it makes of its arguments; others are tuples of them.
TYPES: dict[str, Callable[..., Any]] = {
    "C": _constant,
    "Int": _constant,
    "Layout": Layout,
    "ComposedLayout": lambda *parts: _composed([*parts]),
    "smem_ptr_flag_bits": Pointer,
}
