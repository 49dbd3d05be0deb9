"""The console's app: it opens the screens and carries out what keys ask for. All work is the engine's, behind the `Client`."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from textual import events
from textual._context import active_message_pump
from textual.actions import ActionParseResult
from textual.app import App, SystemCommand
from textual.binding import BindingType
from textual.command import CommandPalette
from textual.css.query import NoMatches
from textual.dom import DOMNode
from textual.filter import LineFilter
from textual.screen import ModalScreen, Screen
from textual.worker import WorkerFailed

from malbox_tui.model.commands import ShutdownMode
from malbox_tui.model.machine import MachineView
from malbox_tui.model.overview import GroupView
from malbox_tui.model.queries import TaskRecord
from malbox_tui.model.submission import Refused
from malbox_tui.tui import keys
from malbox_tui.tui.access import Access
from malbox_tui.tui.adding import Adding
from malbox_tui.tui.console import Surroundings
from malbox_tui.tui.driver import TerminalDriver
from malbox_tui.tui.feed import SHOWN_PER_SECOND, Feed
from malbox_tui.tui.gone import hits_what_is_gone
from malbox_tui.tui.known_sums import KnownSums
from malbox_tui.tui.leaving import Leaving
from malbox_tui.tui.line_filter import SafeText
from malbox_tui.tui.live import LivePicture, LiveTask
from malbox_tui.tui.moment import Moment
from malbox_tui.tui.notices import say
from malbox_tui.tui.orders import Orders
from malbox_tui.tui.pictures import Gallery
from malbox_tui.tui.screens.dashboard import Dashboard
from malbox_tui.tui.screens.dialogs import Help
from malbox_tui.tui.screens.intakes import AccountScreen, IntakesScreen
from malbox_tui.tui.screens.machine import MachineScreen
from malbox_tui.tui.screens.palette import Palette, offered
from malbox_tui.tui.screens.report import ReportScreen
from malbox_tui.tui.screens.sample import SampleScreen
from malbox_tui.tui.screens.task import TaskScreen
from malbox_tui.tui.screens.watches import WatchesScreen
from malbox_tui.tui.screens.who import about_consoles
from malbox_tui.tui.showing import LIVE_SCREENS, Showing
from malbox_tui.tui.styles import styles_folder
from malbox_tui.tui.taking_back import TakingBack
from malbox_tui.tui.themes import DARK, LIGHT, THEMES


class MalboxApp(App[ShutdownMode]):
    """The console. It ends when the engine has ended; its return value is how the operator left."""

    TITLE = "malbox"
    CSS_PATH: ClassVar[list[str | Path]] = [styles_folder() / "malbox.tcss"]  # type: ignore[assignment]
    BINDINGS: ClassVar[list[BindingType]] = keys.bindings(keys.EVERYWHERE)
    ENABLE_COMMAND_PALETTE = True

    def __init__(self, around: Surroundings) -> None:
        super().__init__(driver_class=TerminalDriver)
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = DARK
        self._around = around
        self.picture = LivePicture(around.notes, "configuration" if around.attachment is None else "attached")
        self.feed = Feed(around.client, self.picture, around.monotonic, around.attachment)
        self.access = Access(around.attachment, around.time_of_day)
        self.adding = Adding(
            self, around, self.access, self.moment, self._note_refused, KnownSums(self, around.client, self._show_tasks_of).show
        )
        self.dashboard = Dashboard(self.picture, self.moment, around, self.adding.runs)
        self.showing = Showing(self, self.feed, self.dashboard, self.access, self.moment)
        self.leaving = Leaving(self, self.feed, self.picture, around)
        self.gallery = Gallery(around.client)
        self.orders = Orders(self, around.client, around.actor, self.showing.show_everything)
        self.taking_back = TakingBack(self, around.client, around.actor, self.adding, self.showing.show_everything)
        self._palette: Palette | None = None
        """The palette that was opened last, until a command of it was chosen."""
        self._panicked = False

    # --- life --------------------------------------------------------------------------------------------------------------------

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Whatever reaches the terminal passes here last."""
        return [*super().get_line_filters(), SafeText()]

    async def on_mount(self) -> None:
        """Open the dashboard, follow the engine, and submit what the command line named."""
        await self.push_screen(self.dashboard)
        self.run_worker(self._follow(), name="feed")
        self.set_interval(1 / SHOWN_PER_SECOND, self.showing.show_frame)
        self.adding.begin()

    def on_ready(self) -> None:
        """What has been loaded and built until now stays for good: a collection that looks through it all stops the console for 50 ms.

        Without a terminal the process is somebody else's, and left alone.
        """
        if not self.is_headless:
            gc.collect()
            gc.freeze()
        self._around.on_shown()

    def moment(self) -> Moment:
        """What cells depend on, now."""
        return Moment(self.feed.now(), dark=self.theme != LIGHT)

    async def on_event(self, event: events.Event) -> None:
        """A drop or paste of paths is for the console, whatever has the focus; other pastes go to an input that has it."""
        if isinstance(event, events.Paste) and self.adding.take_paste(event.text):
            return
        if isinstance(event, events.MouseDown) and hits_what_is_gone(self.screen, event):
            return
        await super().on_event(event)

    async def _follow(self) -> None:
        await self.showing.follow()
        self.exit(self.leaving.mode or ShutdownMode.GIVE_BACK)

    async def show_changes(self) -> None:
        """Draw what changed."""
        await self.showing.show_changes()

    def show_time(self) -> None:
        """Draw what moves with time alone."""
        self.showing.show_time()

    def _note_refused(self, refused: Sequence[Refused]) -> None:
        self.picture.note_refused(self.feed.now(), refused)
        self.feed.changes.anything = True

    # --- keys: samples and tasks -------------------------------------------------------------------------------------------------

    async def action_add_samples(self) -> None:
        """Ask for a path."""
        await self.adding.ask()

    def action_stop_adding(self) -> None:
        """Stop reading what is being added."""
        self.adding.stop()
        self.dashboard.progress.changed()

    def action_take_back(self) -> None:
        """Take back what was added last."""
        self.run_worker(self.taking_back.begin(), name="taking back")

    async def action_show_intakes(self) -> None:
        """What came in."""
        if isinstance(self.screen, Dashboard):
            await self.push_screen(IntakesScreen(self._around.client, self.moment, self._around.time_of_day))

    async def action_show_watches(self) -> None:
        """The watched folders."""
        if isinstance(self.screen, Dashboard):
            await self.push_screen(WatchesScreen(self.picture, self.moment, self._around.engine_host))

    async def action_add_watch(self) -> None:
        """Ask for a folder to watch."""
        await self.orders.add_watch(self._around.engine_host, self._around.host)

    async def action_remove_watch(self) -> None:
        """Ask, then watch the folder under the cursor no more."""
        if isinstance(self.screen, WatchesScreen) and (watch := self.screen.rows.current) is not None:
            await self.orders.remove_watch(watch)

    def _show_tasks_of(self, sums: Sequence[str]) -> None:
        """The tasks of these contents, on the dashboard."""
        while self.dashboard in self.screen_stack and self.screen is not self.dashboard:
            self.pop_screen()
        self.dashboard.show_sums(sums)

    async def action_open_task(self) -> None:
        """Show the task under the cursor in full."""
        record = await self._target()
        if record is not None and isinstance(self.screen, Dashboard):
            await self.push_screen(self._task_screen(record.task.id))

    def _task_screen(self, task_id: int) -> TaskScreen:
        around = self._around
        return TaskScreen(task_id, around.client, self.picture, self.gallery, self.moment, around.time_of_day)

    async def action_back(self) -> None:
        """Leave the screen of a task, a sample or a machine."""
        if isinstance(self.screen, LIVE_SCREENS):
            await self.pop_screen()

    async def action_cancel_task(self) -> None:
        """Ask, then cancel the task that is shown or under the cursor."""
        record = await self._target()
        if record is not None:
            await self.orders.cancel(record, self.moment())

    async def action_retry_task(self) -> None:
        """Analyse the content of an ended task again."""
        record = await self._target()
        if record is not None:
            self.orders.retry(record)

    async def action_show_sample(self) -> None:
        """All about the content of the task that is shown."""
        if isinstance(self.screen, TaskScreen) and (record := self.screen.record) is not None:
            await self.push_screen(SampleScreen(record.task.sha256, self._around.client, self.moment))

    async def action_note_sample(self) -> None:
        """Write a note of the content that is shown."""
        if isinstance(self.screen, SampleScreen):
            await self.orders.note_sample(self.screen.sha256)

    async def action_purge_sample(self) -> None:
        """Ask, then remove the content that is shown for good."""
        if isinstance(self.screen, SampleScreen) and (found := self.screen.found) is not None:
            shown = self.screen
            await self.orders.purge_sample(found, lambda: self._leave(shown))

    def _leave(self, gone: SampleScreen) -> None:
        """Back from a content that is gone, over the task that led to it."""
        if self.screen is gone:
            self.pop_screen()
            if isinstance(self.screen, TaskScreen):
                self.pop_screen()

    async def action_tag_sample(self) -> None:
        """Give tags to the content that is shown, or take some away."""
        if isinstance(self.screen, SampleScreen):
            await self.orders.tag_sample(self.screen.sha256, self.screen.tags)

    async def action_priority(self, step: int) -> None:
        """Change the priority of a waiting task."""
        record = await self._target()
        if record is not None:
            self.orders.change_priority(record, step)

    async def action_profile(self) -> None:
        """Give a waiting task another profile."""
        record = await self._target()
        if record is not None:
            await self.orders.change_profile(record, () if self.picture.overview is None else self.picture.overview.profiles)

    async def action_identify(self) -> None:
        """Find out what the sample of a waiting task is."""
        record = await self._target()
        if record is not None:
            self.orders.identify(record)

    async def action_needs(self) -> None:
        """Change what a waiting task asks for."""
        record = await self._target()
        if record is not None:
            await self.orders.change_needs(record)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """See `App`: keys for tasks are none where machines are looked at, and those for machines not without one. What is out of
        reach is greyed."""
        if action in ("who", "background"):
            return self._has_others() if action == "who" else self.leaving.can_go_on
        if action == "stop_adding":
            return bool(self.adding.runs)
        if action == "take_back":
            return self.taking_back.is_possible
        if self.access.refusal(action) is not None:
            return None
        if action in keys.TASK_ACTIONS:
            is_at_machines = isinstance(self.screen, MachineScreen) or self.dashboard.focused is self.dashboard.machines
            return isinstance(self.screen, TaskScreen) or not is_at_machines
        if action not in keys.MACHINE_ACTIONS:
            return True
        machine = self._machine()
        return machine is not None and (action != "open_machines_task" or machine.task_id is not None)

    async def run_action(
        self,
        action: str | ActionParseResult,
        default_namespace: DOMNode | None = None,
        namespaces: Mapping[str, DOMNode] | None = None,
    ) -> bool:
        """See `App`: a key that can't do anything says why."""
        name = (action if isinstance(action, str) else action[1]).partition("(")[0].rpartition(".")[2]
        if (why_not := self.access.refusal(name)) is not None and not isinstance(self.screen, ModalScreen):
            say(self, why_not, bad=True)
            self.access.hurry()
            return True
        return await super().run_action(action, default_namespace, namespaces)

    async def _target(self) -> TaskRecord | None:
        """The task that a key means: the one that is shown or under the cursor."""
        if isinstance(self.screen, TaskScreen):
            return self.screen.record
        return await self.dashboard.tasks.chosen()

    # --- keys: the pool ----------------------------------------------------------------------------------------------------------

    def action_resize_min(self, step: int) -> None:
        """Change the least number of workers of the chosen group."""
        if (group := self._chosen_group()) is not None:
            self.orders.change_min(group, step)

    def action_resize_max(self, step: int) -> None:
        """Change the largest number of workers of the chosen group."""
        if (group := self._chosen_group()) is not None:
            self.orders.change_max(group, step)

    def _chosen_group(self) -> GroupView | None:
        overview = self.picture.overview
        return None if overview is None else self.dashboard.groups.of(overview)

    def action_save_limits(self) -> None:
        """Keep the limits of all worker groups."""
        self.orders.save_limits()

    def action_pause(self) -> None:
        """Pause, or resume what is paused."""
        if self.picture.overview is not None:
            self.orders.pause_or_resume(self.picture.overview)

    # --- keys: machines ----------------------------------------------------------------------------------------------------------

    def _machine(self) -> MachineView | None:
        """The machine that a key means: the one that is shown or under the cursor."""
        return self.screen.machine if isinstance(self.screen, MachineScreen) else self.dashboard.machines.current

    def _task_on(self, machine: MachineView) -> LiveTask | None:
        return None if machine.task_id is None else self.picture.tasks.get(machine.task_id)

    async def action_show_machine(self) -> None:
        """All about the machine under the cursor."""
        if isinstance(self.screen, Dashboard) and (machine := self.dashboard.machines.current) is not None:
            around = self._around
            await self.push_screen(MachineScreen(machine.name, self.picture, self.gallery, self.moment, around.time_of_day))

    async def action_open_machines_task(self) -> None:
        """Show the task that has the machine."""
        machine = self._machine()
        if isinstance(self.screen, MachineScreen) and machine is not None and machine.task_id is not None:
            await self.push_screen(self._task_screen(machine.task_id))

    def action_probe_machine(self) -> None:
        """Have the machine tried now."""
        if (machine := self._machine()) is not None:
            self.orders.probe_machine(machine)

    async def action_disable_machine(self) -> None:
        """Take the machine out for maintenance. From where it wasn't seen, it is asked about."""
        if (machine := self._machine()) is not None:
            is_seen = isinstance(self.screen, MachineScreen) or self.dashboard.machines.has_focus
            await self.orders.disable_machine(machine, self._task_on(machine), ask=not is_seen)

    def action_enable_machine(self) -> None:
        """Bring the machine back."""
        if (machine := self._machine()) is not None:
            self.orders.enable_machine(machine)

    async def action_add_machine(self) -> None:
        """Ask for a new machine."""
        await self.orders.add_machine()

    async def action_edit_machine(self) -> None:
        """Ask what the machine is to be."""
        if (machine := self._machine()) is not None:
            await self.orders.edit_machine(machine)

    async def action_remove_machine(self) -> None:
        """Ask, then take the machine out of the pool."""
        if (machine := self._machine()) is not None:
            await self.orders.remove_machine(machine, self._task_on(machine))

    # --- keys: the screen --------------------------------------------------------------------------------------------------------

    def _has_others(self) -> bool:
        overview = self.picture.overview
        return overview is not None and len(overview.consoles) > (self._around.attachment is None)

    async def action_who(self) -> None:
        """Who else is attached."""
        if self.picture.overview is not None:
            await self.push_screen(about_consoles(self.picture.overview, self.moment(), self._around.time_of_day))

    async def action_help(self) -> None:
        """All keys."""
        if not isinstance(self.screen, Help):
            await self.push_screen(Help())

    def action_toggle_dark(self) -> None:
        """Dark or light."""
        self.theme = LIGHT if self.theme != LIGHT else DARK
        self.show_time()

    def action_command_palette(self) -> None:
        """The palette, with the commands below."""
        if not isinstance(self.screen, CommandPalette):
            self._palette = Palette(id="--command-palette")
            self.push_screen(self._palette)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """The palette: what the keys do."""
        groups = (keys.DASHBOARD, keys.MACHINES) if screen is self.dashboard else (keys.TASK_SCREEN,)
        groups = (keys.MACHINE_SCREEN,) if isinstance(screen, MachineScreen) else groups
        groups = (keys.INTAKES_SCREEN,) if isinstance(screen, IntakesScreen) else groups
        groups = (keys.WATCHES_SCREEN,) if isinstance(screen, WatchesScreen) else groups
        groups = (keys.ACCOUNT_SCREEN,) if isinstance(screen, AccountScreen) else groups
        groups = (keys.SAMPLE_SCREEN,) if isinstance(screen, SampleScreen) else groups
        groups = (keys.REPORT_SCREEN,) if isinstance(screen, ReportScreen) else groups
        for key in offered(self, screen, *groups, keys.EVERYWHERE):
            yield SystemCommand(key.help, f"Key: {key.shown}", lambda key=key: self._run_chosen(key.action))

    async def _run_chosen(self, action: str) -> None:
        """What was chosen in the palette, once, although a double click chooses it twice."""
        if self._palette is not None:
            self._palette = None
            await self.run_action(action)

    # --- leaving -----------------------------------------------------------------------------------------------------------------

    async def action_quit(self) -> None:
        """Leave; when something runs, ask what is to become of it."""
        await self.leaving.ask()

    async def action_background(self) -> None:
        """Leave, and let the pool go on."""
        await self.leaving.ask_to_go_on()

    def leave(self, mode: ShutdownMode) -> None:
        """Leave in this way, without a question."""
        self.leaving.leave(mode)

    # --- breaking down -----------------------------------------------------------------------------------------------------------

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

    def _handle_exception(self, error: Exception) -> None:
        """What a screen looks for in itself after it was taken away (a palette that was still busy, say) is nobody's loss."""
        pump = active_message_pump.get(None)
        if not (isinstance(error, NoMatches) and isinstance(pump, Screen) and not pump.is_active):
            super()._handle_exception(error)

    def _fatal_error(self) -> None:
        self.panic()
