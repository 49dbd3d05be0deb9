"""One open connection to a hypervisor, and its calls.

A connection is used by one call at a time. libvirt's client before 10.3 leaves pointers into the stack of one thread for the next when
several wait on a connection that dies (CVE-2024-4418), which ends the process (seen). So each kind of call has a connection of its own,
and what hangs in one holds up no other.

A connection is closed in a thread, because that takes as long as keepalive does when the daemon hangs, and not before its last call has
returned: libvirt's calls hold no reference of the connection that they use, and closing it under one ends the process (seen).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from enum import Enum
from typing import Any, TypeVar

from malbox_tui.machinery.binding import libvirt_module
from malbox_tui.machinery.crew import Crew, Lane
from malbox_tui.machinery.place import check_uri, dialled
from malbox_tui.machinery.refusals import Code, Refusal, Unreachable, refusal_of, why_unreachable
from malbox_tui.model.errors import MalboxError

T = TypeVar("T")

KEEPALIVE_S, KEEPALIVE_TRIES = 5, 5
"""A daemon that says nothing for about half a minute is given up. One that is frozen for less goes on with what it was asked."""

LifecycleListener = Callable[[str, int, int], None]
"""Called with domain, event and detail (`virDomainEventType`), on libvirt's thread."""


class Kind(Enum):
    """Kinds of calls; each waits for others of its kind alone."""

    MOVE = "move"
    """Changes what the machine is at."""
    STOP = "stop"
    LOOK = "look"
    AGENT = "agent"


class Line:
    """A connection as it was opened once; when it is dead another one has to be opened."""

    def __init__(self, crew: Crew, connection: Any, hung_up: threading.Event, end_events: Callable[[], None]) -> None:
        self._crew = crew
        self._connection = connection
        self._hung_up = hung_up
        self._end_events = end_events
        self._lanes = {kind: Lane(crew, 1) for kind in Kind}
        self._closed = False
        self._counting = threading.Lock()
        self._calls = 0

    @property
    def is_dead(self) -> bool:
        """Nothing can be asked over it any more."""
        return self._closed or self._hung_up.is_set()

    async def run(self, kind: Kind, work: Callable[[Any], T]) -> T:
        """Make a call with the connection. Raises `Refusal`, and whatever `work` raises."""
        return await self._lanes[kind].run(lambda: self._work(work))

    def close(self) -> None:
        """Let go of it, in the background; calls that did not begin yet are refused."""
        with self._counting:
            if self._closed:
                return
            self._closed = True
            if self._calls:
                return
        self._crew.start(self._hang_up).add_done_callback(_nobody_asks)

    def _work(self, work: Callable[[Any], T]) -> T:
        with self._counting:
            if self._closed:
                raise Refusal(Code.INVALID_CONNECTION, "the connection was closed", lost=True)
            self._calls += 1
        try:
            return self._call(work)
        finally:
            with self._counting:
                self._calls -= 1
                is_last = self._closed and not self._calls
            if is_last:
                self._hang_up()

    def _call(self, work: Callable[[Any], T]) -> T:
        libvirt = libvirt_module()
        try:
            return work(self._connection)
        except libvirt.libvirtError as error:
            raise refusal_of(error, lost=self.is_dead or not is_alive(self._connection)) from None
        except MalboxError as error:
            # The frames of its traceback hold libvirt's objects, and these their connection.
            raise error.with_traceback(None) from None

    def _hang_up(self) -> None:
        libvirt = libvirt_module()
        self._end_events()
        try:
            self._connection.close()
        except libvirt.libvirtError:
            # It was dead already.
            return


def open_line(uri: str, crew: Crew, on_lifecycle: LifecycleListener | None, on_close: Callable[[], None]) -> Line:
    """Connect, in a thread; may take for ever. `on_close` is called in whatever thread notices that the daemon has gone away.
    Raises `Unreachable`."""
    check_uri(uri)
    libvirt = libvirt_module()
    try:
        connection = libvirt.open(dialled(uri))
    except libvirt.libvirtError as error:
        raise Unreachable(why_unreachable(uri, refusal_of(error))) from None
    endings: list[Callable[[], object]] = []
    hung_up = threading.Event()

    def gone(*_: object) -> None:
        hung_up.set()
        on_close()

    try:
        _try(lambda: connection.setKeepAlive(KEEPALIVE_S, KEEPALIVE_TRIES))
        if _try(lambda: connection.registerCloseCallback(gone, None)):
            endings.append(connection.unregisterCloseCallback)
        if on_lifecycle is not None:
            number = connection.domainEventRegisterAny(None, libvirt.VIR_DOMAIN_EVENT_ID_LIFECYCLE, _heard, on_lifecycle)
            endings.append(lambda: connection.domainEventDeregisterAny(number))
    except libvirt.libvirtError as error:
        _end(endings)
        _try(connection.close)
        raise Unreachable(why_unreachable(uri, refusal_of(error))) from None
    return Line(crew, connection, hung_up, lambda: _end(endings))


def is_alive(connection: Any) -> bool:
    """Whether a connection can be used still; no question goes over it."""
    libvirt = libvirt_module()
    try:
        return bool(connection.isAlive())
    except libvirt.libvirtError:
        return False


def _heard(_connection: Any, domain: Any, event: int, detail: int, listener: LifecycleListener) -> None:
    listener(domain.name(), event, detail)


def _end(endings: list[Callable[[], object]]) -> None:
    for ending in endings:
        _try(ending)


def _try(call: Callable[[], object]) -> bool:
    """Whether the connection's driver has it, and the connection is there still."""
    libvirt = libvirt_module()
    try:
        call()
    except libvirt.libvirtError:
        return False
    return True


def _nobody_asks(call: Any) -> None:
    if not call.cancelled():
        call.exception()
