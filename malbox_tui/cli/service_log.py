"""The log of a service: one JSON object a line, for programs to read, rotated, for the owner alone.

`at` (RFC 3339, UTC), `level`, `logger`, `process`, `message`, and `error` where there was one: its traceback.
"""

from __future__ import annotations

import logging

import msgspec

from malbox_tui.cli.log_file import PrivateFile
from malbox_tui.cli.text import timestamp
from malbox_tui.config.folders import DataFolders

LOG_NAME = "serve.jsonl"


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        fields = {
            "at": timestamp(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "process": record.process,
            "message": _encodable(record.getMessage()),
        }
        if record.exc_info:
            fields["error"] = _encodable(self.formatException(record.exc_info))
        return msgspec.json.encode(fields).decode()


def log_as_json(folders: DataFolders, level: str) -> None:
    """Send everything logged from `level` on (a name such as "info") to `serve.jsonl` in the log folder, which has to exist.

    Raises `StoreError` when the file can't be written.
    """
    handler = PrivateFile.at(folders.logs / LOG_NAME)
    handler.setFormatter(_JsonLines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.captureWarnings(capture=True)


def _encodable(text: str) -> str:
    """Undecodable bytes of a name come as surrogates, which no JSON text may hold."""
    return text.encode("utf-8", "backslashreplace").decode()
