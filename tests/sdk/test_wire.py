"""The wire under whatever bytes: every frame comes back as it was sent, everything else is refused."""

from __future__ import annotations

import io
import socket
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from malbox_tui.sdk.malbox_plugin_sdk import wire

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=6,
)
HEADERS = st.dictionaries(st.text(max_size=10), JSON, max_size=4).map(lambda fields: {**fields, "kind": "any"})


def reader(stream: bytes) -> Callable[[int], bytes]:
    """Reads exactly, or raises `WireClosed` at the end, as a socket would."""
    source = io.BytesIO(stream)

    def read(count: int) -> bytes:
        got = source.read(count)
        if len(got) < count:
            raise wire.WireClosed
        return got

    return read


@given(HEADERS, st.binary(max_size=5000))
def test_a_frame_comes_back_as_it_was_sent(header: wire.Header, payload: bytes) -> None:
    assert wire.read_frame(reader(wire.pack(header, payload))) == (header, payload)


@given(st.binary(max_size=300))
@settings(max_examples=500)
def test_any_bytes_are_a_frame_or_an_error_of_the_wire(stream: bytes) -> None:
    try:
        header, _payload = wire.read_frame(reader(stream))
    except (wire.WireError, wire.WireClosed):
        return
    assert isinstance(header["kind"], str)


@given(HEADERS, st.binary(max_size=200), st.data())
def test_a_damaged_frame_is_a_frame_or_an_error_of_the_wire(header: wire.Header, payload: bytes, data: st.DataObject) -> None:
    frame = bytearray(wire.pack(header, payload))
    frame[data.draw(st.integers(0, len(frame) - 1))] ^= data.draw(st.integers(1, 255))
    try:
        wire.read_frame(reader(bytes(frame)))
    except (wire.WireError, wire.WireClosed):
        return


@given(HEADERS, st.binary(max_size=200), st.data())
def test_a_frame_that_is_cut_off_is_a_closed_wire(header: wire.Header, payload: bytes, data: st.DataObject) -> None:
    frame = wire.pack(header, payload)
    cut = frame[: data.draw(st.integers(0, len(frame) - 1))]
    with pytest.raises(wire.WireClosed):
        wire.read_frame(reader(cut))


@pytest.mark.parametrize(
    ("header_bytes", "payload_bytes"), [(wire.MAX_HEADER_BYTES + 1, 0), (2, wire.MAX_PAYLOAD_BYTES + 1), (2**32 - 1, 2**32 - 1)]
)
def test_a_frame_that_claims_too_much_is_refused_before_it_is_read(header_bytes: int, payload_bytes: int) -> None:
    with pytest.raises(wire.WireError, match="at most"):
        wire.read_frame(reader(wire.PREFIX.pack(header_bytes, payload_bytes)))


def test_a_frame_above_the_bounds_is_not_sent() -> None:
    with pytest.raises(wire.WireError):
        wire.pack({"kind": "x"}, bytes(wire.MAX_PAYLOAD_BYTES + 1))
    with pytest.raises(wire.WireError):
        wire.pack({"kind": "x" * wire.MAX_HEADER_BYTES})


def test_both_ends_of_a_socket() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        wire.Wire(ours).send({"kind": "hello"}, b"payload")
        assert wire.Wire(theirs).receive() == ({"kind": "hello"}, b"payload")
        ours.close()
        with pytest.raises(wire.WireClosed):
            wire.Wire(theirs).receive()
        with pytest.raises(wire.WireClosed):
            wire.Wire(theirs).send({"kind": "too late"}, bytes(500_000))
