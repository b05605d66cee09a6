"""What was made for a call, remembered for calls of the same signature."""

from __future__ import annotations

from typing import Any, TypeVar

Made = TypeVar("Made")

REMEMBERED = 4096  # signatures; a program that reaches the limit changes its shapes at every call


def remember(known: dict[Any, Made], signature: Any, made: Made) -> Made:
    """Store `made` under its signature, and return it. A full dict is cleared first.

    >>> known = {}
    >>> remember(known, "a shape", "its plan"), known
    ('its plan', {'a shape': 'its plan'})
    """
    if len(known) >= REMEMBERED:
        known.clear()
    known[signature] = made
    return made
