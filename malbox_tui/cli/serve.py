"""`malbox-tui serve`: the engine without a screen, served on the control socket of its data folder."""

from __future__ import annotations

import os

from malbox_tui.cli.log_file import log_failed_threads
from malbox_tui.cli.notify import Notifier
from malbox_tui.cli.options import GlobalOptions
from malbox_tui.cli.output import tell
from malbox_tui.cli.service_log import log_as_json
from malbox_tui.cli.text import sentence


def serve(*, options: GlobalOptions | None = None) -> int:
    """Run the engine as a service, without a screen, until it is told to end.

    SIGTERM lets running tasks finish for up to `general.drain_timeout_s`; a second one, and Ctrl+C, give them back, for the next start
    to finish; one more ends at once. SIGHUP reads the configuration again and says what changed and what needs a restart.

    Exit code 0: it was told to end, and did; 1: it broke down, or was ended before all had; 2: it could not start (the configuration,
    the socket, or another process holds the data folder, and is named).
    """
    from malbox_tui.cli.service import Service
    from malbox_tui.runtime import run_patiently

    chosen = options or GlobalOptions()
    configuration = chosen.source.read()
    if configuration.faults:
        raise configuration.faults[0]
    chosen.folders.create()
    log_as_json(chosen.folders, chosen.log_level.value)
    log_failed_threads()
    for note in configuration.notes:
        tell(sentence(note))
    return run_patiently(Service(configuration.settings, chosen, Notifier.of(os.environ)).run())
