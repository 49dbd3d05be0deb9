"""A store that tells a run what passes through it, and changes nothing of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Sequence
from typing import Any

from malbox_tui.model.events import Event, EventBody
from malbox_tui.model.queries import TaskPage, TaskQuery
from malbox_tui.model.report import Identification
from malbox_tui.model.task import Task
from malbox_tui.ports import Added, Change, ClaimRequest, NewTask, PendingEntry, Store, StoreIdentity


class WatchedStore:
    """`store`, with `on_event` called for each committed event before the engine hears of it, and `on_news` for each note handed over.

    `answers_due` is how many calls have not returned.
    """

    def __init__(self, store: Store, on_event: Callable[[Event], None], on_news: Callable[[EventBody], None]) -> None:
        self._store = store
        self._on_event = on_event
        self._on_news = on_news
        self.answers_due = 0

    async def open(self, on_commit: Callable[[Sequence[Event]], None]) -> StoreIdentity:
        def tell(events: Sequence[Event]) -> None:
            for event in events:
                self._on_event(event)
            on_commit(events)

        return await self._store.open(tell)

    async def close(self) -> None:
        await self._store.close()

    async def add(self, new: NewTask) -> Added:
        self.answers_due += 1
        try:
            return await self._store.add(new)
        finally:
            self.answers_due -= 1

    async def claim(self, request: ClaimRequest) -> Task | None:
        self.answers_due += 1
        try:
            return await self._store.claim(request)
        finally:
            self.answers_due -= 1

    def write(self, change: Change) -> Awaitable[None]:
        return _Counted(self._store.write(change), self)

    def note(self, at: float, news: EventBody) -> Awaitable[None]:
        self._on_news(news)
        return self._store.note(at, news)

    async def renew(self, tokens: Sequence[str], lease_until: float) -> frozenset[str]:
        return await self._store.renew(tokens, lease_until)

    async def identify(self, sha256: str, identification: Identification) -> None:
        await self._store.identify(sha256, identification)

    async def check(self) -> None:
        await self._store.check()

    async def pending(self) -> Sequence[PendingEntry]:
        return await self._store.pending()

    async def owned(self) -> Sequence[Task]:
        return await self._store.owned()

    async def tasks(self, query: TaskQuery, clock: float) -> TaskPage:
        return await self._store.tasks(query, clock)

    async def events(self, after: int, limit: int) -> Sequence[Event]:
        return await self._store.events(after, limit)


class _Counted:
    """An answer that counts as due while somebody waits for it."""

    def __init__(self, answer: Awaitable[None], store: WatchedStore) -> None:
        self._answer = answer
        self._store = store

    def __await__(self) -> Generator[Any, None, None]:
        self._store.answers_due += 1
        try:
            yield from self._answer.__await__()
        finally:
            self._store.answers_due -= 1
