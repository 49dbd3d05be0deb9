"""A plugin's report as lines of text. They are made when they are seen: of a table of a hundred thousand rows, those on the screen.

Reports come from code that parsed hostile bytes: every text in them is escaped here, and none is markup.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice
from types import MappingProxyType

from rich.cells import cell_len
from rich.text import Text

from malbox_tui.model.report import ResultRef
from malbox_tui.model.sample import visible
from malbox_tui.reports.blocks import elements_of
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
    Said,
    Table,
    Tree,
    dump_row,
    dump_rows,
)
from malbox_tui.reports.gathering import PluginReport
from malbox_tui.tui.columns import verdict_cell
from malbox_tui.tui.moment import Moment
from malbox_tui.tui.pictures import Picture, Unshowable, cells_of, half_cells
from malbox_tui.tui.task_page import heading, of_what
from malbox_tui.tui.text import counted, fit, joined_cells, plain, sentence, shown, wrapped

PREVIEW_LINES = 100
"""So much of a report is shown on the page of its task."""
MAX_PROSE_CHARACTERS = 50_000
MAX_CELL = 128
"""The widest column but the last one of a table: the longest of digests is whole."""
MAX_LAST_CELL = 2_000
MEASURED_ROWS = 500
"""The widths of a table's columns follow from so many of its first rows."""
RULE_CELLS = 40
MAX_PICTURE_CELLS, MAX_PICTURE_LINES = 100, 30
_INDENT = "  "

_NOTE_TONES = {"info": "accent", "success": "good", "warn": "late", "error": "bad"}


Pictures = Mapping[ResultRef, Picture | Unshowable | None]
"""What the pictures that reports name are; None: it is being read."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Some lines, each made by its number. `title`: what they begin, as a place to go to; empty: nothing. `has_head`: the first says
    what the others are, and stays in sight above them."""

    count: int
    make: Callable[[int], Text]
    title: str = ""
    has_head: bool = False


class ReportLines:
    """Pieces one below the other, as one list of lines."""

    def __init__(self, pieces: Iterable[Piece]) -> None:
        self._pieces = [piece for piece in pieces if piece.count]
        self._ends = list(accumulate(piece.count for piece in self._pieces))

    @property
    def count(self) -> int:
        """How many lines there are."""
        return self._ends[-1] if self._ends else 0

    def line(self, index: int) -> Text:
        """One line, whole."""
        piece, number = self._piece_at(index)
        return piece.make(number)

    def top_line(self, index: int) -> Text:
        """What stands at the top where this line is the first in sight: itself, or the head of what it belongs to."""
        piece, number = self._piece_at(index)
        return piece.make(0 if piece.has_head else number)

    def titles(self) -> list[int]:
        """The lines that are places to go to, in order."""
        return [end - piece.count for piece, end in zip(self._pieces, self._ends, strict=True) if piece.title]

    def title_at(self, index: int) -> str:
        """What the line belongs to: the last title at it or before it; empty before the first."""
        places = [place for place, piece in enumerate(self._pieces) if piece.title]
        starts = [self._ends[place] - self._pieces[place].count for place in places]
        found = bisect_right(starts, index)
        return self._pieces[places[found - 1]].title if found else ""

    def place_of(self, index: int) -> tuple[int, int]:
        """The number of the piece that a line belongs to, and the line's number in that."""
        place = bisect_right(self._ends, index)
        return place, index - self._ends[place] + self._pieces[place].count

    def index_of(self, place: int, number: int) -> int:
        """The line at a place, or the last one of its piece."""
        count = self._pieces[place].count
        return self._ends[place] - count + min(number, count - 1)

    def _piece_at(self, index: int) -> tuple[Piece, int]:
        """What a line belongs to, and its number in that."""
        place, number = self.place_of(index)
        return self._pieces[place], number


NO_PICTURES: Pictures = MappingProxyType({})


def report_pieces(report: PluginReport, moment: Moment, width: int, pictures: Pictures = NO_PICTURES) -> Iterator[Piece]:
    """A report whole; prose in lines of `width` cells, tables and code as wide as they are. Those of `pictures` that it names are
    shown in it."""
    shown_here = {result.name: pictures[result] for result in report.run.results if result in pictures}
    run = report.run
    title = heading(of_what(f"Report of {run.name} {run.version}", run), moment)
    yield _lines([plain("")])
    yield _lines([title], title=title.plain)
    if run.verdict is not None:
        yield _lines([verdict_cell(run.verdict, moment)])
    if report.content is None:
        yield _lines([sentence(report.problem, moment.tone("late"))])
        return
    is_apart = True
    for element in elements_of(report.content):
        if not is_apart and not isinstance(element, Heading | Pointer):
            yield _lines([plain("")])
        is_apart = isinstance(element, Heading)
        yield from pieces_of(element, moment, width)
        if isinstance(element, Pointer) and element.what == "image" and element.name in shown_here:
            yield _picture(shown_here[element.name], moment, width)


def preview_lines(report: PluginReport, moment: Moment, width: int) -> list[Text]:
    """The beginning of a report."""
    lines = ReportLines(report_pieces(report, moment, width))
    shown_lines = [_cut(lines.line(index), width) for index in range(min(lines.count, PREVIEW_LINES))]
    if (more := lines.count - PREVIEW_LINES) > 0:
        shown_lines.append(plain(f"… and {counted(more, 'more line')}: v shows all of it", moment.tone("muted")))
    return shown_lines


def pieces_of(element: Element, moment: Moment, width: int) -> Iterator[Piece]:
    """The lines of one element."""
    match element:
        case Heading():
            yield _lines([plain("")])
            text = sentence(element.text, "bold") if element.is_safe else shown(element.text, "bold")
            yield _lines([text], title=text.plain)
        case Paragraph():
            yield _lines(_prose(element.text, width))
        case Said():
            yield _lines([line for said in element.sentences for line in _wrapped(sentence(said).plain, width)])
        case Note():
            tone = moment.tone(_NOTE_TONES.get(element.level, "muted"))
            head = joined_cells([plain("▌", tone), shown(element.level, f"bold {tone}")])
            body = _prose(element.text, width - 2)
            yield _lines([head, *(joined_cells([plain("▌", tone), line]) for line in body)])
        case Rule():
            yield _lines([plain("─" * min(RULE_CELLS, max(1, width)), moment.tone("muted"))])
        case Table():
            yield _table(element, moment)
        case Code():
            lines = element.text.splitlines()
            yield Piece(len(lines), lambda index: shown(_INDENT + lines[index]))
        case Dump():
            yield Piece(dump_rows(element.content), lambda index: _dump_line(element, index, moment))
        case Tree():
            yield Piece(len(element.nodes), lambda index: _node(*element.nodes[index], moment))
        case Pointer():
            yield _lines([_pointer(element, moment)])
        case Problem():
            yield _lines([sentence(element.text, moment.tone("late"))])


def panned(line: Text, cells: int) -> Text:
    """`line` without its first `cells` cells; a wide character that is cut leaves a space."""
    if cells <= 0:
        return line
    passed = 0
    for place, char in enumerate(line.plain):
        if passed >= cells:
            rest = line[place:]
            return joined_cells([plain(" " * (passed - cells)), rest], "") if passed > cells else rest
        passed += cell_len(char)
    return plain("")


def _lines(lines: Sequence[Text], title: str = "") -> Piece:
    return Piece(len(lines), lambda index: lines[index], title)


def _prose(text: str, width: int) -> list[Text]:
    cut = len(text) > MAX_PROSE_CHARACTERS
    lines = [line for raw in text[:MAX_PROSE_CHARACTERS].splitlines() for line in _wrapped(visible(raw), width)]
    return [*lines, plain(f"… and {len(text) - MAX_PROSE_CHARACTERS} more characters")] if cut else lines


def _wrapped(text: str, width: int) -> list[Text]:
    return [plain(line) for line in wrapped(text, max(width, 2), len(text) + 1)]


def _table(table: Table, moment: Moment) -> Piece:
    """Titles, if it has any, and rows; each column as wide as the first rows are."""
    columns = max(len(table.titles), max((len(row) for row in table.rows), default=0))
    widths = [0] * columns
    for row in islice((table.titles, *table.rows[:MEASURED_ROWS]), MEASURED_ROWS + 1):
        for place, cell in enumerate(row):
            most = MAX_CELL if place < columns - 1 else MAX_LAST_CELL
            widths[place] = max(widths[place], min(most, cell_len(visible(cell[: MAX_LAST_CELL + 1]))))
    heads = 1 if table.titles else 0

    def make(index: int) -> Text:
        row = table.titles if index < heads else table.rows[index - heads]
        style = f"bold {moment.tone('muted')}" if index < heads else ""
        first = moment.tone("muted") if not heads else style
        texts = [_cell(cell, first if not place else style, table.is_safe) for place, cell in enumerate(row)]
        return joined_cells([fit(text, cells) for text, cells in zip(texts, widths, strict=False)], "  ")

    return Piece(heads + len(table.rows), make, has_head=bool(heads))


def _cell(cell: str, style: str, is_safe: bool) -> Text:
    text = cell[: MAX_LAST_CELL + 1]
    return sentence(text, style) if is_safe else shown(text, style)


def _dump_line(dump: Dump, index: int, moment: Moment) -> Text:
    offset, content, letters = dump_row(dump, index)
    return joined_cells([plain(offset, moment.tone("muted")), plain(content), plain(letters, moment.tone("accent"))], "  ")


def _node(depth: int, label: str, more: str, moment: Moment) -> Text:
    branch = plain(f"{_INDENT * (depth - 1)}└ " if depth else "", moment.tone("muted"))
    parts = [branch, shown(label)]
    if more:
        parts += [plain("  "), shown(more, moment.tone("muted"))]
    return joined_cells(parts, "")


def _pointer(pointer: Pointer, moment: Moment) -> Text:
    caption = [shown(pointer.caption, moment.tone("muted"))] if pointer.caption else []
    return joined_cells([plain(pointer.what, moment.tone("muted")), shown(pointer.name), *caption], "  ")


def _picture(picture: Picture | Unshowable | None, moment: Moment, width: int) -> Piece:
    """Its lines, or a word in their place; never none, so that what is below it is the same piece before it is read and after."""
    if picture is None:
        return _lines([plain("reading …", moment.tone("muted"))])
    if isinstance(picture, Unshowable):
        return _lines([sentence(str(picture), moment.tone("late"))])
    strips = half_cells(picture, *cells_of(picture, min(width, MAX_PICTURE_CELLS), MAX_PICTURE_LINES))
    return Piece(
        len(strips), lambda index: Text.assemble(*((part.text, part.style or "") for part in strips[index]), no_wrap=True, end="")
    )


def _cut(line: Text, width: int) -> Text:
    return fit(line, width) if line.cell_len > width else line
