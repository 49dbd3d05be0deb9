"""One sample, uploaded as the body of a request: its chunks go on to the engine as they come, and none is kept here.

The engine pulls; while it doesn't, nothing is read from the socket, and the sender waits. An upload that is cut ends its content with a
refusal, so that nothing of it is kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

from starlette.requests import Request
from starlette.types import Message

from malbox_tui.model.errors import EngineStopped, RefusedContent
from malbox_tui.model.submission import Offer, Receipt, SubmissionOptions
from malbox_tui.ports import Client
from malbox_tui.remote.answers import Unanswered
from malbox_tui.remote.asking import chunks, too_large, too_slow
from malbox_tui.remote.bounds import Bounds


class Upload:
    """One request's content on its way to the engine."""

    def __init__(self, request: Request, bounds: Bounds, max_bytes: int) -> None:
        self._request = request
        self._bounds = bounds
        self._max_bytes = max_bytes
        self._end: Exception | None = None
        """What ended it before its time."""
        self._waited_s = 0.0
        self._came_bytes = 0

    async def submit(self, client: Client, offer: Offer, options: SubmissionOptions) -> Receipt:
        """Hand it over with the content, if it is to have one, and return the receipt. Raises `Unanswered`, `ConnectionGone`; nothing
        is kept then."""
        account = await client.submit(self._offer(offer), options)
        if self._end is not None:
            raise self._end
        if not account.receipts:
            raise EngineStopped
        return account.receipts[0]

    async def _offer(self, offer: Offer) -> AsyncIterator[Offer]:
        has_content = offer.refusal is None and offer.opened is None
        yield replace(offer, content=self._content()) if has_content else offer

    async def _content(self) -> AsyncIterator[bytes]:
        total_bytes = 0
        try:
            async for chunk in chunks(self._receive):
                total_bytes += len(chunk)
                if total_bytes > self._max_bytes:
                    raise too_large("The sample", self._max_bytes)
                yield chunk
        except Unanswered as refused:
            self._end = refused
            raise RefusedContent(refused.problem.code, refused.problem.message) from refused
        except Exception as error:
            self._end = error
            raise RefusedContent("cut", "Its content did not come to its end.") from error

    async def _receive(self) -> Message:
        """The next piece. Raises `Unanswered` when less than the least came in the time that it was waited for."""
        clock = asyncio.get_running_loop().time
        began = clock()
        try:
            async with asyncio.timeout(self._bounds.stall_s - self._waited_s):
                message = await self._request.receive()
        except TimeoutError:
            problem = f"Less than {self._bounds.least_bytes} bytes of the content came within {self._bounds.stall_s:g} s."
            raise too_slow(problem) from None
        self._waited_s += clock() - began
        self._came_bytes += len(message.get("body", b""))
        if self._came_bytes >= self._bounds.least_bytes:
            self._waited_s, self._came_bytes = 0.0, 0
        return message
