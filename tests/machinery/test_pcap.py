"""Recordings that come in pieces from several network cards, and are one file of whole packets."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from malbox_tui.machinery.drain import new_file
from malbox_tui.machinery.pcap import HEADER, RECORD, PcapFile, PcapStream

ROOM = 1_000_000


def record(payload: bytes, at: float = 1.0) -> bytes:
    seconds, micros = divmod(round(at * 1e6), 1_000_000)
    return RECORD.pack(seconds, micros, len(payload), len(payload)) + payload


def packets(content: bytes) -> list[tuple[int, bytes]]:
    """Each packet's time in microseconds, and its bytes; fails on anything that is not whole."""
    assert content[: len(HEADER)] == HEADER
    at, found = len(HEADER), []
    while at < len(content):
        seconds, micros, size, full = RECORD.unpack_from(content, at)
        assert size == full
        at += RECORD.size
        assert at + size <= len(content)
        found.append((seconds * 1_000_000 + micros, content[at : at + size]))
        at += size
    return found


def recording(tmp_path: Path, max_bytes: int = ROOM) -> tuple[PcapFile, Path]:
    path = tmp_path / f"{len(list(tmp_path.iterdir()))}.pcap"
    return PcapFile(new_file(path), max_bytes), path


def test_a_recording_without_a_packet_is_a_recording(tmp_path: Path) -> None:
    file, path = recording(tmp_path)
    file.close()
    file.close()
    assert packets(path.read_bytes()) == []


@given(payloads=st.lists(st.binary(max_size=60), max_size=20), size=st.integers(1, 50))
def test_packets_come_out_whole_however_they_came_in(
    tmp_path_factory: pytest.TempPathFactory, payloads: list[bytes], size: int
) -> None:
    file, path = recording(tmp_path_factory.mktemp("pcap"))
    stream = PcapStream(file)
    content = HEADER + b"".join(record(payload) for payload in payloads)
    for at in range(0, len(content), size):
        assert stream.take(content[at : at + size])
        packets(path.read_bytes())
    assert [payload for _, payload in packets(path.read_bytes())] == payloads
    file.close()


def test_two_cards_share_a_file(tmp_path: Path) -> None:
    file, path = recording(tmp_path)
    first, second = PcapStream(file), PcapStream(file)
    first.take(HEADER + record(b"one")[:10])
    second.take(HEADER + record(b"two"))
    first.take(record(b"one")[10:])
    assert [payload for _, payload in packets(path.read_bytes())] == [b"two", b"one"]
    file.close()


def test_packets_have_this_hosts_time_and_stay_as_far_apart_as_they_were(tmp_path: Path) -> None:
    file, path = recording(tmp_path)
    before = file.now_us()
    PcapStream(file).take(HEADER + record(b"a", at=5.25) + record(b"b", at=9.0))
    (first, _), (second, _) = packets(path.read_bytes())
    assert before <= first <= file.now_us()
    assert second - first == 3_750_000
    file.close()


def test_a_recording_ends_where_there_is_no_more_room(tmp_path: Path) -> None:
    file, path = recording(tmp_path, max_bytes=len(HEADER) + 2 * len(record(b"1234")) + 3)
    stream = PcapStream(file)
    assert stream.take(HEADER + record(b"1234"))
    assert stream.take(record(b"5678"))
    assert not stream.take(record(b"9"))
    assert [payload for _, payload in packets(path.read_bytes())] == [b"1234", b"5678"]
    file.close()


@pytest.mark.parametrize(
    "garbage", [b"\x0a\x0d\x0d\x0a" + bytes(40), HEADER + struct.pack("<IIII", 1, 1, 70_000, 70_000) + bytes(9)]
)
def test_what_is_no_recording_is_not_taken(tmp_path: Path, garbage: bytes) -> None:
    file, path = recording(tmp_path)
    assert not PcapStream(file).take(garbage)
    assert packets(path.read_bytes()) == []
    file.close()


def test_nothing_is_added_to_a_file_that_was_closed(tmp_path: Path) -> None:
    file, path = recording(tmp_path)
    file.close()
    assert not PcapStream(file).take(HEADER + record(b"late"))
    assert packets(path.read_bytes()) == []


def test_a_new_file_is_ours_alone_and_never_another_one(tmp_path: Path) -> None:
    path = tmp_path / "new"
    os.close(new_file(path))
    assert path.stat().st_mode & 0o777 == 0o600
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    for taken in (path, tmp_path / "link"):
        with pytest.raises(FileExistsError):
            new_file(taken)
