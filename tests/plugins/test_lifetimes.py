"""How long a plugin's process lives: as its state says, as long as it is well, and no longer than its memory allows."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from pathlib import Path

import pytest

from malbox_tui.confine.endings import ConfinedProcessError
from malbox_tui.confine.process import ConfinedProcess
from malbox_tui.confine.work import Limits
from malbox_tui.model.report import PluginStatus
from malbox_tui.plugins import condition, health
from malbox_tui.plugins.size import Size
from malbox_tui.ports import PluginJob
from tests.confine.rig import DEADLINE_S, Rig, Stop, rig, write_plugin

pytestmark = pytest.mark.slow

COUNTS = """
import os, sys, time
import malbox_plugin_sdk as malbox
class Subject(malbox.Plugin):
    count = 0
    def on_task(self, ctx):
        self.count += 1
        ctx.results().push_json("count", str(self.count).encode())
    def on_stop(self):
        print("stopped")
malbox.run(Subject())
"""
"""Pushes how many tasks its process has had."""


def write_in_state(folder: Path, state: str, name: str = "subject", scope: str = "", execution: str = "parallel") -> None:
    write_plugin(folder, COUNTS, name, execution, scope)
    manifest = folder / name / "plugin.toml"
    manifest.write_text(manifest.read_text().replace('"persistent"', f'"{state}"'))


async def counts(subject: Rig, *task_types: str) -> dict[str, list[bytes]]:
    """What each plugin counted at tasks of these types, one after the other."""
    found: dict[str, list[bytes]] = {}
    for task_type in task_types:
        bench = await subject.runner.acquire()
        subject.tasks += 1
        (bench.inbox / "sample").write_bytes(b"sample")
        try:
            job = PluginJob(subject.tasks, f"token-{subject.tasks}", "sample", task_type=task_type)
            for run in (await bench.run(job, Stop())).runs:
                assert (run.status, run.reason) == (PluginStatus.COMPLETED, "")
                found.setdefault(run.name, []).append(await subject.content(run, "count"))
        finally:
            await subject.runner.release(bench)
    return found


@pytest.mark.parametrize(
    ("state", "scope", "counted"),
    [
        ("persistent", "", [b"1", b"2", b"3", b"4"]),
        ("ephemeral", "", [b"1", b"1", b"1", b"1"]),
        ("scoped", '[scope]\ntask_types = ["static"]\n', [b"1", b"2", b"1", b"1"]),
    ],
)
async def test_a_process_lives_as_long_as_its_state_says(state: str, scope: str, counted: list[bytes], tmp_path: Path) -> None:
    write_in_state(tmp_path / "plugins", state, scope=scope)
    async with rig(tmp_path) as subject:
        assert await counts(subject, "static", "static", "archive", "static") == {"subject": counted}


async def test_an_ephemeral_plugin_that_told_a_kind_before_the_run_is_fresh_for_the_run(tmp_path: Path) -> None:
    write_in_state(tmp_path / "plugins", "ephemeral", "file-type")
    async with rig(tmp_path) as subject:
        bench = await subject.runner.acquire()
        (bench.inbox / "sample").write_bytes(b"sample")
        assert await bench.identify("sample") is None
        await subject.runner.release(bench)
        assert await counts(subject, "static") == {"file-type": [b"1"]}


async def test_plugins_that_share_a_scope_begin_it_together(tmp_path: Path) -> None:
    write_in_state(tmp_path / "plugins", "scoped", "a", '[scope]\nplugins = ["b"]\ntask_types = ["static"]\n')
    write_in_state(tmp_path / "plugins", "scoped", "b", '[scope]\nplugins = ["a"]\ntask_types = ["static", "archive"]\n')
    write_in_state(tmp_path / "plugins", "scoped", "c", '[scope]\ntask_types = ["static", "archive"]\n')
    async with rig(tmp_path) as subject:
        found = await counts(subject, "static", "static", "archive", "static")
    assert found == {"a": [b"1", b"2", b"1", b"1"], "b": [b"1", b"2", b"1", b"1"], "c": [b"1", b"2", b"3", b"4"]}


async def test_an_ephemeral_plugin_cleans_up_after_each_task(tmp_path: Path) -> None:
    write_plugin(
        tmp_path / "plugins",
        """
        import os, time
        import malbox_plugin_sdk as malbox
        class Subject(malbox.Plugin):
            def on_task(self, ctx):
                self.sink = ctx.results()
                os.makedirs("/tmp/there", exist_ok=False)
        malbox.run(Subject())
        """,
    )
    manifest = tmp_path / "plugins" / "subject" / "plugin.toml"
    manifest.write_text(manifest.read_text().replace('"persistent"', '"ephemeral"'))
    async with rig(tmp_path) as subject:
        for _ in range(3):
            assert (await subject.run()).status is PluginStatus.COMPLETED


LEAKS = """
self.held = getattr(self, "held", [])
self.held.append(b"x" * 2**20)
ctx.results().push_json("pid", str(len(self.held)).encode())
"""


async def test_a_plugin_that_leaks_is_replaced_between_tasks_and_loses_none(tmp_path: Path) -> None:
    write_plugin(tmp_path / "plugins", LEAKS)
    async with rig(tmp_path, memory_mb=256) as subject:
        runs = [await subject.run() for _ in range(1000)]
        held = [int(await subject.content(run, "pid")) for run in runs]
    assert {(run.status, run.reason) for run in runs} == {(PluginStatus.COMPLETED, "")}
    assert 2 <= held.count(1) <= 40
    assert [after for before, after in pairwise(held) if after not in (1, before + 1)] == []


@pytest.mark.parametrize(
    ("now", "when_ready", "is_near"),
    [
        (Size(100, 100), Size(100, 100), False),
        (Size(900, 100), Size(100, 100), True),
        (Size(100, 900), Size(100, 100), True),
        (Size(900, 900), Size(890, 890), False),
        (Size(1000, 1000), Size(700, 700), True),
    ],
)
def test_a_plugin_is_replaced_for_what_it_has_grown_by_and_not_for_what_it_was(
    now: Size, when_ready: Size, is_near: bool
) -> None:
    assert now.is_near(Limits(memory_mb=1000, address_space_mb=1000), when_ready) is is_near


NEVER_READY = "import os\nprint('no such database')\nos._exit(3)\n# run("


async def test_a_plugin_that_crashes_again_and_again_is_given_up_and_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(condition, "MOST_CRASHES", 6)
    monkeypatch.setattr(condition, "FIRST_WAIT_S", 0.001)
    write_plugin(tmp_path / "plugins", NEVER_READY)
    write_plugin(tmp_path / "plugins", "pass", "innocent")
    async with rig(tmp_path) as subject:
        reasons = [(await subject.findings()).runs[1].reason for _ in range(8)]
        (trouble,) = subject.runner.troubles
        innocent = (await subject.findings()).runs[0]
    assert trouble.startswith(
        "The plugin subject was given up after 6 crashes in a row; the last: the process exited with status 3"
    )
    assert trouble.endswith(". `malbox-tui plugin reload` has it tried again at once.")
    assert reasons[0].startswith("the process exited with status 3")
    assert reasons[-1].startswith("it was given up after 6 crashes in a row; the last: the process exited with status 3")
    assert innocent.status is PluginStatus.COMPLETED


async def test_one_success_makes_up_for_crashes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(condition, "MOST_CRASHES", 3)
    monkeypatch.setattr(condition, "FIRST_WAIT_S", 0.001)
    write_plugin(tmp_path / "plugins", "if ctx.task().sample_bytes() == b'bad': os._exit(1)")
    async with rig(tmp_path) as subject:
        for sample in [b"bad", b"good"] * 5:
            run = await subject.run(sample)
            assert (run.status is PluginStatus.COMPLETED) is (sample == b"good")
        assert subject.runner.troubles == ()


async def test_starts_after_crashes_wait_longer_each_time_and_one_is_tried_much_later(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    loop = asyncio.get_running_loop()
    now = 0.0
    monkeypatch.setattr(loop, "time", lambda: now)
    subject = condition.Condition("subject")

    def wait_s() -> float:
        return subject._not_before - now

    for _ in range(condition.MOST_CRASHES - 1):
        subject.crashed("broken")
        waited.append(wait_s())
    assert waited == [0, 0.25, 0.5, 1, 2, 4, 8, 16, 30]
    subject.crashed("broken")
    with pytest.raises(condition.GivenUp):
        await subject.may_start()
    now = condition.TRY_AGAIN_S
    await subject.may_start()
    with pytest.raises(condition.GivenUp):
        await subject.may_start()
    subject.worked()
    assert subject.trouble == ""
    await subject.may_start()


ASKED = """
import os, time
import malbox_plugin_sdk as malbox
class Subject(malbox.Plugin):
    asked = 0
    def health_check(self):
        self.asked += 1
        if self.asked > 1:
            {health}
        return malbox.HealthStatus.Healthy()
    def on_task(self, ctx):
        ctx.results().push_json("asked", str(self.asked).encode())
malbox.run(Subject())
"""


async def checked(subject: Rig) -> None:
    """All idle benches, once."""
    async with asyncio.timeout(DEADLINE_S):
        await subject.runner.check_health()


async def test_idle_plugins_are_asked_how_they_are(tmp_path: Path) -> None:
    write_plugin(tmp_path / "plugins", ASKED.format(health="pass"))
    async with rig(tmp_path) as subject:
        assert await subject.content(await subject.run(), "asked") == b"1"
        await checked(subject)
        assert await subject.content(await subject.run(), "asked") == b"2"


@pytest.mark.parametrize(
    "unwell",
    [
        "time.sleep(3600)",
        "os._exit(1)",
        "return malbox.HealthStatus.Unhealthy('no database')",
        "raise ValueError('x')",
        "return 'fine'",
        "os.write(int(os.environ['MALBOX_WIRE_FD']), b'half'); time.sleep(3600)",
    ],
)
async def test_one_that_is_unwell_or_does_not_say_is_replaced(
    unwell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "ANSWER_TIMEOUT_S", 1.0)
    write_plugin(tmp_path / "plugins", ASKED.format(health=unwell))
    async with rig(tmp_path) as subject:
        await subject.run()
        await checked(subject)
        run = await subject.run()
        assert (run.status, run.reason) == (PluginStatus.COMPLETED, "")
        assert await subject.content(run, "asked") == b"1"


async def test_a_plugin_that_says_that_it_is_degraded_goes_on_and_its_results_say_so(tmp_path: Path) -> None:
    write_plugin(tmp_path / "plugins", ASKED.format(health="return malbox.HealthStatus.Degraded('database is old')"))
    async with rig(tmp_path) as subject:
        await subject.run()
        await checked(subject)
        run = await subject.run()
        assert await subject.content(run, "asked") == b"2"
    assert (run.status, run.reason) == (PluginStatus.COMPLETED, "degraded: database is old")


async def test_a_bench_that_is_asked_how_it_is_can_be_used_at_the_same_time(tmp_path: Path) -> None:
    write_plugin(tmp_path / "plugins", ASKED.format(health="time.sleep(0.2)"))
    async with rig(tmp_path) as subject:
        await subject.run()
        (bench,) = subject.runner._idle
        async with asyncio.TaskGroup() as group:
            group.create_task(checked(subject))
            while not bench._seats[0]._talking.locked():
                await asyncio.sleep(0)  # noqa: TID251 - one step of the loop
            run = group.create_task(subject.run())
        assert run.result().status is PluginStatus.COMPLETED
        assert await subject.content(run.result(), "asked") == b"2"


async def test_a_process_that_is_ended_while_it_gets_ready_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_in_state(tmp_path / "plugins", "persistent")
    async with rig(tmp_path) as subject:
        bench = await subject.runner.acquire()
        seat = next(seat for seat in bench._seats if seat.plugin.name == "subject")  # type: ignore[attr-defined]
        get_ready = seat._get_ready

        async def ended_by_the_way(process: ConfinedProcess) -> None:
            await get_ready(process)
            await seat.close()

        monkeypatch.setattr(seat, "_get_ready", ended_by_the_way)
        with pytest.raises(ConfinedProcessError, match="while it was getting ready"):
            await seat.ready_process()
        assert seat.process is None
