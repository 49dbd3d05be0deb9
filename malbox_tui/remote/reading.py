"""What a client makes of an answer: whether it is an engine's that this program understands, its value, or the error in it."""

from __future__ import annotations

from typing import Any

import msgspec

from malbox_tui.model.errors import EngineMismatch, EngineStopped, MalboxError, RefusedCommand, StoreError
from malbox_tui.remote.protocol import PROTOCOL, PROTOCOL_HEADER, Problem
from malbox_tui.remote.wire import Answer, ConnectionLost, Head

_ERRORS: dict[str, type[MalboxError]] = {"store": StoreError, "refused": RefusedCommand, "read_only": RefusedCommand}
"""By the code of a problem; what is not listed has no class of its own."""


class Declined(Exception):
    """A request was not answered as it was meant: `problem` says why."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        super().__init__(problem.message)


def value_of(answer: Answer, kind: Any, where: str) -> Any:
    """The value of the type `kind`. Raises `Declined`, `EngineMismatch`, `ConnectionLost`."""
    body = body_of(answer, where)
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.DecodeError as exc:
        raise ConnectionLost(f"the answer can't be understood ({exc})") from exc


def body_of(answer: Answer, where: str) -> bytes:
    """The bytes of an answer that is what was asked for. Raises as `value_of` does."""
    check_protocol(answer.head, where)
    if answer.head.status < 400:
        return answer.body
    try:
        raise Declined(msgspec.json.decode(answer.body, type=Problem))
    except msgspec.DecodeError as exc:
        raise ConnectionLost(f"it answered {answer.head.status}, and not why") from exc


def check_protocol(head: Head, where: str) -> None:
    """Raises `EngineMismatch` unless an engine answered that speaks as this program does."""
    theirs = head.headers.get(PROTOCOL_HEADER, "")
    if theirs == str(PROTOCOL):
        return
    if not (theirs.isascii() and theirs.isdigit()):
        raise EngineMismatch(f"What answers at {where} is no engine of malbox-tui. Look what listens there, or attach elsewhere.")
    older = "the engine" if int(theirs) < PROTOCOL else "this malbox-tui"
    remedy = (
        "upgrade it and start it again"
        if int(theirs) < PROTOCOL
        else "upgrade it, or attach with the version that the engine has"
    )
    raise EngineMismatch(
        f"The engine at {where} speaks protocol {theirs}, this program {PROTOCOL}: {older} is the older one; {remedy}."
    )


def error_of(problem: Problem) -> MalboxError:
    """The error that an engine in this process would have raised."""
    if problem.code == "stopping":
        return EngineStopped()
    return _ERRORS.get(problem.code, MalboxError)(problem.message)
