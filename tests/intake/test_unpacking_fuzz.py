"""Archives made at random: what is in them comes out, and what is spoilt in them is accounted for."""

from __future__ import annotations

import bz2
import lzma
import random
from pathlib import Path

import msgspec
import pytest
from backports import zstd
from hypothesis import given, settings
from hypothesis import strategies as st

from malbox_tui.model.archive import DEFAULT_LIMITS
from tests.intake import archives
from tests.intake.archives import DEFLATED, STORED, Entry, zip_of
from tests.intake.unpacking_rig import told_of, unpacked

MUTATIONS = 15
NAMES = st.binary(max_size=60).filter(lambda name: not name.endswith((b"/", b"\\"))).map(lambda name: b"_" + name)
CONTENTS = st.binary(min_size=1, max_size=3000)
ENTRIES = st.builds(
    Entry,
    name=NAMES,
    content=CONTENTS,
    method=st.sampled_from([STORED, DEFLATED]),
    password=st.sampled_from([None, None, b"infected", b"virus"]),
    is_hidden=st.booleans(),
    has_descriptor=st.just(False),
)
MANY_ENTRIES = st.lists(ENTRIES, max_size=6)
"""No name is one that documents or programs are known by."""


@settings(max_examples=60)
@given(MANY_ENTRIES)
def test_whatever_is_put_into_a_zip_comes_out(entries: list[Entry]) -> None:
    told = told_of(zip_of(*entries))
    assert sorted(told.taken) == sorted((entry.name, entry.content) for entry in entries)
    assert told.refused == []


@settings(max_examples=60)
@given(st.lists(st.tuples(NAMES.filter(lambda name: b"\0" not in name), CONTENTS), min_size=1, max_size=6))
def test_whatever_is_put_into_a_tar_comes_out(members: list[tuple[bytes, bytes]]) -> None:
    told = told_of(archives.gzip_of(archives.tar_of(*(archives.tar_file(name, content) for name, content in members))))
    assert told.taken == members
    assert told.end["code"] == ""


@settings(max_examples=60)
@given(st.data())
def test_a_zip_with_changed_bytes_is_accounted_for(data: st.DataObject) -> None:
    archive = bytearray(zip_of(*data.draw(st.lists(ENTRIES, min_size=1, max_size=4))))
    for _change in range(data.draw(st.integers(1, 8))):
        archive[data.draw(st.integers(4, len(archive) - 1))] = data.draw(st.integers(0, 255))
    told = told_of(bytes(archive))
    assert told.end["kind"] in ("done", "whole")


FILES = {"a.txt": b"a harmless note\n" * 60, "b.bin": bytes(range(256)) * 12}
TAR = archives.tar_of(*(archives.tar_file(name.encode(), content) for name, content in FILES.items()))
RAW = {name.encode(): content for name, content in FILES.items()}
VALID = {
    "zip": archives.plain_zip(FILES),
    "zip, LZMA": archives.plain_zip(FILES, 14),
    "zip, bzip2": archives.plain_zip(FILES, 12),
    "zip, ZipCrypto": zip_of(*(Entry(name, content, password=b"infected") for name, content in RAW.items())),
    "zip, AES": zip_of(*(Entry(name, content, password=b"infected", strength=3) for name, content in RAW.items())),
    "7z": archives.seven_zip(FILES),
    "tar": TAR,
    "gzip": archives.gzip_of(TAR),
    "bzip2": bz2.compress(TAR),
    "xz": lzma.compress(TAR),
    "Zstandard": zstd.compress(TAR),
    "cabinet": archives.cabinet(RAW),
    "ISO image": archives.iso_image(RAW),
    "rar": archives.rar(RAW),
    "e-mail": archives.mail(list(FILES.items())),
    "Outlook message": archives.outlook(FILES),
}


@pytest.mark.slow
@pytest.mark.parametrize("form", VALID)
async def test_spoilt_archives_are_accounted_for(form: str, tmp_path: Path) -> None:
    chance = random.Random(f"spoilt {form}")
    spoilt = {b"%d" % number: _spoilt(VALID[form], chance) for number in range(MUTATIONS)}
    outermost = zip_of(*(Entry(name, content, STORED) for name, content in spoilt.items()))
    outcome = await unpacked(outermost, tmp_path, limits=msgspec.structs.replace(DEFAULT_LIMITS, time_s=120.0))
    accounted = {path[:1] for path, _content in outcome.members} | {account.path[:1] for account in outcome.accounts}
    assert {(name,) for name in spoilt} <= accounted | {path[:1] for path in outcome.refused}
    assert outcome.accounts[-1].taken == MUTATIONS


def _spoilt(archive: bytes, chance: random.Random) -> bytes:
    """The archive with its first bytes as they were, and one thing wrong behind them."""
    changed = bytearray(archive)
    kind = chance.randrange(4)
    place = chance.randrange(8, len(changed))
    if kind == 0:
        return bytes(changed[:place])
    if kind == 1:
        changed[place : place + chance.randrange(1, 64)] = chance.randbytes(chance.randrange(0, 64))
    elif kind == 2:
        for _change in range(chance.randrange(1, 20)):
            changed[chance.randrange(8, len(changed))] = chance.choice((0, 0x7F, 0x80, 0xFF, chance.randrange(256)))
    else:
        changed[place : place + 4] = chance.choice((b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f", bytes(4)))
    return bytes(changed)
