"""A store of every earlier version is brought up to date once, after a copy, with all that is in it.

`earlier/vN.sql` is what the program wrote when N was its latest version: the same seven tasks each time. A version that adds one adds
its own file, and the tables below are what every one of them has to be read as.
"""

from __future__ import annotations

import sqlite3
import stat
from collections.abc import Sequence
from pathlib import Path

import pytest

from malbox_tui.model.commands import PausePool
from malbox_tui.model.errors import StoreError
from malbox_tui.model.events import ActionTaken, Event, PoolResumed, TaskCompleted, TaskGivenBack
from malbox_tui.model.plugin_wishes import NO_WISHES, PluginWishes
from malbox_tui.model.queries import TaskFilter, TaskQuery, TaskSort
from malbox_tui.model.report import Classification, PluginStatus
from malbox_tui.model.task import ChosenBy, ChosenProfile, EndedBy, RequirementClass, TaskState
from malbox_tui.store.sqlite_reader import SqliteReader
from malbox_tui.store.statements import migrations
from tests.cli.command_line import CommandLine
from tests.store.builders import NOON, claimed, run, settle, sqlite_store, stop

EARLIER = Path(__file__).parent / "earlier"
LATEST = len(migrations())
VERSIONS = range(1, LATEST + 1)

STATES = {
    1: TaskState.COMPLETED,
    2: TaskState.RUNNING,
    3: TaskState.PENDING,
    4: TaskState.CANCELED,
    5: TaskState.STOPPING,
    6: TaskState.PENDING,
    7: TaskState.PENDING,
}
EVENTS = {version: 20 if version >= 4 else 19 for version in VERSIONS}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.sqlite"


def put(version: int, path: Path) -> None:
    """A store of this version at `path`."""
    connection = sqlite3.connect(path)
    connection.executescript((EARLIER / f"v{version}.sql").read_text())
    connection.close()


def dump(path: Path) -> list[str]:
    connection = sqlite3.connect(path)
    lines = list(connection.iterdump())
    connection.close()
    return lines


def version_of(path: Path) -> int:
    connection = sqlite3.connect(path)
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    connection.close()
    return int(version)


def columns(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """What each table and index has, whatever order it came in."""
    connection = sqlite3.connect(path)
    names = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%'")]
    found = {
        name: sorted(row[1:] for row in connection.execute(f"PRAGMA table_xinfo({name})"))
        or [row[1:] for row in connection.execute(f"PRAGMA index_xinfo({name})")]
        for name in names
    }
    connection.close()
    return found


def ignore(events: Sequence[Event]) -> None:
    pass


def test_there_is_a_store_of_every_version() -> None:
    assert {file.name for file in EARLIER.iterdir()} == {f"v{version}.sql" for version in VERSIONS}


@pytest.mark.parametrize("version", VERSIONS)
async def test_all_that_is_in_it_is_there_afterwards(path: Path, version: int) -> None:
    put(version, path)
    store = sqlite_store(path)
    identity = await store.open(ignore)
    assert (identity.engine_id, identity.epoch, identity.last_seq) == ("e0e1e2e3e4e5e6e7e8e9eaebecedeeef", 2, EVENTS[version])
    assert identity.counts[TaskState.PENDING] == 3
    rows = (await store.tasks(TaskQuery(sort=TaskSort.OLDEST), NOON)).rows
    assert {row.task.id: row.task.state for row in rows} == STATES

    completed, running, pending, canceled, stopping, retry, back = (row.task for row in rows)
    assert completed.verdict is not None
    assert (completed.verdict.classification, completed.verdict.labels) == (Classification.SUSPICIOUS, ("odd",))
    (plugin,) = completed.plugins
    assert (plugin.name, plugin.status, plugin.results[0].name) == ("yara", PluginStatus.COMPLETED, "report")
    assert completed.stages == {"pending": 1.0, "initializing": 1.0, "running": 1.0, "stopping": 1.0}
    assert (running.token, running.lease_until, running.machine) == ("token-running", NOON + 70, None)
    assert pending.requires == RequirementClass("dynamic", "windows", "x64", ("office",))
    assert (pending.priority, pending.timeout_s, pending.enforce_timeout) == (7, 300.0, False)
    assert pending.profile == (ChosenProfile(name="office", by=ChosenBy.HAND) if version >= 7 else None)
    assert completed.profile is None
    assert pending.owner == ("ana" if version >= 10 else "")
    assert pending.wishes == (PluginWishes(("strings",), {"strings": {"min_length": "8"}}) if version >= 10 else NO_WISHES)
    assert (completed.owner, completed.wishes) == ("", NO_WISHES)
    assert (canceled.ended_by, canceled.reason) == (EndedBy.USER, "Canceled by ana while it waited.")
    assert stopping.outcome is not None
    assert (stopping.outcome.state, stopping.outcome.ended_by) == (TaskState.TIMED_OUT, EndedBy.ANALYSIS_TIMEOUT)
    assert (retry.retry_of, retry.sha256) == (1, completed.sha256)
    assert (back.crashes, back.reason) == (1, "The last attempt was interrupted.")
    assert rows[1].sample.names[0].name == b"a new\nline \xff.exe"
    assert rows[0].sample.identification is not None
    assert rows[0].sample.identification.kind == "pe"
    assert rows[0].sample.tags == (("apt", "office") if version >= 6 else ())
    assert [note.text for note in rows[0].sample.notes] == (["seen before"] if version >= 6 else [])
    assert rows[1].sample.notes == ()

    events = await store.events(0, 100)
    assert [event.position.seq for event in events] == list(range(1, EVENTS[version] + 1))
    assert isinstance(events[4].body, TaskCompleted)
    assert isinstance(events[18].body, TaskGivenBack)
    assert [record.number for record in await store.actions(None, 10)] == ([20] if version >= 4 else [])
    await store.close()


@pytest.mark.parametrize("version", VERSIONS)
async def test_work_goes_on_in_it(path: Path, version: int) -> None:
    put(version, path)
    store = sqlite_store(path)
    await store.open(ignore)
    page = await store.tasks(TaskQuery(where=TaskFilter(task_ids=(7,))), NOON)
    task = await claimed(store, page.rows[0].task, "token-new", NOON + 100)
    for make in (run, stop, settle):
        change = make(task)
        await store.write(change)
        task = change.after
    assert task.state is TaskState.COMPLETED
    taken = ActionTaken(actor="ben", action=PausePool(), done=True, message="Done.")
    await store.note(NOON, taken)
    assert [record.actor for record in await store.actions(None, 1)] == ["ben"]
    assert len(await store.owned()) == 2
    await store.close()


@pytest.mark.parametrize("version", VERSIONS)
async def test_it_is_copied_before_and_migrated_once(path: Path, version: int) -> None:
    put(version, path)
    before = dump(path)
    for _ in range(2):
        store = sqlite_store(path)
        await store.open(ignore)
        await store.note(NOON, PoolResumed())
        await store.close()
    assert version_of(path) == LATEST
    copies = list(path.parent.glob("*.bak*"))
    if version == LATEST:
        assert copies == []
        return
    assert copies == [path.with_name(f"store.sqlite.v{version}.bak")], "of the first opening alone"
    assert sorted(dump(copies[0])) == sorted(before)
    assert version_of(copies[0]) == version
    assert stat.S_IMODE(copies[0].stat().st_mode) == 0o600


@pytest.mark.parametrize("version", VERSIONS)
async def test_afterwards_it_is_made_as_a_new_one_is(path: Path, version: int) -> None:
    put(version, path)
    fresh = path.with_name("fresh.sqlite")
    for place in (path, fresh):
        store = sqlite_store(place)
        await store.open(ignore)
        await store.close()
    assert columns(path) == columns(fresh)


@pytest.mark.parametrize("version", VERSIONS[:-1])
async def test_who_only_looks_leaves_it_as_it_is_and_says_what_to_do(path: Path, version: int) -> None:
    put(version, path)
    before = dump(path)
    with pytest.raises(StoreError, match=r"older version\. Start malbox-tui once"):
        await SqliteReader(path).open()
    assert dump(path) == before


@pytest.mark.parametrize("version", VERSIONS[:-1])
def test_a_command_without_an_engine_brings_it_up_to_date(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], version: int
) -> None:
    malbox = CommandLine(tmp_path, capsys)
    malbox.data.mkdir(mode=0o700)
    put(version, malbox.data / "malbox.sqlite3")
    said = malbox("tasks")
    assert (said.code, "of an older version" in said.err) == (2, True)
    assert malbox("cancel", 3).code == 0
    assert malbox.states()[3] == "canceled"
    assert malbox.states()[2] == "pending", "what was interrupted is put right"
