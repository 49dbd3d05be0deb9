"""An engine that is killed without warning, as a real process with real plugins: nothing is lost, nothing is twice, nobody is left."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import psutil
import pytest

from malbox_tui.config.folders import DataFolders
from malbox_tui.model.events import TaskCanceled, TaskCompleted, TaskFailed, TaskTimedOut
from malbox_tui.model.queries import MAX_ROWS, TaskQuery
from malbox_tui.model.task import TaskState
from malbox_tui.runtime.assembly import open_reader
from malbox_tui.store.sqlite_reader import SqliteReader

pytestmark = pytest.mark.slow

SAMPLES = 200
PLUGINS = 3
"""As many processes at once only plugins are: the trial of the sandbox, before them, is one that ends by itself."""
GONE_WITHIN_S = 30.0


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    folder = tmp_path / "samples"
    folder.mkdir()
    for number in range(SAMPLES):
        (folder / f"{number:03}.txt").write_text(f"harmless sample {number}\n" * (number + 1))
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("records_before", [0, 1, 150])
async def test_after_a_kill_every_task_ends_once_and_no_process_is_left(
    tmp_path: Path, samples: Path, records_before: int
) -> None:
    data = tmp_path / "data"
    engine = _start(data, samples)
    assert engine.stdout is not None
    if records_before:
        for _ in range(records_before):
            assert engine.stdout.readline()
    else:
        _until_it_has_a_child(engine, children=PLUGINS)
    _kill_and_see_all_go(engine)

    again = _start(data, samples)
    output, _ = again.communicate(timeout=300)
    assert again.returncode == 0
    ended = [json.loads(line) for line in output.splitlines()]
    assert {record["state"] for record in ended if record["record"] == "task"} <= {"completed"}

    async with open_reader(DataFolders.under(data)) as reader:
        page = await reader.tasks(TaskQuery(limit=MAX_ROWS), 0.0)
    assert Counter(record.task.state for record in page.rows) == {TaskState.COMPLETED: SAMPLES}
    assert await _ends_by_task(data) == dict.fromkeys((record.task.id for record in page.rows), 1)


@pytest.mark.parametrize("round_", range(5))
def test_an_engine_killed_while_it_starts_its_plugins_leaves_none_behind(tmp_path: Path, samples: Path, round_: int) -> None:
    engine = _start(tmp_path / "data", samples)
    _until_it_has_a_child(engine, children=1 + round_)
    engine.kill()
    engine.communicate()
    # One that was just being started may still start, find its wire closed, and end: so look until there is none.
    while marked := list(_marked(tmp_path)):
        _see_go(marked)


def _start(data: Path, samples: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "malbox_tui", "--data-dir", str(data), "analyze", str(samples), "--json"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, text=True)


def _until_it_has_a_child(engine: subprocess.Popen[str], children: int = 1) -> None:
    process = psutil.Process(engine.pid)
    while len(process.children()) < children:
        assert engine.poll() is None


def _kill_and_see_all_go(engine: subprocess.Popen[str]) -> None:
    """Freeze the engine, so that it starts nothing more, note all its descendants, kill it and see each of them end."""
    engine.send_signal(signal.SIGSTOP)
    descendants = [child.pid for child in psutil.Process(engine.pid).children(recursive=True)]
    assert descendants
    watched = [fd for pid in descendants if (fd := _pidfd(pid)) is not None]
    engine.kill()
    engine.communicate()
    _see_go_by(watched)


def _see_go(pids: list[int]) -> None:
    _see_go_by([fd for pid in pids if (fd := _pidfd(pid)) is not None])


def _see_go_by(pidfds: list[int]) -> None:
    for pidfd in pidfds:
        with closing(os.fdopen(pidfd)):
            ready, _, _ = select.select([pidfd], [], [], GONE_WITHIN_S)
            assert ready, "a process outlived its engine"


def _pidfd(pid: int) -> int | None:
    with suppress(ProcessLookupError):
        return os.pidfd_open(pid)
    return None


def _marked(tmp_path: Path) -> Iterator[int]:
    """Processes that name the test's own folder in their command line."""
    for process in psutil.process_iter(["cmdline"]):
        if any(str(tmp_path) in word for word in process.info["cmdline"] or ()):
            yield process.pid


async def _ends_by_task(data: Path) -> dict[int, int]:
    reader = SqliteReader(DataFolders.under(data).store)
    await reader.open()
    ends: Counter[int] = Counter()
    seq = 0
    while events := await reader.events(seq, MAX_ROWS):
        for event in events:
            if isinstance(event.body, TaskCompleted | TaskFailed | TaskCanceled | TaskTimedOut):
                ends[event.body.task_id] += 1
        seq = events[-1].position.seq
    await reader.close()
    return dict(ends)
