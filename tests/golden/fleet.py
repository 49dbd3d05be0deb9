"""Scripted engines with several worker groups and machines, for the scenes that show them."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO

import msgspec
from PIL import Image, ImageDraw

from malbox_tui.model.commands import CommandOutcome
from malbox_tui.model.due import TimeLimit
from malbox_tui.model.events import (
    EventBody,
    MachineChanged,
    PluginStarted,
    PoolPaused,
    ScreenshotTaken,
    StoreFailing,
    StoreWorks,
    TaskCreated,
    TaskGivenBack,
    WorkerStarted,
)
from malbox_tui.model.machine import MachineFacts, MachineMoment, MachineSpec, MachineState, MachineView
from malbox_tui.model.queries import TaskRecord
from malbox_tui.model.report import Identification, PluginRun, PluginStatus, ResultRef
from malbox_tui.model.task import EndedBy, RequirementClass, TaskState
from malbox_tui.model.worker import WorkerKind, WorkerState, WorkerView
from tests.tui.scripted import (
    MALICIOUS,
    NOW,
    ScriptedClient,
    due,
    group,
    machine,
    plugin_run,
    record,
    reference,
    sample,
    sha256_of,
    task,
    worker,
)

WINDOWS = RequirementClass("dynamic", "windows", "x64")
OFFICE = RequirementClass("dynamic", "windows", "x64", ("office",))
LINUX = RequirementClass("dynamic", "linux", "x64")

REASONS = {
    436: "waiting for a machine: windows/x64, tag office (1 busy, 1 disabled)",
    437: "waiting for a machine: linux/x64 (1 quarantined)",
    438: "waiting for machine win7-1: it is disabled (maintenance, by ana)",
    439: "next in line",
}


def machines() -> tuple[MachineView, ...]:
    return (
        machine("win10-1", MachineState.STARTING, ago_s=3.0, task_id=435, tags=("office",)),
        machine(
            "win10-2",
            MachineState.LEASED,
            ago_s=44.0,
            task_id=432,
            tags=("office",),
            failures=1,
            leaving=True,
            history=_HISTORY,
            spec=_spec("win10-2", tags=("office",), watch=("C:\\Users\\ana\\Desktop", "C:\\Windows\\Temp"), disk_kib_s=20480),
            facts=MachineFacts(
                memory_mb=4096,
                vcpus=2,
                warnings=("Its network card is one of type 'user': the guest reaches this host's own ports, and the internet.",),
            ),
            screenshot=SCREEN,
            screenshot_at=NOW - 4.0,
        ),
        machine("win7-1", MachineState.DISABLED, ago_s=7300.0, arch="x86", tags=("office", "slow"), reason="maintenance, by ana"),
        machine(
            "linux-1",
            MachineState.QUARANTINED,
            ago_s=130.0,
            platform="linux",
            failures=3,
            reason='the snapshot "clean" is not there: make it, or name another one in the configuration',
            history=_DOWNFALL,
            spec=_spec("linux-1", platform="linux"),
        ),
        machine("linux-2", MachineState.REVERTING, ago_s=5.0, platform="linux"),
        machine("played-1", provider="simulated", platform="linux", arch="arm64", tags=("router",)),
    )


def _spec(name: str, platform: str = "windows", **changes: object) -> MachineSpec:
    given = MachineSpec(
        name=name,
        provider="libvirt",
        platform=platform,
        uri="qemu+ssh://analyst@hv-2.example/system",
        domain=f"malbox-{name}",
        snapshot="clean",
        channel="qga",
    )
    return msgspec.structs.replace(given, **changes)


def _was(ago_s: float, state: MachineState, task_id: int | None = None, reason: str = "") -> MachineMoment:
    return MachineMoment(at=NOW - ago_s, state=state, task_id=task_id, reason=reason)


_HISTORY = (
    _was(660.0, MachineState.REVERTING),
    _was(648.5, MachineState.READY),
    _was(301.0, MachineState.LEASED, 428),
    _was(300.0, MachineState.STARTING, 428),
    _was(180.0, MachineState.REVERTING, reason="the guest did not answer within 120 s"),
    _was(171.0, MachineState.READY),
    _was(44.0, MachineState.LEASED, 432),
)
_DOWNFALL = (
    _was(900.0, MachineState.READY),
    _was(400.0, MachineState.LEASED, 421),
    _was(388.0, MachineState.REVERTING, reason="the guest did not answer within 120 s"),
    _was(131.0, MachineState.REVERTING, reason="the guest did not answer within 120 s"),
    _was(130.0, MachineState.QUARANTINED, reason='the snapshot "clean" is not there: make it, or name another one'),
)


def screen(step: int) -> bytes:
    """A desktop with so many windows, as PNG."""
    image = Image.new("RGB", (1024, 768), (18, 52, 86))
    draw = ImageDraw.Draw(image)
    for y in range(0, 768, 8):
        draw.rectangle((0, y, 1023, y + 7), fill=(18 + y // 16, 52 + y // 12, 96 + y // 10))
    for number in range(5):
        draw.rectangle((24, 24 + 96 * number, 72, 72 + 96 * number), fill=(226, 200 - 30 * number, 90 + 30 * number))
    for number in range(step):
        left, top = 150 + 140 * number, 60 + 90 * number
        draw.rectangle((left, top, left + 520, top + 360), fill=(236, 238, 241), outline=(60, 64, 72), width=4)
        draw.rectangle((left, top, left + 520, top + 36), fill=(176, 48, 48) if number == 2 else (52, 92, 148))
        for line in range(6):
            draw.rectangle(
                (left + 30, top + 70 + 44 * line, left + 200 + 47 * ((line * 3 + number) % 6), top + 88 + 44 * line),
                fill=(96, 102, 112),
            )
    draw.rectangle((0, 728, 1023, 767), fill=(30, 34, 40))
    draw.rectangle((8, 736, 48, 760), fill=(90, 170, 230))
    packed = BytesIO()
    image.save(packed, "PNG")
    return packed.getvalue()


def _screenshot(number: int, task_id: int = 432) -> ResultRef:
    return reference(task_id, "guest-run", f"screenshot-{number:03}.png", "file", 31_000 + number)


SCREEN = _screenshot(2)


def workers() -> tuple[WorkerView, ...]:
    note = {"note": "could take any task"}
    return (
        worker(1, 431, ago_s=42.0, dues=(due(258),)),
        worker(2, ago_s=95.0, **note),
        worker(3, ago_s=41.0, **note),
        worker(5, 432, ago_s=44.0, group="windows", kind=WorkerKind.BASELINE, dues=(due(259),)),
        worker(6, 435, ago_s=4.0, group="windows", dues=(due(897, TimeLimit.PREPARING, 900.0),)),
    )


def fleet() -> ScriptedClient:
    rows = [
        _row(440, TaskState.PENDING, b"macro.docm", "ole", 1.0, OFFICE, priority=0),
        _row(439, TaskState.PENDING, b"notes.txt", "text", 1.0, priority=9),
        _row(438, TaskState.PENDING, b"old installer.exe", "pe", 20.0, RequirementClass("dynamic", pin="win7-1")),
        _row(437, TaskState.PENDING, b"bot.mips.elf", "elf", 64.0, LINUX),
        _row(436, TaskState.PENDING, b"invoice.docm", "ole", 72.0, OFFICE, priority=5),
        _row(435, TaskState.PREPARING_RESOURCES, b"setup (1).exe", "pe", 3.0, OFFICE, machine="win10-1"),
        _row(432, TaskState.RUNNING, b"dropper.exe", "pe", 41.0, WINDOWS, machine="win10-2"),
        _row(431, TaskState.RUNNING, b"invoice_2211.doc", "ole", 42.0),
        _row(430, TaskState.COMPLETED, b"locker.exe", "pe", 20.0, WINDOWS, machine="win10-1", verdict=MALICIOUS),
        *(record(number, TaskState.COMPLETED, ago_s=900.0 + number) for number in range(395, 430)),
    ]
    client = ScriptedClient(
        rows,
        workers(),
        reasons={**REASONS, 440: REASONS[436]},
        groups=(
            group("default", min_workers=2, max_workers=4),
            group(
                "windows",
                min_workers=1,
                max_workers=2,
                takes="dynamic tasks on windows",
                priority=9,
                idle_timeout_s=300.0,
                saved=False,
            ),
        ),
        machines=machines(),
    )
    news: list[tuple[float, EventBody]] = [
        (7300.0, MachineChanged(machine="win7-1", state=MachineState.DISABLED, reason="maintenance, by ana")),
        (240.0, StoreFailing(problem="the disk is full")),
        (200.0, StoreWorks()),
        (131.0, MachineChanged(machine="linux-1", state=MachineState.REVERTING, reason="the guest did not answer within 120 s")),
        (130.0, TaskGivenBack(task_id=437, reason="linux-1 failed it; another machine is tried.", crashes=0)),
        (130.0, MachineChanged(machine="linux-1", state=MachineState.QUARANTINED, reason='the snapshot "clean" is not there')),
        (90.0, PoolPaused(reason="paused by ana")),
        (72.0, _created(436, "invoice.docm")),
        (64.0, _created(437, "bot.mips.elf")),
        (44.0, WorkerStarted(worker=worker(6).id, group="windows", kind=WorkerKind.DEMAND)),
        (20.0, _created(438, "old installer.exe")),
    ]
    for ago_s, body in news:
        client.happens(body, ago_s=ago_s)
    client.results[SCREEN.path] = screen(2)
    return client


def looked_at() -> ScriptedClient:
    """A dynamic task at work, whose machine's screen was just looked at."""
    client = fleet()
    client.happens(PluginStarted(task_id=432, plugin="guest-run"), ago_s=41.0)
    client.happens(ScreenshotTaken(task_id=432, machine="win10-2", result=SCREEN), ago_s=2.0, durable=False)
    return client


def run_in_guest() -> ScriptedClient:
    """An ended dynamic task with screenshots, and plugins that looked at what it dropped."""
    client = fleet()
    shots = [_screenshot(number, 430) for number in (1, 2, 3)]
    client.results.update({shot.path: screen(number) for number, shot in enumerate(shots, 1)})
    in_guest = plugin_run(
        430,
        "guest-run",
        results=[reference(430, "guest-run", "run"), *shots],
        seconds=61.5,
        reason="The sample ended with exit status 7.",
    )
    dropped = "C:\\Users\\ana\\Desktop\\README_TO_DECRYPT.exe"
    runs = (
        plugin_run(430, "file-type", results=[reference(430, "file-type.collected-1")], subject=dropped),
        in_guest,
        plugin_run(430, "file-type"),
        plugin_run(430, "yara-x", results=[], verdict=MALICIOUS, subject=dropped),
        plugin_run(430, "file-type", results=[], subject="C:\\Windows\\Temp\\a.tmp"),
    )
    for folder, summary in (
        ("file-type", "PE32+ executable for Windows"),
        ("file-type.collected-1", "PE32 executable for Windows, packed with UPX"),
    ):
        about = {"schema_version": 1, "plugin": {"id": "file-type", "version": "0.1.0"}, "summary": summary}
        client.results[f"430/{folder}/report"] = msgspec.json.encode(about)
    row = client.records[430]
    client.put(TaskRecord(msgspec.structs.replace(row.task, plugins=runs), row.sample))
    return client


def unshowable() -> ScriptedClient:
    """As `looked_at`, of a screen whose picture is no picture."""
    client = looked_at()
    client.results[SCREEN.path] = b"\x89PNG\r\n\x1a\n" + bytes(400)
    return client


def refusing() -> ScriptedClient:
    """An engine that finds fault with each machine it is given."""
    client = fleet()
    client._answer = lambda command: CommandOutcome(
        done=False,
        message="Machine win11-1: there is already a machine with the domain malbox-win11-1 at qemu:///system (win10-2).",
    )
    return client


def failed_before() -> ScriptedClient:
    """A pending task that two machines failed, and an ended one with a plugin that its group keeps out."""
    client = fleet()
    client.put(
        _row(
            437,
            TaskState.PENDING,
            b"bot.mips.elf",
            "elf",
            64.0,
            RequirementClass("dynamic", "linux", "x64", avoid=("linux-1", "linux-2")),
            attempts=0,
            crashes=1,
            reason="linux-2 failed it: the guest did not answer within 120 s.",
        )
    )
    client.reasons[437] = "waiting for a machine: linux/x64 (1 quarantined, 1 reverting, 2 failed it before)"
    skipped = plugin_run(
        430, "yara-x", PluginStatus.SKIPPED, results=[], seconds=0.0, reason="The worker group windows denies it."
    )
    row = client.records[430]
    client.put(TaskRecord(msgspec.structs.replace(row.task, plugins=(plugin_run(430), skipped)), row.sample))
    return client


def trouble() -> ScriptedClient:
    """A store that takes nothing, while the pool is paused as well."""
    client = fleet()
    problem = (
        "database or disk is full (13) in /var/lib/malbox-tui/store.sqlite: free some room on that disk, and it goes on by itself"
    )
    client._engine.update(
        paused="paused by ana; the store takes nothing",
        troubles=(f"The store takes nothing: {problem}",),
        free_bytes=12 * 1024**2,
    )
    return client


def draining() -> ScriptedClient:
    client = fleet()
    client._engine["stopping"] = "drain"
    client.workers = tuple(msgspec.structs.replace(view, state=WorkerState.LEAVING) for view in client.workers if view.task_ids)
    return client


def many_slots() -> ScriptedClient:
    """A worker with eight slots, one that is to leave, and an idle one."""
    rows = [_row(number, TaskState.RUNNING, b"sample-%d.exe" % number, "pe", 10.0 + number - 400) for number in range(400, 408)]
    dues = tuple(due(290.0 - number) for number in range(8))
    views = (
        worker(1, ago_s=17.0, task_ids=tuple(range(400, 406)), slots=8, state=WorkerState.BUSY, dues=dues[:6]),
        worker(2, ago_s=17.0, task_ids=(406, 407), slots=8, state=WorkerState.LEAVING, dues=dues[6:]),
        worker(3, ago_s=3.0, slots=8, note="could take any task"),
    )
    return ScriptedClient(rows, views, groups=(group("default", min_workers=1, max_workers=2, slots=8),))


def near_the_end() -> ScriptedClient:
    """A worker for each stage, with little time left in it; one whose whole attempt has little, and one whose clock stands."""
    limits = (
        (TaskState.INITIALIZING, 111.0, due(9, TimeLimit.INITIALIZING, 120.0)),
        (TaskState.PREPARING_RESOURCES, 860.0, due(40, TimeLimit.PREPARING, 900.0)),
        (TaskState.RUNNING, 285.0, due(15)),
        (TaskState.STOPPING, 57.0, due(3, TimeLimit.STOPPING, 60.0)),
        (TaskState.RUNNING, 42.0, due(12, TimeLimit.CRITICAL, 1800.0)),
        (TaskState.INITIALIZING, 20.0, due(119, TimeLimit.INITIALIZING, 120.0, stands=True)),
    )
    rows, views = [], []
    for number, (state, ago_s, left) in enumerate(limits, 401):
        needs = {"requires": WINDOWS, "machine": "win10-1", "enforce_timeout": True} if number in (402, 405) else {}
        rows.append(_row(number, state, b"sample-%d.exe" % number, "pe", ago_s, **needs))
        views.append(worker(number - 400, number, ago_s=ago_s, dues=(left,)))
    return ScriptedClient(rows, views, groups=(group("default", min_workers=2, max_workers=6),))


def batches() -> ScriptedClient:
    """A batch under way: some of its tasks run, one has ended, the others wait for their turn; and one that is collected."""
    at_work = tuple(range(400, 405))
    rows = [_row(number, TaskState.RUNNING, b"sample-%d.exe" % number, "pe", 10.0) for number in at_work]
    rows += [_row(number, TaskState.PENDING, b"late-%d.exe" % number, "pe", 0.2) for number in range(406, 409)]
    rows.append(_row(405, TaskState.COMPLETED, b"sample-405.exe", "pe", 1.0))
    dues = (due(294), due(292), *(due(300 - number, stands=True) for number in range(3)))
    views = (
        worker(1, note="could take any task"),
        worker(3, ago_s=10.5, task_ids=at_work, slots=5, group="bulk", state=WorkerState.BUSY, dues=dues),
    )
    bulk = group("bulk", min_workers=0, max_workers=2, batch_size=8, takes="static tasks", priority=7, idle_timeout_s=0.5)
    reasons = dict.fromkeys(range(406, 409), "bulk collects a batch: 3 of 8, for 0.5 s at most")
    return ScriptedClient(rows, views, groups=(group("default", min_workers=1), bulk), reasons=reasons)


def timed_out() -> ScriptedClient:
    """A task that was ended by each of the limits."""
    by_analysis = _late(
        (1, EndedBy.ANALYSIS_TIMEOUT, "The analysis timeout of 300 s ended it during yara-x."),
        {"running": 300.0},
        plugin_run(1),
        plugin_run(1, "yara-x", PluginStatus.TIMED_OUT, results=[], seconds=300.0, reason="the time limit of the task ended it"),
    )
    by_critical = _late(
        (2, EndedBy.CRITICAL_TIMEOUT, "The critical timeout of 1800 s for the whole attempt ended it during guest-run."),
        {"preparing_resources": 880.0, "running": 919.5},
        plugin_run(
            2, "guest-run", PluginStatus.TIMED_OUT, results=[], seconds=919.5, reason="The sample was still running (timeout)."
        ),
        requires=WINDOWS,
        machine="win10-1",
        timeout_s=1200.0,
    )
    reason = "It was still initializing after 120 s, which is as long as that may take."
    by_stage = _late((3, EndedBy.STAGE_TIMEOUT, reason), {"initializing": 120.0})
    return ScriptedClient([by_analysis, by_critical, by_stage], [worker(1), worker(2)])


def _late(end: tuple[int, EndedBy, str], spent: Mapping[str, float], *runs: PluginRun, **changes: object) -> TaskRecord:
    number, ended_by, reason = end
    stages = {"pending": 4.0, "initializing": 0.5, **spent, "stopping": 0.2}
    about = {"ended_by": ended_by, "reason": reason, "plugins": runs, "stages": stages, **changes}
    began = {"started_at": NOW - 50.0 - sum(stages.values()) + 4.0, "created_at": NOW - 50.0 - sum(stages.values())}
    return _row(number, TaskState.TIMED_OUT, b"slow-%d.exe" % number, "pe", 50.0, **about, **began)


def many_groups() -> ScriptedClient:
    """More groups than a header has room for."""
    names = ("default", "windows", "linux-office", "archives", "nightly-and-everything-else")
    views = tuple(worker(number, group=name, note="could take any task") for number, name in enumerate(names, 1))
    groups = tuple(group(name, min_workers=0, max_workers=3, saved=name != "archives") for name in names)
    return ScriptedClient([record(1), record(2)], views, groups=groups)


def _row(
    number: int,
    state: TaskState,
    name: bytes,
    kind: str,
    ago_s: float,
    requires: RequirementClass | None = None,
    **changes: object,
) -> TaskRecord:
    needs = {} if requires is None else {"requires": requires, "type": requires.task_type}
    return TaskRecord(
        task(number, state, ago_s=ago_s, **needs, **changes), sample(number, name, identification=Identification(kind))
    )


def _created(number: int, name: str) -> TaskCreated:
    return TaskCreated(task_id=number, sha256=sha256_of(number), type="dynamic", priority=1, name=name)
