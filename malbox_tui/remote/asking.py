"""Requests as they come in, read strictly: what is not understood is refused, and nothing is read that is too large.

A struct that msgspec decodes may ignore fields that it doesn't know; `unknown_field` finds those, whatever the struct.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.types import Receive

from malbox_tui.model.errors import MalboxError
from malbox_tui.model.sample import visible
from malbox_tui.remote.answers import JSON, Unanswered, malformed
from malbox_tui.remote.bounds import MAX_MACHINES, MAX_TASK_IDS, MAX_TEXT_CHARS, Bounds
from malbox_tui.remote.link import ConnectionGone, Link
from malbox_tui.remote.listing import Parameters
from malbox_tui.remote.protocol import CONSOLE_HEADER, MAX_JSON_BYTES, ORIGIN_HEADER, READ_ONLY_HEADER
from malbox_tui.remote.sample_query import query_pairs

HIGHEST = 2**63 - 1
"""Whole numbers beyond it are no number of anything here, and no store takes them."""


async def read_json(request: Request, kind: Any, bounds: Bounds) -> Any:
    """The body as a value of the type `kind`. Raises `Unanswered`, `ConnectionGone`."""
    media_type = request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
    if media_type != JSON:
        problem = f"The content is to be {JSON}, not {media_type[:80]!r}."
        raise Unanswered(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", problem, closes=True)
    refuse_declared(request, MAX_JSON_BYTES, "A JSON body")
    body = bytearray()
    try:
        async with asyncio.timeout(bounds.body_s):
            async for chunk in chunks(request.receive):
                body += chunk
                if len(body) > MAX_JSON_BYTES:
                    raise too_large("A JSON body", MAX_JSON_BYTES)
    except TimeoutError:
        raise too_slow(f"The content did not come within {bounds.body_s:g} s.") from None
    return decoded(bytes(body), kind)


def decoded(body: bytes, kind: Any) -> Any:
    """JSON as a value of the type `kind`, with nothing in it that `kind` doesn't know. Raises `Unanswered`."""
    try:
        value = msgspec.json.decode(body, type=kind)
        unknown = unknown_field(msgspec.json.decode(body), value)
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as exc:
        raise malformed(f"The content is not what is asked for here: {exc}") from exc
    if unknown is not None:
        raise malformed(f"The content is not what is asked for here: Object contains unknown field `{unknown[:80]}`")
    if not _is_countable(value):
        raise malformed("The content is not what is asked for here: a number is too large")
    return value


def unknown_field(raw: Any, value: Any) -> str | None:
    """The name of a field in the JSON value `raw` that no struct in `value`, made from it, has; None: there is none."""
    if isinstance(value, msgspec.Struct) and isinstance(raw, dict):
        known = dict(zip(value.__struct_encode_fields__, value.__struct_fields__, strict=True))
        for name, inner in raw.items():
            if name == value.__struct_config__.tag_field:
                continue
            found = unknown_field(inner, getattr(value, known[name])) if name in known else name
            if found is not None:
                return found
    elif isinstance(value, (tuple, list)) and isinstance(raw, list):
        return next((found for pair in zip(raw, value, strict=True) if (found := unknown_field(*pair)) is not None), None)
    return None


def read_query(request: Request, parameters: Parameters) -> Any:
    """The query as a struct of the kind that `parameters` describe. Raises `Unanswered`."""
    found: dict[str, Any] = {}
    try:
        for name, value in query_pairs(request.scope["query_string"]):
            item: str | bytes = value if name in parameters.raw else value.decode()
            if name in parameters.lists:
                found.setdefault(name, []).append(item)
            elif name in found:
                raise malformed(f"The parameter {name!r} is given twice.")
            else:
                found[name] = item
        return msgspec.convert(found, parameters.kind, strict=False)
    except UnicodeDecodeError as exc:
        raise malformed("A parameter of the query is no UTF-8 text.") from exc
    except (MalboxError, msgspec.ValidationError) as exc:
        raise malformed(f"The query is malformed: {exc}") from exc


async def chunks(receive: Receive) -> AsyncIterator[bytes]:
    """The body of a request, as it comes. Raises `ConnectionGone` when it is cut."""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ConnectionGone
        if message["body"]:
            yield message["body"]
        if not message.get("more_body", False):
            return


def refuse_declared(request: Request, limit: int, what: str) -> None:
    """Refuse a content that says itself that it is too large, before it is read. Raises `Unanswered`."""
    declared = request.headers.get("content-length", "")
    if declared.isascii() and declared.isdigit() and int(declared[:20]) > limit:
        raise too_large(what, limit)


def too_large(what: str, limit: int) -> Unanswered:
    """The content is over a limit."""
    problem = f"{what} is larger than the limit of {limit} bytes."
    return Unanswered(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too_large", problem, closes=True)


def too_slow(message: str) -> Unanswered:
    """The content did not come."""
    return Unanswered(HTTPStatus.REQUEST_TIMEOUT, "too_slow", message, closes=True)


def origin_of(request: Request) -> str:
    """Where the asker is, as the kernel and it itself say."""
    pid = Link.of(request.scope).peer.pid
    said = _said(request.headers, ORIGIN_HEADER)
    return f"{said} (process {pid})" if said else f"process {pid}"


def console_of(request: Request) -> str:
    """The name that the asking console gave itself; empty: it is none."""
    return _said(request.headers, CONSOLE_HEADER)


def is_read_only(request: Request) -> bool:
    """Whether the asker may only look."""
    return request.headers.get(READ_ONLY_HEADER, "0").strip() != "0"


def refuse_read_only(request: Request) -> None:
    """Refuse who may only look. Raises `Unanswered`."""
    if is_read_only(request):
        problem = "This console may only look (--read-only); nothing was changed."
        raise Unanswered(HTTPStatus.FORBIDDEN, "read_only", problem, closes=True)


def bound_ids(task_ids: Sequence[int]) -> None:
    """Refuse more ids than are taken at once. Raises `Unanswered`."""
    if len(task_ids) > MAX_TASK_IDS:
        raise malformed(f"At most {MAX_TASK_IDS} tasks are named at once.")


def bound_sums(sums: Sequence[str]) -> None:
    """Refuse more sums than are taken at once. Raises `Unanswered`."""
    if len(sums) > MAX_TASK_IDS:
        raise malformed(f"At most {MAX_TASK_IDS} contents are named at once.")


def bound_names(machines: Sequence[str]) -> None:
    """Refuse more names of machines than are taken at once. Raises `Unanswered`."""
    if len(machines) > MAX_MACHINES:
        raise malformed(f"At most {MAX_MACHINES} machines are named at once.")


def _said(headers: Mapping[str, str], name: str) -> str:
    """A header is bytes that Starlette reads as Latin-1."""
    return visible(headers.get(name, "").encode("latin-1").decode("utf-8", "surrogateescape")[:MAX_TEXT_CHARS])


def _is_countable(value: Any) -> bool:
    if isinstance(value, int):
        return -HIGHEST <= value <= HIGHEST
    if isinstance(value, msgspec.Struct):
        return all(_is_countable(getattr(value, name)) for name in value.__struct_fields__)
    if isinstance(value, (tuple, list, frozenset)):
        return all(map(_is_countable, value))
    return True
