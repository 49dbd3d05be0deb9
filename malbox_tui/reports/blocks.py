"""A plugin's report as elements. Every block of Malbox's has a form; what is none of them is shown as JSON.

Reports come from code that parsed hostile bytes: everything in them may be of the wrong type, and is then left out or shown as JSON.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec

from malbox_tui.reports.defang import defanged
from malbox_tui.reports.elements import (
    Code,
    Dump,
    Element,
    Heading,
    Note,
    Paragraph,
    Pointer,
    Problem,
    Rule,
    Table,
    Tree,
)

MAX_TREE_DEPTH = 64
"""Deeper nodes are shown at this depth."""
_LARGEST_OFFSET = 2**63

Block = Mapping[str, Any]


def elements_of(report: object, level: int = 3) -> Iterator[Element]:
    """What there is in a report, in the order in which it is read: summary, indicators, techniques, results, sections; the titles of
    sections are of this level."""
    content = mapping(report)
    if summary := text_of(content.get("summary")):
        yield Paragraph(summary)
    if indicators := _mappings(content.get("indicators")):
        yield _indicators(indicators)
    if techniques := _mappings(content.get("ttps")):
        yield _techniques(techniques)
    if artifacts := _mappings(content.get("artifacts")):
        yield _rows(artifacts, ("result_name", "kind", "description"), ("result", "kind", "what it is"))
    for section in _mappings(content.get("sections")):
        yield Heading(level, text_of(section.get("title")) or text_of(section.get("id")))
        for block in _mappings(section.get("blocks")):
            yield from _of_block(block, level)
    if (raw := content.get("raw")) is not None:
        yield Heading(level, "Raw")
        yield _json({"data": raw})


def text_of(value: object) -> str:
    """Text as it is; anything else as JSON, and nothing as nothing."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return msgspec.json.encode(value).decode()


def mapping(value: object) -> Block:
    """A mapping; anything else is an empty one."""
    return value if isinstance(value, dict) else {}


def _mappings(value: object) -> list[Block]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _of_block(block: Block, level: int) -> Iterable[Element]:
    """A block that is nested too deeply to be written is said to be one."""
    kind = text_of(block.get("type"))
    try:
        if kind == "heading":
            return [_heading(block, level)]
        form = _FORMS.get(kind)
        return [form(block) if form is not None else _json(block)]
    except (ValueError, TypeError, RecursionError):
        return [Problem("A block that can't be shown.")]


def _heading(block: Block, level: int) -> Element:
    asked = block.get("level")
    steps = asked if isinstance(asked, int) and 1 <= asked <= 6 else 1
    return Heading(min(6, level + steps), text_of(block.get("text")))


def _pairs(block: Block) -> Element:
    return Table((), [(text_of(pair.get("key")), text_of(pair.get("value"))) for pair in _mappings(block.get("pairs"))])


def _table(block: Block) -> Element:
    columns = _mappings(block.get("columns"))
    keys = [text_of(column.get("key")) for column in columns]
    titles = [text_of(column.get("label")) or key for column, key in zip(columns, keys, strict=True)]
    return Table(titles, [[text_of(row.get(key)) for key in keys] for row in _mappings(block.get("rows"))])


def _rows(items: Sequence[Block], keys: Sequence[str], titles: Sequence[str]) -> Table:
    """A column for each key that one of the items at least has; the first two are always there."""
    rows = [[text_of(item.get(key)) for key in keys] for item in items]
    kept = [place for place in range(len(keys)) if place < 2 or any(row[place] for row in rows)]
    return Table([titles[place] for place in kept], [[row[place] for place in kept] for row in rows])


def _indicators(items: Sequence[Block]) -> Table:
    safe = [{**item, "value": defanged(text_of(item.get("kind")), text_of(item.get("value")))} for item in items]
    return _rows(safe, ("kind", "value", "context", "first_seen"), ("kind", "value", "where", "first seen"))


def _techniques(items: Sequence[Block]) -> Table:
    return _rows(items, ("id", "name", "evidence"), ("id", "technique", "evidence"))


def _dump(block: Block) -> Element:
    try:
        content = base64.b64decode(text_of(block.get("bytes_b64", block.get("bytes"))), validate=True)
    except (binascii.Error, ValueError):
        return Problem("Bytes that can't be read.")
    offset = block.get("offset")
    return Dump(content, offset if isinstance(offset, int) and 0 <= offset < _LARGEST_OFFSET else 0)


def _tree(block: Block) -> Element:
    nodes: list[tuple[int, str, str]] = []
    waiting = [(node, 0) for node in reversed(_mappings(block.get("nodes")))]
    while waiting:
        node, depth = waiting.pop()
        nodes.append((min(depth, MAX_TREE_DEPTH), text_of(node.get("label")), text_of(node.get("meta"))))
        waiting += [(child, depth + 1) for child in reversed(_mappings(node.get("children")))]
    return Tree(nodes)


def _graph(block: Block) -> Element:
    """Its edges by the labels of their nodes, then the nodes that have none."""
    nodes = {text_of(node.get("id")): node for node in _mappings(block.get("nodes"))}
    edges = _mappings(block.get("edges"))

    def name(end: object) -> str:
        node = nodes.get(text_of(end))
        return text_of(end) if node is None else text_of(node.get("label"))

    linked = {text_of(edge.get(end)) for edge in edges for end in ("from", "to")}
    rows = [(name(edge.get("from")), text_of(edge.get("label")), name(edge.get("to"))) for edge in edges]
    rows += [(text_of(node.get("label")), "", "") for key, node in nodes.items() if key not in linked]
    return Table(("from", "what", "to"), rows)


def _json(block: Block) -> Code:
    value = block.get("data", block)
    return Code("json", msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


_FORMS: Mapping[str, Callable[[Block], Element]] = MappingProxyType(
    {
        "markdown": lambda block: Paragraph(text_of(block.get("text"))),
        "callout": lambda block: Note(text_of(block.get("level")), text_of(block.get("text"))),
        "divider": lambda block: Rule(),
        "kv": _pairs,
        "table": _table,
        "code": lambda block: Code(text_of(block.get("language")), text_of(block.get("text"))),
        "json": _json,
        "hex": _dump,
        "image": lambda block: Pointer("image", text_of(block.get("artifact")), text_of(block.get("caption"))),
        "download": lambda block: Pointer("result", text_of(block.get("artifact")), text_of(block.get("label"))),
        "iocs": lambda block: _indicators(_mappings(block.get("items"))),
        "ttps": lambda block: _techniques(_mappings(block.get("items"))),
        "tree": _tree,
        "timeline": lambda block: _rows(
            _mappings(block.get("events")), ("ts", "label", "severity", "meta"), ("time", "what", "severity", "more")
        ),
        "graph": _graph,
    }
)
"""A type of block, but for headings, → what it becomes."""
