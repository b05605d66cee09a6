"""One operation, step by step, as a teacher would write it."""

from .steps import explain

__all__ = ["explain"]
