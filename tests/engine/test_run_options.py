"""What is asked of a run travels with its task: arguments and the memory; and what makes no sense is refused with the reason."""

from __future__ import annotations

import msgspec
import pytest

from malbox_tui.model.commands import RetryTasks
from malbox_tui.model.task import RunOptions, TaskState
from tests.support.rig import LINUX, EngineRig, spec, with_engine

ASKED = RunOptions(("--all", "a b", "$HOME;"), memory_dump=True)


def test_the_sample_is_started_with_its_arguments_as_they_are_and_its_memory_is_kept() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", requires=LINUX, run=ASKED)
        task = (await rig.all_final())[1]
        assert (task.state, task.run) == (TaskState.COMPLETED, ASKED)
        kept = rig.results.kept_of(1)
        assert msgspec.json.decode(kept["run"])["started"] == "/tmp/sample --all a b $HOME;"
        assert kept["memory.elf"].startswith(b"\x7fELF")

    with_engine(test, machines=[spec("m1")])


def test_without_a_word_no_memory_is_kept() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", requires=LINUX)
        await rig.all_final()
        assert "memory.elf" not in rig.results.kept_of(1)

    with_engine(test, machines=[spec("m1")])


def test_a_retry_runs_as_the_task_before_it_did() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", requires=LINUX, run=ASKED)
        await rig.all_final()
        assert (await rig.do(RetryTasks(task_ids=(1,)))).done
        assert (await rig.all_final())[2].run == ASKED

    with_engine(test, machines=[spec("m1")])


@pytest.mark.parametrize(
    ("run", "requires", "reason"),
    [
        (RunOptions(("-x",)), None, "A static task needs no machine, so there is nothing to give arguments to."),
        (RunOptions(memory_dump=True), None, "A static task needs no machine, so there is no memory to dump."),
        (RunOptions(("x",) * 101), LINUX, "101 arguments for a sample: 100 are the most."),
        (RunOptions(("x" * 5000,)), LINUX, "An argument for a sample has more than 4096 characters."),
        (RunOptions(("a\0b",)), LINUX, "An argument for a sample holds a NUL, which no program can be given."),
    ],
    ids=["arguments on the host", "memory on the host", "too many", "too long", "NUL"],
)
def test_what_makes_no_sense_is_refused_with_the_reason(run: RunOptions, requires: object, reason: str) -> None:
    async def test(rig: EngineRig) -> None:
        options = {} if requires is None else {"requires": requires}
        account = await rig.add("one", run=run, **options)
        assert [(refused.refusal.code, refused.refusal.reason) for refused in account.refused] == [("nonsense", reason)]
        assert await rig.tasks() == {}

    with_engine(test, machines=[spec("m1")])
