"""A document as Markdown (CommonMark with GitHub's tables). Nothing of a sample is ever markup, a link or HTML in it: every sign that
could begin one is escaped (https://spec.commonmark.org/0.31.2/#backslash-escapes).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from malbox_tui.model.sample import visible
from malbox_tui.reports.elements import (
    Code,
    Dump,
    Element,
    Heading,
    Note,
    Paragraph,
    Picture,
    Pointer,
    Problem,
    Rule,
    Said,
    Table,
    Tree,
    dump_row,
    dump_rows,
)
from malbox_tui.reports.words import sentence

_SIGNS = re.compile(r"[!-/:-@\[-`{-~]")
"""The ASCII punctuation, each of which a backslash makes literal."""
_WORD = re.compile(r"[a-z0-9+-]{1,20}")
_TICKS = re.compile("`+")


def as_markdown(elements: Iterable[Element]) -> str:
    """The whole document."""
    return "\n\n".join("\n".join(_lines(element)) for element in elements) + "\n"


def _lines(element: Element) -> Iterator[str]:
    match element:
        case Heading():
            yield f"{'#' * element.level} {_text(element.text, is_safe=element.is_safe)}".rstrip()
        case Paragraph():
            yield from _prose(element.text)
        case Said():
            yield from (f"- {_text(said, is_safe=True)}" for said in element.sentences)
        case Note():
            yield f"> **{_text(element.level)}**"
            yield from (f"> {line}" for line in _prose(element.text))
        case Rule():
            yield "---"
        case Table():
            yield from _table(element)
        case Code():
            yield from _fenced(element.language, (visible(line) for line in element.text.splitlines()))
        case Dump():
            yield from _fenced("", ("  ".join(dump_row(element, index)) for index in range(dump_rows(element.content))))
        case Tree():
            yield from (f"{'  ' * depth}- {_node(label, more)}" for depth, label, more in element.nodes)
        case Pointer():
            caption = f": {_text(element.caption)}" if element.caption else ""
            yield f"{element.what.capitalize()} {_text(element.name)}{caption}"
        case Picture():
            return  # It is named above; a picture is a file of its own in Markdown.
        case Problem():
            yield f"*{_text(element.text, is_safe=True)}*"


def _text(text: str, *, is_safe: bool = False) -> str:
    """On one line, every sign literal."""
    return _SIGNS.sub(r"\\\g<0>", sentence(text) if is_safe else visible(text))


def _prose(text: str) -> list[str]:
    """Each line as one (a backslash at its end breaks it), without the spaces that would make it code."""
    lines = [_text(line.strip()) for line in text.splitlines()]
    return [f"{line}\\" if line and following else line for line, following in zip(lines, [*lines[1:], ""], strict=False)]


def _table(table: Table) -> Iterator[str]:
    width = max(len(table.titles), *(len(row) for row in table.rows), 1) if table.rows else max(len(table.titles), 1)
    titles = [*table.titles, *[""] * (width - len(table.titles))]
    yield _row(titles, is_safe=table.is_safe)
    yield f"|{' --- |' * width}"
    for row in table.rows:
        yield _row([*row, *[""] * (width - len(row))], is_safe=table.is_safe)


def _row(cells: Iterable[str], *, is_safe: bool) -> str:
    return f"| {' | '.join(_text(cell, is_safe=is_safe) for cell in cells)} |"


def _fenced(language: str, lines: Iterable[str]) -> Iterator[str]:
    """In a fence that is longer than any in the text."""
    content = list(lines)
    longest = max((len(ticks) for line in content for ticks in _TICKS.findall(line)), default=0)
    fence = "`" * max(3, longest + 1)
    yield fence + (language if _WORD.fullmatch(language) else "")
    yield from content
    yield fence


def _node(label: str, more: str) -> str:
    return _text(label) + (f" ({_text(more)})" if more else "")
