"""Compiled kernels on disk: compiled once, shared by all processes, rebuilt when damaged.

    <key>.<digest of its bytes>.so    an entry
    <key>.draft, <key>.o              while it is made
    <key>.lock                        while a process holds the key

A draft is renamed to its entry: a reader sees the whole file or none. An entry is used only if its
bytes still match the digest in its name. `build.key` makes the key of a plan.
"""

from __future__ import annotations

import errno
import functools
import hashlib
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from cutedsl_gemm.kernels.compile.progress import spinner

VARIABLE = "CUTEDSL_GEMM_CACHE_DIR"
CANNOT_WRITE = errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS


class CacheError(OSError):
    """The folder of compiled kernels cannot be used; the message names it and says what to do."""


def folder() -> Path:
    """The folder of entries: $CUTEDSL_GEMM_CACHE_DIR, or cutedsl-gemm in the user's cache folder.

    CacheError if there is no home folder.
    """
    chosen = os.environ.get(VARIABLE)
    if not chosen:
        import platformdirs  # here: `doctor` runs without it

        chosen = platformdirs.user_cache_dir("cutedsl-gemm")
    try:
        return Path(chosen).expanduser().absolute()  # dlopen searches for a name without a folder
    except RuntimeError:
        raise _unusable(chosen, "there is no home folder") from None


def entry(key: str, make: Callable[[Path], None]) -> Path:
    """The path of `key`'s entry; `make(path)` writes it if it is missing or damaged.

    Of several processes that ask at once, one makes the entry and the others wait. CacheError if
    the entry is not there and the folder cannot be written.
    """
    where = folder()
    if (path := _intact(key)) is not None:
        return path
    with lock(key):
        if (path := _intact(key)) is not None:
            return path
        for damaged in entries(key):
            damaged.unlink(missing_ok=True)
        draft = where / f"{key}.draft"
        try:
            make(draft)
            return draft.replace(where / f"{key}.{_digest(draft)}.so")
        finally:
            draft.unlink(missing_ok=True)


def entries(key: str = "*") -> list[Path]:
    """The paths of the entries, damaged ones too; none if the folder cannot be read."""
    try:
        return [*folder().glob(f"{key}.*.so")]
    except PermissionError:  # Path.glob passes on only that of a folder above
        return []


@contextmanager
def lock(name: str) -> Iterator[None]:
    """Hold the lock `name` of the folder against all other processes.

    CacheError if it cannot be taken, or if the body fails because the folder is full or may not be
    written. The lock's file is deleted before its release; a process that waited makes a new one.
    """
    from filelock import FileLock

    where = folder()
    held = FileLock(where / f"{name}.lock")
    try:
        where.mkdir(parents=True, exist_ok=True)
        _acquire(held)
    except OSError as error:
        taken = error.errno == errno.EEXIST
        raise _unusable(where, "it is a file" if taken else error.strerror) from error
    try:
        yield
    except OSError as error:
        if error.errno not in CANNOT_WRITE:
            raise
        raise _unusable(where, error.strerror) from error
    finally:
        with suppress(OSError):
            Path(held.lock_file).unlink()
        held.release()


def _acquire(lock: Any) -> None:
    """Acquire a lock; say which one, if another process holds it."""
    from filelock import Timeout

    try:
        lock.acquire(blocking=False)
    except Timeout:
        with spinner(f"waiting for the process that holds {lock.lock_file}"):
            lock.acquire()


def check() -> None:
    """CacheError unless the folder can be written."""
    with lock("check"):
        pass


def sweep() -> None:
    """Delete what processes that were killed have left in the folder."""
    from filelock import FileLock, Timeout

    for path in folder().glob("*.lock"):
        with suppress(OSError, Timeout), FileLock(path, blocking=False):  # else a process holds it
            for left in (path.with_suffix(".draft"), path):
                left.unlink(missing_ok=True)


def warn(error: CacheError, consequence: str) -> None:
    """Warn, once for each folder, that the call goes on without it."""
    _warn_once(f"{error}; until then {consequence}")


@functools.cache  # Python's own registry forgets when a library changes the filters
def _warn_once(message: str) -> None:
    warnings.warn(message, RuntimeWarning, stacklevel=4)


def _unusable(where: object, reason: str | None) -> CacheError:
    return CacheError(
        f"compiled kernels are kept in {where}, which cannot be written ({reason}); "
        f"set {VARIABLE} to a folder that can"
    )


def _intact(key: str) -> Path | None:
    """The entry of `key` whose bytes match the digest in its name, if it can be read."""
    for path in entries(key):
        with suppress(OSError):
            if path.name == f"{key}.{_digest(path)}.so":
                return path
    return None


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
