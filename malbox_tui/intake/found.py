"""What a walk finds."""

from __future__ import annotations

from dataclasses import dataclass

from malbox_tui.intake.regular_file import RegularFile
from malbox_tui.model.sample import SampleName
from malbox_tui.model.submission import Refusal


@dataclass(frozen=True, slots=True)
class Found:
    """One thing under the paths: an open file and what it begins with, or why it can't be a sample; neither when nothing was opened."""

    name: SampleName
    content: RegularFile | None = None
    head: bytes = b""
    refusal: Refusal | None = None
