"""The dashboard: header, task table, workers, machines, timelines and events on one screen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import Screen
from textual.widgets import Static

from malbox_tui.model.overview import Overview
from malbox_tui.model.queries import TaskFilter
from malbox_tui.model.task import OWNED_STATES, TaskState
from malbox_tui.tui import keys
from malbox_tui.tui.console import Surroundings
from malbox_tui.tui.feed import Changes
from malbox_tui.tui.groups import GroupChoice
from malbox_tui.tui.intake_run import IntakeRun
from malbox_tui.tui.live import LivePicture
from malbox_tui.tui.moment import Moment
from malbox_tui.tui.past import timeline_legend
from malbox_tui.tui.screens.dialogs import Prompt
from malbox_tui.tui.text import counted, plain, sentence
from malbox_tui.tui.widgets.intake_progress import IntakeProgress
from malbox_tui.tui.widgets.key_bar import KeyBar
from malbox_tui.tui.widgets.line_view import LineView
from malbox_tui.tui.widgets.machines import MachinesPane
from malbox_tui.tui.widgets.panes import Banner, EventLog, HeaderBar, Timelines, WorkerStrip
from malbox_tui.tui.widgets.task_table import TaskTable

VIEWS: tuple[tuple[str, frozenset[TaskState] | None], ...] = (
    ("all", None),
    ("active", OWNED_STATES),
    ("waiting", frozenset({TaskState.PENDING})),
    ("ended", frozenset({TaskState.COMPLETED, TaskState.CANCELED, TaskState.FAILED, TaskState.TIMED_OUT})),
    ("failed", frozenset({TaskState.FAILED, TaskState.TIMED_OUT})),
)

HOW_TO_BEGIN = (
    "No task yet.",
    "",
    "Drop files or a folder on this window, or press a to type a path.",
    "? shows all keys.",
)

RESIZING = "[ ] max  { } min  s save"
"""What the border of the workers says of their keys."""

OWNER = "owner:"
"""How a filter for whom tasks belong to begins."""

SIGHTS = ("-machines-below", "-events-below")
"""Classes of a small screen that shows another pane in the place of the timelines."""

NONE_MATCHES = ("No task matches.", "", "v shows another view, / searches for something else.")


class Dashboard(Screen[None]):
    """What an operator looks at. Keys that change what is shown are its own; what they order of the engine is the app's."""

    BINDINGS: ClassVar[list[BindingType]] = keys.bindings(keys.DASHBOARD)
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-normal"), (150, "-wide")]  # noqa: RUF012 - as the base declares it

    def __init__(
        self, picture: LivePicture, moment: Callable[[], Moment], around: Surroundings, runs: Sequence[IntakeRun] = ()
    ) -> None:
        """`runs` are the intakes of this console that are under way."""
        super().__init__()
        self._picture = picture
        self._moment = moment
        self._view = 0
        self._shown = 0
        self._needle = ""
        self._sums: tuple[str, ...] = ()
        self._title: object = None
        self._offered = (False, False)
        self.groups = GroupChoice()
        self.header = HeaderBar(picture, self.groups, moment, around.host, around.attachment)
        self.progress = IntakeProgress(runs, moment)
        self.banner = Banner(picture, moment, around.away_notice)
        self.tasks = TaskTable(around.client.query, moment, id="tasks")
        self.worker_strip = WorkerStrip(picture, self.groups, moment)
        self.machines = MachinesPane(picture, moment)
        self.timelines = Timelines(picture, moment)
        self.events = EventLog(picture, moment, around.time_of_day)
        self._too_small = Static(plain("The terminal is too small: 60×16 at least."), id="too-small")

    def compose(self) -> ComposeResult:
        """See `Screen`."""
        yield self.header
        yield self.banner
        yield self.progress
        yield self._too_small
        with Horizontal(id="panes"):
            with Vertical(id="left"):
                yield self.tasks
                yield self.timelines
            with Vertical(id="right"):
                yield self.worker_strip
                yield self.machines
                yield self.events
        yield KeyBar()

    def on_mount(self) -> None:
        """Titles, and the focus on the tasks."""
        self.worker_strip.border_title = "Workers"
        self.worker_strip.border_subtitle = plain(RESIZING)
        self.timelines.border_title = "Timelines"
        self.timelines.border_subtitle = timeline_legend()
        self.events.border_title = "Events"
        self.tasks.focus()
        self._entitle()

    async def show(self, changes: Changes) -> None:
        """Draw what changed."""
        if changes.tasks:
            await self.tasks.fetch()
            self.banner.problem = self.tasks.problem
        self.worker_strip.changed()
        self.machines.changed()
        self.progress.changed()
        self._shown += 1
        if self._shown % 2:
            for pane in (self.header, self.banner, self.timelines, self.events):
                pane.changed()
        self._entitle()

    def tick(self) -> None:
        """Draw what moves with time alone."""
        for pane in (
            self.header,
            self.banner,
            self.progress,
            self.tasks,
            self.worker_strip,
            self.machines,
            self.timelines,
            self.events,
        ):
            pane.changed()
        self._entitle()

    # --- keys --------------------------------------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """See `Screen`: what there is nothing for is not offered."""
        overview = self._picture.overview
        if action == "machines":
            return overview is not None and bool(overview.machines)
        if action == "next_group":
            return overview is not None and len(overview.groups) > 1
        return True

    def action_next_view(self) -> None:
        """Show the next of the views."""
        self._view = (self._view + 1) % len(VIEWS)
        self._apply()

    async def action_filter(self) -> None:
        """Ask what to search for."""
        hint = "Part of a name, or the beginning of a SHA-256 (six digits at least), or owner:NAME. Empty shows all."
        await self.app.push_screen(Prompt("Filter", hint, self._needle), self._filter_chosen)

    def action_zoom(self) -> None:
        """Timelines over another length of time."""
        self.timelines.zoom()

    def action_next_group(self) -> None:
        """Choose the next worker group for the keys that resize one."""
        if self._picture.overview is not None:
            self.groups.go_on(self._picture.overview)
            self.header.changed()
            self.worker_strip.show_group()

    def action_machines(self) -> None:
        """Go to the machines, or back to the tasks."""
        self._turn_to(self.machines, "-machines-below")

    def action_events(self) -> None:
        """Go to the event log, or back to the tasks."""
        self._turn_to(self.events, "-events-below")

    def _turn_to(self, pane: LineView, sight: str) -> None:
        """Focus a pane, which on a small screen takes the place of the timelines; the tasks when it has the focus."""
        is_there = pane.has_focus
        for name in SIGHTS:
            self.set_class(name == sight and not is_there, name)
        self.set_focus(self.tasks if is_there else pane, scroll_visible=False)

    def show_machines(self) -> None:
        """Go to the machines, if that is not where the focus is."""
        if not self.machines.has_focus:
            self.action_machines()

    def show_sums(self, sums: Sequence[str]) -> None:
        """Show the tasks of these contents alone, until something else is searched for."""
        self._sums, self._needle = tuple(sums), ""
        self._view = 0
        self._apply()

    def _filter_chosen(self, needle: str | None) -> None:
        if needle is not None:
            self._needle, self._sums = needle, ()
            self._apply()

    @property
    def needle(self) -> str:
        """What is searched for."""
        return self._needle

    async def on_task_table_moved(self) -> None:
        """The window may have to follow the cursor."""
        await self.tasks.fetch()

    def on_resize(self) -> None:
        """Say so when nothing useful fits."""
        self.set_class(self.size.width < 60 or self.size.height < 16, "-too-small")

    def _apply(self) -> None:
        states = VIEWS[self._view][1]
        needle = self._needle.strip()
        of_owner = needle.startswith(OWNER)
        by_sum = len(needle) >= 6 and all(char in "0123456789abcdefABCDEF" for char in needle)
        where = TaskFilter(
            states=states,
            sha256_prefix=needle if by_sum else None,
            sha256s=self._sums or None,
            name_contains=needle.encode("utf-8", "surrogateescape") if needle and not by_sum and not of_owner else None,
            owner=needle.removeprefix(OWNER).strip() if of_owner else None,
        )
        self.tasks.show(where, self.tasks.sort)
        self.run_worker(self.tasks.fetch(), exclusive=True, group="fetch")
        self._entitle()

    def _entitle(self) -> None:
        overview = self._picture.overview
        self._offer(overview)
        view = VIEWS[self._view][0]
        title = plain(f"Tasks · {view} {self.tasks.total}")
        if self._sums:
            title.append(f" · / {counted(len(self._sums), 'sum')}")
        if self._needle:
            title.append(" · / ")
            title.append_text(sentence(self._needle))
        if title != self._title:
            self._title = self.tasks.border_title = title
        nothing = overview is None or not any(overview.counts.values())
        self.tasks.hint = HOW_TO_BEGIN if nothing else NONE_MATCHES

    def _offer(self, overview: Overview | None) -> None:
        """Panes and keys for what there is: machines, several worker groups."""
        offered = (overview is not None and bool(overview.machines), overview is not None and len(overview.groups) > 1)
        if offered != self._offered:
            self._offered = offered
            self.set_class(offered[0], "-has-machines")
            self.worker_strip.border_subtitle = plain(f"{'w group  ' if offered[1] else ''}{RESIZING}")
            self.refresh_bindings()
