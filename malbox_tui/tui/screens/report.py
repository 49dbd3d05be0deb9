"""The reports on one task, whole: long tables and trees scroll."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import Screen

from malbox_tui.model.errors import Disconnected, EngineStopped, MalboxError
from malbox_tui.model.queries import TaskRecord
from malbox_tui.model.report import ResultRef
from malbox_tui.ports import Client
from malbox_tui.reports.blocks import elements_of
from malbox_tui.reports.gathering import PluginReport, gathered
from malbox_tui.reports.pictures import pictures_named
from malbox_tui.tui import keys
from malbox_tui.tui.columns import name_cell
from malbox_tui.tui.moment import Moment
from malbox_tui.tui.notices import say
from malbox_tui.tui.pictures import Gallery, Picture, Unshowable
from malbox_tui.tui.screens.exporting import ask_where
from malbox_tui.tui.task_page import in_order
from malbox_tui.tui.text import joined_cells, plain
from malbox_tui.tui.widgets.key_bar import KeyBar
from malbox_tui.tui.widgets.report_view import ReportView

READ_AGAIN_S = 1.0
"""How long after the engine could not be reached it is asked again."""
MOST_PICTURES = 16
"""So many of a task's reports are shown; of the others there are their names."""
NO_COLOURS = Unshowable("this terminal has no colours")


class ReportScreen(Screen[None]):
    """What all plugins reported on a task as it was when this was opened."""

    AUTO_FOCUS = "#report"
    BINDINGS: ClassVar[list[BindingType]] = keys.bindings(keys.REPORT_SCREEN)

    def __init__(self, record: TaskRecord, client: Client, gallery: Gallery, moment: Callable[[], Moment]) -> None:
        super().__init__()
        self.record = record
        self._client = client
        self._gallery = gallery
        self._moment = moment
        self._view = ReportView(moment, self._entitle, id="report")

    def compose(self) -> ComposeResult:
        """See `Screen`."""
        yield self._view
        yield KeyBar()

    def on_mount(self) -> None:
        """Read them."""
        self._entitle()
        self.watch(self.app, "theme", self._view.changed, init=False)
        self.run_worker(self._read(), name="reports")

    async def _read(self) -> None:
        try:
            reports = await gathered(self._client.read, in_order(self.record.task.plugins), self.record.results_removed_at)
            pictures: dict[ResultRef, Picture | Unshowable | None] = dict.fromkeys(_named(reports))
            self._view.show(reports, pictures)
            self._entitle()
            for reference in pictures:
                pictures[reference] = await self._picture(reference)
            self._view.show_pictures(pictures)
        except EngineStopped:
            return
        except Disconnected:  # which the page says above
            self.set_timer(READ_AGAIN_S, self._read)
            return
        except MalboxError as error:
            say(self.app, str(error), bad=True)
        self._entitle()

    async def _picture(self, reference: ResultRef) -> Picture | Unshowable:
        return NO_COLOURS if self.app.no_color else await self._gallery.picture(reference)

    async def action_back(self) -> None:
        """To the task."""
        await self.app.pop_screen()

    def action_export(self) -> None:
        """Ask for a file, and write the report to it."""
        ask_where(self.app, self.record, self._client)

    def _entitle(self) -> None:
        first, last, total, title = self._view.place
        name = joined_cells([plain(f"Task {self.record.task.id}"), name_cell(self.record, self._moment())], " · ")
        self._view.border_title = joined_cells([name, plain(title)], " · ") if title else name
        self._view.border_subtitle = plain(f"{first}–{last} of {total}")


def _named(reports: Iterable[PluginReport]) -> Iterator[ResultRef]:
    return islice((found for part in reports for found in pictures_named(part, elements_of(part.content))), MOST_PICTURES)
