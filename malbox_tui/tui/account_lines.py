"""Intakes and their accounts as lines of text. Pure."""

from __future__ import annotations

from collections.abc import Callable

from rich.text import Text

from malbox_tui.model.intake import Fate, IntakeLine, IntakeView
from malbox_tui.model.sample import escape
from malbox_tui.tui.moment import Moment
from malbox_tui.tui.text import fit, joined_cells, plain, sentence, short_size, shown

NUMBER_CELLS, TIME_CELLS, WAY_CELLS, COUNT_CELLS = 6, 9, 8, 9
FATE_CELLS, TASK_CELLS, SIZE_CELLS = 10, 8, 7
ROOMY = 100
"""On a line of fewer cells, what is empty takes none: a reason needs them more."""
TONES = {Fate.ACCEPTED: "good", Fate.DUPLICATE: "muted", Fate.OPENED: "preparing", Fate.REFUSED: "bad"}
SIGNS = {Fate.ACCEPTED: "+", Fate.DUPLICATE: "=", Fate.OPENED: "▸", Fate.REFUSED: "!"}


def intakes_header(moment: Moment, width: int) -> Text:
    """The titles of `intake_line`."""
    words = [("no.", NUMBER_CELLS), ("began", TIME_CELLS), ("way", WAY_CELLS)]
    counts = [(fate, COUNT_CELLS) for fate in ("added", "known", "opened", "refused")]
    cells = [fit(plain(word), cells, right=number == 0) for number, (word, cells) in enumerate(words)]
    cells += [fit(plain(word), cells, right=True) for word, cells in counts]
    return _toned(fit(joined_cells([*cells, plain("what, and by whom")]), width), moment.tone("muted"))


def intake_line(view: IntakeView, moment: Moment, time_of_day: Callable[[float], str], width: int) -> Text:
    """One intake."""
    head = view.head
    counts = ((view.accepted, "good"), (view.duplicates, "muted"), (view.opened, "preparing"), (view.refused, "bad"))
    cells = [
        fit(plain(str(view.number), "bold"), NUMBER_CELLS, right=True),
        fit(plain(time_of_day(head.began_at)), TIME_CELLS),
        fit(plain(head.way.value), WAY_CELLS),
        *(
            fit(plain(f"{count:,}" if count else "·", moment.tone(tone if count else "muted")), COUNT_CELLS, right=True)
            for count, tone in counts
        ),
        sentence(head.title) if head.title else plain("–"),
        shown(head.actor, moment.tone("muted")),
    ]
    return fit(joined_cells(cells), width)


def account_line(line: IntakeLine, moment: Moment, width: int) -> Text:
    """One line of an account."""
    tone = moment.tone(TONES[line.fate])
    task = "" if line.task_id is None else f"#{line.task_id}"
    size = "" if line.size_bytes is None else short_size(line.size_bytes)
    cells = [fit(plain(f"{SIGNS[line.fate]} {line.fate.value}", tone), FATE_CELLS + 2)]
    if width >= ROOMY or task or size:
        cells += [fit(plain(task, "bold"), TASK_CELLS), fit(plain(size), SIZE_CELLS, right=True)]
    cells.append(plain(escape(line.name.name)))
    if line.reason:
        cells.append(sentence(f"– {line.reason}", tone))
    if line.name.archive:
        cells.append(plain(f"in {line.name.archive[:12]}", moment.tone("muted")))
    return fit(joined_cells(cells), width)


def account_title(view: IntakeView, time_of_day: Callable[[float], str]) -> Text:
    """What an account is of."""
    title = plain(f"Intake {view.number} · {view.head.way.value} at {time_of_day(view.head.began_at)} · ")
    title.append_text(sentence(view.head.title) if view.head.title else shown(view.head.actor))
    return title


def _toned(text: Text, style: str) -> Text:
    text.stylize(style)
    return text
