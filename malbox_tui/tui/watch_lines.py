"""Watched folders as lines of text. Pure."""

from __future__ import annotations

from rich.text import Text

from malbox_tui.model.watching import WatchState, WatchView
from malbox_tui.tui.moment import Moment
from malbox_tui.tui.text import fit, joined_cells, plain, sentence, shown

STATE_CELLS, COUNT_CELLS, AFTERWARDS_CELLS = 10, 8, 10
TONES = {WatchState.STARTING: "preparing", WatchState.WATCHING: "good", WatchState.AWAY: "bad"}
SIGNS = {WatchState.STARTING: "…", WatchState.WATCHING: "▸", WatchState.AWAY: "!"}
COUNTS = (("added", "good"), ("known", "muted"), ("refused", "bad"), ("waiting", "preparing"), ("left out", "muted"))


def watches_header(moment: Moment, width: int) -> Text:
    """The titles of `watch_line`."""
    cells = [fit(plain("state"), STATE_CELLS), *(fit(plain(word), COUNT_CELLS, right=True) for word, _tone in COUNTS)]
    line = fit(joined_cells([*cells, fit(plain("afterwards"), AFTERWARDS_CELLS), plain("folder")]), width)
    line.stylize(moment.tone("muted"))
    return line


def watch_line(view: WatchView, moment: Moment, width: int) -> Text:
    """One watched folder; what an operator has to know of it stands behind it."""
    counts = (view.added, view.known, view.refused, view.waiting, view.left_out)
    cells = [
        fit(plain(f"{SIGNS[view.state]} {view.state.value}", moment.tone(TONES[view.state])), STATE_CELLS),
        *(
            fit(plain(f"{count:,}" if count else "·", moment.tone(tone if count else "muted")), COUNT_CELLS, right=True)
            for count, (_word, tone) in zip(counts, COUNTS, strict=True)
        ),
        fit(shown(view.afterwards), AFTERWARDS_CELLS),
        shown(view.path + ("/**" if view.recursive else ""), "bold"),
    ]
    if view.problem:
        cells.append(sentence(f"– {view.problem}", moment.tone("bad")))
    return fit(joined_cells(cells), width)
