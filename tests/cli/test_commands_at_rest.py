"""The commands when no engine runs: what can be done to the store is done, and what makes no sense then is refused."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from malbox_tui.cli import submit, task_orders
from malbox_tui.cli.engine_door import Door
from malbox_tui.cli.output import OutputClosed, write_line
from malbox_tui.model.commands import TargetResult
from tests.cli.command_line import CommandLine
from tests.cli.terminal_rig import Terminal
from tests.cli.terminal_rig import malbox as terminal_command


@pytest.fixture
def malbox(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(tmp_path, capsys)


def test_samples_wait_in_the_store_for_the_next_start(malbox: CommandLine) -> None:
    said = malbox("submit", malbox.sample("a"), malbox.sample("b"), malbox.sample("empty", ""), "--priority", 7)
    assert (said.code, said.out.splitlines()[:2]) == (0, ["task 1  a", "task 2  b"])
    assert "refused  empty: It is empty" in said.out
    assert "2 tasks added, 1 refused. No engine is served here: `malbox-tui serve --data-dir" in said.err
    tasks = malbox("tasks", "--json").records
    assert [(task["state"], task["priority"]) for task in tasks] == [("pending", 7), ("pending", 7)]


def test_that_nobody_takes_the_receipts_keeps_no_sample_out_and_is_told(
    malbox: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(_: object) -> None:
        raise OutputClosed("no room")

    monkeypatch.setattr(submit, "write_record", closed)
    said = malbox("submit", "--json", malbox.sample("a"), malbox.sample("b"))
    assert said.code == 1
    assert "can't be written to stdout: no room" in said.err
    assert malbox.states() == {1: "pending", 2: "pending"}


def test_a_sample_that_is_known_is_taken_once(malbox: CommandLine) -> None:
    malbox.submit("a")
    said = malbox("submit", "--json", malbox.sample("a"))
    assert (said.code, said.records[0]["record"], said.records[0]["of"]) == (0, "duplicate", 1)
    said = malbox("submit", "--json", malbox.sample("other"))
    assert (said.records[0]["record"], said.records[0]["task_id"], said.records[0]["name"]) == ("accepted", 2, "other")


def test_nothing_that_is_accepted_is_wrong_usage(malbox: CommandLine) -> None:
    assert malbox("submit", malbox.sample("empty", "")).code == 2
    assert malbox("submit", malbox.data / "nowhere").code == 2
    assert malbox("submit").code == 2
    assert malbox("submit", malbox.sample("a"), "--platform", "windows").code == 2, "no machine could serve it"
    assert malbox("submit", malbox.sample("a"), "--platform", "windows", "--hold").code == 0


def test_tasks_are_canceled_retried_and_re_ordered(malbox: CommandLine) -> None:
    malbox.submit("a", "b", "c")
    said = malbox("cancel", 1, 2)
    assert (said.code, said.out) == (0, "Task 1 is canceled.\nTask 2 is canceled.\n")
    said = malbox("retry", 1, "--json")
    assert said.records == [
        {
            "record": "outcome",
            "command": "retry",
            "task_id": 1,
            "done": True,
            "message": "Task 4 retries task 1.",
            "new_task_id": 4,
        }
    ]
    assert malbox("priority", 9, 3, 4).code == 0
    tasks = {task["id"]: (task["state"], task["priority"]) for task in malbox("tasks", "--json").records}
    assert tasks == {1: ("canceled", 1), 2: ("canceled", 1), 3: ("pending", 9), 4: ("pending", 9)}


def test_outcomes_are_printed_as_they_are_known(malbox: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    malbox.submit("a", "b", "c")
    monkeypatch.setattr(task_orders, "MAX_ROWS", 2)
    known: list[tuple[int, int]] = []
    done = 0
    do = task_orders.TaskOrder._do

    async def doing(order: task_orders.TaskOrder, door: Door, ids: tuple[int, ...]) -> Sequence[TargetResult]:
        nonlocal done
        done += len(ids)
        return await do(order, door, ids)

    def writing(line: str) -> None:
        known.append((len(known) + 1, done))
        write_line(line)

    monkeypatch.setattr(task_orders.TaskOrder, "_do", doing)
    monkeypatch.setattr(task_orders, "write_line", writing)
    said = malbox("cancel", 1, 2, 3)
    assert (said.code, said.out) == (0, "Task 1 is canceled.\nTask 2 is canceled.\nTask 3 is canceled.\n")
    assert known == [(1, 2), (2, 2), (3, 3)]


def test_that_nobody_takes_the_outcomes_stops_nothing_that_was_asked_for(
    malbox: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(_: object) -> None:
        raise OutputClosed("no room")

    malbox.submit("a", "b", "c")
    monkeypatch.setattr(task_orders, "MAX_ROWS", 1)
    monkeypatch.setattr(task_orders, "write_record", closed)
    said = malbox("cancel", "--all", "--yes", "--json")
    assert said.code == 1
    assert "can't be written to stdout: no room" in said.err
    assert set(malbox.states().values()) == {"canceled"}


def test_what_could_not_be_done_is_said_and_exits_one(malbox: CommandLine) -> None:
    malbox.submit("a", "b")
    assert malbox("cancel", 1).code == 0
    said = malbox("cancel", 1, 2, 77)
    assert (said.code, said.out.splitlines()[0]) == (1, "Task 1 is already canceled.")
    assert malbox.states() == {1: "canceled", 2: "canceled"}


def test_a_pause_holds_over_engines_that_come_and_go_until_somebody_resumes(malbox: CommandLine) -> None:
    malbox.submit("a")
    assert malbox("pause").code == 0
    assert malbox("stats").out.splitlines()[2].startswith("No task is taken: paused by ")
    assert malbox("stats", "--json").records[0]["paused"].startswith("paused by ")
    assert malbox("priority", 5, 1).code == 0
    refused = malbox("analyze", malbox.sample("b"))
    assert (refused.code, refused.out) == (2, "")
    assert "No task would be taken: paused by " in refused.err
    assert f"`malbox-tui resume --data-dir {malbox.data}` ends that." in refused.err
    assert malbox.states() == {1: "pending"}
    assert malbox("resume", "--json").records[0]["done"]
    assert malbox("analyze").code == 0
    kinds = [record["event"] for record in malbox("events", "--json", "--limit", 1000).records]
    assert [kind for kind in kinds if kind.startswith("Pool")] == ["PoolPaused", "PoolResumed"]


def test_where_no_store_is_a_pause_makes_none(malbox: CommandLine) -> None:
    assert malbox("pause").code == malbox("resume").code == 2
    assert not malbox.data.exists()


def test_a_negative_priority_goes_behind_two_dashes(malbox: CommandLine) -> None:
    malbox.submit("a")
    assert malbox("priority", "--", -5, 1).code == 0
    assert malbox("task", 1, "--json").records[0]["priority"] == -5


def test_more_tasks_than_were_named_are_asked_about(malbox: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    malbox.submit("a", "b", "c")
    said = malbox("cancel", "--all")
    assert (said.code, "This hits 3 tasks" in said.err) == (2, True)

    class Answering:
        def __init__(self, answer: str) -> None:
            self._answer = answer

        def isatty(self) -> bool:
            return True

        def readline(self) -> str:
            return self._answer

    monkeypatch.setattr(sys, "stdin", Answering("n\n"))
    said = malbox("cancel", "2-3")
    assert (said.code, "Cancel 2 tasks: 2-3? [y/N]" in said.err) == (2, True)
    assert set(malbox.states().values()) == {"pending"}
    monkeypatch.setattr(sys, "stdin", Answering("y\n"))
    assert malbox("cancel", "2-3").code == 0
    assert malbox("cancel", "--state", "pending", "--yes").code == 0
    assert set(malbox.states().values()) == {"canceled"}


@pytest.mark.slow
def test_ctrl_c_at_the_question_ends_the_command_at_once_and_does_nothing(malbox: CommandLine) -> None:
    malbox.submit("a", "b")
    with Terminal(terminal_command(malbox.data, "cancel", "--all")) as terminal:
        terminal.until("Cancel 2 tasks: 1-2? [y/N]")
        terminal.press(b"\x03")
        assert terminal.ended() == 1
    assert "Traceback" not in terminal.shown
    assert malbox.states() == {1: "pending", 2: "pending"}
    assert malbox("cancel", 1).code == 0, "nobody has the folder any more"


def test_who_did_what_is_kept_with_where_it_came_from(malbox: CommandLine) -> None:
    malbox.submit("a", "b")
    malbox("cancel", 1, 99)
    latest, first = malbox("actions", "--json").records
    assert (latest["action"]["command"], latest["done"], latest["task_ids"]) == ("CancelTasks", True, [1])
    assert latest["message"] == "1 of 2 tasks canceled."
    assert (latest["origin"], bool(latest["actor"])) == (f"process {os.getpid()}", True)
    assert (first["action"], first["task_ids"]) == (
        {"command": "Submitted", "accepted": 2, "duplicates": 0, "refused": 0},
        [1, 2],
    )
    (line,) = malbox("actions", "--limit", 1).out.splitlines()
    assert line.endswith(f"{latest['actor']} (process {os.getpid()}) canceled #1")
    assert malbox("actions", "--limit", 0).out == ""


def test_what_happened_is_told_in_its_order(malbox: CommandLine) -> None:
    malbox.submit("a", "b")
    malbox("cancel", 1)
    events = malbox("events", "--json").records
    kinds = [event["event"] for event in events]
    assert kinds == ["TaskCreated", "TaskCreated", "ActionTaken", "TaskCanceled", "ActionTaken"], "no engine came and went"
    assert [event["seq"] for event in events] == [1, 2, 3, 4, 5]
    lines = malbox("events", "--limit", 2).out.splitlines()
    assert "#1 canceled: Canceled by " in lines[0]
    assert lines[1].endswith("canceled #1")


def test_the_store_is_counted(malbox: CommandLine) -> None:
    malbox.submit("a", "b")
    malbox("cancel", 1)
    assert malbox("stats").out == "Tasks: 1 pending, 1 canceled.\nNo engine is served here.\n"
    (record,) = malbox("stats", "--json").records
    assert (record["tasks"]["pending"], record["paused"], record["engine"]) == (1, None, None)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["cancel"], "Say which tasks"),
        (["cancel", "zz"], "zz chooses no task"),
        (["cancel", ""], "'' chooses no task"),
        (["submit", ""], "There is no file or folder ''"),
        (["retry", "9-3"], "ends before it begins"),
        (["priority", "x", "1"], '"x" is not a whole number.'),
        (["priority", "1.5", "1"], '"1.5" is not a whole number.'),
        (["priority", "1_0", "1"], '"1_0" is not a whole number.'),
        (["resize", "--min", "\u0663"], "is not a whole number."),
        (["events", "--limit", "9" * 5000], "is too large."),
        (["actions", "--limit", str(2**53)], "is too large."),
        (["priority"], "N"),
        (["resize"], "Say --min, --max, or both."),
        (["resize", "--max", "-1"], "--max"),
        (["machines", "destroy", "m1"], "`malbox-tui machines` has no command 'destroy'. There are: show, add,"),
        (["machines", "prob", "m1"], "Did you mean `malbox-tui machines probe`?"),
        (["machines", "add", "m1", "--platform", "linux"], "uri: missing."),
        (["machines", "add"], "NAME"),
        (["machines", "edit"], "NAME"),
        (["machines", "remove"], "Say which machines"),
        (["machines", "disable"], "Say which machines"),
        (["events", "--limit", "-1"], "--limit"),
        (["drain", "--within", "-1"], "--within"),
    ],
)
def test_wrong_usage_is_said_in_a_sentence(malbox: CommandLine, words: list[str], sentence: str) -> None:
    malbox.submit("a")
    said = malbox(*words)
    assert (said.code, said.out) == (2, "")
    assert sentence in said.err


def test_tasks_are_listed_and_shown_by_the_same_selectors(malbox: CommandLine) -> None:
    malbox.submit("alpha.exe", "beta.exe", "gamma.dll")
    malbox("cancel", 2)
    sha256 = malbox("task", 3, "--json").records[0]["sample"]["sha256"]

    def listed(*words: object) -> list[int]:
        return [task["id"] for task in malbox("tasks", "--json", *words).records]

    assert listed("1-2") == [2, 1]
    assert listed(f"sha256:{sha256[:8]}", 1) == [3, 1]
    assert listed("--name", ".exe") == [2, 1]
    assert listed("1-3", "--state", "pending", "--name", ".exe") == [1]
    assert listed("1-3", "--limit", 1) == [3]
    assert [task["id"] for task in malbox("task", "2-3", "--json").records] == [2, 3]
    said = malbox("task", 2, f"sha256:{sha256[:8]}")
    assert [line for line in said.out.splitlines() if line.startswith("Task ")] == ["Task 2: canceled", "Task 3: pending"]
    assert malbox("task").code == 2


@pytest.mark.parametrize("command", ["tasks", "task"])
def test_an_id_that_no_task_has_is_told_and_those_that_are_there_are_shown(malbox: CommandLine, command: str) -> None:
    malbox.submit("a")
    for absent in (0, 77):
        said = malbox(command, absent, 1, "--json")
        assert (said.code, [record["id"] for record in said.records]) == (2, [1])
        assert f"There is no task {absent}." in said.err
    assert malbox(command, "70-77").err == "malbox-tui: There is no such task.\n"
    assert malbox(command, "1-77", "--json").code == 0


def test_a_list_that_is_empty_is_a_list(malbox: CommandLine) -> None:
    malbox.submit("a")
    for words in (("--state", "failed"), ("--name", "b"), (1, "--state", "failed")):
        assert (malbox("tasks", "--json", *words).code, malbox("tasks", "--json", *words).out) == (0, "")
