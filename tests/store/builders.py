"""Values and handles for tests of the stores: a task in one line, a store with its told events."""

from __future__ import annotations

import asyncio
import hashlib
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from malbox_tui.model.events import Event, EventBody, TaskCompleted, TaskStageChanged
from malbox_tui.model.report import Classification, PluginRun, PluginStatus, ResultRef, Verdict
from malbox_tui.model.sample import SampleName
from malbox_tui.model.task import (
    EndedBy,
    Outcome,
    RequirementClass,
    Task,
    TaskState,
    Trigger,
    given_back,
    moved,
    settled,
    stopping,
)
from malbox_tui.ports import Change, ClaimRequest, NewTask, Store
from malbox_tui.store.sqlite import SqliteStore

NOON = 1_800_000_000.125

CHECKOUT = Path(__file__).parents[2]
"""Where a process of a test must start, to import `tests`."""


@contextmanager
def process(module: str, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    """A module of the tests run by a Python of its own; it is killed at the end, whatever the test came to."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=CHECKOUT) as running:
        try:
            yield running
        finally:
            running.kill()


@dataclass
class Told:
    """Collects what a store tells."""

    commits: list[list[Event]] = field(default_factory=list)

    def __call__(self, events: Sequence[Event]) -> None:
        self.commits.append(list(events))

    @property
    def events(self) -> list[Event]:
        return [event for commit in self.commits for event in commit]

    @property
    def bodies(self) -> list[EventBody]:
        return [event.body for event in self.events]


def sqlite_store(path: Path, **options: Any) -> SqliteStore:
    return SqliteStore(path, asyncio.get_running_loop().create_task, **options)


def sha256_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def new_task(content: str = "sample", name: bytes | None = b"sample.exe", **values: Any) -> NewTask:
    defaults: dict[str, Any] = {
        "size_bytes": len(content),
        "at": NOON,
        "priority": 1,
        "timeout_s": 300.0,
        "requires": RequirementClass(),
    }
    sample_name = None if name is None else SampleName(name, values.pop("origin", b"/in/" + name))
    return NewTask(sha256=sha256_of(content), name=sample_name, **defaults | values)


def claim_request(task_id: int, token: str = "token-1", worker: str = "worker-1", at: float = NOON + 1) -> ClaimRequest:
    return ClaimRequest(task_id, worker, token, at, at + 60)


async def added(store: Store, content: str = "sample", name: bytes | None = b"sample.exe", **values: Any) -> Task:
    return (await store.add(new_task(content, name, **values))).task


async def claimed(store: Store, task: Task, token: str = "token-1", at: float = NOON + 1) -> Task:
    owned = await store.claim(claim_request(task.id, token, at=at))
    assert owned is not None
    return owned


def run(task: Task, at: float = NOON + 2) -> Change:
    return _stage(task, moved(task, Trigger.RUN, at), at)


def stop(task: Task, at: float = NOON + 3, outcome: Outcome | None = None) -> Change:
    return _stage(task, stopping(task, outcome or good_outcome(), at), at)


def settle(task: Task, at: float = NOON + 4) -> Change:
    after = settled(task, at)
    assert after.ended_by is not None
    news = TaskCompleted(task_id=task.id, ended_by=after.ended_by, reason=after.reason, verdict=after.verdict)
    return Change(task, after, news, at)


def give_back(task: Task, at: float = NOON + 5, *, crashed: bool = False) -> Change:
    return _stage(task, given_back(task, at, "the engine stopped", crashed=crashed), at)


def _stage(before: Task, after: Task, at: float) -> Change:
    return Change(before, after, TaskStageChanged(task_id=before.id, state=after.state), at)


async def completed(store: Store, content: str = "sample", token: str = "token-1", at: float = NOON) -> Task:
    task = await claimed(store, await added(store, content), token, at + 1)
    for make in (run, stop, settle):
        change = make(task)
        await store.write(change)
        task = change.after
    return task


def good_outcome(reason: str = "finished") -> Outcome:
    verdict = Verdict(Classification.SUSPICIOUS, 40, None, ("odd",))
    result = ResultRef("report", "json", 2, sha256_of("{}"), "1/token-1/yara/report")
    run = PluginRun("yara", "1", PluginStatus.COMPLETED, 0.1 + 0.2, (result,), verdict)
    return Outcome(TaskState.COMPLETED, EndedBy.FINISHED, reason, verdict, (run,))
