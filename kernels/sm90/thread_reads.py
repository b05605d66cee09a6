"""Operands of the epilogue that threads read from global memory, each for its own outputs.

When   once a tile    numbers, scalars, and vectors along M
       once a panel   all others, one panel ahead: they come while a panel is stored
Where  `PanelPlan.coordinates` says which row and column of C each value of a thread has. An operand
       is a layout over C, so that a vector is read once for all values that share its element.
"""

from cutedsl_gemm.kernels.device.epilogue import load_values
from layouts import size, slice_and_offset


class ThreadReads:
    """What a thread reads of the operands over C, by a plan."""

    def __init__(self, plan):
        self.plan, self.operands = plan, plan.planned_epilogue.operands

    def first_coordinate(self, thread, m, n):
        """The coordinate in C of a thread's first value: of row m of panels, in tile column n."""
        plan = self.plan
        (_, row), (_, column) = (
            slice_and_offset((thread, None), layout) for layout in plan.coordinates
        )
        return plan.panel_rows * m + row, plan.output_tile[1] * n + column

    def of_tile(self, views, first):
        """What a thread reads once a tile: numbers, scalars and columns; None for any other."""
        return [
            self.once(operand, view, first)
            for operand, view in zip(self.operands, views, strict=True)
        ]

    def once(self, operand, view, first):
        """One operand of `of_tile`."""
        if operand.by_value:
            return view
        return None if "N" in operand.modes else self.read(operand, view, first)

    def of_panel(self, views, of_tile, first, panel):
        """The operands' values for a panel: numbers, or registers (S/2, R/64, P/S).

        None for the operand that comes through panels.
        """
        return [
            known
            if known is not None or i == self.plan.staged_operand
            else self.read(self.operands[i], views[i], first, panel)
            for i, known in enumerate(of_tile)
        ]

    def read(self, operand, view, first, panel=0):
        """The values of an operand for a panel, in registers (S/2, R/64, P/S)."""
        shape = self.plan.fragment.shape[:3]
        rows, columns = (layout[1] for layout in self.plan.coordinates)
        begin, count = panel * size(shape), size(shape)
        offsets = [(rows(value), columns(value)) for value in range(begin, begin + count)]
        return load_values(view, first, offsets, shape, self.plan.read_width(operand))
