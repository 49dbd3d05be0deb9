"""`malbox-tui doctor`: what this host can do, each line with its remedy."""

from __future__ import annotations

from typing import Annotated

from malbox_tui.cli.contents import check_contents
from malbox_tui.cli.engine_door import check_store
from malbox_tui.cli.options import FLAG, GlobalOptions
from malbox_tui.cli.output import write_line, write_record
from malbox_tui.cli.text import counted, sentence


def doctor(
    *,
    store: Annotated[bool, FLAG] = False,
    json: Annotated[bool, FLAG] = False,
    options: GlobalOptions | None = None,
) -> int:
    """Say what this host can do: isolation, machines, disk, limits, plugins, terminal; each line with its remedy.

    With --store: look whether each sample and each result is there and is what was stored, and whether anything lies there that no
    task has. That reads all of it, changes nothing, and works beside a running engine.

    Exit code 0: nothing failed; 1: something did; 2: with --store, there is no store, or it can't be read.

    Parameters
    ----------
    store
        Look through samples and results instead.
    json
        Print one JSON object a line.
    """
    from malbox_tui.runtime.diagnosis import Health, diagnose

    chosen = options or GlobalOptions()
    if store:
        check_store(chosen.folders)
        return check_contents(chosen.folders, json)
    counts = dict.fromkeys(Health, 0)
    for finding in diagnose(chosen.folders, chosen.source):
        counts[finding.health] += 1
        detail, remedy = sentence(finding.detail), sentence(finding.remedy)
        if json:
            write_record(
                {
                    "record": "check",
                    "what": finding.what,
                    "state": finding.health.value,
                    "detail": detail,
                    "remedy": remedy or None,
                }
            )
        else:
            write_line(f"{finding.health.value:<4}  {finding.what:<14} {detail}")
            if remedy:
                write_line(f"{'':<21}to do: {remedy}")
    if not json:
        failures, warnings = counts[Health.FAIL], counts[Health.WARN]
        write_line(f"\n{counted(failures, 'failure')}, {counted(warnings, 'warning')}.")
    return 1 if counts[Health.FAIL] else 0
