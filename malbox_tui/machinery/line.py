"""One open connection to a hypervisor, and its calls.

libvirt's daemon serves five requests of a connection at once and lets others wait (`max_client_requests`), so each kind of call has
lanes of its own on it: what hangs in one kind holds up no other. Connections and what hangs on them are closed in threads, because
closing one whose daemon hangs takes as long as keepalive does.
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
    """Kinds of calls, with how many of each may be under way on one connection: five together."""

    MOVE = ("move", 1)
    """Changes what the machine is at."""
    STOP = ("stop", 1)
    LOOK = ("look", 2)
    AGENT = ("agent", 1)
    """libvirt lets one in at a time."""

    @property
    def width(self) -> int:
        """How many at once."""
        return self.value[1]


class Line:
    """A connection as it was opened once; when it is dead another one has to be opened."""

    def __init__(self, crew: Crew, connection: Any, hung_up: threading.Event, end_events: Callable[[], None]) -> None:
        self._crew = crew
        self._connection = connection
        self._hung_up = hung_up
        self._end_events = end_events
        self._lanes = {kind: Lane(crew, kind.width) for kind in Kind}
        self._closed = False

    @property
    def is_dead(self) -> bool:
        """Nothing can be asked over it any more."""
        return self._closed or self._hung_up.is_set()

    async def run(self, kind: Kind, work: Callable[[Any], T]) -> T:
        """Make a call with the connection. Raises `Refusal`, and whatever `work` raises."""
        return await self._lanes[kind].run(lambda: self._work(work))

    def close(self) -> None:
        """Let go of it, in the background."""
        if not self._closed:
            self._closed = True
            self._crew.start(self._hang_up).add_done_callback(_nobody_asks)

    def _work(self, work: Callable[[Any], T]) -> T:
        libvirt = libvirt_module()
        try:
            if self._closed:
                raise Refusal(Code.INVALID_CONNECTION, "the connection was closed", lost=True)
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
