"""What `doctor --store` says of the samples and results in a data folder."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from malbox_tui.cli.engine_door import wall_time
from malbox_tui.cli.output import write_line, write_record
from malbox_tui.cli.text import counted, sentence, size
from malbox_tui.config.folders import DataFolders

if TYPE_CHECKING:
    from malbox_tui.runtime.contents import Trouble

EXIT_SOUND = 0
EXIT_TROUBLE = 1


def check_contents(folders: DataFolders, as_json: bool) -> int:
    """Look through all of them, say what is wrong, and return the exit code. Raises `StoreError`."""
    from malbox_tui.runtime.contents import Fault, checkup

    looking = checkup(folders, wall_time())
    counts: Counter[Fault] = Counter()
    for trouble in looking.run():
        counts[trouble.fault] += 1
        tell_of(trouble, as_json)
    checked = looking.checked
    if as_json:
        found = {fault.value: counts[fault] for fault in Fault}
        read = {"samples": checked.samples, "results": checked.results, "size_bytes": checked.size_bytes}
        write_record({"record": "checked", **read, **found})
    else:
        read_all = (
            f"{counted(checked.samples, 'sample')} and {counted(checked.results, 'result')} read ({size(checked.size_bytes)})"
        )
        write_line(f"{read_all}: {', '.join(f'{counts[fault]} {fault.value}' for fault in Fault)}.")
    return EXIT_TROUBLE if counts else EXIT_SOUND


def tell_of(trouble: Trouble, as_json: bool) -> None:
    """Say what is wrong with one content."""
    if as_json:
        write_record(
            {
                "record": "content",
                "kind": trouble.thing.value,
                "state": trouble.fault.value,
                "what": trouble.what,
                "detail": sentence(trouble.detail),
                "remedy": sentence(trouble.remedy),
            }
        )
    else:
        write_line(f"{trouble.fault.value:<9} {trouble.thing.value:<7} {trouble.what}: {sentence(trouble.detail)}")
        write_line(f"{'':<18}to do: {trouble.remedy}")
