"""Brings a store's schema up to what this program writes. The version is SQLite's `user_version`; 0 is an empty file.

All steps and the new version are one transaction: a failed or interrupted migration leaves the store as it was.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path

from malbox_tui.model.errors import StoreError, StoreTooNew
from malbox_tui.store.statements import Migration

APPLICATION_ID = 0x6D616C62
"""Marks the file as ours ("malb"), in the field that SQLite keeps for this (https://www.sqlite.org/pragma.html#pragma_application_id)."""


def migrate(connection: sqlite3.Connection, path: Path, steps: Sequence[Migration]) -> None:
    """Run the steps that the store at `path` lacks. A store that holds something is first copied to `<path>.v<version>.bak`.

    Raises `StoreTooNew`, and `StoreError` when the file is another program's.
    """
    version = store_version(connection, path, known=steps[-1].number)
    if version == steps[-1].number:
        return
    if version > 0:
        _back_up(connection, path, version)
    connection.execute("BEGIN IMMEDIATE")
    try:
        for step in steps[version:]:
            for statement in step.statements:
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {steps[-1].number}")
        connection.execute("COMMIT")
    except BaseException:
        connection.rollback()
        raise


def store_version(connection: sqlite3.Connection, path: Path, known: int) -> int:
    """The version of the store at `path`, 0 for an empty file. Raises as `migrate`."""
    version = _pragma(connection, "user_version")
    application = _pragma(connection, "application_id")
    ((tables,),) = connection.execute("SELECT count(*) FROM sqlite_schema")
    if application != APPLICATION_ID and (tables or version):
        raise StoreError(f"{path} belongs to another program. Choose another folder with --data-dir.")
    if version > known:
        raise StoreTooNew(str(path), version, known)
    return version


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    ((value,),) = connection.execute(f"PRAGMA {name}")
    return int(value)


def _back_up(connection: sqlite3.Connection, path: Path, version: int) -> None:
    """Copy the store beside itself, readable by the owner alone; the copy appears under its name when it is whole."""
    copy = path.with_name(f"{path.name}.v{version}.bak")
    partial = copy.with_name(f"{copy.name}.partial")
    partial.unlink(missing_ok=True)
    try:
        os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        connection.execute("VACUUM INTO ?", (str(partial),))
        _put_in_place(partial, copy)
    except BaseException:
        partial.unlink(missing_ok=True)  # on a full disk it would keep the room that is needed
        raise


def _put_in_place(partial: Path, copy: Path) -> None:
    """SQLite doesn't sync what it vacuums into (https://www.sqlite.org/lang_vacuum.html)."""
    with partial.open("rb") as file:
        os.fsync(file.fileno())
    partial.replace(copy)
