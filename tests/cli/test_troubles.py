"""What the engine has trouble with reaches the person who waits for it."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from malbox_tui.cli import log_file
from malbox_tui.cli.log_file import log_to_file
from malbox_tui.cli.service_log import log_as_json
from malbox_tui.cli.troubles import REPEAT_S, troubles_told
from malbox_tui.config.folders import DataFolders

log = logging.getLogger("malbox_tui.engine.lifecycle")


@pytest.fixture
def folders(tmp_path: Path) -> Iterator[DataFolders]:
    """Folders with a log file to write to, and logging as it was afterwards."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    made = DataFolders.under(tmp_path)
    made.create()
    yield made
    for handler in root.handlers:
        if handler not in handlers:
            with suppress(OSError):
                handler.close()
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.captureWarnings(capture=False)


def test_a_trouble_is_told_when_it_comes_up_and_again_while_it_lasts() -> None:
    told: list[str] = []
    now = [0.0]
    with troubles_told(told.append, lambda: now[0]):
        for task_id, now[0] in ((1, 0.0), (2, 1.0), (3, REPEAT_S - 0.1), (4, REPEAT_S)):
            log.warning("task %d could not be stored: %s", task_id, "\x1b[31mfull")
        log.warning("another trouble")
        log.info("no trouble")
        logging.getLogger("malbox_tui.store").warning("not the engine's")
    log.warning("too late")
    assert told == [
        r"task 1 could not be stored: \x1b[31mfull",
        r"task 4 could not be stored: \x1b[31mfull",
        "another trouble",
    ]


def test_a_log_that_cannot_be_written_prints_nothing(folders: DataFolders, capsys: pytest.CaptureFixture[str]) -> None:
    (folders.logs / "malbox-tui.log").symlink_to("/dev/full")
    log_to_file(folders, "info")
    log.warning("the disk is full")
    log.warning("it still is")
    assert capsys.readouterr() == ("", "")
    (folders.logs / "malbox-tui.log").unlink()
    log.warning("there is room")
    assert "there is room" in (folders.logs / "malbox-tui.log").read_text()


@pytest.mark.parametrize("begin", [log_to_file, log_as_json])
def test_a_log_that_was_moved_or_removed_is_begun_anew(folders: DataFolders, begin: Callable[[DataFolders, str], None]) -> None:
    begin(folders, "info")
    log.info("first")
    (path,) = folders.logs.iterdir()
    path.rename(folders.root / "moved")
    log.info("second")
    assert ("first" in (folders.root / "moved").read_text(), "second" in path.read_text()) == (True, True)
    path.unlink()
    log.info("third")
    assert ("second" in path.read_text(), "third" in path.read_text()) == (False, True)
    shutil.rmtree(folders.logs)
    log.info("fourth")
    assert ("fourth" in path.read_text(), path.stat().st_mode & 0o777) == (True, 0o600)


def test_a_log_that_two_write_is_rotated_for_both(folders: DataFolders, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_file, "_MAX_BYTES", 1000)
    ours, theirs = (log_file.PrivateFile.at(folders.logs / "log") for _ in range(2))
    for number in range(40):
        for who, handler in (("ours", ours), ("theirs", theirs)):
            handler.emit(logging.makeLogRecord({"msg": f"{number} {who} {'.' * 50}"}))
    ours.close()
    theirs.close()
    kept = [line.split()[:2] for path in sorted(folders.logs.iterdir(), reverse=True) for line in path.read_text().splitlines()]
    assert len(list(folders.logs.iterdir())) == 4
    assert kept == [[str(number), who] for number in range(40) for who in ("ours", "theirs")][-len(kept) :]


def test_the_log_is_the_owners_alone_whatever_the_umask(folders: DataFolders) -> None:
    former = os.umask(0)
    try:
        log_to_file(folders, "info")
    finally:
        os.umask(former)
    assert (folders.logs / "malbox-tui.log").stat().st_mode & 0o777 == 0o600
