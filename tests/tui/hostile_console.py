"""The console of a test in a process of its own: `python -m tests.tui.hostile_console hostile|plain OUTCOME`.

OUTCOME is the file that tells afterwards, as JSON, what was offered (origins in hex) and commanded, and how the app ended.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from malbox_tui.intake.folder_walk import FolderIntake
from malbox_tui.model.task import TaskState
from malbox_tui.tui.app import MalboxApp
from tests.tui.hostile import ALL, PAGES, engine
from tests.tui.scripted import ScriptedClient, record, surroundings


def main(kind: str, outcome: Path) -> None:
    waiting = [record(number, TaskState.PENDING) for number in (1, 2, 3)]
    client = engine((*ALL, *PAGES)) if kind == "hostile" else ScriptedClient(waiting)
    app = MalboxApp(surroundings(client, FolderIntake(1 << 20)))
    app.run()
    told = {
        "offered": [name.origin.hex() for name in client.offered],
        "commands": [type(command.action).__name__ for command in client.commands],
        "return_code": app.return_code,
    }
    outcome.write_text(json.dumps(told), encoding="ascii")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
