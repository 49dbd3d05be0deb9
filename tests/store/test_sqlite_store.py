"""What only a store on disk has to stand: kills, other processes, other versions, damaged files."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import stat
import threading
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from malbox_tui.model.errors import StoreError, StoreTooNew
from malbox_tui.model.events import Event, PoolResumed
from malbox_tui.model.queries import TaskQuery
from malbox_tui.model.task import RequirementClass, TaskState
from malbox_tui.ports import Change
from malbox_tui.store import sqlite as sqlite_module
from malbox_tui.store.migrations import migrate
from malbox_tui.store.sqlite_reader import SqliteReader
from malbox_tui.store.statements import Migration, migrations, single_statements
from tests.store.builders import NOON, Told, added, claimed, new_task, process, run, sqlite_store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "odd # name?%41.sqlite"


def ignore(events: Sequence[Event]) -> None:
    pass


def ended(threads: set[threading.Thread]) -> bool:
    """A closed connection's thread has answered before it is gone; one that is left open never goes."""
    for thread in threads:
        thread.join(60)
    return not any(thread.is_alive() for thread in threads)


# --- kills and cancellations ---


@pytest.mark.slow
def test_no_acknowledged_task_is_lost_by_a_kill(path: Path) -> None:
    acknowledged: dict[int, str] = {}
    for kill in range(1, 4):
        with process("tests.store.writing_process", path) as writer:
            assert writer.stdout is not None
            for line in writer.stdout:
                task_id, sha256 = line.split()
                acknowledged[int(task_id)] = sha256
                if len(acknowledged) >= 40 * kill:
                    break
            os.kill(writer.pid, signal.SIGKILL)
            acknowledged |= {int(line.split()[0]): line.split()[1] for line in writer.stdout if line.endswith("\n")}
    connection = sqlite3.connect(path)
    stored = dict(connection.execute("SELECT id, sha256 FROM task"))
    events = [seq for (seq,) in connection.execute("SELECT seq FROM event ORDER BY seq")]
    (check,) = connection.execute("PRAGMA quick_check").fetchone()
    connection.close()
    assert len(acknowledged) >= 120
    assert acknowledged.items() <= stored.items()
    assert events == list(range(1, len(stored) + 1))
    assert check == "ok"


async def test_a_stopped_writer_answers_everyone_and_leaves_no_thread(path: Path) -> None:
    before = set(threading.enumerate())
    handles: list[asyncio.Task[None]] = []

    def spawn(work: object, /, *, name: str) -> asyncio.Task[None]:
        handles.append(asyncio.get_running_loop().create_task(work, name=name))  # type: ignore[arg-type]
        return handles[-1]

    store = sqlite_module.SqliteStore(path, spawn)
    await store.open(ignore)
    adding = [asyncio.get_running_loop().create_task(store.add(new_task(f"content {n}"))) for n in range(5)]
    asyncio.get_running_loop().call_soon(handles[0].cancel)
    await asyncio.wait(adding)
    assert {type(handle.exception()) for handle in adding} <= {StoreError, type(None)}
    with pytest.raises(StoreError):
        await store.add(new_task("after"))
    await store.close()
    assert ended(set(threading.enumerate()) - before)


async def test_a_writer_that_never_began_leaves_no_thread(path: Path) -> None:
    before = set(threading.enumerate())
    handles: list[asyncio.Task[None]] = []

    def spawn(work: object, /, *, name: str) -> asyncio.Task[None]:
        handles.append(asyncio.get_running_loop().create_task(work, name=name))  # type: ignore[arg-type]
        handles[-1].cancel()
        return handles[-1]

    store = sqlite_module.SqliteStore(path, spawn)
    await store.open(ignore)
    await store.close()
    assert ended(set(threading.enumerate()) - before)


# --- failures ---


async def test_a_request_with_values_that_can_not_be_stored_harms_no_other(path: Path) -> None:
    store, told = sqlite_store(path), Told()
    await store.open(told)
    answers = await asyncio.gather(
        store.add(new_task("a")),
        store.add(new_task("b", priority=2**70)),
        store.add(new_task("c", requires=RequirementClass("\udcff"))),
        store.add(new_task("d")),
        return_exceptions=True,
    )
    await store.close()
    assert [type(answer).__name__ for answer in answers] == ["Added", "StoreError", "StoreError", "Added"]
    assert [event.position.seq for event in told.events] == [1, 2]


async def test_a_listener_that_fails_keeps_nobody_from_their_answer(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def on_commit(events: Sequence[Event]) -> None:
        raise ZeroDivisionError

    store = sqlite_store(path)
    await store.open(on_commit)
    assert (await store.add(new_task("a"))).created
    assert (await store.add(new_task("b"))).created
    await store.close()
    assert "could not be told" in caplog.text


async def test_a_file_that_is_no_database_is_refused(path: Path) -> None:
    path.write_bytes(b"not a database, but long enough to have a header" * 100)
    store = sqlite_store(path)
    with pytest.raises(StoreError):
        await store.open(ignore)
    with pytest.raises(StoreError):
        await SqliteReader(path).open()


async def test_a_database_of_another_program_is_refused_and_left_as_it_was(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE precious (x)")
    connection.close()
    with pytest.raises(StoreError, match="another program"):
        await sqlite_store(path).open(ignore)
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT name FROM sqlite_schema").fetchall() == [("precious",)]
    connection.close()


async def test_a_store_in_a_folder_that_is_not_there_is_refused(path: Path) -> None:
    with pytest.raises(StoreError):
        await sqlite_store(path.parent / "missing" / "store.sqlite").open(ignore)


async def test_an_open_store_can_not_be_opened(path: Path) -> None:
    store = sqlite_store(path)
    await store.open(ignore)
    with pytest.raises(StoreError, match="open already"):
        await store.open(ignore)
    assert (await store.add(new_task())).created
    await store.close()


# --- versions ---


async def test_an_empty_file_becomes_a_store(path: Path) -> None:
    path.touch()
    store = sqlite_store(path)
    assert (await store.open(ignore)).epoch == 1
    await store.close()
    assert not list(path.parent.glob("*.bak"))


async def test_a_newer_store_is_refused_and_left_as_it_was(path: Path) -> None:
    store = sqlite_store(path)
    await store.open(ignore)
    await store.close()
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {len(migrations()) + 1}")
    connection.close()
    with pytest.raises(StoreTooNew) as caught:
        await sqlite_store(path).open(ignore)
    assert (caught.value.found, caught.value.known) == (len(migrations()) + 1, len(migrations()))
    with pytest.raises(StoreTooNew):
        await SqliteReader(path).open()
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT epoch FROM engine").fetchone() == (1,)
    connection.close()


def migrated(path: Path, *steps: str) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        migrate(connection, path, [Migration(n, tuple(single_statements(script))) for n, script in enumerate(steps, 1)])
    finally:
        connection.close()


def version_and_tables(path: Path) -> tuple[int, list[str]]:
    connection = sqlite3.connect(path)
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema ORDER BY name")]
    connection.close()
    return version, tables


FIRST, SECOND, BAD = (
    "CREATE TABLE a (x);",
    "CREATE TABLE b (x); ALTER TABLE a ADD COLUMN y;",
    "CREATE TABLE c (x); CREATE TABLE a (x);",
)


def test_an_older_store_is_copied_and_then_migrated(path: Path) -> None:
    migrated(path, FIRST)
    migrated(path, FIRST, SECOND)
    copy = path.with_name(f"{path.name}.v1.bak")
    assert version_and_tables(path) == (2, ["a", "b"])
    assert version_and_tables(copy) == (1, ["a"])
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600


def test_a_migration_that_fails_leaves_the_store_as_it_was(path: Path) -> None:
    migrated(path, FIRST)
    for _ in range(2):
        with pytest.raises(sqlite3.OperationalError):
            migrated(path, FIRST, SECOND, BAD)
    assert version_and_tables(path) == (1, ["a"])
    migrated(path, FIRST, SECOND)
    assert version_and_tables(path) == (2, ["a", "b"])


def test_a_script_is_cut_into_its_statements() -> None:
    script = "-- about a;\nCREATE TABLE a (x DEFAULT ';');\nCREATE TRIGGER t AFTER INSERT ON a BEGIN\n  DELETE FROM a;\nEND;\n"
    assert len(list(single_statements(script))) == 2
    with pytest.raises(ValueError, match="inside a statement"):
        list(single_statements("CREATE TABLE a (x"))


# --- the file ---


async def test_the_files_are_the_owners_alone(path: Path) -> None:
    store = sqlite_store(path)
    await store.open(ignore)
    await store.add(new_task())
    modes = {stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    await store.close()
    assert modes == {0o600}


async def test_a_closed_store_is_one_file(path: Path) -> None:
    store = sqlite_store(path)
    await store.open(ignore)
    await store.add(new_task())
    await store.close()
    assert list(path.parent.iterdir()) == [path]


async def test_commits_survive_a_power_cut(path: Path) -> None:
    store = sqlite_store(path)
    await store.open(ignore)
    assert store._connection is not None
    settings = {
        name: await store._connection.run(lambda connection, name=name: connection.execute(f"PRAGMA {name}").fetchone()[0])
        for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout", "journal_size_limit")
    }
    await store.close()
    full = 2
    assert settings == {
        "journal_mode": "wal",
        "synchronous": full,
        "foreign_keys": 1,
        "busy_timeout": 5000,
        "journal_size_limit": 64 << 20,
    }


async def test_old_events_are_dropped_at_opening_and_their_numbers_never_return(path: Path) -> None:
    store = sqlite_store(path)
    await store.open(ignore)
    for _ in range(10):
        store.note(NOON, PoolResumed())
    await store.close()
    store = sqlite_store(path, kept_events=3)
    identity = await store.open(ignore)
    assert [event.position.seq for event in await store.events(0, 100)] == [8, 9, 10]
    assert identity.last_seq == 10
    await store.close()
    with pytest.raises(ValueError, match="last event"):
        sqlite_store(path, kept_events=0)


async def test_requests_that_wait_for_a_commit_share_the_next(path: Path) -> None:
    store, told = sqlite_store(path), Told()
    await store.open(told)
    await asyncio.gather(*(store.add(new_task(f"content {n}")) for n in range(300)))
    await store.close()
    assert len(told.events) == 300
    assert len(told.commits) < 10


# --- other processes ---


async def test_a_reader_sees_what_another_process_has_written(path: Path) -> None:
    with process("tests.store.writing_process", path) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        reader = SqliteReader(path)
        await reader.open()
        for _ in range(30):
            newest = int(writer.stdout.readline().split()[0])
            page = await reader.tasks(TaskQuery(limit=5), NOON)
            assert page.total >= newest
            assert len(await reader.events(0, 10**6)) >= newest
        assert (await reader.counts())[TaskState.PENDING] >= newest
        await reader.close()


async def test_a_reader_of_a_store_that_is_not_there_says_so_and_makes_none(path: Path) -> None:
    with pytest.raises(StoreError, match="no store"):
        await SqliteReader(path).open()
    assert not path.exists()
    path.touch()
    with pytest.raises(StoreError, match="no store"):
        await SqliteReader(path).open()


async def test_a_reader_of_what_can_not_be_opened_says_so_and_leaves_no_thread_to_answer_a_closed_loop(path: Path) -> None:
    path.mkdir()
    before = set(threading.enumerate())
    with pytest.raises(StoreError, match="could not be used"):
        await SqliteReader(path).open()
    assert not any(thread.name.endswith("(_connection_worker_thread)") for thread in set(threading.enumerate()) - before)


async def test_a_reader_can_read_a_store_that_nobody_has_open(path: Path) -> None:
    store = sqlite_store(path)
    await store.open(ignore)
    task = await added(store)
    await store.close()
    reader = SqliteReader(path)
    await reader.open()
    assert (await reader.tasks(TaskQuery(), NOON)).rows[0].task == task
    await reader.close()
    await reader.close()
    with pytest.raises(StoreError):
        await reader.counts()


async def test_a_reader_can_not_write(path: Path) -> None:
    store = sqlite_store(path)
    await store.open(ignore)
    await store.close()
    reader = SqliteReader(path)
    await reader.open()
    assert reader._connection is not None
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        await reader._connection.execute("DELETE FROM task")
    await reader.close()


async def test_a_long_read_does_not_stop_a_write(path: Path) -> None:
    store = sqlite_store(path)
    await store.open(ignore)
    await added(store, "before")
    other = sqlite3.connect(path)
    reading = other.execute("SELECT id FROM task")
    reading.fetchone()
    await added(store, "meanwhile")
    assert reading.fetchall() == []
    other.close()
    await store.close()


async def test_a_changed_priority_is_not_fenced_by_a_renewal(path: Path) -> None:
    store = sqlite_store(path)
    await store.open(ignore)
    task = await claimed(store, await added(store))
    renewing = asyncio.gather(store.renew(["token-1"], NOON + 900), store.renew(["token-1"], NOON + 800))
    after = msgspec.structs.replace(run(task).after, priority=4)
    await store.write(Change(task, after, run(task).news, NOON + 2))
    assert await renewing == [frozenset(), frozenset()]
    (stored,) = await store.owned()
    await store.close()
    assert (stored.priority, stored.state, stored.lease_until) == (4, TaskState.RUNNING, NOON + 900)
