"""The commands on an engine that `malbox-tui serve` runs in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.command_line import CommandLine
from tests.cli.service_rig import PATIENCE_S, Serving
from tests.confine.rig import write_plugin

pytestmark = pytest.mark.slow

MACHINES = '[[machines]]\nname = "m1"\nprovider = "simulated"\nplatform = "linux"\n'


@pytest.fixture
def malbox(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(tmp_path, capsys)


@pytest.fixture
def service(malbox: CommandLine) -> Iterator[Serving]:
    malbox.data.mkdir(mode=0o700)
    (malbox.data / "config.toml").write_text(MACHINES)
    with Serving(malbox.data) as service:
        service.until_told("READY=1")
        yield service


def test_a_submission_is_waited_for_and_its_results_are_printed(malbox: CommandLine, service: Serving) -> None:
    said = malbox("submit", "--wait", "--json", malbox.sample("a"), malbox.sample("b"), malbox.sample("empty", ""))
    assert said.code == 0
    found = {record["record"]: record for record in said.records}
    assert {name for name, record in found.items() if record.get("state") == "completed"} == {"task"}
    assert len(said.records) == 3
    assert found["refused"]["code"] == "empty"
    said = malbox("submit", "--wait", malbox.sample("a"))
    assert (said.code, "duplicate" in said.out) == (0, True)
    assert malbox("submit", "--wait", malbox.sample("empty", "")).code == 2


def test_what_waits_is_canceled_re_ordered_and_retried(malbox: CommandLine, service: Serving) -> None:
    assert malbox("pause").out == "Paused: no task is taken; what runs goes on.\n"
    malbox.submit("a")
    said = malbox("submit", malbox.sample("b"), malbox.sample("c"))  # sent at the same time, so either may be task 2
    assert (said.code, said.err) == (0, "2 tasks added.\n"), "nothing is said of a next start"
    assert malbox("priority", 9, 2).code == 0
    assert malbox("cancel", "--name", "a", "--json").records[0]["message"] == "Task 1 is canceled."
    assert malbox("retry", 1).out == "Task 4 retries task 1.\n"
    assert malbox("cancel", "2-4", "--yes").code == 0
    assert set(malbox.states().values()) == {"canceled"}
    assert malbox("resume").code == 0


def test_groups_and_machines_are_shown_and_changed(malbox: CommandLine, service: Serving) -> None:
    assert malbox("resize", "--min", 2, "--max", 3).out == "default: min 2, max 3\n"
    kinds = [record["record"] for record in malbox("workers", "--json").records]
    assert kinds == ["group", "worker", "worker"]
    assert malbox("workers").out.startswith("default: 0 busy, 2 of 2-3 workers")
    said = malbox("resize", "nowhere", "--max", 3)
    assert (said.code, "There is no worker group 'nowhere'" in said.out) == (1, True)
    assert malbox("machines", "disable", "m1").code == 0
    assert malbox("machines", "disable", "m2").code == 1
    (machine,) = malbox("machines", "--json").records
    assert (machine["name"], machine["platform"]) == ("m1", "linux")
    assert malbox("machines").out.splitlines()[1].startswith("m1")
    assert malbox("machines", "return", "m1").code == 0
    (stats,) = malbox("stats", "--json").records
    assert (stats["engine"]["workers"], stats["paused"]) == (2, None)
    assert "2 workers" in malbox("stats").out


def test_machines_are_added_changed_and_removed_while_the_engine_runs_and_are_so_at_its_next_start(
    malbox: CommandLine, service: Serving
) -> None:
    kept = malbox.data / "config.machines.toml"
    said = malbox("machines", "add", "m2", "--provider", "simulated", "--platform", "windows", "--tag", "office")
    assert (said.code, said.out) == (
        0,
        f"Machine m2 is added; it serves as soon as it is proven clean. Kept in {kept}.\n",
    )
    assert "There is a machine m2 already." in malbox("machines", "add", "m2", "--provider", "simulated", "--platform", "x").err
    assert malbox("machines", "edit", "m2", "tags=office,word").code == 0
    said = malbox("machines", "show", "m2", "--json").records[0]
    assert said["configuration"]["platform"] == "windows"
    assert [moment["reason"] for moment in said["history"]][1] == "added by " + malbox("actions", "--json").records[0]["actor"]
    assert malbox("machines", "show", "m3").code == 2
    assert malbox("machines", "remove", "m1").code == 0
    assert malbox("machines", "probe", "m3").code == 1
    shown = malbox("config", "show").out
    assert f"# Machine m2 was added while malbox-tui ran: {kept}." in shown
    assert f"# Machine m1 is left out: it was removed while malbox-tui ran ({kept})." in shown
    assert (malbox.data / "config.toml").read_text() == MACHINES
    service.send(signal.SIGTERM)
    assert service.ended() == 0
    (malbox.data.parent / f"{malbox.data.name}.notify").unlink()
    with Serving(malbox.data) as next_start:
        next_start.until_told("READY=1")
        (machine,) = malbox("machines", "--json").records
        assert (machine["name"], machine["tags"]) == ("m2", ["office", "word"])


def test_machines_of_a_configuration_that_is_read_again_are_taken_over(malbox: CommandLine, service: Serving) -> None:
    more = MACHINES.replace("m1", "m2")
    (malbox.data / "config.toml").write_text(more)
    service.send(signal.SIGHUP)
    assert service.until("machines.m1").endswith("machines.m1: (a table) → (none), now in effect.\n")
    service.until("machines.m2")
    names = [machine["name"] for machine in malbox("machines", "--json").records]
    assert "m2" in names
    assert not (malbox.data / "config.machines.toml").exists()


def test_who_did_what_is_kept_beside_the_running_engine(malbox: CommandLine, service: Serving) -> None:
    malbox("pause")
    malbox("resize", "nowhere", "--max", 3)
    later, earlier = malbox("actions", "--json").records
    assert (earlier["action"]["command"], earlier["done"]) == ("PausePool", True)
    assert (later["action"]["command"], later["done"], "nowhere" in later["message"]) == ("ResizeGroup", False, True)
    assert f"process {os.getpid()}" in later["origin"]


def test_events_are_followed_until_the_engine_has_drained(malbox: CommandLine, service: Serving) -> None:
    command = [sys.executable, "-m", "malbox_tui", "--data-dir", str(malbox.data), "events", "--follow", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as following:
        assert following.stdout is not None
        assert json.loads(following.stdout.readline())["event"], "what happened before comes first"
        malbox("pause")
        for line in following.stdout:
            if json.loads(line)["event"] == "PoolPaused":
                break
        assert malbox("drain", "--json").records[0]["message"] == "Stopping (drain)."
        rest = [json.loads(line) for line in following.stdout]
        assert following.wait(PATIENCE_S) == 0
    assert "Shutdown" in [record["action"]["command"] for record in rest if record["event"] == "ActionTaken"]
    assert service.ended() == 0
    assert malbox("actions", "--json").records[0]["action"]["command"] == "Shutdown", "kept before the engine ended"


def test_a_wait_that_the_engine_does_not_outlive_exits_with_one(malbox: CommandLine, service: Serving) -> None:
    with waiting_for(malbox, "a") as waiting:
        service.send(signal.SIGTERM)
        _, told = waiting.communicate(timeout=PATIENCE_S)
    assert (waiting.returncode, "1 task is kept for its next start" in told) == (1, True)
    assert service.ended() == 0


def waiting_for(malbox: CommandLine, name: str) -> subprocess.Popen[str]:
    """`submit --wait` of a new sample in a paused engine, when it has been taken."""
    malbox("pause")
    command = [sys.executable, "-m", "malbox_tui", "--data-dir", str(malbox.data), "submit", "--wait", str(malbox.sample(name))]
    waiting = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not malbox.states() and waiting.poll() is None:
        pass
    return waiting


def test_who_waits_is_told_when_the_engine_is_killed_and_nothing_is_lost(malbox: CommandLine, service: Serving) -> None:
    with waiting_for(malbox, "a") as waiting:
        service.send(signal.SIGKILL)
        _, told = waiting.communicate(timeout=PATIENCE_S)
    assert (waiting.returncode, "control.sock" in told) == (1, True)
    assert malbox.states() == {1: "pending"}
    assert malbox("cancel", 1).code == 0, "the dead engine's socket is no engine"


def test_waiting_can_be_given_up_and_the_tasks_stay(malbox: CommandLine, service: Serving) -> None:
    with waiting_for(malbox, "a") as waiting:
        waiting.send_signal(signal.SIGINT)
        _, told = waiting.communicate(timeout=PATIENCE_S)
    assert (waiting.returncode, "Interrupted: what was handed in until then stays" in told) == (1, True)
    assert malbox.states() == {1: "pending"}


def test_plugins_are_read_again_by_command(malbox: CommandLine, service: Serving) -> None:
    write_plugin(malbox.data / "plugins", "pass", "mine")
    said = malbox("plugin", "reload")
    assert said.code == 0
    assert said.out.startswith("The plugins were read again: mine 1.2.3 was added.")
    (malbox.data / "plugins" / "mine" / "plugin.toml").write_text("[plugin]\nname = 1\n")
    (refused,) = malbox("plugin", "reload", "--json").records
    assert not refused["done"]
    assert "mine/plugin.toml: plugin.name: expected `str`, got `int`. Nothing was changed." in refused["message"]
    assert malbox("actions", "--json").records[0]["action"] == {"command": "ReloadPlugins"}


def test_watched_folders_are_shown_with_what_came_of_their_files(malbox: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a").write_bytes(b"one")
    malbox.data.mkdir(mode=0o700)
    watches = (f'[[watch]]\npath = "{tmp_path}/{name}"\nsettle_s = 0.1\nafterwards = "delete"\n' for name in ("in", "missing"))
    (malbox.data / "config.toml").write_text("".join(watches))
    with Serving(malbox.data) as service:
        service.until_told("READY=1")
        while (found := malbox("watches", "--json").records)[0]["added"] == 0:
            assert service.process.poll() is None
        there, missing = found
        assert (there["state"], there["refused"], missing["state"]) == ("watching", 0, "away")
        problem = "It can't be looked into: No such file or directory."
        assert missing["problem"] == problem
        assert f"{tmp_path}/missing: {problem}" in malbox("watches").out
        assert f"Watched folder {tmp_path}/missing: {problem}" in malbox("stats").out
        service.send(signal.SIGTERM)
        assert service.ended() == 0
    assert list((tmp_path / "in").iterdir()) == []
    assert malbox("actions", "--json").records[0]["actor"] == f"watch:{tmp_path}/in"


def test_a_folder_that_is_added_is_watched_and_so_it_is_after_the_next_start(malbox: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    malbox.data.mkdir(mode=0o700)
    with Serving(malbox.data) as service:
        service.until_told("READY=1")
        assert malbox("watches").out.startswith("No folder is watched.")
        said = malbox("watches", "add", tmp_path / "in", "--settle", 0.1, "--afterwards", "delete", "--json")
        assert (said.code, said.records[0]["done"]) == (0, True)
        (tmp_path / "in" / "a").write_bytes(b"one")
        while malbox("watches", "--json").records[0]["added"] == 0:
            assert service.process.poll() is None
        said = malbox("watches", "add", tmp_path / "in" / "below")
        assert (said.code, "lies in the folder of" in said.out) == (1, True)
        service.send(signal.SIGHUP)
        service.until("nothing changed")
        service.send(signal.SIGTERM)
        assert service.ended() == 0
    (malbox.data.parent / f"{malbox.data.name}.notify").unlink()
    assert "was added while malbox-tui ran" in malbox("config", "check").out
    with Serving(malbox.data) as service:
        service.until_told("READY=1")
        assert [watch["path"] for watch in malbox("watches", "--json").records] == [f"{tmp_path}/in"]
        assert malbox("watches", "remove", f"{tmp_path}/in/").code == 0
        assert malbox("watches", "--json").records == []
        said = malbox("watches", "remove", tmp_path / "in")
        assert (said.code, "No folder is watched as" in said.out) == (1, True)
        service.send(signal.SIGTERM)
        assert service.ended() == 0
    assert list(malbox.data.glob("config*")) == []
    commands = [record["action"]["command"] for record in malbox("actions", "--json").records]
    orders = [command for command in commands if command in ("AddWatch", "RemoveWatch")]
    assert orders == ["RemoveWatch", "RemoveWatch", "AddWatch", "AddWatch"]


def test_who_paused_the_intake_finds_it_paused_after_a_crash(malbox: CommandLine, service: Serving) -> None:
    assert malbox("pause").code == 0
    malbox.submit("a")
    service.send(signal.SIGKILL)
    service.ended()
    service.notes.close()
    (malbox.data.parent / f"{malbox.data.name}.notify").unlink()
    with Serving(malbox.data) as again:
        assert f"`malbox-tui resume --data-dir {malbox.data}` ends that." in again.until("No task is taken: paused by ")
        again.until_told("READY=1")
        assert malbox("stats", "--json").records[-1]["paused"].startswith("paused by ")
        assert malbox.states() == {1: "pending"}
        assert malbox("resume").out == "Resumed.\n"
        assert malbox("submit", "--wait", malbox.sample("a")).code == 0
