"""What the runner of host plugins does with processes and folders, beyond what every `PluginRunner` does."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from malbox_tui.config.settings import Isolation
from malbox_tui.model.errors import PluginUnavailable, StoreError
from malbox_tui.model.events import PluginResultAvailable, PluginStarted, PluginStopped
from malbox_tui.model.report import Classification, PluginStatus, Verdict
from malbox_tui.ports import PluginJob
from tests.confine.rig import DEADLINE_S, Stop, rig, write_plugin
from tests.support.virtual_time import settle_loop

pytestmark = pytest.mark.slow

BOTH = pytest.mark.parametrize("isolation", [Isolation.REQUIRED, Isolation.LIMITS])

JUDGE = """
    report = malbox.ReportBuilder("subject", "1.2.3").labels(["eicar"]).verdict(malbox.Classification.Malicious, score=90)
    ctx.results().push(malbox.PluginResult.bytes("size", str(len(ctx.task().sample_bytes())).encode()))
    ctx.results().push(report.build())
"""


@BOTH
async def test_a_run_gives_results_a_verdict_and_news(isolation: Isolation, tmp_path: Path) -> None:
    write_plugin(tmp_path / "plugins", JUDGE)
    async with rig(tmp_path, isolation) as subject:
        run = await subject.run(b"12345")
        assert (run.name, run.version, run.status, run.reason) == ("subject", "1.2.3", PluginStatus.COMPLETED, "")
        assert run.verdict == Verdict(Classification.MALICIOUS, 90, None, ("eicar",))
        assert [(result.name, result.format) for result in run.results] == [("size", "bytes"), ("report", "json")]
        assert await subject.content(run, "size") == b"5"
        assert [type(news) for news in subject.news] == [
            PluginStarted,
            PluginResultAvailable,
            PluginResultAvailable,
            PluginStopped,
        ]


async def test_processes_are_kept_between_tasks(tmp_path: Path) -> None:
    write_plugin(
        tmp_path / "plugins",
        """
        self.count = getattr(self, "count", 0) + 1
        ctx.results().push(malbox.PluginResult.json("count", self.count))
        """,
    )
    async with rig(tmp_path) as subject:
        counts = [await subject.content(await subject.run(), "count") for _ in range(3)]
    assert counts == [b"1", b"2", b"3"]


async def test_benches_are_not_shared_and_their_inbox_is_empty(tmp_path: Path) -> None:
    write_plugin(tmp_path / "plugins", "pass")
    async with rig(tmp_path) as subject:
        first, second = await subject.runner.acquire(), await subject.runner.acquire()
        assert first.inbox != second.inbox
        (first.inbox / "sample").write_bytes(b"x")
        await subject.runner.release(first)
        again = await subject.runner.acquire()
        assert again is first
        assert list(again.inbox.iterdir()) == []
        await subject.runner.release(again)
        await subject.runner.trim(1)
        assert not first.inbox.exists()
        assert second.inbox.exists()
        await subject.runner.trim(0)
        assert second.inbox.exists()


async def test_a_canceled_run_keeps_what_is_whole_and_its_process(tmp_path: Path) -> None:
    write_plugin(
        tmp_path / "plugins",
        """
        ctx.results().push(malbox.PluginResult.json("pid", os.getpid()))
        while ctx.task().sample_bytes() == b"wait":
            pass
        """,
    )
    async with rig(tmp_path, cancel_grace_s=DEADLINE_S) as subject:
        stop = Stop()
        async with asyncio.TaskGroup() as group:
            running = group.create_task(subject.run(b"wait", stop))
            async with asyncio.timeout(DEADLINE_S):
                while not any(isinstance(news, PluginResultAvailable) for news in subject.news):
                    await asyncio.sleep(0.01)  # noqa: TID251 - a poll with a deadline
            stop.give("canceled by you")
        canceled = running.result()
        assert canceled.status is PluginStatus.CANCELED
        after = await subject.run(b"go on")
        assert after.status is PluginStatus.COMPLETED
        assert await subject.content(canceled, "pid") == await subject.content(after, "pid")


async def test_a_stop_that_was_given_before_starts_nothing(tmp_path: Path) -> None:
    write_plugin(tmp_path / "plugins", "pass")
    async with rig(tmp_path) as subject:
        stop = Stop()
        stop.give("timeout")
        run = await subject.run(stop=stop)
    assert (run.status, run.reason) == (PluginStatus.TIMED_OUT, "it was not started")


async def test_a_stop_while_a_plugin_gets_ready_ends_it(tmp_path: Path) -> None:
    write_plugin(
        tmp_path / "plugins",
        """
        import time
        import malbox_plugin_sdk as malbox
        class Slow(malbox.Plugin):
            def on_start(self, config):
                while True:
                    time.sleep(1)
        malbox.run(Slow())
        """,
    )
    async with rig(tmp_path) as subject:
        stop = Stop()
        asyncio.get_running_loop().call_later(0.05, stop.give, "canceled by you")
        run = await subject.run(stop=stop)
    assert run.status is PluginStatus.CANCELED


async def test_sequential_plugins_follow_the_parallel_ones_one_at_a_time(tmp_path: Path) -> None:
    for name, execution in (("a-last", "sequential"), ("b-last", "sequential"), ("c-first", "parallel"), ("d-first", "parallel")):
        write_plugin(tmp_path / "plugins", "pass", name, execution)
    write_plugin(tmp_path / "plugins", "pass", "beside", "unrestricted")
    async with rig(tmp_path) as subject:
        findings = await subject.findings()
        order = [
            (type(news), news.plugin)
            for news in subject.news
            if isinstance(news, PluginStarted | PluginStopped) and news.plugin != "beside"
        ]
    assert {run.status for run in findings.runs} == {PluginStatus.COMPLETED}
    assert {name for _type, name in order[:4]} == {"c-first", "d-first"}
    assert order[4:] == [
        (PluginStarted, "a-last"),
        (PluginStopped, "a-last"),
        (PluginStarted, "b-last"),
        (PluginStopped, "b-last"),
    ]


async def test_leftovers_of_a_killed_engine_are_removed(tmp_path: Path) -> None:
    write_plugin(tmp_path / "plugins", "pass")
    stale = tmp_path / "scratch" / "bench-7" / "inbox"
    stale.mkdir(parents=True)
    (stale / "sample").write_bytes(b"left")
    async with rig(tmp_path) as subject:
        assert not stale.exists()
        assert (await subject.run()).status is PluginStatus.COMPLETED
        assert (tmp_path / "scratch").stat().st_mode & 0o777 == 0o700


async def test_leftovers_that_nobody_may_look_into_are_removed_and_nothing_that_a_link_leads_to(tmp_path: Path) -> None:
    write_plugin(tmp_path / "plugins", "pass")
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o750)
    (outside / "kept").touch()
    closed = tmp_path / "scratch" / "bench-1" / "closed"
    (closed / "inner").mkdir(parents=True)
    (closed / "inner" / "file").touch()
    (closed / "link").symlink_to(outside)
    (tmp_path / "scratch" / "link").symlink_to(outside)
    closed.chmod(0)
    async with rig(tmp_path):
        assert list((tmp_path / "scratch").iterdir()) == []
    assert (outside / "kept").exists()
    assert outside.stat().st_mode & 0o777 == 0o750


async def test_a_scratch_folder_that_is_a_link_is_refused_in_words(tmp_path: Path) -> None:
    write_plugin(tmp_path / "plugins", "pass")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "kept").touch()
    (tmp_path / "scratch").symlink_to(tmp_path / "outside")
    with pytest.raises(StoreError, match=r"scratch folder .*/scratch can't be emptied: it is a link"):
        async with rig(tmp_path):
            pass
    assert (tmp_path / "outside" / "kept").exists()


async def test_a_bench_whose_folder_cannot_be_made_is_said_in_words(tmp_path: Path) -> None:
    write_plugin(tmp_path / "plugins", "pass")
    async with rig(tmp_path) as subject:
        (tmp_path / "scratch" / "bench-1").touch()
        with pytest.raises(PluginUnavailable, match="its folder can't be made: File exists"):
            await subject.runner.acquire()
        assert (await subject.run()).status is PluginStatus.COMPLETED


async def test_a_trim_that_is_cut_short_leaves_no_folder(tmp_path: Path) -> None:
    write_plugin(tmp_path / "plugins", "pass")
    async with rig(tmp_path) as subject:
        await subject.run()
        async with asyncio.TaskGroup() as group:
            trimming = group.create_task(subject.runner.trim(0))
            await settle_loop(3)
            assert not trimming.done(), "its process was asked to stop, and is waited for"
            trimming.cancel()
        assert list((tmp_path / "scratch").iterdir()) == []


async def test_two_benches_work_at_the_same_time(tmp_path: Path) -> None:
    write_plugin(tmp_path / "plugins", "ctx.results().push(malbox.PluginResult.bytes('copy', ctx.task().sample_bytes()))")
    async with rig(tmp_path) as subject:
        benches = [await subject.runner.acquire() for _ in range(3)]
        for number, bench in enumerate(benches):
            (bench.inbox / "s").write_bytes(b"%d" % number)
        async with asyncio.TaskGroup() as group:
            runs = [group.create_task(bench.run(PluginJob(number, "t", "s"), Stop())) for number, bench in enumerate(benches)]
        contents = [await subject.content(run.result().runs[0], "copy") for run in runs]
    assert contents == [b"0", b"1", b"2"]


async def test_processes_that_a_killed_engine_left_are_ended(tmp_path: Path) -> None:
    write_plugin(tmp_path / "plugins", "pass")
    left = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(3600)"],
        env={"MALBOX_CONFINED": str(tmp_path / "scratch" / "bench-1" / "scratch-subject")},
    )
    try:
        async with rig(tmp_path):
            assert await asyncio.to_thread(left.wait) == -signal.SIGKILL
    finally:
        left.kill()
        left.wait()


async def test_what_a_manifest_says_of_results_goes_with_them(tmp_path: Path) -> None:
    extra = (
        '[results.table]\ndisplay_name = "The table"\nrender = "csv"\n[results.index]\nuser_visible = false\n'
        "[results.report]\ndescription = 'x'\n"
    )
    write_plugin(
        tmp_path / "plugins", "for name in ('table', 'index', 'other'): ctx.results().push_bytes(name, b'')", extra=extra
    )
    async with rig(tmp_path) as subject:
        table, index, other = (await subject.run()).results
    assert (table.shown_name, table.render, table.is_for_people) == ("The table: table", "csv", True)
    assert (index.shown_name, index.render, index.is_for_people) == ("index", "", False)
    assert (other.shown_name, other.is_for_people) == ("other", True)
