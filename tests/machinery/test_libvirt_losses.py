"""Connections to libvirt are lost under calls, and found again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from malbox_tui.machinery.libvirt import LibvirtProvider
from malbox_tui.model.errors import GuestUnreachable, MachineError
from malbox_tui.model.machine import Downfall, PowerState
from tests.machinery.conftest import wrapped
from tests.machinery.mock_host import machine_at

pytestmark = pytest.mark.needs("libvirt")

SYSTEM_ERROR = 38


class Loss:
    """Makes connections of the mock die under a call, as those to a daemon do."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, libvirt_error: Callable[[int, str], Exception]) -> None:
        import libvirt

        self.times = 0
        self.tries = 0
        self._dead: set[int] = set()
        self._error = libvirt_error
        real_alive = libvirt.virConnect.isAlive
        monkeypatch.setattr(libvirt.virConnect, "isAlive", lambda conn: id(conn) not in self._dead and real_alive(conn))
        self._opened: list[Any] = []

    def strike(self, connection: Any) -> None:
        self.tries += 1
        if self.times:
            self.times -= 1
            self._dead.add(id(connection))
            self._opened.append(connection)
            raise self._error(SYSTEM_ERROR, "Cannot recv data: Connection reset by peer")


@pytest.fixture
def loss(monkeypatch: pytest.MonkeyPatch, libvirt_error: Callable[[int, str], Exception]) -> Loss:
    return Loss(monkeypatch, libvirt_error)


async def test_a_call_whose_connection_is_lost_is_made_again_over_the_next(
    provider: LibvirtProvider, host: str, monkeypatch: pytest.MonkeyPatch, loss: Loss
) -> None:
    def strike(real: Callable[..., Any], domain: Any, *args: Any) -> Any:
        loss.strike(domain.connect())
        return real(domain, *args)

    wrapped(monkeypatch, "state", strike)
    loss.times = 2
    assert await provider.power(machine_at(host, "up")) is PowerState.RUNNING
    assert loss.tries == 3
    loss.times = 100
    with pytest.raises(MachineError, match="was lost"):
        await provider.power(machine_at(host, "up"))
    assert loss.tries == 6, "what ends the daemon each time is not asked for ever"
    loss.times = 0
    assert await provider.power(machine_at(host, "up")) is PowerState.RUNNING


async def test_only_requests_that_may_reach_a_guest_twice_are_asked_again(
    provider: LibvirtProvider, host: str, monkeypatch: pytest.MonkeyPatch, loss: Loss
) -> None:
    import libvirt_qemu

    def answer(domain: Any, request: str, *_: object) -> str:
        loss.strike(domain.connect())
        return '{"return":{}}'

    monkeypatch.setattr(libvirt_qemu, "qemuAgentCommand", answer)
    loss.times = 1
    assert await provider.ask(machine_at(host, "up"), '{"execute":"guest-ping"}', 5)
    for request in ('{"execute":"guest-exec"}', '{"execute":"guest-file-write"}', "no JSON"):
        loss.times, loss.tries = 1, 0
        with pytest.raises(GuestUnreachable, match="was lost"):
            await provider.ask(machine_at(host, "up"), request, 5)
        assert loss.tries == 1


async def test_a_hypervisor_that_can_not_be_asked_for_a_while_is_no_downfall(
    provider: LibvirtProvider, host: str, monkeypatch: pytest.MonkeyPatch, loss: Loss
) -> None:
    def strike(real: Callable[..., Any], domain: Any, *args: Any) -> Any:
        loss.strike(domain.connect())
        return real(domain, *args)

    monkeypatch.setattr("malbox_tui.machinery.libvirt.ASK_AGAIN_S", 0.0)
    wrapped(monkeypatch, "state", strike)
    loss.times = 20
    assert await provider.until_down(machine_at(host, "down")) is Downfall.SWITCHED_OFF
    assert loss.tries == 21


async def test_a_hypervisor_that_was_not_there_is_not_asked_at_each_call(
    provider: LibvirtProvider, host: str, monkeypatch: pytest.MonkeyPatch, libvirt_error: Callable[[int, str], Exception]
) -> None:
    import libvirt

    opened = []

    def refuse(uri: str) -> None:
        opened.append(uri)
        raise libvirt_error(SYSTEM_ERROR, "Failed to connect socket to '/run/libvirt/libvirt-sock': No such file or directory")

    monkeypatch.setattr(libvirt, "open", refuse)
    monkeypatch.setattr("malbox_tui.machinery.link.BACK_OFF_S", 3600.0)
    for _ in range(5):
        with pytest.raises(MachineError, match="systemctl enable --now libvirtd"):
            await provider.check(machine_at(host, "up"))
    assert len(opened) == 1
