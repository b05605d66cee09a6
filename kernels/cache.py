"""Compiled kernels on disk: made once, whoever asks, and rebuilt when damaged.

An entry is `<key>.<digest of its bytes>.o` under one lock file a key. It is written beside its
place and renamed, so that a reader sees all of it or nothing, and it is read only if its bytes
still have the digest in its name.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import platformdirs
from filelock import FileLock

VARIABLE = "CUTEDSL_GEMM_CACHE_DIR"


def folder() -> Path:
    """Where entries lie: $CUTEDSL_GEMM_CACHE_DIR, or the user's cache folder."""
    return Path(os.environ.get(VARIABLE) or platformdirs.user_cache_dir("cutedsl-gemm"))


def entry(key: str, make: Callable[[Path], None]) -> Path:
    """The path of `key`'s entry; where it is missing or damaged, `make(path)` writes it first.

    Processes that ask at the same time wait for the one that makes it.
    """
    place = folder()
    place.mkdir(parents=True, exist_ok=True)
    with FileLock(place / f"{key}.lock"):
        for path in sorted(place.glob(f"{key}.*.o")):
            if path.name == f"{key}.{_digest(path)}.o":
                return path
            path.unlink()
        draft = place / f"{key}.draft"
        make(draft)
        return draft.replace(place / f"{key}.{_digest(draft)}.o")


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
