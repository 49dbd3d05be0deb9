"""The machines on the console: what is said of each, the cursor that stays on a machine, and the keys that disable and enable one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from textual.command import CommandList
from textual.geometry import Region
from textual.pilot import Pilot

from malbox_tui.model.commands import DisableMachines, EnableMachines, ProbeMachines, RemoveMachines, ShutdownMode
from malbox_tui.model.events import Event, MachineChanged, Position
from malbox_tui.model.machine import MachineState
from malbox_tui.model.task import TaskState
from malbox_tui.tui.app import MalboxApp
from malbox_tui.tui.glyphs import MACHINES
from malbox_tui.tui.live import LivePicture
from malbox_tui.tui.machine_line import machine_counts, machine_line, machine_rest
from malbox_tui.tui.moment import Moment
from malbox_tui.tui.screens.dialogs import Question
from tests.tui.scripted import NOW, ScriptedClient, machine, overview, record, surroundings, worker

MOMENT = Moment(NOW)
MACHINES_THERE = (
    machine("win10-1", MachineState.LEASED, ago_s=42.0, task_id=2),
    machine("win10-2", tags=("office",)),
    machine("linux-1", MachineState.QUARANTINED, platform="linux", reason="the revert failed 3 times", failures=3),
)

Play = Callable[[MalboxApp, Pilot[ShutdownMode]], Awaitable[None]]


# --- words ---------------------------------------------------------------------------------------------------------------------------


def test_every_state_differs_by_glyph_and_word_and_says_what_it_means() -> None:
    assert set(MACHINES) == set(MachineState)
    for part in ("glyph", "word", "meaning"):
        assert len({getattr(look, part) for look in MACHINES.values()}) == len(MachineState)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (MACHINES_THERE[0], ["win10-1", "● leased", "#2", "0:42", "windows/x64"]),
        (MACHINES_THERE[1], ["win10-2", "○ ready", "0:41", "windows/x64 · office"]),
        (MACHINES_THERE[2], ["linux-1", "! quarantined", "0:41", "the revert failed 3 times · 3 failures · linux/x64"]),
        (
            machine("a", MachineState.DISABLED, ago_s=7300.0, reason="maintenance, by ana"),
            ["⊘ disabled", "2:01:40 maintenance, by ana"],
        ),
        (machine("a", MachineState.LEASED, task_id=9, leaving=True), ["#9", "then out · windows/x64"]),
        (machine("a", provider="simulated"), ["windows/x64 · simulated"]),
    ],
    ids=lambda value: "" if isinstance(value, list) else value.state,
)
def test_a_machine_says_its_state_and_what_it_is_or_why_it_can_not_serve(given: object, words: list[str]) -> None:
    line = machine_line(given, MOMENT, 120)  # type: ignore[arg-type]
    places = [line.plain.find(word) for word in words]
    assert -1 not in places, line.plain
    assert places == sorted(places)
    assert line.cell_len == 120


@pytest.mark.parametrize("width", [30, 36, 44, 56, 76, 120])
@pytest.mark.parametrize("with_rest", [True, False])
def test_state_task_and_time_are_never_cut(width: int, with_rest: bool) -> None:
    for given in MACHINES_THERE:
        line = machine_line(given, MOMENT, width, with_rest=with_rest)
        assert line.cell_len == width
        look = MACHINES[given.state]
        assert f"{look.glyph} {look.word} " in line.plain
        if width >= 36:
            assert f"0:{42 if given.task_id else 41}" in line.plain
            assert given.task_id is None or f"#{given.task_id} " in line.plain
        assert machine_rest(given, MOMENT, width).cell_len == width


def test_the_title_counts_those_that_could_serve_and_those_that_can_not() -> None:
    assert machine_counts(MACHINES_THERE) == "1 of 3 ready, 1 out"
    assert machine_counts(MACHINES_THERE[:2]) == "1 of 2 ready"


# --- the log -------------------------------------------------------------------------------------------------------------------------


def test_the_log_tells_of_machines_that_fail_go_and_come_back_and_not_of_each_task() -> None:
    picture = LivePicture()
    moves = [
        ("leased", ""),
        ("starting", ""),
        ("leased", ""),
        ("reverting", ""),
        ("ready", ""),
        ("reverting", "the guest did not answer"),
        ("quarantined", "the revert failed"),
        ("reverting", ""),
        ("ready", ""),
        ("disabled", "maintenance, by ana"),
        ("missing", "the domain is gone"),
    ]
    for state, reason in moves:
        body = MachineChanged(machine="win10-1", state=MachineState(state), reason=reason)
        assert picture.apply(Event(Position("e", 1, 1), NOW, body)), "what tasks wait for may be another thing now"
    assert [f"{line.subject}: {line.detail}" for line in picture.log] == [
        "machine win10-1 failed: the guest did not answer",
        "machine win10-1 is quarantined: the revert failed",
        "machine win10-1 is back in service: ",
        "machine win10-1 is out for maintenance: maintenance, by ana",
        "machine win10-1 is missing: the domain is gone",
    ]


def test_a_machine_that_was_out_when_the_console_opened_comes_back_in_the_log_too() -> None:
    picture = LivePicture()
    picture.seed(overview([], machines=MACHINES_THERE), [])
    for name in ("win10-2", "linux-1"):
        picture.apply(Event(Position("e", 1, 1), NOW, MachineChanged(machine=name, state=MachineState.READY)))
    assert [line.subject for line in picture.log] == ["machine linux-1 is back in service"]


# --- the pane ------------------------------------------------------------------------------------------------------------------------


def _client(**engine: object) -> ScriptedClient:
    rows = [record(1), record(2, TaskState.RUNNING, b"dropper.exe"), record(3, TaskState.PENDING)]
    return ScriptedClient(rows, [worker(1, 2)], **{"machines": MACHINES_THERE, **engine})  # type: ignore[arg-type]


async def _with(play: Play, client: ScriptedClient | None = None, size: tuple[int, int] = (120, 40)) -> ScriptedClient:
    client = client or _client()
    app = MalboxApp(surroundings(client))
    async with asyncio.timeout(60), app.run_test(size=size) as pilot:
        while app.picture.overview is None or not app.dashboard.tasks.total:
            await pilot.pause()
            await app.show_changes()
        await pilot.pause()
        await play(app, pilot)
    return client


@pytest.mark.slow
@pytest.mark.parametrize("size", [(120, 40), (80, 24), (60, 16)])
async def test_a_key_leads_to_the_machines_and_back_wherever_they_are(size: tuple[int, int]) -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        pane, timelines = app.dashboard.machines, app.dashboard.timelines
        for back in ("m", "escape"):
            await pilot.press("m")
            await pilot.pause()
            assert pane.has_focus
            assert pane.region.height >= 3
            assert timelines.display == (size[0] >= 100)
            await pilot.press(back)
            await pilot.pause()
            assert app.dashboard.tasks.has_focus
            assert timelines.display

    await _with(play, size=size)


@pytest.mark.slow
@pytest.mark.parametrize("size", [(120, 40), (80, 24)])
async def test_a_key_typed_right_after_is_for_the_machines_already(size: tuple[int, int]) -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        app.dashboard.action_machines()
        assert app.focused is app.dashboard.machines
        app.focused.action_cursor(1)
        await pilot.pause()
        assert app.focused is app.dashboard.machines, "it is not taken away when the pane comes into sight"
        await pilot.press("d")
        await pilot.pause()

    client = await _with(play, size=size)
    assert [command.action for command in client.commands] == [DisableMachines(machines=("win10-2",))]


@pytest.mark.slow
async def test_the_event_log_is_found_on_a_small_screen_too() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        assert not app.dashboard.events.display
        await pilot.press("m", "l")
        await pilot.pause()
        assert app.dashboard.events.has_focus
        assert not app.dashboard.machines.display
        await pilot.press("l")
        await pilot.pause()
        assert app.dashboard.tasks.has_focus
        assert not app.dashboard.events.display

    await _with(play, size=(80, 24))


async def test_without_machines_there_is_no_pane_and_no_key_for_one() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press("m")
        await pilot.pause()
        assert not app.dashboard.machines.display
        assert app.dashboard.tasks.has_focus
        offered = [command.title for command in app.get_system_commands(app.screen)]
        assert offered
        about_machines = [title for title in offered if "machine" in title.lower()]
        assert about_machines == ["Add a machine"]

    client = await _with(play, _client(machines=()))
    assert not client.commands


@pytest.mark.slow
async def test_the_cursor_stays_on_its_machine_when_others_come_before_it() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press("m", "down")
        pane = app.dashboard.machines
        assert pane.current is not None
        assert pane.current.name == "win10-2"
        client._engine["machines"] = (machine("a-new-one"), *reversed(MACHINES_THERE))
        await app.feed.refresh()
        app.show_time()
        assert pane.current.name == "win10-2"
        await pilot.press("end")
        assert pane.current.name == "win10-1"
        await pilot.press("d", "down", "enter")
        await pilot.pause()

    client = _client()
    await _with(play, client)
    assert [command.action for command in client.commands] == [DisableMachines(machines=("win10-1",))]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pressed", "action"),
    [
        (["m", "down", "d"], DisableMachines(machines=("win10-2",))),
        (["m", "down", "down", "e"], EnableMachines(machines=("linux-1",))),
        (["m", "d", "down", "enter"], DisableMachines(machines=("win10-1",))),
        (["m", "d", "enter"], None),
        (["m", "d", "escape"], None),
        (["m", "enter", "escape"], None),
        (["m", "down", "y"], ProbeMachines(machines=("win10-2",))),
        (["m", "down", "x", "down", "enter"], RemoveMachines(machines=("win10-2",))),
        (["m", "down", "x", "enter"], None),
        (["m", "down", "down", "enter", "y", "escape"], ProbeMachines(machines=("linux-1",))),
        (["m", "down", "down", "enter", "e", "escape"], EnableMachines(machines=("linux-1",))),
        (["m", "down", "enter", "d", "escape"], DisableMachines(machines=("win10-2",))),
        (["m", "enter", "d", "down", "enter", "escape"], DisableMachines(machines=("win10-1",))),
        (["m", "enter", "x", "down", "enter", "escape"], RemoveMachines(machines=("win10-1",))),
        (["m", "c", "r", "plus", "minus"], None),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
async def test_keys_on_the_machines_are_for_machines(pressed: list[str], action: object) -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press(*pressed)
        await pilot.pause()
        assert app.screen is app.dashboard

    client = await _with(play)
    assert [command.action for command in client.commands] == ([] if action is None else [action])


@pytest.mark.slow
async def test_disabling_a_machine_that_serves_a_task_asks_and_names_both() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press("m", "d")
        await pilot.pause()
        assert isinstance(app.screen, Question)
        asked = " ".join(str(line) for line in app.screen._lines)
        assert "win10-1 serves task 2: dropper.exe" in asked
        assert str(app.screen.focused.label) == "Leave it in service"  # type: ignore[union-attr]

    await _with(play)


@pytest.mark.slow
async def test_the_palette_disables_a_machine_too_and_asks_which_one_it_hits() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press("m", "down", "m")
        await pilot.press("ctrl+p", *"maintenance")
        while app.screen.query_one(CommandList).option_count != 1:
            await pilot.pause()
        await pilot.press("enter")
        while not isinstance(app.screen, Question):
            await pilot.pause()
        assert "Machine win10-2 is ready; no task has it." in " ".join(str(line) for line in app.screen._lines)
        await pilot.press("down", "enter")
        await pilot.pause()

    client = await _with(play, size=(80, 24))
    assert [command.action for command in client.commands] == [DisableMachines(machines=("win10-2",))]


async def test_nothing_is_drawn_again_when_nothing_changed() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        pane = app.dashboard.machines
        await app.feed.refresh()
        pane.changed()
        await pilot.pause()
        lines = [pane.line(index, 44) for index in range(pane.line_count())]
        drawn: list[Region] = []
        pane.refresh = lambda *regions, **_: drawn.extend(regions)  # type: ignore[method-assign, assignment]
        await app.feed.refresh()
        pane.changed()
        assert drawn == []
        assert all(pane.line(index, 44) is line for index, line in enumerate(lines)), "the same lines, made once"

    await _with(play)


@pytest.mark.slow
async def test_two_lines_each_while_there_is_room_and_one_beyond() -> None:
    async def few(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        pane = app.dashboard.machines
        assert pane.lines_each == 2
        await pilot.press("m", "down")
        assert pane.cursor_index() == 2
        assert "windows/x64 · office" in pane.render_line(3).text
        await pilot.click(pane, offset=(5, 1 + 4))
        assert pane.current is not None
        assert pane.current.name == "linux-1"

    async def many(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        assert app.dashboard.machines.lines_each == 1
        await pilot.press("m", "end", "pageup", "home", "pagedown")
        assert app.dashboard.machines.current is not None

    await _with(few)
    await _with(many, _client(machines=tuple(machine(f"m-{number}") for number in range(60))))
