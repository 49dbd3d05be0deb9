"""The options of samples: each has its effect, or is refused with the reason; at rest, running, and in the dialog."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from malbox_tui.cli.wishes import Wishes
from malbox_tui.cli.wishes_line import WishesLine
from malbox_tui.intake.folder_walk import FolderIntake
from malbox_tui.model.archive import ArchiveChoice
from malbox_tui.model.errors import MalboxError
from malbox_tui.model.selection import IntakeChoice, Selection
from malbox_tui.model.submission import SubmissionOptions
from malbox_tui.model.task import RequirementClass
from malbox_tui.ports import Intake
from tests.cli.command_line import CommandLine
from tests.cli.service_rig import Serving

ASKED = ("--plugins", "strings,digests", "--plugins", "strings", "--option", "min_length=8", "--owner", "ana")
WISHES = {"plugins": ["strings", "digests"], "options": {"strings": {"min_length": "8"}}}
MACHINES = '[[machines]]\nname = "m1"\nprovider = "simulated"\nplatform = "linux"\ntags = ["de", "office"]\n'


@pytest.fixture
def malbox(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(tmp_path, capsys)


def test_what_is_asked_at_rest_is_kept_with_the_task_and_shown(malbox: CommandLine) -> None:
    assert malbox("submit", *ASKED, malbox.sample("a")).code == 0
    malbox.submit("b")
    (task,) = malbox("task", 1, "--json").records
    assert (task["owner"], task["wishes"]) == ("ana", WISHES)
    page = malbox("task", 1).out
    assert "owner      ana\n" in page
    assert "plugins    strings, digests\n" in page
    assert "options    strings.min_length=8\n" in page
    assert [task["id"] for task in malbox("tasks", "--owner", "ana", "--json").records] == [1]
    assert [task["id"] for task in malbox("tasks", "--owner", "", "--json").records] == [2]
    assert malbox("cancel", "--owner", "ana").code == 0
    assert malbox.states() == {1: "canceled", 2: "pending"}


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (("--plugins", "strngs"), "There is no plugin 'strngs'; did you mean strings."),
        (("--option", "min_len=3"), "No plugin has the option 'min_len'; did you mean min_length."),
        (("--option", "rules=/etc"), "is a path of the engine's host; only its configuration sets it."),
        (("--memory",), "A static task needs no machine, so there is no memory to dump."),
        (("--enforce-timeout",), "A static task needs no machine, so there is none to watch"),
        (("--unique", "--again"), "What is known can't be both left out (unique) and analysed again."),
        (("--profile", "nope"), "There is no profile 'nope'"),
        (("--type", "static", "--tags", "a,b"), "it can't ask for tag a, tag b. Make it dynamic."),
    ],
)
def test_what_makes_no_sense_at_rest_is_refused_with_the_reason(malbox: CommandLine, asked: tuple[str, ...], reason: str) -> None:
    said = malbox("submit", "--json", *asked, malbox.sample("a"))
    assert (said.code, said.records[0]["record"], said.records[0]["code"]) == (2, "refused", "nonsense")
    assert reason in said.records[0]["reason"]


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (("--archive", "whole", "--password", "x"), "Passwords are for archives that are opened"),
        (("--pattern", "a/*.exe"), "patterns are for names without folders"),
        (("--pattern", ""), "fits no name"),
        (("--plugins", "strings,,digests"), "one of them is empty"),
        (("--max", "0"), "--max"),
        (("--owner", "\udcff"), "no UTF-8 text"),
    ],
)
def test_what_can_not_be_read_is_wrong_usage(malbox: CommandLine, asked: tuple[str, ...], reason: str) -> None:
    said = malbox("submit", *asked, malbox.sample("a"))
    assert (said.code, said.out) == (2, "")
    assert reason in said.err


def test_a_broken_plugin_keeps_out_only_who_asks_for_plugins(malbox: CommandLine) -> None:
    malbox.submit("before")
    (malbox.data / "plugins" / "broken").mkdir(parents=True)
    (malbox.data / "plugins" / "broken" / "plugin.toml").write_text("[plugin]\n")
    assert malbox("submit", malbox.sample("a")).code == 0
    said = malbox("submit", "--json", "--plugins", "strings", malbox.sample("b"))
    assert said.records[0]["reason"].startswith("The plugins can't be read: ")


def test_known_content_is_a_duplicate_where_it_is_to_be_unique_even_of_a_canceled_task(malbox: CommandLine) -> None:
    malbox.submit("a")
    malbox("cancel", 1)
    said = malbox("submit", "--json", "--unique", malbox.sample("a"), malbox.sample("b"))
    assert {record["record"]: record.get("of") for record in said.records} == {"duplicate": 1, "accepted": None}
    assert malbox("submit", malbox.sample("a")).out == "task 3  a\n"


@pytest.fixture
def drop(malbox: CommandLine, tmp_path: Path) -> Path:
    (tmp_path / "drop" / "deep").mkdir(parents=True)
    for name in ("a.exe", "b.exe", "readme.txt", "deep/c.exe"):
        (tmp_path / "drop" / name).write_text(name)
    return tmp_path / "drop"


def test_what_is_left_out_is_counted_and_told(malbox: CommandLine, drop: Path) -> None:
    said = malbox("submit", "--no-recursive", "--pattern", "*.EXE", "--max", 1, drop)
    assert said.code == 0
    assert said.out.splitlines() == [
        "task 1  a.exe",
        "left out  drop: 1 folder in it was left out: only what lies in it itself was asked for.",
        "left out  drop: 1 file was left out by name: not *.EXE.",
        "left out  drop: 1 file was left out: 1 were to be taken at most.",
    ]
    assert said.err.startswith("1 task added, 3 left out. ")
    said = malbox("submit", "--json", "--pattern", "*.dll", drop)
    assert said.code == 2
    assert [(record["code"], record["things"]) for record in said.records] == [("left_out", 4)]


@pytest.mark.slow
def test_analyze_honours_what_is_asked(malbox: CommandLine, drop: Path) -> None:
    said = malbox("analyze", "--json", *ASKED, "--no-recursive", "--pattern", "a*", drop)
    assert said.code == 0
    (task,) = [record for record in said.records if record["record"] == "task"]
    assert (task["owner"], task["wishes"]) == ("ana", WISHES)
    statuses = {plugin["name"]: (plugin["status"], plugin["reason"]) for plugin in task["plugins"]}
    reason = "The task is to be looked at by strings, digests only."
    assert {name for name, (status, _) in statuses.items() if status == "completed"} == {"strings", "digests"}
    assert {told for status, told in statuses.values() if status == "skipped"} == {reason}
    left_out = [record["things"] for record in said.records if record["record"] == "refused"]
    assert sorted(left_out) == [1, 2]
    table = malbox("analyze", "--pattern", "*.dll", drop)
    assert (table.code, "4 left out" in table.out) == (2, True)


@pytest.fixture
def service(malbox: CommandLine) -> Iterator[Serving]:
    malbox.data.mkdir(mode=0o700)
    (malbox.data / "config.toml").write_text(MACHINES)
    with Serving(malbox.data) as service:
        service.until_told("READY=1")
        yield service


@pytest.mark.slow
def test_a_running_engine_is_asked_for_the_same(malbox: CommandLine, service: Serving, drop: Path) -> None:
    said = malbox("submit", "--wait", "--json", *ASKED, "--max", 1, drop)
    (task,) = [record for record in said.records if record["record"] == "task"]
    assert (said.code, task["owner"], task["wishes"]) == (0, "ana", WISHES)
    assert {plugin["name"] for plugin in task["plugins"] if plugin["status"] == "completed"} == {"strings", "digests"}
    assert [record["things"] for record in said.records if record["record"] == "refused"] == [3]
    malbox("pause")
    (refused,) = malbox("submit", "--json", "--plugins", "nope", drop / "b.exe").records
    assert refused["reason"].startswith("There is no plugin 'nope'; ")
    (again,) = malbox("submit", "--json", "--unique", drop / "a.exe").records
    assert (again["record"], again["of"]) == ("duplicate", task["id"])
    assert malbox("submit", "--tags", "office,de", drop / "b.exe").code == 0
    (waiting,) = malbox("tasks", "--state", "pending", "--json").records
    assert (waiting["type"], waiting["requires"]["tags"]) == ("dynamic", ["de", "office"])


@pytest.mark.slow
def test_what_a_waiting_sample_is_a_running_engine_says(malbox: CommandLine, service: Serving) -> None:
    malbox("pause")
    script = malbox.sample("a.sh", "#!/bin/sh\nset -e\nfor f in *; do echo $f; done\n")
    assert malbox("submit", script).code == 0
    said = malbox("identify", 1)
    assert (said.code, said.out) == (
        0,
        "Task 1: script, linux, script. No profile is for kind script; there is no default profile.\n",
    )
    (task,) = malbox("task", 1, "--json").records
    assert (task["state"], task["sample"]["kind"], task["sample"]["kind_tags"]) == ("pending", "script", ["script"])


def test_no_plugin_is_asked_what_a_sample_is_while_no_engine_runs(malbox: CommandLine) -> None:
    malbox.submit("a")
    said = malbox("identify", 1)
    assert (said.code, "No engine runs, and only a running one asks plugins." in said.out + said.err) == (1, True)


# --- the line of the dialog -----------------------------------------------------------------------------------------------------------


def line(wishes: Wishes | None = None) -> tuple[WishesLine, list[IntakeChoice]]:
    chosen: list[IntakeChoice] = []

    def opened(choice: IntakeChoice) -> Intake:
        chosen.append(choice)
        return FolderIntake(1 << 20)

    return WishesLine(wishes or Wishes(), opened), chosen


def test_the_line_of_the_dialog_reads_what_the_command_line_reads() -> None:
    reader, chosen = line()
    assert reader.text == ""
    options, _ = reader.read(
        "--plugins strings,digests --option min_length=8 --owner 'ana m' --unique --tags x,y --max 3 --no-recursive"
    )
    assert options == SubmissionOptions(
        plugins=("strings", "digests"),
        plugin_options=("min_length=8",),
        owner="ana m",
        unique=True,
        requires=RequirementClass("dynamic", tags=("x", "y")),
    )
    assert chosen == [IntakeChoice(selection=Selection(recursive=False, limit=3))]
    reader.read("--archive whole --pattern *.exe")
    assert chosen[1] == IntakeChoice(ArchiveChoice(opens=False), Selection(patterns=("*.exe",)))


def test_it_begins_with_what_the_console_was_started_with() -> None:
    given = Wishes(
        priority=5,
        plugins=("a,b",),
        recursive=False,
        password=("-p q",),
        enforce_timeout=False,
        platform="linux",
        pattern=("*.exe",),
    )
    reader, chosen = line(given)
    assert reader.text == "--priority=5 --no-enforce-timeout --plugins=a,b '--password=-p q' --no-recursive '--pattern=*.exe'"
    options, _ = reader.read(reader.text)
    assert (options.priority, options.plugins, options.enforce_timeout) == (5, ("a", "b"), False)
    assert chosen == [given.choice()]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("--nope", "Unknown option"),
        ("word", "word is no option"),
        ("--max 0", "Must be >= 1"),
        ("--owner 'open", "a quote is not closed"),
        ("--platform=linux", "--platform has a field of its own."),
        ("--archive whole --password x", "Passwords are for archives that are opened"),
    ],
)
def test_what_the_line_can_not_read_is_said(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        line()[0].read(text)


def test_a_name_in_bytes_that_are_no_text_is_refused_before_anything_is_sent() -> None:
    with pytest.raises(MalboxError, match="no UTF-8 text"):
        Wishes(tag=("\udcff",)).submission()


# --- changed while it waits -----------------------------------------------------------------------------------------------------------


def test_a_waiting_task_asks_for_something_else_after_a_change(malbox: CommandLine) -> None:
    malbox.data.mkdir(mode=0o700)
    (malbox.data / "config.toml").write_text(MACHINES)
    malbox.submit("a")
    assert malbox("change", "--platform", "linux", "--tags", "office, de", "--timeout", 20, 1).out == (
        "Task 1 is to be served as linux, tag de, tag office, for 20 s.\n"
    )
    (task,) = malbox("task", 1, "--json").records
    assert (task["type"], task["requires"]["tags"], task["timeout_s"]) == ("dynamic", ["de", "office"], 20.0)
    assert malbox("change", "--tags", "", "--platform", "", 1).code == 0
    assert malbox("change", "--type", "static", 1).out == "Task 1 is to be served as static, for 20 s.\n"
    said = malbox("change", "--arch", "mips", 1)
    assert (said.code, "Task 1 can't be changed so: " in said.out + said.err) == (1, True)
    assert malbox("change", 1).code == 2
    (latest, *_) = malbox("actions", "--json").records
    assert latest["action"]["command"] == "ChangeTasks"
