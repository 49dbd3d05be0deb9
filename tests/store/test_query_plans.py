"""What a task costs doesn't grow with the store: no write looks through a table, and the counts read an index alone."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from malbox_tui.store import sqlite_batch
from malbox_tui.store.statements import migrations, statement
from tests.store.builders import new_task, sqlite_store

WRITES = {
    "add_samples": 3,
    "add_names": 4,
    "add_tasks": 29,
    "move_tasks": 25,
    "add_events": 4,
    "add_actions": 8,
    "known_tasks": 0,
    "latest_tasks": 0,
    "first_names": 0,
    "pending_of": 0,
    "renew": 0,
    "identify": 0,
    "marks_of": 0,
    "mark": 0,
    "enter_intake": 0,
    "add_lines": 11,
    "prune_lines": 0,
    "prune_intakes": 0,
    "counters": 0,
    "states_of": 0,
    "remove_tasks": 0,
    "remove_names": 0,
    "remove_sample": 0,
    "remove_results": 0,
    "keep_task_number": 0,
    "close_removal": 0,
    "holds": 0,
    "owned": 0,
}
"""Statement → values in one of its rows; 0: it has no rows."""
TABLES = ("task", "sample", "sample_name", "event", "action", "intake", "intake_line")


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    for migration in migrations():
        for sql in migration.statements:
            connection.execute(sql)
    yield connection
    connection.close()


def plan(connection: sqlite3.Connection, name: str, width: int = 0) -> list[str]:
    sql = statement(name).format(rows=", ".join([f"({', '.join('?' * width)})"] * 2))
    parameters = [None] * (2 * width or sql.count("?"))
    return [step for _, _, _, step in connection.execute(f"EXPLAIN QUERY PLAN {sql}", parameters)]


@pytest.mark.parametrize(("name", "width"), WRITES.items())
def test_no_write_looks_through_a_table(connection: sqlite3.Connection, name: str, width: int) -> None:
    scans = [step.split()[1] for step in plan(connection, name, width) if step.startswith("SCAN")]
    assert not set(scans) & set(TABLES)


def test_the_counts_are_read_from_an_index_alone(connection: sqlite3.Connection) -> None:
    assert plan(connection, "counts") == ["SCAN task USING COVERING INDEX task_by_state"]


def test_a_window_of_actions_is_read_from_its_place(connection: sqlite3.Connection) -> None:
    assert plan(connection, "actions") == ["SEARCH action USING INTEGER PRIMARY KEY (rowid<?)"]


async def test_a_retry_looks_at_no_other_task_of_its_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[str] = []

    def noted(name: str) -> str:
        used.append(name)
        return statement(name)

    store = sqlite_store(tmp_path / "store.sqlite3")
    await store.open(lambda events: None)
    try:
        first = (await store.add(new_task())).task
        monkeypatch.setattr(sqlite_batch, "statement", noted)
        assert (await store.add(new_task(name=None, retry_of=first.id))).created
        assert "known_tasks" not in used
        assert not (await store.add(new_task())).created
        assert "known_tasks" in used
    finally:
        await store.close()
