"""Global memory: how many 32-byte sectors a warp requests.

Global memory moves sectors of 32 bytes.  A request of a warp moves each sector that any of its
lanes accesses, once.  Lanes that share a sector share its transfer; bytes of it that no lane
accesses are moved for nothing.
"""

from __future__ import annotations

from ..algebra import gf2
from ..values.layout import Layout
from ..values.swizzle import ComposedLayout
from ..values.unit import BYTE, in_units
from ..values.value import Report
from .byte_addresses import byte_addresses, byte_columns, byte_unit, check_aligned, check_lanes
from .facts import SECTOR_BYTES, WARP
from .instructions import checked_width

__all__ = ["Sectors", "sectors"]


class Sectors(Report):
    """The sectors that all requests move, and how many their distinct bytes would fill.

    `count`       sectors moved
    `ideal`       sectors that the accessed bytes would fill if they were contiguous
    `requests`    accesses, one per warp
    `every_base`  whether the count is decided by rank: it then holds at every base that has none of
                  the bits that the lanes set
    `unit`        bits of one offset of the lanes
    """

    __slots__ = __match_args__ = ("count", "ideal", "requests", "every_base", "unit")
    count: int
    ideal: int
    requests: int
    every_base: bool
    unit: int

    def __init__(
        self, count: int, ideal: int, requests: int, every_base: bool, unit: int = BYTE
    ) -> None:
        self._set(count, ideal, requests, every_base, unit)

    @property
    def coalesced(self) -> bool:
        """Whether no byte is moved for nothing."""
        return self.count == self.ideal

    @property
    def per_request(self) -> float:
        """Sectors per request, on average, as Nsight Compute reports them."""
        return self.count / self.requests

    def __str__(self) -> str:
        per_request = f"{self.per_request:g} sectors per request"
        where = "at every base" if self.every_base else "at these addresses"
        if self.coalesced:
            found = f"{per_request}, coalesced {where}"
        else:
            found = f"{per_request} instead of {self.ideal / self.requests:g} {where}"
        return f"{found} ({in_units(self.unit)})"


def sectors(lanes: Layout | ComposedLayout, width: int = 4, unit: int | None = None) -> Sectors:
    """The sectors of lanes that access `width` bytes each in global memory.

    `lanes` takes a thread to its offset; every 32 threads make a request.  `unit` is the bits of
    one offset, as in `wavefronts`.

    Raises `LayoutError` unless `width` is 1, 2, 4, 8 or 16 bytes, and every address a multiple of
    it, or if `unit` is not that of the layout.

    A warp of a matrix product with one thread per element, down a column and along a row:

    >>> print(sectors(Layout(32, 8192), unit=32))
    32 sectors per request instead of 4 at every base (offsets in elements of 32 bits)
    >>> print(sectors(Layout(32, 1), unit=32))
    4 sectors per request, coalesced at every base (offsets in elements of 32 bits)
    """
    width = checked_width(width)
    check_lanes(lanes)
    unit = byte_unit(lanes, unit)
    addresses = byte_addresses(lanes, unit)
    check_aligned(enumerate(addresses), width, unit)
    columns = byte_columns(lanes, unit)
    warps = [addresses[first : first + WARP] for first in range(0, len(addresses), WARP)]
    if columns is not None:
        return _by_rank(columns[: WARP.bit_length() - 1], width, len(warps), unit)
    count = sum(len({address // SECTOR_BYTES for address in warp}) for warp in warps)
    ideal = sum(_filled(len(set(warp)), width) for warp in warps)
    return Sectors(count, ideal, len(warps), False, unit)


def _by_rank(columns: list[int], width: int, requests: int, unit: int) -> Sectors:
    """The addresses of a warp are a space over GF(2), and so are its sectors."""
    count = 1 << gf2.rank(column // SECTOR_BYTES for column in columns)
    ideal = _filled(1 << gf2.rank(columns), width)
    return Sectors(requests * count, requests * ideal, requests, True, unit)


def _filled(addresses: int, width: int) -> int:
    """Sectors that so many accesses of `width` bytes would fill."""
    return -(-addresses * width // SECTOR_BYTES)
