"""Hints that something changed in a folder, from the kernel. They may be lost, and are never needed: they only make it quicker."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from watchfiles import watch

log = logging.getLogger(__name__)

DEBOUNCE_MS = 100
"""Changes that follow each other faster are one hint."""
STEP_MS = 20
"""How often it is looked whether more came, or the end."""


class FolderHints:
    """Calls `on_hint` in a thread of its own, from now until `close`, or until the kernel watches no more (`is_over`)."""

    def __init__(self, path: str, on_hint: Callable[[], None], *, recursive: bool) -> None:
        self._path = path
        self._on_hint = on_hint
        self._recursive = recursive
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._live, name="malbox folder hints", daemon=True)
        logging.getLogger("watchfiles").setLevel(logging.WARNING)  # It tells of each change, and the log has better to tell.
        self._thread.start()

    @property
    def is_over(self) -> bool:
        """Whether no hint comes any more."""
        return not self._thread.is_alive()

    def close(self) -> None:
        """End it; returns at once."""
        self._ended.set()

    def _live(self) -> None:
        changes = watch(
            self._path,
            watch_filter=None,
            debounce=DEBOUNCE_MS,
            step=STEP_MS,
            stop_event=self._ended,
            raise_interrupt=False,
            recursive=self._recursive,
            ignore_permission_denied=True,
        )
        try:
            for _ in changes:
                self._on_hint()
        except (OSError, RuntimeError) as error:  # RuntimeError: what the watcher itself calls its errors, and a closed loop
            log.info("no hints for %s: %s", self._path, error)
