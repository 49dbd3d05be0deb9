"""Writing an export to a file: it appears under its name when it is whole, readable by its owner alone."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from malbox_tui.model.errors import MalboxError
from malbox_tui.model.sample import escape


class NotWritten(MalboxError):
    """A file that was asked for can't be written."""

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(f"{escape(os.fsencode(path))} can't be written: {problem}.")


def write_file(path: Path, text: str) -> None:
    """Write `text` to `path`, replacing a file that is there. Blocking. Raises `NotWritten`; what was there is left then."""
    if path.exists() and not path.is_file():
        raise NotWritten(path, "there is something else of that name, which is no file")
    partial: str | None = None
    try:
        descriptor, partial = tempfile.mkstemp(prefix=f".{path.name[:50]}.", dir=path.parent)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
        Path(partial).replace(path)
        partial = None
    except (OSError, ValueError) as exc:
        raise NotWritten(path, str(getattr(exc, "strerror", None) or exc)) from exc
    finally:
        if partial is not None:
            Path(partial).unlink(missing_ok=True)
