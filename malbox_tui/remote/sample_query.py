"""The query of an upload: the sample's name, where it came from, and what is asked of it.

`name` and `origin` are bytes, percent-encoded. The others are the fields of `SubmissionOptions`, of its `requires` and of its `run`, by
their own names, except that each tag is a `tag`, each argument an `argument`, each plugin a `plugin`, each option of theirs an
`option`, and the pinned machine is `machine`; what is left out has its default. Numbers and true or false are written as in JSON.

Of what a client found and can't hand in, the account is told by the same way, without a content: `refused` and `reason` say why,
`opened` what is in an archive whose members are handed in. Uploads of one `intake` are one account's, which is called `title`;
`archive` is the SHA-256 of the archive that a member was in.
"""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote_from_bytes, unquote_to_bytes

import msgspec

from malbox_tui.model.errors import MalboxError
from malbox_tui.model.intake import IntakeLabel, Way
from malbox_tui.model.sample import SampleName
from malbox_tui.model.submission import Offer, OpenedArchive, Refusal, SubmissionOptions
from malbox_tui.model.task import RequirementClass, RunOptions

MAX_NAME_BYTES = 4096
"""A name or an origin that is longer is refused (PATH_MAX of Linux)."""
MOST_WORD_CHARACTERS = 2000
"""Longer sentences for an account are cut."""

Argument = Annotated[str, msgspec.Meta(max_length=4096)]
Option = Annotated[str, msgspec.Meta(min_length=3, max_length=8192)]
Word = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
Words = Annotated[str, msgspec.Meta(max_length=MOST_WORD_CHARACTERS)]
Sum = Annotated[str, msgspec.Meta(pattern="^([0-9a-f]{64})?$")]


_LEFT_OUT = RequirementClass().task_type
"""What a task is of whose type nothing is said: a profile may make it another. Where this is said, none does."""


class SampleQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All parameters but `name` and `origin`, which need not be text."""

    priority: Annotated[int, msgspec.Meta(ge=-(2**31), lt=2**31)] = 1
    timeout_s: float | None = None
    enforce_timeout: bool | None = None
    again: bool = False
    hold: bool = False
    task_type: Word | None = None
    platform: Word | None = None
    arch: Word | None = None
    tag: Annotated[tuple[Word, ...], msgspec.Meta(max_length=100)] = ()
    machine: Word | None = None
    avoid: Annotated[tuple[Word, ...], msgspec.Meta(max_length=100)] = ()
    argument: Annotated[tuple[Argument, ...], msgspec.Meta(max_length=100)] = ()
    memory_dump: bool = False
    profile: Annotated[str, msgspec.Meta(max_length=200)] = ""
    plugin: Annotated[tuple[Word, ...], msgspec.Meta(max_length=100)] = ()
    option: Annotated[tuple[Option, ...], msgspec.Meta(max_length=100)] = ()
    owner: Annotated[str, msgspec.Meta(max_length=200)] = ""
    unique: bool = False
    way: Way = Way.API
    title: Words = ""
    intake: Annotated[str, msgspec.Meta(max_length=200)] = ""
    archive: Sum = ""
    refused: Annotated[str, msgspec.Meta(max_length=200)] = ""
    reason: Words = ""
    things: Annotated[int, msgspec.Meta(ge=1, lt=2**53)] = 1
    opened: Words = ""
    sha256: Sum = ""
    size_bytes: Annotated[int, msgspec.Meta(ge=0, lt=2**53)] = 0

    def found(self) -> tuple[Refusal | None, OpenedArchive | None]:
        """What there is to say instead of a content: that it was refused, or that it is an opened archive; neither: it has one."""
        if self.refused:
            return Refusal(self.refused, self.reason, self.things), None
        if self.opened:
            return None, OpenedArchive(sha256=self.sha256, size_bytes=self.size_bytes, words=self.opened)
        return None, None

    def options(self) -> SubmissionOptions:
        """The same as an engine takes it."""
        return SubmissionOptions(
            priority=self.priority,
            timeout_s=self.timeout_s,
            enforce_timeout=self.enforce_timeout,
            again=self.again,
            hold=self.hold,
            requires=RequirementClass(
                task_type=self.task_type or _LEFT_OUT,
                platform=self.platform,
                arch=self.arch,
                tags=self.tag,
                pin=self.machine,
                avoid=self.avoid,
            ),
            stays_static=self.task_type == _LEFT_OUT,
            run=RunOptions(self.argument, self.memory_dump),
            profile=self.profile,
            intake=IntakeLabel(self.way, self.title, self.intake),
            plugins=self.plugin,
            plugin_options=self.option,
            owner=self.owner,
            unique=self.unique,
        )


_DEFAULTS = SampleQuery()
LISTS = frozenset({"tag", "avoid", "argument", "plugin", "option"})
"""The parameters that may come several times."""


def sample_query(offer: Offer, options: SubmissionOptions) -> str:
    """The query for a sample, without the question mark. Of what is too long, the end is told."""
    name, requires, label = offer.name, options.requires, options.intake
    refusal, opened = offer.refusal, offer.opened
    asked = SampleQuery(
        priority=options.priority,
        timeout_s=options.timeout_s,
        enforce_timeout=options.enforce_timeout,
        again=options.again,
        hold=options.hold,
        task_type=None if requires.task_type == _LEFT_OUT and not options.stays_static else requires.task_type,
        platform=requires.platform,
        arch=requires.arch,
        tag=requires.tags,
        machine=requires.pin,
        avoid=requires.avoid,
        argument=options.run.arguments,
        memory_dump=options.run.memory_dump,
        profile=options.profile,
        way=label.way,
        title=_cut(label.title),
        intake=label.key,
        archive=name.archive,
        refused="" if refusal is None else refusal.code,
        reason="" if refusal is None else _cut(refusal.reason),
        things=1 if refusal is None else refusal.things,
        opened="" if opened is None else _cut(opened.words),
        sha256="" if opened is None else opened.sha256,
        size_bytes=0 if opened is None else opened.size_bytes,
        plugin=options.plugins,
        option=options.plugin_options,
        owner=options.owner,
        unique=options.unique,
    )
    pairs = [("name", name.name[-MAX_NAME_BYTES:]), *([("origin", name.origin[-MAX_NAME_BYTES:])] if name.origin else [])]
    for field in SampleQuery.__struct_fields__:
        value = getattr(asked, field)
        if value != getattr(_DEFAULTS, field):
            pairs += [(field, _written(item)) for item in (value if field in LISTS else (value,))]
    return "&".join(f"{field}={quote_from_bytes(value, safe='')}" for field, value in pairs)


def parse_sample_query(query: bytes) -> tuple[Offer, SubmissionOptions]:
    """The offer, without its content, and what is asked of it: what `sample_query` wrote, from the bytes after the question mark.

    Raises `MalboxError` when it is malformed.
    """
    parts: dict[str, bytes] = {}
    texts: dict[str, str | list[str]] = {}
    for field, value in query_pairs(query):
        if field in LISTS:
            found = texts.setdefault(field, [])
            assert isinstance(found, list)
            found.append(_text(field, value))
        elif field in texts or field in parts:
            raise MalboxError(f"The parameter {field!r} is given twice.")
        elif field in ("name", "origin"):
            parts[field] = _bounded(field, value)
        else:
            texts[field] = _text(field, value)
    if not parts.get("name"):
        raise MalboxError("The parameter 'name' is missing: what the sample is called.")
    try:
        asked = msgspec.convert(texts, SampleQuery, strict=False)
    except msgspec.ValidationError as exc:
        raise MalboxError(f"The query is malformed: {exc}") from exc
    refusal, opened = asked.found()
    name = SampleName(parts["name"], parts.get("origin", b""), asked.archive)
    return Offer(name, refusal=refusal, opened=opened), asked.options()


def query_pairs(query: bytes) -> list[tuple[str, bytes]]:
    """The parameters of a query in order, their values as bytes. Raises `MalboxError` when a name is no ASCII text."""
    pairs = []
    for part in query.split(b"&"):
        if not part:
            continue
        field, _, value = part.partition(b"=")
        try:
            pairs.append((unquote_to_bytes(field).decode("ascii"), unquote_to_bytes(value.replace(b"+", b" "))))
        except UnicodeDecodeError as exc:
            raise MalboxError("The name of a parameter is no ASCII text.") from exc
    return pairs


def _cut(words: str) -> str:
    return words[:MOST_WORD_CHARACTERS].encode("utf-8", "replace").decode()


def _written(value: object) -> bytes:
    return value.encode() if isinstance(value, str) else msgspec.json.encode(value)


def _text(field: str, value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as exc:
        raise MalboxError(f"The parameter {field!r} is no UTF-8 text.") from exc


def _bounded(field: str, value: bytes) -> bytes:
    if len(value) > MAX_NAME_BYTES:
        raise MalboxError(f"The parameter {field!r} is longer than {MAX_NAME_BYTES} bytes.")
    return value
