"""The details of a crash, in a file for its owner alone: where it was and what was raised, never the values of variables."""

from __future__ import annotations

import os
import platform
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from malbox_tui.cli.text import sentence, timestamp


def write_crash_report(error: BaseException, folder: Path, now: float) -> Path:
    """A new file in `folder` (0600) about `error` at the time `now`. Raises `OSError` when it can't be written."""
    moment = datetime.fromtimestamp(now, UTC).strftime("%Y%m%d-%H%M%S")
    path = folder / f"crash-{moment}-{os.getpid()}.txt"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.writelines(f"{line}\n" for line in _lines(error, now))
    return path


def _lines(error: BaseException, now: float) -> Iterator[str]:
    yield f"malbox-tui {version('malbox-tui')}, Textual {version('textual')}, Python {platform.python_version()}, {timestamp(now)}"
    yield f"{platform.system()} {platform.release()} {platform.machine()}, TERM={sentence(os.environ.get('TERM', ''))}"
    yield ""
    for chunk in traceback.TracebackException.from_exception(error, capture_locals=False).format():
        yield from map(sentence, chunk.splitlines())
