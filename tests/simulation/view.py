"""Where the simulation looks into the engine and the store: the only module here that knows their private names."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping

from malbox_tui.engine.attempt import Attempt
from malbox_tui.engine.cancellation import CancelToken
from malbox_tui.engine.engine import STORE, Engine
from malbox_tui.engine.machine import Machine
from malbox_tui.engine.worker import Worker
from malbox_tui.engine.worker_group import WorkerGroup
from malbox_tui.model.commands import ShutdownMode
from malbox_tui.model.events import Event
from malbox_tui.model.task import RequirementClass, Task
from malbox_tui.store.memory import MemoryStore


class View:
    """One engine, read at the moment of each call. Nothing it gives is a copy."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.groups: Mapping[str, WorkerGroup] = engine._pool.groups
        """By name."""
        self.tokens: Mapping[int, CancelToken] = engine._tokens
        """Of the tasks that were handed out and have not ended, by id."""

    @property
    def machines(self) -> Mapping[str, Machine]:
        """By name; empty until the engine has opened them."""
        return self._engine._machines._machines

    @property
    def attempts(self) -> Mapping[int, Attempt]:
        """Under way, by task id."""
        return self._engine._driver.attempts

    @property
    def queue(self) -> Mapping[int, tuple[tuple[int, int], RequirementClass]]:
        """Task id → its place, (priority turned round, id), the smallest first, and what it requires."""
        return self._engine._queue._entries

    @property
    def said_of_absent(self) -> set[int]:
        """Tasks of which the queue remembers something for when they come."""
        queue = self._engine._queue
        return queue._priorities.keys() | queue._ended

    @property
    def is_paused(self) -> bool:
        return self._engine._pool.paused is not None

    @property
    def is_ending(self) -> bool:
        return self._engine._pool.is_ending

    @property
    def was_told_to_stop(self) -> bool:
        return self._engine._stop_mode is not None

    @property
    def attempts_are_to_end(self) -> bool:
        """A stop that doesn't wait for tasks was asked for."""
        return self._engine._stop_mode not in (None, ShutdownMode.DRAIN)

    @property
    def waits_for_store(self) -> bool:
        """No task is taken because the store takes nothing."""
        return STORE in self._engine._pool._holds

    @property
    def is_closed(self) -> bool:
        return self._engine._closed

    @property
    def store_fails(self) -> bool:
        """The engine knows that the store takes nothing."""
        return self._engine._health.problem is not None

    def workers(self) -> Iterator[tuple[WorkerGroup, Worker]]:
        for group in self.groups.values():
            for worker in group.workers.values():
                yield group, worker

    def tracked(self) -> list[str]:
        """The names of asyncio tasks that the engine still owns."""
        return sorted(handle.get_name() for handle in self._engine._tracker._handles)

    def subscriptions(self) -> int:
        """Readers of events that the engine has not let go of."""
        return len(self._engine._newsroom.bus._subscriptions)


def listeners(token: CancelToken) -> int:
    """How many still listen to a token or to what descends from it."""
    return len(token._listeners) + sum(listeners(child) for child in token._children)


def rows(store: MemoryStore) -> Mapping[int, Task]:
    """All tasks as they are stored."""
    return store._tasks


def stored_events(store: MemoryStore) -> list[Event]:
    """All events as they are stored."""
    return store._events


def handles(loop: asyncio.AbstractEventLoop) -> set[asyncio.Task[object]]:
    """All asyncio tasks of a loop that have not ended."""
    return asyncio.all_tasks(loop)
