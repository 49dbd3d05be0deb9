"""The README's table of keys is the app's own."""

from __future__ import annotations

from pathlib import Path

from malbox_tui.tui import keys

README = (Path(__file__).resolve().parent.parent.parent / "README.md").read_text(encoding="utf-8")


def test_the_readme_lists_the_keys_as_they_are_bound() -> None:
    rows = [f"| `{key.shown}` | {key.help} |" for group in (keys.DASHBOARD, keys.MACHINES[:-1], keys.EVERYWHERE) for key in group]
    assert "\n".join(["| key | what it does |", "| --- | --- |", *rows]) in README
