"""Lines are drawn again only where they look different, and everywhere where they do."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.segment import Segment
from rich.text import Text
from textual.app import App, ComposeResult
from textual.geometry import Region
from textual.widget import Widget

from malbox_tui.tui.text import fit, joined_cells, plain
from malbox_tui.tui.widgets.line_view import LineView, differing_cells

WIDTH = 24
CONSOLE = Console(width=WIDTH)

words = st.text(st.sampled_from("ab ●—✓样…"), max_size=8)
parts = st.lists(st.tuples(words, st.sampled_from(["", "red", "bold", "on blue"])), max_size=4)


def _line(of: list[tuple[str, str]]) -> Text:
    return fit(joined_cells([plain(text, style) for text, style in of]), WIDTH)


def _cells(line: Text) -> list[list[tuple[str, str]]]:
    """What each cell shows: its characters with their styles."""
    segments = [segment for segment in line.render(CONSOLE) if segment.text != "\n"]
    cells = []
    for place in range(WIDTH):
        (_, cell, _) = list(Segment.divide(segments, [place, place + 1, WIDTH]))
        cells.append([(segment.text, str(segment.style or "none")) for segment in cell if segment.text])
    return cells


@given(parts, parts, parts)
def test_what_is_not_drawn_again_looks_as_it_did(
    same: list[tuple[str, str]], old: list[tuple[str, str]], new: list[tuple[str, str]]
) -> None:
    before, after = _line([*same, *old, *same]), _line([*same, *new, *same])
    start, end = differing_cells(before, after, WIDTH) or (0, 0)
    assert 0 <= start <= end <= WIDTH
    seen, wanted = _cells(before), _cells(after)
    assert [*seen[:start], *wanted[start:end], *seen[end:]] == wanted


def test_only_a_clock_that_moved_is_drawn_again() -> None:
    before, after = _line([("431 ● running", "red"), ("0:41", "")]), _line([("431 ● running", "red"), ("0:42", "")])
    start, end = differing_cells(before, after, WIDTH) or (0, 0)
    assert (start, end) == (17, 18)
    assert differing_cells(before, before.copy(), WIDTH) is None


def test_a_character_is_drawn_again_with_the_marks_that_combine_with_it() -> None:
    before, after = _line([("caf e\u0301 x", "")]), _line([("caf e\u0301\u0323 x", "")])
    start, _ = differing_cells(before, after, WIDTH) or (0, 0)
    assert start == 4


class Words(LineView):
    """Lines that are given, a cursor on one of them, and what was asked to be drawn again."""

    def __init__(self) -> None:
        super().__init__()
        self.lines = [plain(word) for word in ("one", "two", "three")]
        self.cursor = 0
        self.drawn: list[int] = []

    def line_count(self) -> int:
        return len(self.lines)

    def line(self, index: int, width: int) -> Text:
        return self.lines[index]

    def cursor_index(self) -> int | None:
        return self.cursor

    def refresh(self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False) -> Widget:
        self.drawn += [region.y for region in regions]
        return super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)


class WordsApp(App[None]):
    def __init__(self) -> None:
        super().__init__()
        self.words = Words()

    def compose(self) -> ComposeResult:
        yield self.words


async def test_a_moved_cursor_draws_two_lines_and_nothing_new_draws_none() -> None:
    app = WordsApp()
    async with app.run_test(size=(20, 5)) as pilot:
        app.words.changed()
        await pilot.pause()
        app.words.drawn.clear()
        app.words.changed()
        assert app.words.drawn == []
        app.words.cursor = 2
        app.words.changed()
        assert app.words.drawn == [0, 2]
        app.words.drawn.clear()
        app.words.lines[1] = plain("TWO")
        app.words.changed()
        assert app.words.drawn == [1]
        assert app.words.render_line(1).text.strip() == "TWO"
