"""Pictures of layouts: one model of cells, four writers: terminals, pages, SVG and LaTeX."""

from .cells import Table, compare, table, table_tv

__all__ = ["Table", "compare", "table", "table_tv"]
