"""Rows as columns, as wide as what is in them, so that nothing is cut."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from malbox_tui.cli.output import write_line


def write_table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print them. Raises `OutputClosed`."""
    from rich.cells import cell_len

    lines = [titles, *rows]
    widths = [max(cell_len(line[column]) for line in lines) for column in range(len(titles))]
    for line in lines:
        cells = (cell + " " * (width - cell_len(cell)) for cell, width in zip(line, widths, strict=True))
        write_line("  ".join(cells).rstrip())
