"""Calls to libvirt hold up nothing: neither the loop, nor each other, nor the end of the process."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from malbox_tui.machinery.libvirt import LibvirtProvider
from malbox_tui.model.errors import MachineError
from tests.machinery.conftest import Gate, wrapped
from tests.machinery.mock_host import RUNNING, MockMachine, machine_at, write_host
from tests.support.virtual_time import settle_loop

pytestmark = pytest.mark.needs("libvirt")


async def test_calls_leave_the_loops_thread(provider: LibvirtProvider, host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import libvirt

    threads: set[int] = set()

    def noting(name: str) -> None:
        real = getattr(libvirt.virConnect, name)
        monkeypatch.setattr(
            libvirt.virConnect, name, lambda self, *args: (threads.add(threading.get_ident()), real(self, *args))[1]
        )

    for name in ("lookupByName", "newStream", "close", "isAlive"):
        noting(name)
    machine = machine_at(host, "up")
    for call in (provider.check, provider.revert, provider.screenshot, provider.stop, provider.until_down):
        await call(machine)
    await provider.close()
    assert threads
    assert threading.get_ident() not in threads


async def test_agents_that_hang_hold_up_neither_other_machines_nor_their_own_stop(
    provider: LibvirtProvider, host: str, monkeypatch: pytest.MonkeyPatch, gate: Gate
) -> None:
    import libvirt_qemu

    def hang(domain: Any, *_: object) -> str:
        if domain.name() == "up":
            gate.hold()
        return "{}"

    monkeypatch.setattr(libvirt_qemu, "qemuAgentCommand", hang)
    async with asyncio.TaskGroup() as group:
        asked = [group.create_task(provider.ask(machine_at(host, "up"), "{}", 30)) for _ in range(20)]
        await gate.reached()
        await provider.revert(machine_at(host, "down"))
        await provider.screenshot(machine_at(host, "up"))
        await provider.stop(machine_at(host, "up"))
        assert not any(ask.done() for ask in asked)
        assert gate.count == 1, "the agent gets one request at a time"
        for ask in asked:
            ask.cancel()
    gate.open()


async def test_a_provider_is_closed_while_its_calls_hang(
    provider: LibvirtProvider, host: str, monkeypatch: pytest.MonkeyPatch, gate: Gate
) -> None:
    wrapped(monkeypatch, "screenshot", lambda *_: gate.hold())
    async with asyncio.TaskGroup() as group:
        hanging = group.create_task(provider.screenshot(machine_at(host, "up")))
        await gate.reached()
        await provider.close()
        await provider.close()
        await provider.check(machine_at(host, "up"))
        hanging.cancel()


def test_a_process_ends_though_calls_hang(tmp_path: Path) -> None:
    uri = write_host(tmp_path / "host.xml", MockMachine("up", RUNNING))
    script = f"""
import asyncio, threading, libvirt
from malbox_tui.machinery.libvirt import LibvirtProvider
from malbox_tui.model.machine import MachineSpec
reached = threading.Event()
libvirt.virDomain.screenshot = lambda *_: (reached.set(), threading.Event().wait())
async def main():
    provider = LibvirtProvider()
    machine = MachineSpec(name="up", provider="libvirt", platform="linux", uri={uri!r}, snapshot="clean", channel="qga")
    await provider.check(machine)
    async with asyncio.TaskGroup() as group:
        hanging = group.create_task(provider.screenshot(machine))
        while not reached.is_set():
            await asyncio.sleep(0)
        hanging.cancel()
    await provider.close()
    print("closed", flush=True)
asyncio.run(main())
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "closed\n", "")


def test_what_libvirt_refuses_is_not_printed(tmp_path: Path) -> None:
    uri = write_host(tmp_path / "host.xml", MockMachine("up", RUNNING))
    script = f"""
import asyncio
from malbox_tui.machinery.libvirt import LibvirtProvider
from malbox_tui.model.errors import MachineMissing
from malbox_tui.model.machine import MachineSpec
async def main():
    provider = LibvirtProvider()
    try:
        await provider.check(MachineSpec(name="none", provider="libvirt", platform="linux", uri={uri!r}, snapshot="clean"))
    except MachineMissing:
        print("missing", flush=True)
asyncio.run(main())
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "missing\n", "")


def test_one_provider_after_another_on_loops_that_end(host: str) -> None:
    async def use() -> None:
        provider = LibvirtProvider()
        await provider.open()
        await provider.revert(machine_at(host, "down"))
        await provider.until_down(machine_at(host, "crashed"))
        await provider.close()

    for _ in range(3):
        asyncio.run(use(), debug=True)


def test_a_loop_that_ends_without_closing_is_survived(host: str, gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    async def leave() -> LibvirtProvider:
        provider = LibvirtProvider()
        async with asyncio.TaskGroup() as group:
            hanging = group.create_task(provider.screenshot(machine_at(host, "up")))
            await gate.reached()
            hanging.cancel()
        return provider

    wrapped(monkeypatch, "screenshot", lambda *_: gate.hold())
    left = asyncio.run(leave(), debug=True)
    gate.open()

    async def use() -> None:
        provider = LibvirtProvider()
        await provider.revert(machine_at(host, "down"))
        await provider.close()

    asyncio.run(use(), debug=True)
    assert left is not None


async def test_a_connection_is_closed_after_its_last_call_returned(
    provider: LibvirtProvider, host: str, monkeypatch: pytest.MonkeyPatch, gate: Gate
) -> None:
    import libvirt

    order: list[str] = []
    closed = threading.Event()
    real_close = libvirt.virConnect.close

    def close(connection: Any) -> int:
        order.append("closed")
        closed.set()
        number: int = real_close(connection)
        return number

    def hang(*_: object) -> None:
        gate.hold()
        order.append("returned")
        raise MachineError("up", "given up")

    monkeypatch.setattr(libvirt.virConnect, "close", close)
    wrapped(monkeypatch, "screenshot", hang)
    async with asyncio.TaskGroup() as group:
        hanging = group.create_task(provider.screenshot(machine_at(host, "up")))
        await gate.reached()
        await provider.close()
        await settle_loop()
        hanging.cancel()
    assert order == []
    gate.open()
    assert await asyncio.get_running_loop().run_in_executor(None, closed.wait, 60)
    assert order == ["returned", "closed"]
