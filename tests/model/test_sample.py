"""Names: shown so that no terminal acts on them and nothing is invisible, and never lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from malbox_tui.model.sample import escape, unescape, visible


@given(st.binary(max_size=300))
def test_any_name_comes_back_as_it_was(name: bytes) -> None:
    assert unescape(escape(name)) == name


@given(st.text(max_size=300).map(lambda text: text.encode("utf-8", "surrogatepass")) | st.binary(max_size=300))
def test_a_shown_name_is_one_line_of_printable_characters(name: bytes) -> None:
    assert escape(name).isprintable()


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        (b"plain name.exe", "plain name.exe"),
        ("résumé 样本.doc".encode(), "résumé 样本.doc"),
        (b"a\nb\r\x1b]0;x\x07", "a\\x0ab\\x0d\\x1b]0;x\\x07"),
        ("exe\u202egpj".encode(), "exe\\xe2\\x80\\xaegpj"),
        ("zero\u200bwidth\ufeff".encode(), "zero\\xe2\\x80\\x8bwidth\\xef\\xbb\\xbf"),
        ("hangul\u3164filler".encode(), "hangul\\xe3\\x85\\xa4filler"),
        (b"r\xe9sum\xe9", "r\\xe9sum\\xe9"),
        (b"back\\slash\\x41", "back\\\\slash\\\\x41"),
        (b"[bold]", "[bold]"),
        ("c1\x9b31m".encode(), "c1\\xc2\\x9b31m"),
    ],
)
def test_what_a_name_looks_like(name: bytes, shown: str) -> None:
    assert escape(name) == shown


@pytest.mark.parametrize("text", ["\\", "a\\q", "\\x4", "\\xZZ", "\\\\\\"])
def test_text_that_escape_never_writes_is_no_name(text: str) -> None:
    with pytest.raises(ValueError, match="not an escaped name"):
        unescape(text)


def test_foreign_text_with_lone_surrogates_can_be_shown() -> None:
    assert visible("\ud800\udc41 x") == "\\xed\\xa0\\x80\\xed\\xb1\\x81 x"
