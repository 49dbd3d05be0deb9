"""The machine's table, pinned by hand, what it makes impossible, and which tasks a machine may serve."""

from __future__ import annotations

import pytest

from malbox_tui.model.errors import IllegalMachineMove
from malbox_tui.model.machine import (
    BUSY_STATES,
    MACHINE_MOVES,
    MachineSpec,
    MachineState,
    MachineTrigger,
    next_machine_state,
)
from malbox_tui.model.task import RequirementClass

S, T = MachineState, MachineTrigger

PINNED = {
    (S.READY, T.RESERVE, S.LEASED),
    (S.LEASED, T.UNRESERVE, S.READY),
    (S.LEASED, T.START, S.STARTING),
    (S.STARTING, T.STARTED, S.LEASED),
    (S.LEASED, T.RELEASE, S.REVERTING),
    (S.STARTING, T.RELEASE, S.REVERTING),
    (S.REVERTING, T.CLEAN, S.READY),
    (S.REVERTING, T.QUARANTINE, S.QUARANTINED),
    (S.REVERTING, T.LOSE, S.MISSING),
    (S.REVERTING, T.DISABLE, S.DISABLED),
    (S.READY, T.DISABLE, S.DISABLED),
    (S.QUARANTINED, T.DISABLE, S.DISABLED),
    (S.MISSING, T.DISABLE, S.DISABLED),
    (S.READY, T.REVERT, S.REVERTING),
    (S.QUARANTINED, T.REVERT, S.REVERTING),
    (S.MISSING, T.REVERT, S.REVERTING),
    (S.DISABLED, T.REVERT, S.REVERTING),
}


def test_the_table_has_these_moves_and_no_other() -> None:
    assert {(state, trigger, to) for (state, trigger), to in MACHINE_MOVES.items()} == PINNED


@pytest.mark.parametrize("state", list(S))
@pytest.mark.parametrize("trigger", list(T))
def test_every_state_and_trigger_either_moves_as_pinned_or_is_refused(state: S, trigger: T) -> None:
    expected = {to for from_, by, to in PINNED if (from_, by) == (state, trigger)}
    if expected:
        assert {next_machine_state(state, trigger)} == expected
    else:
        with pytest.raises(IllegalMachineMove, match=f"{state} can't take the step '{trigger}'") as refused:
            next_machine_state(state, trigger)
        assert (refused.value.state, refused.value.trigger) == (state, trigger)


def test_no_way_leads_back_to_ready_but_through_a_revert_once_a_task_has_touched_the_machine() -> None:
    reached, left = set(), [S.STARTING]
    while left:
        state = left.pop()
        for from_, trigger, to in PINNED:
            if from_ is state and (to, trigger) not in reached and to is not S.REVERTING:
                reached.add((to, trigger))
                left.append(to)
    assert reached == {(S.LEASED, T.STARTED), (S.READY, T.UNRESERVE), (S.LEASED, T.RESERVE), (S.STARTING, T.START)} | {
        (S.DISABLED, T.DISABLE)
    }, "unreserve is for a lease that was not started: see MachinePool.release"
    assert {from_ for from_, _, to in PINNED if to is S.READY} == {S.REVERTING, S.LEASED}


def test_a_machine_at_work_is_neither_disabled_nor_reverted_under_its_task() -> None:
    assert set(BUSY_STATES) == {S.LEASED, S.STARTING}
    moves = {(from_, trigger) for from_, trigger, _ in PINNED}
    assert not {(state, trigger) for state in BUSY_STATES for trigger in (T.DISABLE, T.REVERT, T.QUARANTINE, T.LOSE)} & moves


def test_every_state_can_be_left_and_be_reached() -> None:
    assert {from_ for from_, _, _ in PINNED} == {to for _, _, to in PINNED} == set(S)
    assert {trigger for _, trigger, _ in PINNED} == set(T)


WINDOWS = MachineSpec(name="win1", provider="p", platform="windows", arch="x64", tags=("office", "net"))
OLD = MachineSpec(name="old", provider="p", platform="windows", arch="x86")


@pytest.mark.parametrize(
    ("machine", "requires", "unmet"),
    [
        (WINDOWS, {}, ()),
        (WINDOWS, {"platform": "windows", "arch": "x64", "tags": ("net",), "pin": "win1"}, ()),
        (WINDOWS, {"arch": "x86"}, ()),
        (OLD, {"arch": "x64"}, ("arch x64",)),
        (OLD, {"arch": "arm64"}, ("arch arm64",)),
        (WINDOWS, {"platform": "linux"}, ("platform linux",)),
        (WINDOWS, {"tags": ("office", "gpu", "tpm")}, ("tag gpu", "tag tpm")),
        (WINDOWS, {"pin": "old"}, ("machine old",)),
        (WINDOWS, {"avoid": ("win1",)}, ()),
    ],
)
def test_what_a_machine_can_never_give_is_named(
    machine: MachineSpec, requires: dict[str, object], unmet: tuple[str, ...]
) -> None:
    assert machine.unmet(RequirementClass(task_type="dynamic", **requires)) == unmet  # type: ignore[arg-type]
