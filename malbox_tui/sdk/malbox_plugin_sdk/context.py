"""What a handler is given: the task, a place for results, and ways to tell how it goes. Valid during the handler only."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from .values import Event, PluginResult, checked_text, present
from .wire import CHUNK_BYTES

MAX_MESSAGE_CHARACTERS = 2000
PROGRESS_INTERVAL_S = 0.1
"""Progress that follows sooner is not sent, unless it says that all is done."""

Send = Callable[[dict[str, Any], bytes | memoryview], None]
"""Sends one frame of the current run; raises when there is none any more."""


class Run:
    """One task in this process: what it is about, and whether it is still going on.

    `is_canceled` is set by the wire's reader, in a thread of its own.
    """

    def __init__(
        self,
        run: int,
        task_id: int,
        sample_path: Path,
        config: dict[str, str],
        send: Send,
        given: dict[str, Path] | None = None,
    ) -> None:
        self.run = run
        self.task_id = task_id
        self.sample_path = sample_path
        self.config = config
        self.given = given or {}
        self.is_canceled = False
        self._send = send
        self._over = False
        self._next_progress_at = 0.0

    def check(self) -> Run:
        """Itself, as long as the handler runs. Raises RuntimeError afterwards."""
        if self._over:
            raise RuntimeError("the context is no longer valid: it was used after its handler had ended")
        return self

    def progress(self, fraction: float, message: str) -> None:
        """Tell how far it is, as often as a person can read."""
        now = time.monotonic()
        if self.check()._next_progress_at <= now or fraction == 1.0:
            self._next_progress_at = now + PROGRESS_INTERVAL_S
            self.send("progress", fraction=fraction, message=message)

    def end(self) -> None:
        """Make every later use raise."""
        self._over = True

    def send(self, kind: str, payload: bytes | memoryview = b"", **fields: Any) -> None:
        """Tell the engine. Raises RuntimeError after the handler's end."""
        self.check()._send({"kind": kind, "run": self.run, **fields}, payload)


class TaskInfo:
    """What the task is about."""

    def __init__(self, run: Run) -> None:
        self._run = run

    @property
    def id(self) -> int:
        """The task's number."""
        return self._run.check().task_id

    @property
    def sample_path(self) -> Path:
        """Where the sample can be read; it can't be written."""
        return self._run.check().sample_path

    @property
    def config(self) -> dict[str, str]:
        """The plugin's configuration."""
        return dict(self._run.check().config)

    @property
    def given(self) -> dict[str, Path]:
        """What other plugins gave of what this one needs by its manifest (`[plan] needs`): files to be read, by name."""
        return dict(self._run.check().given)

    def sample_bytes(self) -> bytes:
        """The whole sample; raises OSError when it can't be read."""
        return self._run.check().sample_path.read_bytes()

    def config_value(self, key: str) -> str | None:
        """One value of the configuration."""
        return self._run.check().config.get(key)

    def __repr__(self) -> str:
        return f"TaskInfo(id={self.id})"


class ResultSink:
    """Where results go: each is on its way to the engine when a call returns. A second result of a name replaces the first."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def push(self, result: PluginResult) -> None:
        """Send a result. Raises OSError when its file can't be read; nothing of it is kept then."""
        if not isinstance(result, PluginResult):
            raise TypeError(f"a result must be a PluginResult, not {type(result).__name__}")
        if result.path is not None:
            self.push_file(result.name, result.path)
        else:
            self._stream(result.name, result.format, _chunks(result.data or b""))

    def push_json(self, name: str, data: bytes) -> None:
        """Send JSON that is written already."""
        self._stream(name, "json", _chunks(data))

    def push_bytes(self, name: str, data: bytes) -> None:
        """Send bytes."""
        self._stream(name, "bytes", _chunks(data))

    def push_file(self, name: str, path: str | Path) -> None:
        """Send a file's content."""
        with Path(os.fspath(path)).open("rb") as file:
            self._stream(name, "file", iter(lambda: file.read(CHUNK_BYTES), b""))

    def push_all(self, results: list[PluginResult]) -> None:
        """Send several, in order."""
        for result in results:
            self.push(result)

    def _stream(self, name: str, format: str, chunks: Iterator[bytes | memoryview]) -> None:
        self._run.send("result_begin", name=checked_text("name", name)[:MAX_MESSAGE_CHARACTERS], format=format)
        for chunk in chunks:
            self._run.send("result_chunk", chunk)
        self._run.send("result_end")


class Context:
    """Handed to `on_task`; `on_batch` gets one for each task."""

    def __init__(self, run: Run) -> None:
        self._run = run

    @property
    def is_canceled(self) -> bool:
        """Whether this task is to end. A batch goes on for its other tasks then: leave this one out, what it still sends is ignored."""
        return self._run.check().is_canceled

    def task(self) -> TaskInfo:
        """What the task is about."""
        return TaskInfo(self._run)

    def results(self) -> ResultSink:
        """Where results go."""
        return ResultSink(self._run)

    def progress(self, pct: float, message: str) -> None:
        """How far the handler is, 0.0 to 1.0. Raises ValueError for anything else."""
        fraction = float(pct)
        if not math.isfinite(fraction) or not 0.0 <= fraction <= 1.0:
            raise ValueError(f"progress must be 0.0 to 1.0, not {pct}")
        self._run.progress(fraction, _message(message))

    def emit_event(self, event: Event) -> None:
        """Tell plugins that subscribed to this one."""
        if not isinstance(event, Event):
            raise TypeError(f"an event must be an Event, not {type(event).__name__}")
        fields = {"event": event.kind, "id": event.id, "source": event.source, "result_name": event.result_name}
        self._run.send("event", **present(fields))

    def warn(self, message: str) -> None:
        """Attach a warning to the task."""
        self._run.send("warning", message=_message(message))

    def mark_collected(self, path: str | Path) -> None:
        """Say that a file needs no collecting. Host plugins' files are never collected by themselves, so this changes nothing."""
        os.fspath(path)
        self._run.check()


def _message(message: str) -> str:
    return checked_text("message", message)[:MAX_MESSAGE_CHARACTERS]


def _chunks(data: bytes) -> Iterator[memoryview]:
    view = memoryview(data).cast("B")
    for start in range(0, len(view), CHUNK_BYTES):
        yield view[start : start + CHUNK_BYTES]
