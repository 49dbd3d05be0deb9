"""What the engine has trouble with reaches the person who waits for it."""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from malbox_tui.cli.log_file import log_to_file
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
    log_to_file(folders, "info")
    (handler,) = logging.getLogger().handlers
    assert isinstance(handler, logging.StreamHandler)
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, handler.stream.fileno())
    os.close(full)
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
        os.write(handler.stream.fileno(), b"it is full")
    log.warning("the disk is full")
    log.warning("it still is")
    assert capsys.readouterr() == ("", "")


def test_the_log_is_the_owners_alone_whatever_the_umask(folders: DataFolders) -> None:
    former = os.umask(0)
    try:
        log_to_file(folders, "info")
    finally:
        os.umask(former)
    assert (folders.logs / "malbox-tui.log").stat().st_mode & 0o777 == 0o600
