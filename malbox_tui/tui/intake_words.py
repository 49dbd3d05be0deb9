"""Intakes in words: what would come in, how far one is, and what came of it. Pure."""

from __future__ import annotations

from collections.abc import Collection

from rich.text import Text

from malbox_tui.model.sample import escape
from malbox_tui.model.survey import Survey
from malbox_tui.tui.identified import Identified, identified_rows
from malbox_tui.tui.intake_run import IntakeRun
from malbox_tui.tui.moment import Moment
from malbox_tui.tui.text import clock_time, counted, first_fitting, fit, joined_cells, labelled, plain, sentence, short_size

LABEL_CELLS = 11
SHOWN_REFUSALS = 3
"""Of more refusals the others are counted."""
SHOWN_KINDS = 6
BAR_CELLS = 20


def preview_title(survey: Survey) -> Text:
    """How much would come in."""
    going_on = "" if survey.done else " so far"
    return plain(f"Add {_grouped(survey.files, 'file')}, {short_size(survey.size_bytes)}{going_on}", "bold")


def preview_lines(
    survey: Survey,
    title: str,
    known: Collection[str] | None,
    moment: Moment,
    width: int,
    identified: Identified | None = None,
    *,
    brief: bool = False,
) -> list[Text]:
    """What would come in, in lines of `width` cells, a `brief` account in fewer. `title` says from where; `known` are the sums that
    have a task already (None: it could not be asked); `identified` is what the first files are (None: nobody can say)."""
    named, fits = (1, width - LABEL_CELLS) if brief else (SHOWN_REFUSALS, None)
    cells, muted = (LABEL_CELLS, width), moment.tone("muted")
    rows = [("from", sentence(title).plain, "")]
    if survey.kinds:
        rows.append(("kinds", _kinds(survey, fits), ""))
    if identified is not None:
        found = identified_rows(identified, survey.files, opens_archives=survey.opens_archives, cells=fits)
        rows += [(label, said, "") for label, said in found]
    if survey.archives:
        become = "what is in them is taken" if survey.opens_archives else "not opened, each is taken as one file"
        rows.append(("archives", f"{survey.archives:,}; {become}", ""))
    rows += [("known", said, "") for said in _known(survey, known)]
    if survey.refused:
        rows.append(("refused", f"{survey.refused:,} can't be taken:", moment.tone("bad")))
    lines = [line for label, text, style in rows for line in labelled(label, text, cells, muted, style)]
    for refused in survey.refusals[:named]:
        said = joined_cells([plain(" " * LABEL_CELLS), sentence(f"{escape(refused.name.name)}: {refused.refusal.reason}")], "")
        lines.append(fit(said, width) if said.cell_len > width else said)
    if survey.refused > named:
        lines.append(plain(f"{' ' * LABEL_CELLS}and {survey.refused - named:,} more; the account will name each", muted))
    return lines


def progress_line(run: IntakeRun, moment: Moment, width: int) -> Text:
    """How far an intake is, how fast it goes, how long it takes yet, and what stops it."""
    word = plain(" ADDING ", f"bold reverse {moment.tone('preparing')}")
    count = f"{run.settled:,}"
    if run.total is None:
        said, bar = f"{count} so far", ""
    else:
        done = min(1.0, run.settled / run.total) if run.total else 1.0
        full = round(done * BAR_CELLS)
        said, bar = f"{count} of {run.total:,}", f"{'█' * full}{'░' * (BAR_CELLS - full)} "
    rate = f" · {run.per_second:,.0f}/s" if run.settled and run.elapsed_s >= 1 else ""
    left = f" · {clock_time(run.left_s)} left" if run.left_s is not None and run.elapsed_s >= 1 else ""
    refused = f" · {run.refusals:,} refused" if run.refusals else ""
    stop = "stopping" if run.is_stopped else "esc stops"
    counts = (f"{said}{rate}{left}{refused}", f"{said}{rate}{left}", f"{said}{left}", said)
    phrases = [
        f"{begun}{counted_so} · {stop}"
        for begun, counted_so in ((bar, counts[0]), (bar, counts[1]), *(("", one) for one in counts))
    ]
    line = joined_cells([word, plain(first_fitting(phrases, width - word.cell_len - 1))])
    return fit(line, width)


def outcome_words(run: IntakeRun) -> Text:
    """What came of an intake."""
    parts = [f"{len(run.task_ids):,} added"]
    parts += [f"{run.known:,} known already"] if run.known else []
    parts += [f"{run.left_out:,} left out"] if run.left_out else []
    text = plain(", ".join(parts))
    if run.refused:
        first = run.refused[0]
        text.append(f", {run.refusals:,} refused: ")
        text.append_text(sentence(f"{escape(first.name.name)}: {first.refusal.reason}"))
        if run.refusals > 1:
            text.append(" h shows the account of all.")
    if run.is_stopped:
        left = run.not_taken
        rest = "the rest was not read" if left is None else f"{_grouped(left, 'file')} not read"
        text = Text.assemble("Stopped: ", text, f"; {rest}")
    return text


def _kinds(survey: Survey, cells: int | None) -> str:
    most = sorted(survey.kinds.items(), key=lambda entry: (-entry[1], entry[0]))
    phrases = []
    for shown in range(SHOWN_KINDS, 0, -1):
        said, more = [f"{count:,} {kind}" for kind, count in most[:shown]], sum(count for _, count in most[shown:])
        phrases.append(", ".join([*said, *([f"{more:,} of other kinds"] if more else [])]))
    return phrases[0] if cells is None else first_fitting(phrases, cells)


def _known(survey: Survey, known: Collection[str] | None) -> list[str]:
    said = []
    if known:
        said.append(f"{len(known):,} {'has' if len(known) == 1 else 'have'} a task already")
    if known is None:
        said.append("which of them have a task already could not be asked")
    if survey.twins:
        said.append(f"{survey.twins:,} {'is' if survey.twins == 1 else 'are'} here twice")
    if survey.done and survey.unread > 0 and known is not None:
        said.append(f"{survey.unread:,} not read for that: it shows when they are added")
    return ["; ".join(said)] if said else []


def _grouped(count: int, noun: str) -> str:
    return counted(count, noun).replace(str(count), f"{count:,}", 1)
