"""The kinds that a configuration may name are those that the plugin `file-type` gives."""

from __future__ import annotations

import runpy

from malbox_tui.model.kinds import KINDS
from malbox_tui.plugins.registry import BUILTIN_FOLDER


def test_they_are_those_that_the_plugin_gives() -> None:
    given = runpy.run_path(str(BUILTIN_FOLDER / "file-type" / "kinds.py"))
    tables = ("LIBMAGIC_KINDS", "LIBMAGIC_PREFIXES", "LIBMAGIC_DESCRIPTIONS")
    named = {kind.name for table in tables for kind in given[table].values()}
    named |= {label if kind is None else kind.name for label, kind in given["MAGIKA_KINDS"].items()}
    assert named | {"unknown", "text"} == KINDS
