"""Where the program begins: what a shell asks while somebody types is answered without loading the rest."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line (None: the process's own) and return its exit code."""
    tokens = list(sys.argv[1:] if arguments is None else arguments)
    if tokens[:2] == ["completion", "words"]:
        from malbox_tui.cli.known_words import print_known_words

        return print_known_words(tokens[3:] if tokens[2:3] == ["--"] else tokens[2:])
    from malbox_tui.cli.app import main as run

    return run(tokens)
