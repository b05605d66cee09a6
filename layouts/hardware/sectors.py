"""Global memory: how many 32-byte sectors a warp asks for.

Global memory moves in sectors of 32 bytes, of which four make a line.  A request of a warp takes
each sector that any of its lanes touches, once: lanes that share a sector share its transfer, and
bytes of it that no lane wants are moved for nothing.
"""

from __future__ import annotations

from ..algebra import gf2
from ..errors import LayoutError
from ..values.layout import Layout
from ..values.swizzle import ComposedLayout
from ..values.tuples import is_int, size
from ..values.value import Value
from .instructions import PHASE_LANES, WARP
from .wavefronts import byte_columns, byte_unit

__all__ = ["SECTOR_BYTES", "Sectors", "sectors"]

#: Bytes that global memory moves at least (CUDA C++ Best Practices Guide, coalesced access).
SECTOR_BYTES = 32


class Sectors(Value):
    """The sectors of all requests: how many are moved, and how many the bytes wanted would fill.

    `requests` is the number of warps' accesses; `every_base` says that the count holds at every
    base that has none of the bits that the lanes move, decided by rank.
    """

    __slots__ = __match_args__ = ("count", "ideal", "requests", "every_base")
    count: int
    ideal: int
    requests: int
    every_base: bool

    def __init__(self, count: int, ideal: int, requests: int, every_base: bool) -> None:
        self._set(count, ideal, requests, every_base)

    @property
    def coalesced(self) -> bool:
        """Whether no byte is moved for nothing."""
        return self.count == self.ideal

    @property
    def per_request(self) -> float:
        """Sectors of one request, on average: what Nsight Compute shows."""
        return self.count / self.requests

    def __str__(self) -> str:
        said = f"{self.per_request:g} sectors a request"
        where = "at every base" if self.every_base else "at these addresses"
        if self.coalesced:
            return f"{said}, coalesced {where}"
        return f"{said} where {self.ideal / self.requests:g} would do, {where}"


def sectors(lanes: Layout | ComposedLayout, width: int = 4, unit: int | None = None) -> Sectors:
    """The sectors that lanes ask for, which access `width` bytes each in global memory.

    `lanes` takes a thread to its offset; 32 threads make a request, and any others further ones.
    `unit` is the bits of one offset, as in `wavefronts`.

    Raises `LayoutError` if `width` is none of 1, 2, 4, 8, 16, or an address is no multiple of it.

    A warp of a matrix product with one thread an element, down a column and along a row:

    >>> print(sectors(Layout(32, 8192), unit=32))
    32 sectors a request where 4 would do, at every base
    >>> print(sectors(Layout(32, 1), unit=32))
    4 sectors a request, coalesced at every base
    """
    if type(width) is not int or width not in PHASE_LANES:
        raise LayoutError(f"width {width!r}: a lane accesses 1, 2, 4, 8 or 16 bytes")
    if not is_int(size(lanes)):
        raise LayoutError(f"{lanes}: its extents must be integers; give the symbols values first")
    unit = byte_unit(lanes, unit)
    addresses = [lanes(lane) * unit // 8 for lane in range(size(lanes))]
    for lane, address in enumerate(addresses):
        if address % width:
            raise LayoutError(
                f"lane {lane} accesses {width} bytes at byte {address}: an address must be a "
                f"multiple of the bytes accessed"
            )
    requests = -(-len(addresses) // WARP)
    columns = byte_columns(lanes, unit)
    if columns is not None:
        return _by_rank(columns[:5], width, requests)
    warps = [addresses[first : first + WARP] for first in range(0, len(addresses), WARP)]
    count = sum(len({address // SECTOR_BYTES for address in warp}) for warp in warps)
    ideal = sum(_filled(len(set(warp)), width) for warp in warps)
    return Sectors(count, ideal, requests, False)


def _by_rank(columns: list[int], width: int, requests: int) -> Sectors:
    """The addresses of a warp are a space over GF(2), and so are its sectors."""
    count = 1 << gf2.rank(column // SECTOR_BYTES for column in columns)
    ideal = _filled(1 << gf2.rank(columns), width)
    return Sectors(requests * count, requests * ideal, requests, True)


def _filled(addresses: int, width: int) -> int:
    return -(-addresses * width // SECTOR_BYTES)
