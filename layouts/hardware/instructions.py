"""The instructions that reach shared memory: how many lanes address it, how wide, in what phases.

A wavefront moves 128 bytes, so an access goes by phases of 8 lanes of 16 bytes, 16 of 8, or 32 of 4
and fewer.  ldmatrix and stmatrix go by matrices, the eight 16-byte rows of each being a phase.
Loads of 8 and 16 bytes alone *merge*: where every lane of the warp has the address of its
neighbour, lane ^ 1, or every lane that of lane ^ 2, phases are twice as long.

This is what an H100 counts: Nsight Compute's shared-memory wavefronts and bank conflicts of 1206
cases of 14 instructions are this rule's, all of them (tests/layouts/measured).  Not among them were
cp.async, accesses below 4 bytes, and loads by a part of a warp: the first two are taken as what
their width makes them, and a part of a warp does not merge.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from ..errors import LayoutError
from ..values.value import Value

__all__ = ["INSTRUCTIONS", "Instruction", "instruction"]

#: Lanes of a warp.
WARP = 32

#: Bytes of one access of a lane -> lanes that go together.
PHASE_LANES = {1: 32, 2: 32, 4: 32, 8: 16, 16: 8}

#: Where every lane has the address of lane ^ one of these, phases of a load that merges double.
NEIGHBOURS = (1, 2)


class Instruction(Value):
    """An access to shared memory: `width` bytes at each address, which `lanes` lanes supply.

    `merges` says that neighbours with one address lengthen the phases.

    >>> instruction("ldmatrix.x2.trans").lanes, instruction("ld.shared.v4.b32").phase
    (16, 8)
    """

    __slots__ = __match_args__ = ("name", "width", "lanes", "merges")
    name: str
    width: int
    lanes: int
    merges: bool

    def __init__(self, name: str, width: int, lanes: int = WARP, merges: bool = False) -> None:
        self._set(name, width, lanes, merges)
        if type(width) is not int or width not in PHASE_LANES:
            found = width if isinstance(width, (int, str)) else f"is a {type(width).__name__}"
            raise LayoutError(f"width {found}: a lane accesses 1, 2, 4, 8 or 16 bytes")

    @property
    def phase(self) -> int:
        """Lanes that go together, where none merge."""
        return PHASE_LANES[self.width]

    @property
    def moves_matrices(self) -> bool:
        """Whether this is ldmatrix or stmatrix, whose lanes address rows for one another."""
        return self.name.startswith(("ldmatrix", "stmatrix"))

    def phase_at(self, addresses: Sequence[int]) -> int:
        """Lanes that go together where the lanes of a warp have these addresses.

        >>> load = instruction("ld.shared.v2.b32")
        >>> [load.phase_at([lane // share * 8 for lane in range(32)]) for share in (1, 2, 4)]
        [16, 32, 32]
        """
        merged = self.merges and len(addresses) == WARP and _neighbours_share(addresses)
        return 2 * self.phase if merged else self.phase

    def __str__(self) -> str:
        return self.name or f"{self.width} bytes a lane"


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
            if width > 16:
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


#: By name (PTX ISA 9.7.9.8 ld, 9.7.9.11 st, 9.7.14.5.15 ldmatrix, 9.7.14.5.16 stmatrix,
#: 9.7.9.25.3.1 cp.async).
INSTRUCTIONS = _table()

#: Parts of a PTX name that say nothing of addresses.
UNSAID = ("sync", "aligned", "m8n8", "global", "weak", "cta")


def instruction(name: str | int | Instruction) -> Instruction:
    """The instruction of a PTX name, or of so many bytes a lane.

    Types are as wide as they say, so that ``ld.shared.v4.f32`` is ``ld.shared.v4.b32``; of ldmatrix
    and stmatrix ``x4.trans`` is enough.  A number of bytes is an access that does not merge.

    Raises `LayoutError` if there is none.

    >>> print(instruction("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16"))
    ldmatrix.x4.trans
    >>> instruction("ld.shared.v4.f32").width, instruction(8).phase
    (16, 16)
    """
    if isinstance(name, Instruction):
        return name
    if type(name) is int:
        return Instruction("", name)
    if not isinstance(name, str):
        raise LayoutError(
            f"{getattr(name, '__name__', name)} is no access: take a PTX name such as "
            f"'ldmatrix.x4', a width of 1, 2, 4, 8 or 16 bytes, or, for banks, an atom such as "
            f"ldmatrix(4)"
        )
    parts = [part.split("::")[0] for part in name.split(".")]
    parts = [part for part in parts if part not in UNSAID] or [""]
    if parts[0] in ("ldmatrix", "stmatrix", "cp"):
        parts = [part for part in parts if part not in ("shared", "b16")]
    elif parts[-1][:1] in ("f", "u", "s") and parts[-1][1:].isdigit():
        parts[-1] = f"b{parts[-1][1:]}"
    found = INSTRUCTIONS.get(".".join(parts))
    if found is None:
        raise LayoutError(
            f"{name!r} is no instruction of the table; it has {', '.join(INSTRUCTIONS)}, "
            f"and takes a width of 1, 2, 4, 8 or 16 bytes"
        )
    return found
