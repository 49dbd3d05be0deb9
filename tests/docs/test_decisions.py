"""Decision notes keep their form."""

from pathlib import Path

import pytest

NOTES = sorted((Path(__file__).resolve().parents[2] / "malbox_tui" / "decisions").glob("*.md"))
PARTS = ("context", "decision", "follows", "rejected", "wrong")


@pytest.mark.parametrize("note", NOTES, ids=lambda note: note.stem)
def test_a_note_is_short_and_whole(note: Path) -> None:
    text = note.read_text()
    assert len(text.splitlines()) <= 30
    assert text.startswith("# ")
    assert [part for part in PARTS if part not in text.lower()] == []


def test_numbers_are_given_once() -> None:
    numbers = [note.name[:4] for note in NOTES]
    assert numbers == sorted(set(numbers))
