"""`malbox-tui config`: begin, check and show the configuration file."""

from __future__ import annotations

from cyclopts import App

from malbox_tui.cli.options import GlobalOptions
from malbox_tui.cli.output import tell, write_line
from malbox_tui.cli.text import counted, sentence
from malbox_tui.config.template import as_toml, write_template
from malbox_tui.model.errors import MalboxError


def make_app() -> App:
    """The group of commands."""
    group = App(name="config", help="Begin, check and show the configuration file.")
    group.command(init)
    group.command(check)
    group.command(show)
    return group


def init(*, options: GlobalOptions | None = None) -> int:
    """Write a commented configuration file with every key; a file that exists is never overwritten."""
    source = (options or GlobalOptions()).source
    write_template(source.path)
    tell(f"Wrote {source.shown}.")
    return 0


def check(*, options: GlobalOptions | None = None) -> int:
    """Say whether the configuration file is right, or everything that is wrong with it.

    Exit code 0: it is right; 2: it is not. With nothing but machines that are there twice an engine starts, and doesn't use those.
    """
    from malbox_tui.runtime.diagnosis import plugin_fault

    options = options or GlobalOptions()
    source = options.source
    configuration = source.read()
    faults: list[MalboxError] = [*configuration.faults, *configuration.doubles]
    if not configuration.faults:
        fault_of_plugins = plugin_fault(configuration.settings, options.folders, source)
        faults += [] if fault_of_plugins is None else [fault_of_plugins]
    for fault in faults:
        tell(sentence(str(fault)))
    if faults:
        tell(f"{source.shown}: {counted(len(faults), 'fault')}.")
        return 2
    missing = "" if source.exists else " (there is no such file; the defaults are in effect)"
    write_line(f"{source.shown}: OK{missing}")
    for note in configuration.notes:
        write_line(note)
    return 0


def show(*, options: GlobalOptions | None = None) -> int:
    """Print the configuration in effect as TOML, and where it comes from."""
    source = (options or GlobalOptions()).source
    configuration = source.read()
    if configuration.faults:
        raise configuration.faults[0]
    origin = f"From {source.shown}" if source.exists else f"The defaults; there is no {source.shown}"
    write_line(f"# {origin}.")
    for note in (*configuration.notes, *map(str, configuration.doubles)):
        write_line(f"# {sentence(note)}")
    write_line("")
    write_line(as_toml(configuration.settings).rstrip("\n"))
    return 0
