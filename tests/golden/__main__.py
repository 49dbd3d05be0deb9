"""`python -m tests.golden`: writes the pictures that the README shows into `screenshots/`. On a clean checkout it changes nothing."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

os.environ.pop("NO_COLOR", None)
os.environ.pop("TEXTUAL_THEME", None)

from tests.golden.scenarios import SCENES, Scene

FOLDER = Path(__file__).resolve().parent.parent.parent / "screenshots"


async def picture(scene: Scene) -> str:
    """The scene as SVG."""
    app = scene.app()
    async with app.run_test(size=scene.size, notifications=True) as pilot:
        await scene.play(pilot)
        return app.export_screenshot(title=f"malbox-tui, {scene.name}")


def main() -> None:
    """Write them."""
    FOLDER.mkdir(exist_ok=True)
    for scene in SCENES:
        if scene.in_readme:
            (FOLDER / f"{scene.name}.svg").write_text(asyncio.run(picture(scene)), encoding="utf-8")


if __name__ == "__main__":
    main()
