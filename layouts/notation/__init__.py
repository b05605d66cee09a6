"""Text to layouts.

    tokens      the tokens of printed layouts, and their values
    names       what names and signs mean
    reader      the grammar
    parse       one layout, as C++, the DSL and pycute print it
    expression  an expression of the algebra, for the command line and the pages

    linear_layout  Triton's linear layouts, read and written

Each file imports from those above it only.
"""

from .parse import parse

__all__ = ["parse"]
