"""A plugin's report as lines of text. Every block of Malbox's has a form here; what is none of them is shown as JSON.

Reports come from code that parsed hostile bytes: everything in them may be of the wrong type, and every text is escaped.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from rich.text import Text

from malbox_tui.model.report import PluginRun
from malbox_tui.tui.moment import Moment
from malbox_tui.tui.task_page import heading, of_what
from malbox_tui.tui.text import fit, joined_cells, plain, shown

MAX_LINES = 2000
MAX_CELL = 40
_INDENT = "  "


def report_lines(run: PluginRun, content: bytes, moment: Moment) -> list[Text]:
    """The report's parts in order; a report that can't be read says so."""
    title = heading(f"Report of {of_what(f'{run.name} {run.version}', run)}", moment)
    try:
        report = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return [plain(""), title, plain("It can't be read, or is too large to be shown here.", moment.tone("late"))]
    lines = [plain(""), title, *_of_report(_mapping(report), moment)]
    if len(lines) > MAX_LINES:
        lines[MAX_LINES:] = [plain(f"… and {len(lines) - MAX_LINES} more lines", moment.tone("muted"))]
    return lines


def _of_report(report: dict[str, Any], moment: Moment) -> Iterable[Text]:
    if summary := report.get("summary"):
        yield from _wrapped(summary, "")
    for indicator in map(_mapping, _list(report.get("indicators"))):
        yield _pair(_text(indicator.get("kind")), _text(indicator.get("value")), moment, _text(indicator.get("context")))
    for technique in map(_mapping, _list(report.get("ttps"))):
        yield _pair(_text(technique.get("id")), _text(technique.get("name")), moment, _text(technique.get("evidence")))
    for section in map(_mapping, _list(report.get("sections"))):
        yield plain("")
        yield shown(_text(section.get("title")), "bold")
        for block in map(_mapping, _list(section.get("blocks"))):
            yield from _of_block(block, moment)


def _of_block(block: dict[str, Any], moment: Moment) -> Iterable[Text]:
    form = _BLOCKS.get(_text(block.get("type")))
    try:
        return list(form(block, moment) if form is not None else _json(block, moment))
    except (ValueError, TypeError, RecursionError):
        return [plain("a block that can't be shown", moment.tone("late"))]


def _markdown(block: dict[str, Any], moment: Moment) -> Iterable[Text]:
    return _wrapped(block.get("text"), "")


def _callout(block: dict[str, Any], moment: Moment) -> Iterable[Text]:
    level = _text(block.get("level"))
    tones = {"info": "accent", "success": "good", "warn": "late", "error": "bad"}
    lines = list(_wrapped(block.get("text"), _INDENT))
    return [shown(f"[{level}]", moment.tone(tones.get(level, "muted"))), *lines]


def _heading(block: dict[str, Any], moment: Moment) -> Iterable[Text]:
    return [shown(_text(block.get("text")), "bold")]


def _divider(block: dict[str, Any], moment: Moment) -> Iterable[Text]:
    return [plain("─" * 40, moment.tone("muted"))]


def _kv(block: dict[str, Any], moment: Moment) -> Iterable[Text]:
    pairs = map(_mapping, _list(block.get("pairs")))
    return [_pair(_text(pair.get("key")), _text(pair.get("value")), moment) for pair in pairs]


def _table(block: dict[str, Any], moment: Moment) -> Iterable[Text]:
    columns = [_mapping(column) for column in _list(block.get("columns"))]
    keys = [_text(column.get("key")) for column in columns]
    titles = [shown(_text(column.get("label")), "bold") for column in columns]
    rows = [[shown(_text(_mapping(row).get(key))) for key in keys] for row in _list(block.get("rows"))]
    widths = [min(MAX_CELL, max((cell.cell_len for cell in column), default=1)) for column in zip(titles, *rows, strict=True)]
    return [joined_cells([fit(cell, width) for cell, width in zip(row, widths, strict=True)], "  ") for row in [titles, *rows]]


def _code(block: dict[str, Any], moment: Moment) -> Iterable[Text]:
    return [shown(_INDENT + line) for line in _text(block.get("text")).splitlines()]


def _json(block: dict[str, Any], moment: Moment) -> Iterable[Text]:
    value = block.get("data", block)
    return [shown(_INDENT + line) for line in msgspec.json.format(msgspec.json.encode(value), indent=2).decode().splitlines()]


def _hex(block: dict[str, Any], moment: Moment) -> Iterable[Text]:
    try:
        data = base64.b64decode(_text(block.get("bytes_b64", block.get("bytes"))), validate=True)
    except (binascii.Error, ValueError):
        return [plain("bytes that can't be read", moment.tone("late"))]
    offset = block.get("offset") if isinstance(block.get("offset"), int) else 0
    lines = []
    for start in range(0, len(data), 16):
        row = data[start : start + 16]
        letters = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        line = plain(f"{(offset or 0) + start:08x}  ", moment.tone("muted"))
        line.append(f"{row.hex(' '):<48} {letters}")
        lines.append(line)
    return lines


def _image(block: dict[str, Any], moment: Moment) -> Iterable[Text]:
    return [_pair("image", _text(block.get("artifact")), moment, _text(block.get("caption")))]


def _download(block: dict[str, Any], moment: Moment) -> Iterable[Text]:
    return [_pair("result", _text(block.get("artifact")), moment, _text(block.get("label")))]


def _iocs(block: dict[str, Any], moment: Moment) -> Iterable[Text]:
    items = map(_mapping, _list(block.get("items")))
    return [_pair(_text(item.get("kind")), _text(item.get("value")), moment, _text(item.get("context"))) for item in items]


def _ttps(block: dict[str, Any], moment: Moment) -> Iterable[Text]:
    items = map(_mapping, _list(block.get("items")))
    return [_pair(_text(item.get("id")), _text(item.get("name")), moment, _text(item.get("evidence"))) for item in items]


def _tree(block: dict[str, Any], moment: Moment) -> Iterable[Text]:
    lines: list[Text] = []
    waiting = [(node, 0) for node in reversed(_list(block.get("nodes")))]
    while waiting and len(lines) < MAX_LINES:
        node, depth = waiting.pop()
        lines.append(shown(_INDENT * min(depth, 20) + _text(_mapping(node).get("label"))))
        waiting += [(child, depth + 1) for child in reversed(_list(_mapping(node).get("children")))]
    return lines


def _timeline(block: dict[str, Any], moment: Moment) -> Iterable[Text]:
    events = map(_mapping, _list(block.get("events")))
    return [_pair(_text(event.get("ts")), _text(event.get("label")), moment, _text(event.get("severity"))) for event in events]


def _graph(block: dict[str, Any], moment: Moment) -> Iterable[Text]:
    edges = map(_mapping, _list(block.get("edges")))
    names = {_text(node.get("id")): _text(node.get("label")) for node in map(_mapping, _list(block.get("nodes")))}
    lines = []
    for edge in edges:
        ends = [_text(edge.get(key)) for key in ("from", "to")]
        lines.append(shown(f"{names.get(ends[0], ends[0])} → {names.get(ends[1], ends[1])}  {_text(edge.get('label'))}".rstrip()))
    return lines or [shown(label) for label in names.values()]


_BLOCKS: dict[str, Callable[[dict[str, Any], Moment], Iterable[Text]]] = {
    "markdown": _markdown,
    "callout": _callout,
    "heading": _heading,
    "divider": _divider,
    "kv": _kv,
    "table": _table,
    "code": _code,
    "json": _json,
    "hex": _hex,
    "image": _image,
    "download": _download,
    "iocs": _iocs,
    "ttps": _ttps,
    "tree": _tree,
    "timeline": _timeline,
    "graph": _graph,
}


def _pair(key: str, value: str, moment: Moment, note: str = "") -> Text:
    line = fit(shown(key, moment.tone("muted")), 16)
    line.append(" ")
    line.append_text(shown(value))
    if note:
        line.append("  ")
        line.append_text(shown(note, moment.tone("muted")))
    return line


def _wrapped(value: object, indent: str) -> Iterable[Text]:
    for line in _text(value).splitlines():
        text = shown(indent + line)
        text.no_wrap = False
        yield text


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return msgspec.json.encode(value).decode("utf-8", "replace")


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
