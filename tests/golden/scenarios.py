"""The scenes that are pictured: each an app on a scripted engine, a size, and keys. The golden tests and the README's pictures are made
from the same ones, so neither can drift from the other."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from textual.pilot import Pilot
from textual.widgets import Input

from malbox_tui.model.commands import Command, CommandOutcome
from malbox_tui.model.due import TimeLimit
from malbox_tui.model.events import (
    EventBody,
    GroupResized,
    PluginProgress,
    PluginStarted,
    PluginStopped,
    TaskCompleted,
    TaskCreated,
    TaskFailed,
    TaskStageChanged,
    TaskStarting,
    TaskTimedOut,
    WorkerStarted,
    WorkerStopped,
)
from malbox_tui.model.queries import TaskRecord
from malbox_tui.model.report import Identification, PluginStatus
from malbox_tui.model.task import EndedBy, TaskState
from malbox_tui.model.worker import StopReason, WorkerKind
from malbox_tui.tui.app import MalboxApp
from malbox_tui.tui.screens.preview import Preview
from malbox_tui.tui.themes import LIGHT
from malbox_tui.tui.widgets.picture_view import PictureView
from tests.golden import findings, fleet, intakes
from tests.tui.scripted import (
    MALICIOUS,
    SUSPICIOUS,
    ScriptedAttachment,
    ScriptedClient,
    ScriptedIntake,
    console,
    due,
    plugin_run,
    record,
    reference,
    sample,
    sha256_of,
    surroundings,
    task,
    worker,
)

SMALL, NORMAL, WIDE, NARROW = (80, 24), (120, 40), (160, 48), (60, 18)


@dataclass(frozen=True, slots=True)
class Scene:
    """One picture. `before` prepares the app once it is up, `keys` are pressed then; `in_readme` pictures go to `screenshots/`."""

    name: str
    size: tuple[int, int]
    engine: Callable[[], ScriptedClient]
    keys: Sequence[str] = ()
    before: Callable[[MalboxApp], None] | None = None
    in_readme: bool = False
    around: Callable[[], dict[str, Any]] = dict
    """What else the console is given."""

    def app(self) -> MalboxApp:
        """A new app for the scene."""
        return MalboxApp(
            surroundings(
                self.engine(), ScriptedIntake(b"/srv/in/mail/", b"/srv/in/mail/invoice.doc", b"/srv/in/usb/"), **self.around()
            )
        )

    async def play(self, pilot: Pilot[object]) -> None:
        """Bring the app to the moment of the picture."""
        app = pilot.app
        assert isinstance(app, MalboxApp)
        await _settle(pilot, app)
        if self.before is not None:
            self.before(app)
            await _settle(pilot, app)
        for key in self.keys:
            await pilot.press(key)
            await _settle(pilot, app)


async def _settle(pilot: Pilot[object], app: MalboxApp) -> None:
    """Until everything that was told is drawn."""
    while app.picture.overview is None:
        await pilot.pause()
    await pilot.pause()
    for prompt in app.screen.query(Input):
        prompt.cursor_blink = False
        while prompt.value and prompt.suggester is not None and not prompt._suggestion:
            await pilot.pause()
    while isinstance(app.screen, Preview) and not app.screen.has_identified:
        await pilot.pause()
    app.feed.changes.anything = app.feed.changes.tasks = True
    await app.show_changes()
    app.show_time()
    await pilot.pause()
    for view in app.screen.query(PictureView):
        while view.is_looking:
            await pilot.pause()
    await pilot.pause()


# --- ways to an engine -----------------------------------------------------------------------------------------------------------


def _attached() -> dict[str, Any]:
    return {"attachment": ScriptedAttachment()}


def _looking() -> dict[str, Any]:
    return {"attachment": ScriptedAttachment(read_only=True)}


def _with_background() -> dict[str, Any]:
    return {"on_background": lambda: None}


def _cut_off(app: MalboxApp) -> None:
    way = app._around.attachment
    assert isinstance(way, ScriptedAttachment)
    way.breaks("ssh can't get to sbx-01: Connection timed out")


# --- engines -----------------------------------------------------------------------------------------------------------------------


def empty() -> ScriptedClient:
    return ScriptedClient([], [worker(1), worker(2)], ended_per_minute=(0,) * 8)


NAMES = (
    (431, TaskState.RUNNING, b"invoice_2211.doc", "ole", 42.0),
    (432, TaskState.INITIALIZING, b"setup (1).exe", "pe", 1.0),
    (433, TaskState.PENDING, b"r\xe9sum\xe9.exe", "pe", 7.0),
    (434, TaskState.PENDING, "样本 ü.bin".encode(), "unknown", 5.0),
    (435, TaskState.PENDING, b"[bold]not bold[/bold].txt", "text", 5.0),
    (430, TaskState.COMPLETED, b"eicar.com", "dos", 20.0),
    (429, TaskState.COMPLETED, b"report.pdf", "pdf", 31.0),
    (428, TaskState.TIMED_OUT, b"nested.zip", "zip", 44.0),
    (427, TaskState.FAILED, b"broken.elf", "elf", 50.0),
    (426, TaskState.CANCELED, b"holiday.iso", "iso", 55.0),
    (425, TaskState.COMPLETED, b"libcrypto.so.3", "elf", 57.0),
    (424, TaskState.COMPLETED, b"notes.txt", "text", 58.0),
)


def busy() -> ScriptedClient:
    rows = [_row(*entry) for entry in NAMES]
    rows += [record(number, TaskState.COMPLETED, ago_s=900.0 + number) for number in range(380, 424)]
    workers = [
        worker(1, 431, ago_s=42.0, dues=(due(258),)),
        worker(2, 432, ago_s=1.0, dues=(due(119, TimeLimit.INITIALIZING, 120.0),)),
        worker(3, ago_s=41.0),
        worker(4, ago_s=3.0),
    ]
    return ScriptedClient(rows, workers, told=[])


def followed() -> ScriptedClient:
    consoles = (console(), console("ben", "ben@soc-3 (process 90210)", ago_s=75.0, read_only=True), console("root", "process 17"))
    client = told()
    client._engine["consoles"] = consoles
    return client


def _row(number: int, state: TaskState, name: bytes, kind: str, ago_s: float) -> TaskRecord:
    row = TaskRecord(task(number, state, ago_s=ago_s), sample(number, name, identification=Identification(kind)))
    if number == 430:
        found = plugin_run(430, "yara-x", verdict=MALICIOUS, results=[reference(430, "yara-x")])
        return _with(row, verdict=MALICIOUS, plugins=(plugin_run(430, "digests"), plugin_run(430), found))
    if number == 429:
        return _with(row, verdict=SUSPICIOUS, priority=5)
    if number == 428:
        slow = plugin_run(428, "yara-x", PluginStatus.TIMED_OUT, reason="the time limit of the task ended it", seconds=300.0)
        return _with(
            row,
            plugins=(plugin_run(428), slow),
            reason="The analysis timeout of 300 s ended it during yara-x.",
            stages={"pending": 4.0, "initializing": 0.5, "running": 300.0, "stopping": 0.4},
        )
    if number == 427:
        crashed = plugin_run(427, "file-type", PluginStatus.FAILED, reason="the process was killed by SIGSEGV", results=[])
        return _with(row, plugins=(crashed,), reason="Every plugin failed: file-type: the process was killed by SIGSEGV.")
    return row


def _with(row: TaskRecord, **changes: object) -> TaskRecord:
    import msgspec

    return TaskRecord(msgspec.structs.replace(row.task, **changes), row.sample)


def told() -> ScriptedClient:
    """As `busy`, with an event log."""
    client = busy()
    news: list[tuple[float, EventBody]] = [
        (130.0, WorkerStarted(worker=worker(1).id, group="default", kind=WorkerKind.BASELINE)),
        (75.0, WorkerStopped(worker=worker(9).id, group="default", reason=StopReason.IDLE)),
        (70.0, GroupResized(group="default", min_workers=2, max_workers=4)),
        (50.0, TaskFailed(task_id=427, ended_by=EndedBy.PLUGIN_ERROR, reason="Every plugin failed: file-type: it crashed.")),
        (44.0, TaskTimedOut(task_id=428, ended_by=EndedBy.ANALYSIS_TIMEOUT, reason="The analysis timeout of 300 s ended it.")),
        (41.0, WorkerStarted(worker=worker(3).id, group="default", kind=WorkerKind.DEMAND)),
        (31.0, TaskCompleted(task_id=429, ended_by=EndedBy.FINISHED, reason="Finished.", verdict=SUSPICIOUS)),
        (20.0, TaskCompleted(task_id=430, ended_by=EndedBy.FINISHED, reason="Finished.", verdict=MALICIOUS)),
        (7.0, _created(433, r"r\xe9sum\xe9.exe")),
        (5.0, _created(434, "样本 ü.bin")),
        (5.0, _created(435, "[bold]not bold[/bold].txt")),
        (1.0, TaskStarting(task_id=432, worker=worker(2).id, attempt=1)),
    ]
    for ago_s, body in news:
        client.happens(body, ago_s=ago_s)
    return client


def _created(number: int, name: str) -> TaskCreated:
    return TaskCreated(task_id=number, sha256=sha256_of(number), type="static", priority=1, name=name)


def paused() -> ScriptedClient:
    client = told()
    client._engine["paused"] = "paused by ana"
    return client


def weak_and_stopping() -> ScriptedClient:
    client = told()
    client._engine.update(isolation="resource limits alone", stopping="drain", free_bytes=3 * 1024**3)
    return client


def working() -> ScriptedClient:
    """A task at work, one plugin done and one half-way."""
    client = busy()
    client.happens(TaskStageChanged(task_id=431, state=TaskState.RUNNING), ago_s=42.0)
    client.happens(PluginStarted(task_id=431, plugin="digests"), ago_s=42.0)
    client.happens(PluginStopped(task_id=431, plugin="digests", status=PluginStatus.COMPLETED, seconds=0.31), ago_s=41.7)
    client.happens(PluginStarted(task_id=431, plugin="yara-x"), ago_s=41.0)
    client.happens(
        PluginProgress(task_id=431, plugin="yara-x", fraction=0.6, message="rule 412 of 687"), ago_s=1.0, durable=False
    )
    return client


def reported() -> ScriptedClient:
    """A malicious task with a report that has many kinds of blocks."""
    client = busy()
    client.results["430/yara-x/report"] = json.dumps(REPORT).encode()
    for plugin, summary in (("digests", "5 digests"), ("file-type", "DOS executable (COM)")):
        short = {"schema_version": 1, "plugin": {"id": plugin, "version": "0.1.0"}, "summary": summary}
        client.results[f"430/{plugin}/report"] = json.dumps(short).encode()
    return client


REPORT = {
    "schema_version": 1,
    "plugin": {"id": "yara-x", "version": "0.1.0"},
    "summary": "1 of 687 rules matched",
    "verdict": {"classification": "malicious", "score": 100, "labels": ["EICAR_Test_File"]},
    "indicators": [{"kind": "sha256", "value": sha256_of(430), "context": "the sample"}],
    "ttps": [{"id": "T1204.002", "name": "Malicious File", "evidence": "a test file"}],
    "sections": [
        {
            "id": "matches",
            "title": "Matches",
            "blocks": [
                {"type": "callout", "level": "warn", "text": "This is the harmless test file of the antivirus industry."},
                {"type": "kv", "pairs": [{"key": "rule", "value": "EICAR_Test_File"}, {"key": "tags", "value": "test"}]},
                {
                    "type": "table",
                    "columns": [{"key": "at", "label": "offset"}, {"key": "what", "label": "pattern"}],
                    "rows": [{"at": 0, "what": "$eicar"}, {"at": 27, "what": "$standard"}],
                },
                {"type": "hex", "bytes_b64": "WDVPIVAlQEFQWzRcUFpYNTQoUF4=", "offset": 0},
                {"type": "tree", "nodes": [{"label": "rules", "children": [{"label": "eicar.yar"}, {"label": "packers.yar"}]}]},
            ],
        }
    ],
}


def hostile() -> ScriptedClient:
    names = (
        b"new\nline.exe",
        b"\x1b]0;title\x07\x1b[31mred.exe",
        b"[bold]x[/] [/] [link=http://x]y[/link]",
        "right\u202eexe.txt".encode(),
        b"\xff\xfe invalid",
        b"n" * 255,
        "wide 様様様様様様様様様様様様様様様様様様様様".encode(),
        b"[@click=app.quit]x[/]",
    )
    rows = [TaskRecord(task(number, TaskState.PENDING, ago_s=3.0), sample(number, name)) for number, name in enumerate(names, 1)]
    return ScriptedClient(rows, [worker(1), worker(2)])


def answering() -> ScriptedClient:
    client = told()
    client._answer = lambda command: _refused(command)
    return client


def _refused(command: Command) -> CommandOutcome:
    return CommandOutcome(done=False, message="min 5 is above max 4; nothing was changed.")


def _light(app: MalboxApp) -> None:
    app.theme = LIGHT


def _without_colours(app: MalboxApp) -> None:
    app.no_color = True


def _at_task(number: int) -> Callable[[MalboxApp], None]:
    def put(app: MalboxApp) -> None:
        app.dashboard.tasks.put_cursor_on(number)

    return put


SCENES: tuple[Scene, ...] = (
    Scene("empty-80x24", SMALL, empty),
    Scene("empty-120x40", NORMAL, empty),
    Scene("dashboard-80x24", SMALL, told),
    Scene("dashboard-100x30", (100, 30), told),
    Scene("dashboard-120x40", NORMAL, told, in_readme=True),
    Scene("dashboard-160x48", WIDE, told),
    Scene("dashboard-60x18", NARROW, told),
    Scene("dashboard-light-120x40", NORMAL, told, before=_light),
    Scene("too-small-40x12", (40, 12), told),
    Scene("paused-80x24", SMALL, paused),
    Scene("weak-and-stopping-120x40", NORMAL, weak_and_stopping),
    Scene("task-running-120x40", NORMAL, working, ["enter"], _at_task(431)),
    Scene("task-malicious-120x40", NORMAL, reported, ["enter"], _at_task(430), in_readme=True),
    Scene("task-report-120x40", NORMAL, reported, ["enter", "end"], _at_task(430)),
    Scene("task-timed-out-80x24", SMALL, told, ["enter"], _at_task(428)),
    Scene("task-failed-80x24", SMALL, told, ["enter"], _at_task(427)),
    Scene("task-pending-60x18", NARROW, told, ["enter"], _at_task(433)),
    Scene("cancel-question-80x24", SMALL, told, ["c"], _at_task(431)),
    Scene("quit-question-120x40", NORMAL, told, ["q"]),
    Scene("help-120x40", NORMAL, told, ["question_mark"]),
    Scene("help-80x24", SMALL, told, ["question_mark"]),
    Scene("help-signs-80x24", SMALL, told, ["question_mark", "end"]),
    Scene("filter-80x24", SMALL, told, ["slash", "e", "i", "c"]),
    Scene("filtered-80x24", SMALL, told, ["slash", "e", "i", "c", "enter"]),
    Scene("none-matches-80x24", SMALL, told, ["slash", "z", "z", "enter"]),
    Scene("failed-view-120x40", NORMAL, told, ["v", "v", "v", "v"]),
    Scene("add-80x24", SMALL, told, ["a", "slash", "s"]),
    Scene("drop-80x24", SMALL, told, before=intakes.dropped),
    Scene("drop-120x40", NORMAL, told, before=intakes.dropped, in_readme=True),
    Scene("drop-60x18", NARROW, told, before=intakes.dropped),
    Scene("drop-partly-missing-100x30", (100, 30), told, before=intakes.partly_missing),
    Scene("adding-80x24", SMALL, told, before=intakes.adding),
    Scene("adding-120x40", NORMAL, told, before=intakes.adding),
    Scene("adding-60x18", NARROW, told, before=intakes.adding),
    Scene("intakes-120x40", NORMAL, intakes.accounts, ["h", "down"]),
    Scene("intakes-80x24", SMALL, intakes.accounts, ["h"]),
    Scene("account-120x40", NORMAL, intakes.accounts, ["h", "enter"], in_readme=True),
    Scene("account-80x24", SMALL, intakes.accounts, ["h", "enter", "down"]),
    Scene("account-refused-60x18", NARROW, intakes.accounts, ["h", "enter", "v", "v", "v", "v"]),
    Scene("account-light-120x40", NORMAL, intakes.accounts, ["h", "enter"], before=_light),
    Scene("refused-80x24", SMALL, answering, ["right_curly_bracket"]),
    Scene("hostile-names-120x40", NORMAL, hostile),
    Scene("fleet-80x24", SMALL, fleet.fleet),
    Scene("fleet-machines-80x24", SMALL, fleet.fleet, ["w", "m", "down", "down", "down"]),
    Scene("fleet-events-80x24", SMALL, fleet.fleet, ["l"]),
    Scene("fleet-machines-60x18", NARROW, fleet.fleet, ["m"]),
    Scene("fleet-120x40", NORMAL, fleet.fleet, ["w"], in_readme=True),
    Scene("fleet-160x48", WIDE, fleet.fleet, ["m"]),
    Scene("fleet-light-120x40", NORMAL, fleet.fleet, before=_light),
    Scene("store-trouble-80x24", SMALL, fleet.trouble),
    Scene("store-trouble-120x40", NORMAL, fleet.trouble),
    Scene("draining-100x30", (100, 30), fleet.draining),
    Scene("machine-question-80x24", SMALL, fleet.fleet, ["m", "down", "d"]),
    Scene("machine-quarantined-80x24", SMALL, fleet.fleet, ["m", "down", "down", "down", "enter"]),
    Scene("machine-quarantined-120x40", NORMAL, fleet.fleet, ["m", "down", "down", "down", "enter"]),
    Scene("machine-80x24", SMALL, fleet.fleet, ["m", "down", "enter"]),
    Scene("machine-picture-80x24", SMALL, fleet.fleet, ["m", "down", "enter", "end"]),
    Scene("machine-100x30", (100, 30), fleet.fleet, ["m", "down", "enter"]),
    Scene("machine-140x45", (140, 45), fleet.fleet, ["m", "down", "enter"], in_readme=True),
    Scene("machine-light-140x45", (140, 45), fleet.fleet, ["m", "down", "enter"], before=_light),
    Scene("machine-no-colours-100x30", (100, 30), fleet.fleet, ["m", "down", "enter"], before=_without_colours),
    Scene("machine-unshowable-100x30", (100, 30), fleet.unshowable, ["m", "down", "enter"]),
    Scene("machine-remove-question-80x24", SMALL, fleet.fleet, ["m", "down", "x"]),
    Scene("machine-add-80x24", SMALL, fleet.fleet, ["n", *"win11-1"]),
    Scene("machine-add-refused-120x40", NORMAL, fleet.refusing, ["n", *"win11-1", "tab", *"windows", "enter"]),
    Scene("machine-edit-100x30", (100, 30), fleet.fleet, ["m", "down", "i"]),
    Scene("machine-help-120x40", NORMAL, fleet.fleet, ["m", "enter", "question_mark", "end"]),
    Scene("task-screen-80x24", SMALL, fleet.looked_at, ["enter"], _at_task(432)),
    Scene("task-screen-140x45", (140, 45), fleet.looked_at, ["enter"], _at_task(432)),
    Scene("task-screenshots-140x45", (140, 45), fleet.run_in_guest, ["enter", "left"], _at_task(430)),
    Scene("task-screenshots-80x24", SMALL, fleet.run_in_guest, ["enter"], _at_task(430)),
    Scene("quit-question-fleet-80x24", SMALL, fleet.fleet, ["q"]),
    Scene("task-waits-80x24", SMALL, fleet.failed_before, ["enter"], _at_task(437)),
    Scene("task-skipped-120x40", NORMAL, fleet.failed_before, ["enter"], _at_task(430)),
    Scene("many-slots-120x40", NORMAL, fleet.many_slots),
    Scene("many-slots-80x24", SMALL, fleet.many_slots),
    Scene("near-the-end-80x24", SMALL, fleet.near_the_end),
    Scene("near-the-end-120x40", NORMAL, fleet.near_the_end),
    Scene("near-the-end-160x48", WIDE, fleet.near_the_end),
    Scene("near-the-end-60x18", NARROW, fleet.near_the_end),
    Scene("near-the-end-quit-80x24", SMALL, fleet.near_the_end, ["q"]),
    Scene("batches-80x24", SMALL, fleet.batches),
    Scene("batches-120x40", NORMAL, fleet.batches),
    Scene("batches-160x48", WIDE, fleet.batches),
    Scene("timed-out-220x24", (220, 24), fleet.timed_out),
    Scene("task-watched-80x24", SMALL, fleet.near_the_end, ["enter"], _at_task(405)),
    Scene("task-stands-80x24", SMALL, fleet.batches, ["enter"], _at_task(403)),
    Scene("task-stage-timeout-80x24", SMALL, fleet.timed_out, ["enter"], _at_task(3)),
    Scene("task-critical-timeout-120x40", NORMAL, fleet.timed_out, ["enter"], _at_task(2)),
    Scene("disconnected-80x24", SMALL, followed, before=_cut_off, around=_attached),
    Scene("disconnected-120x40", NORMAL, followed, ["p"], before=_cut_off, around=_attached),
    Scene("disconnected-60x18", NARROW, followed, before=_cut_off, around=_attached),
    Scene("read-only-80x24", SMALL, followed, around=_looking),
    Scene("read-only-120x40", NORMAL, followed, ["c"], around=_looking),
    Scene("who-else-80x24", SMALL, followed, ["u"], around=_attached),
    Scene("leaving-120x40", NORMAL, told, ["q"], around=_with_background),
    Scene("leaving-80x24", SMALL, fleet.near_the_end, ["q"], around=_with_background),
    Scene("background-question-80x24", SMALL, told, ["b"], around=_with_background),
    Scene("many-groups-80x24", SMALL, fleet.many_groups, ["w", "w"]),
    Scene("many-groups-160x48", WIDE, fleet.many_groups, ["w"]),
    Scene("findings-120x40", NORMAL, findings.found, ["enter"]),
    Scene("report-120x40", NORMAL, findings.found, ["enter", "v"]),
    Scene("report-80x24", SMALL, findings.found, ["enter", "v"]),
    Scene("report-table-80x24", SMALL, findings.found, ["enter", "v", *["n"] * 4, "pagedown", "right"]),
    Scene("report-end-120x40", NORMAL, findings.found, ["enter", "v", "end"]),
    Scene("report-light-120x40", NORMAL, findings.found, ["enter", "v"], before=_light),
    Scene("sample-120x40", NORMAL, findings.known, ["enter", "s"], _at_task(512)),
    Scene("sample-80x24", SMALL, findings.known, ["enter", "s"], _at_task(512)),
    Scene("sample-end-80x24", SMALL, findings.known, ["enter", "s", "end"], _at_task(512)),
    Scene("sample-tags-80x24", SMALL, findings.known, ["enter", "s", "number_sign"], _at_task(512)),
    Scene("report-picture-80x24", SMALL, findings.pictured, ["enter", "v"]),
    Scene("profiles-80x24", SMALL, findings.profiled, ["f", "q"]),
    Scene("export-80x24", SMALL, findings.found, ["enter", "o"]),
)
"""Every picture, by name."""
