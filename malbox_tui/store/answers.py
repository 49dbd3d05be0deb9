"""The answer to a write that was handed over: awaited by whoever wants to know, logged when it is a failure nobody saw."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Generator
from typing import Any, Generic, TypeVar, cast

log = logging.getLogger(__name__)

T = TypeVar("T")


class Answer(Generic[T]):
    """Comes once; can be awaited any number of times, also by nobody.

    A cancelled wait leaves the answer, and the write it belongs to, as they are. A failure that no wait has raised until the answer
    is dropped is logged as a warning; `subject` names the write there. (A future would be cancelled with its first waiter.)
    """

    __slots__ = ("_come", "_error", "_subject", "_told", "_value", "_waiters")

    def __init__(self, subject: str) -> None:
        self._subject = subject
        self._come = False
        self._value: T | None = None
        self._error: Exception | None = None
        self._told = False
        self._waiters: list[asyncio.Future[None]] = []

    def give(self, value: T) -> None:
        """Answer with a value."""
        self._value = value
        self._wake()

    def fail(self, error: Exception) -> None:
        """Answer with an error."""
        self._error = error
        self._wake()

    def _wake(self) -> None:
        self._come = True
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters.clear()

    def __await__(self) -> Generator[Any, None, T]:
        if not self._come:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            yield from waiter
        if self._error is not None:
            self._told = True
            raise self._error
        return cast(T, self._value)

    def __del__(self) -> None:
        if self._error is not None and not self._told:
            log.warning("%s was not stored: %s", self._subject, self._error)
