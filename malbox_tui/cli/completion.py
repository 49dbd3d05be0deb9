"""`malbox-tui completion`: what a shell needs to complete the command's words.

The scripts are made of the command line itself; what they can't know (tasks, groups, machines) they ask for: `completion words`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Literal

from cyclopts import App, Parameter

from malbox_tui.cli.known_words import ASKING_COMMANDS, print_known_words
from malbox_tui.cli.options import GlobalOptions
from malbox_tui.cli.output import tell, write_line
from malbox_tui.cli.text import sentence

Shell = Literal["bash", "zsh", "fish"]

START_UP_FILES = {"bash": ".bashrc", "zsh": ".zshrc"}
"""What cyclopts adds a line to."""

_BASH = """
_malbox_tui_and_known_words() {
  _malbox_tui "$@"
  local cur="${COMP_WORDS[COMP_CWORD]}" word
  [[ $cur == -* ]] && return
  case " ${COMP_WORDS[*]:1:COMP_CWORD-1} " in
    %s) ;;
    *) return ;;
  esac
  while IFS= read -r word; do
    COMPREPLY+=("$(printf '%%q' "$word")")
  done < <("${COMP_WORDS[0]}" completion words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}

complete -F _malbox_tui_and_known_words malbox-tui
"""

_ZSH_PLACE = "  local line state\n"
_ZSH = """
  if [[ ${words[CURRENT]} != -* ]] && (( ${words[(I)(%s)]} )); then
    local -a known
    known=("${(@f)$("${words[1]}" completion words -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    known=("${(@)known:#}")
    (( ${#known} )) && compadd -V known -a known
  fi
"""

_FISH = (
    "complete -c malbox-tui -k -f -n '__fish_seen_subcommand_from %s' "
    "-a '(set -l typed (commandline -opc) (commandline -ct); $typed[1] completion words -- $typed[2..] 2>/dev/null)'\n"
)


def completion_script(command_line: App, shell: Shell) -> str:
    """What the shell is to load."""
    return _WITH_KNOWN_WORDS[shell](command_line.generate_completion(shell=shell).rstrip("\n") + "\n")


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
        write_line(completion_script(command_line, shell).rstrip("\n"))
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
        written = Path(command_line.install_completion(shell=shell))
        written.write_text(completion_script(command_line, shell))
        loaded = f", and to ~/{START_UP_FILES[shell]} the line that loads it" if shell in START_UP_FILES else ""
        tell(f"Wrote {sentence(str(written))}{loaded}. It works in new shells.")
        return 0

    @group.command(show=False)
    def words(*typed: Annotated[str, Parameter(allow_leading_hyphen=True)]) -> int:
        """What may stand at the end of a command line, for a shell to ask."""
        return print_known_words(typed)

    return group


def _bash(script: str) -> str:
    return script + _BASH % "|".join(f'*" {command} "*' for command in ASKING_COMMANDS)


def _zsh(script: str) -> str:
    head, place, rest = script.partition(_ZSH_PLACE)
    return head + place + _ZSH % "|".join(ASKING_COMMANDS) + rest if place else script


def _fish(script: str) -> str:
    return f"{script}\n{_FISH % ' '.join(ASKING_COMMANDS)}"


_WITH_KNOWN_WORDS: Mapping[Shell, Callable[[str], str]] = MappingProxyType({"bash": _bash, "zsh": _zsh, "fish": _fish})
