"""Failures of SQLite and of the file system are told in words, with what to do."""

from __future__ import annotations

import errno
import sqlite3

import pytest

from malbox_tui.model.errors import StoreFull
from malbox_tui.store.failures import store_error


def sqlite_error(code: int) -> sqlite3.Error:
    error = sqlite3.OperationalError("in its words")
    error.sqlite_errorcode = code
    return error


@pytest.mark.parametrize(
    "failure", [sqlite_error(sqlite3.SQLITE_FULL), OSError(errno.ENOSPC, "no space"), OSError(errno.EDQUOT, "quota")]
)
def test_a_full_disk_can_be_waited_for(failure: Exception) -> None:
    error = store_error(failure, "/d")
    assert (type(error), error.__cause__) == (StoreFull, failure)
    assert str(error) == "The disk under /d is full. Free some space; what was refused can be repeated then."


@pytest.mark.parametrize(
    "failure",
    [sqlite_error(sqlite3.SQLITE_READONLY), sqlite_error(sqlite3.SQLITE_READONLY_DIRECTORY), OSError(errno.EROFS, "read-only")],
)
def test_what_can_not_be_written_is_told_with_the_remedy(failure: Exception) -> None:
    assert "/d can't be written: it, its folder or its disk is read-only. Change that" in str(store_error(failure, "/d"))


@pytest.mark.parametrize("failure", [sqlite_error(sqlite3.SQLITE_CORRUPT), OSError(errno.EIO, "in its words")])
def test_anything_else_is_told_as_it_is(failure: Exception) -> None:
    assert str(store_error(failure, "/d")) == "/d could not be used: in its words."
