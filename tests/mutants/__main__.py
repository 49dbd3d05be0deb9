"""`python -m tests.mutants [NAME…]`: put one fault at a time into a copy of the tree; some seed or some test has to notice.

Each `*.patch` here begins with a line that says what it breaks. The unchanged tree is tried first: what fails anyway would prove
nothing. Seeds come first, then the tests of the engine, the model and the store.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PATCHES = Path(__file__).parent
COPIED = ("malbox_tui", "styles", "tests", "pyproject.toml")
SEEDS = 200
TESTED = ("tests/engine", "tests/model", "tests/contracts/store", "tests/store/test_stores_agree.py")
"""Tests that depend on no time but turned time: a slow host fails none of them."""
LIMIT_S = 600.0
"""A mutant that makes the seeds or the tests hang is found, too."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One patch."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def description(self) -> str:
        return self.path.read_text().partition("\n")[0]


@dataclass(frozen=True, slots=True)
class Finding:
    """What noticed a mutant, and after how long; nothing did when `by` is empty. `problem`: it could not be tried."""

    mutant: Mutant
    by: str
    seconds: float
    problem: str = ""


def main() -> int:
    """The exit status: 0 when the unchanged tree holds and every mutant was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these mutants")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    asked = parser.parse_args()
    mutants = [Mutant(path) for path in sorted(PATCHES.glob("*.patch")) if not asked.names or path.stem in asked.names]
    if missing := set(asked.names) - {mutant.name for mutant in mutants}:
        _say(f"There is no mutant {', '.join(sorted(missing))}.")
        return 2
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        unchanged = _copied(Path(folder) / "unchanged")
        if noticed := _noticed_by_seeds(unchanged) or _noticed_by_tests(unchanged):
            _say(f"The unchanged tree fails already: {noticed}. Nothing can be said of mutants.")
            return 1
        with ThreadPoolExecutor(asked.jobs) as pool:
            findings = list(pool.map(lambda mutant: _told(_tried(mutant, Path(folder))), mutants))
    return _judged(findings)


def _tried(mutant: Mutant, folder: Path) -> Finding:
    began = time.monotonic()
    tree = _copied(folder / mutant.name)
    try:
        if problem := _applied(mutant, tree):
            return Finding(mutant, "", 0.0, problem)
        noticed = _noticed_by_seeds(tree) or _noticed_by_tests(tree)
        return Finding(mutant, noticed, time.monotonic() - began)
    finally:
        shutil.rmtree(tree, ignore_errors=True)


def _copied(tree: Path) -> Path:
    tree.mkdir()
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, tree / name)
    return tree


def _applied(mutant: Mutant, tree: Path) -> str:
    """Apply a patch; says why it can't be."""
    command = ["git", "apply", "-C1", "--recount", str(mutant.path)]
    environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(tree.parent)}
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True)
    return "" if done.returncode == 0 else f"the patch no longer applies: {done.stderr.strip()}"


def _noticed_by_seeds(tree: Path) -> str:
    command = ("-m", "tests.simulation", "--seeds", str(SEEDS), "--jobs", "1", "--first-failure")
    output = _run(tree, command)
    if output is None:
        return ""
    found = re.search(r"^seed (\d+) failed: ([^:\n]*)", output, re.MULTILINE)
    return f"seed {found[1]} ({found[2]})" if found else f"the seeds: {_last_line(output)}"


def _noticed_by_tests(tree: Path) -> str:
    output = _run(tree, ("-m", "pytest", "-x", "-q", "--no-header", "-p", "no:randomly", *TESTED))
    if output is None:
        return ""
    found = re.search(r"^(?:FAILED|ERROR) \S*?([\w/]+\.py)::(\S+)", output, re.MULTILINE)
    return f"{found[1].rpartition('/')[2]}::{found[2]}" if found else f"the tests: {_last_line(output)}"


def _run(tree: Path, command: Sequence[str]) -> str | None:
    """What Python wrote when it failed or took too long; None when it succeeded."""
    # The copy comes before the checkout that the environment has installed.
    environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            [sys.executable, *command], cwd=tree, env=environment, capture_output=True, text=True, timeout=LIMIT_S
        )
    except subprocess.TimeoutExpired:
        return f"it did not end within {LIMIT_S:g} s"
    return None if done.returncode == 0 else done.stdout + done.stderr


def _last_line(output: str) -> str:
    return (output.strip().splitlines() or ["no output"])[-1]


def _told(finding: Finding) -> Finding:
    verdict = finding.problem or finding.by or "SURVIVED"
    sys.stderr.write(f"{finding.mutant.name}: {verdict}\n")
    return finding


def _judged(findings: Sequence[Finding]) -> int:
    names = max((len(finding.mutant.name) for finding in findings), default=0)
    for finding in findings:
        verdict = finding.problem or finding.by or "SURVIVED"
        _say(
            f"{finding.mutant.name:<{names}}  {finding.seconds:>6.1f} s  {verdict}",
            f"{'':<{names}}            {finding.mutant.description}",
        )
    survived = _named(finding for finding in findings if not finding.by and not finding.problem)
    broken = _named(finding for finding in findings if finding.problem)
    found = sum(bool(finding.by) for finding in findings)
    _say(f"{found} of {len(findings)} mutants were found.")
    if survived:
        _say(f"Survived: {survived}")
    if broken:
        _say(f"Could not be tried, write their patches anew: {broken}")
    return 1 if survived or broken else 0


def _named(findings: Iterable[Finding]) -> str:
    return ", ".join(finding.mutant.name for finding in findings)


def _say(*lines: str) -> None:
    sys.stdout.writelines(f"{line}\n" for line in lines)
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
