"""What `TerminalInput` makes of what a terminal sends, under a clock that the tests turn."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

from malbox_tui.tui.terminal_input import (
    BURST_S,
    MAX_PASTE_BYTES,
    PASTE_S,
    EscapeKey,
    Keys,
    Pasted,
    Piece,
    StaleMouse,
    TerminalInput,
)

ESCAPE_S = 0.1
DROP = b"/home/q/a b.exe "


@dataclass
class Terminal:
    """A terminal that sends, and a driver's thread that asks whenever it is time to."""

    now: float = 100.0
    given: list[Piece] = field(default_factory=list)
    input: TerminalInput = field(default_factory=lambda: TerminalInput(ESCAPE_S))

    def send(self, *reads: bytes, apart_s: float = 0.0) -> Terminal:
        """What the driver reads, one after the other."""
        for read in reads:
            self.given += self.input.feed(read, self.now)
            self.wait(apart_s)
        return self

    def wait(self, seconds: float) -> Terminal:
        """Time goes on, and the driver asks at each moment that it was told."""
        end = self.now + seconds
        while (wait_s := self.input.wait_s(self.now, end - self.now)) < end - self.now:
            self.now += wait_s
            self.given += self.input.due(self.now)
        self.now = end
        self.given += self.input.due(end)
        return self

    def rest(self) -> list[Piece]:
        """Everything, after a long silence; neighbouring keys as one."""
        self.wait(10.0)
        joined: list[Piece] = []
        for piece in self.given:
            if isinstance(piece, Keys) and joined and isinstance(joined[-1], Keys):
                joined[-1] = Keys(joined[-1].text + piece.text)
            else:
                joined.append(piece)
        return joined


def sent(*reads: bytes, apart_s: float = 0.0) -> list[Piece]:
    return Terminal().send(*reads, apart_s=apart_s).rest()


def split(data: bytes) -> list[bytes]:
    return [bytes([byte]) for byte in data]


# --- typing ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [b"j", b"q", b"c", b"\r", b"\t", b"\x03", "é".encode()])
def test_a_key_that_begins_no_path_is_passed_on_at_once(key: bytes) -> None:
    terminal = Terminal().send(key)
    assert terminal.given == [Keys(key.decode())]


def test_a_key_that_may_begin_a_path_waits_for_a_moment() -> None:
    terminal = Terminal().send(b"/")
    assert terminal.given == []
    assert terminal.wait(BURST_S).given == [Keys("/")]


@pytest.mark.parametrize("apart_s", [0.033, 0.060, 0.2])
def test_typing_is_keys_at_every_human_pace(apart_s: float) -> None:
    text = b"/home/q/a b.exe\r"
    terminal = Terminal().send(*split(text), apart_s=apart_s)
    assert all(isinstance(piece, Keys) and len(piece.text) == 1 for piece in terminal.given)
    assert terminal.rest() == [Keys(text.decode())]


@pytest.mark.parametrize("key", [b"j", b"/", b"\x1b[B", b"\x1b[106;;106u"])
def test_a_key_that_repeats_is_keys_even_when_the_line_was_stuck(key: bytes) -> None:
    assert sent(*[key] * 60, apart_s=0.033) == [Keys(key.decode() * 60)]
    assert sent(key * 60) == [Keys(key.decode() * 60)]


@pytest.mark.parametrize("text", [b"/eicar\r", b"jjjkkjj", b"a/tmp", b"ccq", b"//", b"+++", b"\x1b[A\x1b[A\r", b"abc\x7f\x7fde"])
def test_hasty_keys_of_a_slow_line_are_still_keys(text: bytes) -> None:
    assert sent(text) == [Keys(text.decode())]


def test_the_escape_key_alone_is_told_when_nothing_follows_it() -> None:
    terminal = Terminal().send(b"\x1b")
    assert terminal.wait(ESCAPE_S / 2).given == []
    assert terminal.wait(ESCAPE_S).given == [EscapeKey()]


def test_escape_pressed_twice_is_two_escape_keys() -> None:
    assert sent(b"\x1b\x1b") == [EscapeKey(), EscapeKey()]


@pytest.mark.parametrize(
    "sequence", [b"\x1b[A", b"\x1bOP", b"\x1b[<35;120;40M", b"\x1b[I", b"\x1b[97;5u", b"\x1b[?2026;2$y", b"\x1bx"]
)
def test_a_sequence_is_whole_however_it_is_read(sequence: bytes) -> None:
    assert sent(sequence) == [Keys(sequence.decode())]
    assert sent(*split(sequence)) == [Keys(sequence.decode())]
    assert sent(*split(sequence), apart_s=0.05) == [Keys(sequence.decode())]


# --- bracketed paste ---------------------------------------------------------------------------------------------------------------

NASTY = (
    b"/home/q/a b.exe",
    b"/tmp/r\xe9sum\xe9.exe\xc3",
    "/tmp/文件 🦠.exe".encode(),
    b"/tmp/\x1b[31mred\x1b[0m",
    b"/tmp/\x1b]52;c;cHduZWQ=\x07",
    b"/tmp/\x1b[200~again",
    b"\x1b",
    b"/tmp/\x1b[20",
    b"/tmp/\x1b[M   ",
    b"one\ntwo\r\nthree\r",
    b"",
)


@pytest.mark.parametrize("text", NASTY)
def test_everything_between_the_marks_is_one_text_however_it_is_read(text: bytes) -> None:
    data = b"\x1b[200~" + text + b"\x1b[201~"
    for reads in ([data], split(data), [data[:9], data[9:]], [data[:-3], data[-3:]]):
        (pasted,) = sent(*reads, apart_s=0.03)
        assert isinstance(pasted, Pasted)
        assert pasted.text.encode("utf-8", "surrogateescape") == text


def test_keys_around_a_paste_keep_their_order() -> None:
    assert sent(b"j\x1b\x1b[200~x\x1b[201~\x1b[Bk") == [Keys("j"), EscapeKey(), Pasted("x"), Keys("\x1b[Bk")]


def test_a_name_that_holds_the_mark_of_the_end_types_nothing() -> None:
    given = sent(b"\x1b[200~/tmp/a\x1b[201~q\ry.exe\x1b[201~")
    assert given[0] == Pasted("/tmp/a")
    assert not any(isinstance(piece, Keys) and "q" in piece.text for piece in given)


def test_a_key_after_a_paste_is_a_key() -> None:
    assert sent(b"\x1b[200~/tmp/a\x1b[201~", b"\r") == [Pasted("/tmp/a"), Keys("\r")]


def test_a_paste_whose_end_is_lost_does_not_swallow_the_keyboard() -> None:
    terminal = Terminal().send(b"\x1b[200~/tmp/a").wait(PASTE_S).send(b"q")
    assert terminal.rest() == [Pasted("/tmp/a"), Keys("q")]


def test_a_paste_without_end_does_not_fill_the_memory() -> None:
    terminal = Terminal().send(b"\x1b[200~")
    for _ in range(40):
        terminal.send(b"x" * (MAX_PASTE_BYTES // 20))
    (pasted,) = terminal.rest()
    assert isinstance(pasted, Pasted)
    assert len(pasted.text) == MAX_PASTE_BYTES


# --- drops that are typed ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        DROP,
        b"'/home/q/a b.exe' '/home/q/c.bin' ",
        b"/home/q/a\\ b.exe",
        b'"/home/q/a b.exe"',
        b"~/a.exe",
        b"file:///tmp/a%20b",
        b"/tmp/a\r/tmp/b\r",
        b"/tmp/r\xe9sum\xe9\xff",
        "/tmp/文件.exe".encode(),
        b"/tmp/\x1b[31mred\x1b]52;c;eA==\x07.exe",
        b"in/a.exe in/b.exe",
        b"a.exe b.exe clean.txt",
    ],
)
def test_a_path_that_is_typed_at_once_is_one_text(text: bytes) -> None:
    (pasted,) = sent(text)
    assert isinstance(pasted, Pasted)
    assert pasted.text.encode("utf-8", "surrogateescape") == text


def test_a_drop_that_comes_in_pieces_is_one_text() -> None:
    assert sent(DROP[:1], DROP[1:7], DROP[7:], apart_s=BURST_S / 2) == [Pasted(DROP.decode())]
    assert sent(*split(DROP), apart_s=0.001) == [Pasted(DROP.decode())]


def test_keys_and_the_mouse_after_a_drop_are_no_part_of_it() -> None:
    assert sent(DROP + b"\x1b[<35;1;2M") == [Pasted(DROP.decode()), Keys("\x1b[<35;1;2M")]
    assert Terminal().send(DROP).wait(0.05).send(b"q").rest() == [Pasted(DROP.decode()), Keys("q")]


def test_a_drop_of_two_megabytes_without_a_pause_is_bounded() -> None:
    terminal = Terminal()
    for _ in range(40):
        terminal.send(b"/tmp/a b " * (MAX_PASTE_BYTES // 180))
    sizes = [len(piece.text) for piece in terminal.rest() if isinstance(piece, Pasted)]
    assert max(sizes) <= MAX_PASTE_BYTES + MAX_PASTE_BYTES // 20


# --- bytes that nothing should choke on --------------------------------------------------------------------------------------------


def test_an_old_mouse_report_is_named_and_takes_nothing_else_with_it() -> None:
    report = b"\x1b[M" + bytes([32, 32 + 200, 32 + 169])
    assert sent(b"j" + report + b"k") == [Keys("j"), StaleMouse(), Keys("k")]
    assert sent(*split(report), b"k") == [StaleMouse(), Keys("k")]


def test_bytes_that_are_no_utf8_become_surrogates() -> None:
    assert sent(b"\xff") == [Keys("\udcff")]
    assert sent(b"\xc3") == [Keys("\udcc3")]
    assert sent(*split("é".encode())) == [Keys("é")]


def test_noise_gives_back_every_byte_of_its_text_and_never_raises() -> None:
    chance = random.Random(7)
    noise = chance.randbytes(50_000).replace(b"\x1b", b"")
    text = "".join(piece.text for piece in sent(noise) if isinstance(piece, Keys | Pasted))
    assert text.encode("utf-8", "surrogateescape") == noise
    for start in range(0, 40_000, 1000):
        sent(*split(chance.randbytes(64)), chance.randbytes(1000), noise[start : start + 50])
