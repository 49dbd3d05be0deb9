"""What somebody did, in words."""

from __future__ import annotations

from typing import get_args

import pytest

from malbox_tui.model.actions import LoggedAction, Retained, SampleTaken, Submitted
from malbox_tui.model.commands import (
    AddWatch,
    CancelTasks,
    ChangeTasks,
    DisableMachines,
    EnableMachines,
    IdentifySamples,
    MarkSample,
    PausePool,
    ProbeMachines,
    PurgeSample,
    ReloadPlugins,
    RemoveMachines,
    RemoveWatch,
    ResizeGroup,
    ResumePool,
    RetryTasks,
    SaveLimits,
    SetMachine,
    SetPriority,
    SetProfile,
    Shutdown,
    ShutdownMode,
)
from malbox_tui.model.events import ActionTaken, Event, Position
from malbox_tui.model.machine import MachineSpec
from malbox_tui.model.upkeep import SampleForm
from malbox_tui.model.watching import WatchSpec
from malbox_tui.tui.action_words import action_words
from malbox_tui.tui.event_words import log_line

SAID: dict[LoggedAction, str] = {
    CancelTasks(task_ids=(3, 4, 5)): "canceled 2 tasks",
    SetPriority(task_ids=(3, 4), priority=7): "gave 2 tasks priority 7",
    SetProfile(task_ids=(3, 4), profile="office"): "gave 2 tasks the profile office",
    ChangeTasks(task_ids=(3, 4), platform="linux"): "changed 2 tasks",
    IdentifySamples(task_ids=(3, 4)): "identified 2 tasks",
    RetryTasks(task_ids=(3, 4)): "retried 2 tasks",
    ResizeGroup(group="linux", max_workers=2): "resized linux to max 2",
    SaveLimits(): "saved the limits of the worker groups",
    DisableMachines(machines=("win10-1",)): "disabled machine win10-1",
    EnableMachines(machines=("a", "b")): "enabled 2 machines",
    SetMachine(machine=MachineSpec(name="lin-1", provider="libvirt", platform="linux")): "set machine lin-1",
    AddWatch(watch=WatchSpec(path="/srv/in\x1b")): "added the watched folder /srv/in\\x1b",
    RemoveWatch(path="/srv/in"): "removed the watched folder /srv/in",
    RemoveMachines(machines=("a", "b")): "removed 2 machines",
    ProbeMachines(machines=("lin-1",)): "probed machine lin-1",
    MarkSample(sha256="a" * 64, note="x", tags=("apt",), untags=("b",)): "marked sample aaaaaaaaaaaa +apt -b with a note",
    PurgeSample(sha256="a" * 64): "purged sample aaaaaaaaaaaa and 2 tasks",
    SampleTaken(sha256="a" * 64, form=SampleForm.RAW): "took sample aaaaaaaaaaaa as raw",
    Retained(samples=1, results=2, size_bytes=3 << 20): "removed 1 sample and 2 tasks' results (3.0 MiB)",
    PausePool(): "paused the pool",
    ResumePool(): "resumed the pool",
    ReloadPlugins(): "read the plugins again",
    Shutdown(mode=ShutdownMode.GIVE_BACK): "stopped the engine (give back)",
    Submitted(accepted=1, duplicates=1, refused=1): "submitted 3 samples (1 known, 1 refused)",
}


@pytest.mark.parametrize("action", SAID, ids=lambda action: type(action).__name__)
def test_every_action_has_words(action: LoggedAction) -> None:
    assert action_words(action, (3, 4), done=True) == SAID[action]


def test_a_profile_that_is_left_to_the_kind_has_words() -> None:
    assert action_words(SetProfile(task_ids=(3,), profile=""), (3,), done=True) == "gave #3 the profile of its kind"


def test_no_action_is_without_words() -> None:
    assert {type(action) for action in SAID} == set(get_args(LoggedAction))


def test_what_was_refused_is_told_with_the_reason() -> None:
    body = ActionTaken(actor="a\x1bna", action=CancelTasks(task_ids=(7,)), done=False, message="Task 7 is completed.")
    line = log_line(Event(Position("e", 1, 1), 0.0, body))
    assert line is not None
    assert (line.subject, line.detail) == ("a\\x1bna could not cancel #7", "Task 7 is completed.")


def test_one_task_is_called_by_its_number() -> None:
    assert action_words(CancelTasks(task_ids=(7, 9)), (9,), done=True) == "canceled #9"


def test_an_empty_name_is_seen() -> None:
    assert action_words(ResizeGroup(group="", min_workers=1), (), done=False) == "could not resize '' to min 1"
    assert action_words(ProbeMachines(machines=("",)), (), done=False) == "could not probe machine ''"
