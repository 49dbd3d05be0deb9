"""Where the console's styles lie."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent.parent


def styles_folder() -> Path:
    """The folder of the .tcss files: `_styles` inside an installed package, `styles` beside it in a checkout."""
    installed = _PACKAGE / "_styles"
    return installed if installed.is_dir() else _PACKAGE.parent / "styles"
