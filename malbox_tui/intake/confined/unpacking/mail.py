"""E-mails (RFC 5322) with attachments, by the standard library. One without attachments is a sample itself."""

from __future__ import annotations

import contextlib
import email.policy
from collections.abc import Iterator
from email.header import decode_header, make_header
from email.message import Message
from email.parser import BytesParser

from .outlet import Outlet
from .problems import BrokenArchive, IsSample, as_problem
from .source import Source

MAX_MAIL_BYTES = 128 * 1024 * 1024
"""The standard library reads a mail as a whole, with several copies of its parts."""

BODY_CODE = "body"
BODY_REASON = "It is the text of the message, not an attachment."


def unpack(source: Source, outlet: Outlet) -> None:
    """Raises `IsSample`, `BrokenArchive`, `LimitReached`."""
    if source.size_bytes > MAX_MAIL_BYTES:
        raise BrokenArchive("too_large", f"It is an e-mail of more than {MAX_MAIL_BYTES} bytes; it is taken as one file.")
    try:
        with source.opened() as file:
            parts = list(_parts(BytesParser(policy=email.policy.compat32).parse(file)))
    except Exception as exc:
        raise BrokenArchive(*as_problem(exc)) from exc
    if not any(is_attached for _part, is_attached in parts):
        raise IsSample("sample", "It is an e-mail without attachments, which is a sample itself.")
    for number, (part, is_attached) in enumerate(parts, start=1):
        name = _name(part, number)
        if is_attached:
            outlet.member(name, _content(part))
        else:
            outlet.refuse(name, BODY_CODE, BODY_REASON)


def _parts(message: Message) -> Iterator[tuple[Message, bool]]:
    """The parts that have content, and whether each is an attachment; a mail that is attached is one part."""
    waiting = [message]
    while waiting:
        part = waiting.pop()
        payload = part.get_payload()
        if part.get_content_type() == "message/rfc822" and part is not message:
            yield part, True
        elif isinstance(payload, list):
            waiting += [inner for inner in reversed(payload) if isinstance(inner, Message)]
        else:
            yield part, not _is_body(part)


def _is_body(part: Message) -> bool:
    if part.get_filename() is not None or part.get_content_disposition() == "attachment":
        return False
    return part.get_content_type() in ("text/plain", "text/html")


def _content(part: Message) -> Iterator[bytes]:
    payload = part.get_payload()
    if isinstance(payload, list):
        for inner in payload:
            if isinstance(inner, Message):
                yield inner.as_bytes(policy=email.policy.compat32)
        return
    decoded = part.get_payload(decode=True)
    yield decoded if isinstance(decoded, bytes) else b""


def _name(part: Message, number: int) -> bytes:
    raw = part.get_filename()
    if raw is None:
        suffix = "eml" if part.get_content_type() == "message/rfc822" else part.get_content_type().replace("/", ".")
        return f"part {number}.{suffix}".encode("utf-8", "surrogateescape")
    with contextlib.suppress(ValueError, LookupError):
        raw = str(make_header(decode_header(raw)))
    return raw.encode("utf-8", "surrogateescape" if _has_only_escapes(raw) else "surrogatepass")


def _has_only_escapes(text: str) -> bool:
    return all("\udc80" <= char <= "\udcff" for char in text if "\ud800" <= char <= "\udfff")
