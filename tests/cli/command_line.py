"""The command line in this process, on a data folder of its own: what it prints and how it exits."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from malbox_tui.cli.app import main


@dataclass(frozen=True)
class Said:
    """What one command line came to."""

    code: int
    out: str
    err: str

    @property
    def records(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


class CommandLine:
    """`malbox("cancel", 3)` runs `malbox-tui cancel 3` on the folder `data`."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.data = folder / "data"
        self._samples = folder / "samples"
        self._samples.mkdir()
        self._capsys = capsys

    def __call__(self, *words: object) -> Said:
        self._capsys.readouterr()
        with kept_logging():
            code = main(["--data-dir", str(self.data), *map(str, words)])
        shown = self._capsys.readouterr()
        return Said(code, shown.out, shown.err)

    def sample(self, name: str, content: str | None = None) -> Path:
        path = self._samples / name
        path.write_text(name if content is None else content)
        return path

    def submit(self, *names: str) -> None:
        """Tasks 1, 2, … of files with these names, each its own content."""
        assert self("submit", *(self.sample(name) for name in names)).code == 0

    def states(self) -> dict[int, str]:
        return {task["id"]: task["state"] for task in self("tasks", "--json").records}


@contextmanager
def kept_logging() -> Iterator[None]:
    """Commands send the log to their file; afterwards it goes where it went."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    root.handlers.clear()
    try:
        yield
    finally:
        for handler in root.handlers:
            handler.close()
        root.handlers[:] = handlers
        root.setLevel(level)
        logging.captureWarnings(capture=False)
