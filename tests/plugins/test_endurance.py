"""What plugins must not do, each alone and fifty times in a row: every run says what happened, the next one works, and the engine is as
it was: no more open files, threads and memory than before."""

from __future__ import annotations

import asyncio
import itertools
import os
import textwrap
import threading
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from malbox_tui.config.settings import Isolation
from malbox_tui.confine.hierarchies import Controller, find_hierarchies
from malbox_tui.model.events import PluginResultAvailable
from malbox_tui.model.limits import ResourceLimits
from malbox_tui.model.report import PluginRun, PluginStatus
from tests.confine.rig import DEADLINE_S, Rig, Stop, rig, write_plugin

pytestmark = pytest.mark.slow

IN_A_ROW = 50
MEMORY_MB = 16
"""How much larger the engine's memory may be afterwards: what an allocator keeps, not what fifty runs would leave."""

OBEDIENT = "exec(compile(ctx.task().sample_bytes(), 'sample', 'exec'), {'ctx': ctx, 'malbox': malbox})"
"""A plugin that does what the sample says."""


@dataclass(frozen=True)
class Attack:
    """What a plugin does, how its run ends, and what it says. `only_behind_walls`: nothing bounds it without them."""

    code: str
    status: PluginStatus = PluginStatus.COMPLETED
    reason: str = ""
    only_behind_walls: bool = False
    needs: Controller | None = None
    is_stopped: bool = False


ATTACKS = {
    "ignores SIGTERM and every exception": Attack(
        """
        import signal, time
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        ctx.results().push(malbox.PluginResult.bytes("begun", b""))
        while True:
            try:
                time.sleep(1)
            except BaseException:
                pass
        """,
        PluginStatus.CANCELED,
        "stopped: canceled by you",
        is_stopped=True,
    ),
    "forks a daemon out of its session": Attack(
        """
        import os, time
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                time.sleep(3600)
            os._exit(0)
        os.wait()
        """
    ),
    "leaves a daemon and dies": Attack(
        """
        import os, time
        if os.fork() == 0:
            os.setsid()
            time.sleep(3600)
        os._exit(3)
        """,
        PluginStatus.FAILED,
        "the process exited with status 3",
    ),
    "writes 500 MB to stdout": Attack(
        """
        import os
        piece = bytes(1_000_000)
        for _ in range(500):
            left = memoryview(piece)
            while left:
                left = left[os.write(1, left):]
        """
    ),
    "prints a line of 1 MB": Attack("print('x' * 1_000_000)"),
    "prints NULs and bytes that are no text": Attack(
        r"""
        import os
        os.write(1, b"\0\0\xff\xfe\x80\x1b[2J" * 1000)
        os.write(2, bytes(range(256)))
        """
    ),
    "closes what it prints to and lives on": Attack(
        "import os\nfor fd in (0, 1, 2):\n    try: os.close(fd)\n    except OSError: pass"
    ),
    "closes its wire and lives on": Attack(
        """
        import os, socket, time
        socket.socket(fileno=int(os.environ["MALBOX_WIRE_FD"])).shutdown(socket.SHUT_RDWR)
        time.sleep(3600)
        """,
        PluginStatus.FAILED,
        "the process closed its wire",
    ),
    "closes every file that it has and lives on": Attack(
        """
        import os, time
        ctx.results().push(malbox.PluginResult.bytes("begun", b""))
        os.closerange(0, 256)
        while True:
            try:
                time.sleep(3600)
            except BaseException:
                pass
        """,
        PluginStatus.CANCELED,
        "stopped: canceled by you",
        is_stopped=True,
    ),
    "takes memory without end": Attack(
        "held = [bytearray(2**20) for _ in range(100_000)]", PluginStatus.FAILED, "it reached its memory limit 256 MiB"
    ),
    "forks without end": Attack(
        """
        import os
        while True:
            try:
                os.fork()
            except OSError:
                os._exit(1)
        """,
        PluginStatus.FAILED,
        "it reached its process limit 64",
        only_behind_walls=True,
        needs=Controller.PIDS,
    ),
    "fills its scratch": Attack(
        """
        import os
        with open(f"{os.environ['TMPDIR']}/all", "wb") as file:
            while True:
                file.write(bytes(2**20))
        """,
        PluginStatus.FAILED,
        "it reached its disk limit 32 MiB",
        only_behind_walls=True,
    ),
    "leaves files that are hard to delete": Attack(
        """
        import os, tempfile
        here = os.open(tempfile.mkdtemp(), os.O_RDONLY)
        for name in (b"\\n", b"\\xff\\xfe", b"-rf", b" ", b"\\x1b[2J"):
            os.mkdir(name, 0, dir_fd=here)
            os.symlink("/", name + b"-link", dir_fd=here)
        for _ in range(300):
            os.mkdir(b"deeper" * 20, dir_fd=here)
            inner = os.open(b"deeper" * 20, os.O_RDONLY, dir_fd=here)
            os.chmod(here, 0)
            os.close(here)
            here = inner
        os.close(here)
        """
    ),
    "sends signals to its children": Attack(
        """
        import os, signal, time
        for number in (signal.SIGSTOP, signal.SIGSEGV, signal.SIGKILL, signal.SIGTERM):
            child = os.fork()
            if child == 0:
                os.setpgid(0, 0)
                time.sleep(3600)
            os.kill(child, number)
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        """
    ),
    "sends signals to all it can reach": Attack(
        """
        import contextlib, os, signal
        for process in (-1, 1, 0):
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)
        """,
        PluginStatus.FAILED,
        "the process was killed by SIGKILL",
        only_behind_walls=True,
    ),
}


ROWS = {"each in turn": list(ATTACKS.values())}
"""What is done fifty times in a row. With MALBOX_TUI_SOAK=1 also each alone, which takes minutes."""
if os.environ.get("MALBOX_TUI_SOAK", "") not in ("", "0"):
    ROWS |= {name: [attack] for name, attack in ATTACKS.items()}


PLACES = [
    (name, isolation)
    for name, attack in ATTACKS.items()
    for isolation in (Isolation.REQUIRED, Isolation.LIMITS)
    if isolation is Isolation.REQUIRED or not attack.only_behind_walls
]


def must_have(controller: Controller | None) -> None:
    there = {controller for hierarchy in find_hierarchies() for controller in hierarchy.controllers}
    if controller is not None and controller not in there:
        pytest.skip(f"needs a writable control group with the controller {controller}")


def limits(isolation: Isolation) -> ResourceLimits:
    return ResourceLimits(memory_mb=256, disk_mb=None if isolation is Isolation.LIMITS else 32)


async def attacked(subject: Rig, attack: Attack) -> PluginRun:
    sample = textwrap.dedent(attack.code).encode()
    if not attack.is_stopped:
        return await subject.run(sample)
    subject.news.clear()
    stop = Stop()
    async with asyncio.TaskGroup() as group:
        running = group.create_task(subject.run(sample, stop))
        async with asyncio.timeout(DEADLINE_S):
            while not any(isinstance(news, PluginResultAvailable) for news in subject.news):
                await asyncio.sleep(0.005)  # noqa: TID251 - a poll with a deadline
        stop.give("canceled by you")
    return running.result()


async def suffers_and_works_again(subject: Rig, attack: Attack) -> None:
    run = await attacked(subject, attack)
    assert (run.status, run.reason) == (attack.status, attack.reason)
    after = await subject.run(b"ctx.results().push(malbox.PluginResult.bytes('fine', b''))")
    assert (after.status, after.reason) == (PluginStatus.COMPLETED, "")
    assert [result.name for result in after.results if result.name != "log"] == ["fine"]


@pytest.mark.parametrize(("name", "isolation"), PLACES)
async def test_a_run_says_what_happened_and_the_next_one_works(name: str, isolation: Isolation, tmp_path: Path) -> None:
    attack = ATTACKS[name]
    must_have(attack.needs)
    write_plugin(tmp_path / "plugins", OBEDIENT)
    async with rig(tmp_path, isolation, cancel_grace_s=0.1, limits=limits(isolation)) as subject:
        await suffers_and_works_again(subject, attack)
    assert list((tmp_path / "scratch").iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS)
async def test_fifty_in_a_row_leave_the_engine_as_it_was(row: str, tmp_path: Path) -> None:
    attacks = ROWS[row]
    for attack in attacks:
        must_have(attack.needs)
    write_plugin(tmp_path / "plugins", OBEDIENT)
    engine = psutil.Process()
    async with rig(tmp_path, Isolation.REQUIRED, cancel_grace_s=0.05, limits=limits(Isolation.REQUIRED)) as subject:
        for attack in attacks[:3]:
            await suffers_and_works_again(subject, attack)
        await warm_threads()
        before = engine.num_fds(), threading.active_count(), engine.memory_info().rss
        for _, attack in zip(range(IN_A_ROW), itertools.cycle(attacks), strict=False):
            await suffers_and_works_again(subject, attack)
        files, threads, memory_bytes = engine.num_fds(), threading.active_count(), engine.memory_info().rss
    assert files <= before[0]
    assert threads <= before[1]
    assert memory_bytes - before[2] < MEMORY_MB * 1024 * 1024


async def warm_threads() -> None:
    """Let the loop's pool have all the threads that it may ever have."""
    pool_size, barrier_s = min(32, (psutil.cpu_count() or 1) + 4), DEADLINE_S
    together = threading.Barrier(pool_size)
    async with asyncio.TaskGroup() as group:
        for _ in range(pool_size):
            group.create_task(asyncio.to_thread(together.wait, barrier_s))
