"""What an operator orders of the engine. What destroys something asks first, and names what it hits.

An order carries the task that was under the cursor when the key was pressed, and where it matters the state it was in. Keys that count
on (`]` twice) count from what was asked for last, while that isn't answered.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Any
from uuid import uuid4

from rich.text import Text
from textual.app import App

from malbox_tui.model.commands import (
    Action,
    AddWatch,
    CancelTasks,
    Command,
    CommandOutcome,
    DisableMachines,
    EnableMachines,
    IdentifySamples,
    MarkSample,
    PausePool,
    ProbeMachines,
    PurgeSample,
    RemoveMachines,
    RemoveWatch,
    ResizeGroup,
    ResumePool,
    RetryTasks,
    SaveLimits,
    SetMachine,
    SetPriority,
    SetProfile,
)
from malbox_tui.model.errors import MalboxError
from malbox_tui.model.machine import MachineSpec, MachineView
from malbox_tui.model.overview import GroupView, Overview, ProfileView
from malbox_tui.model.profile import AUTO
from malbox_tui.model.queries import TaskPage, TaskRecord
from malbox_tui.model.sample import escape, visible
from malbox_tui.model.task import OWNED_STATES, TaskState
from malbox_tui.model.watching import WatchSpec, WatchView
from malbox_tui.ports import Client
from malbox_tui.tui.asked import Asked
from malbox_tui.tui.columns import name_cell
from malbox_tui.tui.live import LiveTask
from malbox_tui.tui.moment import Moment
from malbox_tui.tui.need_words import change_of, words_of
from malbox_tui.tui.notices import say, say_text
from malbox_tui.tui.screens.dialogs import Choice, Prompt, Question
from malbox_tui.tui.screens.form import Answered
from malbox_tui.tui.screens.machine_form import NEW, MachineForm
from malbox_tui.tui.screens.watches import WatchForm
from malbox_tui.tui.text import counted, joined_cells, plain, shown


class Orders:
    """Sends commands in an operator's name and says how they ended; `show` returns when what came of them is drawn."""

    def __init__(self, app: App[Any], client: Client, actor: str, show: Callable[[], Awaitable[None]]) -> None:
        self._app = app
        self._client = client
        self._actor = actor
        self._show = show
        self._asked = Asked()

    async def cancel(self, record: TaskRecord, moment: Moment) -> None:
        """Ask, then cancel the task as it was when it was asked about."""
        task = record.task
        if task.state.is_final:
            say(self._app, f"Task {task.id} is already {task.state.value.replace('_', ' ')}.", bad=True)
            return
        lines = [Text.assemble(f"Task {task.id}, {task.state.value.replace('_', ' ')}: ", name_cell(record, moment))]
        lines.append(plain("It ends as canceled; what it found so far is kept."))
        choices = [Choice("Leave it", False), Choice("Cancel the task", True, harmful=True)]

        def answered(yes: object) -> None:
            if yes:
                expected = task.state if task.state not in OWNED_STATES else None
                self._carry_out(CancelTasks(task_ids=(task.id,), expected=expected))

        await self._app.push_screen(Question("Cancel this task?", lines, choices), answered)

    def retry(self, record: TaskRecord) -> None:
        """Analyse the content of an ended task again."""
        self._carry_out(RetryTasks(task_ids=(record.task.id,)))

    async def note_sample(self, sha256: str) -> None:
        """Ask for a note, and keep it."""

        def answered(text: str | None) -> None:
            if text is not None and text.strip():
                self._carry_out(MarkSample(sha256=sha256, note=text.strip()))

        await self._app.push_screen(Prompt("Note", "What is to be remembered of this content. Escape leaves it."), answered)

    async def tag_sample(self, sha256: str, tags: Sequence[str]) -> None:
        """Ask for tags to give or to take away, of a sample that has these."""

        def answered(text: str | None) -> None:
            words = (text or "").split()
            if words:
                given = tuple(word for word in words if not word.startswith("-"))
                taken = tuple(word[1:] for word in words if word.startswith("-"))
                self._carry_out(MarkSample(sha256=sha256, tags=given, untags=taken))

        has = f"It has: {' '.join(map(visible, tags))}. " if tags else ""
        await self._app.push_screen(Prompt("Tags", f"{has}Words are given, those with a - before them taken away."), answered)

    async def purge_sample(self, page: TaskPage, on_gone: Callable[[], None]) -> None:
        """Ask, then remove a content with all that hangs on it; `page` has its latest tasks."""
        sample = page.rows[0].sample
        live = [row.task.id for row in page.rows if not row.task.state.is_final]
        if live:
            named = ", ".join(f"#{task_id}" for task_id in live[:8])
            say(self._app, f"It can't be removed while tasks of it wait or run: {named}.", bad=True)
            return
        name = escape(sample.names[0].name) if sample.names else "without a name"
        lines = [
            Text.assemble("Sample ", shown(sample.sha256[:16], "bold"), ": ", shown(name)),
            plain(f"{counted(page.total, 'task')}, all results, names, notes and tags go with it. That can't be undone."),
        ]
        choices = [Choice("Keep it", False), Choice("Remove it for good", True, harmful=True)]

        def done(outcome: CommandOutcome) -> bool:
            if outcome.done:
                on_gone()
            return False

        def answered(yes: object) -> None:
            if yes:
                self._carry_out(PurgeSample(sha256=sample.sha256), answered=done)

        await self._app.push_screen(Question("Remove this content for good?", lines, choices), answered)

    def change_priority(self, record: TaskRecord, step: int) -> None:
        """Raise or lower the priority of a waiting task."""
        thing = ("priority", record.task.id)
        priority = self._asked.latest(thing, record.task.priority) + step
        self._carry_out(SetPriority(task_ids=(record.task.id,), priority=priority), (thing, priority))

    async def change_profile(self, record: TaskRecord, profiles: Sequence[ProfileView]) -> None:
        """Ask which of the profiles a waiting task is to have."""
        task = record.task
        if task.state is not TaskState.PENDING:
            problem = f"Task {task.id} is {task.state.value.replace('_', ' ')}; only a waiting task can be given another profile."
            say(self._app, problem, bad=True)
            return

        def answered(text: str | None) -> None:
            if text is not None:
                name = "" if text.strip() == AUTO else text.strip()
                self._carry_out(SetProfile(task_ids=(task.id,), profile=name))

        has = "" if task.profile is None else task.profile.name
        offered = {profile.name: joined_cells([shown(profile.name, "bold"), shown(profile.about)], "  ") for profile in profiles}
        none = "" if profiles else "The configuration has no profile. "
        hint = f"{none}The name of a profile (→ completes it); empty: the one for the kind of its content. Escape leaves it."
        await self._app.push_screen(Prompt(f"Profile of task {task.id}", hint, has, offered), answered)

    def identify(self, record: TaskRecord) -> None:
        """Find out what the sample of a waiting task is."""
        self._carry_out(IdentifySamples(task_ids=(record.task.id,)))

    async def change_needs(self, record: TaskRecord) -> None:
        """Ask what a waiting task is to ask for."""
        task = record.task
        if task.state is not TaskState.PENDING:
            problem = f"Task {task.id} is {task.state.value.replace('_', ' ')}; only a waiting task can be changed."
            say(self._app, problem, bad=True)
            return

        def answered(text: str | None) -> None:
            if text is None:
                return
            try:
                change = change_of(text, task)
            except ValueError as problem:
                say(self._app, str(problem), bad=True)
            else:
                if change is not None:
                    self._carry_out(change)

        hint = "platform= with nothing behind it is any; tags have commas between them. Escape leaves it."
        await self._app.push_screen(Prompt(f"What task {task.id} asks for", hint, words_of(task)), answered)

    def change_min(self, group: GroupView, step: int) -> None:
        """Raise or lower the least number of workers of a group."""
        thing = ("min", group.name)
        least = self._asked.latest(thing, group.min_workers) + step
        self._carry_out(ResizeGroup(group=group.name, min_workers=least), (thing, least))

    def change_max(self, group: GroupView, step: int) -> None:
        """Raise or lower the largest number of workers of a group."""
        thing = ("max", group.name)
        most = self._asked.latest(thing, group.max_workers) + step
        self._carry_out(ResizeGroup(group=group.name, max_workers=most), (thing, most))

    def save_limits(self) -> None:
        """Keep the limits of all worker groups for the next start."""
        self._carry_out(SaveLimits())

    async def disable_machine(self, machine: MachineView, task: LiveTask | None, *, ask: bool) -> None:
        """Take a machine out for maintenance. It is asked first when `ask` says so, and when a task has it, which is `task` if it is
        known."""
        if machine.task_id is None and not ask:
            self._carry_out(DisableMachines(machines=(machine.name,)))
            return
        if machine.task_id is None:
            lines = [Text.assemble("Machine ", shown(machine.name, "bold"), f" is {machine.state.value}; no task has it.")]
            choice = "Disable it"
        else:
            lines = [_serves(machine, machine.task_id, task)]
            lines.append(plain(f"It goes out when task {machine.task_id} is done with it, and gets no other."))
            choice = f"Disable it after task {machine.task_id}"
        choices = [Choice("Leave it in service", False), Choice(choice, True, harmful=True)]

        def answered(yes: object) -> None:
            if yes:
                self._carry_out(DisableMachines(machines=(machine.name,)))

        await self._app.push_screen(Question("Take this machine out for maintenance?", lines, choices), answered)

    def enable_machine(self, machine: MachineView) -> None:
        """Bring a machine back into service."""
        self._carry_out(EnableMachines(machines=(machine.name,)))

    def probe_machine(self, machine: MachineView) -> None:
        """Have a machine tried now."""
        self._carry_out(ProbeMachines(machines=(machine.name,)))

    async def remove_machine(self, machine: MachineView, task: LiveTask | None) -> None:
        """Ask, then take a machine out of the pool for good; `task` is the one that holds it, if one does and it is known."""
        name = shown(machine.name, "bold")
        if machine.task_id is None:
            lines = [Text.assemble("Machine ", name, f" is {machine.state.value}; no task has it.")]
        else:
            lines = [_serves(machine, machine.task_id, task), plain(f"It goes when task {machine.task_id} is done with it.")]
        lines.append(plain("The pool forgets it and its history. Its hypervisor keeps the machine and its snapshots."))
        choices = [Choice("Leave it in the pool", False), Choice("Remove it from the pool", True, harmful=True)]

        def answered(yes: object) -> None:
            if yes:
                self._carry_out(RemoveMachines(machines=(machine.name,)))

        await self._app.push_screen(Question("Remove this machine?", lines, choices), answered)

    async def add_machine(self) -> None:
        """Ask what a new machine is."""
        await self._app.push_screen(MachineForm(plain("Add a machine", "bold"), NEW, self._set_machine, is_new=True))

    async def edit_machine(self, machine: MachineView) -> None:
        """Ask what a machine is to be."""
        if machine.spec is None:
            say(self._app, f"What {machine.name} is was not told by its engine.", bad=True)
            return
        note = (
            "" if machine.task_id is None else f"Task {machine.task_id} has it: what is changed holds when that is done with it."
        )
        title = Text.assemble(("Change machine ", "bold"), shown(machine.name, "bold"))
        await self._app.push_screen(MachineForm(title, machine.spec, self._set_machine, is_new=False, note=note))

    def _set_machine(self, machine: MachineSpec, answered: Answered) -> None:
        self._carry_out(SetMachine(machine=machine), answered=answered)

    async def add_watch(self, host: str, here: str) -> None:
        """Ask which folder of `host`, where the engine runs, is to be watched; the console is `here`."""

        def send(watch: WatchSpec, answered: Answered) -> None:
            self._carry_out(AddWatch(watch=watch), answered=answered)

        await self._app.push_screen(WatchForm(host, here, send))

    async def remove_watch(self, watch: WatchView) -> None:
        """Ask, then watch a folder no more."""
        lines = [Text.assemble("Folder ", shown(watch.path, "bold"), f": {watch.added:,} files of it were added.")]
        lines.append(plain("What comes into it stays there from now on. Nothing in it is touched, and its tasks go on."))
        choices = [Choice("Go on watching it", False), Choice("Watch it no more", True, harmful=True)]

        def answered(yes: object) -> None:
            if yes:
                self._carry_out(RemoveWatch(path=watch.path))

        await self._app.push_screen(Question("Watch this folder no more?", lines, choices), answered)

    def pause_or_resume(self, overview: Overview) -> None:
        """Pause, or resume what is paused."""
        is_paused = not self._asked.latest("paused", overview.paused is not None)
        self._carry_out(PausePool() if is_paused else ResumePool(), ("paused", is_paused))

    def _carry_out(self, action: Action, *asks_for: tuple[Hashable, object], answered: Answered | None = None) -> None:
        command = Command(action=action, actor=self._actor, key=uuid4().hex)
        self._asked.ask(asks_for, command.key)
        self._app.run_worker(self._do(command, answered), name="command")

    async def _do(self, command: Command, answered: Answered | None) -> None:
        try:
            outcome = await self._outcome_of(command)
            if answered is None or not answered(outcome):
                say_text(self._app, shown(outcome.message), bad=not outcome.done)
            await self._show()
        finally:
            self._asked.answered(command.key)

    async def _outcome_of(self, command: Command) -> CommandOutcome:
        """A command that didn't get to the engine is one that was not done."""
        try:
            return await self._client.do(command)
        except MalboxError as error:
            return CommandOutcome(done=False, message=str(error))


def _serves(machine: MachineView, task_id: int, task: LiveTask | None) -> Text:
    named = Text.assemble(": ", plain(task.name)) if task is not None else plain("")
    return Text.assemble("Machine ", shown(machine.name, "bold"), f" serves task {task_id}", named)
