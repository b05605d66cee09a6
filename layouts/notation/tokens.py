"""Tokens: what C++, the DSL, pycute and PyCuTe print as one thing, and the value of each."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

from ..errors import LayoutError
from ..values.layout import Layout
from ..values.stride import F2, E
from ..values.swizzle import ComposedLayout, Swizzle

__all__ = ["ASSIGNED", "BLANK", "TOKEN", "VALUES", "Pointer", "compiled", "path_of"]

SWIZZLE = r"\s*(\d+)\s*,\s*(\d+)\s*,\s*(-?\d+)\s*"

TOKEN = (
    rf"(?P<swizzle>(?:Sw?|Swizzle)<{SWIZZLE}(?:>|(?=\s*(?:o|$)))"  # the DSL prints S<2,0,-3 o 0 o
    rf"|Swizzle\({SWIZZLE}\)"
    r"|SW_(\d+)_(\d+)_(-?\d+))"
    r"|(?P<cpp_pointer>(?:_?(?:\w+_)?(?:sub)?ptr|tmem_)\[(\d+)b\]\(([^()]*)\))"
    r"|(?P<descriptors>[GU]MMA::DescriptorIterator)"
    rf"|(?P<dsl_pointer>ptr<\s*[a-z]+(\d+)[^<>,]*(?:,[^<>,]*)?(?:,\s*align<\d+>)?"
    rf"(?:\s*,\s*S<{SWIZZLE}>?)?>)"
    r"|(?P<basis>E<[\d\s,]*>)"
    r"|(?P<xor>F\d+(?![\w(]))"
    r"|(?P<unknown>\?(?:\{[^}]*\})?|int\b)"
    r"|(?P<integer>_?\d+(?:@\d+)*(?![.\d]))"
    r"|(?P<sign>tensor<|//|\*\*|[][():,;<>@=+*/%∘-]|o(?![A-Za-z]))"
    r"|(?P<type>(?:Layout|ComposedLayout|Shape|Stride|Tile|tuple|C|Int|smem_ptr_flag_bits)(?=<))"
    r"|(?P<dotted>[A-Za-z_]\w*(?:\.\w+)+)"
    r"|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<quoted>\"[^\"]*\"|'[^']*')"
)

#: Between tokens: blanks, C++'s namespace, and the MLIR type around a printed layout.
BLANK = r'(?:\s|cute::|!cute\.\w+<"|">)*'

#: The beginning of a keyword argument.
ASSIGNED = r"[A-Za-z]\w*\s*="

#: An address, and after a dot the bit of a sub-byte element in it.
ADDRESS = r"(0x[0-9a-fA-F]+)(?:\.(\d+))?"


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """`pattern`, compiled at its first use: that takes milliseconds, too long for an import."""
    return re.compile(pattern)


class Pointer:
    """A printed pointer: the bits of an element, the swizzle on its bytes, its address in bits."""

    def __init__(self, bits: int, swizzle: Swizzle | None = None, address: int = 0) -> None:
        self.bits, self.swizzle, self.address = bits, swizzle, address

    def over(self, layout: Layout) -> Layout | ComposedLayout:
        """The offsets in elements; under a swizzle, from an address of which it reads no bit."""
        if self.swizzle is None:
            return layout
        on_elements = self.swizzle.recast(8, self.bits)
        if self.address % self.bits:
            raise LayoutError(
                f"ptr[{self.bits}b] at byte {self.address / 8:g}: the address must be a multiple "
                f"of {self.bits} bits; write the address of an element"
            )
        period = 1 << (on_elements.source | on_elements.target).bit_length()
        inside = self.address // self.bits % period
        return ComposedLayout(on_elements, inside, layout, self.bits)


def _swizzle(found: re.Match[str]) -> Swizzle:
    return Swizzle(*[int(n) for n in found.groups()[1:] if n is not None][:3])


def _cpp_pointer(found: re.Match[str]) -> Pointer:
    bits, written = re.findall(r"\[(\d+)b\]\((.*)\)", found["cpp_pointer"])[0]
    address = re.fullmatch(ADDRESS, written)
    return Pointer(int(bits), None, _bits(*address.groups("0")) if address else 0)


def _bits(byte: str, bit: str) -> int:
    return 8 * int(byte, 16) + int(bit)


def _descriptors(_: re.Match[str]) -> Pointer:
    """Those of wgmma and tcgen05.mma; their layout counts steps of 16 bytes."""
    return Pointer(128)


def _dsl_pointer(found: re.Match[str]) -> Pointer:
    bits = re.findall(r"ptr<\s*[a-z]+(\d+)", found["dsl_pointer"])[0]
    swizzle = re.search(rf"S<{SWIZZLE}", found["dsl_pointer"])
    return Pointer(int(bits), Swizzle(*map(int, swizzle.groups())) if swizzle else None)


def _basis(found: re.Match[str]) -> Any:
    return E(*map(int, re.findall(r"\d+", found["basis"])))


def _xor(found: re.Match[str]) -> Any:
    return F2(int(found["xor"][1:]))


def _integer(found: re.Match[str]) -> Any:
    """4, or 4@0@1: four times the unit of mode 0 of mode 1."""
    *path, value = path_of(found)
    return value * E(*path) if path else value


def path_of(found: re.Match[str]) -> list[int]:
    """The integers of 0@1, outermost first."""
    return [int(entry) for entry in reversed(found["integer"].lstrip("_").split("@"))]


def _unknown(found: re.Match[str]) -> Any:
    raise LayoutError(
        f"'{found['unknown']}' is a number that is known only when the kernel runs: write the "
        f"number, or a symbol such as m, or 8*m for {{div=8}}"
    )


#: Kind of a token → its value, for the kinds that are values by themselves.
VALUES: dict[str, Callable[[re.Match[str]], Any]] = {
    "swizzle": _swizzle,
    "cpp_pointer": _cpp_pointer,
    "descriptors": _descriptors,
    "dsl_pointer": _dsl_pointer,
    "basis": _basis,
    "xor": _xor,
    "unknown": _unknown,
    "integer": _integer,
}
