"""What a cell shows of a tensor: the element, and the colour of its address."""

from __future__ import annotations

from typing import Any

from ..tiled.tensor import Tensor
from ..values.tuples import added
from ..values.unit import unit_of
from .cells import Cell
from .panels import Scale, asks_for_banks

__all__ = ["Elements"]


class Elements(Scale):
    """The elements of a tensor at the offsets of its layout; the other arguments are `Scale`'s."""

    def __init__(self, tensor: Tensor, unit: int | None, show: str, banks: int | None) -> None:
        banked = asks_for_banks(tensor.layout, unit, show, banks)
        super().__init__(unit_of(tensor, unit), show, banks, banked, tensor.offset)
        self.tensor = tensor

    def cell(self, offset: Any) -> Cell:
        """The cell of an offset; beyond the data it is empty.

        >>> import numpy
        >>> from layouts import make_tensor
        >>> Elements(make_tensor(numpy.arange(8) / 3), None, "offset", 16).cell(2)
        ('0.6667', 1)
        """
        words, colour = super().cell(offset)
        data = self.tensor.data
        if data is None or self.show != "offset":
            return words, colour
        index = added(self.start, offset)
        return (_words(data[index]), colour) if index < len(data) else ("", None)

    def legend(self) -> str:
        """What the cells show."""
        if self.tensor.data is None or self.show != "offset":
            return super().legend()
        return f"elements of {self.tensor.element_name}"


def _words(element: Any) -> str:
    """A number of numpy or torch in a few digits.

    >>> _words(2), _words(1 / 3), _words(True)
    ('2', '0.3333', 'True')
    """
    value = element.item() if hasattr(element, "item") else element
    return f"{value:.4g}" if isinstance(value, float) else str(value)
