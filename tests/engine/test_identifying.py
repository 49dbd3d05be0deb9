"""What the samples of waiting tasks are, found out before their run, kept, told, and followed by the profile that is for them."""

from __future__ import annotations

from malbox_tui.config.settings import ProfileSettings
from malbox_tui.model.commands import IdentifySamples, PausePool, ResumePool
from malbox_tui.model.events import TaskIdentified
from malbox_tui.model.queries import TaskQuery, TaskRecord
from malbox_tui.model.report import Identification
from malbox_tui.model.suggestion import Suggestion
from malbox_tui.model.task import TaskState
from tests.support.rig import EngineRig, ScriptedRunner, with_engine

OLE = Identification("ole", platform="windows", tags=("office", "macros"))
DOCUMENTS = ProfileSettings(name="documents", kinds=("ole",))


async def record(rig: EngineRig) -> TaskRecord:
    return (await rig.engine.query(TaskQuery())).rows[0]


def test_a_waiting_tasks_sample_is_identified_and_its_profile_suggested() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.do(PausePool())
        await rig.add("a")
        assert (await record(rig)).suggestion is None
        outcome = await rig.do(IdentifySamples(task_ids=(1,)))
        said = "Task 1: ole, windows, office, macros. The profile documents is for kind ole."
        assert (outcome.done, outcome.targets[0].message) == (True, said)
        row = await record(rig)
        assert (row.task.state, row.sample.identification) == (TaskState.PENDING, OLE)
        assert row.suggestion == Suggestion("documents", "The profile documents is for kind ole.", ("office", "macros"))
        assert rig.bodies(TaskIdentified) == [TaskIdentified(task_id=1, kind="ole", tags=("office", "macros"))]
        assert (rig.runner.order, rig.runner.benches_out) == ([], 0)
        assert (await rig.do(IdentifySamples(task_ids=(1,)))).targets[0].message == said
        assert len(rig.bodies(TaskIdentified)) == 1
        await rig.do(ResumePool())
        assert str((await rig.all_final())[1].profile) == "documents, for kind ole"

    with_engine(test, runner=ScriptedRunner(identification=OLE), profiles=(DOCUMENTS,))


def test_what_nobody_can_say_and_what_runs_already_is_refused_with_the_reason() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.do(PausePool())
        await rig.add("a")
        outcome = await rig.do(IdentifySamples(task_ids=(1, 9)))
        assert [target.message for target in outcome.targets] == [
            "What the sample of task 1 is, no plugin can say.",
            "There is no task 9. `malbox-tui tasks` lists those there are.",
        ]
        await rig.do(ResumePool())
        await rig.all_final()
        outcome = await rig.do(IdentifySamples(task_ids=(1,)))
        assert outcome.targets[0].message == "Task 1 is completed; its run says what its sample is."
        outcome = await rig.do(IdentifySamples(task_ids=tuple(range(1, 30))))
        assert (outcome.done, outcome.message) == (False, "29 samples: 20 are the most that are identified at once.")

    with_engine(test)
