"""Answers as they go out: values as JSON, errors as `Problem`s with a fitting status, and bytes."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import Any

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from malbox_tui.model.errors import (
    EngineStopped,
    MalboxError,
    RefusedCommand,
    SampleChanged,
    SampleMissing,
    StaleTask,
    StoreError,
    UnknownTask,
)
from malbox_tui.remote.protocol import PROTOCOL, PROTOCOL_HEADER, Problem

JSON = "application/json"
LINES = "application/x-ndjson"
BYTES = "application/octet-stream"

PIECE_BYTES = 64 * 1024
"""Larger answers go out in pieces of this size, so that one who doesn't read them holds up no more than a few."""

ALWAYS: Mapping[str, str] = MappingProxyType(
    {PROTOCOL_HEADER: str(PROTOCOL), "cache-control": "no-store", "x-content-type-options": "nosniff"}
)
"""Headers of every answer."""


class Unanswered(Exception):
    """A request that is not answered as it was meant: `problem` says why. `closes`: nothing more of it is read."""

    def __init__(self, status: HTTPStatus, code: str, message: str, *, closes: bool = False) -> None:
        super().__init__(message)
        self.status = status
        self.problem = Problem(code=code, message=message)
        self.closes = closes


class Answer(Response):
    """A body that is there as a whole, sent piece by piece."""

    def __init__(
        self, body: bytes, media_type: str = JSON, status: int = 200, headers: Mapping[str, str] = ALWAYS, closes: bool = False
    ) -> None:
        super().__init__(body, status, {**headers, **({"connection": "close"} if closes else {})}, media_type)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        body = memoryview(self.body)
        for start in range(0, max(1, len(body)), PIECE_BYTES):
            end = start + PIECE_BYTES
            await send({"type": "http.response.body", "body": bytes(body[start:end]), "more_body": end < len(body)})


def in_json(value: Any, status: HTTPStatus = HTTPStatus.OK, *, closes: bool = False) -> Answer:
    """A value of the model or the protocol."""
    return Answer(msgspec.json.encode(value), status=status, closes=closes)


def refusal(error: Unanswered) -> Answer:
    """What someone is told whose request is not answered."""
    return in_json(error.problem, error.status, closes=error.closes)


def malformed(message: str) -> Unanswered:
    """The request itself makes no sense."""
    return Unanswered(HTTPStatus.BAD_REQUEST, "malformed", message)


def not_found(message: str) -> Unanswered:
    """What was asked for is not there."""
    return Unanswered(HTTPStatus.NOT_FOUND, "not_found", message)


_SITUATIONS: tuple[tuple[type[MalboxError], HTTPStatus, str], ...] = (
    (UnknownTask, HTTPStatus.NOT_FOUND, "not_found"),
    (SampleMissing, HTTPStatus.NOT_FOUND, "not_found"),
    (SampleChanged, HTTPStatus.CONFLICT, "damaged"),
    (StaleTask, HTTPStatus.CONFLICT, "stale"),
    (RefusedCommand, HTTPStatus.CONFLICT, "refused"),
    (EngineStopped, HTTPStatus.SERVICE_UNAVAILABLE, "stopping"),
    (StoreError, HTTPStatus.SERVICE_UNAVAILABLE, "store"),
)
"""The first that fits; any other error of ours is about what was asked."""


def of_error(error: MalboxError) -> Unanswered:
    """An error of the engine, as those who asked are told."""
    for kind, status, code in _SITUATIONS:
        if isinstance(error, kind):
            return Unanswered(status, code, str(error))
    return malformed(str(error))
