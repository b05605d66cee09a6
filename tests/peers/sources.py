"""The repositories of the peers, at fixed commits, and how they are fetched."""

from __future__ import annotations

import io
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
FETCHED = ROOT / ".peers"
COMMAND = "python -m tests.peers fetch"


class Source(NamedTuple):
    """A repository, one of its commits, and the paths that are used."""

    name: str
    repository: str
    commit: str
    paths: tuple[str, ...]

    @property
    def folder(self) -> Path:
        """Where its files are, once fetched."""
        return FETCHED / self.name

    @property
    def is_fetched(self) -> bool:
        """Whether its files are there."""
        return all((self.folder / path).exists() for path in self.paths)


CUTLASS = Source(
    "cutlass",
    "NVIDIA/cutlass",
    "7107b05535f8977f5ecb9d01ee203205b1fd9bc4",
    ("test/python/pycute", "test/unit/cute/core"),
)
TRACT = Source(
    "tract",
    "ColfaxResearch/layout-categories",
    "689369f8b9c61cbcf9aa81c20c83f0ad7cef9719",
    ("tract/src", "tract/tests"),
)
TENSOR_LAYOUTS = Source(
    "tensor-layouts",
    "facebookresearch/tensor-layouts",
    "8c75af6a7e21a7bf2b34d66e4f9209e715de86cc",
    ("src", "tests"),
)
SOURCES = (CUTLASS, TRACT, TENSOR_LAYOUTS)


def fetch(source: Source, mirror: Path | None = None) -> None:
    """Put the files of `source` into its folder.

    `mirror` is a folder of git directories OWNER+NAME/repo, where there is no network.
    """
    with tempfile.TemporaryDirectory() as temporary:
        git_dir = temporary
        if mirror is None:
            _git(temporary, "init", "-q", "--bare")
            url = f"https://github.com/{source.repository}"
            _git(temporary, "fetch", "-q", "--depth", "1", url, source.commit)
        else:
            git_dir = str(mirror / source.repository.replace("/", "+") / "repo")
        archive = _git(git_dir, "archive", source.commit, *source.paths)
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(source.folder, filter="data")


def _git(git_dir: str, *arguments: str) -> bytes:
    command = ["git", "--git-dir", git_dir, *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
