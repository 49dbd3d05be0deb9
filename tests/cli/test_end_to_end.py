"""The command as a person and a script meet it: real processes, a real engine, real plugins, hostile folders."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

pytestmark = pytest.mark.slow

PATIENCE_S = 120
EICAR = b"X5O!P%@AP[4\\PZX54(P^)7CC)7}$EICAR-" + b"STANDARD-ANTIVIRUS-TEST-FILE!$H+H*"
HOSTILE_NAMES = (
    b"a new\nline",
    b"\x1b[31mred",
    b"\x1b]0;pwned\x07",
    b"\x1b]52;c;cHduZWQ=\x07",
    b"[bold]name[",
    b"[@click=app.quit]x[",
    "\u202egpj.exe".encode(),
    "\u009b31mC1".encode(),
    b"r\xe9sum\xe9.exe",
    b"--json",
    b"n" * 255,
)

Record = dict[str, Any]


class Malbox:
    """The command on one data folder."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.environment = {**os.environ, "LANG": "C.UTF-8", "TERM": "xterm-256color"}
        self.environment.pop("COLUMNS", None)

    def command(self, name: str, *arguments: str | Path) -> list[str]:
        return [sys.executable, "-m", "malbox_tui", name, "--data-dir", str(self.data), *map(str, arguments)]

    def __call__(self, name: str, *arguments: str | Path) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            self.command(name, *arguments),
            capture_output=True,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            timeout=PATIENCE_S,
            check=False,
        )

    @contextlib.contextmanager
    def begun(self, name: str, *arguments: str | Path) -> Iterator[subprocess.Popen[bytes]]:
        """The command still at work, its first line of stdout read."""
        with subprocess.Popen(
            self.command(name, *arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.environment
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline(), process.stderr and process.stderr.read()
            try:
                yield process
            finally:
                process.kill()

    def tasks(self) -> list[Record]:
        return records(self("tasks", "--json", "--limit", "100000").stdout)

    def leftover_processes(self) -> list[str]:
        return [
            " ".join(process.info["cmdline"])
            for process in psutil.process_iter(["cmdline"])
            if any(str(self.data) in word for word in process.info["cmdline"] or ())
        ]


@pytest.fixture
def malbox(tmp_path: Path) -> Malbox:
    return Malbox(tmp_path / "data")


def records(stdout: bytes) -> list[Record]:
    return [json.loads(line) for line in stdout.splitlines()]


def files(folder: Path, count: int) -> Path:
    folder.mkdir()
    for number in range(count):
        (folder / f"{number:04}.txt").write_text(f"sample {number}\n")
    return folder


def hostile(folder: Path) -> Path:
    folder.mkdir()
    for number, name in enumerate(HOSTILE_NAMES):
        (folder / os.fsdecode(name)).write_bytes(b"content %d" % number)
    (folder / "eicar.com").write_bytes(EICAR)
    (folder / "empty").touch()
    (folder / "broken link").symlink_to("\x1b]0;pwned\x07")
    os.mkfifo(folder / "fifo")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(folder / "socket"))
    return folder


def assert_harmless(output: bytes) -> None:
    """No byte that a terminal acts on, other than the end of a line."""
    assert not re.search(rb"[\x00-\x09\x0b-\x1f\x7f]", output), output
    text = output.decode("utf-8", "replace")
    assert not re.search("[\u0080-\u009f\u200b-\u200f\u202a-\u202e\u2066-\u2069]", text), text


# --- what it is for ----------------------------------------------------------------------------------------------------------------


def test_a_folder_is_analysed_and_shown_as_a_table(malbox: Malbox, tmp_path: Path) -> None:
    folder = files(tmp_path / "in", 2)
    (folder / "eicar.com").write_bytes(EICAR)
    done = malbox("analyze", folder)
    table = done.stdout.decode()
    assert done.returncode == 0, done.stderr
    assert re.search(r"completed +malicious .* eicar\.com", table)
    assert "3 tasks in" in table.splitlines()[-1]


def test_a_table_fits_eighty_columns(malbox: Malbox, tmp_path: Path) -> None:
    malbox.environment["COLUMNS"] = "80"
    done = malbox("analyze", hostile(tmp_path / "in"))
    assert max(len(line) for line in done.stdout.decode().splitlines()[:-1]) <= 80


def test_json_lines_tell_everything_that_became_of_a_hostile_folder(malbox: Malbox, tmp_path: Path) -> None:
    folder = hostile(tmp_path / "in")
    (folder / "a copy").write_bytes(EICAR)
    done = malbox("analyze", folder, "--json")
    told = records(done.stdout)
    assert done.returncode == 0, done.stderr
    assert_harmless(done.stdout)
    assert_harmless(done.stderr)
    tasks = [record for record in told if record["record"] == "task"]
    refused = {record["name"]: record["code"] for record in told if record["record"] == "refused"}
    names = {name for record in tasks for name in record["sample"]["names"]}
    assert {record["state"] for record in tasks} == {"completed"}
    assert refused == {"empty": "empty", "broken link": "link", "fifo": "fifo", "socket": "socket"}
    assert {r"\x1b]0;pwned\x07", r"r\xe9sum\xe9.exe", r"a new\x0aline", "[bold]name[", "n" * 255, "--json"} <= names
    (eicar,) = [record for record in tasks if "eicar.com" in record["sample"]["names"] or "a copy" in record["sample"]["names"]]
    assert eicar["verdict"]["classification"] == "malicious"
    assert [record["of"] for record in told if record["record"] == "duplicate"] == [eicar["id"]]


def test_a_tasks_record_has_what_scripts_need(malbox: Malbox, tmp_path: Path) -> None:
    (told,) = records(malbox("analyze", files(tmp_path / "in", 1), "--json", "--priority", "7").stdout)
    assert isinstance(told["id"], int)
    assert told["sample"]["size_bytes"] == len("sample 0\n")
    assert (told["type"], told["state"], told["ended_by"], told["priority"], told["attempts"]) == (
        "static",
        "completed",
        "finished",
        7,
        1,
    )
    times = [told[key] for key in ("created_at", "started_at", "finished_at")]
    assert times == sorted(times)
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", time) for time in times)
    assert {"pending", "initializing", "running", "stopping"} <= told["stages"].keys()
    assert all({"name", "status", "seconds", "results"} <= plugin.keys() for plugin in told["plugins"])
    assert all(Path(result["path"]).is_file() for plugin in told["plugins"] for result in plugin["results"])


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp437"])
def test_a_terminal_without_utf8_gets_harmless_output(malbox: Malbox, tmp_path: Path, encoding: str) -> None:
    malbox.environment |= {"PYTHONIOENCODING": encoding}
    for arguments in (["--json"], []):
        done = malbox("analyze", hostile(tmp_path / f"in{len(arguments)}"), *arguments)
        assert done.returncode == 0, done.stderr
        assert not re.search(rb"[\x00-\x09\x0b-\x1f\x7f]", done.stdout + done.stderr)


def test_a_bar_is_drawn_on_a_terminal_and_lets_no_foreign_sequence_through(malbox: Malbox, tmp_path: Path) -> None:
    folder = hostile(tmp_path / "in")
    (folder / "\x1b]0;pwned\x07 eicar").write_bytes(EICAR)
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        malbox.command("analyze", folder), stdout=subprocess.PIPE, stderr=theirs, env=malbox.environment
    ) as process:
        os.close(theirs)
        drawn = b""
        with contextlib.suppress(OSError):  # Linux says EIO when the other end is closed
            while part := os.read(ours, 65536):
                drawn += part
        os.close(ours)
        assert process.stdout is not None
        assert_harmless(process.stdout.read())
    assert process.returncode == 0
    assert "malicious" in drawn.decode()
    assert b"\x1b]0;" not in drawn
    assert b"\x1b]52;" not in drawn


@pytest.mark.needs("setpriv")
def test_a_file_that_may_not_be_read_is_refused_by_name(malbox: Malbox, tmp_path: Path) -> None:
    folder = files(tmp_path / "in", 1)
    (folder / "secret").write_bytes(b"secret")
    (folder / "secret").chmod(0)
    command = malbox.command("analyze", folder, "--json")
    if os.geteuid() == 0:
        command = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", *command]
    done = subprocess.run(command, capture_output=True, env=malbox.environment, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr
    assert {(record["record"], record.get("name"), record.get("code")) for record in records(done.stdout)} == {
        ("task", None, None),
        ("refused", "secret", "unreadable"),
    }


def test_weaker_isolation_and_a_broken_rule_file_are_said_while_it_runs(malbox: Malbox, tmp_path: Path) -> None:
    (tmp_path / "rules.yar").write_text("rule Broken {")
    malbox.data.mkdir()
    (malbox.data / "config.toml").write_text(
        f'[confinement]\nisolation = "limits"\n[plugins.config.yara-x]\nrules = "{tmp_path}/rules.yar"\n'
    )
    done = malbox("analyze", files(tmp_path / "in", 3))
    assert done.returncode == 0
    said = done.stderr.decode()
    assert "isolated less than they could be: limits only, as configured. `malbox-tui doctor`" in said
    assert said.count("plugin yara-x is degraded: rules, line 1") == 1


# --- a second run --------------------------------------------------------------------------------------------------------------------


def test_content_that_was_completed_is_a_duplicate_with_its_result_unless_asked_again(malbox: Malbox, tmp_path: Path) -> None:
    sample = tmp_path / "eicar.com"
    sample.write_bytes(EICAR)
    (first,) = records(malbox("analyze", sample, "--json").stdout)
    second = malbox("analyze", sample, "--json")
    (duplicate,) = records(second.stdout)
    assert second.returncode == 0
    assert (duplicate["record"], duplicate["of"], duplicate["state"]) == ("duplicate", first["id"], "completed")
    assert duplicate["verdict"]["classification"] == "malicious"
    (again,) = records(malbox("analyze", sample, "--json", "--again").stdout)
    assert (again["record"], again["sample"]["sha256"]) == ("task", first["sample"]["sha256"])
    assert again["id"] != first["id"]


def test_without_a_path_and_with_nothing_left_it_says_so(malbox: Malbox) -> None:
    done = malbox("analyze")
    assert (done.returncode, done.stdout) == (0, b"")
    assert b"Nothing is left to finish" in done.stderr


@pytest.mark.parametrize("what", ["missing", "empty folder", "only refused"])
def test_nothing_accepted_exits_two(malbox: Malbox, tmp_path: Path, what: str) -> None:
    if what != "missing":
        (tmp_path / what).mkdir()
    if what == "only refused":
        (tmp_path / what / "empty").touch()
    done = malbox("analyze", tmp_path / what)
    assert done.returncode == 2
    assert b"othing was accepted" in done.stderr


# --- interruption --------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def hangups_count() -> Iterator[None]:
    """Also where the tests themselves were started to outlive a hangup, which children inherit."""
    former = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, former)


@pytest.mark.usefixtures("hangups_count")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_gives_tasks_back_and_the_next_run_finishes_them(malbox: Malbox, tmp_path: Path, number: signal.Signals) -> None:
    with malbox.begun("analyze", files(tmp_path / "in", 150), "--json") as process:
        process.send_signal(number)
        stdout, stderr = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1
    assert b"Traceback" not in stderr
    found = re.search(rb"Interrupted: (\d+) tasks are left; `malbox-tui analyze --data-dir", stderr)
    assert found, stderr
    assert malbox.leftover_processes() == []
    assert not [task for task in malbox.tasks() if task["state"] not in ("pending", "completed")]
    next_run = malbox("analyze", "--json")
    assert next_run.returncode == 0, next_run.stderr
    assert len(records(next_run.stdout)) == int(found[1])
    finished = malbox.tasks()
    assert {task["state"] for task in finished} == {"completed"}
    assert len(finished) == len({task["sample"]["sha256"] for task in finished}) == 1 + len(records(stdout)) + int(found[1])


def test_results_that_nobody_reads_any_more_give_tasks_back(malbox: Malbox, tmp_path: Path) -> None:
    with malbox.begun("analyze", files(tmp_path / "in", 150), "--json") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        stderr = process.stderr.read()
        process.wait(timeout=PATIENCE_S)
    assert process.returncode == 1
    assert b"Traceback" not in stderr
    assert b"Exception" not in stderr
    assert malbox.leftover_processes() == []
    assert malbox("analyze").returncode == 0


def test_a_full_stdout_is_said_in_a_sentence(malbox: Malbox, tmp_path: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            malbox.command("analyze", files(tmp_path / "in", 1)),
            stdout=full,
            stderr=subprocess.PIPE,
            env=malbox.environment,
            timeout=PATIENCE_S,
            check=False,
        )
    assert done.returncode == 1
    assert b"can't be written to stdout: No space left on device" in done.stderr
    assert b"Traceback" not in done.stderr


def test_a_second_start_names_the_holder_and_looking_is_allowed(malbox: Malbox, tmp_path: Path) -> None:
    with malbox.begun("analyze", files(tmp_path / "in", 150), "--json") as process:
        second = malbox("analyze", tmp_path)
        looked = malbox("tasks", "--limit", "1")
        checked = malbox("doctor", "--json")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE_S)
    assert second.returncode == 2
    assert f"process {process.pid}".encode() in second.stderr
    assert b"--data-dir" in second.stderr
    assert second.stdout == b""
    assert looked.returncode == 0
    (lock,) = [record for record in records(checked.stdout) if record["what"] == "lock"]
    assert str(process.pid) in lock["detail"]


# --- looking -------------------------------------------------------------------------------------------------------------------------


def test_tasks_are_listed_newest_first_and_by_state(malbox: Malbox, tmp_path: Path) -> None:
    malbox("analyze", files(tmp_path / "in", 3))
    assert [task["id"] for task in malbox.tasks()] == [3, 2, 1]
    assert malbox("tasks", "--json", "--state", "failed").stdout == b""
    listed = malbox("tasks", "--limit", "2").stdout.decode()
    assert "2 of 3 tasks shown. In all: 3 completed." in listed


def test_one_task_is_shown_in_full(malbox: Malbox, tmp_path: Path) -> None:
    (tmp_path / "\x1b]0;pwned\x07").write_bytes(EICAR)
    malbox("analyze", tmp_path / "\x1b]0;pwned\x07")
    done = malbox("task", "1")
    page = done.stdout.decode()
    assert_harmless(done.stdout)
    for part in (r"\x1b]0;pwned\x07", "malicious", "Stages", "running", "Plugin digests", str(malbox.data / "results")):
        assert part in page
    (same,) = records(malbox("task", "1", "--json").stdout)
    assert same["id"] == 1


def test_a_task_that_is_not_there_exits_two(malbox: Malbox, tmp_path: Path) -> None:
    malbox("analyze", files(tmp_path / "in", 1))
    done = malbox("task", "77")
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"There is no task 77" in done.stderr


@pytest.mark.parametrize("arguments", [("tasks",), ("task", "1")])
def test_without_a_store_looking_says_how_to_begin_one(malbox: Malbox, arguments: tuple[str, ...]) -> None:
    done = malbox(*arguments)
    assert done.returncode == 2
    assert b"There is no store" in done.stderr
    assert not malbox.data.exists()


def test_doctor_finds_nothing_that_fails_here(malbox: Malbox) -> None:
    done = malbox("doctor")
    assert done.returncode == 0, done.stdout
    assert done.stderr == b""
    assert re.search(r"^ok +plugins +.*digests", done.stdout.decode(), re.MULTILINE)


def test_doctor_fails_with_the_remedy_for_a_wrong_configuration(malbox: Malbox) -> None:
    malbox.data.mkdir()
    (malbox.data / "config.toml").write_text("[general]\nmin_worker = 1\n")
    done = malbox("doctor", "--json")
    (found,) = [record for record in records(done.stdout) if record["state"] == "fail"]
    assert done.returncode == 1
    assert "general.min_workers" in found["detail"]
    assert found["remedy"]
