"""Pictures of a guest's screen: each is kept once, and looked for ever more seldom while nothing new is shown."""

from __future__ import annotations

import pytest

from malbox_tui.engine import clock
from malbox_tui.engine.guest_screen import LONGEST_WAIT_S
from malbox_tui.model.errors import MachineError
from malbox_tui.model.machine import MachineSpec, Picture
from malbox_tui.simulated.faults import ALWAYS, Fault
from malbox_tui.simulated.machines import SimulatedProvider
from malbox_tui.simulated.world import Program
from tests.support.rig import LINUX, EngineRig, spec, with_engine


def test_a_cursor_that_blinks_is_kept_twice_and_then_looked_at_ever_more_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0

    async def blinks(_provider: SimulatedProvider, _machine: MachineSpec) -> Picture:
        nonlocal looks
        looks += 1
        return Picture("image/png", b"cursor" if looks % 2 else b"no cursor")

    monkeypatch.setattr(SimulatedProvider, "screenshot", blinks)

    async def test(rig: EngineRig) -> None:
        await rig.add("one", requires=LINUX)
        await rig.all_final()
        pictures = {name: content for name, content in rig.results.kept_of(1).items() if name.startswith("screenshot-")}
        assert pictures == {"screenshot-001.png": b"cursor", "screenshot-002.png": b"no cursor"}
        assert looks < 20 + 500.0 / LONGEST_WAIT_S

    with_engine(test, machines=[spec("m1")], sample=Program(seconds=500.0), timeout_s=600.0)


def test_a_picture_that_can_not_be_taken_hides_nothing_else_that_could_not_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0

    async def fails_slowly_at_first(_provider: SimulatedProvider, machine: MachineSpec) -> Picture:
        nonlocal looks
        looks += 1
        if looks == 1:
            await clock.sleep(3.0)
            raise MachineError(machine.name, "its screen is asleep")
        return Picture("image/png", b"a screen")

    monkeypatch.setattr(SimulatedProvider, "screenshot", fails_slowly_at_first)

    async def test(rig: EngineRig) -> None:
        rig.world.faults.inject(Fault.CAPTURE_BREAKS, "m1", ALWAYS)
        await rig.add("one", requires=LINUX)
        (run,) = [run for run in (await rig.all_final())[1].plugins if run.name == "guest-run"]
        assert "could not record its network traffic" in run.reason
        assert "screen" not in run.reason

    with_engine(test, machines=[spec("m1")], sample=Program(seconds=10.0))
