"""The reader: the text of a PTX module as kernels, each a list of instructions and labels.

Braces open a scope: a register or a label that is declared inside belongs to it alone. The reader
gives such names the number of their scope, so that a kernel has one name space. (PTX ISA, Syntax.)
"""

from __future__ import annotations

import re
from bisect import bisect
from collections import ChainMap
from collections.abc import Iterator
from dataclasses import dataclass

COMMENT = re.compile(r"//[^\n]*")
ENTRY = re.compile(r"\.entry\s+(?P<name>[\w$]+)\s*\((?P<parameters>[^)]*)\)(?P<directives>[^{]*)")
PARAMETER = re.compile(r"\.param(?:\s+\.align\s+\d+)?\s+\.[bu](\d+)\s+([\w$]+)(?:\[(\d+)\])?")
SHARED = re.compile(r"\.extern\s+\.shared\b[^;]*?([\w$]+)\[\]\s*;")
THREADS = re.compile(r"\.reqntid\s+(\d+)\b(?:\s*,\s*1\b)*(?!\s*,)")  # a line along x
# What may stand at the start of a statement: a brace, a label, or the statement itself.
STATEMENT = re.compile(r"\s*(?:(?P<brace>[{}])|(?P<label>[\w$]+)\s*:(?!:)|(?P<text>[^;]*);)")
INSTRUCTION = re.compile(r"(?:@(?P<guard>!?%?\w+)\s+)?(?P<opcode>[\w.:]+)\s*(?P<operands>.*)", re.S)
# Operands: no commas but inside braces or brackets.
OPERAND = re.compile(r"(?:[^,\[{]|\[[^\]]*\]|\{[^}]*\})+")
DECLARED = re.compile(r"\.reg\s+\.\w+\s+(.*)", re.S)
WORD = re.compile(r"%?[\w$]+")


class PtxError(ValueError):
    """PTX that cannot be read or run; the message names the line."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of a kernel, and how many bytes it takes."""

    name: str
    size: int


@dataclass(frozen=True)
class Instruction:
    """One instruction: `@guard opcode operands`, and where it stands in the text."""

    line: int
    guard: str | None
    opcode: str
    operands: tuple[str, ...]

    def __str__(self) -> str:
        guard = f"@{self.guard} " if self.guard else ""
        return f"{guard}{self.opcode} {', '.join(self.operands)}".rstrip()


@dataclass(frozen=True)
class Label:
    """The target of a branch."""

    name: str


@dataclass(frozen=True, eq=False)
class Kernel:
    """A kernel of a PTX module."""

    name: str
    parameters: tuple[Parameter, ...]
    threads: int  # of a block
    shared: tuple[str, ...]  # the names of the start of dynamic shared memory
    body: tuple[Instruction | Label, ...]


def read(text: str) -> tuple[Kernel, ...]:
    """The kernels of a PTX module, in the order of the text. PtxError if it has none.

    >>> (kernel,) = read('''
    ... .visible .entry twice(.param .b32 n)
    ... .reqntid 32, 1, 1
    ... {
    ...     .reg .b32 %r<3>;
    ...     ld.param.b32 %r1, [n];
    ...     add.s32 %r2, %r1, %r1;
    ...     ret;
    ... }''')
    >>> kernel.parameters, kernel.threads, [str(each) for each in kernel.body]
    ((Parameter(name='n', size=4),), 32, ['ld.param.b32 %r1, [n]', 'add.s32 %r2, %r1, %r1', 'ret'])
    """
    text = COMMENT.sub("", text)
    kernels = tuple(_kernel(text, entry) for entry in ENTRY.finditer(text))
    if not kernels:
        raise PtxError("text: it must be a PTX module with a kernel (.entry); it has none")
    return kernels


def _kernel(text: str, entry: re.Match[str]) -> Kernel:
    threads = THREADS.search(entry["directives"])
    if not threads:
        raise PtxError(
            f"kernel {entry['name']}: it must state its threads, along x alone (.reqntid 128, 1, 1)"
        )
    return Kernel(
        entry["name"],
        tuple(
            Parameter(name, int(bits) // 8 * int(count or 1))
            for bits, name, count in PARAMETER.findall(entry["parameters"])
        ),
        int(threads[1]),
        tuple(SHARED.findall(text)),
        tuple(_body(text, entry.end())),
    )


def _body(text: str, at: int) -> Iterator[Instruction | Label]:
    """The statements from the opening brace at `at` to the brace that closes it."""
    lines = [found.start() for found in re.finditer("\n", text)]
    scopes: list[dict[str, str]] = []  # of each open brace: declared name → its name in the kernel
    opened = 0
    while statement := STATEMENT.match(text, at):
        start, at = statement.start(statement.lastgroup or 0), statement.end()
        if statement["brace"] == "{":
            opened += 1
            # The outermost scope is the kernel's own.
            scopes.append(_declared(text, at, opened) if scopes else {})
        elif statement["brace"]:
            scopes.pop()
            if not scopes:
                return
        elif statement["label"]:
            yield Label(_renamed(statement["label"], scopes))
        elif not statement["text"].startswith("."):
            yield _instruction(_renamed(statement["text"], scopes), bisect(lines, start) + 1)
    raise PtxError(f"line {bisect(lines, at) + 1}: a statement must end with a semicolon")


def _declared(text: str, at: int, scope: int) -> dict[str, str]:
    """The registers and labels that the scope from `at` on declares, with its number."""
    names: list[str] = []
    while (statement := STATEMENT.match(text, at)) and statement["brace"] != "}":
        at = statement.end()
        if statement["label"]:
            names.append(statement["label"])
        elif statement["text"] and (registers := DECLARED.match(statement["text"])):
            names += WORD.findall(registers[1])
    return {name: f"{name}_{scope}" for name in names}


def _renamed(text: str, scopes: list[dict[str, str]]) -> str:
    """Text with the names of the innermost scope that declares them."""
    names = ChainMap(*reversed(scopes))
    return WORD.sub(lambda word: names.get(word[0], word[0]), text) if any(scopes) else text


def _instruction(text: str, line: int) -> Instruction:
    parts = INSTRUCTION.fullmatch(text.strip())
    if not parts:
        raise PtxError(f"line {line}: {text.strip()!r} is not an instruction")
    operands = tuple(each.strip() for each in OPERAND.findall(parts["operands"]))
    return Instruction(line, parts["guard"], parts["opcode"], operands)
