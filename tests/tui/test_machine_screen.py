"""The screen of one machine, the forms that add and change one, and the screenshots of a task: what is told, and what keys do."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from malbox_tui.model.commands import Command, CommandOutcome, SetMachine, ShutdownMode
from malbox_tui.model.errors import Disconnected, MalboxError, StoreFull
from malbox_tui.model.events import Event, Position, ScreenshotTaken, TaskStarting
from malbox_tui.model.machine import MachineFacts, MachineMoment, MachineSpec, MachineState, MachineView
from malbox_tui.model.report import PluginRun, ResultRef
from malbox_tui.model.task import RequirementClass, TaskState
from malbox_tui.tui import keys
from malbox_tui.tui.app import MalboxApp
from malbox_tui.tui.live import LivePicture, LiveTask
from malbox_tui.tui.machine_page import SHOWN_MOMENTS, machine_lines
from malbox_tui.tui.moment import Moment
from malbox_tui.tui.pictures import Picture, Unshowable
from malbox_tui.tui.screens.dashboard import Dashboard
from malbox_tui.tui.screens.machine import MachineScreen
from malbox_tui.tui.screens.machine_form import FIELDS, MachineForm
from malbox_tui.tui.screens.task import TaskScreen
from malbox_tui.tui.task_page import in_order
from malbox_tui.tui.widgets.picture_view import PictureView
from tests.tui.scripted import (
    NOW,
    ScriptedAttachment,
    ScriptedClient,
    machine,
    overview,
    plugin_run,
    record,
    surroundings,
    worker,
)
from tests.tui.test_pictures import packed, shot, two_colours

MOMENT = Moment(NOW)
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

Play = Callable[[MalboxApp, Pilot[ShutdownMode]], Awaitable[None]]


def _client(*machines: MachineView, runs: tuple[PluginRun, ...] = (), **changes: object) -> ScriptedClient:
    needs = {"requires": RequirementClass("dynamic", "windows"), "machine": "win10-1"}
    rows = [record(1, TaskState.COMPLETED, plugins=runs, **needs), record(2, TaskState.RUNNING, b"dropper.exe", **needs)]
    results = {shot(number).path: packed(two_colours(8 * number, 8)) for number in (1, 2, 3)}
    return ScriptedClient(rows, [worker(1, 2)], machines=machines or (BUSY, FREE), results=results, **changes)  # type: ignore[arg-type]


async def _with(
    play: Play, client: ScriptedClient | None = None, size: tuple[int, int] = (120, 40), **around: object
) -> ScriptedClient:
    client = client or _client()
    app = MalboxApp(surroundings(client, **around))
    async with asyncio.timeout(60), app.run_test(size=size) as pilot:
        while app.picture.overview is None or not app.dashboard.tasks.total:
            await pilot.pause()
            await app.show_changes()
        await pilot.pause()
        await play(app, pilot)
    return client


async def _looked(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> PictureView:
    """The picture of the screen that is shown, when it was read."""
    await pilot.pause()
    view = app.screen.query_one(PictureView)
    while view.is_looking:
        await pilot.pause()
    await pilot.pause()
    return view


def _shown(app: MalboxApp) -> str:
    return "\n".join("".join(segment.text for segment in strip) for strip in app.screen._compositor.render_strips())


# --- words ---------------------------------------------------------------------------------------------------------------------------


def _told(given: MachineView, task: LiveTask | None = None, width: int = 76) -> str:
    lines = machine_lines(given, task, MOMENT, lambda at: f"T{NOW - at:g}", width)
    assert all(line.cell_len <= width for line in lines)
    return "\n".join(line.plain.rstrip() for line in lines)


def test_a_machines_page_says_what_it_is_and_what_it_does() -> None:
    facts = MachineFacts(memory_mb=4096, vcpus=2, warnings=("It reaches the internet.", "It has no sound."))
    told = _told(
        msgspec.structs.replace(BUSY, facts=facts, tags=("office",), failures=1, leaving=True),
        LiveTask(2, "a.exe", TaskState.RUNNING),
    )
    for line in (
        "Machine win10-1  ● leased",
        "            a task has it; since T42, for 0:42",
        "            it goes out of service as soon as nothing uses it",
        "task        #2 a.exe (Enter opens it)",
        "failures    1 failure since it last served a task well; 3 in a row",
        "system      windows/x64",
        "tags        office",
        "provider    libvirt",
        "uri         qemu:///system",
        "domain      vm-7",
        "snapshot    clean",
        "channel     qga at 10.0.0.7",
        "watched     C:\\Users, C:\\Windows",
        "disk limit  512 KiB/s",
        "memory      4096 MiB",
        "vcpus       2",
        "! warning   It reaches the internet.",
        "! warning   It has no sound.",
    ):
        assert f"{line}\n" in told


def test_what_is_not_known_is_not_told() -> None:
    told = _told(FREE)
    for word in ("uri", "memory", "warning", "task  ", "reason"):
        assert f"\n{word}" not in told
    assert told.endswith("nothing yet")


def test_a_long_reason_is_told_whole() -> None:
    reason = "the snapshot is not there: make it, or name another one " * 5
    told = " ".join(_told(msgspec.structs.replace(FREE, state=MachineState.QUARANTINED, reason=reason), width=50).split())
    assert f"reason {reason.strip()} failures" in told


@pytest.mark.parametrize("width", [44, 57, 76, 200])
def test_the_history_is_told_the_latest_first_with_how_long_each_state_was(width: int) -> None:
    reason = "the guest did not answer within 120 s"
    history = (*HISTORY, MachineMoment(at=NOW - 12, state=MachineState.REVERTING, reason=reason))
    told = _told(msgspec.structs.replace(BUSY, history=history), width=width)
    lines = told[told.index("History") :].splitlines()
    heads = [line.split()[:4] for line in lines[1:] if line.startswith("T")]
    assert [head[1:] if head[0] == "T42" else head[1:3] for head in heads] == [
        ["0:12", "↻"],
        ["0:30", "●", "leased"],
        ["0:58", "○"],
    ]
    assert " ".join("".join(lines).split()).count("120 s") == 1


def test_of_a_long_history_the_latest_changes_are_told() -> None:
    history = tuple(MachineMoment(at=NOW - 100 + number, state=MachineState.READY) for number in range(SHOWN_MOMENTS + 5))
    told = _told(msgspec.structs.replace(FREE, history=history))
    assert told.count("○ ready") == SHOWN_MOMENTS + 1
    assert told.endswith("and 5 earlier changes")


def test_runs_on_the_sample_come_first_and_those_on_one_thing_together() -> None:
    runs = [plugin_run(1, name, subject=subject) for name, subject in (("a", "x"), ("b", ""), ("c", "y"), ("d", "x"), ("e", ""))]
    assert "".join(run.name for run in in_order(runs)) == "beadc"


# --- the machine's screen ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("size", [(140, 45), (80, 24), (60, 16)])
async def test_enter_shows_the_machine_with_its_picture_and_escape_goes_back(size: tuple[int, int]) -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press("m", "enter")
        view = await _looked(app, pilot)
        assert isinstance(app.screen, MachineScreen)
        assert isinstance(view.picture, Picture)
        assert "Machine win10-1" in _shown(app)
        await pilot.press("end")
        await pilot.pause()
        if size[1] > 16:
            assert "Its screen at 08:59:55, 0:05 ago" in _shown(app)
        await pilot.press("escape")
        await pilot.pause()
        assert isinstance(app.screen, Dashboard)
        assert app.dashboard.machines.has_focus

    await _with(play, size=size)


@pytest.mark.slow
async def test_enter_goes_on_to_the_task_that_has_it_and_back_again() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press("m", "enter", "enter")
        await pilot.pause()
        assert isinstance(app.screen, TaskScreen)
        assert app.screen.task_id == 2
        await pilot.press("escape")
        assert isinstance(app.screen, MachineScreen)
        await pilot.press("escape", "down", "enter", "enter")
        await pilot.pause()
        assert isinstance(app.screen, MachineScreen), "no task has this one"

    await _with(play)


@pytest.mark.slow
async def test_the_screen_is_live_and_says_when_its_machine_is_gone() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press("m", "enter")
        await _looked(app, pilot)
        now = msgspec.structs.replace(BUSY, state=MachineState.REVERTING, task_id=None, screenshot=shot(2), screenshot_at=NOW)
        client._engine["machines"] = (now, FREE)
        await app.showing.show_everything()
        view = await _looked(app, pilot)
        assert isinstance(view.picture, Picture)
        assert view.picture.width == 16
        assert "↻ reverting" in _shown(app)
        client._engine["machines"] = (FREE,)
        await app.showing.show_everything()
        await pilot.pause()
        assert "no longer in the pool" in _shown(app)
        assert (await _looked(app, pilot)).picture is None
        await pilot.press("y", "d", "e", "i", "x", "enter")
        await pilot.pause()
        assert isinstance(app.screen, MachineScreen)
        await pilot.press("escape")

    client = _client()
    await _with(play, client)
    assert client.commands == []


@pytest.mark.slow
async def test_a_picture_that_can_not_be_shown_is_a_line() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press("m", "enter")
        view = await _looked(app, pilot)
        assert isinstance(view.picture, Unshowable)
        assert "The picture can't be shown" in _shown(app)

    client = _client()
    client.results[shot(1).path] = b"\x1b[2J"
    await _with(play, client)


@pytest.mark.slow
async def test_without_colours_words_say_what_there_is() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        app.no_color = True
        await pilot.press("m", "enter")
        await _looked(app, pilot)
        assert "A picture of 8×8 pixels, which this terminal" in _shown(app)
        assert "▀" not in _shown(app)

    await _with(play, size=(140, 45))


@pytest.mark.slow
async def test_a_picture_that_could_not_be_read_for_the_connection_comes_with_the_next_look() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press("m", "enter")
        assert (await _looked(app, pilot)).picture is None
        client.results[shot(1).path] = packed(two_colours())
        app.show_time()
        assert isinstance((await _looked(app, pilot)).picture, Picture)

    client = _client()
    client.results[shot(1).path] = Disconnected("ana@sbx-01", "it is gone")
    await _with(play, client)


# --- forms ---------------------------------------------------------------------------------------------------------------------------


def test_everything_that_a_machine_is_can_be_given() -> None:
    assert {field.name for field in FIELDS} == set(MachineSpec.__struct_fields__)


@pytest.mark.slow
async def test_a_machine_is_added_as_it_was_typed() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press("n", *"kali", "tab", *"linux", "down", "down", *"a, b,", "enter")
        await pilot.pause()
        assert isinstance(app.screen, Dashboard)

    client = await _with(play)
    given = MachineSpec(name="kali", provider="libvirt", platform="linux", tags=("a", "b"), uri="qemu:///system", channel="qga")
    assert [command.action for command in client.commands] == [SetMachine(machine=given)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "answer", [CommandOutcome(done=False, message="platform is needed [/]"), StoreFull("platform is needed [/]")]
)
async def test_what_the_engine_refuses_stays_to_be_corrected(answer: CommandOutcome | MalboxError) -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press("n", *"kali", "enter")
        await pilot.pause()
        assert isinstance(app.screen, MachineForm)
        assert "platform is needed [/]" in _shown(app)
        assert app.screen.query(Input).first().value == "kali"
        await pilot.press("tab", *"linux", "enter")
        await pilot.pause()
        assert isinstance(app.screen, Dashboard)

    def answered(command: Command) -> CommandOutcome | MalboxError:
        assert isinstance(command.action, SetMachine)
        return CommandOutcome(done=True, message="added") if command.action.machine.platform else answer

    await _with(play, _client(answer=answered))


@pytest.mark.slow
async def test_what_is_no_number_is_said_and_not_sent() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press("n")
        limit = app.screen.query(Input).last()
        for text in ("many", "-1", "1e9", "٣", "9" * 30):
            limit.value = text
            limit.focus()
            await pilot.press("enter")
            await pilot.pause()
            assert "is no whole number" in _shown(app)
        await pilot.press("escape")

    client = await _with(play)
    assert client.commands == []


@pytest.mark.slow
async def test_enter_twice_sends_once_and_an_answer_after_escape_is_told_all_the_same() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        client.answers.clear()
        await pilot.press("n", *"kali", "enter", "enter", "escape")
        assert isinstance(app.screen, Dashboard)
        client.answers.set()
        await pilot.pause()
        assert [note.message for note in app._notifications] == ["no such domain"]

    client = _client(answer=lambda command: CommandOutcome(done=False, message="no such domain"))
    await _with(play, client)
    assert len(client.commands) == 1


@pytest.mark.slow
async def test_a_machine_is_changed_from_what_it_is() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press("m", "enter", "i")
        await pilot.pause()
        assert isinstance(app.screen, MachineForm)
        assert "Task 2 has it: what is changed holds when" in _shown(app)
        await pilot.press("down", "down", "end", *", slow", "enter")
        await pilot.pause()
        assert isinstance(app.screen, MachineScreen)

    client = await _with(play)
    assert [command.action for command in client.commands] == [
        SetMachine(machine=msgspec.structs.replace(SPEC, tags=("office", "slow")))
    ]


@pytest.mark.slow
async def test_a_machine_of_which_nothing_is_told_is_not_changed() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press("m", "down", "i")
        await pilot.pause()
        assert isinstance(app.screen, Dashboard)
        assert "was not told" in next(iter(app._notifications)).message

    await _with(play)


@pytest.mark.slow
async def test_a_console_that_may_only_look_changes_no_machine() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        for opened in ((), ("enter",)):
            await pilot.press("m", *opened)
            for key in ("y", "d", "e", "i", "x", "n") if not opened else ("y", "d", "e", "i", "x"):
                app.clear_notifications()
                await pilot.press(key)
                assert "may only look" in next(iter(app._notifications)).message
            await pilot.press("escape")

    client = await _with(play, attachment=ScriptedAttachment(read_only=True))
    assert client.commands == []


def test_every_key_that_changes_a_machine_is_refused_to_who_may_only_look() -> None:
    changing = {
        key.action.removeprefix("app.") for key in (*keys.MACHINES, *keys.MACHINE_SCREEN) if key.action.endswith("_machine")
    }
    assert changing - {"show_machine"} <= keys.CHANGING_ACTIONS


# --- a task's screenshots ------------------------------------------------------------------------------------------------------------


def test_the_latest_picture_of_a_task_is_known_until_it_is_tried_again() -> None:
    picture = LivePicture()
    picture.seed(overview(), [record(2, TaskState.RUNNING)])
    for number in (1, 2):
        body = ScreenshotTaken(task_id=2, machine="win10-1", result=shot(number))
        assert not picture.apply(Event(Position("e", 1, 1), NOW + number, body, durable=False))
    assert (picture.tasks[2].screenshot, picture.tasks[2].screenshot_at) == (shot(2), NOW + 2)
    assert not picture.log, "each picture would drown the rest"
    picture.apply(Event(Position("e", 1, 2), NOW, TaskStarting(task_id=2, worker="w", attempt=2)))
    assert picture.tasks[2].screenshot is None


@pytest.mark.slow
async def test_a_task_at_work_shows_what_its_machine_shows_now() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press("enter")
        view = await _looked(app, pilot)
        assert "The screen of win10-1, 0:05 ago" in _shown(app)
        for number in (2, 3):
            client.happens(ScreenshotTaken(task_id=2, machine="win10-1", result=shot(number)), durable=False)
        while app.picture.tasks[2].screenshot != shot(3):
            await pilot.pause()
        await app.showing.show_everything()
        await _looked(app, pilot)
        assert isinstance(view.picture, Picture)
        assert view.picture.width == 24
        assert "The screen of win10-1, 0:00 ago" in _shown(app)

    client = _client()
    await _with(play, client)


async def test_a_task_whose_machine_was_not_looked_at_yet_says_so() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press("enter")
        await _looked(app, pilot)
        assert "No picture of win10-1's screen yet." in _shown(app)

    older = msgspec.structs.replace(BUSY, screenshot_at=NOW - 9000)
    await _with(play, _client(older, FREE))


@pytest.mark.slow
async def test_of_an_ended_tasks_screenshots_one_is_chosen() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press("down", "enter")
        seen = []
        for key in (None, "left", "left", "left", "right"):
            if key is not None:
                await pilot.press(key)
            view = await _looked(app, pilot)
            assert isinstance(view.picture, Picture)
            seen.append((view.picture.width, _shown(app).partition("Screenshot ")[2][:6]))
        assert seen == [(24, "3 of 3"), (16, "2 of 3"), (8, "1 of 3"), (8, "1 of 3"), (16, "2 of 3")]

    runs = (plugin_run(1, "guest-run", results=[shot(1), shot(2), shot(3)]),)
    await _with(play, _client(runs=runs))


async def test_a_task_without_a_machine_has_no_place_for_a_picture() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press("down", "enter")
        view = await _looked(app, pilot)
        assert not view.display

    await _with(play)


@pytest.mark.slow
async def test_a_stream_of_pictures_is_followed_by_its_last_ones() -> None:
    class Slow(ScriptedClient):
        reads: list[str]

        async def read(self, reference: ResultRef, max_bytes: int) -> bytes:
            self.reads.append(Path(reference.path).name)
            await gate.wait()
            return packed(two_colours())

    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press("enter")
        while not client.reads:
            await pilot.pause()
        view = app.screen.query_one(PictureView)
        for number in range(2, 30):
            view.show(shot(number), lambda: "")
        gate.set()
        await _looked(app, pilot)

    gate = asyncio.Event()
    client = Slow(_client().records.values(), [worker(1, 2)], machines=(BUSY,))
    client.reads = []
    await _with(play, client)
    assert client.reads == ["screenshot-001.png", "screenshot-029.png"]
