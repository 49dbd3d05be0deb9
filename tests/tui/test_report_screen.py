"""The reports of a task on a screen of their own: long ones scroll, wide ones are panned, and they are written to files."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from PIL import Image
from rich.text import Text
from textual.pilot import Pilot
from textual.widgets import Input

from malbox_tui.model.report import PluginStatus
from malbox_tui.reports.gathering import PluginReport, parsed
from malbox_tui.tui.app import MalboxApp
from malbox_tui.tui.moment import Moment
from malbox_tui.tui.pictures import Unshowable, decoded
from malbox_tui.tui.report_page import MAX_PROSE_CHARACTERS, PREVIEW_LINES, ReportLines, panned, preview_lines, report_pieces
from malbox_tui.tui.screens.dialogs import Prompt, Question
from malbox_tui.tui.screens.report import ReportScreen
from malbox_tui.tui.screens.task import TaskScreen
from malbox_tui.tui.widgets.report_view import ReportView
from tests.reports.samples import EVIL, report_of
from tests.tui.scripted import NOW, ScriptedClient, plugin_run, record, reference, surroundings, worker
from tests.tui.test_hostile_text import assert_inert

MOMENT = Moment(NOW)
ROWS = 50_000
PATIENCE_S = 60.0


def report(content: object) -> PluginReport:
    return parsed(plugin_run(1, "big"), json.dumps(content).encode())


def section(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"sections": [{"id": "s", "title": "Section", "blocks": list(blocks)}]}


def table(rows: int) -> dict[str, Any]:
    columns = [{"key": "n", "label": "number"}, {"key": "wide", "label": "wide"}]
    return {"type": "table", "columns": columns, "rows": [{"n": n, "wide": f"row {n} " + "x" * 300} for n in range(rows)]}


def lines_of(content: object, width: int = 80) -> list[str]:
    lines = ReportLines(report_pieces(report(content), MOMENT, width))
    return [lines.line(index).plain for index in range(lines.count)]


def test_every_kind_of_block_has_lines() -> None:
    shown = lines_of(json.loads(report_of("needle")))
    text = "\n".join(shown)
    for told in ("needle", "1.5", "image", "result", "└ needle", "00001000", "6e 65 65 64 6c 65", "▌", "─" * 40, '"needle"'):
        assert told in text, told
    assert "a block that can't be shown" not in text.lower()


@pytest.mark.parametrize("evil", EVIL)
def test_whatever_a_plugin_sends_each_line_is_one_line_of_plain_text(evil: str) -> None:
    for line in lines_of(json.loads(report_of(evil))):
        assert line.isprintable(), line


def test_a_long_table_has_a_line_for_each_row_and_makes_those_that_are_seen() -> None:
    lines = ReportLines(report_pieces(report(section(table(ROWS))), MOMENT, 80))
    assert lines.count > ROWS
    assert lines.line(lines.count - 1).plain.startswith(f"{ROWS - 1}")


def test_the_titles_of_a_table_stay_at_the_top_while_its_rows_are_there() -> None:
    blocks = section(table(3), {"type": "kv", "pairs": [{"key": "k", "value": "v"}]})
    lines = ReportLines(report_pieces(report(blocks), MOMENT, 80))
    seen = [
        (lines.line(index).plain.split("  ")[0].strip(), lines.top_line(index).plain.split()[:1]) for index in range(lines.count)
    ]
    rows = [top for line, top in seen if line in ("0", "1", "2")]
    assert rows == [["number"]] * 3
    assert seen[-1] == ("k", ["k"])


def test_a_picture_that_a_report_names_is_drawn_below_its_name_and_nothing_else_is() -> None:
    run = plugin_run(1, "big", results=[reference(1, "big", "shot"), reference(1, "big", "text")])
    part = parsed(run, json.dumps(section(*({"type": "image", "artifact": name} for name in ("shot", "text", "gone")))).encode())
    shot, text = run.results
    picture = decoded(PNG)
    before = ReportLines(report_pieces(part, MOMENT, 80, {shot: None, text: None}))
    after = ReportLines(report_pieces(part, MOMENT, 80, {shot: picture, text: Unshowable("it is neither PNG, PPM nor JPEG")}))
    shown = [after.line(index) for index in range(after.count)]
    (place,) = (index for index, line in enumerate(shown) if line.plain == "image  shot")
    drawn = shown[place + 1]
    assert set(drawn.plain) == {" "}
    assert drawn.cell_len == 80
    assert {str(span.style) for span in drawn.spans} == {"on #c80a0a"}
    assert "The picture can't be shown: it is neither PNG, PPM nor JPEG." in [line.plain for line in shown]
    assert shown[-1].plain == "image  gone"
    last = before.place_of(before.count - 1)
    assert after.line(after.index_of(*last)).plain == "image  gone", "it is found again"


def test_a_deep_tree_is_shown_to_its_end() -> None:
    node: dict[str, Any] = {"label": "leaf"}
    for depth in range(200):
        node = {"label": f"level {depth}", "children": [node]}
    shown = lines_of(section({"type": "tree", "nodes": [node]}))
    assert shown[-1].endswith("leaf")
    assert len(shown) > 200


def test_prose_is_broken_between_words_and_bounded() -> None:
    shown = lines_of({"summary": "word " * MAX_PROSE_CHARACTERS}, width=40)
    assert max(map(len, shown[:-1])) <= 60
    assert shown[-1] == f"… and {4 * MAX_PROSE_CHARACTERS} more characters"


def test_a_dump_is_as_long_as_its_bytes() -> None:
    shown = lines_of(section({"type": "hex", "bytes_b64": base64.b64encode(bytes(1000)).decode(), "offset": 16}))
    assert shown[-1].startswith("000003f0  00 00")


def test_the_page_of_a_task_shows_the_beginning_and_says_where_the_rest_is() -> None:
    shown = preview_lines(report(section(table(500))), MOMENT, 60)
    assert len(shown) == PREVIEW_LINES + 1
    assert "v shows all of it" in shown[-1].plain
    assert max(line.cell_len for line in shown[:-1]) <= 60


@pytest.mark.parametrize(("cells", "rest"), [(0, "a漢b"), (1, "漢b"), (2, " b"), (3, "b"), (4, ""), (9, "")])
def test_panning_never_cuts_a_wide_character_in_half(cells: int, rest: str) -> None:
    assert panned(Text("a漢b"), cells).plain == rest


def png(width: int, height: int) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (width, height), (200, 10, 10)).save(file, "PNG")
    return file.getvalue()


PNG = png(40, 10)


# --- the screen ------------------------------------------------------------------------------------------------------------------


def engine() -> ScriptedClient:
    runs = (
        plugin_run(7, "big"),
        plugin_run(7, "small"),
        plugin_run(7, "crashed", PluginStatus.FAILED, results=[], reason="it crashed"),
        plugin_run(7, "gone", results=[reference(7, "gone")]),
    )
    client = ScriptedClient([record(7, plugins=runs)], [worker(1)])
    client.results["7/big/report"] = json.dumps(section(table(2000))).encode()
    client.results["7/small/report"] = json.dumps({"summary": "small one"}).encode()
    return client


@asynccontextmanager
async def at_report(client: ScriptedClient) -> AsyncIterator[tuple[Pilot[object], ReportView]]:
    app = MalboxApp(surroundings(client))
    async with app.run_test(size=(100, 30), notifications=True) as pilot:
        await until(pilot, lambda: app.dashboard.tasks.total > 0)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, TaskScreen) and app.screen.record is not None)
        await pilot.press("v")
        await until(pilot, lambda: isinstance(app.screen, ReportScreen))
        view = app.screen.query_one(ReportView)
        await until(pilot, lambda: view.line_count() > 2000)
        yield pilot, view  # type: ignore[misc]


async def until(pilot: Pilot[object], condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await pilot.pause(0.01)


def on_screen(view: ReportView) -> str:
    return "\n".join(view.render_line(y).text for y in range(view.size.height))


@pytest.mark.slow
async def test_it_scrolls_pans_and_goes_from_title_to_title() -> None:
    async with at_report(engine()) as (pilot, view):
        assert "row 0" in on_screen(view)
        await pilot.press("pagedown")
        await until(pilot, lambda: "row 30" in on_screen(view))
        await pilot.press("end")
        await until(pilot, lambda: "The result is gone" in on_screen(view))
        await pilot.press("home")
        await pilot.press("n", "n", "n")
        await until(pilot, lambda: "Report of small" in on_screen(view))
        await pilot.press("N")
        await until(pilot, lambda: "Section" in on_screen(view))
        before = on_screen(view)
        await pilot.press("right")
        await until(pilot, lambda: on_screen(view) != before)
        await pilot.press("left", "left")
        await until(pilot, lambda: on_screen(view) == before)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, TaskScreen))


@pytest.mark.slow
async def test_a_long_table_keeps_its_titles_in_sight() -> None:
    async with at_report(engine()) as (pilot, view):
        await pilot.press("pagedown", "pagedown")
        await until(pilot, lambda: "row 50" in on_screen(view))
        first, *rest = on_screen(view).splitlines()
        assert first.split()[:2] == ["number", "wide"]
        assert "number" not in "".join(rest)
        await pilot.press("end")
        await until(pilot, lambda: "The result is gone" in on_screen(view))
        await pilot.press("home")
        await until(pilot, lambda: "row 0" in on_screen(view))
        assert on_screen(view).count("number") == 1


def backgrounds(view: ReportView) -> set[str]:
    found = (segment.style for y in range(view.size.height) for segment in view.render_line(y))
    return {style.bgcolor.name for style in found if style is not None and style.bgcolor is not None}


@pytest.mark.slow
async def test_pictures_come_when_they_are_read_and_what_is_in_sight_stays() -> None:
    client = engine()
    shot = reference(7, "big", "shot")
    run = plugin_run(7, "big", results=[reference(7, "big"), shot])
    client.put(record(7, plugins=(run,)))
    client.results["7/big/shot"] = PNG
    image = {"type": "image", "artifact": "shot", "caption": "what it shows"}
    client.results["7/big/report"] = json.dumps(section(image, table(2000))).encode()
    async with at_report(client) as (pilot, view):
        await until(pilot, lambda: "#c80a0a" in backgrounds(view))
        assert "image  shot  what it shows" in on_screen(view)


@pytest.mark.slow
async def test_it_is_written_to_a_file_and_one_that_is_there_is_asked_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with at_report(engine()) as (pilot, _view):
        await pilot.press("o")
        await until(pilot, lambda: isinstance(pilot.app.screen, Prompt))
        await pilot.press("enter")
        await until(pilot, lambda: (tmp_path / "task-7.html").exists())
        assert "row 1999" in (tmp_path / "task-7.html").read_text()
        await until(pilot, lambda: isinstance(pilot.app.screen, ReportScreen))
        os.truncate(tmp_path / "task-7.html", 0)
        await pilot.press("o")
        await until(pilot, lambda: isinstance(pilot.app.screen, Prompt))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, Question))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, ReportScreen))
        assert (tmp_path / "task-7.html").read_text() == ""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["report", "a.txt", "~nobody-of-that-name/a.html", "/nowhere/at/all/a.html"])
async def test_a_name_that_cant_be_is_said_to_be_one(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with at_report(engine()) as (pilot, _view):
        await pilot.press("o")
        await until(pilot, lambda: isinstance(pilot.app.screen, Prompt))
        pilot.app.screen.query_one(Input).value = name
        await pilot.press("enter")
        await until(pilot, lambda: len(pilot.app._notifications) > 0)
        assert [note.severity for note in pilot.app._notifications] == ["error"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
async def test_hostile_text_in_every_field_of_a_report_is_text_there_too() -> None:
    client = engine()
    (evil,) = json.loads(report_of("\n".join(EVIL)))["sections"]
    client.results["7/big/report"] = json.dumps(section(table(2000), *evil["blocks"])).encode()
    async with at_report(client) as (pilot, view):
        await pilot.press("end")
        for _ in range(view.line_count() // view.page_lines):
            assert_inert(pilot)
            if "row 1999" in on_screen(view):
                break
            await pilot.press("pageup")
        assert "row 1999" in on_screen(view)


@pytest.mark.slow
async def test_reports_that_were_removed_are_said_to_be_and_not_asked_for() -> None:
    client = engine()
    client.records[7] = msgspec.structs.replace(client.records[7], results_removed_at=NOW)
    client.results.clear()
    app = MalboxApp(surroundings(client))
    async with app.run_test(size=(100, 30), notifications=True) as pilot:
        await until(pilot, lambda: app.dashboard.tasks.total > 0)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, TaskScreen) and app.screen.record is not None)
        await until(pilot, lambda: "Its results were removed on" in str(app.screen.query_one("#task-page").render()))
        await pilot.press("v")
        await until(pilot, lambda: isinstance(app.screen, ReportScreen))
        view = app.screen.query_one(ReportView)
        await until(pilot, lambda: on_screen(view).count("Its results were removed on") == 3)
