"""The console's app: it opens the screens and carries out what keys ask for. All work is the engine's, behind the `Client`."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import ClassVar
from uuid import uuid4

from rich.text import Text
from textual import events
from textual.app import App, SystemCommand
from textual.binding import BindingType
from textual.filter import LineFilter
from textual.screen import Screen
from textual.worker import WorkerFailed

from malbox_tui.model.commands import (
    Action,
    CancelTasks,
    Command,
    CommandOutcome,
    PausePool,
    ResizeGroup,
    ResumePool,
    RetryTasks,
    SetPriority,
    ShutdownMode,
)
from malbox_tui.model.errors import EngineStopped, MalboxError
from malbox_tui.model.queries import TaskPage, TaskQuery, TaskRecord
from malbox_tui.model.submission import Accepted, Receipt
from malbox_tui.model.task import OWNED_STATES
from malbox_tui.tui import keys
from malbox_tui.tui.columns import Moment, name_cell
from malbox_tui.tui.console import Surroundings
from malbox_tui.tui.driver import TerminalDriver
from malbox_tui.tui.feed import SHOWN_PER_SECOND, Feed
from malbox_tui.tui.line_filter import SafeText
from malbox_tui.tui.live import LivePicture
from malbox_tui.tui.screens.add import AddSamples
from malbox_tui.tui.screens.dashboard import Dashboard
from malbox_tui.tui.screens.dialogs import Choice, Help, Prompt, Question
from malbox_tui.tui.screens.task import TaskScreen
from malbox_tui.tui.styles import styles_folder
from malbox_tui.tui.text import plain, sentence, shown
from malbox_tui.tui.themes import DARK, LIGHT, THEMES

_BEGINNINGS_OF_A_DROP = ("/", "'", '"', "\\", "~", "file:")
"""How terminals begin the text of a drop: with an absolute path, quoted, escaped or as a URL."""


class MalboxApp(App[ShutdownMode]):
    """The console. It ends when the engine has ended; its return value is how the operator left."""

    TITLE = "malbox"
    CSS_PATH: ClassVar[list[str | Path]] = [styles_folder() / "malbox.tcss"]  # type: ignore[assignment]
    BINDINGS: ClassVar[list[BindingType]] = keys.bindings(keys.EVERYWHERE)
    ENABLE_COMMAND_PALETTE = True

    def __init__(self, around: Surroundings) -> None:
        super().__init__(driver_class=TerminalDriver)
        self._around = around
        self.picture = LivePicture()
        self.feed = Feed(around.client, self.picture, around.monotonic)
        self.dashboard = Dashboard(self.picture, self.moment, self._ask, around.time_of_day, around.host)
        self._leaving: ShutdownMode | None = None
        self._showing = False
        self._panicked = False
        self._adding = itertools.count(1)

    # --- life --------------------------------------------------------------------------------------------------------------------

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Whatever reaches the terminal passes here last."""
        return [*super().get_line_filters(), SafeText()]

    async def on_mount(self) -> None:
        """Open the dashboard, follow the engine, and submit what the command line named."""
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = DARK
        await self.push_screen(self.dashboard)
        self.run_worker(self._follow(), name="feed")
        self.set_interval(1 / SHOWN_PER_SECOND, self.show_changes)
        self.set_interval(1.0, self.show_time)
        if self._around.paths:
            self.add_paths(self._around.paths)

    def moment(self) -> Moment:
        """What cells depend on, now."""
        return Moment(self.feed.now(), dark=self.theme != LIGHT, overview=self.picture.overview)

    async def on_event(self, event: events.Event) -> None:
        """A drop or paste of paths is for the console, whatever has the focus; other pastes go to an input that has it."""
        if isinstance(event, events.Paste) and self._take_paste(event.text):
            return
        await super().on_event(event)

    async def _follow(self) -> None:
        try:
            await self.feed.run()
        except EngineStopped:
            self.feed.ended = True
        self.exit(self._leaving or ShutdownMode.GIVE_BACK)

    async def show_changes(self) -> None:
        """Draw what changed; one at a time, so that a slow engine is not asked twice."""
        if self._showing or self.picture.overview is None or self.feed.ended:
            return
        changes = self.feed.take_changes()
        if not changes.anything:
            return
        self._showing = True
        try:
            await self.feed.refresh()
            await self.dashboard.show(changes)
            if isinstance(self.screen, TaskScreen):
                await self.screen.reread()
        except EngineStopped:
            self.feed.ended = True
        finally:
            self._showing = False

    def show_time(self) -> None:
        """Draw what moves with time alone."""
        if self.picture.overview is None:
            return
        self.dashboard.tick()
        if isinstance(self.screen, TaskScreen):
            self.screen.tick()

    async def _ask(self, query: TaskQuery) -> TaskPage:
        return await self._around.client.query(query)

    # --- samples -----------------------------------------------------------------------------------------------------------------

    def add_paths(self, paths: Sequence[bytes]) -> None:
        """Submit files and folders, and say what came of it."""
        self.run_worker(self._submit(tuple(paths)), name=f"submission {next(self._adding)}")

    async def _submit(self, paths: tuple[bytes, ...]) -> None:
        refused: list[Receipt] = []
        try:
            account = await self._around.client.submit(self._around.offers(paths), self._around.wishes)
        except EngineStopped:
            return
        except MalboxError as error:
            self.say(str(error), bad=True)
            return
        refused.extend(account.refused)
        parts = [f"{len(account.accepted)} added"]
        parts += [f"{len(account.duplicates)} known already"] if account.duplicates else []
        text = plain(", ".join(parts))
        if account.refused:
            text.append(f", {len(account.refused)} refused: ")
            first = account.refused[0]
            text.append_text(sentence(f"{first.refusal.reason}"))
        self.say_text(text, bad=not any(isinstance(receipt, Accepted) for receipt in account.receipts) and bool(refused))

    def _take_paste(self, text: str) -> bool:
        if isinstance(self.screen, Prompt) and not text.lstrip().startswith(_BEGINNINGS_OF_A_DROP):
            # A word to search for, even if a file of the working folder has that name.
            return False
        dropped = self._around.intake.dropped(text)
        if dropped.paths:
            if isinstance(self.screen, AddSamples):
                self.screen.dismiss(dropped.paths)
            else:
                self.add_paths(dropped.paths)
            return True
        if isinstance(self.screen, AddSamples | Prompt):
            return False
        self.say(dropped.problem, bad=True)
        return True

    # --- keys: samples and tasks ---------------------------------------------------------------------------------------------

    async def action_add_samples(self) -> None:
        """Ask for a path."""

        def add(paths: Sequence[bytes] | None) -> None:
            if paths:
                self.add_paths(paths)

        await self.push_screen(AddSamples(self._around.intake), add)

    async def action_open_task(self) -> None:
        """Show the task under the cursor in full."""
        record = self.dashboard.tasks.current
        if record is not None and isinstance(self.screen, Dashboard):
            screen = TaskScreen(record.task.id, self._around.client, self.picture, self.moment, self._around.time_of_day)
            await self.push_screen(screen)

    async def action_back(self) -> None:
        """Leave the task's screen."""
        if isinstance(self.screen, TaskScreen):
            await self.pop_screen()

    async def action_cancel_task(self) -> None:
        """Ask, then cancel the task that is shown or under the cursor, as it was when the key was pressed."""
        record = self._target()
        if record is None:
            return
        task = record.task
        if task.state.is_final:
            self.say(f"Task {task.id} is already {task.state.value.replace('_', ' ')}.", bad=True)
            return
        name = name_cell(record, self.moment())
        lines = [Text.assemble(f"Task {task.id}, {task.state.value.replace('_', ' ')}: ", name)]
        lines.append(plain("It ends as canceled; what it found so far is kept."))
        choices = [Choice("Leave it", False), Choice("Cancel the task", True, harmful=True)]

        def answered(yes: object) -> None:
            if yes:
                expected = task.state if task.state not in OWNED_STATES else None
                self._carry_out(CancelTasks(task_ids=(task.id,), expected=expected))

        await self.push_screen(Question("Cancel this task?", lines, choices), answered)

    async def action_retry_task(self) -> None:
        """Analyse the content of an ended task again."""
        record = self._target()
        if record is not None:
            self._carry_out(RetryTasks(task_ids=(record.task.id,)))

    async def action_priority(self, step: int) -> None:
        """Change the priority of a waiting task."""
        record = self._target()
        if record is not None:
            self._carry_out(SetPriority(task_ids=(record.task.id,), priority=record.task.priority + step))

    # --- keys: the pool ------------------------------------------------------------------------------------------------------------

    async def action_resize(self, min_step: int, max_step: int) -> None:
        """Change the limits of the worker group."""
        overview = self.picture.overview
        if overview is None or not overview.groups:
            return
        group = overview.groups[0]
        low, high = group.min_workers + min_step, group.max_workers + max_step
        self._carry_out(ResizeGroup(group=group.name, min_workers=low, max_workers=high))

    async def action_pause(self) -> None:
        """Pause, or resume what is paused."""
        overview = self.picture.overview
        if overview is not None:
            self._carry_out(ResumePool() if overview.paused else PausePool())

    # --- keys: the screen ------------------------------------------------------------------------------------------------------------

    async def action_filter(self) -> None:
        """Ask what to search for."""
        if isinstance(self.screen, Dashboard):
            hint = "Part of a name, or the beginning of a SHA-256 (six digits at least). Empty shows all."
            await self.push_screen(Prompt("Filter", hint, self.dashboard.needle), self._filter_chosen)

    def action_next_view(self) -> None:
        """The next of the views of the task table."""
        self.dashboard.next_view()

    def action_zoom(self) -> None:
        """Timelines over another length of time."""
        self.dashboard.timelines.zoom()

    async def action_help(self) -> None:
        """All keys."""
        if not isinstance(self.screen, Help):
            await self.push_screen(Help())

    def action_toggle_dark(self) -> None:
        """Dark or light."""
        self.theme = LIGHT if self.theme != LIGHT else DARK
        self.show_time()

    async def action_ask_quit(self) -> None:
        """Leave; when something runs, ask what is to become of it."""
        if self._leaving is not None:
            await self._ask_how_to_leave("The engine is stopping. Stop it harder?")
        elif self._tasks_running():
            await self._ask_how_to_leave("Leave the console?")
        else:
            self.leave(ShutdownMode.GIVE_BACK)

    async def action_quit(self) -> None:
        """As the palette and Textual's own key say it."""
        await self.action_ask_quit()

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """The palette: what the keys do."""
        for group in (keys.DASHBOARD, keys.EVERYWHERE):
            for key in group:
                yield SystemCommand(key.help, f"Key: {key.shown}", lambda key=key: self.run_action(key.action))

    def leave(self, mode: ShutdownMode) -> None:
        """Stop the engine; the console stays until it has ended."""
        self._leaving = mode
        self._around.on_leave(mode)

    async def _ask_how_to_leave(self, title: str) -> None:
        running = self._tasks_running()
        lines = [plain(f"{running} {'task is' if running == 1 else 'tasks are'} being worked on.")]
        lines.append(plain("Waiting tasks are kept for the next start in any case."))
        choices = [
            Choice("Stay", None),
            Choice("Finish, then leave", ShutdownMode.DRAIN),
            Choice("Stop, keep for later", ShutdownMode.GIVE_BACK),
            Choice("Cancel them", ShutdownMode.CANCEL, harmful=True),
        ]

        def answered(mode: object) -> None:
            if isinstance(mode, ShutdownMode):
                self.leave(mode)

        await self.push_screen(Question(title, lines, choices), answered)

    # --- breaking down ----------------------------------------------------------------------------------------------------------

    @property
    def breakdown(self) -> BaseException | None:
        """What ended the app, if not its engine's end; whoever started it tells of it."""
        error: BaseException | None = self._exception
        if isinstance(error, WorkerFailed):
            error = error.error
        return error if error is not None or not self._panicked else RuntimeError("the terminal could not be read")

    def panic(self, *renderables: object) -> None:
        """End at once. Textual would print a traceback with the values of local variables; see `breakdown` instead."""
        self._panicked = True
        super().panic()

    def _fatal_error(self) -> None:
        self.panic()

    # --- private -----------------------------------------------------------------------------------------------------------------

    def say(self, message: str, *, bad: bool = False) -> None:
        """Tell the operator something for a moment."""
        self.say_text(sentence(message), bad=bad)

    def say_text(self, message: Text, *, bad: bool = False) -> None:
        """As `say`, with text that is safe already."""
        self.notify(message.plain, severity="error" if bad else "information", markup=False, timeout=6)

    def _target(self) -> TaskRecord | None:
        if isinstance(self.screen, TaskScreen):
            return self.screen.record
        return self.dashboard.tasks.current

    def _tasks_running(self) -> int:
        overview = self.picture.overview
        return 0 if overview is None else sum(overview.counts.get(state, 0) for state in OWNED_STATES)

    def _filter_chosen(self, needle: str | None) -> None:
        if needle is not None:
            self.dashboard.filter(needle)

    def _carry_out(self, action: Action) -> None:
        self.run_worker(self._do(Command(action=action, actor=self._around.actor, key=uuid4().hex)), name="command")

    async def _do(self, command: Command) -> None:
        try:
            outcome: CommandOutcome = await self._around.client.do(command)
        except EngineStopped as error:
            self.say(str(error), bad=True)
            return
        self.say_text(shown(outcome.message), bad=not outcome.done)
        self.feed.changes.anything = self.feed.changes.tasks = True
        await self.show_changes()
