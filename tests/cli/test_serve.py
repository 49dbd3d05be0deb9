"""`malbox-tui serve` as a service manager, a person and a script meet it."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from malbox_tui.cli.service_log import LOG_NAME
from malbox_tui.remote.socket_file import connected
from tests.cli.service_rig import PATIENCE_S, Serving
from tests.confine.rig import write_plugin
from tests.store.test_upgrades import put

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
UNIT = ROOT / "malbox_tui" / "contrib" / "malbox-tui.service"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir(mode=0o700)
    return tmp_path / "data"


def test_it_tells_its_manager_when_it_is_ready_that_it_lives_and_when_it_stops(data: Path) -> None:
    with Serving(data, WATCHDOG_USEC="300000") as service:
        service.until_told("READY=1")
        with connected(data / "control.sock"):
            pass
        assert "0 tasks at work, 0 pending" in service.until_told("WATCHDOG=1")
        service.until_told("WATCHDOG=1")
        service.send(signal.SIGTERM)
        note = service.until_told("STOPPING=1")
        assert int(re.search(r"EXTEND_TIMEOUT_USEC=(\d+)", note)[1]) > 60e6  # type: ignore[index]
        assert service.ended() == 0
    assert not (data / "control.sock").exists()


def test_a_changed_configuration_is_taken_over_as_far_as_it_can_be(data: Path) -> None:
    with Serving(data) as service:
        service.until_told("READY=1")
        (data / "config.toml").write_text("[general]\nmax_workers = 7\n[analysis]\nlease_s = 9\n")
        service.send(signal.SIGHUP)
        service.until_told("RELOADING=1")
        service.until_told("READY=1")
        assert "now in effect" in service.until("general.max_workers: 4 → 7")
        assert "needs a restart" in service.until("analysis.lease_s: 30.0 → 9.0")
        assert asked(data, "/v1/overview")["groups"][0]["max_workers"] == 7


def test_plugins_are_read_again_with_the_configuration(data: Path) -> None:
    with Serving(data) as service:
        service.until_told("READY=1")
        write_plugin(data / "plugins", "pass", "mine")
        service.send(signal.SIGHUP)
        service.until("The plugins were read again: mine 1.2.3 was added.")
        (data / "plugins" / "mine" / "main.py").write_text("# another")
        service.send(signal.SIGHUP)
        service.until("The plugins were read again: mine 1.2.3 was changed.")
        (data / "plugins" / "mine" / "plugin.toml").write_text("[plugin")
        service.send(signal.SIGHUP)
        assert "Nothing was changed." in service.until(f"{data}/plugins/mine/plugin.toml: is not TOML")
        shutil.rmtree(data / "plugins" / "mine")
        service.send(signal.SIGHUP)
        service.until("The plugins were read again: mine was removed.")


def test_a_faulty_configuration_changes_nothing_and_is_told(data: Path) -> None:
    with Serving(data) as service:
        service.until_told("READY=1")
        (data / "config.toml").write_text("[general]\nmax_workers = 7\nmin_workers = 'x'\n")
        service.send(signal.SIGHUP)
        assert "general.min_workers" in service.until("is faulty: ")
        service.until("Nothing was changed.")
        assert asked(data, "/v1/overview")["groups"][0]["max_workers"] == 4


def test_a_faulty_configuration_at_the_start_is_wrong_usage(data: Path) -> None:
    (data / "config.toml").write_text("[serve]\ngroup = 'nobody-has-such-a-group'\n")
    with Serving(data) as service:
        assert "group" in service.until("nobody-has-such-a-group")
        assert service.ended() == 2


def test_a_configuration_that_is_gone_is_not_taken_for_the_defaults(data: Path) -> None:
    (data / "config.toml").write_text("[general]\nmax_workers = 7\n")
    with Serving(data) as service:
        service.until_told("READY=1")
        (data / "config.toml").unlink()
        service.send(signal.SIGHUP)
        assert "an empty one stands for the defaults" in service.until("is faulty: ")
        assert asked(data, "/v1/overview")["groups"][0]["max_workers"] == 7


def test_a_configuration_that_became_a_pipe_holds_up_nothing(data: Path) -> None:
    with Serving(data) as service:
        service.until_told("READY=1")
        os.mkfifo(data / "config.toml")
        service.send(signal.SIGHUP)
        service.until_told("RELOADING=1")
        assert "it is a pipe" in service.until("is faulty: ")
        service.send(signal.SIGTERM)
        assert service.ended() == 0


def test_a_socket_that_was_taken_away_is_made_again(data: Path) -> None:
    with Serving(data) as service:
        service.until_told("READY=1")
        with connected(data / "control.sock"):
            (data / "control.sock").unlink()
            service.until("it was made again")
            assert asked(data, "/health")["pid"] == service.process.pid
            (data / "control.sock").unlink()
            (data / "control.sock").mkdir()
            service.until("nobody can attach any more")
            (data / "control.sock").rmdir()
            service.until("it was made again")
        service.send(signal.SIGTERM)
        assert service.ended() == 0
    assert not (data / "control.sock").exists()


def test_a_second_one_says_who_holds_the_folder(data: Path) -> None:
    with Serving(data) as first:
        first.until_told("READY=1")
        second = subprocess.run(
            [sys.executable, "-m", "malbox_tui", "serve", "--data-dir", str(data)], capture_output=True, text=True, check=False
        )
        assert second.returncode == 2
        assert f"in use by process {first.process.pid}" in second.stderr
        assert asked(data, "/health")["status"] == "ok"


@pytest.mark.parametrize("version", [None, 3], ids=["new", "earlier"])
def test_of_those_that_are_started_at_the_same_instant_one_serves_and_the_others_say_so(data: Path, version: int | None) -> None:
    if version is not None:
        put(version, data / "malbox.sqlite3")
    command = [sys.executable, "-m", "malbox_tui", "serve", "--data-dir", str(data)]
    started = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    try:
        while len(living := [process for process in started if process.poll() is None]) > 1:
            with suppress(subprocess.TimeoutExpired):
                living[0].wait(0.05)
        (serving,) = living
        others = [(process.wait(), process.communicate()[1]) for process in started if process is not serving]
        assert all(code == 2 and f"is in use by process {serving.pid} " in said for code, said in others), others
        serving.send_signal(signal.SIGTERM)
        assert "Stopped." in serving.communicate(timeout=PATIENCE_S)[1]
        assert serving.returncode == 0
    finally:
        for process in started:
            process.kill()
            process.wait()


def test_after_a_kill_the_next_one_takes_the_socket_over(data: Path) -> None:
    with Serving(data) as first:
        first.until_told("READY=1")
        first.process.kill()
        first.process.wait()
    assert (data / "control.sock").is_socket()
    (data.parent / "data.notify").unlink()
    with Serving(data) as second:
        second.until_told("READY=1")
        assert asked(data, "/health")["pid"] == second.process.pid


def test_its_log_is_an_object_a_line_for_the_owner_alone(data: Path) -> None:
    with Serving(data) as service:
        service.until_told("READY=1")
        service.send(signal.SIGINT)
        assert service.ended() == 0
    log = data / "logs" / LOG_NAME
    records = [json.loads(line) for line in log.read_text().splitlines()]
    assert {"at", "level", "logger", "process", "message"} == set(records[0])
    assert "SIGINT came" in [record["message"] for record in records]
    assert log.stat().st_mode & 0o777 == 0o600


# --- how it ends ---------------------------------------------------------------------------------------------------------------


def test_sigterm_lets_a_running_task_finish(data: Path, tmp_path: Path) -> None:
    write_plugin(tmp_path / "plugins", "time.sleep(2)")
    with Serving(data, plugins=tmp_path / "plugins") as service:
        at_work(service)
        service.send(signal.SIGTERM)
        assert service.ended() == 0
    assert states(data) == ["completed"]


def test_a_second_one_gives_it_back(data: Path, tmp_path: Path) -> None:
    write_plugin(tmp_path / "plugins", "time.sleep(600)")
    with Serving(data, plugins=tmp_path / "plugins") as service:
        at_work(service)
        service.send(signal.SIGTERM)
        service.until_told("running tasks finish")
        service.send(signal.SIGTERM)
        service.until_told("given back")
        assert service.ended() == 0
    assert states(data) == ["pending"]


def test_a_drain_that_takes_too_long_gives_it_back(data: Path, tmp_path: Path) -> None:
    write_plugin(tmp_path / "plugins", "time.sleep(600)")
    (data / "config.toml").write_text("[general]\ndrain_timeout_s = 0.5\n")
    with Serving(data, plugins=tmp_path / "plugins") as service:
        at_work(service)
        service.send(signal.SIGTERM)
        assert service.ended() == 0
    assert states(data) == ["pending"]


def test_a_command_to_end_ends_it(data: Path) -> None:
    with Serving(data) as service:
        service.until_told("READY=1")
        answer = asked(data, "/v1/commands", {"action": {"command": "Shutdown", "mode": "drain"}})
        assert answer["done"]
        assert service.ended() == 0


BREAKS = """
import sys
from malbox_tui.cli.app import main
from malbox_tui.engine import clock
from malbox_tui.engine.leases import LeaseKeeper

async def break_down(keeper):
    await clock.sleep(1)
    raise LookupError("no such lease")

LeaseKeeper.run = break_down
sys.exit(main(sys.argv[1:]))
"""


def test_an_engine_that_breaks_down_ends_it_and_the_log_has_the_details(data: Path) -> None:
    command = [sys.executable, "-c", BREAKS, "serve", "--data-dir", str(data)]
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert ended.returncode == 1
    assert "LookupError" in ended.stderr
    assert LOG_NAME in ended.stderr
    assert "Traceback" not in ended.stderr
    assert "no such lease" in (data / "logs" / LOG_NAME).read_text()


def test_two_folders_are_served_side_by_side(data: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    with Serving(data) as service, Serving(tmp_path / "other") as other:
        service.until_told("READY=1")
        other.until_told("READY=1")
        assert asked(data, "/health")["engine_id"] != asked(tmp_path / "other", "/health")["engine_id"]


def at_work(service: Serving) -> None:
    """A task runs its plugin."""
    service.until_told("READY=1")
    with connected(service.data / "control.sock", PATIENCE_S) as reader:
        reader.sendall(b"GET /v1/events HTTP/1.1\r\nhost: engine\r\n\r\n")
        asked(service.data, "/v1/samples?name=x", {})
        seen = b""
        while b'"PluginStarted"' not in seen:
            seen += reader.recv(65536)


def states(data: Path) -> list[str]:
    """Of all tasks, when no engine runs."""
    command = [sys.executable, "-m", "malbox_tui", "tasks", "--data-dir", str(data), "--json"]
    listed = subprocess.run(command, capture_output=True, check=True).stdout
    return [json.loads(line)["state"] for line in listed.splitlines()]


# --- what is written of it -----------------------------------------------------------------------------------------------------


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_examples_of_the_readme_work_as_printed(tmp_path: Path) -> None:
    (block,) = re.findall(r"```sh\n(cd ~/.local/share/malbox-tui\n.*?)```", (ROOT / "README.md").read_text(), re.S)
    data = tmp_path / ".local" / "share" / "malbox-tui"
    data.mkdir(parents=True, mode=0o700)
    change_folder, *examples = block.splitlines()
    with Serving(data) as service:
        service.until_told("READY=1")
        for example in examples:
            environment = {**os.environ, "HOME": str(tmp_path)}
            script = f"set -eu\n{change_folder}\n{example} --fail-with-body"
            done = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, check=False, timeout=PATIENCE_S)
            assert done.returncode == 0, (example, done.stdout, done.stderr)
            assert done.stdout, example
            if "/v1/samples" in example:
                assert json.loads(done.stdout)["type"] == "accepted"
                until_completed(data)


def until_completed(data: Path) -> None:
    """Read the event stream until the task has ended, or has already."""
    with connected(data / "control.sock", PATIENCE_S) as connection:
        connection.sendall(b"GET /v1/events HTTP/1.1\r\nhost: engine\r\n\r\n")
        seen = b""
        while b'"TaskCompleted"' not in seen and b'"completed":1' not in seen:
            seen += connection.recv(65536)


def asked(data: Path, target: str, value: object = None) -> dict[str, Any]:
    """What is answered to a GET request, or to a POST request with a value."""
    body = b"" if value is None else json.dumps(value).encode()
    method = "GET" if value is None else "POST"
    head = f"{method} {target} HTTP/1.1\r\nhost: engine\r\nconnection: close\r\ncontent-length: {len(body)}\r\n\r\n"
    with connected(data / "control.sock", PATIENCE_S) as connection:
        connection.sendall(head.encode() + body)
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
    value = json.loads(answer.partition(b"\r\n\r\n")[2])
    assert isinstance(value, dict)
    return value


# --- the unit --------------------------------------------------------------------------------------------------------------------

BREAKS_BUBBLEWRAP = {
    "MemoryDenyWriteExecute",
    "PrivateUsers",
    "ProcSubset",
    "ProtectControlGroups",
    "ProtectHostname",
    "ProtectKernelLogs",
    "ProtectKernelTunables",
    "ProtectProc",
    "RestrictNamespaces",
}


def unit_keys() -> dict[str, str]:
    return dict(line.split("=", 1) for line in UNIT.read_text().splitlines() if re.match(r"[A-Z]\w+=", line))


def test_the_unit_leaves_bubblewrap_what_it_needs() -> None:
    keys = unit_keys()
    assert BREAKS_BUBBLEWRAP & keys.keys() == set()
    assert (keys["Type"], keys["KillMode"]) == ("notify", "mixed")
    assert int(keys["WatchdogSec"]) > 0


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace("/opt/malbox-tui/.venv/bin/malbox-tui", sys.executable))
    found = subprocess.run(["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout, found.stderr) == (0, "", "")


@pytest.mark.skipif(shutil.which("bwrap") is None or os.geteuid() != 0, reason="bubblewrap is not installed, or this is not root")
def test_bubblewrap_works_without_rights_and_the_way_to_them() -> None:
    """What the unit takes away that a plain process has."""
    rights = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all", "--no-new-privs")
    outer = ("unshare", "--user", "--map-current-user", "--pid", "--fork", "--kill-child", "--")
    spaces = ("--unshare-user", "--disable-userns", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts")
    inner = ("bwrap", *spaces, "--hostname", "malbox", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "true")
    subprocess.run([*rights, *outer, *inner], check=True, timeout=PATIENCE_S)
