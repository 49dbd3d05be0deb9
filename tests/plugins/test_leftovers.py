"""What a task leaves behind in a plugin's process is not the next one's to pay: no limit that it reaches, no crash, no company."""

from __future__ import annotations

import asyncio
import textwrap
from pathlib import Path

import pytest

from malbox_tui.config.settings import Isolation
from malbox_tui.confine.hierarchies import Controller
from malbox_tui.model.events import PluginResultAvailable, PluginStarted, PluginStopped
from malbox_tui.model.limits import ResourceLimits
from malbox_tui.model.report import PluginStatus
from tests.confine.rig import DEADLINE_S, Stop, processes_with, rig, write_plugin
from tests.plugins.test_batches import run_batch
from tests.plugins.test_endurance import OBEDIENT, must_have

pytestmark = pytest.mark.slow

COMPLETED, FAILED = PluginStatus.COMPLETED, PluginStatus.FAILED
FINE = "ctx.results().push(malbox.PluginResult.bytes('fine', b''))\n"

LEAVINGS = {
    "files": ("open('/tmp/left', 'wb').write(bytes(6 * 2**20))", "open('/tmp/own', 'wb').write(bytes(4 * 2**20))", None),
    "memory": ("malbox.left = b'x' * (80 * 2**20)", "own = b'x' * (80 * 2**20)", Controller.MEMORY),
    "children that nobody waits for": (
        """
        import os
        for _ in range(45):
            if not os.fork():
                os._exit(0)
        """,
        """
        import os
        for _ in range(30):
            child = os.fork()
            if not child:
                import time
                time.sleep(0.5)
                os._exit(0)
        """,
        Controller.PIDS,
    ),
    "a thread that kills": (
        """
        import os, signal, threading
        malbox.armed = threading.Event()
        def kill():
            malbox.armed.wait()
            os.kill(os.getpid(), signal.SIGKILL)
        threading.Thread(target=kill, daemon=True).start()
        """,
        """
        import time
        if hasattr(malbox, 'armed'):
            malbox.armed.set()
            time.sleep(60)
        """,
        None,
    ),
}

DAEMON = """
    import subprocess
    subprocess.Popen(['sleep', '{mark}'], start_new_session=True)
"""


def code(text: str) -> bytes:
    return (textwrap.dedent(text).strip() + "\n" + FINE).encode()


@pytest.mark.needs("bubblewrap")
@pytest.mark.parametrize("what", LEAVINGS)
async def test_what_a_task_leaves_is_not_the_next_ones_fault(what: str, tmp_path: Path) -> None:
    leaving, needing, controller = LEAVINGS[what]
    must_have(controller)
    write_plugin(tmp_path / "plugins", OBEDIENT)
    async with rig(tmp_path, Isolation.REQUIRED, limits=ResourceLimits(memory_mb=128, disk_mb=8)) as subject:
        first, second = await subject.run(code(leaving)), await subject.run(code(needing))
        assert [(run.status, run.reason) for run in (first, second)] == [(COMPLETED, "")] * 2
        assert "fine" in [result.name for result in second.results]
        told = [type(news) for news in subject.news if isinstance(news, PluginStarted | PluginStopped)]
        assert told == [PluginStarted, PluginStopped] * 2


@pytest.mark.needs("bubblewrap")
async def test_a_task_that_breaks_a_fresh_process_too_says_so_and_its_log_tells_of_both(tmp_path: Path) -> None:
    write_plugin(tmp_path / "plugins", OBEDIENT)
    async with rig(tmp_path, Isolation.REQUIRED) as subject:
        await subject.run(code(""))
        run = await subject.run(b"import os\nprint('here', flush=True)\nos._exit(3)")
        assert (run.status, run.reason) == (FAILED, "the process exited with status 3")
        log = (await subject.content(run, "log")).decode().splitlines()
    again = "WARN  in a process that had served other tasks: the process exited with status 3; once more, in a fresh one:"
    assert log == ["here", again, "here"]


@pytest.mark.needs("bubblewrap")
async def test_a_second_try_that_is_stopped_says_what_broke_the_first(tmp_path: Path) -> None:
    script = """
        import os, time
        import malbox_plugin_sdk as malbox
        class Subject(malbox.Plugin):
            served = 0
            def on_task(self, ctx):
                self.served += 1
                if ctx.task().sample_bytes() == b"bad":
                    if self.served > 1:
                        os._exit(3)
                    ctx.results().push(malbox.PluginResult.bytes("second", b""))
                    time.sleep(60)
        malbox.run(Subject())
    """
    write_plugin(tmp_path / "plugins", script)
    stop = Stop()
    async with rig(tmp_path, Isolation.REQUIRED) as subject, asyncio.TaskGroup() as group:
        await subject.run(b"good")
        running = group.create_task(subject.run(b"bad", stop))
        async with asyncio.timeout(DEADLINE_S):
            while not any(isinstance(news, PluginResultAvailable) for news in subject.news):
                await asyncio.sleep(0.005)  # noqa: TID251 - a poll with a deadline
        stop.give("timeout")
        run = await running
    assert (run.status, run.reason) == (
        PluginStatus.TIMED_OUT,
        "the time limit of the task ended it; its first try: the process exited with status 3",
    )


@pytest.mark.needs("bubblewrap")
@pytest.mark.parametrize("at_once", [False, True])
async def test_a_process_that_started_others_which_live_on_is_replaced(at_once: bool, tmp_path: Path) -> None:
    mark = f"36{at_once:d}0.25"
    script = f"""
        import os, sys, time
        import malbox_plugin_sdk as malbox
        class Subject(malbox.Plugin):
            def on_task(self, ctx):
                {OBEDIENT}
            def on_batch(self, ctxs):
                {DAEMON.format(mark=mark).strip().replace("    ", "                ")}
        malbox.run(Subject())
    """
    write_plugin(tmp_path / "plugins", script)
    async with rig(tmp_path, Isolation.REQUIRED) as subject:
        if at_once:
            told = await run_batch(subject)
            assert [each.run.status for each in told] == [COMPLETED] * 3
        else:
            assert (await subject.run(code(DAEMON.format(mark=mark)))).status is COMPLETED
        assert processes_with(f"sleep {mark}") == []
        assert (await subject.run(code(""))).status is COMPLETED


@pytest.mark.needs("bubblewrap")
async def test_what_a_plugin_starts_before_it_is_ready_stays_with_it(tmp_path: Path) -> None:
    script = """
        import os, subprocess
        import malbox_plugin_sdk as malbox
        class Subject(malbox.Plugin):
            def on_start(self, config):
                self.helper = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
            def on_task(self, ctx):
                ctx.results().push(malbox.PluginResult.bytes("process", b"%d" % self.helper.pid + ME))
        ME = os.urandom(8)
        malbox.run(Subject())
    """
    write_plugin(tmp_path / "plugins", script)
    async with rig(tmp_path, Isolation.REQUIRED) as subject:
        runs = [await subject.run() for _ in range(2)]
        first, second = [await subject.content(run, "process") for run in runs]
    assert first == second
