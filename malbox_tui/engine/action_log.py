"""Keeps who did what: each command with its outcome, and each submission with what came of it.

A store that takes no record keeps nobody from doing anything: that is said in the log file.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager

from malbox_tui.engine import clock
from malbox_tui.model.actions import LoggedAction, Retained, Submitted
from malbox_tui.model.commands import Command, CommandOutcome
from malbox_tui.model.errors import StoreError
from malbox_tui.model.events import ActionTaken
from malbox_tui.model.queries import MAX_ROWS
from malbox_tui.model.submission import Accepted, Duplicate, Receipt, Refused, SubmissionOptions
from malbox_tui.ports import Clock, Store

log = logging.getLogger(__name__)

QUIET_S = 1.0
"""Files that one sender hands in one by one are one submission, until none has come for so long."""
RETENTION = "retention"
"""Who removes what was kept for long enough."""
LONGEST_S = 60.0
"""So much later than its first file, a submission that goes on is kept all the same, and another begins."""


class ActionLog:
    """The log of one engine. `owner` is who acts where nobody is named."""

    def __init__(self, store: Store, wall: Clock, owner: str) -> None:
        self._store = store
        self._wall = wall
        self._owner = owner
        self._gathering: dict[tuple[str, str], SubmissionLog] = {}
        """By who submits from where."""

    def command(self, command: Command, outcome: CommandOutcome) -> Awaitable[None]:
        """Hand the record of a command over, in this step, and return the store's answer, which `until_kept` waits for."""
        done_to = tuple(target.task_id for target in outcome.targets if target.done)
        return self._hand_over(command.actor, command.origin, command.action, outcome.done, outcome.message, done_to)

    async def until_kept(self, answer: Awaitable[None], command: Command) -> None:
        """Returns when the store has kept the record, or could not."""
        try:
            await answer
        except StoreError as error:
            what = type(command.action).__name__
            log.warning("%s by %s was carried out or refused, and is not in the log of actions: %s", what, command.actor, error)

    @contextmanager
    def submission(self, options: SubmissionOptions) -> Iterator[SubmissionLog]:
        """While entered, a submission counts its receipts; it is kept at the end, whatever ended it.

        One that names its actor came from elsewhere, file by file: it is kept together with those before and after it.
        """
        is_whole = not options.actor
        key = (options.actor, options.origin)
        fresh = SubmissionLog(*key)
        submission = fresh if is_whole else self._gathering.setdefault(key, fresh)
        submission.begin()
        try:
            yield submission
        finally:
            submission.under_way -= 1
            if is_whole or submission.is_long:
                self._keep(submission)
            elif not submission.under_way:
                submission.alarm = clock.alarm(QUIET_S, lambda: self._keep(submission))

    async def entry(self, action: LoggedAction, actor: str, origin: str, *, done: bool, message: str) -> None:
        """Keep something that was done and is no command; returns when the store has kept it, or could not."""
        try:
            await self._hand_over(actor, origin, action, done, message, ())
        except StoreError as error:
            log.warning("%s by %s is not in the log of actions: %s", type(action).__name__, actor or self._owner, error)

    def retained(self, samples: int, results: int, size_bytes: int) -> None:
        """Keep what was removed because it was kept for long enough, or was too much."""
        action = Retained(samples=samples, results=results, size_bytes=size_bytes)
        words = f"{samples} samples, and the results of {results} tasks, were removed: {size_bytes} bytes."
        self._hand_over(RETENTION, "", action, True, words, ())

    def close(self) -> None:
        """Hand over what is still gathered."""
        for submission in list(self._gathering.values()):
            self._keep(submission)

    def _keep(self, submission: SubmissionLog) -> None:
        if not submission.under_way and self._gathering.get(submission.key) is submission:
            del self._gathering[submission.key]
        counts, task_ids = submission.taken_out()
        taken = counts.accepted + counts.duplicates
        if taken or counts.refused:
            words = f"{counts.accepted} accepted, {counts.duplicates} duplicate, {counts.refused} refused."
            self._hand_over(*submission.key, counts, taken > 0, words, task_ids)

    def _hand_over(
        self, actor: str, origin: str, action: LoggedAction, done: bool, message: str, done_to: tuple[int, ...]
    ) -> Awaitable[None]:
        who = actor or self._owner
        body = ActionTaken(actor=who, origin=origin, action=action, done=done, message=message, done_to=done_to)
        return self._store.note(self._wall.now(), body)


class SubmissionLog:
    """Counts the receipts of what one sender hands in; `under_way` of its submissions are not at their end."""

    def __init__(self, actor: str, origin: str) -> None:
        self.key = (actor, origin)
        self.under_way = 0
        self.alarm: asyncio.TimerHandle | None = None
        """Rings when it has been quiet for long enough."""
        self._since = clock.monotonic()
        self._accepted = 0
        self._duplicates = 0
        self._refused = 0
        self._task_ids: list[int] = []

    def begin(self) -> None:
        """One more is under way."""
        self.under_way += 1
        self._let_be()

    def count(self, receipt: Receipt) -> None:
        """One more thing that was handed in."""
        if isinstance(receipt, Accepted):
            self._accepted += 1
            if len(self._task_ids) < MAX_ROWS:
                self._task_ids.append(receipt.task_id)
        elif isinstance(receipt, Duplicate):
            self._duplicates += 1
        elif isinstance(receipt, Refused) and not receipt.is_left_out:
            self._refused += 1

    @property
    def is_long(self) -> bool:
        """Whether it has gone on for so long that what there is of it is to be kept."""
        return clock.monotonic() - self._since >= LONGEST_S

    def taken_out(self) -> tuple[Submitted, tuple[int, ...]]:
        """What was counted, and the tasks that were made, at most `MAX_ROWS`; it counts from nothing again."""
        self._let_be()
        counts = Submitted(accepted=self._accepted, duplicates=self._duplicates, refused=self._refused)
        task_ids, self._task_ids = tuple(self._task_ids), []
        self._accepted = self._duplicates = self._refused = 0
        self._since = clock.monotonic()
        return counts, task_ids

    def _let_be(self) -> None:
        if self.alarm is not None:
            self.alarm.cancel()
            self.alarm = None
