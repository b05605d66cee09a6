"""The instructions that access shared memory: their lanes, their width, their phases.

A wavefront moves 128 bytes.  An access therefore runs in *phases*: 8 lanes of 16 bytes, 16 lanes of
8, or 32 lanes of 4 or fewer.  ldmatrix and stmatrix run matrix by matrix: the eight 16-byte rows of
a matrix are one phase.  Only loads of 8 and 16 bytes *merge*: if every lane of the warp has the
address of lane ^ 1, or every lane that of lane ^ 2, the phases are twice as long.

An H100 agrees.  Nsight Compute counted shared-memory wavefronts and bank conflicts in 1206 cases of
14 instructions; this rule predicts every one (tests/layouts/hardware/measured).  Three kinds were
not measured: cp.async and accesses below 4 bytes, which here follow their width, and loads by part
of a warp, which here do not merge.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ..errors import LayoutError, did_you_mean, type_of
from ..values.tuples import as_int, is_int
from ..values.value import Value
from .facts import ACCESS_BYTES, BANK_BYTES, PHASE_LANES, WARP, WAVEFRONT_BYTES

__all__ = ["INSTRUCTIONS", "Instruction", "checked_width", "instruction"]

#: The phases of a merging load double if every lane has the address of lane ^ one of these.
NEIGHBOURS = (1, 2)


class Instruction(Value):
    """An access to shared memory: `lanes` lanes supply an address, each of `width` bytes.

    `merges` says that the phases double if neighbouring lanes have equal addresses.

    Raises `LayoutError` unless a lane can access `width` bytes, and there are 1 to 32 lanes.

    >>> instruction("ldmatrix.x2.trans").lanes, instruction("ld.shared.v4.b32").phase
    (16, 8)
    """

    __slots__ = __match_args__ = ("name", "width", "lanes", "merges")
    name: str
    width: int
    lanes: int
    merges: bool

    def __init__(self, name: str, width: int, lanes: int = WARP, merges: bool = False) -> None:
        self._set(name, checked_width(width), as_int(lanes), merges)
        if not isinstance(name, str) or not is_int(lanes) or not 1 <= lanes <= WARP:
            raise LayoutError(f"{self!r}: the name must be a string, and lanes from 1 to {WARP}")
        if not isinstance(merges, bool):
            raise LayoutError(f"{self!r}: merges must be True or False")

    @property
    def heading(self) -> str:
        """What it is, in one line.

        >>> print(instruction("ldmatrix.x4").heading)
        ldmatrix.x4: 32 lanes give the address of 16 bytes each, in phases of 8 lanes
        """
        merges = ", twice as many if neighbours have equal addresses" if self.merges else ""
        lanes = f"{self.lanes} lanes give the address of {self.width} bytes each"
        return f"{self.name}: {lanes}, in phases of {self.phase} lanes{merges}"

    @property
    def phase(self) -> int:
        """Lanes of a phase, unless the access merges."""
        return PHASE_LANES[self.width]

    @property
    def word_bytes(self) -> int:
        """Bytes of a word, the unit of conflicts: the width, but at least one bank."""
        return max(self.width, BANK_BYTES)

    @property
    def words(self) -> int:
        """Words that one wavefront moves, each of its own bank or group of banks.

        >>> instruction("ld.shared.b32").words, instruction("ldmatrix.x4").words
        (32, 8)
        """
        return WAVEFRONT_BYTES // self.word_bytes

    @property
    def moves_matrices(self) -> bool:
        """Whether this is ldmatrix or stmatrix, whose lanes address rows for one another."""
        return self.name.startswith(("ldmatrix", "stmatrix"))

    def phase_at(self, addresses: Sequence[int]) -> int:
        """Lanes of a phase if the lanes of a warp have these addresses.

        >>> load = instruction("ld.shared.v2.b32")
        >>> [load.phase_at([lane // share * 8 for lane in range(32)]) for share in (1, 2, 4)]
        [16, 32, 32]
        """
        merged = self.merges and len(addresses) == WARP and _neighbours_share(addresses)
        return 2 * self.phase if merged else self.phase

    def __str__(self) -> str:
        return self.name or f"{self.width} bytes per lane"


def checked_width(width: Any) -> int:
    """`width`, if a lane can access so many bytes at once; raises `LayoutError` if not."""
    if not is_int(width) or width not in ACCESS_BYTES:
        found = repr(width) if isinstance(width, (int, str)) else f"is {type_of(width)}"
        raise LayoutError(f"width {found}: a lane accesses 1, 2, 4, 8 or 16 bytes")
    return int(width)


def _neighbours_share(addresses: Sequence[int]) -> bool:
    return any(
        all(addresses[lane] == addresses[lane ^ other] for lane in range(WARP))
        for other in NEIGHBOURS
    )


def _table() -> Mapping[str, Instruction]:
    rows = []
    for bits in (8, 16, 32, 64, 128):
        for count in (1, 2, 4):
            width = bits * count // 8
            if width not in ACCESS_BYTES:
                continue
            kind = f"b{bits}" if count == 1 else f"v{count}.b{bits}"
            rows.append(Instruction(f"ld.shared.{kind}", width, merges=width > 4))
            rows.append(Instruction(f"st.shared.{kind}", width))
    for matrices in (1, 2, 4):
        for suffix in ("", ".trans"):
            for name in ("ldmatrix", "stmatrix"):
                rows.append(Instruction(f"{name}.x{matrices}{suffix}", 16, 8 * matrices))
    rows.append(Instruction("cp.async.cg", 16))
    return MappingProxyType({row.name: row for row in rows})


#: By name (PTX ISA 9.2, sections 9.7.9.8 ld, 9.7.9.11 st, 9.7.14.5.15 ldmatrix, 9.7.14.5.16
#: stmatrix, 9.7.9.25.3.1 cp.async).
INSTRUCTIONS = _table()

#: Parts of a PTX name that do not affect the addresses.
IGNORED = ("sync", "aligned", "m8n8", "global", "weak", "cta")


def instruction(name: str | int | Instruction) -> Instruction:
    """The instruction with a PTX name, or an access of so many bytes per lane.

    Only the width of a type counts: ``ld.shared.v4.f32`` is ``ld.shared.v4.b32``.  For ldmatrix and
    stmatrix the short form ``ldmatrix.x4.trans`` is enough.  A number of bytes stands for an access
    that does not merge.

    Raises `LayoutError` if there is no such instruction.

    >>> print(instruction("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16"))
    ldmatrix.x4.trans
    >>> instruction("ld.shared.v4.f32").width, instruction(8).phase
    (16, 16)
    """
    if isinstance(name, Instruction):
        return name
    if is_int(name):
        return Instruction("", int(name))
    if not isinstance(name, str):
        raise LayoutError(
            f"{getattr(name, '__name__', name)} is not an access: give a PTX name such as "
            f"'ldmatrix.x4', a width of 1, 2, 4, 8 or 16 bytes, or, for banks, an atom such as "
            f"ldmatrix(4)"
        )
    found = INSTRUCTIONS.get(_short(name))
    if found is None:
        near = did_you_mean(name, INSTRUCTIONS) or "."
        raise LayoutError(
            f"{name!r} is not an instruction of the table{near} Give a width of 1, 2, 4, 8 or 16 "
            f"bytes, or one of {', '.join(INSTRUCTIONS)}"
        )
    return found


def _short(name: str) -> str:
    """The name of the table for a PTX name."""
    parts = [part.split("::")[0] for part in name.split(".")]
    parts = [part for part in parts if part not in IGNORED] or [""]
    if parts[0] in ("ldmatrix", "stmatrix", "cp"):
        parts = [part for part in parts if part not in ("shared", "b16")]
    elif parts[-1][:1] in ("f", "u", "s") and parts[-1][1:].isdigit():
        parts[-1] = f"b{parts[-1][1:]}"
    return ".".join(parts)
