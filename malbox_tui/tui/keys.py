"""Every key, once: the app's bindings, the footer, the help screen and the README's table are all made from here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textual.binding import Binding, BindingType


@dataclass(frozen=True, slots=True)
class Key:
    """A key and what it does. `id` is what a keymap would name it by; `footer` empty: not shown at the bottom."""

    id: str
    keys: str
    action: str
    shown: str
    footer: str
    help: str
    priority: bool = False

    def binding(self) -> Binding:
        """As Textual wants it."""
        return Binding(
            self.keys,
            self.action,
            self.footer or self.help,
            show=bool(self.footer),
            key_display=self.shown,
            id=self.id,
            priority=self.priority,
        )


DASHBOARD: tuple[Key, ...] = (
    Key("task.open", "enter", "app.open_task", "enter", "open", "Open the task under the cursor"),
    Key(
        "samples.add",
        "a",
        "app.add_samples",
        "a",
        "add",
        "Add files or folders; dropping or pasting paths anywhere does the same",
    ),
    Key("samples.stop", "escape", "app.stop_adding", "esc", "", "Stop reading what is being added; what was added stays"),
    Key(
        "samples.take_back",
        "ctrl+z",
        "app.take_back",
        "^z",
        "",
        "Take back what was added last, until the first of it starts; then it asks about what still waits",
    ),
    Key("intakes.show", "h", "app.show_intakes", "h", "", "What came in, and what became of each thing"),
    Key("watches.show", "W", "app.show_watches", "W", "", "The watched folders; there one is added and removed"),
    Key("task.cancel", "c", "app.cancel_task", "c", "cancel", "Cancel the task under the cursor (asks first)"),
    Key("task.retry", "r", "app.retry_task", "r", "retry", "Analyse the content of an ended task again, as a new task"),
    Key("task.raise", "plus,equals_sign", "app.priority(1)", "+", "", "Raise the priority of a waiting task"),
    Key("task.lower", "minus", "app.priority(-1)", "-", "", "Lower the priority of a waiting task"),
    Key("task.profile", "f", "app.profile", "f", "", "Give a waiting task another profile"),
    Key("task.identify", "I", "app.identify", "I", "", "Find out what the sample of a waiting task is, before its run"),
    Key("task.needs", "E", "app.needs", "E", "", "Change what a waiting task asks for: type, platform, arch, tags, timeout"),
    Key(
        "workers.group",
        "w",
        "screen.next_group",
        "w",
        "",
        "Choose the next worker group: the keys below act on the chosen one (▸)",
    ),
    Key("workers.more", "right_square_bracket", "app.resize_max(1)", "]", "", "One more worker of the group at most (max)"),
    Key(
        "workers.fewer",
        "left_square_bracket",
        "app.resize_max(-1)",
        "[",
        "",
        "One worker fewer at most; surplus ones finish first",
    ),
    Key("workers.raise_min", "right_curly_bracket", "app.resize_min(1)", "}", "", "One more baseline worker (min)"),
    Key("workers.lower_min", "left_curly_bracket", "app.resize_min(-1)", "{", "", "One baseline worker fewer"),
    Key(
        "workers.save",
        "s",
        "app.save_limits",
        "s",
        "",
        "Keep min and max of all groups for the next start (* marks what isn't kept)",
    ),
    Key("pool.pause", "p", "app.pause", "p", "pause", "Pause: no task is taken, what runs goes on. Again: resume"),
    Key(
        "tasks.filter",
        "slash",
        "screen.filter",
        "/",
        "filter",
        "Show only tasks whose name holds a text, or whose SHA-256 begins with it",
    ),
    Key("tasks.next_view", "v", "screen.next_view", "v", "", "Next view: all, active, waiting, ended, failed"),
    Key("timelines.zoom", "z", "screen.zoom", "z", "", "Timelines over 1, 5 or 30 minutes"),
    Key(
        "machines.show",
        "m",
        "screen.machines",
        "m",
        "machines",
        "Go to the machines (on a small screen they take the place of the timelines); again: back",
    ),
    Key("machine.add", "n", "app.add_machine", "n", "", "Add a machine"),
    Key("events.show", "l", "screen.events", "l", "", "Go to the event log, likewise; again: back"),
)
"""What works on the dashboard."""

EVERYWHERE: tuple[Key, ...] = (
    Key("app.help", "question_mark,f1", "app.help", "?", "help", "All keys"),
    Key("app.palette", "ctrl+p", "app.command_palette", "^p", "", "The command palette"),
    Key("app.who", "u", "app.who", "u", "", "Who else is attached to this engine"),
    Key("app.theme", "t", "app.toggle_dark", "t", "", "Dark or light"),
    Key("app.quit", "q,ctrl+q", "app.quit", "q", "quit", "Leave: finish, keep or cancel what runs (asks first)"),
    Key(
        "app.background",
        "b",
        "app.background",
        "b",
        "",
        "Leave, and let the pool go on in the background (asks first); `malbox-tui` attaches to it again",
    ),
)
"""What works on every screen but the dialogs."""

TABLE: tuple[Key, ...] = (
    Key("table.up", "up,k", "cursor(-1)", "↑", "", "Up a row (also k)"),
    Key("table.down", "down,j", "cursor(1)", "↓", "", "Down a row (also j)"),
    Key("table.page_up", "pageup", "page(-1)", "page up", "", "Up a page"),
    Key("table.page_down", "pagedown", "page(1)", "page down", "", "Down a page"),
    Key("table.first", "home,g", "edge(-1)", "home", "", "The first row (also g)"),
    Key("table.last", "end,G", "edge(1)", "end", "", "The last row (also G)"),
)
"""Moving in a list."""


def _machine_keys(place: str, which: str) -> tuple[Key, ...]:
    """What can be done to a machine, for one of the places where that works."""
    return (
        Key(f"{place}.probe", "y", "app.probe_machine", "y", "probe", f"Try {which} now: it is reverted, and has to answer"),
        Key(
            f"{place}.disable",
            "d",
            "app.disable_machine",
            "d",
            "disable",
            f"Take {which} out for maintenance (asks first when a task has it)",
        ),
        Key(
            f"{place}.enable",
            "e",
            "app.enable_machine",
            "e",
            "enable",
            f"Bring {which} back; it serves when it is proven clean",
        ),
        Key(f"{place}.edit", "i", "app.edit_machine", "i", "edit", f"Change what {which} is"),
        Key(
            f"{place}.remove",
            "x",
            "app.remove_machine",
            "x",
            "remove",
            f"Take {which} out of the pool for good (asks first); its hypervisor keeps it",
        ),
    )


MACHINES: tuple[Key, ...] = (
    Key(
        "machine.open",
        "enter",
        "app.show_machine",
        "enter",
        "open",
        "All about the machine under the cursor: what it is, its history, its screen",
    ),
    *_machine_keys("machine", "the machine under the cursor"),
    Key("machine.back", "escape", "screen.machines", "esc", "", "Back to the tasks"),
)
"""What works on the machines, besides moving, while they have the focus. Keys for tasks don't then."""

MACHINE_SCREEN: tuple[Key, ...] = (
    Key("machine.leave", "escape,backspace", "app.back", "esc", "back", "Back to where one came from"),
    Key("machine.task", "enter", "app.open_machines_task", "enter", "task", "Open the task that has this machine"),
    *_machine_keys("machine_here", "this machine"),
)
"""What works on the screen of one machine, besides scrolling."""

TASK_SCREEN: tuple[Key, ...] = (
    Key("task.back", "escape,backspace", "app.back", "esc", "back", "Back to where one came from"),
    Key("task.cancel_here", "c", "app.cancel_task", "c", "cancel", "Cancel this task (asks first)"),
    Key("task.retry_here", "r", "app.retry_task", "r", "retry", "Analyse this content again, as a new task"),
    Key("task.profile_here", "f", "app.profile", "f", "", "Give this task, while it waits, another profile"),
    Key("task.identify_here", "I", "app.identify", "I", "", "Find out what the sample is, while the task waits"),
    Key("task.needs_here", "E", "app.needs", "E", "", "Change what this task asks for, while it waits"),
    Key("task.report", "v", "screen.report", "v", "report", "The reports whole: long tables and trees scroll"),
    Key(
        "task.export",
        "o",
        "screen.export",
        "o",
        "export",
        "Write the report to a file: a page, Markdown or JSON, as its name ends",
    ),
    Key(
        "task.sample",
        "s",
        "app.show_sample",
        "s",
        "sample",
        "All about its content: every task of it, verdicts, names, notes and tags",
    ),
    Key("task.earlier_picture", "left", "screen.picture(-1)", "←", "", "The screenshot before the one that is shown"),
    Key("task.later_picture", "right", "screen.picture(1)", "→", "", "The screenshot after it"),
)
"""What works on the screen of one task, besides scrolling."""

SAMPLE_SCREEN: tuple[Key, ...] = (
    Key("sample.back", "escape,backspace", "app.back", "esc", "back", "Back to where one came from"),
    Key("sample.note", "n", "app.note_sample", "n", "note", "Write a note of this content"),
    Key(
        "sample.purge",
        "x",
        "app.purge_sample",
        "x",
        "purge",
        "Remove this content for good, with its tasks and all results (asks first)",
    ),
    Key("sample.tag", "number_sign", "app.tag_sample", "#", "tag", "Give it a tag, or take one away (-tag)"),
)
"""What works on the screen of one content, besides scrolling."""

INTAKES_SCREEN: tuple[Key, ...] = (
    Key("intakes.back", "escape,backspace", "app.back", "esc", "back", "Back to where one came from"),
    Key("intakes.open", "enter", "screen.open", "enter", "open", "The account of the intake under the cursor"),
)
"""What works on the list of intakes, besides moving."""

WATCHES_SCREEN: tuple[Key, ...] = (
    Key("watches.back", "escape,backspace", "app.back", "esc", "back", "Back to where one came from"),
    Key("watches.add", "n", "app.add_watch", "n", "add", "Watch a folder of the engine's host, after the next start too"),
    Key("watches.remove", "x", "app.remove_watch", "x", "remove", "Watch the folder under the cursor no more (asks first)"),
)
"""What works on the list of watched folders, besides moving."""

ACCOUNT_SCREEN: tuple[Key, ...] = (
    Key("account.back", "escape,backspace", "app.back", "esc", "back", "Back to where one came from"),
    Key("account.view", "v", "screen.next_view", "v", "view", "Next view: all, accepted, duplicates, opened archives, refused"),
    Key("account.open", "enter", "screen.open", "enter", "sample", "All about the content under the cursor"),
)
"""What works on one intake's account, besides moving."""

REPORT: tuple[Key, ...] = (
    Key("report.up", "up,k", "by(-1)", "↑", "", "Up a line (also k)"),
    Key("report.down", "down,j", "by(1)", "↓", "", "Down a line (also j)"),
    Key("report.page_up", "pageup", "by_page(-1)", "page up", "", "Up a page"),
    Key("report.page_down", "pagedown,space", "by_page(1)", "page down", "", "Down a page (also space)"),
    Key("report.first", "home,g", "edge(-1)", "home", "", "To the beginning (also g)"),
    Key("report.last", "end,G", "edge(1)", "end", "", "To the end (also G)"),
    Key("report.left", "left,h", "pan(-1)", "←", "", "Show what is further to the left (also h)"),
    Key("report.right", "right,l", "pan(1)", "→", "", "Show what is further to the right (also l)"),
    Key("report.next", "n,tab", "title(1)", "n", "next", "To the next title (also tab)"),
    Key("report.previous", "N,shift+tab", "title(-1)", "N", "previous", "To the title before (also shift+tab)"),
)
"""Moving in reports."""

REPORT_SCREEN: tuple[Key, ...] = (
    Key("report.back", "escape,backspace", "screen.back", "esc", "back", "Back to the task"),
    Key(
        "report.export",
        "o",
        "screen.export",
        "o",
        "export",
        "Write the report to a file: a page, Markdown or JSON, as its name ends",
    ),
)
"""What works on the screen of a task's reports, besides moving."""

GROUPS: tuple[tuple[str, tuple[Key, ...]], ...] = (
    ("Dashboard", DASHBOARD),
    ("Machines", MACHINES),
    ("Lists", TABLE),
    ("One task", TASK_SCREEN),
    ("Reports", (*REPORT_SCREEN, *REPORT)),
    ("One sample", SAMPLE_SCREEN),
    ("One machine", MACHINE_SCREEN),
    ("Intakes", INTAKES_SCREEN),
    ("One account", ACCOUNT_SCREEN),
    ("Watched folders", WATCHES_SCREEN),
    ("Everywhere", EVERYWHERE),
)
"""All keys by where they work, in the order of the help screen."""

YIELDING = (
    "screen.machines",
    "title(-1)",
    "title(1)",
    "screen.export",
    "app.show_sample",
    "app.pause",
    "app.retry_task",
    "app.edit_machine",
    "app.remove_machine",
    "screen.filter",
    "screen.next_view",
    "screen.open",
    "app.open_task",
    "app.show_machine",
    "app.open_machines_task",
    "app.probe_machine",
    "screen.report",
    "app.cancel_task",
    "app.add_samples",
    "app.purge_sample",
    "app.tag_sample",
    "app.note_sample",
    "app.remove_watch",
    "app.add_watch",
)
"""Actions whose keys the bottom line does without where there is little room, the first one first."""

TASK_ACTIONS = frozenset({"open_task", "cancel_task", "retry_task", "priority", "profile", "needs", "identify"})
"""Actions on one task."""
CHANGING_ACTIONS = frozenset(
    {
        "add_samples",
        "take_back",
        "cancel_task",
        "retry_task",
        "priority",
        "profile",
        "needs",
        "identify",
        "resize_min",
        "resize_max",
        "save_limits",
        "pause",
        "probe_machine",
        "disable_machine",
        "enable_machine",
        "add_machine",
        "add_watch",
        "remove_watch",
        "edit_machine",
        "remove_machine",
        "note_sample",
        "purge_sample",
        "tag_sample",
    }
)
"""Actions that change something of the engine's."""
ASKING_ACTIONS = CHANGING_ACTIONS | {"show_intakes", "open_task", "open_machines_task", "filter", "next_view"}
"""Actions that an engine has to answer."""
MACHINE_ACTIONS = frozenset(
    {"show_machine", "open_machines_task", "probe_machine", "disable_machine", "enable_machine", "edit_machine", "remove_machine"}
)
"""Actions on the machine under the cursor, or the one that is shown."""


def bindings(keys: Sequence[Key]) -> list[BindingType]:
    """As Textual wants them."""
    return [key.binding() for key in keys]
