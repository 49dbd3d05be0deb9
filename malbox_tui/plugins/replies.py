"""What a plugin's process may say, as typed values, and the checks of the two results that the engine itself reads.

Everything here comes from code that has parsed hostile bytes: it is decoded with types and bounds, and its text is cut.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from malbox_tui.model.report import ArtifactRef, Identification, Indicator, Named, PluginIdentity, Technique, Verdict
from malbox_tui.model.verdict import named_in

MAX_REPORT_BYTES = 4 * 1024 * 1024
WHOLLY_CHECKED_REPORT_BYTES = 256 * 1024
"""Of a larger report the lists are checked to be JSON, but not item by item: that would hold up the loop for tens of milliseconds.
Readers of reports check what they show."""
MAX_IDENTIFICATION_BYTES = 64 * 1024
MAX_IDENTIFICATION_TAGS = 16
MAX_TAG_CHARACTERS = 32
MAX_LABELS = 256
MAX_LABEL_CHARACTERS = 200
MAX_REASON_CHARACTERS = 500

_Line = Annotated[str, msgspec.Meta(max_length=4096)]
_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


class _Reply(msgspec.Struct, frozen=True, tag_field="kind", kw_only=True):
    pass


class _RunReply(_Reply, frozen=True, kw_only=True):
    run: int


class Ready(_Reply, frozen=True, tag="ready", kw_only=True):
    """`on_start` is done and the plugin is not unhealthy."""

    state: str = "healthy"
    reason: _Line = ""
    takes_batches: bool = False
    takes_events: bool = False


class NotReady(_Reply, frozen=True, tag="not_ready", kw_only=True):
    """The plugin can't work; the payload is a traceback, if there was one."""

    reason: _Line = ""


class Health(_Reply, frozen=True, tag="health", kw_only=True):
    """An answer to the question for health."""

    state: str
    reason: _Line = ""


class Begun(_RunReply, frozen=True, tag="begun", kw_only=True):
    """The process has taken the task up."""


class ResultBegin(_RunReply, frozen=True, tag="result_begin", kw_only=True):
    """A result follows, in chunks."""

    name: str
    format: str


class ResultChunk(_RunReply, frozen=True, tag="result_chunk", kw_only=True):
    """The payload belongs to the result that began last."""


class ResultEnd(_RunReply, frozen=True, tag="result_end", kw_only=True):
    """The result is whole."""


class Progress(_RunReply, frozen=True, tag="progress", kw_only=True):
    """How far the run is."""

    fraction: Annotated[float, msgspec.Meta(ge=0, le=1)]
    message: _Line = ""


class Warned(_RunReply, frozen=True, tag="warning", kw_only=True):
    """A warning about the task."""

    message: _Line


class Emitted(_RunReply, frozen=True, tag="event", kw_only=True):
    """An event for plugins that subscribed."""

    event: _Name
    id: int | None = None
    source: _Line | None = None
    result_name: _Line | None = None


class Done(_RunReply, frozen=True, tag="done", kw_only=True):
    """The run ended as it should."""


class Failed(_RunReply, frozen=True, tag="failed", kw_only=True):
    """The handler raised `error`; the payload is the traceback."""

    error: _Name


class Canceled(_RunReply, frozen=True, tag="canceled", kw_only=True):
    """The handler was interrupted, as asked."""


RunReply = Begun | ResultBegin | ResultChunk | ResultEnd | Progress | Warned | Emitted | Done | Failed | Canceled
Reply = Ready | NotReady | Health | RunReply

REPLIES: msgspec.json.Decoder[Reply] = msgspec.json.Decoder(Reply)


class _Block(msgspec.Struct, frozen=True):
    """A block's type; the rest is checked to be JSON and not built."""

    type: str


class _Section(msgspec.Struct, frozen=True):
    id: str
    title: str
    blocks: tuple[_Block, ...] = ()


class _ReportHead(msgspec.Struct, frozen=True, kw_only=True):
    """What the engine itself reads of a report."""

    plugin: PluginIdentity
    schema_version: int = 1
    summary: str | None = None
    verdict: Verdict | None = None


class _ReportOutline(_ReportHead, frozen=True, kw_only=True):
    """A report without the contents of its blocks."""

    indicators: tuple[Indicator, ...] = ()
    ttps: tuple[Technique, ...] = ()
    artifacts: tuple[ArtifactRef, ...] = ()
    sections: tuple[_Section, ...] = ()
    raw: msgspec.Raw = msgspec.Raw(b"null")


class ReportFacts(msgspec.Struct, frozen=True):
    """What the engine keeps of a report. Of one that is too large to be checked item by item, what it names is not counted."""

    verdict: Verdict | None
    named: Named


class BadResult(Exception):
    """A result that can't be taken; the text says why."""


_HEAD = msgspec.json.Decoder(_ReportHead)
_OUTLINE = msgspec.json.Decoder(_ReportOutline)
_IDENTIFICATION = msgspec.json.Decoder(Identification)


def facts_of_report(content: bytes, plugin: str) -> ReportFacts:
    """The verdict of the report of this plugin and what it names, cut to bounds. Raises `BadResult` for what is not one of its own."""
    try:
        text = content.decode("utf-8")
        report = (_OUTLINE if len(content) <= WHOLLY_CHECKED_REPORT_BYTES else _HEAD).decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as exc:
        raise BadResult(f"its report is malformed: {shortened(str(exc))}") from exc
    if report.schema_version != 1:
        raise BadResult(f"its report has schema version {report.schema_version}; this version reads 1")
    if report.plugin.id != plugin:
        raise BadResult(f"its report claims to be by another plugin ({shortened(report.plugin.id, 80)})")
    named = named_in(report.indicators, report.ttps) if isinstance(report, _ReportOutline) else Named(is_whole=False)
    return ReportFacts(_checked(report.verdict), named)


def _checked(verdict: Verdict | None) -> Verdict | None:
    if verdict is None:
        return None
    if verdict.score is not None and not 0 <= verdict.score <= 100:
        raise BadResult(f"its report has a score of {verdict.score}; scores are 0 to 100")
    labels = tuple(label[:MAX_LABEL_CHARACTERS] for label in verdict.labels[:MAX_LABELS])
    return msgspec.structs.replace(verdict, labels=labels)


def identification_of(content: bytes) -> Identification:
    """What kind of content the sample is. Raises `BadResult` when the text is not that, or is too long."""
    try:
        found = _IDENTIFICATION.decode(content)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as exc:
        raise BadResult(f"its identification is malformed: {shortened(str(exc))}") from exc
    if not 1 <= len(found.kind) <= 32:
        raise BadResult("its identification has no kind of 1 to 32 characters")
    cut = {name: value[:200] for name, value in msgspec.structs.asdict(found).items() if isinstance(value, str)}
    tags = tuple(dict.fromkeys(tag[:MAX_TAG_CHARACTERS] for tag in found.tags[:MAX_IDENTIFICATION_TAGS] if tag))
    return msgspec.structs.replace(found, tags=tags, **cut)


def shortened(text: str, characters: int = MAX_REASON_CHARACTERS) -> str:
    """`text` on one line, cut to so many characters."""
    line = " ".join(text.split())
    return line if len(line) <= characters else line[: characters - 1] + "…"
