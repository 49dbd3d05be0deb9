"""The transition table, pinned by hand, and what each move does to a task."""

from __future__ import annotations

import pytest

from malbox_tui.model.errors import IllegalTransition
from malbox_tui.model.task import (
    TRANSITIONS,
    EndedBy,
    Outcome,
    Task,
    TaskState,
    Trigger,
    claimed,
    ended_while_pending,
    given_back,
    moved,
    next_state,
    settled,
    stopping,
)

S, T = TaskState, Trigger

PINNED = {
    (S.PENDING, T.CLAIM, S.INITIALIZING),
    (S.PENDING, T.CANCEL, S.CANCELED),
    (S.PENDING, T.FAIL, S.FAILED),
    (S.INITIALIZING, T.PREPARE, S.PREPARING_RESOURCES),
    (S.INITIALIZING, T.RUN, S.RUNNING),
    (S.INITIALIZING, T.STOP, S.STOPPING),
    (S.INITIALIZING, T.GIVE_BACK, S.PENDING),
    (S.PREPARING_RESOURCES, T.RUN, S.RUNNING),
    (S.PREPARING_RESOURCES, T.STOP, S.STOPPING),
    (S.PREPARING_RESOURCES, T.GIVE_BACK, S.PENDING),
    (S.RUNNING, T.STOP, S.STOPPING),
    (S.RUNNING, T.GIVE_BACK, S.PENDING),
    (S.STOPPING, T.COMPLETE, S.COMPLETED),
    (S.STOPPING, T.FAIL, S.FAILED),
    (S.STOPPING, T.TIME_OUT, S.TIMED_OUT),
    (S.STOPPING, T.CANCEL, S.CANCELED),
}


def test_the_table_has_these_moves_and_no_other() -> None:
    assert {(state, trigger, to) for (state, trigger), to in TRANSITIONS.items()} == PINNED


@pytest.mark.parametrize("state", list(TaskState))
@pytest.mark.parametrize("trigger", list(Trigger))
def test_every_state_and_trigger_either_moves_as_pinned_or_is_refused(state: TaskState, trigger: Trigger) -> None:
    expected = {to for from_, by, to in PINNED if (from_, by) == (state, trigger)}
    if expected:
        assert {next_state(state, trigger)} == expected
    else:
        with pytest.raises(IllegalTransition, match=f"{state} can't take the step"):
            next_state(state, trigger)


def test_final_states_never_move() -> None:
    final = {state for state in TaskState if state.is_final}
    assert final == {S.COMPLETED, S.FAILED, S.TIMED_OUT, S.CANCELED}
    assert not {from_ for from_, _, _ in PINNED} & final


def _pending() -> Task:
    return Task(id=7, sha256="ab" * 32, created_at=100.0, stage_since=100.0)


def test_a_claim_owns_the_task_counts_the_attempt_and_keeps_the_wait() -> None:
    task = claimed(_pending(), "w", "t", 103.0, 133.0)
    assert (task.worker, task.token, task.lease_until, task.attempts, task.started_at) == ("w", "t", 133.0, 1, 103.0)
    assert task.stages == {"pending": 3.0}


def test_a_task_settles_as_its_outcome_says_and_belongs_to_nobody() -> None:
    running = moved(claimed(_pending(), "w", "t", 103.0, 133.0), T.RUN, 104.0)
    outcome = Outcome(S.TIMED_OUT, EndedBy.ANALYSIS_TIMEOUT, "too long")
    final = settled(stopping(running, outcome, 110.0), 111.5)
    assert (final.state, final.ended_by, final.reason) == (S.TIMED_OUT, EndedBy.ANALYSIS_TIMEOUT, "too long")
    assert (final.token, final.lease_until, final.outcome, final.finished_at) == (None, None, None, 111.5)
    assert final.worker == "w"
    assert final.stages == {"pending": 3.0, "initializing": 1.0, "running": 6.0, "stopping": 1.5}


def test_an_interrupted_attempt_is_not_counted_and_a_crash_is() -> None:
    running = moved(claimed(_pending(), "w", "t", 103.0, 133.0), T.RUN, 104.0)
    back = given_back(running, 110.0, "stopped")
    assert (back.state, back.attempts, back.crashes, back.worker, back.token) == (S.PENDING, 0, 0, None, None)
    assert back.stages == {"pending": 3.0}
    crashed = given_back(claimed(back, "w", "u", 120.0, 150.0), 121.0, "crashed", crashed=True)
    assert (crashed.attempts, crashed.crashes) == (0, 1)
    assert crashed.stages == {"pending": 13.0}, "waits add up"


def test_a_clock_that_went_backwards_counts_as_no_time() -> None:
    assert claimed(_pending(), "w", "t", 50.0, 80.0).stages == {"pending": 0.0}


def test_a_pending_task_can_end_without_an_attempt() -> None:
    task = ended_while_pending(_pending(), T.CANCEL, 105.0, EndedBy.USER, "no longer wanted")
    assert (task.state, task.finished_at, task.attempts) == (S.CANCELED, 105.0, 0)


@pytest.mark.parametrize("move", [lambda task: settled(task, 1.0), lambda task: given_back(task, 1.0, "")])
def test_an_illegal_move_raises_and_changes_nothing(move) -> None:  # type: ignore[no-untyped-def]
    task = _pending()
    with pytest.raises(IllegalTransition):
        move(task)
    assert task == _pending()
