"""A task's report as JSON, Markdown and HTML: all of it is there, and nothing in it is anything but text."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable
from html.parser import HTMLParser
from pathlib import PurePath
from typing import Any

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from malbox_tui.model.errors import StoreError
from malbox_tui.model.report import ResultRef
from malbox_tui.model.sample import visible
from malbox_tui.reports.defang import defanged
from malbox_tui.reports.writing import Form, form_of, written
from tests.reports.samples import EVIL, SHA256, record_of, report_of

OURS = {"html", "head", "meta", "title", "style", "body", "h1", "h2", "h3", "h4", "h5", "h6", "p", "br", "ul", "li", "div"}
OURS |= {"strong", "hr", "pre", "code", "span", "table", "thead", "tr", "th", "td"}
HARMLESS_MARKDOWN = {
    "heading_open", "heading_close", "inline", "text", "paragraph_open", "paragraph_close", "table_open", "table_close",
    "thead_open", "thead_close", "tbody_open", "tbody_close", "tr_open", "tr_close", "th_open", "th_close", "td_open", "td_close",
    "bullet_list_open", "bullet_list_close", "list_item_open", "list_item_close", "blockquote_open", "blockquote_close",
    "strong_open", "strong_close", "em_open", "em_close", "hr", "fence", "hardbreak", "softbreak", "text_special",
}  # fmt: skip

every_text = pytest.mark.parametrize("text", [*EVIL, "\n".join(EVIL)])


def reading(content: bytes) -> Callable[[ResultRef, int], Awaitable[bytes]]:
    async def read(reference: ResultRef, max_bytes: int) -> bytes:
        return content[:max_bytes]

    return read


async def export(text: str, form: Form) -> str:
    return await written(reading(report_of(text)), record_of(text), form)


class Page(HTMLParser):
    """What a browser would make of a page."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: set[tuple[str, str | None]] = set()
        self.texts: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= set(attrs)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def tokens_of(text: str) -> list[Token]:
    """As GitHub reads Markdown: with tables, struck text and HTML."""
    parser = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    found = parser.parse(text)
    return [inner for token in found for inner in (token, *(token.children or ()))]


def can_act(text: str) -> list[str]:
    """Characters that a terminal or a reader's eyes could be led astray by."""
    return [char for char in text if char != "\n" and (not char.isprintable() or char in "\u202e\u2066\u200b\ufeff\x85\u2028")]


@every_text
async def test_a_page_has_our_tags_alone_and_loads_nothing(text: str) -> None:
    page = Page(await export(text, Form.HTML))
    assert set(page.tags) <= OURS
    assert {name for name, _ in page.attributes} <= {"lang", "charset", "http-equiv", "content", "name", "class"}
    assert page.tags.count("h1") == 1
    assert page.tags.count("title") == page.tags.count("style") == 1


@every_text
async def test_a_page_looks_the_same_whatever_it_holds(text: str) -> None:
    """Texts that are one line give the very tags that a harmless one gives."""
    if len(text.splitlines()) == 1:
        assert Page(await export(text, Form.HTML)).tags == Page(await export("harmless", Form.HTML)).tags


@every_text
@pytest.mark.parametrize("form", Form)
async def test_nothing_in_an_export_acts_on_a_terminal(text: str, form: Form) -> None:
    assert can_act(await export(text, form)) == []


@every_text
async def test_markdown_has_no_html_no_link_and_no_picture(text: str) -> None:
    tokens = tokens_of(await export(text, Form.MARKDOWN))
    assert {token.type for token in tokens} <= HARMLESS_MARKDOWN
    assert sum(token.type == "heading_open" and token.tag == "h1" for token in tokens) == 1


@pytest.mark.parametrize("text", [text for text in EVIL if len(text.splitlines()) == 1])
async def test_markdown_gives_each_text_back_as_it_was(text: str) -> None:
    tokens = tokens_of(await export(text, Form.MARKDOWN))
    inlines = ["".join(child.content for child in token.children or ()) for token in tokens if token.type == "inline"]
    assert visible(text) in inlines
    assert [child for child in tokens_of(await export("harmless", Form.MARKDOWN)) if child.type == "link_open"] == []
    shape = [token.type for token in tokens if token.block]
    assert shape == [token.type for token in tokens_of(await export("harmless", Form.MARKDOWN)) if token.block]


@every_text
async def test_json_gives_the_report_back_as_the_plugin_sent_it(text: str) -> None:
    exported = await export(text, Form.JSON)
    assert exported.isascii()
    value = json.loads(exported)
    (report,) = value["reports"]
    assert report == {**json.loads(report_of(text)), "subject": text}
    assert value["sample"]["names"][0] == visible(text)


@pytest.mark.parametrize("form", Form)
async def test_everything_that_was_found_is_in_each(form: Form) -> None:
    text = await export("needle", form)
    plain = text.replace("\\", "") if form is Form.MARKDOWN else text
    assert len(re.findall("needle", plain)) > 60
    for told in ("malicious", "90", SHA256, "subject", "1.5", "completed"):
        assert told in plain, told


@pytest.mark.parametrize("form", Form)
async def test_of_a_report_that_cant_be_read_it_is_said(form: Form) -> None:
    for content in (b"", b"\xff", b"[1]", b'{"a": ' + b"[" * 100_000, b"nope"):
        assert (
            "can't be read"
            in (said := (await written(reading(content), record_of("x"), form)).replace("\\", "")).replace("&#x27;", "'")
            or "is no report" in said
        )

    async def gone(reference: ResultRef, max_bytes: int) -> bytes:
        raise StoreError("The result is gone.")

    assert "The result is gone" in (await written(gone, record_of("x"), form)).replace("\\", "")


WRONG: tuple[Any, ...] = (None, 1, 1e999, "text", [], [1], {}, {"type": 3}, [["deep"]], True)


@pytest.mark.parametrize("form", Form)
@pytest.mark.parametrize("wrong", WRONG, ids=repr)
async def test_a_report_with_values_of_the_wrong_type_is_written_all_the_same(form: Form, wrong: Any) -> None:
    kinds = [block["type"] for block in json.loads(report_of("x"))["sections"][0]["blocks"]]
    names = ("text", "pairs", "rows", "columns", "data", "bytes_b64", "offset", "items", "nodes", "edges", "events", "level")
    blocks = [{"type": kind, **dict.fromkeys(names, wrong)} for kind in kinds] + [wrong, {"type": wrong}]
    report = {"summary": wrong, "indicators": wrong, "ttps": wrong, "artifacts": wrong, "sections": [{"blocks": blocks}, wrong]}
    content = json.dumps({**report, "raw": wrong}).replace("Infinity", "1e999").encode()
    assert await written(reading(content), record_of("x"), form)


@pytest.mark.parametrize("form", [Form.MARKDOWN, Form.HTML])
async def test_indicators_are_not_links_for_people(form: Form) -> None:
    item = {"kind": "url", "value": "http://a.evil.example/x.exe"}
    report = {"sections": [{"id": "i", "title": "i", "blocks": [{"type": "iocs", "items": [item]}]}]}
    said = (await written(reading(json.dumps(report).encode()), record_of("x"), form)).replace("\\", "")
    assert "hxxp://a[.]evil[.]example/x.exe" in said


@pytest.mark.parametrize(
    ("kind", "value", "safe"),
    [
        ("url", "https://a.example:8080/b.c?d=e.f", "hxxps://a[.]example:8080/b.c?d=e.f"),
        ("url", "FTP://a.example", "FxP://a[.]example"),
        ("url", "a.example/x", "a[.]example/x"),
        ("domain", "a.b.example", "a[.]b[.]example"),
        ("ipv4", "192.0.2.1", "192[.]0[.]2[.]1"),
        ("ipv6", "2001:db8::1", "2001[:]db8[:][:]1"),
        ("email", "a.b@c.example", "a[.]b[@]c[.]example"),
        ("sha256", "ab.cd", "ab.cd"),
    ],
)
def test_an_indicator_is_defanged_by_its_kind(kind: str, value: str, safe: str) -> None:
    assert defanged(kind, value) == safe


@pytest.mark.parametrize(
    ("name", "form"), [("a.json", Form.JSON), ("a.MD", Form.MARKDOWN), ("a.b.html", Form.HTML), ("a", None), ("a.txt", None)]
)
def test_the_ending_of_a_name_says_the_form(name: str, form: Form | None) -> None:
    assert form_of(PurePath(name)) is form
