"""A task's report as JSON, Markdown and HTML: all of it is there, and nothing in it is anything but text."""

from __future__ import annotations

import base64
import io
import json
import re
import struct
import zlib
from collections.abc import Awaitable, Callable
from html.parser import HTMLParser
from pathlib import PurePath
from typing import Any

import msgspec
import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token
from PIL import Image

from malbox_tui.model.errors import StoreError
from malbox_tui.model.report import ResultRef
from malbox_tui.model.sample import visible
from malbox_tui.reports.defang import defanged
from malbox_tui.reports.pictures import MAX_BYTES_IN_ALL, MAX_PICTURE_BYTES, MAX_PICTURES, read_pictures
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


# --- pictures --------------------------------------------------------------------------------------------------------------------


def picture(kind: str, size: tuple[int, int] = (4, 3), **more: Any) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", size, (200, 10, 10)).save(file, kind, **more)
    return file.getvalue()


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


PNG, JPEG = picture("PNG"), picture("JPEG")
SCRIPT = b"<script>alert(1)</script>"


async def page_with(content: bytes, *, size_bytes: int | None = None) -> Page:
    shot = ResultRef("shot", "bytes", len(content) if size_bytes is None else size_bytes, SHA256, "7/token/subject/shot")
    record = record_of("harmless")
    (run, *_others) = record.task.plugins
    run = msgspec.structs.replace(run, results=(*run.results, shot))
    record = msgspec.structs.replace(record, task=msgspec.structs.replace(record.task, plugins=(run,)))
    image = {"sections": [{"title": "s", "blocks": [{"type": "image", "artifact": "shot", "caption": "c"}] * 2}]}

    async def read(reference: ResultRef, max_bytes: int) -> bytes:
        return (content if reference is shot else json.dumps(image).encode())[:max_bytes]

    return Page(await written(read, record, Form.HTML))


def sources(page: Page) -> list[str]:
    return [value or "" for name, value in page.attributes if name == "src"]


@pytest.mark.parametrize(("content", "media_type"), [(PNG, "image/png"), (JPEG, "image/jpeg")], ids=["png", "jpeg"])
async def test_a_page_shows_the_pictures_that_a_report_names_as_data(content: bytes, media_type: str) -> None:
    page = await page_with(content)
    assert sources(page) == [f"data:{media_type};base64,{base64.b64encode(content).decode()}"]
    assert page.tags.count("img") == 2, "where it is named"
    assert any("img-src data:" in (value or "") for _, value in page.attributes)


NO_PICTURES = {
    "nothing": b"",
    "html": SCRIPT,
    "svg": b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>",
    "gif": b"GIF89a" + SCRIPT,
    "cut": PNG[:-1],
    "damaged": PNG[:40] + b"x" + PNG[41:],
    "signature alone": PNG[:8],
    "huge": PNG[:8] + chunk(b"IHDR", struct.pack(">IIBBBBB", 1_000_000, 1_000_000, 8, 2, 0, 0, 0)) + chunk(b"IEND", b""),
    "no header": PNG[:8] + chunk(b"IEND", b""),
    "chunk without end": PNG[:8] + struct.pack(">I", 0xFFFFFFFF) + b"IHDR",
    "cut jpeg": JPEG[:-2],
    "jpeg with more": JPEG + SCRIPT,
    "jpeg without frame": b"\xff\xd8\xff\xda\x00\x02\xff\xd9",
    "jpeg of nothing": b"\xff\xd8" + b"\xff\x01\x00\x00" * 1000,
    "huge jpeg": b"\xff\xd8\xff\xc0\x00\x11\x08\xff\xff\xff\xff" + bytes(10) + b"\xff\xda\x00\x02\xff\xd9",
}


@pytest.mark.parametrize("content", NO_PICTURES.values(), ids=NO_PICTURES)
async def test_what_is_no_whole_picture_of_a_size_that_can_be_shown_is_named_alone(content: bytes) -> None:
    page = await page_with(content)
    assert (sources(page), "img" in page.tags) == ([], False)
    assert "shot" in " ".join(page.texts)


async def test_of_a_picture_nothing_but_the_picture_comes_along() -> None:
    with_more = PNG[:33] + chunk(b"tEXt", b"Comment\0" + SCRIPT) + chunk(b"iCCP", SCRIPT) + PNG[33:] + SCRIPT
    assert sources(await page_with(with_more)) == [f"data:image/png;base64,{base64.b64encode(PNG).decode()}"]


async def test_pictures_are_bounded_each_and_all_together() -> None:
    assert sources(await page_with(PNG, size_bytes=MAX_PICTURE_BYTES + 1)) == []
    large = picture("PNG", (400, 400), compress_level=0)
    references = [ResultRef(f"p{n}", "bytes", len(large), SHA256, f"p{n}") for n in range(100)]
    found = await read_pictures(reading(large), references)
    assert len(found) == min(MAX_PICTURES, MAX_BYTES_IN_ALL // len(large))


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


@pytest.mark.parametrize("form", Form)
async def test_of_results_that_were_removed_it_is_said_since_when(form: Form) -> None:
    async def removed(reference: ResultRef, max_bytes: int) -> bytes:
        raise AssertionError("nothing is there to be read")

    record = msgspec.structs.replace(record_of("x"), results_removed_at=86400.0)
    said = (await written(removed, record, form)).replace("\\", "")
    assert "Its results were removed on 1970-01-02T00:00:00.000Z; what they came to stays." in said
    assert "malicious" in said


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
