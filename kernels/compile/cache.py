"""Compiled kernels on disk: compiled once, shared by all processes, rebuilt when damaged.

An entry is the file `<key>.<digest of its bytes>.so`; each key has a lock file. An entry is written
as a draft and then renamed: a reader sees the whole file or none. It is used only if its bytes
still match the digest in its name. `build.key` makes the key of a plan.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import platformdirs
from filelock import FileLock

VARIABLE = "CUTEDSL_GEMM_CACHE_DIR"


class CacheError(OSError):
    """The folder of compiled kernels cannot be used; the message names it and says what to do."""


def folder() -> Path:
    """The folder of entries: $CUTEDSL_GEMM_CACHE_DIR, or the user's cache folder."""
    chosen = os.environ.get(VARIABLE) or platformdirs.user_cache_dir("cutedsl-gemm")
    return Path(chosen).expanduser()


def entry(key: str, make: Callable[[Path], None]) -> Path:
    """The path of `key`'s entry; `make(path)` writes it if it is missing or damaged.

    Of several processes that ask at once, one makes the entry and the others wait. CacheError if
    the entry is not there and the folder cannot be written.
    """
    where = folder()
    if (path := _intact(where, key)) is not None:
        return path
    with lock(key):
        if (path := _intact(where, key)) is not None:
            return path
        for damaged in where.glob(f"{key}.*.so"):
            damaged.unlink()
        draft = where / f"{key}.draft"
        make(draft)
        return draft.replace(where / f"{key}.{_digest(draft)}.so")


@contextmanager
def lock(name: str) -> Iterator[None]:
    """Hold the lock `name` of the folder against all other processes, or CacheError."""
    where = folder()
    try:
        where.mkdir(parents=True, exist_ok=True)
        held = FileLock(where / f"{name}.lock")
        held.acquire()
    except OSError as error:
        raise CacheError(
            f"compiled kernels are kept in {where}, which cannot be written ({error.strerror}); "
            f"set {VARIABLE} to a folder that can"
        ) from error
    try:
        yield
    finally:
        held.release()


def _intact(where: Path, key: str) -> Path | None:
    """The entry of `key` whose bytes match the digest in its name."""
    found = (path for path in where.glob(f"{key}.*.so") if path.name == f"{key}.{_digest(path)}.so")
    return next(found, None)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
