"""The application that answers requests: its routes, its errors, and its patience with who is slow or gone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import cast

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from malbox_tui.model.errors import MalboxError
from malbox_tui.remote.answers import Unanswered, in_json, of_error, refusal
from malbox_tui.remote.link import ConnectionGone, Link
from malbox_tui.remote.openapi import document
from malbox_tui.remote.operations import Operation
from malbox_tui.remote.routes_do import Doing
from malbox_tui.remote.routes_look import Looking
from malbox_tui.remote.routes_results import Results
from malbox_tui.remote.routes_samples import Samples
from malbox_tui.remote.served import Counter


def make_application(counter: Counter) -> ASGIApp:
    """Everything that can be asked at `counter`, and what asks for more is told so."""
    operations = (
        *Looking(counter).operations(),
        *Results(counter).operations(),
        *Samples(counter).operations(),
        *Doing(counter).operations(),
    )
    described = document(operations, counter.served.version)

    async def openapi(request: Request) -> Response:
        return in_json(described)

    routes = [Route(operation.path, _answered(operation), methods=[operation.method]) for operation in operations]
    app = Starlette(
        routes=[*routes, Route("/openapi.json", openapi, methods=["GET"])],
        exception_handlers={
            HTTPException: _on_no_route,
            Unanswered: lambda _, error: refusal(cast(Unanswered, error)),
            MalboxError: lambda _, error: refusal(of_error(cast(MalboxError, error))),
            Exception: _on_breakdown,
        },
    )
    app.router.redirect_slashes = False
    return Patience(app, counter.bounds.stall_s)


def _answered(operation: Operation) -> Callable[[Request], Awaitable[Response]]:
    return operation.handle


def _on_no_route(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    status = HTTPStatus(error.status_code)
    code = {HTTPStatus.NOT_FOUND: "not_found", HTTPStatus.METHOD_NOT_ALLOWED: "method_not_allowed"}.get(status, "malformed")
    message = f"There is no such place ({status.phrase}). /openapi.json describes those there are."
    answer = refusal(Unanswered(status, code, message))
    answer.headers.update(error.headers or {})
    return answer


def _on_breakdown(_: Request, error: Exception) -> Response:
    """Whoever asked is told only that it failed; the log has the error."""
    problem = f"The server broke down at this ({type(error).__name__}). Its log has the details."
    return refusal(Unanswered(HTTPStatus.INTERNAL_SERVER_ERROR, "internal", problem, closes=True))


class Patience:
    """Waits for no reader without end: one who takes nothing for `stall_s` is cut. One who is gone is no error."""

    def __init__(self, app: ASGIApp, stall_s: float) -> None:
        self._app = app
        self._stall_s = stall_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        link = Link.of(scope)

        async def patient_send(message: Message) -> None:
            if link.lost.done():
                raise ConnectionGone
            try:
                async with asyncio.timeout(self._stall_s):
                    await send(message)
            except TimeoutError:
                link.abort()
                raise ConnectionGone from None

        try:
            await self._app(scope, receive, patient_send)
        except ConnectionGone:
            if not link.lost.done():
                await asyncio.wait({link.lost})
