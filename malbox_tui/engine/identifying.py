"""Finds out what the samples of waiting tasks are, before their run, by the plugin whose work that is: no byte is parsed here."""

from __future__ import annotations

import msgspec

from malbox_tui.engine.place import SAMPLE_NAME
from malbox_tui.engine.profiles import Profiles
from malbox_tui.model.commands import IdentifySamples
from malbox_tui.model.errors import MalboxError, RefusedCommand
from malbox_tui.model.events import TaskIdentified
from malbox_tui.model.queries import TaskPage, TaskRecord
from malbox_tui.model.report import Identification
from malbox_tui.model.task import TaskState
from malbox_tui.ports import Clock, PluginRunner, Quarantine, Store

MOST_AT_ONCE = 20


class Identifying:
    """Asks the plugins, one sample after the other."""

    def __init__(self, store: Store, quarantine: Quarantine, runner: PluginRunner, wall: Clock, profiles: Profiles) -> None:
        self._store = store
        self._quarantine = quarantine
        self._runner = runner
        self._wall = wall
        self._profiles = profiles

    def check(self, action: IdentifySamples) -> None:
        """Raises `RefusedCommand` when that would take too long."""
        if len(action.task_ids) > MOST_AT_ONCE:
            raise RefusedCommand(f"{len(action.task_ids)} samples: {MOST_AT_ONCE} are the most that are identified at once.")

    async def carry_out(self, record: TaskRecord) -> str:
        """Find out what a sample is and keep it; what it is, in a sentence. Raises `RefusedCommand`, `StoreError`."""
        task_id = record.task.id
        if record.task.state is not TaskState.PENDING:
            raise RefusedCommand(f"Task {task_id} is {record.task.state}; its run says what its sample is.")
        found = record.sample.identification
        if found is None:
            found = await self._ask(record.task.sha256, task_id)
            await self._store.identify(record.task.sha256, found)
            await self._store.note(self._wall.now(), TaskIdentified(task_id=task_id, kind=found.kind, tags=found.tags))
        about = ", ".join(word for word in (found.kind, found.platform or "", *found.tags) if word)
        return f"Task {task_id}: {about}. {self._profiles.suggestion(found).reason}"

    def suggest(self, page: TaskPage) -> TaskPage:
        """The page, with the profile that each of its waiting tasks would best have, as far as is known what they are."""
        rows = (self._suggested(row) for row in page.rows)
        return TaskPage(rows=tuple(rows), total=page.total, offset=page.offset, clock=page.clock)

    def _suggested(self, row: TaskRecord) -> TaskRecord:
        found = row.sample.identification
        if row.task.state is not TaskState.PENDING or found is None or not self._profiles.there_are:
            return row
        suggestion = self._profiles.suggestion(found)
        return msgspec.structs.replace(row, suggestion=suggestion)

    async def _ask(self, sha256: str, task_id: int) -> Identification:
        try:
            bench = await self._runner.acquire()
            try:
                await self._quarantine.extract(sha256, bench.inbox / SAMPLE_NAME)
                found = await bench.identify(SAMPLE_NAME)
            finally:
                await self._runner.release(bench)
        except MalboxError as error:
            raise RefusedCommand(f"What the sample of task {task_id} is can't be found out: {error}") from error
        if found is None:
            raise RefusedCommand(f"What the sample of task {task_id} is, no plugin can say.")
        return found
