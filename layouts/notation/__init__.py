"""Text to layouts: parse reads one layout, expression the command line's language."""

from .parse import parse

__all__ = ["parse"]
