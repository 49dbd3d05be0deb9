"""What a task may have done to the machine that it holds, by the machine's hypervisor: the engine's only door to that."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from malbox_tui.engine.machine import MachineLease
from malbox_tui.engine.tracker import was_cancelled
from malbox_tui.model.errors import MachineError
from malbox_tui.model.machine import Downfall, Picture, PowerState
from malbox_tui.ports import MachineCapture, MachineProvider

log = logging.getLogger(__name__)

T = TypeVar("T")


class MachineHands:
    """The hypervisor's hands on one leased machine.

    Each call is as in `MachineProvider`: it may take for ever, and whoever calls sets the limit. Whatever an adapter raises comes as a
    `MachineError`. A call after the lease has ended raises one too, so that nobody reaches into a machine that is another task's.
    """

    def __init__(self, provider: MachineProvider, lease: MachineLease) -> None:
        self._provider = provider
        self._lease = lease

    async def power(self) -> PowerState:
        """Whether it runs."""
        return await self._do(lambda: self._provider.power(self._lease.machine))

    async def until_down(self) -> Downfall:
        """Returns when the machine runs no more, and why."""
        return await self._do(lambda: self._provider.until_down(self._lease.machine))

    async def screenshot(self) -> Picture:
        """What is on its screen. Raises `MachineUnable` when nobody can look at it."""
        return await self._do(lambda: self._provider.screenshot(self._lease.machine))

    async def dump_memory(self, target: Path) -> None:
        """Write all of its memory into the new file `target`. Raises `MachineUnable` when that can't be done."""
        await self._do(lambda: self._provider.dump_memory(self._lease.machine, target))

    async def capture(self, target: Path) -> MachineCapture:
        """Record its network traffic into the new file `target`. Raises `MachineUnable` when that can't be done."""
        return _HeldCapture(self._lease, await self._do(lambda: self._provider.capture(self._lease.machine, target)))

    async def _do(self, call: Callable[[], Awaitable[T]]) -> T:
        if self._lease.ended:
            raise MachineError(self._lease.machine.name, f"task {self._lease.task_id} holds it no more")
        return await _by_adapter(self._lease, call)


class _HeldCapture:
    """Ends a recording also after the lease: its file is to be whole."""

    def __init__(self, lease: MachineLease, capture: MachineCapture) -> None:
        self._lease = lease
        self._capture = capture

    async def end(self) -> None:
        """As `MachineCapture.end`. Raises `MachineError`, whatever the adapter raises."""
        await _by_adapter(self._lease, self._capture.end)


async def _by_adapter(lease: MachineLease, call: Callable[[], Awaitable[T]]) -> T:
    try:
        return await call()
    except MachineError:
        raise
    except asyncio.CancelledError as error:
        if was_cancelled():
            raise
        raise _broken(lease, error) from error
    except Exception as error:
        raise _broken(lease, error) from error


def _broken(lease: MachineLease, error: BaseException) -> MachineError:
    name = lease.machine.name
    log.error("the adapter of machine %s broke", name, exc_info=error)
    return MachineError(name, f"its adapter broke: {type(error).__name__}: {error}".rstrip(": "))
