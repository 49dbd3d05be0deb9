"""`malbox-tui completion`: what a shell needs to complete the command's words."""

from __future__ import annotations

from typing import Literal

from cyclopts import App

from malbox_tui.cli.options import GlobalOptions
from malbox_tui.cli.output import tell, write_line

Shell = Literal["bash", "zsh", "fish"]


def make_app(command_line: App) -> App:
    """The group of commands, for completing `command_line`."""
    group = App(name="completion", help="Complete the command's words in a shell.")

    @group.command
    def show(shell: Shell, *, options: GlobalOptions | None = None) -> int:
        """Print the completion script of a shell.

        Parameters
        ----------
        shell
            The shell to print it for.
        """
        write_line(command_line.generate_completion(shell=shell).rstrip("\n"))
        return 0

    @group.command
    def install(shell: Shell, *, options: GlobalOptions | None = None) -> int:
        """Write the completion script to where the shell finds it, and start-up files that need a line for it get one.

        Parameters
        ----------
        shell
            The shell to install it for.
        """
        tell(f"Wrote {command_line.install_completion(shell=shell)}. It works in new shells.")
        return 0

    return group
