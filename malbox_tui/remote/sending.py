"""Samples from where a client runs to the engine: several at a time, each in its own request, receipts in the order of the offers.

A sample that the engine doesn't take, or that can't be read to its end, is a refused one, and so is one whose upload was cut while the
engine can still be reached. When it can't, `ConnectionLost` goes up: what was taken before stays taken, and offering the same again
takes nothing twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace

from malbox_tui.model.errors import MalboxError, RefusedContent
from malbox_tui.model.submission import NOT_KEPT, Account, Offer, Receipt, Refusal, Refused, SubmissionOptions
from malbox_tui.remote.reading import Declined, error_of, value_of
from malbox_tui.remote.sample_query import sample_query
from malbox_tui.remote.wire import Answer, ConnectionLost, Request, Wires

AT_ONCE = 8
"""So many are sent at a time: enough for the engine to write several in one commit."""
MAX_RECEIPT_BYTES = 1024 * 1024

_OF_THE_SAMPLE = NOT_KEPT | {"too_large", "too_slow", "malformed", "internal"}
"""Codes of problems for which a sample is a refused one, and the next is tried."""

_CUT = Refusal(
    "cut",
    "The connection was lost while it was sent, and whether it was taken is not known. Add it again: nothing is taken twice.",
)


@dataclass(slots=True)
class Sending:
    """One submission to the engine at `where`."""

    wires: Wires
    headers: Sequence[tuple[str, str]]
    options: SubmissionOptions
    where: str
    on_receipt: Callable[[Receipt], None] | None = None
    _receipts: dict[int, Receipt] = field(default_factory=dict)
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _taken: int = 0
    _lost: ConnectionLost | MalboxError | None = None

    @property
    def answered(self) -> int:
        """For how many offers there is a receipt."""
        return len(self._receipts)

    async def run(self, offers: AsyncIterator[Offer]) -> Account:
        """Send all. Raises `ConnectionLost`, `EngineStopped`, `EngineMismatch`, and what the offers raise."""
        try:
            async with asyncio.TaskGroup() as senders:
                for _ in range(AT_ONCE):
                    senders.create_task(self._send_some(offers))
        except BaseExceptionGroup as group:
            raise _first(group) from None
        if self._lost is not None:
            raise self._lost
        return Account(tuple(receipt for _, receipt in sorted(self._receipts.items())))

    async def _send_some(self, offers: AsyncIterator[Offer]) -> None:
        """One offer after the other, as long as there are any and the engine can be reached."""
        while self._lost is None:
            async with self._turn:
                offer = await anext(offers, None)
                number, self._taken = self._taken, self._taken + 1
            if offer is None:
                return
            try:
                receipt = await self._send(offer)
            except (ConnectionLost, MalboxError) as lost:
                self._lost = lost
                return
            finally:
                await _close(offer)
            self._receipts[number] = receipt
            if self.on_receipt is not None:
                self.on_receipt(receipt)

    async def _send(self, offer: Offer) -> Receipt:
        if offer.content is None and offer.refusal is None and offer.opened is None:
            offer = replace(offer, refusal=Refusal("no_content", "It has no content."))
        target = f"/v1/samples?{sample_query(offer, self.options)}"
        began = asyncio.Event()
        content = b"" if offer.content is None else _noticed(offer.content, began)
        request = Request("POST", target, self.headers, content)
        try:
            answer = await self._upload(request)
        except RefusedContent as refused:
            return Refused(offer.name, Refusal(refused.code, refused.reason))
        except ConnectionLost:
            if not began.is_set():
                raise
            async with self.wires.fresh():  # raises when the engine can't be reached
                return Refused(offer.name, _CUT)
        try:
            receipt: Receipt = value_of(answer, Receipt, self.where)
        except Declined as declined:
            problem = declined.problem
            if problem.code not in _OF_THE_SAMPLE:
                raise error_of(problem) from None
            return Refused(offer.name, Refusal(problem.code, problem.message))
        return receipt

    async def _upload(self, request: Request) -> Answer:
        async with self.wires.taken() as wire:
            return await wire.ask(request, MAX_RECEIPT_BYTES)


async def _noticed(content: AsyncIterator[bytes], began: asyncio.Event) -> AsyncIterator[bytes]:
    async for chunk in content:
        began.set()
        yield chunk


async def _close(offer: Offer) -> None:
    """Files of offers that were not read to the end are let go."""
    if (close := getattr(offer.content, "aclose", None)) is not None:
        await close()


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The error that ended the others."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
