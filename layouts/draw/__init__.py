"""Pictures of layouts: one model of cells, four writers: terminals, pages, SVG and LaTeX."""

from .cells import TINTS, Table, compare, notebook, table, table_tv

__all__ = ["TINTS", "Table", "compare", "notebook", "table", "table_tv"]
