"""Plugins that crash, hang, flood or lie harm their own run only, and the next task finds them working."""

from __future__ import annotations

from pathlib import Path

import pytest

from malbox_tui.config.settings import PluginSettings
from malbox_tui.model.report import PluginStatus
from tests.confine.rig import rig, write_plugin

pytestmark = pytest.mark.slow

RAW = """
import os, socket, sys, json, struct
from malbox_plugin_sdk.wire import Wire
connection = socket.socket(fileno=int(os.environ["MALBOX_WIRE_FD"]))
wire = Wire(connection)
wire.receive()
wire.send({{"kind": "ready"}})
header, _ = wire.receive()
number = header["run"]
wire.send({{"kind": "begun", "run": number}})
def tell(kind, payload=b"", **fields):
    wire.send({{"kind": kind, "run": number, **fields}}, payload)
try:
    {attack}
    wire.receive()
except Exception:
    pass
def run(): pass
"""

FAILURES = {
    "raises": ("raise ValueError('no such header')", "ValueError: no such header"),
    "exits": ("sys.exit(3)", "SystemExit: 3"),
    "exits hard": ("os._exit(7)", "the process exited with status 7"),
    "dies by a signal": ("os.kill(os.getpid(), 11)", "the process was killed by SIGSEGV"),
    "needs too much memory": ("x = bytearray(2 ** 30)", "it reached its memory limit 256 MiB"),
    "names a result by a path": ("ctx.results().push_bytes('../../evil', b'')", "can't be the name of a result"),
    "names a result by nothing": ("ctx.results().push_bytes('', b'')", "can't be the name of a result"),
    "pushes too large a result": ("ctx.results().push_bytes('big', bytes(2 ** 21))", "is larger than 1048576 bytes"),
    "pushes too many results": (
        "for n in range(20): ctx.results().push_bytes(f'r{n}', b'')",
        "it pushed more than 8 results",
    ),
    "pushes a report that is none": ("ctx.results().push_json('report', b'[1, 2')", "its report is malformed"),
    "pushes a report in another encoding": (
        'ctx.results().push_json(\'report\', b\'{"plugin": {"id": "\\xff"}}\')',
        "its report is malformed",
    ),
    "pushes a deep report": (
        "ctx.results().push_json('report', b'{\"raw\":' + b'[' * 100000)",
        "its report is malformed",
    ),
    "reports as another plugin": (
        "ctx.results().push(malbox.ReportBuilder('yara-x', '1.0.0').build())",
        "its report claims to be by another plugin (yara-x)",
    ),
    "scores too high": (
        'ctx.results().push_json(\'report\', b\'{"plugin": {"id": "subject", "version": "1"},'
        ' "verdict": {"classification": "clean", "score": 1000}}\')',
        "a score of 1000",
    ),
}

ATTACKS = {
    "sends garbage": ("connection.sendall(os.urandom(100000))", ("a frame header of", "a frame payload of")),
    "claims a huge frame": ("connection.sendall(struct.pack('!II', 10, 2 ** 31))", ("a frame payload of 2147483648 bytes",)),
    "sends a header that is no JSON": ("connection.sendall(struct.pack('!II', 4, 0) + b'nope')", ("a frame that is not one",)),
    "sends an unknown frame": ("tell('surprise')", ("a frame that is not one",)),
    "sends half a frame": ("connection.sendall(struct.pack('!II', 100, 0)); os._exit(0)", ("exited with status 0",)),
    "closes the wire": ("connection.shutdown(2)", ("closed its wire", "exited with status 0")),
    "sends a chunk of nothing": ("tell('result_chunk', b'x')", ("content of a result that had not begun",)),
    "sends tiny chunks": (
        "tell('result_begin', name='r', format='bytes'); tell('result_chunk', b'x'); tell('result_chunk', b'x')",
        ("in pieces of the wrong size",),
    ),
    "ends in the middle of a result": (
        "tell('result_begin', name='r', format='bytes'); tell('done')",
        ("before its result r was whole",),
    ),
    "sends a progress of nothing": (
        'raw = b\'{"kind":"progress","run":1,"fraction":NaN}\'; connection.sendall(struct.pack(\'!II\', len(raw), 0) + raw)',
        ("a frame that is not one",),
    ),
    "floods with progress": ("[tell('progress', fraction=0.5) for _ in range(30000)]", ("more than 20000 progress reports",)),
    "goes on about old runs": (
        "[wire.send({'kind': 'done', 'run': old}) for old in range(-5000, 0)]",
        ("about tasks that are over",),
    ),
    "says that it was canceled": ("tell('canceled')", ("which nobody asked for",)),
}


def small() -> PluginSettings:
    return PluginSettings(max_result_bytes=2**20, max_results=8, max_output_bytes=4096)


@pytest.mark.parametrize("name", FAILURES)
async def test_a_plugin_that_fails_says_why_and_works_again(name: str, tmp_path: Path) -> None:
    code, reason = FAILURES[name]
    write_plugin(tmp_path / "plugins", f"if ctx.task().sample_bytes() == b'bad':\n    {code}")
    write_plugin(tmp_path / "plugins", "pass", "innocent")
    async with rig(tmp_path, plugins=small(), memory_mb=256) as subject:
        innocent, failed = (await subject.findings(b"bad")).runs
        assert failed.status is PluginStatus.FAILED
        assert reason in failed.reason
        assert len(failed.reason) <= 500
        assert innocent.status is PluginStatus.COMPLETED
        assert [run.status for run in (await subject.findings(b"good")).runs] == [PluginStatus.COMPLETED] * 2


@pytest.mark.parametrize("name", ATTACKS)
async def test_a_process_that_breaks_the_rules_of_the_wire_fails_its_run(name: str, tmp_path: Path) -> None:
    attack, reasons = ATTACKS[name]
    write_plugin(tmp_path / "plugins", RAW.format(attack=attack))
    async with rig(tmp_path, plugins=small()) as subject:
        for _ in range(2):
            run = await subject.run()
            assert run.status is PluginStatus.FAILED
            assert any(reason in run.reason for reason in reasons), run.reason


async def test_the_traceback_and_what_was_printed_are_the_log(tmp_path: Path) -> None:
    write_plugin(tmp_path / "plugins", "print('step one'); malbox.warn('odd'); ctx.warn('very odd'); raise OSError('broken')")
    async with rig(tmp_path) as subject:
        run = await subject.run()
        log = (await subject.content(run, "log")).decode()
    assert "step one\n" in log
    assert "WARN  odd\n" in log
    assert "WARN  very odd\n" in log
    assert "Traceback (most recent call last)" in log
    assert "OSError: broken" in log


async def test_a_flood_of_output_is_cut_and_marked(tmp_path: Path) -> None:
    write_plugin(tmp_path / "plugins", "for _ in range(2000): print('x' * 1000)")
    async with rig(tmp_path, plugins=small()) as subject:
        run = await subject.run()
        log = await subject.content(run, "log")
    assert run.status is PluginStatus.COMPLETED
    assert len(log) < 5000
    assert b"1997904 more bytes were cut here" in log


async def test_a_silent_plugin_has_no_log(tmp_path: Path) -> None:
    write_plugin(tmp_path / "plugins", "pass")
    async with rig(tmp_path) as subject:
        assert (await subject.run()).results == ()


async def test_a_plugin_that_is_not_ready_says_why(tmp_path: Path) -> None:
    write_plugin(
        tmp_path / "plugins",
        """
        import malbox_plugin_sdk as malbox
        class Broken(malbox.Plugin):
            def on_start(self, config):
                print("looking for it")
                raise LookupError("the model is missing")
        malbox.run(Broken())
        """,
    )
    write_plugin(
        tmp_path / "plugins",
        """
        import malbox_plugin_sdk as malbox
        class Ill(malbox.Plugin):
            def health_check(self):
                return malbox.HealthStatus.Unhealthy("no licence")
        malbox.run(Ill())
        """,
        "ill",
    )
    write_plugin(tmp_path / "plugins", "def run(: pass", "wrong")
    async with rig(tmp_path) as subject:
        ill, broken, wrong = (await subject.findings()).runs
        logs = {run.name: await subject.content(run, "log") for run in (broken, wrong)}
    assert "not ready: no licence" in ill.reason
    assert "not ready: LookupError: the model is missing" in broken.reason
    assert wrong.status is PluginStatus.FAILED
    assert wrong.reason == "the process exited with status 1: SyntaxError: invalid syntax"
    assert logs["subject"].startswith(b"looking for it\nTraceback (most recent call last):\n")
    assert b"on_start" in logs["subject"]
    assert b"def run(: pass" in logs["wrong"]


async def test_hostile_labels_are_cut(tmp_path: Path) -> None:
    write_plugin(
        tmp_path / "plugins",
        """
        labels = ["\\x1b[31m" + "x" * 5000] + [f"l{n}" for n in range(5000)]
        ctx.results().push(malbox.ReportBuilder("subject", "1").labels(labels).build())
        """,
    )
    async with rig(tmp_path) as subject:
        run = await subject.run()
    assert run.verdict is not None
    assert len(run.verdict.labels) == 256
    assert max(map(len, run.verdict.labels)) == 200


async def test_text_that_utf8_can_not_carry_is_refused(tmp_path: Path) -> None:
    label = '{"plugin": {"id": "subject", "version": "1"}, "verdict": {"classification": "unknown", "labels": ["\\\\ud800"]}}'
    write_plugin(tmp_path / "plugins", f"ctx.results().push_json('report', '{label}'.encode())")
    async with rig(tmp_path) as subject:
        run = await subject.run()
    assert run.verdict is None
    assert "malformed" in run.reason


async def test_a_large_report_is_read_and_a_larger_one_refused(tmp_path: Path) -> None:
    write_plugin(
        tmp_path / "plugins",
        """
        rows = [{"n": "x" * 1000}] * int(ctx.task().sample_bytes())
        block = malbox.Block.table([malbox.Column("n", "N")], rows)
        ctx.results().push(malbox.ReportBuilder("subject", "1").labels(["big"]).section("s", "S", [block]).build())
        """,
    )
    async with rig(tmp_path) as subject:
        large, larger = await subject.run(b"3000"), await subject.run(b"5000")
    assert large.verdict is not None
    assert large.verdict.labels == ("big",)
    assert larger.verdict is None
    assert larger.reason == "the result report is larger than 4194304 bytes"


async def test_a_limit_of_its_own_ends_a_plugin(tmp_path: Path) -> None:
    write_plugin(tmp_path / "plugins", "time.sleep(3600)", extra="analysis_timeout = 1\n")
    async with rig(tmp_path) as subject:
        run = await subject.run()
    assert (run.status, run.reason) == (PluginStatus.TIMED_OUT, "it took longer than its own limit of 1 s")


async def test_async_handlers_work_and_can_be_canceled(tmp_path: Path) -> None:
    write_plugin(
        tmp_path / "plugins",
        """
        import asyncio
        import malbox_plugin_sdk as malbox
        class Async(malbox.Plugin):
            async def on_start(self, config):
                await asyncio.sleep(0)
                self.ready = True
            async def health_check(self):
                return malbox.HealthStatus.Degraded("half")
            async def on_task(self, ctx):
                await asyncio.sleep(0)
                ctx.progress(1.0, "done")
                ctx.results().push(malbox.PluginResult.json("ready", self.ready))
        malbox.run(Async(), name="subject", version="1")
        """,
    )
    async with rig(tmp_path) as subject:
        run = await subject.run()
        assert await subject.content(run, "ready") == b"true"
