"""What the two sides of the socket agree on: routes, headers, and the values that are not the model's own.

| route | method | asks | answers |
| --- | --- | --- | --- |
| `/health` | GET | | `Health` |
| `/metrics` | GET | | Prometheus text |
| `/openapi.json` | GET | | the OpenAPI document |
| `/v1/overview` | GET | | `Overview` |
| `/v1/tasks` | GET | filters and window as query parameters | `TaskPage` |
| `/v1/tasks/{id}` | GET | | `TaskRecord` |
| `/v1/tasks/query` | POST | `TaskQuery` | `TaskPage` |
| `/v1/tasks/{id}/results/{plugin}/{name}` | GET | `max_bytes` | the bytes |
| `/v1/results/read` | POST | `Reading` | the bytes |
| `/v1/commands` | POST | `Order` | `CommandOutcome` |
| `/v1/samples` | POST | name, origin, `SubmissionOptions` or a refusal as query parameters, the content as body | a `Receipt` |
| `/v1/actions` | GET | `before`, `limit` | `ActionPage` |
| `/v1/intakes` | GET | `before`, `limit` | `IntakeList` |
| `/v1/intakes/query` | POST | `LineQuery` | `IntakePage` |
| `/v1/events` | GET | `after` (a `Position` as text), `follow` | `StreamLine`s, one JSON object a line, until one side ends |

An error is a `Problem` with a fitting status. Bytes that are no text (names) are percent-encoded in URLs and base64 in JSON. Who asks
is known from the socket (peer credentials) and is never taken from a request.
"""

from __future__ import annotations

import msgspec

from malbox_tui.model.actions import ActionRecord
from malbox_tui.model.commands import Action
from malbox_tui.model.errors import MalboxError
from malbox_tui.model.events import Event, Position
from malbox_tui.model.intake import IntakeView
from malbox_tui.model.overview import Overview
from malbox_tui.model.report import ResultRef

PROTOCOL = 1
"""Grows when a change would make an older side misunderstand; what is only added doesn't."""

PROTOCOL_HEADER = "malbox-protocol"
"""In every answer, and in requests of this client."""
ORIGIN_HEADER = "malbox-origin"
"""Where the asker says it is (`ana@laptop`): shown beside who it is, and trusted for nothing."""
READ_ONLY_HEADER = "malbox-read-only"
"""`1`: the asker may only look; commands and submissions in such a request are refused."""
CONSOLE_HEADER = "malbox-console"
"""A name that a console chooses for itself, new with each start: its stream and its requests belong together by it."""

BEAT_S = 5.0
"""So often a stream that has nothing to tell says that it lives; one that is silent for three times as long is dead."""
MAX_JSON_BYTES = 1024 * 1024
"""A larger JSON body is refused before it is read."""
MAX_READ_BYTES = 64 * 1024 * 1024
"""So much of a result is given in one answer at most."""


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """Who serves. `status` is "ok", "troubled" while there are `troubles` (sentences that an operator has to see), or "stopping" while
    the engine ends."""

    status: str
    engine_id: str
    version: str
    protocol: int
    host: str
    pid: int
    troubles: tuple[str, ...] = ()


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """Why a request was not answered: a short code, and a sentence for a person."""

    code: str
    message: str


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """A command without its actor: that is who holds the other end of the socket."""

    action: Action
    key: str = ""


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """Asks for at most `max_bytes` of a result."""

    reference: ResultRef
    max_bytes: int


class ActionPage(msgspec.Struct, frozen=True, kw_only=True):
    """Actions, the latest first; `more` says that there are earlier ones."""

    rows: tuple[ActionRecord, ...]
    more: bool = False


class IntakeList(msgspec.Struct, frozen=True, kw_only=True):
    """Intakes, the latest first; `more` says that there are earlier ones."""

    rows: tuple[IntakeView, ...]
    more: bool = False


class _Line(msgspec.Struct, frozen=True, tag_field="line"):
    pass


class OverviewLine(_Line, frozen=True, tag="overview"):
    """The first line of a stream, and the one after each gap: the engine as it is at this place."""

    overview: Overview


class EventLine(_Line, frozen=True, tag="event"):
    """The next event."""

    event: Event


class GapLine(_Line, frozen=True, tag="gap"):
    """Events before this place were dropped: the reader was too slow, or asked for a place that is not kept any more."""

    resumes_after: Position


class BeatLine(_Line, frozen=True, tag="beat"):
    """Nothing happened, and the stream lives. `clock` is the engine's time."""

    clock: float


class EndLine(_Line, frozen=True, tag="end"):
    """The engine ends; nothing follows."""


StreamLine = OverviewLine | EventLine | GapLine | BeatLine | EndLine


def position_text(position: Position) -> str:
    """A place as it stands in a URL."""
    return f"{position.engine_id}:{position.epoch}:{position.seq}"


def parse_position(text: str) -> Position:
    """The place that `position_text` wrote. Raises `MalboxError`."""
    engine_id, _, numbers = text.partition(":")
    epoch, _, seq = numbers.partition(":")
    if not (engine_id and epoch.isascii() and epoch.isdigit() and seq.isascii() and seq.isdigit()) or len(text) > 200:
        raise MalboxError(f"{text[:80]!r} is no place in the events; one looks like ENGINE:EPOCH:NUMBER.")
    return Position(engine_id, int(epoch), int(seq))
