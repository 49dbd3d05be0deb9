"""The console's command on a real terminal: how it starts, how it ends, and what it leaves behind."""

from __future__ import annotations

import json
import signal
import stat
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from malbox_tui.cli.app import main
from malbox_tui.cli.console import STDERR_FILE
from tests.cli.terminal_rig import PATIENCE_S, Terminal, made, malbox
from tests.confine.rig import write_plugin

pytestmark = pytest.mark.slow

EMPTY = "No task yet"
RIGHT = b"\x1b[C"
ENTER = b"\r"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data folder whose configuration kills a plugin soon after it was asked to stop."""
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    (folder / "config.toml").write_text("[analysis]\ncancel_grace_s = 0.2\n[general]\nmax_workers = 1\n")
    return folder


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    folder = tmp_path / "samples"
    folder.mkdir()
    for number in range(3):
        (folder / f"sample-{number}.txt").write_text(f"harmless {number}\n")
    return folder


@pytest.fixture
def plugins(tmp_path: Path) -> Path:
    """A folder with one plugin that takes ten minutes."""
    write_plugin(tmp_path / "plugins", "time.sleep(600)")
    return tmp_path / "plugins"


@pytest.fixture
def at_work(data: Path, samples: Path, plugins: Path) -> Iterator[Terminal]:
    """The console with one task running and two that wait."""
    with Terminal(made("slow", plugins, data, samples)) as terminal:
        terminal.until("sample-2.txt", "running")
        yield terminal


def left(terminal: Terminal) -> int:
    """The exit code after `q`, letting what may still run finish."""
    terminal.press(b"q")
    if terminal.shows("Leave the console?"):
        terminal.press(RIGHT + ENTER)
    return terminal.ended()


def states(data: Path) -> dict[str, int]:
    """How many tasks are in each state, once nobody holds the store."""
    listed = subprocess.run([*map(str, malbox(data, "tasks", "--json"))], stdout=subprocess.PIPE, check=True).stdout
    return dict(Counter(json.loads(line)["state"] for line in listed.splitlines()))


def log_files(data: Path) -> list[Path]:
    return sorted((data / "logs").glob("crash-*"))


# --- how it starts -------------------------------------------------------------------------------------------------------------


def test_without_paths_it_says_how_to_begin_and_leaves_at_once(data: Path) -> None:
    with Terminal(malbox(data)) as terminal:
        terminal.until(EMPTY)
        terminal.press(b"q")
        assert terminal.ended() == 0
        assert terminal.after_screen == "No task is left.\r\n"
        terminal.assert_as_before()


def test_saved_limits_that_are_in_effect_are_told_at_the_start(data: Path) -> None:
    (data / "config.limits.toml").write_text("[groups.default]\nmin_workers = 2\nmax_workers = 3\n")
    with Terminal(malbox(data)) as terminal:
        terminal.until("as saved")
        terminal.press(b"q")
        assert terminal.ended() == 0


def test_paths_become_tasks(data: Path, samples: Path) -> None:
    with Terminal(malbox(data, samples, "--priority", "7")) as terminal:
        terminal.until("sample-2.txt")
        terminal.until("completed")
        assert left(terminal) == 0
    assert set(states(data)) <= {"completed", "pending"}


def test_a_path_spelt_like_a_command_is_one_with_a_dot_and_a_slash(data: Path, tmp_path: Path) -> None:
    (tmp_path / "doctor").write_text("a sample")
    inside = f"cd {tmp_path} && exec {sys.executable} -m malbox_tui --data-dir {data} ./doctor"
    with Terminal(["sh", "-c", inside], {"PYTHONPATH": str(Path.cwd())}) as terminal:
        terminal.until("completed")
        assert left(terminal) == 0


@pytest.mark.parametrize(
    ("environment", "sentence"),
    [
        ({"TERM": "dumb"}, "a terminal of type dumb"),
        ({"TERM": ""}, "TERM is not set"),
        ({"PYTHONIOENCODING": "latin-1"}, "a UTF-8 locale such as LANG=C.UTF-8 (this one is iso8859-1)"),
        ({"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}, "a UTF-8 locale such as LANG=C.UTF-8"),
    ],
)
def test_a_terminal_that_cannot_show_it_is_refused_in_a_sentence(
    data: Path, samples: Path, environment: dict[str, str], sentence: str
) -> None:
    with Terminal(malbox(data, samples), environment) as terminal:
        assert terminal.ended() == 2
        assert sentence in terminal.shown
        assert "`malbox-tui analyze PATH` works without." in terminal.shown
        terminal.assert_untouched()


def test_the_plain_c_locale_is_fine(data: Path) -> None:
    with Terminal(malbox(data), {"LC_ALL": "C"}) as terminal:
        terminal.until(EMPTY, "│")
        terminal.press(b"q")
        assert terminal.ended() == 0


def test_stdin_from_elsewhere_is_refused(data: Path) -> None:
    with Terminal(malbox(data), stdin=subprocess.DEVNULL) as terminal:
        assert terminal.ended() == 2
        assert "a terminal on stdin too" in terminal.shown
        terminal.assert_untouched()


def test_stderr_to_elsewhere_is_refused(data: Path) -> None:
    with Terminal(malbox(data), stderr=subprocess.PIPE) as terminal:
        assert terminal.ended() == 2
        assert terminal.process.stderr is not None
        assert b"a terminal on stderr too" in terminal.process.stderr.read()
        assert "a terminal on stderr too" in terminal.shown, "whoever sits there must see it too"
        terminal.assert_untouched()
        terminal.process.stderr.close()


def test_into_a_pipe_it_analyses(data: Path, samples: Path) -> None:
    with Terminal(malbox(data, samples), stdout=subprocess.PIPE) as terminal:
        assert terminal.process.stdout is not None
        table = terminal.process.stdout.read().decode()
        assert terminal.ended() == 0
        assert "sample-2.txt" in table
        assert "3 tasks in" in table
        terminal.process.stdout.close()


def test_into_a_pipe_without_paths_it_says_how_it_is_used(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "Usage: malbox-tui" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["/nowhere/x\x1b[31m"], r"There is no file or folder /nowhere/x\x1b[31m."),
        (["--", "nowhere"], "There is no file or folder nowhere."),
        (["--", "tasks"], "There is no file or folder tasks."),
        (["nowhere/a", "nowhere/b"], "None of the 2 paths is there; the first is nowhere/a."),
    ],
)
def test_paths_that_are_all_missing_are_said_before_the_screen_is_touched(data: Path, given: list[str], sentence: str) -> None:
    with Terminal(malbox(data, *given)) as terminal:
        assert terminal.ended() == 2
        assert terminal.shown == f"malbox-tui: {sentence}\r\n"
        terminal.assert_untouched()


def test_a_missing_path_beside_one_that_is_there_is_refused_on_the_screen(data: Path, samples: Path) -> None:
    with Terminal(malbox(data, samples, "/nowhere/x")) as terminal:
        terminal.until("sample-2.txt", "1 refused")
        assert left(terminal) == 0


def test_a_wrong_configuration_is_said_before_the_screen_is_touched(data: Path) -> None:
    (data / "config.toml").write_text("[general]\nmax_worker = 1\n")
    with Terminal(malbox(data)) as terminal:
        assert terminal.ended() == 2
        assert "general.max_workers" in terminal.shown
        terminal.assert_untouched()


@pytest.mark.parametrize("size", [(20, 5), (1, 1), (80, 24), (300, 100)])
def test_any_size_opens_and_leaves(data: Path, size: tuple[int, int]) -> None:
    with Terminal(malbox(data), size=size) as terminal:
        terminal.until("\x1b[?2004h")
        assert left(terminal) == 0
        terminal.assert_as_before()


def test_resizing_all_the_time_harms_nothing(data: Path, samples: Path) -> None:
    with Terminal(malbox(data, samples)) as terminal:
        terminal.until("sample-2.txt")
        for number in range(60):
            terminal.resize(20 + number * 7 % 200, 5 + number * 11 % 60)
            terminal.until("\x1b[")
        terminal.resize(140, 40)
        terminal.until("Events")
        assert left(terminal) == 0
        terminal.assert_as_before()
    assert not log_files(data)


# --- left by key ---------------------------------------------------------------------------------------------------------------


def test_q_asks_when_something_runs_and_staying_is_what_enter_means(at_work: Terminal) -> None:
    at_work.press(b"q")
    at_work.until("Leave the console?", "1 task is being worked on")
    at_work.press(ENTER)
    at_work.until("sample-2.txt")
    assert at_work.process.poll() is None


def test_leaving_may_keep_what_runs_for_the_next_start(at_work: Terminal, data: Path, samples: Path) -> None:
    at_work.press(b"q")
    at_work.until("Leave the console?")
    at_work.press(RIGHT * 2 + ENTER)
    assert at_work.ended() == 0
    assert at_work.after_screen == f"3 tasks are kept; `malbox-tui --data-dir {data}` goes on with them.\r\n"
    at_work.assert_as_before()
    assert states(data) == {"pending": 3}


def test_leaving_may_cancel_what_runs(at_work: Terminal, data: Path) -> None:
    at_work.press(b"q")
    at_work.until("Leave the console?")
    at_work.press(RIGHT * 4 + ENTER)
    assert at_work.ended() == 0
    assert "2 tasks are kept" in at_work.after_screen
    at_work.assert_as_before()
    assert states(data) == {"canceled": 1, "pending": 2}


def test_leaving_may_finish_what_runs(data: Path, samples: Path, tmp_path: Path) -> None:
    write_plugin(tmp_path / "plugins", "time.sleep(3)")
    with Terminal(made("slow", tmp_path / "plugins", data, samples)) as terminal:
        terminal.until("sample-2.txt", "running")
        terminal.press(b"q")
        terminal.until("Leave the console?")
        terminal.press(RIGHT + ENTER)
        assert terminal.ended() == 0
        assert "2 tasks are kept" in terminal.after_screen
        terminal.assert_as_before()
    assert states(data) == {"completed": 1, "pending": 2}


def test_the_next_start_goes_on_with_what_was_kept(at_work: Terminal, data: Path) -> None:
    at_work.press(b"q")
    at_work.until("Leave the console?")
    at_work.press(RIGHT * 2 + ENTER)
    assert at_work.ended() == 0
    with Terminal(malbox(data)) as terminal:
        while states(data) != {"completed": 3}:
            assert terminal.process.poll() is None
        assert left(terminal) == 0


# --- ended by a signal ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_a_signal_gives_back_what_runs(at_work: Terminal, data: Path, number: signal.Signals) -> None:
    at_work.send(number)
    assert at_work.ended() == 128 + number
    assert f"Ended by {number.name}: 3 tasks are kept" in at_work.after_screen
    at_work.assert_as_before()
    assert states(data) == {"pending": 3}


def test_sigterm_lets_what_runs_finish(data: Path, samples: Path, tmp_path: Path) -> None:
    write_plugin(tmp_path / "plugins", "time.sleep(3)")
    with Terminal(made("slow", tmp_path / "plugins", data, samples)) as terminal:
        terminal.until("sample-2.txt", "running")
        terminal.send(signal.SIGTERM)
        assert terminal.ended() == 128 + signal.SIGTERM
        assert "Ended by SIGTERM: 2 tasks are kept" in terminal.after_screen
        terminal.assert_as_before()
    assert states(data) == {"completed": 1, "pending": 2}


def test_a_second_sigterm_gives_back(at_work: Terminal, data: Path) -> None:
    at_work.send(signal.SIGTERM)
    at_work.until("stopping")
    at_work.send(signal.SIGTERM)
    assert at_work.ended() == 128 + signal.SIGTERM
    assert "Ended by SIGTERM: 3 tasks are kept" in at_work.after_screen
    at_work.assert_as_before()
    assert states(data) == {"pending": 3}


def test_a_signal_before_there_is_anything_to_see_is_not_forgotten(data: Path, samples: Path) -> None:
    with Terminal(malbox(data, samples)) as terminal:
        while not (data / "logs" / "malbox-tui.log").exists():
            assert terminal.process.poll() is None
        terminal.send(signal.SIGTERM)
        assert terminal.ended() in (128 + signal.SIGTERM, -signal.SIGTERM)


def test_a_lost_terminal_gives_back_what_runs(at_work: Terminal, data: Path) -> None:
    at_work.hang_up()
    assert at_work.ended() == 128 + signal.SIGHUP
    assert states(data) == {"pending": 3}
    assert not log_files(data)


def test_a_lost_terminal_is_noticed_where_no_hangup_is_sent(data: Path, samples: Path, plugins: Path) -> None:
    command = made("slow", plugins, data, samples)
    with Terminal([sys.executable, "-c", IGNORING_HANGUP, *command]) as terminal:
        terminal.until("sample-2.txt", "running")
        terminal.hang_up()
        assert terminal.ended() == 128 + signal.SIGHUP
    assert states(data) == {"pending": 3}


IGNORING_HANGUP = """
import os, signal, sys
signal.signal(signal.SIGHUP, signal.SIG_IGN)
os.execv(sys.argv[1], sys.argv[1:])
"""


def test_a_screen_that_hangs_is_left_behind_when_the_engine_has_ended(data: Path, tmp_path: Path) -> None:
    hangs = tmp_path / "hangs"
    with Terminal(made("deaf", hangs, data)) as terminal:
        terminal.until(EMPTY)
        terminal.press(b"?")
        while not hangs.exists():
            assert terminal.process.poll() is None
        terminal.send(signal.SIGINT)
        assert terminal.ended() == 128 + signal.SIGINT
        terminal.assert_as_before()


def test_a_stopped_terminal_keeps_nobody_from_ending_it(data: Path, samples: Path) -> None:
    with Terminal(malbox(data, samples)) as terminal:
        terminal.until("Events")
        for number in range(50):
            terminal.resize(100 + number, 40)
        terminal.send(signal.SIGINT)
        assert terminal.process.wait(PATIENCE_S) == 128 + signal.SIGINT


def test_after_a_kill_the_store_is_sane(at_work: Terminal, data: Path) -> None:
    at_work.process.kill()
    assert at_work.ended() == -signal.SIGKILL
    with Terminal(malbox(data)) as terminal:
        while states(data) != {"completed": 3}:
            assert terminal.process.poll() is None
        assert left(terminal) == 0


# --- broken --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("method", "key"), [("overview", b""), ("do", b"p")])
def test_a_breakdown_gives_back_names_a_file_and_tells_no_secret(
    data: Path, samples: Path, method: str, key: bytes, tmp_path: Path
) -> None:
    with Terminal(made("broken", method, data, samples)) as terminal:
        if key:
            terminal.until("sample-2.txt")
            terminal.press(key)
        assert terminal.ended() == 1
        terminal.assert_as_before()
        (report,) = log_files(data)
        assert f"unexpected LookupError; {report} has the details." in terminal.after_screen
        assert "\x1b" not in terminal.after_screen
        assert "Traceback" not in terminal.shown
    assert stat.S_IMODE(report.stat().st_mode) == 0o600
    details = report.read_text()
    assert r"LookupError: no such thing \x1b[31m, 7 letters" in details
    assert "in _raise" in details
    assert stat.S_IMODE((data / "logs" / STDERR_FILE).stat().st_mode) == 0o600
    everything = terminal.shown + "".join(path.read_text() for path in (data / "logs").iterdir())
    assert "hunter2" not in everything
    assert set(states(data)) <= {"pending", "completed"}


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [("OTHER", "The engine ended with an unexpected LookupError; {log} has the details."), ("STORE", "The store is gone.")],
)
def test_an_engine_that_dies_under_the_console_is_told_and_the_next_start_goes_on(
    data: Path, samples: Path, kind: str, sentence: str
) -> None:
    log = data / "logs" / "malbox-tui.log"
    with Terminal(made("dying", kind, data, samples)) as terminal:
        terminal.until("sample-2.txt")
        terminal.press(b"?")
        assert terminal.ended() == 1
        terminal.assert_as_before()
        assert f"malbox-tui: {sentence.format(log=log)}\r\n" in terminal.after_screen
        assert "Traceback" not in terminal.shown
    assert "Traceback" in log.read_text()
    assert not log_files(data)
    subprocess.run([*map(str, malbox(data, "analyze"))], stdout=subprocess.DEVNULL, check=True)
    assert states(data) == {"completed": 3}


def test_a_breakdown_that_is_no_ordinary_error_is_told_as_well(data: Path) -> None:
    with Terminal(made("fatal", "", data)) as terminal:
        terminal.until(EMPTY)
        terminal.press(b"?")
        assert terminal.ended() == 1
        terminal.assert_as_before()
        (report,) = log_files(data)
        assert f"unexpected Fatal; {report} has the details." in terminal.after_screen
        assert "Traceback" not in terminal.shown


def test_an_end_that_nobody_chose_is_no_success(data: Path) -> None:
    with Terminal(made("leaving", "", data)) as terminal:
        terminal.until(EMPTY)
        terminal.press(b"?")
        assert terminal.ended() == 1
        terminal.assert_as_before()
        assert "The console ended though nobody had asked it to." in terminal.after_screen


def test_what_ends_a_thread_is_logged_and_off_the_screen(data: Path) -> None:
    log = data / "logs" / "malbox-tui.log"
    with Terminal(made("thread", "no such thing", data)) as terminal:
        terminal.until(EMPTY)
        terminal.press(b"?")
        while "LookupError: no such thing" not in log.read_text():
            assert terminal.process.poll() is None
        assert left(terminal) == 0
        assert "LookupError" not in terminal.shown
