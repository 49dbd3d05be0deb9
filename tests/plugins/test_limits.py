"""Resource limits of a worker group: each has effect, a run that reaches one says which, and what a host can't enforce is refused."""

from __future__ import annotations

import json
import os
import re
import textwrap
from pathlib import Path

import pytest

from malbox_tui.config.settings import Isolation
from malbox_tui.confine.hierarchies import Controller, find_hierarchies
from malbox_tui.model.errors import ConfinementUnavailable
from malbox_tui.model.limits import ResourceLimits
from malbox_tui.model.report import PluginStatus
from malbox_tui.plugins import runner as runner_module
from tests.confine.rig import Rig, rig, write_plugin

pytestmark = pytest.mark.slow

BOTH = pytest.mark.parametrize("isolation", [Isolation.REQUIRED, Isolation.LIMITS])

FAMILY = """
    for _ in range(4):
        if os.fork() == 0:
            held = b"x" * (60 * 2**20)
            time.sleep(3600)
    killed = os.wait()
    raise ChildProcessError(killed)
"""
SPAWNS_A_HOG = """
    import subprocess
    hog = "held = [bytearray(2**20) for _ in range(4000)]"
    print(subprocess.call([sys.executable, "-c", hog], stderr=subprocess.DEVNULL))
"""
WRITES_BIT_BY_BIT = """
    for number in range(64):
        with open(f"/tmp/{number}", "wb") as file:
            file.write(bytes(2**20))
"""
FILLS_AND_SWALLOWS = """
    try:
        with open("/tmp/all", "ab", buffering=0) as file:
            while True:
                file.write(bytes(65536))
    except OSError:
        ctx.results().push(malbox.PluginResult.bytes("swallowed", b""))
"""
HOLDS_A_MAP = """
    import mmap
    with open("/tmp/map", "wb") as file:
        file.truncate(2**26)
"""
FORKS = """
    while True:
        if os.fork() == 0:
            time.sleep(3600)
"""
STARTS_THREADS = """
    import threading
    threading.stack_size(65536)
    while True:
        threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()
"""

HITS: dict[str, tuple[str, ResourceLimits, str, PluginStatus, Controller | None]] = {
    "one process takes memory without end": (
        "held = [bytearray(2**20) for _ in range(4000)]",
        ResourceLimits(memory_mb=128),
        "it reached its memory limit 128 MiB",
        PluginStatus.FAILED,
        None,
    ),
    "its processes together take too much memory": (
        FAMILY,
        ResourceLimits(memory_mb=128),
        "it reached its memory limit 128 MiB",
        PluginStatus.FAILED,
        Controller.MEMORY,
    ),
    "one that it started takes too much memory": (
        SPAWNS_A_HOG,
        ResourceLimits(memory_mb=128),
        "degraded: it reached its memory limit 128 MiB",
        PluginStatus.COMPLETED,
        Controller.MEMORY,
    ),
    "it asks for more memory than any process may have": (
        "bytearray(2**34)",
        ResourceLimits(memory_mb=128),
        "it reached its address space limit 1024 MiB",
        PluginStatus.FAILED,
        Controller.MEMORY,
    ),
    "it fills its scratch with small files": (
        WRITES_BIT_BY_BIT,
        ResourceLimits(disk_mb=8),
        "it reached its disk limit 8 MiB",
        PluginStatus.FAILED,
        None,
    ),
    "it fills its scratch and swallows the error": (
        FILLS_AND_SWALLOWS,
        ResourceLimits(disk_mb=8),
        "degraded: it reached its disk limit 8 MiB",
        PluginStatus.COMPLETED,
        None,
    ),
    "it makes a file that is too large": (
        HOLDS_A_MAP,
        ResourceLimits(disk_mb=8),
        "it reached its disk limit 8 MiB",
        PluginStatus.FAILED,
        None,
    ),
    "it forks without end": (
        FORKS,
        ResourceLimits(memory_mb=1024),
        "it reached its process limit 64",
        PluginStatus.FAILED,
        Controller.PIDS,
    ),
    "it starts threads without end": (
        STARTS_THREADS,
        ResourceLimits(memory_mb=1024),
        "it reached its process limit 64",
        PluginStatus.FAILED,
        Controller.PIDS,
    ),
}


def needs_groups(controller: Controller | None) -> None:
    there = {found for hierarchy in find_hierarchies() for found in hierarchy.controllers}
    if controller is not None and controller not in there:
        pytest.skip(f"needs a writable control group with the controller {controller}")


def without_groups(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(runner_module, "find_hierarchies", tuple)


async def hits_and_works_again(subject: Rig, reason: str, status: PluginStatus) -> None:
    for _ in range(2):
        run = await subject.run(b"bad")
        assert (run.status, run.reason) == (status, reason)
        after = await subject.run(b"good")
        assert (after.status, after.reason) == (PluginStatus.COMPLETED, "")


def write_subject(folder: Path, code: str) -> None:
    body = textwrap.indent(textwrap.dedent(code).strip(), "    ")
    write_plugin(folder, f"if ctx.task().sample_bytes() == b'bad':\n{body}")


@pytest.mark.needs("bubblewrap")
@pytest.mark.parametrize("name", HITS)
async def test_a_limit_that_hits_is_the_reason_and_the_next_task_runs(name: str, tmp_path: Path) -> None:
    code, limits, reason, status, controller = HITS[name]
    needs_groups(controller)
    write_subject(tmp_path / "plugins", code)
    async with rig(tmp_path, Isolation.REQUIRED, limits=limits) as subject:
        await hits_and_works_again(subject, reason, status)


@BOTH
async def test_without_control_groups_memory_is_bounded_for_each_process(
    isolation: Isolation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_groups(monkeypatch)
    write_subject(tmp_path / "plugins", "held = [bytearray(2**20) for _ in range(4000)]")
    async with rig(tmp_path, isolation, limits=ResourceLimits(memory_mb=128)) as subject:
        await hits_and_works_again(subject, "it reached its memory limit 128 MiB", PluginStatus.FAILED)


async def test_limits_hold_without_a_sandbox_where_there_are_control_groups(tmp_path: Path) -> None:
    needs_groups(Controller.MEMORY)
    write_subject(tmp_path / "plugins", FAMILY)
    async with rig(tmp_path, Isolation.LIMITS, limits=ResourceLimits(memory_mb=128)) as subject:
        await hits_and_works_again(subject, "it reached its memory limit 128 MiB", PluginStatus.FAILED)


async def test_the_plugins_of_a_task_share_their_cores_by_quota(tmp_path: Path) -> None:
    needs_groups(Controller.CPU)
    write_plugin(tmp_path / "plugins", "end = time.monotonic() + 1\nwhile time.monotonic() < end: pass")
    async with rig(tmp_path, limits=ResourceLimits(cpu_cores=0.25)) as subject:
        await subject.run()
        (cpu,) = [parent for hierarchy, parent in subject.runner._groups._parents if Controller.CPU in hierarchy.controllers]
        throttled = re.search(r"nr_throttled (\d+)", (cpu / "bench-1" / "cpu.stat").read_text())
    assert throttled is not None
    assert int(throttled[1]) > 0


async def test_without_control_groups_benches_get_whole_cores_in_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_groups(monkeypatch)
    source = "ctx.results().push(malbox.PluginResult.json('cores', sorted(os.sched_getaffinity(0))))"
    write_plugin(tmp_path / "plugins", source)
    there = sorted(os.sched_getaffinity(0))
    async with rig(tmp_path, limits=ResourceLimits(cpu_cores=1)) as subject:
        kept = await subject.runner.acquire(subject.limits)
        cores = [json.loads(await subject.content(await subject.run(), "cores"))]
        again = await subject.runner.acquire(subject.limits)
        cores.append(json.loads(await subject.content(await subject.run(), "cores")))
        await subject.runner.release(kept)
        await subject.runner.release(again)
    assert [len(each) for each in cores] == [1, 1]
    assert set(cores[0] + cores[1]) == set(there[:2])


REFUSED = {
    "cpu_cores": (
        ResourceLimits(cpu_cores=0.5),
        Isolation.AUTO,
        "cpu_cores of the group limited ([workers.resource_limits]) can't be enforced here: a part of a core takes a quota, and no "
        "control group with the controller cpu can be made here. To do: ask for whole cores, or give the engine a control group "
        "of its own with the controller cpu (systemd: Delegate=yes); or write best_effort = true there to go without.",
    ),
    "disk_mb": (
        ResourceLimits(disk_mb=64),
        Isolation.LIMITS,
        "disk_mb of the group limited ([workers.resource_limits]) can't be enforced here: without bubblewrap only the size of each "
        'single file can be bounded. To do: let plugins be isolated by bubblewrap (make system-deps, as root; isolation = "auto"); or '
        "write best_effort = true there to go without.",
    ),
    "network_kbps": (
        ResourceLimits(network_kbps=0),
        Isolation.LIMITS,
        "network_kbps of the group limited ([workers.resource_limits]) can't be enforced here: without bubblewrap plugins can reach "
        'the host\'s network. To do: let plugins be isolated by bubblewrap (make system-deps, as root; isolation = "auto"); or '
        "write best_effort = true there to go without.",
    ),
}


@pytest.mark.parametrize("key", REFUSED)
async def test_what_a_host_cant_enforce_is_refused_or_shown(key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_groups(monkeypatch)
    limits, isolation, problem = REFUSED[key]
    write_plugin(tmp_path / "plugins", "pass")
    with pytest.raises(ConfinementUnavailable, match=re.escape(problem)):
        async with rig(tmp_path, isolation, limits=limits):
            pass
    waived = ResourceLimits(**{key: getattr(limits, key)}, best_effort=True)
    async with rig(tmp_path, isolation, limits=waived) as subject:
        assert subject.runner.isolation.endswith(f"; not enforced: {key} of the group limited")
        assert (await subject.run()).status is PluginStatus.COMPLETED


async def test_closing_leaves_no_control_group(tmp_path: Path) -> None:
    needs_groups(Controller.MEMORY)
    write_plugin(tmp_path / "plugins", "pass")
    async with rig(tmp_path) as subject:
        await subject.run()
        parents = [parent for _hierarchy, parent in subject.runner._groups._parents]
        assert all((parent / "bench-1").exists() for parent in parents)
        await subject.runner.trim(0)
        assert not any((parent / "bench-1").exists() for parent in parents)
        await subject.run()
    assert not any(parent.exists() for parent in parents)
