"""How confined processes end: with everything they started, whatever they do, and with the engine."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import psutil
import pytest

from malbox_tui.config.settings import Isolation
from malbox_tui.confine.ends import family_of
from malbox_tui.model.report import PluginStatus
from tests.confine.rig import DEADLINE_S, Stop, processes_with, rig, walls_of, write_plugin

pytestmark = pytest.mark.slow

BOTH = pytest.mark.parametrize("isolation", [Isolation.REQUIRED, Isolation.LIMITS])

DAEMON = """
    import subprocess, signal
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    code = "import os, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); os.setsid(); time.sleep(3600)"
    subprocess.Popen([sys.executable, "-c", code, {mark!r}], start_new_session=True)
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execv(sys.executable, [sys.executable, "-c", code, {mark!r}])
        os._exit(0)
    ctx.results().push(malbox.PluginResult.bytes("begun", b""))
    {work}
"""


async def stopped_when_begun(isolation: Isolation, tmp_path: Path, reason: str = "canceled by you") -> tuple[PluginStatus, str]:
    async with rig(tmp_path, isolation, cancel_grace_s=0.2) as subject:
        stop = Stop()
        async with asyncio.TaskGroup() as group:
            running = group.create_task(subject.run(stop=stop))
            async with asyncio.timeout(DEADLINE_S):
                while not any(type(news).__name__ == "PluginResultAvailable" for news in subject.news):
                    await asyncio.sleep(0.01)  # noqa: TID251 - a poll with a deadline
            stop.give(reason)
        run = running.result()
        assert [result.name for result in run.results if result.name != "log"] == ["begun"]
        return run.status, run.reason


@BOTH
async def test_daemons_of_a_plugin_that_hangs_in_c_are_gone_after_a_cancel(isolation: Isolation, tmp_path: Path) -> None:
    mark = f"mark-{uuid.uuid4()}"
    hang = "import re; re.match(r'(a+)+$', 'a' * 60 + 'b')"
    write_plugin(tmp_path / "plugins", DAEMON.format(mark=mark, work=hang))
    status, reason = await stopped_when_begun(isolation, tmp_path)
    assert status is PluginStatus.CANCELED
    assert reason == "stopped: canceled by you"
    assert processes_with(mark) == []


@BOTH
async def test_a_plugin_that_swallows_every_exception_is_killed_at_a_timeout(isolation: Isolation, tmp_path: Path) -> None:
    write_plugin(
        tmp_path / "plugins",
        """
        ctx.results().push(malbox.PluginResult.bytes("begun", b""))
        while True:
            try:
                time.sleep(1)
            except BaseException:
                pass
        """,
    )
    status, reason = await stopped_when_begun(isolation, tmp_path, "timeout")
    assert status is PluginStatus.TIMED_OUT
    assert reason == "the time limit of the task ended it"


@BOTH
async def test_a_cancelled_run_kills_at_once(isolation: Isolation, tmp_path: Path) -> None:
    mark = f"mark-{uuid.uuid4()}"
    write_plugin(tmp_path / "plugins", DAEMON.format(mark=mark, work="time.sleep(3600)"))
    async with rig(tmp_path, isolation) as subject:
        running = asyncio.get_running_loop().create_task(subject.run())
        async with asyncio.timeout(DEADLINE_S):
            while not processes_with(mark):
                await asyncio.sleep(0.01)  # noqa: TID251 - a poll with a deadline
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert processes_with(mark) == []


@BOTH
async def test_closing_leaves_no_process_and_no_folder(isolation: Isolation, tmp_path: Path) -> None:
    write_plugin(tmp_path / "plugins", "pass")
    async with rig(tmp_path, isolation) as subject:
        await subject.run()
        assert processes_with("malbox_plugin_sdk.bootstrap")
    assert list((tmp_path / "scratch").iterdir()) == []


ENGINE = """
import asyncio, sys
from pathlib import Path
from malbox_tui.config.settings import Isolation
from tests.confine.rig import rig
async def main():
    async with rig(Path(sys.argv[1]), Isolation(sys.argv[2])) as subject:
        await subject.run()
asyncio.run(main())
"""


@BOTH
async def test_a_killed_engine_leaves_no_process(isolation: Isolation, tmp_path: Path) -> None:
    await walls_of(isolation)
    mark = f"mark-{uuid.uuid4()}"
    daemon = f"import subprocess; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(3600)', {mark!r}])"
    write_plugin(
        tmp_path / "plugins",
        f"""
        {daemon if isolation is Isolation.REQUIRED else ""}
        while True:
            pass
        """,
    )
    seen = mark if isolation is Isolation.REQUIRED else str(tmp_path / "plugins" / "subject" / "main.py")
    arguments = [sys.executable, "-c", ENGINE, str(tmp_path), isolation.value]
    engine = subprocess.Popen(arguments, cwd=Path(__file__).parents[2])
    try:
        deadline = time.monotonic() + DEADLINE_S
        while not processes_with(seen):
            assert time.monotonic() < deadline
            assert engine.poll() is None
        engine.send_signal(signal.SIGKILL)
        engine.wait()
        while processes_with(seen):
            assert time.monotonic() < deadline
    finally:
        engine.kill()
        engine.wait()


def test_a_family_is_all_that_descends_from_a_process_and_those_that_nobody_waits_for() -> None:
    script = "import os, time\nif not os.fork(): os._exit(0)\nif os.fork(): time.sleep(60)\nif os.fork(): time.sleep(60)\ntime.sleep(9)"
    process = subprocess.Popen([sys.executable, "-c", script])
    try:
        deadline = time.monotonic() + DEADLINE_S
        while len(family := list(family_of(process.pid))) < 4 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert sorted(family) == sorted(
            [process.pid, *(each.pid for each in psutil.Process(process.pid).children(recursive=True))]
        )
        assert len(family) == 4
    finally:
        for pid in family:
            os.kill(pid, signal.SIGKILL)
        process.wait()
    assert list(family_of(process.pid)) == [process.pid]
