"""Batches in real processes: what a plugin that takes them sees, and what is left of one that breaks."""

from __future__ import annotations

import asyncio
import json
import textwrap
from pathlib import Path

import pytest

from malbox_tui.config.settings import PluginSettings
from malbox_tui.model.events import PluginProgress, PluginResultAvailable, PluginStarted, PluginStopped
from malbox_tui.model.report import PluginRun, PluginStatus
from malbox_tui.plugins import batch as batch_module
from malbox_tui.plugins import held
from tests.confine.rig import DEADLINE_S, Rig, Stop, rig, write_plugin
from tests.support.batches import Told, lay_out
from tests.support.virtual_time import settle_loop

pytestmark = pytest.mark.slow

COMPLETED, FAILED, CANCELED, TIMED_OUT = (
    PluginStatus.COMPLETED,
    PluginStatus.FAILED,
    PluginStatus.CANCELED,
    PluginStatus.TIMED_OUT,
)

HANG_IN_C = "__import__('re').match('(a+)+$', 'a' * 64 + 'b')"

SCRIPT = """
import os, sys, time
import malbox_plugin_sdk as malbox
ME = os.urandom(8).hex()
def push(ctx, name, content):
    ctx.results().push(malbox.PluginResult.bytes(name, content))
class Subject(malbox.Plugin):
    def on_task(self, ctx):
{alone}
    {asyncly}def on_batch(self, ctxs):
{together}
malbox.run(Subject())
"""

ALONE = "push(ctx, 'way', b'alone'); push(ctx, 'copy', ctx.task().sample_bytes()); push(ctx, 'process', ME.encode())"
TOGETHER = """
    for ctx in ctxs:
        push(ctx, 'way', b'together')
        push(ctx, 'copy', ctx.task().sample_bytes())
    """

RAW = """
import os, socket
from malbox_plugin_sdk.wire import Wire
wire = Wire(socket.socket(fileno=int(os.environ["MALBOX_WIRE_FD"])))
wire.receive()
wire.send({{"kind": "ready", "takes_batches": True}})
def result(number, name, content):
    wire.send({{"kind": "result_begin", "run": number, "name": name, "format": "bytes"}})
    wire.send({{"kind": "result_chunk", "run": number}}, content)
    wire.send({{"kind": "result_end", "run": number}})
def end(number, kind="done", **fields):
    wire.send({{"kind": kind, "run": number, **fields}})
def run(order):
    if order["kind"] == "run":
        result(order["run"], "way", b"alone")
    else:
        first, second = [member["run"] for member in order["members"]]
        {attack}
    end(order["run"])
while True:
    run(wire.receive()[0])
"""

BREACHES = {
    "has no word on its tasks": "pass",
    "has no word on one of its tasks": "end(first)",
    "ends in the middle of a result": (
        "wire.send({'kind': 'result_begin', 'run': first, 'name': 'way', 'format': 'bytes'}); end(first); end(second)"
    ),
    "fails one of its tasks": "end(first, 'failed', error='Odd'); end(second)",
    "fails": "end(first); end(second); end(order['run'], 'failed', error='Odd')",
    "says that it was canceled": "end(first); end(second); end(order['run'], 'canceled')",
    "sends what is no frame": "wire.send({'kind': 'surprise'})",
    "dies": "result(first, 'way', b'together'); end(first); os._exit(3)",
    "gives a bad report": "result(first, 'report', b'{}'); end(first); end(second)",
}


def write_batcher(root: Path, together: str = TOGETHER, alone: str = ALONE, extra: str = "", asyncly: str = "") -> None:
    alone, together = (textwrap.indent(textwrap.dedent(code).strip(), " " * 8) for code in (alone, together))
    write_plugin(root / "plugins", SCRIPT.format(alone=alone, together=together, asyncly=asyncly), extra=extra)


async def run_batch(subject: Rig, count: int = 3, **options: float) -> list[Told]:
    """What was found in so many samples, which hold their task's number."""
    bench = await subject.runner.acquire(subject.limits)
    told = lay_out(bench.inbox, {number: b"%d" % number for number in range(1, count + 1)})
    for each in told:
        each.timeout_s = options.get("timeout_s", 300.0)
    async with asyncio.timeout(DEADLINE_S):
        await bench.run_batch([each.member for each in told])
    await subject.runner.release(bench)
    return told


async def contents(subject: Rig, told: list[Told], name: str) -> list[bytes]:
    return [await subject.content(each.run, name) for each in told]


def names(run: PluginRun) -> list[str]:
    return [result.name for result in run.results]


async def test_a_plugin_that_takes_batches_gets_its_samples_together(tmp_path: Path) -> None:
    write_batcher(tmp_path)
    async with rig(tmp_path) as subject:
        for _ in range(2):
            told = await run_batch(subject)
            assert [each.run.status for each in told] == [COMPLETED] * 3
            assert await contents(subject, told, "way") == [b"together"] * 3
            assert await contents(subject, told, "copy") == [b"1", b"2", b"3"]
        (alone,) = await run_batch(subject, 1)
        assert await subject.content(alone.run, "way") == b"alone"


async def test_on_batch_may_be_async(tmp_path: Path) -> None:
    write_batcher(tmp_path, "import asyncio\nawait asyncio.sleep(0)\n" + textwrap.dedent(TOGETHER), asyncly="async ")
    async with rig(tmp_path) as subject:
        assert await contents(subject, await run_batch(subject), "way") == [b"together"] * 3


async def test_any_other_plugin_gets_them_one_by_one_in_one_process(tmp_path: Path) -> None:
    write_plugin(
        tmp_path / "plugins",
        """
        self.count = getattr(self, "count", 0) + 1
        ctx.results().push(malbox.PluginResult.json("count", self.count))
        """,
    )
    async with rig(tmp_path) as subject:
        told = await run_batch(subject)
        assert await contents(subject, told, "count") == [b"1", b"2", b"3"]


async def test_sequential_plugins_follow_the_others_with_the_whole_batch(tmp_path: Path) -> None:
    write_plugin(tmp_path / "plugins", "pass", "a-last", "sequential")
    write_plugin(tmp_path / "plugins", "pass", "b-first")
    async with rig(tmp_path) as subject:
        await run_batch(subject)
        order = [news.plugin for news in subject.news if isinstance(news, PluginStarted)]
    assert order == ["b-first"] * 3 + ["a-last"] * 3


async def test_two_hundred_and_fifty_six_samples_are_one_batch_and_more_are_more(tmp_path: Path) -> None:
    write_batcher(tmp_path, "for ctx in ctxs: push(ctx, 'size', b'%d' % len(ctxs)); push(ctx, 'copy', ctx.task().sample_bytes())")
    async with rig(tmp_path) as subject:
        told = await run_batch(subject, batch_module.MAX_BATCH)
        assert set(await contents(subject, told, "size")) == {b"256"}
        assert await contents(subject, told, "copy") == [b"%d" % number for number in range(1, 257)]
        assert await contents(subject, await run_batch(subject, 259), "size") == [b"256"] * 256 + [b"3"] * 3


async def test_results_of_the_same_name_may_come_interleaved(tmp_path: Path) -> None:
    attack = """
        for number in (first, second):
            wire.send({"kind": "result_begin", "run": number, "name": "same", "format": "bytes"})
        for number in (second, first, second, first):
            wire.send({"kind": "result_chunk", "run": number}, bytes([number % 256]) * 262144)
        for number in (first, second):
            wire.send({"kind": "result_end", "run": number})
        end(second); end(first)
    """
    write_plugin(tmp_path / "plugins", RAW.format(attack=textwrap.dedent(attack).strip().replace("\n", "\n        ")))
    async with rig(tmp_path) as subject:
        told = await run_batch(subject, 2)
        first, second = await contents(subject, told, "same")
    assert (len(first), len(second)) == (524288, 524288)
    assert (len(set(first)), len(set(second))) == (1, 1)
    assert first != second


# --- a batch that breaks ---


@pytest.mark.parametrize("breach", BREACHES)
async def test_a_process_that_breaks_the_rules_at_a_batch_gets_its_tasks_one_by_one(breach: str, tmp_path: Path) -> None:
    write_plugin(tmp_path / "plugins", RAW.format(attack=BREACHES[breach]))
    async with rig(tmp_path) as subject:
        told = await run_batch(subject, 2)
        assert [each.run.status for each in told] == [COMPLETED] * 2
        assert [names(each.run) for each in told] == [["way", "log"]] * 2
        assert await contents(subject, told, "way") == [b"alone"] * 2


@pytest.mark.parametrize(
    "breaking",
    [
        "raise ValueError('no')",
        "os._exit(3)",
        "held = [bytearray(2 ** 20) for _ in range(4000)]",
        "push(ctxs[0], 'big', bytes(2 ** 20 + 1))",
        "time.sleep(3600)",
        HANG_IN_C,
    ],
)
async def test_what_a_broken_batch_had_handed_over_is_gone_and_its_process_too(breaking: str, tmp_path: Path) -> None:
    write_batcher(
        tmp_path,
        f"""
        print('in', ME)
        for ctx in ctxs:
            push(ctx, 'way', b'together')
            push(ctx, 'extra', b'')
        {breaking}
        """,
        extra="analysis_timeout = 1\n",
    )
    async with rig(tmp_path, plugins=PluginSettings(max_result_bytes=2**20), memory_mb=256, cancel_grace_s=0.1) as subject:
        told = await run_batch(subject)
        assert [each.run.status for each in told] == [COMPLETED] * 3
        assert [names(each.run) for each in told] == [["way", "copy", "process", "log"]] * 3
        assert await contents(subject, told, "way") == [b"alone"] * 3
        (process,) = set(await contents(subject, told, "process"))
        logs = [log.decode() for log in await contents(subject, told, "log")]
    assert all("[printed while 3 tasks were analysed together]\nin " in log for log in logs)
    assert all("WARN  the batch of 3 tasks broke (" in log for log in logs)
    assert all(f"in {process.decode()}\n" not in log for log in logs)
    files = {path.name for path in (tmp_path / "results").rglob("*") if path.is_file()}
    assert files == {"way", "copy", "process", "log"}
    for kind in (PluginStarted, PluginStopped):
        assert sorted(news.task_id for news in subject.news if isinstance(news, kind)) == [1, 2, 3]
    available = [(news.task_id, news.result_name) for news in subject.news if isinstance(news, PluginResultAvailable)]
    assert len(available) == len(set(available)) == 9


async def test_half_of_the_shortest_time_is_what_a_batch_may_take(tmp_path: Path) -> None:
    write_batcher(tmp_path, HANG_IN_C)
    async with rig(tmp_path, cancel_grace_s=0.1) as subject:
        told = await run_batch(subject, timeout_s=1.0)
        assert await contents(subject, told, "way") == [b"alone"] * 3
        assert "broke (it took longer than 0.5 s)" in (await subject.content(told[0].run, "log")).decode()


async def test_a_sample_that_breaks_the_batch_fails_alone(tmp_path: Path) -> None:
    dies = "if ctx.task().sample_bytes() == b'2': os._exit(3)\n"
    write_batcher(tmp_path, "for ctx in ctxs: self.on_task(ctx)", dies + ALONE)
    async with rig(tmp_path) as subject:
        told = await run_batch(subject)
        assert [each.run.status for each in told] == [COMPLETED, FAILED, COMPLETED]
        assert names(told[1].run) == ["log"]
        processes = [await subject.content(told[index].run, "process") for index in (0, 2)]
        assert len(set(processes)) == 2, "after a death the next one has a process of its own"


async def test_a_name_that_the_store_refuses_sends_only_its_task_round_again(tmp_path: Path) -> None:
    write_batcher(tmp_path, "push(ctxs[1], '../evil', b'')\n" + textwrap.dedent(TOGETHER))
    async with rig(tmp_path) as subject:
        told = await run_batch(subject)
        assert await contents(subject, told, "way") == [b"together", b"alone", b"together"]


async def test_a_batch_that_finds_more_than_is_held_is_run_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held, "MAX_HELD_BYTES", 10_000)
    write_batcher(tmp_path, "for ctx in ctxs: push(ctx, 'big', bytes(4000))")
    async with rig(tmp_path) as subject:
        assert await contents(subject, await run_batch(subject, 2), "big") == [bytes(4000)] * 2
        assert await contents(subject, await run_batch(subject, 3), "way") == [b"alone"] * 3


async def test_a_plugin_that_is_not_ready_says_so_of_each_task(tmp_path: Path) -> None:
    write_plugin(
        tmp_path / "plugins",
        """
        import malbox_plugin_sdk as malbox
        class Broken(malbox.Plugin):
            def on_start(self, config):
                raise LookupError("the model is missing")
        malbox.run(Broken())
        """,
    )
    async with rig(tmp_path) as subject:
        told = await run_batch(subject)
    assert [each.run.status for each in told] == [FAILED] * 3
    assert all("the model is missing" in each.run.reason for each in told)


# --- what is said of single tasks ---


async def test_what_is_printed_goes_to_every_log_and_what_is_said_of_one_task_to_its_own(tmp_path: Path) -> None:
    write_batcher(
        tmp_path,
        """
        print("all of them")
        ctxs[1].warn("odd")
        ctxs[2].progress(0.5, "half")
        """,
    )
    async with rig(tmp_path) as subject:
        told = await run_batch(subject)
        logs = [log.decode() for log in await contents(subject, told, "log")]
        progress = [news.task_id for news in subject.news if isinstance(news, PluginProgress)]
    marked = "[printed while 3 tasks were analysed together]\nall of them\n[end of that]\n"
    assert logs == [marked, f"{marked}WARN  odd\n", marked]
    assert progress == [3]


async def test_a_silent_batch_has_no_log(tmp_path: Path) -> None:
    write_batcher(tmp_path)
    async with rig(tmp_path) as subject:
        assert [names(each.run) for each in await run_batch(subject)] == [["way", "copy"]] * 3


async def test_a_task_that_is_stopped_says_so_to_its_handler_and_what_it_still_sends_is_ignored(tmp_path: Path) -> None:
    write_batcher(
        tmp_path,
        """
        push(ctxs[0], 'before', b'')
        ctxs[1].progress(0.5, "waiting")
        while not ctxs[0].is_canceled:
            time.sleep(0.01)
        for ctx in ctxs:
            push(ctx, 'after', json.dumps([ctx.is_canceled for ctx in ctxs]).encode())
        """.replace("json", "__import__('json')"),
    )
    async with rig(tmp_path) as subject:
        bench = await subject.runner.acquire()
        told = lay_out(bench.inbox, {1: b"1", 2: b"2"})
        async with asyncio.TaskGroup() as group:
            running = group.create_task(bench.run_batch([each.member for each in told]))
            await until_progress(subject)
            told[0].stop.give("user")
            await told[0].until_told()
        assert running.done()
        assert [each.run.status for each in told] == [CANCELED, COMPLETED]
        assert [names(each.run) for each in told] == [["before"], ["after"]]
        assert json.loads(await subject.content(told[1].run, "after")) == [True, False]
        await subject.runner.release(bench)


async def test_a_batch_of_which_nothing_is_wanted_any_more_is_interrupted_and_the_process_kept(tmp_path: Path) -> None:
    write_batcher(tmp_path, "ctxs[0].progress(0.5, ME)\nwhile True: time.sleep(3600)")
    async with rig(tmp_path, cancel_grace_s=DEADLINE_S) as subject:
        await stop_all(subject)
        (process,) = {news.message for news in subject.news if isinstance(news, PluginProgress)}
        (alone,) = await run_batch(subject, 1)
        assert await subject.content(alone.run, "process") == process.encode()


async def test_one_that_hangs_in_c_is_killed_then(tmp_path: Path) -> None:
    write_batcher(tmp_path, f"ctxs[0].progress(0.5, ME)\n{HANG_IN_C}")
    async with rig(tmp_path, cancel_grace_s=0.1) as subject:
        await stop_all(subject)
        (process,) = {news.message for news in subject.news if isinstance(news, PluginProgress)}
        (alone,) = await run_batch(subject, 1)
        assert await subject.content(alone.run, "process") != process.encode()


async def test_stops_while_the_process_gets_ready_end_the_batch(tmp_path: Path) -> None:
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
        bench = await subject.runner.acquire()
        told = lay_out(bench.inbox, {1: b"1", 2: b"2"})
        async with asyncio.timeout(DEADLINE_S), asyncio.TaskGroup() as group:
            group.create_task(bench.run_batch([each.member for each in told]))
            await settle_loop()
            for each in told:
                each.stop.give("user")
                await each.until_told()
        assert {(each.run.status, each.run.reason) for each in told} == {(CANCELED, "it was not started")}
        assert [each.work for each in told] == [[], []]


# --- what a task is given at its end ---


@pytest.mark.parametrize(("reason", "kept"), [("timeout", ["partial"]), ("user", [])])
async def test_a_plugin_may_hand_over_what_it_has_when_its_time_is_over(reason: str, kept: list[str], tmp_path: Path) -> None:
    write_plugin(
        tmp_path / "plugins",
        """
        try:
            ctx.progress(0.5, "half")
            while True:
                time.sleep(3600)
        except malbox.TaskCanceled:
            time.sleep(0.5)
            ctx.results().push(malbox.PluginResult.bytes("partial", b"half of it"))
            raise
        """,
    )
    async with rig(tmp_path, cancel_grace_s=0.05, flush_grace_s=DEADLINE_S) as subject:
        run = await stopped_run(subject, reason)
        assert run.status is (TIMED_OUT if reason == "timeout" else CANCELED)
        # What confines it may have a last word of its own, when it is killed.
        assert [name for name in names(run) if name != "log"] == kept


@pytest.mark.parametrize("handler", ["except (asyncio.CancelledError, malbox.TaskCanceled):", "finally:"])
async def test_an_async_plugin_may_do_so_too(handler: str, tmp_path: Path) -> None:
    write_plugin(
        tmp_path / "plugins",
        f"""
        import asyncio
        import malbox_plugin_sdk as malbox
        class Subject(malbox.Plugin):
            async def on_task(self, ctx):
                try:
                    ctx.progress(0.5, "half")
                    await asyncio.sleep(3600)
                {handler}
                    ctx.results().push(malbox.PluginResult.bytes("partial", b"half of it"))
        malbox.run(Subject())
        """,
    )
    async with rig(tmp_path, cancel_grace_s=0.05, flush_grace_s=DEADLINE_S) as subject:
        run = await stopped_run(subject, "timeout")
        assert (run.status, names(run)) == (TIMED_OUT, ["partial"])


async def test_what_a_plugin_printed_before_it_was_killed_is_in_its_log(tmp_path: Path) -> None:
    write_plugin(tmp_path / "plugins", f"print('so far', flush=True)\nctx.progress(0.5, 'half')\n{HANG_IN_C}")
    async with rig(tmp_path, cancel_grace_s=0.05) as subject:
        run = await stopped_run(subject, "user")
        assert await subject.content(run, "log") == b"so far\n"


async def stopped_run(subject: Rig, reason: str) -> PluginRun:
    """The run of one task that is stopped after the plugin's first progress."""
    stop = Stop()
    async with asyncio.TaskGroup() as group:
        running = group.create_task(subject.run(b"sample", stop))
        await until_progress(subject)
        stop.give(reason)
    return running.result()


async def stop_all(subject: Rig) -> None:
    """A batch of two that is stopped after the plugin's first progress."""
    bench = await subject.runner.acquire()
    told = lay_out(bench.inbox, {1: b"1", 2: b"2"})
    async with asyncio.timeout(DEADLINE_S), asyncio.TaskGroup() as group:
        group.create_task(bench.run_batch([each.member for each in told]))
        await until_progress(subject)
        for each in told:
            each.stop.give("user")
    assert [each.run.status for each in told] == [CANCELED] * 2
    await subject.runner.release(bench)


async def until_progress(subject: Rig) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not any(isinstance(news, PluginProgress) for news in subject.news):
            await asyncio.sleep(0.01)  # noqa: TID251 - a poll with a deadline
