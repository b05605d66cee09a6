"""A fault, and a room of faults."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Fault:
    """A small fault in one file.

    `code` stands once in the file, and `instead` takes its place. `harm` says what then goes wrong
    on a GPU, or for a user.
    """

    name: str
    file: str  # from the repository's root
    code: str
    instead: str
    harm: str

    def applied(self, text: str) -> str:
        """The text of the file with the fault. ValueError unless the snippet stands in it once.

        >>> Fault("early", "a.py", "wait(1)", "wait(2)", "reads too early").applied("wait(1)")
        'wait(2)'
        """
        if (found := text.count(self.code)) != 1:
            raise ValueError(
                f"{self.code!r} stands {found} times in {self.file}; it must stand "
                "there once: write the fault anew for the code as it is"
            )
        return text.replace(self.code, self.instead)


@dataclass(frozen=True)
class Room:
    """Faults of one kind, and the tests that may notice them.

    They are those of the package of a fault's file, but for the `unrelated` test files, and then
    the room's own.
    """

    faults: tuple[Fault, ...]
    tests: tuple[str, ...]
    unrelated: tuple[str, ...] = ()

    def nearest(self, fault: Fault) -> list[str]:
        """The tests to run: the file's doctests, those of its package, then the room's own."""
        root, file = repository(), Path(fault.file)
        doctests = Path("cutedsl_gemm", file) if file.parts[0] == "kernels" else file
        of_package = sorted((root / "tests" / file.parent).glob("test_*.py"))
        related = [path for path in of_package if path.name not in self.unrelated]
        of_file = [str(doctests), *(str(path.relative_to(root)) for path in related)]
        return [*of_file, *(path for path in self.tests if path not in of_file)]


def repository() -> Path:
    """The root of the repository."""
    return Path(__file__).parents[2]
