"""A console over two machines, and what it shows."""

from __future__ import annotations

import asyncio

from textual.pilot import Pilot

from malbox_tui.model.commands import ShutdownMode
from malbox_tui.model.machine import MachineMoment, MachineSpec, MachineState, MachineView
from malbox_tui.model.report import PluginRun
from malbox_tui.model.task import RequirementClass, TaskState
from malbox_tui.tui.app import MalboxApp
from malbox_tui.tui.widgets.picture_view import PictureView
from tests.tui.playing import Play
from tests.tui.scripted import NOW, ScriptedClient, machine, record, surroundings, worker
from tests.tui.test_pictures import packed, shot, two_colours

SPEC = MachineSpec(
    name="win10-1",
    provider="libvirt",
    platform="windows",
    tags=("office",),
    uri="qemu:///system",
    domain="vm-7",
    snapshot="clean",
    channel="qga",
    address="10.0.0.7",
    watch=("C:\\Users", "C:\\Windows"),
    disk_kib_s=512,
    network_kbps=0,
)
HISTORY = (
    MachineMoment(at=NOW - 100, state=MachineState.READY),
    MachineMoment(at=NOW - 42, state=MachineState.LEASED, task_id=2),
)
BUSY = machine(
    "win10-1",
    MachineState.LEASED,
    ago_s=42.0,
    task_id=2,
    spec=SPEC,
    history=HISTORY,
    screenshot=shot(1),
    screenshot_at=NOW - 5,
)
FREE = machine("linux-1", platform="linux")


def fleet(*machines: MachineView, runs: tuple[PluginRun, ...] = (), **changes: object) -> ScriptedClient:
    """A client over these machines, or over `BUSY` and `FREE`, with an ended task, which has `runs`, and one at work."""
    needs = {"requires": RequirementClass("dynamic", "windows"), "machine": "win10-1"}
    rows = [record(1, TaskState.COMPLETED, plugins=runs, **needs), record(2, TaskState.RUNNING, b"dropper.exe", **needs)]
    results = {shot(number).path: packed(two_colours(8 * number, 8)) for number in (1, 2, 3)}
    return ScriptedClient(rows, [worker(1, 2)], machines=machines or (BUSY, FREE), results=results, **changes)  # type: ignore[arg-type]


async def with_fleet(
    play: Play, client: ScriptedClient | None = None, size: tuple[int, int] = (120, 40), **around: object
) -> ScriptedClient:
    """Let `play` press keys in a console over `client`, and give the client when it has ended."""
    client = client or fleet()
    app = MalboxApp(surroundings(client, **around))
    async with asyncio.timeout(60), app.run_test(size=size) as pilot:
        while app.picture.overview is None or not app.dashboard.tasks.total:
            await pilot.pause()
            await app.show_changes()
        await pilot.pause()
        await play(app, pilot)
    return client


async def looked(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> PictureView:
    """The picture of the screen that is shown, when it was read."""
    await pilot.pause()
    view = app.screen.query_one(PictureView)
    while view.is_looking:
        await pilot.pause()
    await pilot.pause()
    return view


def shown(app: MalboxApp) -> str:
    """All the text on the screen."""
    return "\n".join("".join(segment.text for segment in strip) for strip in app.screen._compositor.render_strips())
