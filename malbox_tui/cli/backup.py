"""`malbox-tui backup DIR`: a copy of the data folder that can be worked with. Also beside a running engine."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from malbox_tui.cli.contents import tell_of
from malbox_tui.cli.engine_door import check_store, wall_time
from malbox_tui.cli.options import FLAG, GlobalOptions, some_path
from malbox_tui.cli.output import write_line, write_record
from malbox_tui.cli.text import counted, size
from malbox_tui.model.sample import escape

EXIT_SOUND = 0
EXIT_TROUBLE = 1


def backup(
    target: Annotated[Path, Parameter(name="DIR", converter=some_path)],
    /,
    *,
    json: Annotated[bool, FLAG] = False,
    options: GlobalOptions | None = None,
) -> int:
    """Copy store, samples, results and configuration to a new folder, as of one moment, and read all of the copy back.

    The copy is a data folder: `--data-dir DIR` works with it, and so does whatever is moved back in place of a lost one.

    Exit code 0: copied, and sound; 1: copied, and something in it is lost or damaged, as it is here; 2: not copied.

    Parameters
    ----------
    target
        The folder, which must not be there yet.
    json
        Print one JSON object a line.
    """
    from malbox_tui.runtime.contents import copy

    chosen = options or GlobalOptions()
    check_store(chosen.folders)
    done, troubles = copy(chosen.folders, target, wall_time())
    for trouble in troubles:
        tell_of(trouble, json)
    if json:
        write_record(
            {
                "record": "backup",
                "path": escape(bytes(target.absolute())),
                "samples": done.samples,
                "results": done.results,
                "size_bytes": done.size_bytes,
                "vanished": done.vanished,
                "troubles": len(troubles),
            }
        )
    else:
        what = f"{counted(done.samples, 'sample')} and {counted(done.results, 'result')}, {size(done.size_bytes)}"
        gone = f"; {counted(done.vanished, 'thing')} that went meanwhile left out" if done.vanished else ""
        write_line(f"Copied to {escape(bytes(target))}: {what}{gone}; {counted(len(troubles), 'trouble')} in it.")
        write_line(f"It works as it is: malbox-tui --data-dir {shlex.quote(escape(bytes(target.absolute())))}")
    return EXIT_TROUBLE if troubles else EXIT_SOUND
