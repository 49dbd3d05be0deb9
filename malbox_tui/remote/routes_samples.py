"""Samples: handing them in, giving them out, and what the store holds of them."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from http import HTTPStatus

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from malbox_tui.model.errors import MalboxError
from malbox_tui.model.submission import LOW_DISK, Offer, Receipt, Refusal, Refused, SubmissionOptions
from malbox_tui.model.upkeep import StoreFigures
from malbox_tui.remote import asking, listing
from malbox_tui.remote.answers import ALWAYS, BYTES, Unanswered, in_json, malformed
from malbox_tui.remote.link import Link
from malbox_tui.remote.operations import UPLOAD_PROBLEMS, Operation
from malbox_tui.remote.sample_query import parse_sample_query
from malbox_tui.remote.served import Counter
from malbox_tui.remote.uploads import Upload

_SHA256 = re.compile(r"[0-9a-f]{64}")


class Samples:
    """Contents, in and out."""

    def __init__(self, counter: Counter) -> None:
        self._counter = counter

    def operations(self) -> tuple[Operation, ...]:
        """In, out, and counted."""
        given_out, sample = (
            "A sample, as it is asked for; that it was given out is logged",
            "Submit a sample: its content is the body",
        )
        problems = (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT)
        return (
            Operation(
                "POST",
                "/v1/samples",
                sample,
                self.sample,
                Receipt,
                parameters=listing.SAMPLE,
                streams=True,
                problems=(*UPLOAD_PROBLEMS, HTTPStatus.INSUFFICIENT_STORAGE),
            ),
            Operation(
                "GET",
                "/v1/samples/{sha256}/content",
                given_out,
                self.content,
                None,
                BYTES,
                listing.CONTENT,
                problems=problems,
            ),
            Operation("GET", "/v1/store", "What the store holds, counted now", self.store, StoreFigures, problems=problems[1:]),
        )

    async def sample(self, request: Request) -> Response:
        """`Receipt`. While the disk has too little room, nothing of it is read."""
        asking.refuse_read_only(request)
        try:
            offer, options = parse_sample_query(request.scope["query_string"])
        except MalboxError as exc:
            raise malformed(str(exc)) from exc
        peer, origin = Link.of(request.scope).peer, asking.origin_of(request)
        label = options.intake
        if label.key:  # nobody writes into another's account
            label = msgspec.structs.replace(label, key=f"{peer.uid}/{label.key}")
        options = msgspec.structs.replace(options, actor=peer.name, origin=origin, intake=label)
        limit_bytes = self._counter.served.max_sample_bytes()
        try:
            asking.refuse_declared(request, limit_bytes, "The sample")
        except Unanswered as refused:
            await self._enter(replace(offer, refusal=Refusal(refused.problem.code, refused.problem.message)), options)
            raise
        receipt = await Upload(request, self._counter.bounds, limit_bytes).submit(self._counter.client, offer, options)
        if isinstance(receipt, Refused) and receipt.refusal.code == LOW_DISK:
            raise Unanswered(HTTPStatus.INSUFFICIENT_STORAGE, LOW_DISK, receipt.refusal.reason, closes=True)
        return in_json(receipt)

    async def _enter(self, offer: Offer, options: SubmissionOptions) -> None:
        """Have what is not even read in its account, too."""

        async def one() -> AsyncIterator[Offer]:
            yield offer

        await self._counter.client.submit(one(), options)

    async def content(self, request: Request) -> Response:
        """The bytes, as they are read. What keeps the first from coming is told as a `Problem`."""
        asking.refuse_read_only(request)
        asked: listing.ContentListing = asking.read_query(request, listing.CONTENT)
        sha256 = request.path_params["sha256"]
        if _SHA256.fullmatch(sha256) is None:
            raise malformed("A sample is named by its whole SHA-256: 64 digits, in lower case.")
        actor, origin = Link.of(request.scope).peer.name, asking.origin_of(request)
        chunks = self._counter.client.content(sha256, asked.form, actor, origin)
        try:
            first = await anext(chunks, b"")
        except BaseException:
            await chunks.aclose()
            raise
        return _Streamed(first, chunks, f"{sha256}.{asked.form.ending}")

    async def store(self, request: Request) -> Response:
        """`StoreFigures`."""
        return in_json(await self._counter.client.figures())


class _Streamed(StreamingResponse):
    """Chunks as they come, let go of whoever reads them to the end or not. What breaks off has no end: the connection is cut."""

    def __init__(self, first: bytes, rest: AsyncGenerator[bytes, None], name: str) -> None:
        self._rest = rest
        headers = {**ALWAYS, "content-disposition": f'attachment; filename="{name}"'}
        super().__init__(_chained(first, rest), headers=headers, media_type=BYTES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with aclosing(self._rest):
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            async for chunk in self.body_iterator:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _chained(first: bytes, rest: AsyncGenerator[bytes, None]) -> AsyncIterator[bytes]:
    yield first
    async for chunk in rest:
        yield chunk
