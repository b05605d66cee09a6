"""Pictures of layouts: one model of cells, four writers.

    cells      the model: Table, Panel, cell, colours
    panels     from a layout to panels: what a cell shows, how many are drawn
    elements   what a cell shows of a tensor
    tables     table, compare
    fragments  table_tv, and the fragments of an instruction
    operation  the layouts of an operation side by side, their cells tied
    text, html, svg, latex   the writers
    summary    what the command line and the pages show of any value

Each file imports from those above it only.
"""

from .cells import Table
from .fragments import table_tv
from .tables import compare, table

__all__ = ["Table", "compare", "table", "table_tv"]
