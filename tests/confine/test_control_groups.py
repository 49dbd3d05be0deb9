"""Control groups of this host: they bound whole process trees, count what hits, and leave nothing behind."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from malbox_tui.confine.control_groups import BenchGroups, ControlGroups, Strikes, remove_leftovers
from malbox_tui.confine.hierarchies import NAME_PREFIX, Controller, Hierarchy, find_hierarchies

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
DEADLINE_S = 30.0

SEVERAL = """
import os, sys, time
for _ in range(int(sys.argv[1])):
    if os.fork() == 0:
        os.setsid()
        held = bytearray(int(sys.argv[2]) * 2**20)
        time.sleep(3600)
"""


@pytest.fixture(scope="module")
def hierarchies() -> tuple[Hierarchy, ...]:
    found = find_hierarchies()
    if not found:
        pytest.skip("needs a writable control group with controllers")
    return found


@pytest.fixture
def groups(hierarchies: tuple[Hierarchy, ...]) -> Iterator[ControlGroups]:
    made = ControlGroups(hierarchies)
    yield made
    made.remove()
    assert parents(hierarchies, made) == []


@pytest.fixture
def bench(groups: ControlGroups) -> BenchGroups:
    made = groups.for_bench("bench-1", None)
    made.make()
    return made


def parents(hierarchies: tuple[Hierarchy, ...], groups: ControlGroups) -> list[Path]:
    return [parent for _hierarchy, parent in groups._parents if parent.exists()]


def wants(groups: ControlGroups, controller: Controller) -> None:
    if controller not in groups.controllers:
        pytest.skip(f"needs a writable control group with the controller {controller}")


def start(entering: tuple[str, ...], code: str, *arguments: object) -> subprocess.Popen[bytes]:
    command = [*entering, sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_memory_is_bounded_for_all_processes_together_and_the_kill_is_counted(groups: ControlGroups, bench: BenchGroups) -> None:
    wants(groups, Controller.MEMORY)
    limited = bench.for_process("subject", memory_mb=128, processes=64)
    with start(limited.entering, SEVERAL, 4, 60):
        until(lambda: limited.strikes().memory)
        assert limited.strikes().processes == 0
        limited.remove()


def test_one_within_its_limits_strikes_nothing(bench: BenchGroups) -> None:
    limited = bench.for_process("subject", memory_mb=128, processes=64)
    with start(limited.entering, "print('done')") as process:
        assert process.communicate()[0] == b"done\n"
    assert limited.strikes() == Strikes()


def test_processes_and_threads_are_counted(groups: ControlGroups, bench: BenchGroups) -> None:
    wants(groups, Controller.PIDS)
    limited = bench.for_process("subject", memory_mb=1024, processes=8)
    with start(limited.entering, SEVERAL, 50, 0) as process:
        process.wait()
        assert limited.strikes() == Strikes(processes=1)
        limited.remove()
        assert process.stdout is not None
        assert b"Resource temporarily unavailable" in process.stdout.read()


def test_processor_time_is_bounded_for_a_whole_bench(groups: ControlGroups) -> None:
    wants(groups, Controller.CPU)
    bench = groups.for_bench("bench-2", 0.2)
    bench.make()
    busy = "import time\nend = time.monotonic() + 1\nwhile time.monotonic() < end: pass"
    limited = [bench.for_process("subject", 128, 64) for _ in range(2)]
    for process in [start(one.entering, busy) for one in limited]:
        process.communicate()
    (cpu,) = [path for hierarchy, path in bench._groups if Controller.CPU in hierarchy.controllers]
    statistics = dict(line.split() for line in (cpu / "cpu.stat").read_text().splitlines())
    assert int(statistics["nr_throttled"]) > 0


BOMB = """
import os, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
while True:
    try:
        os.fork()
        os.setsid()
    except OSError:
        pass
"""


def test_removing_ends_daemons_and_forks(groups: ControlGroups, bench: BenchGroups) -> None:
    limited = bench.for_process("subject", 1024, 64)
    with start(limited.entering, BOMB):
        until(lambda: limited.strikes().processes)
        limited.remove()
    assert limited.strikes() == Strikes()
    limited.remove()


LEAVE = """
import os, subprocess, sys
from malbox_tui.confine.control_groups import ControlGroups
from malbox_tui.confine.hierarchies import find_hierarchies
groups = ControlGroups(find_hierarchies())
bench = groups.for_bench("bench-1", 0.5)
bench.make()
limited = bench.for_process("subject", 128, 64)
left = subprocess.Popen([*limited.entering, "sleep", "3600"], stdout=subprocess.DEVNULL)
print(left.pid, *[parent for _, parent in groups._parents], flush=True)
sys.stdin.read()
"""


def test_what_a_killed_engine_left_is_removed_and_nothing_of_a_living_one_or_of_others(
    hierarchies: tuple[Hierarchy, ...],
) -> None:
    foreign = [hierarchy.base / f"{NAME_PREFIX}of-somebody" for hierarchy in hierarchies]
    for path in foreign:
        path.mkdir()
    command = [sys.executable, "-c", LEAVE]
    try:
        with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as engine:
            assert engine.stdout is not None
            pid, *made = engine.stdout.readline().decode().split()
            remove_leftovers(hierarchies)
            assert all(Path(path).exists() for path in made)
            assert psutil.pid_exists(int(pid))
            engine.kill()
            engine.wait()
        remove_leftovers(hierarchies)
        assert not any(Path(path).exists() for path in made)
        until(lambda: not psutil.pid_exists(int(pid)) or psutil.Process(int(pid)).status() == psutil.STATUS_ZOMBIE)
        assert all(path.exists() for path in foreign)
    finally:
        for path in foreign:
            path.rmdir()


NOBODY = """
import os
from malbox_tui.confine.hierarchies import find_hierarchies
os.setgroups([]), os.setresgid(65534, 65534, 65534), os.setresuid(65534, 65534, 65534)
print(find_hierarchies())
"""


def test_a_user_who_may_make_none_finds_none(tmp_path: Path) -> None:
    if psutil.Process().uids().real:
        pytest.skip("needs root, to become somebody else")
    found = subprocess.run([sys.executable, "-c", NOBODY], cwd=ROOT, capture_output=True, check=True)
    assert found.stdout == b"()\n"


def test_without_control_groups_nothing_is_made_and_nothing_put_before_a_command() -> None:
    bench = ControlGroups().for_bench("bench-1", 1.0)
    bench.make()
    limited = bench.for_process("subject", 128, 64)
    assert limited.entering == ()
    assert limited.strikes() == Strikes()
    limited.remove()
    bench.remove()
