"""The forms that add a machine and change one: what is given is sent, and what is refused can be corrected."""

from __future__ import annotations

import msgspec
import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from malbox_tui.model.commands import Command, CommandOutcome, SetMachine, ShutdownMode
from malbox_tui.model.errors import MalboxError, StoreFull
from malbox_tui.model.machine import MachineSpec
from malbox_tui.tui import keys
from malbox_tui.tui.app import MalboxApp
from malbox_tui.tui.screens.dashboard import Dashboard
from malbox_tui.tui.screens.machine import MachineScreen
from malbox_tui.tui.screens.machine_form import FIELDS, MachineForm
from tests.tui.machines_shown import SPEC, fleet, shown, with_fleet
from tests.tui.scripted import ScriptedAttachment


def test_everything_that_a_machine_is_can_be_given() -> None:
    assert {field.name for field in FIELDS} == set(MachineSpec.__struct_fields__)


@pytest.mark.slow
async def test_a_machine_is_added_as_it_was_typed() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press("n", *"kali", "tab", *"linux", "down", "down", *"a, b,", "enter")
        await pilot.pause()
        assert isinstance(app.screen, Dashboard)

    client = await with_fleet(play)
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
        assert "platform is needed [/]" in shown(app)
        assert app.screen.query(Input).first().value == "kali"
        await pilot.press("tab", *"linux", "enter")
        await pilot.pause()
        assert isinstance(app.screen, Dashboard)

    def answered(command: Command) -> CommandOutcome | MalboxError:
        assert isinstance(command.action, SetMachine)
        return CommandOutcome(done=True, message="added") if command.action.machine.platform else answer

    await with_fleet(play, fleet(answer=answered))


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
            assert "is no whole number" in shown(app)
        await pilot.press("escape")

    client = await with_fleet(play)
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

    client = fleet(answer=lambda command: CommandOutcome(done=False, message="no such domain"))
    await with_fleet(play, client)
    assert len(client.commands) == 1


@pytest.mark.slow
async def test_a_machine_is_changed_from_what_it_is() -> None:
    async def play(app: MalboxApp, pilot: Pilot[ShutdownMode]) -> None:
        await pilot.press("m", "enter", "i")
        await pilot.pause()
        assert isinstance(app.screen, MachineForm)
        assert "Task 2 has it: what is changed holds when" in shown(app)
        await pilot.press("down", "down", "end", *", slow", "enter")
        await pilot.pause()
        assert isinstance(app.screen, MachineScreen)

    client = await with_fleet(play)
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

    await with_fleet(play)


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

    client = await with_fleet(play, attachment=ScriptedAttachment(read_only=True))
    assert client.commands == []


def test_every_key_that_changes_a_machine_is_refused_to_who_may_only_look() -> None:
    changing = {
        key.action.removeprefix("app.") for key in (*keys.MACHINES, *keys.MACHINE_SCREEN) if key.action.endswith("_machine")
    }
    assert changing - {"show_machine"} <= keys.CHANGING_ACTIONS
