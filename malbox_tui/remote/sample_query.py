"""The query of an upload: the sample's name, where it came from, and what is asked of it.

`name` and `origin` are bytes, percent-encoded. The others are the fields of `SubmissionOptions`, of its `requires` and of its `run`, by
their own names, except that each tag is a `tag`, each argument an `argument`, each plugin a `plugin`, each option of theirs an
`option`, and the pinned machine is `machine`; what is left out has its default. Numbers and true or false are written as in JSON.
"""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote_from_bytes, unquote_to_bytes

import msgspec

from malbox_tui.model.errors import MalboxError
from malbox_tui.model.sample import SampleName
from malbox_tui.model.submission import SubmissionOptions
from malbox_tui.model.task import RequirementClass, RunOptions

MAX_NAME_BYTES = 4096
"""A name or an origin that is longer is refused (PATH_MAX of Linux)."""

Argument = Annotated[str, msgspec.Meta(max_length=4096)]
Option = Annotated[str, msgspec.Meta(min_length=3, max_length=8192)]
Word = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


class SampleQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All parameters but `name` and `origin`, which need not be text."""

    priority: Annotated[int, msgspec.Meta(ge=-(2**31), lt=2**31)] = 1
    timeout_s: float | None = None
    enforce_timeout: bool | None = None
    again: bool = False
    hold: bool = False
    task_type: Word = "static"
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

    def options(self) -> SubmissionOptions:
        """The same as an engine takes it."""
        return SubmissionOptions(
            priority=self.priority,
            timeout_s=self.timeout_s,
            enforce_timeout=self.enforce_timeout,
            again=self.again,
            hold=self.hold,
            requires=RequirementClass(
                task_type=self.task_type,
                platform=self.platform,
                arch=self.arch,
                tags=self.tag,
                pin=self.machine,
                avoid=self.avoid,
            ),
            run=RunOptions(self.argument, self.memory_dump),
            profile=self.profile,
            plugins=self.plugin,
            plugin_options=self.option,
            owner=self.owner,
            unique=self.unique,
        )


_DEFAULTS = SampleQuery()
LISTS = frozenset({"tag", "avoid", "argument", "plugin", "option"})
"""The parameters that may come several times."""


def sample_query(name: SampleName, options: SubmissionOptions) -> str:
    """The query for a sample, without the question mark."""
    requires = options.requires
    asked = SampleQuery(
        priority=options.priority,
        timeout_s=options.timeout_s,
        enforce_timeout=options.enforce_timeout,
        again=options.again,
        hold=options.hold,
        task_type=requires.task_type,
        platform=requires.platform,
        arch=requires.arch,
        tag=requires.tags,
        machine=requires.pin,
        avoid=requires.avoid,
        argument=options.run.arguments,
        memory_dump=options.run.memory_dump,
        profile=options.profile,
        plugin=options.plugins,
        option=options.plugin_options,
        owner=options.owner,
        unique=options.unique,
    )
    pairs = [("name", name.name), *([("origin", name.origin)] if name.origin else [])]
    for field in SampleQuery.__struct_fields__:
        value = getattr(asked, field)
        if value != getattr(_DEFAULTS, field):
            pairs += [(field, _written(item)) for item in (value if field in LISTS else (value,))]
    return "&".join(f"{field}={quote_from_bytes(value, safe='')}" for field, value in pairs)


def parse_sample_query(query: bytes) -> tuple[SampleName, SubmissionOptions]:
    """What `sample_query` wrote, from the bytes after the question mark. Raises `MalboxError` when it is malformed."""
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
    return SampleName(parts["name"], parts.get("origin", b"")), asked.options()


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
