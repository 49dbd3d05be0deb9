"""What is served, and what all answers are made from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from malbox_tui.model.errors import UnknownTask
from malbox_tui.model.overview import Overview
from malbox_tui.model.queries import TaskFilter, TaskQuery, TaskRecord
from malbox_tui.ports import Client
from malbox_tui.remote.bounds import Bounds
from malbox_tui.remote.presence import Presence
from malbox_tui.remote.relay import Relay


@dataclass(frozen=True, slots=True)
class Served:
    """What is served: an engine's door, by which version of the program, and how large a sample may be in bytes."""

    client: Client
    version: str
    max_sample_bytes: Callable[[], int]


@dataclass(frozen=True, slots=True)
class Counter:
    """Where requests are answered: what is served, who follows it, and what is asked of those who ask."""

    served: Served
    relay: Relay
    presence: Presence
    bounds: Bounds

    @property
    def client(self) -> Client:
        """The engine's door."""
        return self.served.client

    async def overview(self) -> Overview:
        """The engine at this moment, with those who follow it. Raises `EngineStopped`."""
        return self.presence.in_overview(await self.client.overview())

    async def record(self, task_id: int) -> TaskRecord:
        """One task. Raises `UnknownTask`."""
        page = await self.client.query(TaskQuery(where=TaskFilter(task_ids=(task_id,)), limit=1))
        if not page.rows:
            raise UnknownTask(task_id)
        return page.rows[0]
