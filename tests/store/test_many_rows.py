"""However many rows there are, all are written, in few steps, and byte for byte."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import pytest

from malbox_tui.store.many_rows import LARGEST, ManyRows
from malbox_tui.store.statements import migrations

SHA256 = "a" * 64
ADD_SAMPLES, ADD_NAMES = ManyRows("add_samples", 3), ManyRows("add_names", 4)


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    for migration in migrations():
        for statement in migration.statements:
            connection.execute(statement)
    yield connection
    connection.close()


def names(*values: bytes) -> list[tuple[str, bytes, bytes, str]]:
    return [(SHA256, value, b"/in", "") for value in values]


@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 8, LARGEST - 1, LARGEST, LARGEST + 1, 2 * LARGEST, 3 * LARGEST - 1, 512])
def test_all_rows_are_written_in_their_order(connection: sqlite3.Connection, count: int) -> None:
    ADD_SAMPLES.run(connection, [(SHA256, 1, 0.0)])
    wanted = [b"%d" % number for number in range(count)]
    steps: list[str] = []
    connection.set_trace_callback(steps.append)
    assert ADD_NAMES.run(connection, names(*wanted)) == count
    assert [name for (name,) in connection.execute("SELECT name FROM sample_name ORDER BY id")] == wanted
    assert len(steps) - 1 <= count // LARGEST + LARGEST.bit_length()


def test_what_was_there_is_not_counted_as_written(connection: sqlite3.Connection) -> None:
    assert ADD_SAMPLES.run(connection, [("a", 1, 0.0), ("b", 1, 0.0)]) == 2
    assert ADD_SAMPLES.run(connection, [("a", 1, 0.0), ("c", 1, 0.0), ("b", 1, 0.0)]) == 1


def test_names_are_kept_as_the_bytes_they_are(connection: sqlite3.Connection) -> None:
    odd = [b"", b"\x00", b"a\x00b", b"\xff\xfe", b"\xed\xa0\x80", "na\u00efve".encode(), b"'); DROP TABLE task; --", b"{rows}"]
    ADD_SAMPLES.run(connection, [(SHA256, 1, 0.0)])
    ADD_NAMES.run(connection, names(*odd))
    assert [name for (name,) in connection.execute("SELECT name FROM sample_name ORDER BY id")] == odd
