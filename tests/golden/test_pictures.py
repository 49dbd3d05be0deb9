"""The console as pictures: what each scene looked like when somebody last looked at it and found it right.

A picture that differs fails; `pytest tests/golden --snapshot-update` takes the new ones, to be looked at before they are kept.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.golden.__main__ import FOLDER, picture
from tests.golden.scenarios import SCENES, Scene

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
def test_it_looks_as_it_did(scene: Scene, snap_compare: Callable[..., bool]) -> None:
    assert snap_compare(scene.app(), terminal_size=scene.size, run_before=scene.play)


@pytest.mark.parametrize("scene", [scene for scene in SCENES if scene.in_readme], ids=lambda scene: scene.name)
async def test_the_pictures_that_are_shown_are_of_today(scene: Scene) -> None:
    assert (FOLDER / f"{scene.name}.svg").read_text(encoding="utf-8") == await picture(scene)


def test_there_is_no_picture_that_no_scene_makes() -> None:
    assert {path.stem for path in Path(FOLDER).glob("*.svg")} == {scene.name for scene in SCENES if scene.in_readme}
