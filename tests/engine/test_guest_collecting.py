"""What is kept of a run in a guest: its end, processes, files, pictures, traffic, memory; within bounds, and in words where not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import msgspec
import pytest

from malbox_tui.config.settings import AnalysisSettings, MachinerySettings
from malbox_tui.engine import looking
from malbox_tui.model.commands import CancelTasks, ShutdownMode
from malbox_tui.model.errors import GuestRefused
from malbox_tui.model.events import ScreenshotTaken
from malbox_tui.model.machine import MachineState
from malbox_tui.model.report import Classification, PluginStatus, Report, Verdict
from malbox_tui.model.task import EndedBy, RunOptions, TaskState
from malbox_tui.ports import GuestView
from malbox_tui.simulated import machines as simulated
from malbox_tui.simulated.faults import ALWAYS, Fault
from malbox_tui.simulated.guests import SimulatedSession
from malbox_tui.simulated.world import Program
from tests.support.rig import CLEAN_RUN, LINUX, MALICIOUS, EngineRig, ScriptedRunner, spec, with_engine
from tests.support.scripted import INBOX

T = TaskState
FILES = (("loot.txt", b"stolen"), ("void", b""))
DROPS = Program(seconds=5.0, output=b"hello", drops=FILES)
FOR_EVER = Program(seconds=1e6, output=b"so far", drops=FILES)


def kept(rig: EngineRig, name: str, task_id: int = 1) -> dict[str, object]:
    """A JSON result of the run."""
    decoded = msgspec.json.decode(rig.results.kept_of(task_id)[name])
    assert isinstance(decoded, dict)
    return decoded


def index(rig: EngineRig, task_id: int = 1) -> list[dict[str, object]]:
    found = msgspec.json.decode(rig.results.kept_of(task_id)["files"])
    assert isinstance(found, list)
    return found


def test_all_that_a_run_left_is_kept_and_told_in_a_report() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", requires=LINUX)
        task = (await rig.all_final())[1]
        assert (task.state, task.reason) == (T.COMPLETED, "Finished.")
        results = rig.results.kept_of(1)
        assert {"run", "report", "processes", "files", "network.pcap", "screenshot-001.png"} <= set(results)
        assert {result.name for result in task.plugins[0].results} == set(results)
        report = msgspec.json.decode(results["report"], type=Report)
        assert report.summary == "The sample ended with exit status 0."
        assert [section.id for section in report.sections] == ["end", "output", "processes", "files", "screen", "recorded"]
        assert report.plugin.id == "guest-run"

    with_engine(test, machines=[spec("m1")], sample=DROPS)


def test_a_task_whose_machine_is_ready_looks_into_the_guest_only_after_its_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = SimulatedSession.look
    was_fresh: list[bool] = []

    async def noted(self: SimulatedSession, folders: Sequence[str], limit: int) -> GuestView:
        was_fresh.append(self._body.fresh)
        return await honest(self, folders, limit)

    async def test(rig: EngineRig) -> None:
        await rig.until_machine("m1", MachineState.READY)
        await rig.add("one", requires=LINUX)
        await rig.all_final()
        await rig.until_machine("m1", MachineState.READY)
        assert was_fresh == [True, False, True]
        assert [entry["path"] for entry in index(rig)] == ["/tmp/loot.txt", "/tmp/void"]

    monkeypatch.setattr(SimulatedSession, "look", noted)
    with_engine(test, machines=[spec("m1")], sample=DROPS)


def test_a_guest_that_refused_a_look_when_it_was_proven_clean_is_looked_at_before_the_sample(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    honest = SimulatedSession.look
    refusals = iter([True])

    async def refused_once(self: SimulatedSession, folders: Sequence[str], limit: int) -> GuestView:
        seen = await honest(self, folders, limit)
        if next(refusals, False):
            raise GuestRefused("m1", "not now")
        return seen

    async def test(rig: EngineRig) -> None:
        await rig.add("one", requires=LINUX)
        task = (await rig.all_final())[1]
        assert (task.state, task.reason) == (T.COMPLETED, "Finished.")
        assert [entry["path"] for entry in index(rig)] == ["/tmp/loot.txt", "/tmp/void"]

    monkeypatch.setattr(SimulatedSession, "look", refused_once)
    with_engine(test, machines=[spec("m1")], sample=DROPS)


def test_files_that_the_sample_dropped_are_kept_under_safe_names_and_the_index_knows_what_they_were_called() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", requires=LINUX)
        await rig.all_final()
        assert [(entry["path"], entry["change"], entry["result"]) for entry in index(rig)] == [
            ("/tmp/loot.txt", "dropped", "dropped-0001.txt"),
            ("/tmp/sub\x1b[31m/\\udcff.BIN", "dropped", "dropped-0002.bin"),
        ]
        assert rig.results.kept_of(1)["dropped-0001.txt"] == b"stolen"
        assert rig.results.kept_of(1)["dropped-0002.bin"] == b"\x00" * 10

    drops = (("loot.txt", b"stolen"), ("/tmp/sub\x1b[31m/\udcff.BIN", b"\x00" * 10))
    with_engine(test, machines=[spec("m1")], sample=Program(seconds=5.0, drops=drops))


def test_watched_folders_are_those_of_the_machine() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", requires=LINUX)
        await rig.all_final()
        assert [entry["path"] for entry in index(rig)] == ["/srv/there"]

    drops = (("/srv/there", b"1"), ("/elsewhere/not", b"2"), ("not", b"3"))
    with_engine(test, machines=[spec("m1", watch=("/srv",))], sample=Program(seconds=1.0, drops=drops))


MIB = 1024 * 1024


def test_what_is_too_much_is_left_out_and_said() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", requires=LINUX)
        await rig.all_final()
        assert {entry["path"]: entry.get("missing", "") for entry in index(rig)} == {
            "/tmp/a": "",
            "/tmp/b": f"only its first {MIB} bytes are kept",
            "/tmp/c": f"more than {2 * MIB} bytes in all",
            "/tmp/d": "",
            "/tmp/e": "more than 3 files",
        }

    drops = (("a", b"a"), ("b", b"b" * (MIB + 1)), ("c", b"c" * 2 * MIB), ("d", b"d"), ("e", b"e"))
    bounds = MachinerySettings(max_dropped_files=3, max_dropped_file_mb=1, max_dropped_mb=2)
    with_engine(test, machines=[spec("m1")], machinery=bounds, sample=Program(seconds=1.0, drops=drops))


def test_what_is_kept_is_counted_by_what_came_and_not_by_what_the_guest_says(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = SimulatedSession.look

    async def lies(self: SimulatedSession, folders: Sequence[str], limit: int) -> GuestView:
        seen = await honest(self, folders, limit)
        return replace(
            seen, files={folder: [replace(file, size_bytes=0) for file in files] for folder, files in seen.files.items()}
        )

    async def test(rig: EngineRig) -> None:
        await rig.add("one", requires=LINUX)
        await rig.all_final()
        kept = rig.results.kept_of(1)
        assert sum(len(content) for name, content in kept.items() if name.startswith("dropped")) == 2 * MIB
        assert [entry.get("missing", "") for entry in index(rig)] == [
            "",
            f"only its first {MIB - 1} bytes are kept",
            *["more than 2 files"] * 2,
        ]

    monkeypatch.setattr(SimulatedSession, "look", lies)
    drops = (("a", b"a" * (MIB + 1)), ("b", b"b" * 3 * MIB), ("c", b"c"), ("d", b"d"))
    bounds = MachinerySettings(max_dropped_files=2, max_dropped_file_mb=2, max_dropped_mb=2)
    with_engine(test, machines=[spec("m1")], machinery=bounds, sample=Program(seconds=1.0, drops=drops))


def test_no_more_of_the_memory_and_the_traffic_is_kept_than_is_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulated, "_MEMORY_BYTES", 2 * MIB)
    monkeypatch.setattr(simulated, "_PACKET", bytes(2 * MIB))

    async def test(rig: EngineRig) -> None:
        await rig.add("one", requires=LINUX, run=RunOptions(memory_dump=True))
        task = (await rig.all_final())[1]
        for what in ("its memory", "its traffic"):
            assert f"only the first {MIB} bytes of {what} are kept" in task.reason
        assert {len(rig.results.kept_of(1)[name]) for name in ("memory.elf", "network.pcap")} == {MIB}

    bounds = MachinerySettings(max_traffic_mb=1, max_memory_mb=1)
    with_engine(test, machines=[spec("m1")], machinery=bounds, sample=Program(seconds=1.0))


def test_pictures_are_told_as_they_are_taken_and_only_those_that_differ_are_kept() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", requires=LINUX)
        await rig.until_state(1, T.RUNNING)
        await rig.pass_time(5.0)
        assert (await rig.machine("m1")).screenshot is not None
        await rig.all_final()
        pictures = [content for name, content in rig.results.kept_of(1).items() if name.startswith("screenshot-")]
        told = rig.bodies(ScreenshotTaken)
        assert 2 <= len(pictures) <= 20
        assert len(pictures) == len(told)
        assert len(set(pictures)) == len(pictures)

    with_engine(test, machines=[spec("m1")], sample=Program(seconds=500.0), timeout_s=600.0)


@pytest.mark.parametrize(
    ("fault", "note"),
    [
        (Fault.SCREENSHOT_FAILS, "could not take a picture of its screen: its screen could not be read"),
        (Fault.CAPTURE_BREAKS, "could not record its network traffic: its traffic could not be recorded"),
        (Fault.DUMP_FAILS, "could not dump its memory: its memory could not be written"),
    ],
)
def test_what_the_hypervisor_cannot_do_is_said_and_the_rest_is_kept(fault: Fault, note: str) -> None:
    async def test(rig: EngineRig) -> None:
        rig.world.faults.inject(fault, "m1", ALWAYS)
        await rig.add("one", requires=LINUX, run=RunOptions(memory_dump=True))
        task = (await rig.all_final())[1]
        assert task.state is T.COMPLETED
        assert task.plugins[0].is_degraded
        assert note in task.plugins[0].reason
        assert note in task.reason
        assert rig.results.kept_of(1)["dropped-0001.txt"] == b"stolen"

    with_engine(test, machines=[spec("m1")], sample=DROPS)


def test_a_task_whose_time_is_over_keeps_what_its_sample_did_until_then() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", requires=LINUX, run=RunOptions(memory_dump=True))
        task = (await rig.all_final())[1]
        assert (task.state, task.ended_by) == (T.TIMED_OUT, EndedBy.ANALYSIS_TIMEOUT)
        assert task.plugins[0].status is PluginStatus.TIMED_OUT
        names = set(rig.results.kept_of(1))
        assert {"dropped-0001.txt", "network.pcap", "memory.elf", "screenshot-001.png", "processes", "run"} <= names
        ran = kept(rig, "run")
        assert (ran["end"], ran["output"]) == (None, "so far")
        assert [run.subject for run in task.plugins if run.subject] == ["/tmp/loot.txt"]

    with_engine(test, machines=[spec("m1")], sample=FOR_EVER, timeout_s=30.0)


def test_a_cancel_collects_nothing_and_says_what_it_was_doing() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", requires=LINUX)
        await rig.until_state(1, T.RUNNING)
        await rig.pass_time(10.0)
        await rig.do(CancelTasks(task_ids=(1,)))
        task = await rig.until_state(1, T.CANCELED, within_s=3.0)
        assert task.reason == "Canceled by ana while running: the sample was running."
        assert "files" not in rig.results.kept_of(1)
        await rig.until_machine("m1", MachineState.READY, within_s=60.0)

    with_engine(test, machines=[spec("m1")], sample=FOR_EVER)


def test_a_cancel_while_it_is_collected_ends_that_at_once() -> None:
    async def test(rig: EngineRig) -> None:
        rig.world.durations = replace(rig.world.durations, dump=(1e6, 1e6))
        await rig.add("one", requires=LINUX, run=RunOptions(memory_dump=True))
        await rig.until_state(1, T.RUNNING)
        await rig.pass_time(20.0)
        await rig.do(CancelTasks(task_ids=(1,)))
        task = await rig.until_state(1, T.CANCELED, within_s=3.0)
        assert task.reason == "Canceled by ana while running: the memory of its machine was being dumped."

    with_engine(test, machines=[spec("m1")])


def test_collecting_takes_no_longer_than_it_may_and_its_machine_is_given_back_then() -> None:
    async def test(rig: EngineRig) -> None:
        rig.world.durations = replace(rig.world.durations, dump=(1e6, 1e6))
        await rig.add("one", requires=LINUX, run=RunOptions(memory_dump=True))
        task = (await rig.all_final(within_s=60.0))[1]
        assert "could not dump its memory within 20 s" in task.reason
        assert task.state is T.COMPLETED
        assert "dropped-0001.txt" in rig.results.kept_of(1)

    with_engine(test, machines=[spec("m1")], sample=DROPS, analysis=AnalysisSettings(collecting_timeout_s=20.0))


def test_a_guest_that_answers_slowly_is_collected_for_as_long_as_that_may_take_and_no_longer() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", requires=LINUX)
        await rig.until_state(1, T.RUNNING)
        await rig.pass_time(3.0)
        rig.world.durations = replace(rig.world.durations, ask=(25.0, 25.0))
        task = (await rig.all_final(within_s=60.0))[1]
        assert task.state is T.COMPLETED
        assert "not all of it was collected within 40 s" in task.reason
        assert {"processes", "network.pcap", "run"} <= set(rig.results.kept_of(1))
        assert "files" not in rig.results.kept_of(1)

    with_engine(test, machines=[spec("m1")], sample=DROPS, analysis=AnalysisSettings(collecting_timeout_s=40.0))


def test_a_shutdown_gives_a_running_sample_back_and_keeps_one_that_has_ended() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("runs", requires=LINUX)
        await rig.add("watched", requires=LINUX, enforce_timeout=True)
        await rig.until_state(1, T.RUNNING)
        await rig.until_state(2, T.RUNNING)
        await rig.pass_time(40.0)
        rig.engine.stop(ShutdownMode.GIVE_BACK)

    rig = with_engine(
        test, machines=[spec("m1"), spec("m2")], sample=Program(seconds=20.0, drops=FILES), stop=None, timeout_s=200.0
    )
    assert [task.state for task in rig.store._tasks.values()] == [T.COMPLETED, T.COMPLETED]
    assert "dropped-0001.txt" in rig.results.kept_of(2), "what it left was collected within the grace period"


def test_a_machine_is_given_back_as_soon_as_all_is_collected_though_plugins_here_go_on() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", requires=LINUX)
        await rig.until_state(1, T.RUNNING)
        await rig.pass_time(20.0)
        assert (await rig.task(1)).state is T.RUNNING
        assert (await rig.machine("m1")).task_id is None
        await rig.all_final()

    with_engine(test, machines=[spec("m1")], runner=ScriptedRunner(seconds=100.0))


# --- the plugins of this host look at what was collected ---


def test_plugins_here_look_at_dropped_files_and_their_verdicts_count() -> None:
    class Judges(ScriptedRunner):
        async def work(self, job, stop):  # type: ignore[no-untyped-def]
            self.runs = (MALICIOUS,) if job.subject else (CLEAN_RUN,)
            return await super().work(job, stop)

    async def test(rig: EngineRig) -> None:
        await rig.add("one", requires=LINUX)
        task = (await rig.all_final())[1]
        assert [(run.name, run.subject) for run in task.plugins] == [
            ("guest-run", ""),
            ("scripted", ""),
            ("scripted", "/tmp/loot.txt"),
        ]
        assert task.verdict == Verdict(Classification.MALICIOUS, 100, labels=("eicar",))
        assert rig.world.files[INBOX / rig.runner.jobs[-1].sample_name] == b"stolen"

    with_engine(test, machines=[spec("m1")], runner=Judges(), sample=DROPS)


def test_no_more_than_some_are_looked_at_and_that_is_said() -> None:
    async def test(rig: EngineRig) -> None:
        await rig.add("one", requires=LINUX)
        task = (await rig.all_final())[1]
        assert sum(bool(run.subject) for run in task.plugins) == looking.MOST_LOOKED_AT
        assert task.reason == "Finished. The plugins looked at 16 of 20 collected files."

    drops = tuple((f"file-{number:02}", b"x%d" % number) for number in range(20))
    with_engine(test, machines=[spec("m1")], sample=Program(seconds=1.0, drops=drops))


def test_looking_ends_when_its_time_is_over_and_takes_nothing_from_the_task() -> None:
    class SlowAtOthers(ScriptedRunner):
        async def work(self, job, stop):  # type: ignore[no-untyped-def]
            self.seconds = 1e6 if job.subject else 1.0
            return await super().work(job, stop)

    async def test(rig: EngineRig) -> None:
        await rig.add("one", requires=LINUX)
        task = (await rig.all_final(within_s=200.0))[1]
        assert task.state is T.COMPLETED
        assert task.reason == "Finished. The plugins looked at 0 of 1 collected files."

    with_engine(test, machines=[spec("m1")], runner=SlowAtOthers(), sample=DROPS)
