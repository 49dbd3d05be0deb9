"""The SQL of the store, by name: one statement a file in `store/sql/`, the numbered migrations in `store/sql/migrations/`."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class Migration:
    """The statements that bring a store from version `number - 1` to `number`."""

    number: int
    statements: tuple[str, ...]


@cache
def statement(name: str) -> str:
    """The text of `store/sql/<name>.sql`."""
    return files(__package__).joinpath("sql", f"{name}.sql").read_text(encoding="utf-8")


@cache
def migrations() -> tuple[Migration, ...]:
    """All migrations, numbered from 1 without gaps."""
    folder = files(__package__).joinpath("sql", "migrations")
    scripts = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".sql")), key=lambda entry: entry.name)
    found = tuple(
        Migration(int(entry.name.split("_", 1)[0]), tuple(single_statements(entry.read_text(encoding="utf-8"))))
        for entry in scripts
    )
    if [migration.number for migration in found] != list(range(1, len(found) + 1)):
        raise RuntimeError(f"migrations are not numbered from 1 without gaps: {[entry.name for entry in scripts]}")
    return found


def single_statements(script: str) -> Iterator[str]:
    """The statements of a script, one by one (a transaction can't span `executescript`, which commits first)."""
    *pieces, rest = script.split(";")
    pending = ""
    for piece in pieces:
        pending += f"{piece};"
        if sqlite3.complete_statement(pending):
            yield pending.strip()
            pending = ""
    if (pending + rest).strip():
        raise ValueError(f"a script ends inside a statement: {(pending + rest).strip()!r}")
