"""Compiled kernels on disk: made once, whoever asks, and rebuilt when damaged.

An entry is `<key>.<digest of its bytes>.so` under one lock file a key. It is written beside its
place and renamed, so that a reader sees all of it or nothing, and it is read only if its bytes
still have the digest in its name.
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
    """The folder of compiled kernels cannot be used; the message says which, and what to do."""


def folder() -> Path:
    """Where entries lie: $CUTEDSL_GEMM_CACHE_DIR, or the user's cache folder."""
    chosen = os.environ.get(VARIABLE) or platformdirs.user_cache_dir("cutedsl-gemm")
    return Path(chosen).expanduser()


def entry(key: str, make: Callable[[Path], None]) -> Path:
    """The path of `key`'s entry; where there is none, or a damaged one, `make(path)` writes it.

    Processes that ask at the same time wait for the one that makes it. CacheError where the folder
    can be neither read nor written.
    """
    place = folder()
    if (path := _whole(place, key)) is not None:
        return path
    with lock(key):
        if (path := _whole(place, key)) is not None:
            return path
        for damaged in place.glob(f"{key}.*.so"):
            damaged.unlink()
        draft = place / f"{key}.draft"
        make(draft)
        return draft.replace(place / f"{key}.{_digest(draft)}.so")


@contextmanager
def lock(name: str) -> Iterator[None]:
    """Hold what is called `name` in the folder against all other processes."""
    place = folder()
    try:
        place.mkdir(parents=True, exist_ok=True)
        held = FileLock(place / f"{name}.lock")
        held.acquire()
    except OSError as error:
        raise CacheError(
            f"compiled kernels are kept in {place}, which cannot be written ({error.strerror}); "
            f"set {VARIABLE} to a folder that can"
        ) from error
    try:
        yield
    finally:
        held.release()


def _whole(place: Path, key: str) -> Path | None:
    """The entry whose bytes have the digest in its name."""
    found = (path for path in place.glob(f"{key}.*.so") if path.name == f"{key}.{_digest(path)}.so")
    return next(found, None)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
