"""One content in full: what the latest reports on it come to, its names, notes and tags, and each of its tasks."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import Static

from malbox_tui.model.errors import EngineStopped, MalboxError
from malbox_tui.model.queries import TaskFilter, TaskPage, TaskQuery
from malbox_tui.ports import Client
from malbox_tui.tui import keys
from malbox_tui.tui.moment import Moment
from malbox_tui.tui.sample_page import SHOWN_TASKS, sample_lines
from malbox_tui.tui.task_page import unreadable_lines
from malbox_tui.tui.widgets.key_bar import KeyBar

MARGIN_CELLS = 4
"""What the page's padding and its scroll bar take."""


class SampleScreen(Screen[None]):
    """Everything about one content. Arrows scroll."""

    AUTO_FOCUS = "#sample-scroll"
    BINDINGS: ClassVar[list[BindingType]] = keys.bindings(keys.SAMPLE_SCREEN)

    def __init__(self, sha256: str, client: Client, moment: Callable[[], Moment]) -> None:
        super().__init__()
        self.sha256 = sha256
        self._client = client
        self._moment = moment
        self._found: TaskPage | None = None
        self._page = Static(id="sample-page")

    @property
    def found(self) -> TaskPage | None:
        """Its tasks, the latest ones, as they were seen last."""
        return self._found if self._found is not None and self._found.rows else None

    @property
    def tags(self) -> tuple[str, ...]:
        """Those that it had when it was seen last."""
        return self._found.rows[0].sample.tags if self._found is not None and self._found.rows else ()

    def compose(self) -> ComposeResult:
        """See `Screen`."""
        with VerticalScroll(id="sample-scroll"):
            yield self._page
        yield KeyBar()

    async def on_mount(self) -> None:
        """Read it."""
        await self.reread()

    def on_resize(self) -> None:
        """Its lines have another width."""
        self.call_after_refresh(self.tick)

    async def reread(self) -> None:
        """Ask for its tasks again. What was seen last stays when they can't be read."""
        try:
            self._found = await self._client.query(TaskQuery(where=TaskFilter(sha256_prefix=self.sha256), limit=SHOWN_TASKS))
        except EngineStopped:
            raise
        except MalboxError as error:
            if self._found is None:
                self._page.update(Text("\n").join(unreadable_lines("Sample", str(error), self._moment())))
            return
        self.tick()

    def tick(self) -> None:
        """Draw it, with the times that move."""
        found = self._found
        if found is None:
            return
        if not found.rows:
            self._page.update(Text("\n").join(unreadable_lines("Sample", f"{self.sha256} is not kept any more.", self._moment())))
            return
        tasks = [row.task for row in found.rows]
        width = max(2, self.size.width - MARGIN_CELLS)
        lines = sample_lines(found.rows[0].sample, tasks, found.total, self._moment(), width)
        self._page.update(Text("\n").join(lines))
