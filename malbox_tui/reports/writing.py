"""A task's report in the form that is asked for, as text; and which form a file's name asks for."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from pathlib import PurePath
from types import MappingProxyType

import msgspec

from malbox_tui.model.queries import TaskRecord
from malbox_tui.model.report import ResultRef
from malbox_tui.reports.as_html import as_html
from malbox_tui.reports.as_markdown import as_markdown
from malbox_tui.reports.blocks import elements_of
from malbox_tui.reports.document import TaskReport, as_value, elements
from malbox_tui.reports.gathering import PluginReport, Read, gathered
from malbox_tui.reports.pictures import pictures_named, read_pictures


class Form(StrEnum):
    """What a report is written as."""

    JSON = "json"
    MARKDOWN = "markdown"
    HTML = "html"


ENDINGS: Mapping[str, Form] = MappingProxyType(
    {".json": Form.JSON, ".md": Form.MARKDOWN, ".markdown": Form.MARKDOWN, ".html": Form.HTML, ".htm": Form.HTML}
)
"""The ending of a file's name → the form that it asks for."""


async def written(read: Read, record: TaskRecord, form: Form) -> str:
    """The report of a task. Raises `EngineStopped` and `Disconnected`; a report that can't be read is said to be one."""
    reports = await gathered(read, record.task.plugins, record.results_removed_at)
    pictures = await read_pictures(read, _named(reports)) if form is Form.HTML else {}
    return _WRITERS[form](TaskReport(record, reports, pictures))


def form_of(path: PurePath) -> Form | None:
    """The form that the name of a file asks for; None when it doesn't say."""
    return ENDINGS.get(path.suffix.lower())


def _named(reports: Iterable[PluginReport]) -> Iterator[ResultRef]:
    return (found for part in reports for found in pictures_named(part, elements_of(part.content)))


def _as_json(report: TaskReport) -> str:
    """In ASCII, so that nothing in it acts on a terminal. What JSON has no number for is null."""
    value = msgspec.json.decode(msgspec.json.encode(as_value(report)))
    return json.dumps(value, indent=2, ensure_ascii=True, allow_nan=False) + "\n"


_WRITERS: Mapping[Form, Callable[[TaskReport], str]] = MappingProxyType(
    {
        Form.JSON: _as_json,
        Form.MARKDOWN: lambda report: as_markdown(elements(report)),
        Form.HTML: lambda report: as_html(report.title, elements(report)),
    }
)
