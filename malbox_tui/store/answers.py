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
    is dropped is logged as a warning; `subject % values` names the write there, and is worked out there only. (A future would be
    cancelled with its first waiter.)
    """

    __slots__ = ("_come", "_error", "_subject", "_told", "_value", "_values", "_waiters")

    def __init__(self, subject: str, *values: object) -> None:
        self._subject = subject
        self._values = values
        self._come = False
        self._value: T | None = None
        self._error: Exception | None = None
        self._told = False
        self._waiters: list[asyncio.Future[None]] | None = None

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
        waiters, self._waiters = self._waiters, None
        for waiter in waiters or ():
            if not waiter.done():
                waiter.set_result(None)

    def __await__(self) -> Generator[Any, None, T]:
        if not self._come:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            if self._waiters is None:
                self._waiters = []
            self._waiters.append(waiter)
            yield from waiter
        if self._error is not None:
            self._told = True
            raise self._error
        return cast(T, self._value)

    def __del__(self) -> None:
        if self._error is not None and not self._told:
            log.warning("%s was not stored: %s", self._subject % self._values, self._error)
