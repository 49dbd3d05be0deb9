"""`python -m tests.benchmarks [--json] [NAME…]`: the groups of figures by name, all when none is named."""

from __future__ import annotations

import sys

from tests.benchmarks import console, machine, no_op, pending, usr_bin

GROUPS = {
    "machine": [machine.measure],
    "engine": [machine.measure, no_op.measure, pending.measure],
    "usr-bin": [usr_bin.measure],
    "console": [console.measure],
}


def main(arguments: list[str]) -> int:
    """Measure and print; 2 for a name that isn't there."""
    as_json = "--json" in arguments
    names = [argument for argument in arguments if argument != "--json"] or ["engine", "usr-bin", "console"]
    if unknown := sorted(set(names) - set(GROUPS)):
        sys.stderr.write(f"There is no benchmark {', '.join(unknown)}; there are {', '.join(GROUPS)}.\n")
        return 2
    for name in names:
        for measure in GROUPS[name]:
            for figure in measure():
                sys.stdout.write((figure.as_json() if as_json else figure.as_line()) + "\n")
                sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
