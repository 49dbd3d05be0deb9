"""Each mutant still fits the code that it changes: one that doesn't would prove nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


@pytest.mark.parametrize("patch", sorted(HERE.glob("*.patch")), ids=lambda path: path.stem)
def test_a_mutant_finds_what_it_changes(patch: Path) -> None:
    text = patch.read_text()
    assert text.splitlines()[0].endswith("."), "its first line says what it breaks"
    changed = re.findall(r"^\+\+\+ b/(\S+)\n((?:@@.*\n(?:[ +-].*\n|\n)+)+)", text, re.MULTILINE)
    assert len(changed) == text.count("+++ b/") > 0
    for file, hunks in changed:
        code = (ROOT / file).read_text()
        for hunk in re.split(r"^@@.*\n", hunks, flags=re.MULTILINE)[1:]:
            before = "\n".join(line[1:] for line in hunk.splitlines() if not line.startswith("+"))
            assert before in code, f"{file} has changed"
