"""Failures of SQLite and of the file system as errors of the product."""

from __future__ import annotations

import errno
import sqlite3

from malbox_tui.model.errors import StoreError, StoreFull

_FULL_CODES = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE})
"""A full disk stops SQLite with FULL, or with IOERR_SHMSIZE where the shared memory of the WAL can't grow
(https://www.sqlite.org/rescode.html)."""

_FULL_ERRNOS = frozenset({errno.ENOSPC, errno.EDQUOT})


def store_error(exc: BaseException, place: str) -> StoreError:
    """`exc` as the error that a caller of the store at `place` gets; `exc` is its cause."""
    error = _full(place) if _means_full(exc) else read_only_error(place) if _means_read_only(exc) else _other(exc, place)
    error.__cause__ = exc
    return error


def _means_full(exc: BaseException) -> bool:
    if isinstance(exc, sqlite3.Error):
        return getattr(exc, "sqlite_errorcode", None) in _FULL_CODES
    return isinstance(exc, OSError) and exc.errno in _FULL_ERRNOS


def _means_read_only(exc: BaseException) -> bool:
    if isinstance(exc, sqlite3.Error):
        return (getattr(exc, "sqlite_errorcode", 0) & 0xFF) == sqlite3.SQLITE_READONLY
    return isinstance(exc, OSError) and exc.errno == errno.EROFS


def read_only_error(place: str) -> StoreError:
    """What nobody can write."""
    return StoreError(
        f"{place} can't be written: it, its folder or its disk is read-only. Change that, or choose another --data-dir."
    )


def _full(place: str) -> StoreError:
    return StoreFull(f"The disk under {place} is full. Free some space; what was refused can be repeated then.")


def _other(exc: BaseException, place: str) -> StoreError:
    detail = exc.strerror if isinstance(exc, OSError) and exc.strerror else str(exc)
    return StoreError(f"{place} could not be used: {detail or type(exc).__name__}.")
