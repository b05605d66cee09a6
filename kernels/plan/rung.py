"""A rung of a ladder of kernels: the rung below with one change."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, Generic, TypeVar

Recipe = TypeVar("Recipe")  # what the rungs of a family decide, a frozen dataclass


class Rung(Generic[Recipe]):
    """The decorator of a function that returns a recipe; the rung keeps its name and docstring.

    The function says `replace(below.recipe, …)`, so that a rung is the one below it with one
    change. Its docstring says what is new, what it gains, and what it costs. Each family derives a
    class whose call makes the checked plan of the recipe.
    """

    __name__: str

    def __init__(self, recipe: Callable[[], Recipe]) -> None:
        wrapper: Any = self  # mypy takes a function alone
        update_wrapper(wrapper, recipe)
        self.recipe = recipe()
