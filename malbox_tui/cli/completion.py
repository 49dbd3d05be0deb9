"""`malbox-tui completion`: what a shell needs to complete the command's words."""

from __future__ import annotations

from typing import Literal

from cyclopts import App

from malbox_tui.cli.options import GlobalOptions
from malbox_tui.cli.output import tell, write_line
from malbox_tui.cli.text import sentence

Shell = Literal["bash", "zsh", "fish"]

START_UP_FILES = {"bash": ".bashrc", "zsh": ".zshrc"}
"""What cyclopts adds a line to."""


def make_app(command_line: App) -> App:
    """The group of commands, for completing `command_line`."""
    group = App(name="completion", help="Complete the command's words in a shell.")

    @group.command
    def show(shell: Shell, /, *, options: GlobalOptions | None = None) -> int:
        """Print the completion script of a shell.

        Parameters
        ----------
        shell
            The shell to print it for.
        """
        write_line(command_line.generate_completion(shell=shell).rstrip("\n"))
        return 0

    @group.command
    def install(shell: Shell, /, *, options: GlobalOptions | None = None) -> int:
        """Write the completion script to where the shell finds it; for bash and zsh also the line that loads it to `~/.bashrc` or
        `~/.zshrc`.

        Parameters
        ----------
        shell
            The shell to install it for.
        """
        written = str(command_line.install_completion(shell=shell))
        loaded = f", and to ~/{START_UP_FILES[shell]} the line that loads it" if shell in START_UP_FILES else ""
        tell(f"Wrote {sentence(written)}{loaded}. It works in new shells.")
        return 0

    return group
