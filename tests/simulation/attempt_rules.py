"""What has to hold of the time of attempts, judged by a clock of our own: how long each has been at its stage, and how long its clock
stood. A mistake in the engine's own countdowns is not repeated here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from malbox_tui.config.settings import AnalysisSettings
from malbox_tui.engine.attempt import Attempt
from malbox_tui.engine.batch import STUCK_S
from malbox_tui.engine.guest_order import GuestTimes
from malbox_tui.engine.running import END_MARGIN_S
from malbox_tui.model.task import EndedBy, Outcome, TaskState

EPSILON_S = 1e-6
MARGIN_S = 5.0
"""What an attempt may take beyond all its limits: nothing in it takes that long that is not bounded."""


@dataclass(slots=True)
class Seen:
    """One attempt: when it and its stage began, and how long its clock stood since. Times are the loop's."""

    attempt: Attempt
    state: TaskState
    began: float
    stage_began: float
    stood_s: float = 0.0
    stood_in_stage_s: float = 0.0
    stands: bool = False


class AttemptWatch:
    """Follows all attempts from step to step."""

    def __init__(self, settings: AnalysisSettings) -> None:
        self._settings = settings
        self._seen: dict[int, Seen] = {}
        self._looked_at = 0.0

    def look(self, attempts: Mapping[int, Attempt], moment: float) -> str | None:
        """Take a look after a step; says which attempt was timed out before its time, if one was."""
        passed_s, self._looked_at = moment - self._looked_at, moment
        for seen in self._seen.values():
            if seen.stands:
                seen.stood_s += passed_s
                seen.stood_in_stage_s += passed_s
        wrong = None
        self._seen = {task_id: seen for task_id, seen in self._seen.items() if attempts.get(task_id) is seen.attempt}
        for task_id, attempt in attempts.items():
            state = attempt.owned.task.state
            seen = self._seen.get(task_id)
            if seen is None:
                seen = self._seen[task_id] = Seen(attempt, state, moment, moment)
            elif state is not seen.state:
                if attempt.outcome is not None and seen.state is not TaskState.STOPPING:
                    wrong = wrong or self._too_early(task_id, seen, attempt.outcome, moment)
                seen.state, seen.stage_began, seen.stood_in_stage_s = state, moment, 0.0
            seen.stands = attempt.time.stands
        return wrong

    def _too_early(self, task_id: int, seen: Seen, outcome: Outcome, moment: float) -> str | None:
        """Whether it was timed out although the limit that is named was not reached."""
        if outcome.state is not TaskState.TIMED_OUT:
            return None
        in_stage_s, in_all_s = moment - seen.stage_began - seen.stood_in_stage_s, moment - seen.began - seen.stood_s
        stages = {
            TaskState.INITIALIZING: self._settings.initializing_timeout_s,
            TaskState.PREPARING_RESOURCES: self._settings.preparing_timeout_s,
        }
        match outcome.ended_by:
            case EndedBy.ANALYSIS_TIMEOUT if seen.state is TaskState.RUNNING:
                took_s, limit_s = in_stage_s, seen.attempt.owned.task.timeout_s
            case EndedBy.CRITICAL_TIMEOUT:
                took_s, limit_s = in_all_s, self._settings.critical_timeout_s
            case EndedBy.STAGE_TIMEOUT if seen.state in stages:
                took_s, limit_s = in_stage_s, stages[seen.state]
            case _:
                return f"task {task_id} was {seen.state} and ended as {outcome}"
        if took_s < limit_s - EPSILON_S:
            return f"task {task_id} was {seen.state} for {took_s:g} of {limit_s:g} s and ended as {outcome}"
        return None

    def too_late(self, moment: float) -> str | None:
        """Which attempt goes on although it has had all the time that it may take and more, if one does. What waits for a clean-up
        or for the store is another thing."""
        settings = self._settings
        cut_s = max(settings.cancel_grace_s, settings.flush_grace_s) + END_MARGIN_S
        plain_s = settings.critical_timeout_s + cut_s + settings.stopping_timeout_s + MARGIN_S
        collecting_s = GuestTimes(settings.collecting_timeout_s, 0.0, 0.0).longest_s + settings.collecting_timeout_s + cut_s
        for task_id, seen in self._seen.items():
            if seen.state is TaskState.STOPPING:
                continue
            most_s = plain_s if seen.attempt.lease is None else plain_s + collecting_s
            if (took_s := moment - seen.began - seen.stood_s) > most_s:
                return f"task {task_id} has been at it for {took_s:g} s, of which {most_s:g} s are the most"
            members = 1 if seen.attempt.batch is None else len(seen.attempt.batch.task_ids)
            if members > 1 and moment - seen.began > members * most_s + STUCK_S:
                return f"task {task_id} has been in its batch of {members} for {moment - seen.began:g} s"
        return None

    def stands_alone(self) -> str | None:
        """Which attempt's clock stands although it shares nothing with others, if one's does."""
        for task_id, seen in self._seen.items():
            if seen.stands and seen.attempt.batch is None:
                return f"the clock of task {task_id} stands"
        return None
