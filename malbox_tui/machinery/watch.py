"""Hears of domains that run no more, as libvirt's events tell of one hypervisor."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from malbox_tui.machinery.power import EVENT_DOWNFALLS, Event
from malbox_tui.model.machine import Downfall

TOLD = frozenset(int(event) for event in Event)


class Watch:
    """Who waits for news of which domain. None, as news: ask again, something may have been missed."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._listeners: dict[str, set[asyncio.Future[Downfall | None]]] = {}

    @contextmanager
    def listening(self, domain: str) -> Iterator[asyncio.Future[Downfall | None]]:
        """The next news of a domain."""
        news: asyncio.Future[Downfall | None] = self._loop.create_future()
        self._listeners.setdefault(domain, set()).add(news)
        try:
            yield news
        finally:
            listeners = self._listeners.get(domain, set())
            listeners.discard(news)
            if not listeners:
                self._listeners.pop(domain, None)

    def hear(self, domain: str, event: int, detail: int) -> None:
        """Take an event, in any thread."""
        if event in TOLD:
            try:
                self._loop.call_soon_threadsafe(self._tell, domain, _news(event, detail))
            except RuntimeError:
                # The loop was closed: nobody listens.
                return

    def tell_all_to_ask(self) -> None:
        """The connection was lost, or there is a new one: events may have been missed."""
        for domain in list(self._listeners):
            self._tell(domain, None)

    def _tell(self, domain: str, news: Downfall | None) -> None:
        for listener in self._listeners.get(domain, ()):
            if not listener.done():
                listener.set_result(news)


def _news(event: int, detail: int) -> Downfall | None:
    match event:
        case Event.STOPPED:
            return EVENT_DOWNFALLS.get(detail, Downfall.SWITCHED_OFF)
        case Event.CRASHED:
            return Downfall.CRASHED
        case _:
            return None
