"""Taking back what was added: as long as nothing of it has started, all of it, without a question."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from uuid import uuid4

from textual.app import App

from malbox_tui.model.commands import CancelTasks, Command
from malbox_tui.model.errors import EngineStopped, MalboxError
from malbox_tui.model.queries import MAX_ROWS, TaskFilter, TaskQuery
from malbox_tui.model.task import TaskState
from malbox_tui.ports import Client
from malbox_tui.tui.adding import Adding
from malbox_tui.tui.intake_run import IntakeRun
from malbox_tui.tui.notices import say
from malbox_tui.tui.screens.dialogs import Choice, Question
from malbox_tui.tui.text import counted, plain

STARTED = frozenset(TaskState) - {TaskState.PENDING, TaskState.CANCELED}


class TakingBack:
    """Cancels the tasks of the intake that was begun last; `show` returns when what came of that is drawn."""

    def __init__(self, app: App[Any], client: Client, actor: str, adding: Adding, show: Callable[[], Awaitable[None]]) -> None:
        self._app = app
        self._client = client
        self._actor = actor
        self._adding = adding
        self._show = show

    @property
    def is_possible(self) -> bool:
        """Whether there is something to take back."""
        return self._adding.latest is not None

    async def begin(self) -> None:
        """Stop what is being read of it and cancel what was added. Where some of it has started, ask about the rest."""
        run, self._adding.latest = self._adding.latest, None
        if run is None:
            return
        run.stop()
        await run.ended.wait()
        try:
            started = await self._started(run.task_ids)
        except EngineStopped:
            return
        except MalboxError as error:
            self._adding.latest = run
            say(self._app, str(error), bad=True)
            return
        if started:
            await self._ask(run, started)
        else:
            await self._cancel(run)

    async def _ask(self, run: IntakeRun, started: int) -> None:
        rest = len(run.task_ids) - started
        if not rest:
            say(self._app, "All of it has started, and can't be taken back. c cancels a task.", bad=True)
            return
        lines = [plain(f"{started:,} of {counted(len(run.task_ids), 'task')} {'has' if started == 1 else 'have'} started.")]
        choices = [Choice("Leave them", False), Choice(f"Cancel the {rest:,} that wait", True, harmful=True)]

        def answered(yes: object) -> None:
            if yes:
                self._app.run_worker(self._cancel(run), name="taking back")
            else:
                self._adding.latest = run

        await self._app.push_screen(Question("Take back what has not started?", lines, choices), answered)

    async def _started(self, task_ids: Sequence[int]) -> int:
        found = 0
        for some in _slices(task_ids):
            query = TaskQuery(where=TaskFilter(task_ids=some, states=STARTED), limit=0)
            found += (await self._client.query(query)).total
        return found

    async def _cancel(self, run: IntakeRun) -> None:
        canceled, task_ids = 0, run.task_ids
        try:
            for some in _slices(task_ids):
                action = CancelTasks(task_ids=some, expected=TaskState.PENDING)
                outcome = await self._client.do(Command(action=action, actor=self._actor, key=uuid4().hex))
                canceled += sum(target.done for target in outcome.targets)
        except EngineStopped:
            return
        except MalboxError as error:
            self._adding.latest = run
            say(self._app, str(error), bad=True)
            return
        say(self._app, f"Taken back: {counted(canceled, 'task')} canceled, of {len(task_ids):,} that were added.")
        await self._show()


def _slices(task_ids: Sequence[int]) -> list[tuple[int, ...]]:
    return [tuple(task_ids[start : start + MAX_ROWS]) for start in range(0, len(task_ids), MAX_ROWS)]
