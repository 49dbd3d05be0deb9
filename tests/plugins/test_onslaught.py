"""What plugins send too much of, too late, or not at all: each harms its own result only, in a bounded time, and is told in words."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from malbox_tui.config.settings import Isolation, PluginSettings
from malbox_tui.model.events import PluginProgress, PluginStarted, PluginStopped
from malbox_tui.model.report import PluginStatus
from malbox_tui.plugins import seat
from tests.confine.rig import DEADLINE_S, Stop, rig, write_plugin
from tests.plugins.test_hostile_plugins import RAW

pytestmark = pytest.mark.slow

TWO_GIB = """
part = b"x" * 262144
ctx._run.send("result_begin", name="big", format="bytes")
for _ in range(2**31 // len(part)):
    ctx._run.send("result_chunk", part)
ctx._run.send("result_end")
"""
EVERY_FIELD = """
evil = "<script>alert(1)</script>\\x1b[2J[bold red]x[/]\\u202e\\x00\\n" + "x" * 300
report = malbox.ReportBuilder("subject", evil).display_name(evil).summary(evil).labels([evil])
report.verdict(malbox.Classification.Malicious, 99, malbox.Confidence.High)
report.indicator(malbox.Indicator(evil, evil, evil, evil)).ttp(malbox.Ttp(evil, evil, evil))
report.artifact(malbox.ArtifactRef(evil, evil, evil)).raw({evil: evil})
node = malbox.TreeNode(evil, [malbox.TreeNode(evil)], {evil: evil})
report.section(evil, evil, [
    malbox.Block.markdown(evil), malbox.Block.callout("error", evil), malbox.Block.heading(1, evil), malbox.Block.code(evil, evil),
    malbox.Block.kv([malbox.KvPair(evil, evil)]), malbox.Block.table([malbox.Column(evil, evil, evil)], [{evil: evil}]),
    malbox.Block.json({evil: evil}), malbox.Block.image(evil, evil), malbox.Block.download(evil, evil), malbox.Block.tree([node]),
    malbox.Block.timeline([malbox.TimelineEvent(evil, evil, evil, evil)]),
    malbox.Block.graph([malbox.GraphNode(evil, evil, evil)], [malbox.GraphEdge(evil, evil, evil)]),
])
ctx.warn(evil); ctx.progress(0.5, evil); print(evil)
ctx.results().push(report.build())
"""


async def test_a_result_of_two_gigabytes_is_cut_off_at_the_cap_and_nothing_of_it_is_kept(tmp_path: Path) -> None:
    write_plugin(tmp_path / "plugins", TWO_GIB)
    async with rig(tmp_path) as subject:
        run = await subject.run()
    assert (run.status, run.reason) == (PluginStatus.FAILED, f"the result big is larger than {64 * 2**20} bytes")
    assert run.results == ()
    assert not [path for path in (tmp_path / "results").rglob("*big*") if path.is_file()]


async def test_a_hundred_thousand_results_are_cut_off_at_the_cap_and_those_before_are_kept(tmp_path: Path) -> None:
    write_plugin(tmp_path / "plugins", "for n in range(100_000): ctx.results().push_bytes(f'r{n}', b'x')")
    async with rig(tmp_path, plugins=PluginSettings(max_results=100)) as subject:
        run = await subject.run()
    assert (run.status, run.reason) == (PluginStatus.FAILED, "it pushed more than 100 results")
    assert [(result.name, result.size_bytes, len(result.sha256)) for result in run.results] == [
        (f"r{n}", 1, 64) for n in range(100)
    ]


async def test_a_report_with_markup_in_every_field_is_kept_as_it_is_and_read_in_bounds(tmp_path: Path) -> None:
    write_plugin(tmp_path / "plugins", EVERY_FIELD)
    async with rig(tmp_path) as subject:
        run = await subject.run()
        report = json.loads(await subject.content(run, "report"))
    assert (run.status, run.reason) == (PluginStatus.COMPLETED, "")
    assert run.verdict is not None
    assert len(run.verdict.labels[0]) == 200
    assert report["sections"][0]["title"].startswith("<script>alert(1)</script>\x1b[2J[bold red]x[/]\u202e\x00\n")


async def test_ten_thousand_progress_reports_a_second_are_told_as_often_as_a_person_can_read(tmp_path: Path) -> None:
    write_plugin(tmp_path / "plugins", "for n in range(50_000): ctx.progress(n / 50_000, str(n))", "polite")
    write_plugin(tmp_path / "plugins", RAW.format(attack="[tell('progress', fraction=0.5) for _ in range(10_000)]; tell('done')"))
    async with rig(tmp_path) as subject:
        loop = asyncio.get_running_loop()
        began = loop.time()
        runs = (await subject.findings()).runs
        most = 40 * (loop.time() - began) + 10
        assert {run.status for run in runs} == {PluginStatus.COMPLETED}
        assert 2 <= sum(isinstance(told, PluginProgress) for told in subject.news) <= most


LATE = {
    "a result after its last word": "tell('done'); tell('result_begin', name='late', format='bytes'); tell('result_end')",
    "a second last word": "tell('done'); tell('done'); tell('failed', error='x')",
    "another run's result": (
        "wire.send({'kind': 'result_begin', 'run': number + 5, 'name': 'r', 'format': 'bytes'});"
        "wire.send({'kind': 'result_end', 'run': number + 5}); tell('done')"
    ),
}


@pytest.mark.parametrize("what", LATE)
async def test_what_comes_too_late_is_nobodys(what: str, tmp_path: Path) -> None:
    source = f"""
import os, socket
from malbox_plugin_sdk.wire import Wire
wire = Wire(socket.socket(fileno=int(os.environ["MALBOX_WIRE_FD"])))
wire.receive()
wire.send({{"kind": "ready"}})
def tell(kind, payload=b"", **fields):
    wire.send({{"kind": kind, "run": number, **fields}}, payload)
while True:
    header, _ = wire.receive()
    number = header["run"]
    tell("begun")
    {LATE[what]}
def run(): pass
"""
    write_plugin(tmp_path / "plugins", source)
    async with rig(tmp_path) as subject:
        runs = [await subject.run() for _ in range(5)]
    assert {(run.status, run.reason, run.results) for run in runs} == {(PluginStatus.COMPLETED, "", ())}


async def test_a_context_that_was_kept_sends_nothing_for_another_task(tmp_path: Path) -> None:
    write_plugin(
        tmp_path / "plugins",
        """
        import threading
        former = getattr(self, "former", None)
        if former is not None:
            try:
                former.results().push_bytes("stolen", b"x")
            except RuntimeError as error:
                ctx.warn(str(error))
        self.former = ctx
        """,
    )
    async with rig(tmp_path) as subject:
        await subject.run()
        run = await subject.run()
        log = await subject.content(run, "log")
    assert [result.name for result in run.results] == ["log"]
    assert b"no longer valid" in log


ENDINGS = {
    "exits at once": ("import os\nos._exit(0)\n# run(", "the process exited with status 0"),
    "dies by a signal in the middle of a result": (
        RAW.format(
            attack="tell('result_begin', name='r', format='bytes'); tell('result_chunk', b'x' * 262144); os.kill(os.getpid(), 9)"
        ),
        "the process was killed by SIGKILL",
    ),
    "never gets ready": ("import time\ntime.sleep(3600)\n# run(", "it was not ready within 1 s"),
    "sends half a frame and hangs": (
        RAW.format(attack="connection.sendall(struct.pack('!II', 100, 0) + b'half'); import time; time.sleep(3600)"),
        "it took longer than its own limit of 1 s",
    ),
    "forks and lets the child hold its pipes": (
        RAW.format(attack="import time; os.fork() or time.sleep(3600); os._exit(5)"),
        "the process exited with status 5",
    ),
}


@pytest.mark.parametrize("isolation", [Isolation.AUTO, Isolation.LIMITS])
@pytest.mark.parametrize("how", ENDINGS)
async def test_one_that_ends_or_hangs_harms_its_own_run_only(
    how: str, isolation: Isolation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seat, "READY_TIMEOUT_S", 1.0)
    source, reason = ENDINGS[how]
    write_plugin(tmp_path / "plugins", source, extra="analysis_timeout = 1\n")
    write_plugin(tmp_path / "plugins", "ctx.results().push_bytes('fine', b'')", "innocent")
    async with rig(tmp_path, isolation, cancel_grace_s=0.5) as subject:
        for _ in range(2):
            innocent, run = (await subject.findings()).runs
            assert run.status in (PluginStatus.FAILED, PluginStatus.TIMED_OUT)
            assert reason in run.reason
            assert [result.name for result in run.results if result.name != "log"] == []
            assert innocent.status is PluginStatus.COMPLETED
            assert [result.name for result in innocent.results] == ["fine"]


@pytest.mark.parametrize("isolation", [Isolation.AUTO, Isolation.LIMITS])
async def test_one_that_changes_its_own_manifest_is_what_it_was_until_plugins_are_read_again(
    isolation: Isolation, tmp_path: Path
) -> None:
    write_plugin(
        tmp_path / "plugins",
        """
        from pathlib import Path
        manifest = Path(__file__).with_name("plugin.toml")
        try:
            manifest.write_text(manifest.read_text().replace('"subject"', '"digests"').replace("1.2.3", "6.6.6"))
            manifest.with_name("evil.py").write_text("")
        except OSError:
            pass
        """,
    )
    async with rig(tmp_path, isolation) as subject:
        for _ in range(2):
            run = await subject.run()
            assert (run.name, run.version, run.status) == ("subject", "1.2.3", PluginStatus.COMPLETED)
        read = await subject.runner.reload()
        assert (read.changes == ()) is (isolation is Isolation.AUTO)
        assert [plugin.version for plugin in read.plugins] == ["1.2.3" if isolation is Isolation.AUTO else "6.6.6"]


async def test_two_exclusive_plugins_and_forty_tasks_are_never_two_at_once_and_nobody_starves(tmp_path: Path) -> None:
    for name, execution in (("alone-1", "exclusive"), ("alone-2", "exclusive"), ("beside", "parallel"), ("turn", "sequential")):
        write_plugin(tmp_path / "plugins", "pass", name, execution)
    places = asyncio.Semaphore(4)
    async with rig(tmp_path) as subject:

        async def one() -> None:
            async with places:
                assert {run.status for run in (await subject.findings()).runs} == {PluginStatus.COMPLETED}

        async with asyncio.timeout(4 * DEADLINE_S), asyncio.TaskGroup() as group:
            for _ in range(40):
                group.create_task(one())
        at_work: list[str] = []
        for told in subject.news:
            if isinstance(told, PluginStarted):
                assert told.plugin != "turn" or "turn" not in at_work
                at_work.append(told.plugin)
            elif isinstance(told, PluginStopped):
                at_work.remove(told.plugin)
            assert len(at_work) <= 1 or not {"alone-1", "alone-2"} & set(at_work)
        assert sum(isinstance(told, PluginStopped) for told in subject.news) == 160


async def test_a_task_that_waits_for_an_exclusive_plugin_of_another_can_be_stopped(tmp_path: Path) -> None:
    write_plugin(tmp_path / "plugins", "ctx.progress(0.1, 'begun'); time.sleep(3600)", "alone", "exclusive")
    async with rig(tmp_path) as subject:
        first, second = Stop(), Stop()
        async with asyncio.TaskGroup() as group:
            working = group.create_task(subject.run(b"first", first))
            while not any(isinstance(told, PluginProgress) for told in subject.news):
                await asyncio.sleep(0.01)  # noqa: TID251 - a poll that ends with the run
            waiting = group.create_task(subject.run(b"second", second))
            while subject.waits[-1:] != [True]:
                await asyncio.sleep(0.01)  # noqa: TID251 - a poll that ends with the run
            second.give("canceled by you")
            run = await waiting
            assert (run.status, run.reason) == (PluginStatus.CANCELED, "it was not started")
            first.give("canceled by you")
        assert working.result().status is PluginStatus.CANCELED
