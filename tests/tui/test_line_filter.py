"""What the last gate lets through to the terminal."""

from __future__ import annotations

import pytest
from rich.cells import cell_len
from rich.control import Control
from rich.segment import Segment
from rich.style import Style
from textual.color import Color

from malbox_tui.tui.line_filter import SafeText

BLACK = Color(0, 0, 0)


def filtered(*segments: Segment | str) -> list[Segment]:
    given = [Segment(segment) if isinstance(segment, str) else segment for segment in segments]
    return SafeText().apply(given, BLACK)


def text_of(text: str) -> str:
    return "".join(segment.text for segment in filtered(text))


@pytest.mark.parametrize("code", [*range(0x20), *range(0x7F, 0xA0)])
def test_no_control_character_passes(code: int) -> None:
    assert text_of(f"a{chr(code)}b") == "ab"


@pytest.mark.parametrize("char", list("\u202e\u2066\u200b\ufeff\u2028\u00ad\udcff\ufe0f\u3164\u034f\U000e0041"))
def test_nothing_passes_that_turns_text_around_or_can_not_be_seen(char: str) -> None:
    shown = text_of(f"a{char}b")
    assert char not in shown
    assert (shown[0], shown[-1]) == ("a", "b")


@pytest.mark.parametrize("text", ["plain", "naïve café", "文件.exe", "🦠 x", "┌─│▓░●✓⊘…·", "e\u0301", "नमस्ते"])
def test_what_can_be_seen_passes_as_it_is(text: str) -> None:
    segments = [Segment(text, Style(color="red"))]
    assert SafeText().apply(segments, BLACK) is segments


@pytest.mark.parametrize(
    "text",
    [
        "a\x1b[31mb",
        "\udcff\udcfe.exe",
        "\u202egpj.exe",
        "文\x1b件\u200b",
        "👩\u200d👩\u200d👧 family",
        "❤\ufe0f",
        "\u3000wide\u00a0space",
        "\x1b]52;c;eA==\x07",
        "x\u3164\u2800y",
        "\ue000\U0010ffff",
    ],
)
def test_a_line_keeps_its_width(text: str) -> None:
    assert cell_len(text_of(text)) == cell_len(text)


def test_spaces_of_any_kind_are_spaces() -> None:
    assert text_of("a\u00a0b\u2003c\u3000d") == "a b c  d"


def test_a_style_survives_and_a_hyperlink_does_not() -> None:
    (segment,) = filtered(Segment("x\x1b", Style(bold=True, link="http://evil.example/\x1b[6n")))
    assert segment.text == "x"
    assert segment.style is not None
    assert (segment.style.bold, segment.style.link) == (True, None)


def test_the_consoles_own_control_codes_pass() -> None:
    (segment,) = filtered(Control.home().segment)
    assert segment.control is not None


def test_two_filters_share_what_a_cache_holds() -> None:
    assert {SafeText(): 1}[SafeText()] == 1
