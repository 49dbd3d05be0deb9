"""A worker group: workers of one profile, with its min, max and idle timeout, and which tasks they take."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from malbox_tui.config.settings import GroupSettings
from malbox_tui.engine.cancellation import CancelToken
from malbox_tui.engine.machine_fit import Terms
from malbox_tui.engine.worker import Worker
from malbox_tui.model.overview import GroupView
from malbox_tui.model.task import RequirementClass
from malbox_tui.model.worker import WorkerKind


def terms_of(groups: Iterable[WorkerGroup]) -> tuple[Terms, ...]:
    """What the groups ask of machines."""
    return tuple(terms for group in groups for terms in group.terms)


class WorkerGroup:
    """The workers of one group, the oldest first, and their limits. It decides nothing: see `worker_pool`."""

    def __init__(self, settings: GroupSettings) -> None:
        self.settings = settings
        self.terms = (Terms(settings.platforms, settings.limits),)
        """What it asks of the machines of its tasks."""
        self.min = settings.min_workers
        self.max = settings.max_workers
        self.saved = (self.min, self.max)
        """The limits that the next start would use."""
        self.workers: dict[str, Worker] = {}
        self._roomy: dict[str, Worker] = {}
        """Those that can be handed a task, in no order."""
        self._numbers = itertools.count(1)
        self.is_settled = False
        """Its workers are in line with its limits; false when something happened that may have changed that."""

    def __repr__(self) -> str:
        return f"<WorkerGroup {self.name} {self.busy} busy / {self.active} active / {self.min}–{self.max}>"

    @property
    def name(self) -> str:
        """Unique among the groups."""
        return self.settings.name

    @property
    def active(self) -> int:
        """Workers that have not left."""
        return len(self.workers)

    @property
    def busy(self) -> int:
        """Workers that hold a task."""
        return sum(worker.is_busy for worker in self.workers.values())

    @property
    def can_grow(self) -> bool:
        """There may be one worker more."""
        return self.active < self.max

    def staying(self) -> list[Worker]:
        """Workers that were not asked to leave."""
        return [worker for worker in self.workers.values() if worker.leaving is None]

    def start(self, kind: WorkerKind, token: CancelToken, at: float) -> Worker:
        """A worker more; `at` is the wall time."""
        worker = Worker(
            number=next(self._numbers),
            group=self.name,
            kind=kind,
            slots=self.settings.slots,
            idle_timeout_s=self.settings.idle_timeout_s,
            token=token,
            at=at,
            on_room=self._note_room,
        )
        self.workers[worker.id] = worker
        self._note_room(worker)
        return worker

    def forget(self, worker: Worker) -> None:
        """A worker has left."""
        del self.workers[worker.id]
        self._roomy.pop(worker.id, None)

    def with_room(self) -> list[Worker]:
        """Who can be handed a task, in this order: baseline workers before demand ones, so that these idle out when there is little
        to do, and the oldest of them first."""
        return sorted(self._roomy.values(), key=lambda worker: (worker.kind is WorkerKind.DEMAND, worker.number))

    def may_take_one_more(self) -> bool:
        """A worker has room, or there may be one worker more."""
        return bool(self._roomy) or self.can_grow

    def _note_room(self, worker: Worker) -> None:
        if worker.has_room and worker.id in self.workers:
            self._roomy[worker.id] = worker
        else:
            self._roomy.pop(worker.id, None)

    def batches(self, requires: RequirementClass) -> bool:
        """Whether its workers run such tasks together. Those that need a machine are run each by itself: each has another one."""
        return self.settings.batch_size > 1 and not requires.needs_machine

    def takes(self, requires: RequirementClass) -> bool:
        """Whether its profile allows such a task. A host-only task has no platform and asks for none."""
        types, platforms = self.settings.task_types, self.settings.platforms
        if types is not None and requires.task_type not in types:
            return False
        return platforms is None or requires.platform is None or requires.platform in platforms

    def takes_in_words(self) -> str:
        """Which tasks it takes, for a person: "any task", "dynamic tasks on windows"."""
        types, platforms = self.settings.task_types, self.settings.platforms
        what = "any task" if types is None else f"{' and '.join(sorted(types)) or 'no'} tasks"
        return what if platforms is None else f"{what} on {' and '.join(sorted(platforms)) or 'no platform'}"

    def kept_out(self, plugins: Iterable[str]) -> dict[str, str]:
        """Those of `plugins` that its lists keep out of its tasks, each with the reason."""
        allowed, denied = self.settings.plugins_allowed, self.settings.plugins_denied
        reasons = {}
        for name in plugins:
            if name in denied:
                reasons[name] = f"The worker group {self.name} denies it."
            elif allowed and name not in allowed:
                reasons[name] = f"The worker group {self.name} allows {', '.join(sorted(allowed))} only."
        return reasons

    def view(self) -> GroupView:
        """The group's numbers as they are now."""
        return GroupView(
            name=self.name,
            min_workers=self.min,
            max_workers=self.max,
            active=self.active,
            busy=self.busy,
            idle_timeout_s=self.settings.idle_timeout_s,
            slots=self.settings.slots,
            batch_size=self.settings.batch_size,
            takes=self.takes_in_words(),
            priority=self.settings.priority,
            saved=self.saved == (self.min, self.max),
        )
