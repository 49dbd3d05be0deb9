"""A served engine on the rig's machines, and what it tells: for tests that bring it, the daemon or a machine into trouble."""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.cli.service_rig import Serving
from tests.cli.test_end_to_end import Malbox, records
from tests.rig.host import RigHost

PATIENCE_S = 90.0
POLL_S = 0.05

Record = dict[str, Any]


class Station:
    """An engine that serves, until it is ended or killed; it may be started again on the same tasks."""

    def __init__(self, malbox: Malbox, folder: Path) -> None:
        self.malbox = malbox
        self.told: list[Record] = []
        """The events of the engine that was started last, and those before it."""
        self._folder = folder
        self._news = threading.Condition()
        self._samples = itertools.count(1)
        self._service: Serving | None = None
        self._following: subprocess.Popen[bytes] | None = None
        self._reader = threading.Thread()

    def __enter__(self) -> Station:
        try:
            self.start()
        except BaseException:
            self._leave()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._leave()

    def start(self) -> None:
        """Returns when it serves."""
        data = self.malbox.data
        (data.parent / f"{data.name}.notify").unlink(missing_ok=True)
        self._service = Serving(data).__enter__()
        self._service.until("Serving at")
        self.told = []
        self._following = subprocess.Popen(
            self.malbox.command("events", "--follow", "--json", "--limit", "100000"),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=self.malbox.environment,
        )
        self._reader = threading.Thread(target=self._follow, args=(self._following, self.told), daemon=True)
        self._reader.start()

    def kill(self) -> None:
        """End it without warning."""
        assert self._service is not None
        self._service.send(signal.SIGKILL)
        self._leave()

    def end(self) -> None:
        """End it in good order."""
        assert self._service is not None
        self._service.send(signal.SIGINT)
        assert self._service.ended() == 0
        self._leave()

    def submit(self, script: str, *options: str) -> int:
        """The id of a new task that runs a script."""
        (number,) = self.submit_many([script], *options)
        return number

    def submit_many(self, scripts: Sequence[str], *options: str) -> list[int]:
        """The ids of new tasks, each of which runs a script, in any order."""
        samples = [self.sample(script) for script in scripts]
        said = self.malbox("submit", "--json", "--type", "dynamic", "--platform", "linux", *options, *samples)
        assert said.returncode == 0, (said.stdout, said.stderr)
        return [int(accepted["task_id"]) for accepted in records(said.stdout)]

    def sample(self, script: str) -> Path:
        """A script in a file; the same one twice is two samples."""
        path = self._folder / f"{next(self._samples)}.sh"
        path.write_text(f"#!/bin/sh\n: {path.name}\n{script}\n")
        return path

    def ask(self, *words: str) -> None:
        """Do something to the engine by a command, which has to be done."""
        said = self.malbox(words[0], *words[1:])
        assert said.returncode == 0, (said.stdout, said.stderr)

    def task(self, number: int) -> Record:
        """A task as it is stored."""
        (task,) = records(self.malbox("task", "--json", str(number)).stdout)
        return task

    def until(self, holds: Callable[[list[Record]], bool], what: str) -> None:
        """Returns when the events that were told are as they are to be."""
        with self._news:
            assert self._news.wait_for(lambda: holds(self.told), PATIENCE_S), f"{what}: {json.dumps(self.told[-30:], indent=1)}"

    def until_stage(self, number: int, stage: str) -> None:
        """Returns when the engine that was started last has brought a task to a stage."""
        self.until(lambda told: any(_is(event, number, stage) for event in told), f"task {number} is not {stage}")

    def until_ended(self, number: int) -> Record:
        """A task that has ended, as it is stored."""
        self._until_end_of(number)
        return self.task(number)

    def until_all_ended(self, numbers: Sequence[int]) -> list[Record]:
        """Tasks that have ended, as they are stored."""
        for number in numbers:
            self._until_end_of(number)
        stored = {task["id"]: task for task in self.malbox.tasks()}
        return [stored[number] for number in numbers]

    def until_machine(self, machine: str, state: str) -> Record:
        """Returns when the last that was told of a machine is this state."""
        self.until(lambda told: _last_of(machine, told).get("state") == state, f"{machine} is not {state}")
        return _last_of(machine, self.told)

    def until_collecting(self) -> None:
        """Returns when a file is being brought out of a guest."""
        folder = self.malbox.data / "results"
        until(lambda: any(path.name.startswith(".dropped") for path in folder.rglob("*")), "nothing is collected")

    def goes_on_for(self, number: int, seconds: float) -> None:
        """Returns after a while in which a task did not end."""
        with self._news:
            has_ended = self._news.wait_for(lambda: any(_has_ended(event, number) for event in self.told), seconds)
        assert not has_ended, self.told[-5:]

    def _until_end_of(self, number: int) -> None:
        self.until(lambda told: any(_has_ended(event, number) for event in told), f"task {number} has not ended")

    def _follow(self, following: subprocess.Popen[bytes], told: list[Record]) -> None:
        assert following.stdout is not None
        for line in following.stdout:
            with self._news:
                told.append(json.loads(line))
                self._news.notify_all()

    def _leave(self) -> None:
        if self._service is not None:
            self._service.__exit__(None, None, None)
            self._service = None
        if self._following is not None:
            self._following.kill()
            self._reader.join(PATIENCE_S)
            self._following.communicate()
            self._following = None


@contextmanager
def frozen(rig: RigHost) -> Iterator[None]:
    """libvirt's daemon stands still meanwhile."""
    rig.signal_daemon(signal.SIGSTOP)
    try:
        yield
    finally:
        rig.signal_daemon(signal.SIGCONT)


def until(holds: Callable[[], bool], otherwise: str) -> None:
    """Returns when something is so."""
    over = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < over, otherwise
        time.sleep(POLL_S)


def holders(told: list[Record]) -> dict[str, list[int]]:
    """By machine, the tasks that held it, one after the other: never two at a time."""
    held: dict[str, list[int]] = {}
    holder: dict[str, int | None] = {}
    for event in told:
        if event.get("event") != "MachineChanged":
            continue
        machine, task = event["machine"], event.get("task_id")
        if event["state"] in ("leased", "starting") and task is not None:
            assert holder.get(machine) in (None, task), f"{machine} has two tasks: {holder[machine]} and {task}"
            if holder.get(machine) is None:
                held.setdefault(machine, []).append(task)
            holder[machine] = task
        elif event["state"] in ("reverting", "ready"):
            holder[machine] = None
    return held


def _is(event: Record, number: int, stage: str) -> bool:
    return event.get("event") == "TaskStageChanged" and event["task_id"] == number and event["state"] == stage


def _has_ended(event: Record, number: int) -> bool:
    ends = ("TaskCompleted", "TaskFailed", "TaskTimedOut", "TaskCanceled")
    return event.get("event") in ends and event["task_id"] == number


def _last_of(machine: str, told: list[Record]) -> Record:
    return next((event for event in reversed(told) if event.get("machine") == machine and "state" in event), {})
