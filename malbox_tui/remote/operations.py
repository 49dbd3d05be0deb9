"""What can be asked of a server, as one table: the routes are made from it, and so is the OpenAPI document."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from malbox_tui.remote.answers import JSON
from malbox_tui.remote.listing import NOTHING, Parameters

UPLOAD_PROBLEMS = (HTTPStatus.REQUEST_ENTITY_TOO_LARGE,)
BODY_PROBLEMS = (*UPLOAD_PROBLEMS, HTTPStatus.UNSUPPORTED_MEDIA_TYPE)


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing to ask: where, what with, and what the answer is.

    `body` is the type of a JSON body; with `streams` the body is bytes instead. `answer` is the type of the answer (of each line, where
    `media_type` is lines), None where it is no JSON. `problems` are the statuses that it may be refused with, beside those of every
    operation.
    """

    method: str
    path: str
    summary: str
    handle: Callable[[Request], Awaitable[Response]]
    answer: Any = None
    media_type: str = JSON
    parameters: Parameters = NOTHING
    body: Any = None
    streams: bool = False
    problems: tuple[HTTPStatus, ...] = ()

    @property
    def name(self) -> str:
        """A name of its own: that of what answers it."""
        return self.handle.__name__
