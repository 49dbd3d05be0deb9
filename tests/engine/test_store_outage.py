"""A store that raises, is full or read-only, for a moment or for long: the pool pauses and says so, what runs goes on, nothing is lost,
and it resumes by itself."""

from __future__ import annotations

import pytest

from malbox_tui.engine.store_health import CHECK_EVERY_S, RETRY_S
from malbox_tui.model.commands import PausePool, ResumePool
from malbox_tui.model.errors import StoreError, StoreFull
from malbox_tui.model.events import PoolResumed, StoreFailing, StoreWorks, TaskStageChanged
from malbox_tui.model.machine import MachineState
from malbox_tui.model.submission import Refused
from malbox_tui.model.task import TaskState
from malbox_tui.store.requests import Adding, Changing, Claiming, Noting, Renewing, Request
from tests.support.rig import LINUX, BreakableStore, EngineRig, ScriptedRunner, spec, states, with_engine
from tests.support.virtual_time import settle_loop

T = TaskState
FULL = StoreFull("no space left on device")
READ_ONLY = StoreError("attempt to write a readonly database")
IO = StoreError("disk I/O error")


async def trouble(rig: EngineRig) -> tuple[str | None, tuple[str, ...]]:
    overview = await rig.engine.overview()
    return overview.paused, overview.troubles


@pytest.mark.parametrize("error", [FULL, READ_ONLY, IO], ids=str)
@pytest.mark.parametrize("seconds", [0.5, 3600.0])
def test_while_the_store_takes_nothing_the_pool_says_so_and_afterwards_it_goes_on(error: StoreError, seconds: float) -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add(*[f"sample {n}" for n in range(8)])
        await rig.until(lambda: len(rig.runner.running) == 4)
        rig.store.broken[None] = error
        await rig.pass_time(seconds + 0.6)
        assert await trouble(rig) == ("the store takes nothing", (f"The store takes nothing: {error}",))
        refused = (await rig.add("late")).receipts[0]
        assert isinstance(refused, Refused)
        assert refused.refusal.reason == str(error)
        assert not rig.runner.running, "what ran has finished"
        rig.store.broken.clear()
        await rig.pass_time(2.0)
        assert await trouble(rig) == (None, ())
        tasks = await rig.all_final()
        assert states(tasks) == [T.COMPLETED] * 8
        assert {task.crashes for task in tasks.values()} == {0}

    rig = with_engine(test)
    assert sorted(rig.runner.order) == list(range(1, 9)), "no work was done twice"
    assert rig.bodies(StoreFailing)
    assert len(rig.bodies(StoreWorks)) == 1
    assert len(rig.bodies(PoolResumed)) == 1


@pytest.mark.parametrize("kind", [Adding, Claiming, Changing, Renewing], ids=lambda kind: kind.__name__)
def test_whichever_write_fails_first_tells_that_the_store_fails(kind: type) -> None:
    async def test(rig: EngineRig) -> None:
        if kind is Renewing:
            await rig.add("runs")
            await rig.until(lambda: bool(rig.runner.running))
        rig.store.broken[kind] = rig.store.broken[Noting] = IO
        if kind is not Renewing:
            await rig.add("sample")
        await rig.pass_time(15.0)
        assert await trouble(rig) == ("the store takes nothing", ("The store takes nothing: disk I/O error",))
        rig.store.broken.clear()
        await rig.add("sample")
        assert set(states(await rig.all_final())) == {T.COMPLETED}

    with_engine(test, runner=ScriptedRunner(seconds=11.0))


def test_an_engine_with_nothing_to_do_notices_too_and_when_it_is_over() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.pass_time(3600.0)
        rig.store.broken[None] = READ_ONLY
        await rig.pass_time(CHECK_EVERY_S + 0.1)
        assert await trouble(rig) == ("the store takes nothing", (f"The store takes nothing: {READ_ONLY}",))
        rig.store.broken.clear()
        await rig.pass_time(RETRY_S + 0.1)
        assert await trouble(rig) == (None, ())

    rig = with_engine(test)
    assert [type(body) for body in rig.bodies(StoreFailing | StoreWorks)] == [StoreFailing, StoreWorks]


class FailsNth(BreakableStore):
    """Fails the n-th change of the first task, and nothing else."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.n = n
        self.seen = 0

    def _carry_out(self, request: Request):  # type: ignore[no-untyped-def]
        if isinstance(request, Changing) and request.change.before.id == 1:
            self.seen += 1
            if self.seen == self.n:
                return lambda: request.answer.fail(IO)
        return super()._carry_out(request)


@pytest.mark.parametrize("n", range(1, 7))
def test_whichever_change_of_a_task_is_not_taken_its_outcome_is_stored_and_its_work_done_once(n: int) -> None:
    async def test(rig: EngineRig) -> None:
        await rig.until_machine("m1", MachineState.READY)
        await rig.add("sample", "other", requires=LINUX)
        tasks = await rig.all_final(within_s=100.0)
        assert states(tasks) == [T.COMPLETED] * 2
        assert (tasks[1].attempts, tasks[1].crashes) == (1, 0)

    rig = with_engine(test, store=FailsNth(n), machines=[spec("m1")])
    assert rig.runner.order == [1, 2]
    told = [body.state for body in rig.bodies(TaskStageChanged) if body.task_id == 1]  # type: ignore[attr-defined]
    assert told[-1] is T.STOPPING, "what was missed is made good in one step"
    assert told == sorted(told, key=list(TaskState).index)


@pytest.mark.parametrize("n", range(1, 4))
def test_whichever_change_is_not_taken_a_task_is_given_back_at_a_stop(n: int) -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("sample")
        await rig.until(lambda: bool(rig.runner.running))

    rig = with_engine(test, store=FailsNth(n), runner=ScriptedRunner(seconds=1e4), timeout_s=1e5)
    task = rig.store._tasks[1]
    assert (task.state, task.attempts, task.crashes) == (T.PENDING, 0, 0)


@pytest.mark.parametrize("call", ["settle", "discard"])
def test_a_result_store_that_fails_is_waited_for_and_the_work_is_not_done_again(call: str) -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("sample")
        await rig.until(lambda: bool(rig.runner.running))
        rig.results.raises += [FULL, IO]
        if call == "discard":
            rig.engine.stop(ShutdownMode.GIVE_BACK)
        else:
            await rig.all_final()

    from malbox_tui.model.commands import ShutdownMode

    rig = with_engine(test)
    assert rig.runner.order == [1]
    assert (rig.results.settled, rig.results.discarded) == (([1], []) if call == "settle" else ([], [1]))
    assert rig.store._tasks[1].state is (T.COMPLETED if call == "settle" else T.PENDING)


def test_the_operators_pause_and_the_stores_are_independent() -> None:
    async def test(rig: EngineRig) -> None:
        rig.store.broken[Adding] = rig.store.broken[Noting] = IO
        await rig.add("one")
        assert (await trouble(rig))[0] == "the store takes nothing"
        await rig.do(PausePool())
        assert (await trouble(rig))[0] == "the store takes nothing; paused by ana"
        rig.store.broken.clear()
        await rig.pass_time(2.0)
        assert (await trouble(rig))[0] == "paused by ana", "the store does not lift it"
        rig.store.broken[Adding] = rig.store.broken[Noting] = IO
        await rig.add("one")
        outcome = await rig.do(ResumePool())
        assert outcome.message == "Resumed, but no task is taken yet: the store takes nothing."
        assert (await trouble(rig))[0] == "the store takes nothing", "the operator does not lift that"
        rig.store.broken.clear()
        await rig.pass_time(2.0)
        await rig.add("one")
        assert states(await rig.all_final()) == [T.COMPLETED]

    with_engine(test)


def test_a_store_that_fails_again_as_soon_as_it_is_used_is_tried_ever_more_rarely() -> None:
    async def test(rig: EngineRig) -> None:
        rig.store.broken[Claiming] = IO
        await rig.add("one")
        await rig.pass_time(600.0)
        assert len(rig.bodies(StoreWorks)) < 50, "a log of its trials would fill the disk"
        rig.store.broken.clear()
        assert states(await rig.all_final(within_s=20.0)) == [T.COMPLETED]

    with_engine(test)


def test_a_task_whose_claim_fails_keeps_its_place_its_machine_goes_back_and_it_may_be_re_ordered() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.until_machine("m1", MachineState.READY)
        rig.store.broken[Claiming] = rig.store.broken[Noting] = IO
        await rig.add("one", "two", requires=LINUX)
        await settle_loop()
        assert (await rig.machine("m1")).state is MachineState.READY
        assert (await rig.waiting(1)).position == 1
        assert (await rig.waiting(1)).reason == "the store takes nothing"
        from malbox_tui.model.commands import SetPriority

        await rig.do(SetPriority(task_ids=(2,), priority=5))
        assert (await rig.waiting(2)).position == 1
        rig.store.broken.clear()
        await rig.all_final()

    assert with_engine(test, machines=[spec("m1")]).runner.order == [2, 1]


def test_leases_that_ran_out_in_an_outage_cost_a_running_task_nothing() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one")
        await rig.until(lambda: bool(rig.runner.running))
        rig.store.broken[None] = IO
        await rig.pass_time(100.0)
        rig.store.broken.clear()
        task = (await rig.all_final())[1]
        assert (task.state, task.crashes) == (T.COMPLETED, 0)

    assert with_engine(test, runner=ScriptedRunner(seconds=200.0)).runner.order == [1]
