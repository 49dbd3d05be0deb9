"""What tests of machines share: providers that are closed, on a loop in debug mode, and libvirt's errors made by hand."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from malbox_tui.machinery.libvirt import LibvirtProvider
from tests.machinery.mock_host import CRASHED, OFF, RUNNING, MockMachine, write_host


@pytest.fixture
async def provider() -> AsyncIterator[LibvirtProvider]:
    asyncio.get_running_loop().set_debug(True)
    provider = LibvirtProvider()
    await provider.open()
    yield provider
    await provider.close()


@pytest.fixture
def host(tmp_path: Path) -> str:
    """A host with a machine that runs, one that is off and one that crashed; and others that can't be used."""
    return write_host(
        tmp_path / "host.xml",
        MockMachine("up", RUNNING),
        MockMachine("down", OFF),
        MockMachine("crashed", CRASHED),
        MockMachine("shot-while-off", OFF, (("clean", "shutoff"),)),
        MockMachine("by-uefi", OFF, (), loader="<loader readonly='yes' type='pflash'>/usr/share/OVMF/OVMF_CODE.fd</loader>"),
        MockMachine("bare", OFF, (("other", "running"), ("odd", "shutoff"))),
        MockMachine("deaf", OFF, agent=False),
        MockMachine("slirp", OFF, card="user"),
        MockMachine("twin", OFF, mac="52:54:00:00:00:02"),
    )


class Gate:
    """Holds calls back, in their threads, until it is opened; counts those that came."""

    def __init__(self) -> None:
        self._open = threading.Event()
        self._came = threading.Semaphore(0)
        self.count = 0

    def hold(self) -> None:
        self.count += 1
        self._came.release()
        assert self._open.wait(60), "nobody opened the gate"

    async def reached(self) -> None:
        """Returns when one more call is held."""
        await asyncio.get_running_loop().run_in_executor(None, self._came.acquire)

    def open(self) -> None:
        self._open.set()


@pytest.fixture
def gate() -> Any:
    gate = Gate()
    yield gate
    gate.open()


@pytest.fixture
def libvirt_error() -> Callable[[int, str], Exception]:
    """An error of libvirt's, as it looks when it comes from there."""
    import libvirt

    def make(code: int, words: str) -> Exception:
        error: Exception = libvirt.libvirtError(words)
        error.err = (code, 10, words, 2, "", None, None, 0, 0)  # type: ignore[attr-defined]
        error.args = (words,)
        return error

    return make


def wrapped(monkeypatch: pytest.MonkeyPatch, method: str, replacement: Callable[..., Any]) -> None:
    """Have a method of libvirt's domains called by `replacement`, which gets the method first."""
    import libvirt

    real = getattr(libvirt.virDomain, method)
    monkeypatch.setattr(libvirt.virDomain, method, lambda self, *args: replacement(real, self, *args))
