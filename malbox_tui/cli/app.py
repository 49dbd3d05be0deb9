"""The command line: which commands there are, and how each way of ending becomes a message and an exit code."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import Annotated

from cyclopts import App, CycloptsError, Parameter, UnusedCliTokensError

from malbox_tui.cli import (
    analyze,
    attach,
    backup,
    completion,
    config,
    console,
    doctor,
    engine_commands,
    machines_discover,
    plugins,
    profiles,
    report,
    serve,
    tasks,
    where,
)
from malbox_tui.cli.options import GlobalOptions, split_leading
from malbox_tui.cli.output import OutputClosed, abandon_stdout, prepare_streams, tell
from malbox_tui.cli.text import sentence
from malbox_tui.model.errors import Disconnected, MalboxError

EXIT_FAILED = 1
EXIT_USAGE = 2


def make_app(tokens: Sequence[str] = ()) -> App:
    """The whole command line; calling it returns a command's exit code and raises what the command raises.

    `tokens` are those that it will be called with: what stands behind `--` is never taken for a command.
    """
    app = App(
        name="malbox-tui",
        help="Open the console on a pool of malware-analysis workers; PATHS become tasks. Where stdout is no terminal: as `analyze`.",
        usage="Usage: malbox-tui [OPTIONS] [PATH...]\n       malbox-tui COMMAND [OPTIONS]",
        version=_version,
        version_flags=["--version"],
        help_format="markdown",
        print_error=False,
        exit_on_error=False,
        help_on_error=False,
        suppress_keyboard_interrupt=False,
        result_action="return_value",
    )
    app.command(analyze.analyze, usage="Usage: malbox-tui analyze [OPTIONS] [PATH...]")
    app.command(serve.serve)
    app.command(attach.attach, usage="Usage: malbox-tui attach [OPTIONS] [TARGET]")
    app.command(where.where)
    app.command(tasks.tasks, usage="Usage: malbox-tui tasks [OPTIONS] [SELECTOR...]")
    app.command(tasks.task, usage="Usage: malbox-tui task [OPTIONS] SELECTOR...")
    app.command(report.report, usage="Usage: malbox-tui report [OPTIONS] TASK")
    engine_commands.add_to(app)
    app["machines"].command(machines_discover.discover, usage="Usage: malbox-tui machines discover [OPTIONS] URI")
    app.command(doctor.doctor)
    app.command(backup.backup, usage="Usage: malbox-tui backup [OPTIONS] DIR")
    app.command(config.make_app())
    app.command(plugins.make_app())
    app.command(profiles.profiles)
    app.command(completion.make_app(app))
    words = list(takewhile("--".__ne__, tokens))
    app.default(
        console.make_command(
            lambda: _usage(app, None), lambda word: word in words, lambda word: _unknown_command(word, app, None)
        )
    )
    for group in ("config", "plugin", "completion"):
        app[group].default(_usage_of(app, group))
    return app


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line (None: the process's own) and return its exit code."""
    prepare_streams()
    tokens = list(sys.argv[1:] if arguments is None else arguments)
    app = make_app(tokens)
    try:
        code = app(_globals_last(app, tokens))
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except CycloptsError as error:
        return _wrong_usage(error)
    except MalboxError as error:
        tell(f"malbox-tui: {sentence(str(error))}")
        was_lost = isinstance(error, Disconnected) and bool(error.since)
        return EXIT_FAILED if was_lost else EXIT_USAGE
    except OutputClosed as error:
        if error.detail:
            tell(f"malbox-tui: The results can't be written to stdout: {error.detail}.")
        return EXIT_FAILED
    except OSError as error:
        if error.filename is not None:
            raise
        # Of no file, so of a stream: help and version are printed without our hand in it.
        abandon_stdout()
        if not isinstance(error, BrokenPipeError):
            tell(f"malbox-tui: What was to be printed can't be written: {error.strerror or error}.")
        return EXIT_FAILED
    except KeyboardInterrupt:
        return EXIT_FAILED


def _globals_last(app: App, tokens: list[str]) -> list[str]:
    """The same command line with the global options behind the command's name, where the command looks for them."""
    leading, rest = split_leading(tokens)
    chain: list[str] = []
    while found := app.parse_commands([*chain, *rest])[0][len(chain) :]:
        chain += found
        more, rest = split_leading(rest[len(found) :])
        leading += more
    return [*chain, *leading, *rest]


def _usage_of(app: App, group: str) -> Callable[..., int]:
    def usage(*words: Annotated[str, Parameter(show=False)], options: GlobalOptions | None = None) -> int:
        return _unknown_command(words[0], app, group) if words else _usage(app, group)

    usage.__doc__ = app[group].help
    return usage


def _usage(app: App, group: str | None) -> int:
    from rich.console import Console

    app.help_print([] if group is None else [group], console=Console(stderr=True))
    return EXIT_USAGE


def _unknown_command(word: str, app: App, group: str | None) -> int:
    command = "malbox-tui" if group is None else f"malbox-tui {group}"
    known = [name for name in (app if group is None else app[group]) if not name.startswith("-")]
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    hint = f"Did you mean `{command} {near[0]}`?" if near else f"There are: {', '.join(known)}."
    no_path = ", and there is no file or folder of that name" if group is None else ""
    tell(f"malbox-tui: `{command}` has no command {sentence(repr(word))}{no_path}. {hint}")
    tell(f"Usage: {command} COMMAND. `{command} --help` says what each does.")
    return EXIT_USAGE


def _wrong_usage(error: CycloptsError) -> int:
    unused = error.unused_tokens if isinstance(error, UnusedCliTokensError) else None
    problem = f"Unexpected argument: {' '.join(unused)}." if unused else str(error)
    command = " ".join(["malbox-tui", *(error.command_chain or ())])
    tell(f"malbox-tui: {sentence(problem)}")
    tell(f"`{sentence(command)} --help` shows how it is used.")
    return EXIT_USAGE


def _version() -> str:
    from importlib.metadata import version

    return f"malbox-tui {version('malbox-tui')}"
