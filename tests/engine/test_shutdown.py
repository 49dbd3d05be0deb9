"""The engine's end, in three ways, at any moment and whatever hangs: bounded, idempotent, and honest about what is left."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from malbox_tui.engine import clock
from malbox_tui.model.commands import PausePool, Shutdown, ShutdownMode
from malbox_tui.model.errors import EngineStopped, StoreError
from malbox_tui.model.events import EngineStarted, EngineStopping, TaskGivenBack, WorkerStarted
from malbox_tui.model.machine import MachineState
from malbox_tui.model.sample import SampleName
from malbox_tui.model.submission import Offer, SubmissionOptions
from malbox_tui.model.task import TaskState
from malbox_tui.simulated.faults import ALWAYS, Fault
from malbox_tui.simulated.world import Program
from malbox_tui.store.memory import MemoryStore
from tests.support.rig import LINUX, BreakableStore, EngineRig, ScriptedRunner, spec, states, with_engine
from tests.support.virtual_time import settle_loop

T = TaskState
Mode = ShutdownMode
STOP_BOUND_S = 10.0 + 15.0 + 15.0 + 35.0
"""Grace, margin, what is cut, and machines that do not go off."""


def for_ever(**fields: object) -> ScriptedRunner:
    return ScriptedRunner(seconds=1e6, **fields)  # type: ignore[arg-type]


def stored_states(rig: EngineRig) -> list[TaskState]:
    return states(rig.store._tasks)


def took_s(rig: EngineRig) -> float:
    """How long the end took, from the first order to the last turn of the loop."""
    first = next(event.at for event in rig.events if isinstance(event.body, EngineStopping))
    return rig.ended_at - first


@pytest.mark.parametrize(
    ("mode", "expected"),
    [(Mode.DRAIN, [T.COMPLETED, T.PENDING]), (Mode.GIVE_BACK, [T.PENDING] * 2), (Mode.CANCEL, [T.CANCELED, T.PENDING])],
)
def test_each_way_to_stop_does_what_it_says_with_a_machine_in_use(mode: Mode, expected: list[TaskState]) -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", "two", requires=LINUX)
        await rig.until_state(1, T.RUNNING)
        rig.engine.stop(mode)

    rig = with_engine(test, machines=[spec("m1")], sample=Program(seconds=20.0), stop=None)
    assert stored_states(rig) == expected
    assert rig.store._tasks[1].crashes == 0


def test_a_submission_whose_content_stalls_ends_with_the_engine() -> None:
    async def test(rig: EngineRig) -> None:
        submitting = asyncio.get_running_loop().create_task(rig.engine.submit(stalled_offers(), SubmissionOptions()))
        await settle_loop()
        rig.engine.stop(Mode.GIVE_BACK)
        with pytest.raises(EngineStopped):
            await submitting

    assert took_s(with_engine(test, stop=None)) < 1.0


async def stalled_offers() -> AsyncIterator[Offer]:
    async def content() -> AsyncIterator[bytes]:
        yield b"the first bytes"
        await asyncio.get_running_loop().create_future()

    yield Offer(SampleName(b"stalled", b"/in/stalled"), content())


@pytest.mark.parametrize("mode", list(Mode))
def test_stopping_twice_is_stopping_once(mode: Mode) -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one")
        await rig.until(lambda: bool(rig.runner.running))
        for _ in range(3):
            assert (await rig.do(Shutdown(mode=mode))).done

    assert len(with_engine(test, stop=None).bodies(EngineStopping)) == 1


def test_an_ended_engine_takes_no_command_and_its_readers_end() -> None:
    async def test(rig: EngineRig) -> None:
        rig.engine.stop(Mode.DRAIN)
        await rig.pass_time(1.0)
        with pytest.raises(EngineStopped):
            await rig.do(PausePool())
        with pytest.raises(EngineStopped):
            await rig.add("one")
        assert [event async for event in rig.engine.events(None)] == []
        rig.engine.stop(Mode.CANCEL)

    with_engine(test, stop=None)


def test_a_drain_with_a_limit_gives_back_what_takes_longer() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one")
        await rig.until(lambda: bool(rig.runner.running))
        await rig.do(Shutdown(mode=Mode.DRAIN, within_s=60.0))
        await rig.pass_time(59.0)
        assert rig.runner.running
        await rig.pass_time(2.0)
        assert not rig.runner.running

    rig = with_engine(test, runner=for_ever(), timeout_s=1e5, stop=None)
    assert stored_states(rig) == [T.PENDING]
    assert [body.mode for body in rig.bodies(EngineStopping)] == [Mode.DRAIN, Mode.GIVE_BACK]  # type: ignore[attr-defined]


def test_a_drain_that_ends_in_time_never_hardens() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one")
        await rig.until(lambda: bool(rig.runner.running))
        rig.engine.stop(Mode.DRAIN, 60.0)
        await rig.pass_time(100.0)

    rig = with_engine(test, stop=None)
    assert [body.mode for body in rig.bodies(EngineStopping)] == [Mode.DRAIN]  # type: ignore[attr-defined]


@pytest.mark.parametrize("within_s", [-1.0, float("nan"), float("inf")])
def test_a_limit_that_makes_no_sense_is_refused_and_nothing_stops(within_s: float) -> None:
    async def test(rig: EngineRig) -> None:
        assert not (await rig.do(Shutdown(mode=Mode.DRAIN, within_s=within_s))).done
        assert (await rig.engine.overview()).stopping is None

    with_engine(test)


def test_a_plugin_that_never_ends_is_cut_and_its_task_given_back() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", "two")
        await rig.until(lambda: len(rig.runner.running) == 2)
        rig.engine.stop(Mode.GIVE_BACK)

    rig = with_engine(test, runner=for_ever(deaf=True), timeout_s=1e5, stop=None, leaves=True)
    assert rig.left == []
    assert took_s(rig) <= STOP_BOUND_S
    assert stored_states(rig) == [T.PENDING] * 2
    assert rig.runner.benches_out == 0


@pytest.mark.parametrize("fault", [Fault.STOP_HANGS, Fault.REVERT_HANGS, Fault.STOP_FAILS, Fault.MACHINE_SLOW])
def test_a_machine_that_hangs_or_fails_holds_the_end_up_for_a_bounded_time(fault: Fault) -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", requires=LINUX)
        await rig.until_state(1, T.RUNNING)
        rig.world.faults.inject(fault, "m1", ALWAYS)
        rig.engine.stop(Mode.GIVE_BACK)

    rig = with_engine(test, machines=[spec("m1"), spec("m2")], sample=Program(seconds=1e6), stop=None, leaves=True)
    assert rig.left == []
    assert took_s(rig) <= STOP_BOUND_S
    assert stored_states(rig) == [T.PENDING]
    assert not rig.world.machines["m2"].running
    assert not len(rig.engine._tracker), "no call of the engine's goes on"


@pytest.mark.parametrize("mode", [Mode.GIVE_BACK, Mode.CANCEL])
def test_a_dead_store_holds_the_end_up_for_a_bounded_time_and_what_was_not_stored_is_reported(mode: Mode) -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one")
        await rig.until(lambda: bool(rig.runner.running))
        rig.store.broken[None] = StoreError("I/O error")
        rig.engine.stop(mode)

    rig = with_engine(test, runner=for_ever(), timeout_s=1e5, stop=None, leaves=True, store=BreakableStore())
    assert rig.left == [1]
    assert stored_states(rig) == [T.RUNNING]
    assert not len(rig.engine._tracker)


@pytest.mark.parametrize("adapter", ["runner", "quarantine", "results", "store"])
@pytest.mark.parametrize("way", ["hangs", "raises"])
def test_an_adapter_that_does_not_close_keeps_no_other_open(adapter: str, way: str) -> None:
    closed: list[str] = []

    def prepare(rig: EngineRig) -> None:
        for name in ("runner", "quarantine", "results", "store"):
            getattr(rig, name).close = close(name, getattr(rig, name).close)

    def close(name: str, real):  # type: ignore[no-untyped-def]
        async def closes() -> None:
            closed.append(name)
            if name == adapter and way == "hangs":
                await clock.sleep(1e9)
            await real()
            if name == adapter:
                raise StoreError(f"{name} is broken")

        return closes

    async def test(rig: EngineRig) -> None:
        rig.engine.stop(Mode.DRAIN)

    if way == "raises":
        with pytest.raises(StoreError, match=f"{adapter} is broken"):
            with_engine(test, prepare=prepare, stop=None, leaves=True)
    else:
        with_engine(test, prepare=prepare, stop=None, leaves=True)
    assert closed == ["runner", "quarantine", "results", "store"]


def test_a_stop_before_the_engine_runs_ends_it_as_soon_as_it_is_ready() -> None:
    rig = with_engine(nothing, prepare=lambda rig: rig.engine.stop(Mode.GIVE_BACK), stop=None)
    assert not rig.bodies(WorkerStarted)
    assert {type(event.body) for event in rig.store._events} == {EngineStarted, EngineStopping}


def test_a_stop_while_the_engine_opens_ends_it_even_if_that_hangs() -> None:
    class NeverOpens(MemoryStore):
        async def pending(self):  # type: ignore[no-untyped-def]
            await clock.sleep(1e9)

    def prepare(rig: EngineRig) -> None:
        asyncio.get_running_loop().call_later(3.0, rig.engine.stop, Mode.DRAIN)

    with_engine(nothing, prepare=prepare, store=NeverOpens(), stop=None)


def test_an_engine_that_is_cut_from_outside_leaves_nothing_running() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", requires=LINUX)
        await rig.add("two")
        await rig.until_state(1, T.RUNNING)
        rig.life.cancel()
        await settle_loop()

    with pytest.raises(asyncio.CancelledError):
        with_engine(test, machines=[spec("m1")], runner=for_ever(), sample=Program(seconds=1e6), stop=None)


def test_no_machine_is_reverted_any_more_while_the_engine_ends() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", requires=LINUX)
        await rig.until_state(1, T.RUNNING)
        rig.runner.deaf = True
        rig.world.faults.inject(Fault.REVERT_HANGS, "m1", ALWAYS)
        rig.engine.stop(Mode.GIVE_BACK)

    rig = with_engine(test, machines=[spec("m1")], runner=for_ever(), timeout_s=1e5, stop=None, leaves=True)
    assert not rig.world.machines["m1"].running
    assert rig.engine._machines._machines["m1"].state is MachineState.REVERTING
    assert rig.world.violations == []


def test_tasks_that_were_handed_out_in_the_turn_of_the_stop_stay_pending() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.do(PausePool())
        await rig.add("one", "two")
        rig.engine._pool.lift("operator")
        assert len(rig.engine._tokens) == 2
        rig.engine.stop(Mode.GIVE_BACK)

    rig = with_engine(test, stop=None)
    assert stored_states(rig) == [T.PENDING] * 2
    assert rig.runner.order == []


def test_a_harder_stop_hardens_a_drain_and_a_softer_one_changes_nothing() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("endless")
        await rig.until(lambda: bool(rig.runner.running))
        rig.engine.stop(ShutdownMode.DRAIN)
        await rig.pass_time(1000.0)
        assert rig.runner.running
        rig.engine.stop(ShutdownMode.GIVE_BACK)
        rig.engine.stop(ShutdownMode.DRAIN)

    rig = with_engine(test, runner=ScriptedRunner(seconds=1e6), timeout_s=1e5, stop=None)
    assert len(rig.bodies(TaskGivenBack)) == 1


def test_finished_work_is_kept_when_the_engine_stops_in_that_moment() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("sample")
        await rig.until(lambda: bool(rig.runner.running))
        await rig.pass_time(0.995)
        rig.engine.stop(ShutdownMode.DRAIN)
        await rig.all_final()
        rig.engine.stop(ShutdownMode.GIVE_BACK)
        assert (await rig.task(1)).state is TaskState.COMPLETED

    with_engine(test, stop=None)


async def nothing(_rig: EngineRig) -> None:
    """The engine has ended by itself."""
