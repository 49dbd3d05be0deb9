"""A list of SHA-256 sums that was pasted: the tasks of those contents that are known here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from textual.app import App

from malbox_tui.model.errors import EngineStopped, MalboxError
from malbox_tui.model.queries import MAX_ROWS, TaskFilter, TaskQuery
from malbox_tui.ports import Client
from malbox_tui.tui.notices import say
from malbox_tui.tui.text import counted

MOST_SUMS, AT_ONCE = 1000, 250
"""So many of a list are looked for, and so many at once: a content may have several tasks, and an answer has an end."""


class KnownSums:
    """Shows them by `show_tasks`, and says how many there are."""

    def __init__(self, app: App[Any], client: Client, show_tasks: Callable[[Sequence[str]], None]) -> None:
        self._app = app
        self._client = client
        self._show_tasks = show_tasks

    def show(self, sums: Sequence[str]) -> None:
        """Look for these."""
        some = tuple(sums[:MOST_SUMS])
        self._show_tasks(some)
        self._app.run_worker(self._say(some, len(sums)), name="sums")

    async def _say(self, sums: Sequence[str], named: int) -> None:
        known: set[str] = set()
        try:
            for start in range(0, len(sums), AT_ONCE):
                where = TaskFilter(sha256s=tuple(sums[start : start + AT_ONCE]))
                known |= {row.sample.sha256 for row in (await self._client.query(TaskQuery(where=where, limit=MAX_ROWS))).rows}
        except EngineStopped:
            return
        except MalboxError as error:
            say(self._app, str(error), bad=True)
            return
        more = f" Only the first {len(sums):,} of {named:,} were looked for." if named > len(sums) else ""
        say(self._app, f"{len(known):,} of {counted(len(sums), 'sum')} {'is' if len(known) == 1 else 'are'} known here.{more}")
