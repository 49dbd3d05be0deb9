"""`malbox-tui sample get` and `sample purge` on a store that no engine runs on."""

from __future__ import annotations

import hashlib
import os
import stat
import zipfile
from pathlib import Path

import pytest
import pyzipper

from malbox_tui.store import carts
from tests.cli.command_line import CommandLine

SHA = hashlib.sha256(b"a").hexdigest()
HOSTILE = "a|b;$(touch x)'\".exe"


@pytest.fixture
def malbox(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    line = CommandLine(tmp_path, capsys)
    line.submit("a", "b")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return line


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_a_sample_comes_in_a_zip_that_the_usual_password_opens(malbox: CommandLine) -> None:
    said = malbox("sample", "get", SHA[:6])
    assert (said.code, said.out) == (0, "")
    assert f"Written as zip: {SHA}.zip; its password is infected." in said.err
    written = Path(f"{SHA}.zip")
    assert stat.S_IMODE(written.stat().st_mode) == 0o600
    with pyzipper.AESZipFile(written) as archive:
        (member,) = archive.infolist()
        assert (member.filename, bool(member.flag_bits & 1), member.wz_aes_strength) == (SHA, True, 3)
        archive.setpassword(b"infected")
        assert archive.read(member) == b"a"
    with zipfile.ZipFile(written) as plain, pytest.raises((RuntimeError, NotImplementedError)):
        plain.read(SHA)
    assert "took sample" in malbox("actions").out.splitlines()[0]
    assert list(malbox.data.joinpath("scratch").iterdir()) == []


def test_a_sample_comes_as_it_was_and_as_it_is_kept(malbox: CommandLine) -> None:
    said = malbox("sample", "get", SHA, "--as", "raw")
    assert Path(f"{SHA}.bin").read_bytes() == b"a"
    assert "It is live" in said.err
    assert malbox("sample", "get", SHA, "--as", "cart", "-o", "kept").code == 0
    assert carts.unpack(Path("kept"), SHA, Path("back"), lambda: False) == 1


def test_nothing_is_replaced_unless_that_is_asked_for(malbox: CommandLine, tmp_path: Path) -> None:
    target = Path("mine")
    target.write_text("precious")
    link = Path("link")
    link.symlink_to(tmp_path / "nowhere")
    for there in (target, link):
        said = malbox("sample", "get", SHA, "-o", there)
        assert said.code == 2
        assert "--force replaces it" in said.err
    assert "took" not in malbox("actions").out, "nothing was given out"
    assert target.read_text() == "precious"
    assert malbox("sample", "get", SHA, "--as", "raw", "-o", target, "--force").code == 0
    assert target.read_bytes() == b"a"
    assert malbox("sample", "get", SHA, "-o", "no/such/folder").code == 2
    assert malbox("sample", "get", SHA, "-o", tmp_path, "--force").code == 2
    assert sorted(path.name for path in Path().iterdir()) == ["link", "mine"], "no half files"


def test_a_beginning_that_is_nobodys_or_too_short_is_told(malbox: CommandLine) -> None:
    assert "no sample whose SHA-256 begins with" in malbox("sample", "get", "ffff").err
    assert malbox("sample", "get", SHA[:3]).code == 2
    assert malbox("sample", "purge", "ffff", "--yes").code == 2


def test_a_damaged_sample_is_not_given_out_and_that_is_logged(malbox: CommandLine) -> None:
    (cart,) = malbox.data.joinpath("quarantine").rglob(f"{SHA}.cart")
    (other,) = malbox.data.joinpath("quarantine").rglob(f"{hashlib.sha256(b'b').hexdigest()}.cart")
    cart.write_bytes(other.read_bytes())
    said = malbox("sample", "get", SHA)
    assert said.code == 2
    assert "damaged" in said.err
    assert list(Path().iterdir()) == []
    assert "could not take sample" in malbox("actions").out
    cart.unlink()
    assert "holds no sample" in malbox("sample", "get", SHA).err


def test_a_sample_that_waits_is_not_purged_and_its_tasks_are_named(malbox: CommandLine) -> None:
    said = malbox("sample", "purge", SHA, "--yes")
    assert said.code == 1
    assert "can't be removed: task 1 waits or runs" in said.out
    assert malbox.states() == {1: "pending", 2: "pending"}


def test_a_purged_sample_is_gone_with_all_that_hung_on_it(malbox: CommandLine) -> None:
    malbox("cancel", 1)
    malbox("sample", SHA, "--note", "of a mail")
    result = malbox.data / "results" / "1" / "token" / "plugin" / "report"
    result.parent.mkdir(parents=True)
    result.write_text("{}")
    said = malbox("sample", "purge", SHA[:8], "--yes", "--json")
    assert said.code == 0
    (record,) = said.records
    assert (record["done"], record["sha256"], record["task_ids"]) == (True, SHA, [1])
    assert malbox.states() == {2: "pending"}
    assert [path.name for path in files(malbox.data / "quarantine")] == [f"{hashlib.sha256(b'b').hexdigest()}.cart"]
    assert files(malbox.data / "results") == []
    assert f"purged sample {SHA[:12]} and #1" in malbox("actions").out
    (action, *_) = malbox("actions", "--json").records
    assert (action["action"]["command"], action["task_ids"]) == ("PurgeSample", [1])
    assert malbox("sample", SHA).code == 2


def test_what_is_purged_can_be_handed_in_again_under_a_number_of_its_own(malbox: CommandLine) -> None:
    malbox("cancel", 1, 2)
    for name in ("a", "b"):
        malbox("sample", "purge", hashlib.sha256(name.encode()).hexdigest(), "--yes")
    malbox("submit", malbox.sample(HOSTILE, "a"))
    assert malbox.states() == {3: "pending"}


def test_nothing_is_purged_without_a_yes(malbox: CommandLine) -> None:
    malbox("cancel", 1)
    said = malbox("sample", "purge", SHA)
    assert said.code == 2
    assert "say --yes if that is meant" in said.err
    assert "(a), 1 task and all results" in said.err
    assert malbox.states() == {1: "canceled", 2: "pending"}


def test_without_a_store_none_is_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    malbox = CommandLine(tmp_path, capsys)
    assert malbox("sample", "get", SHA).code == 2
    assert malbox("sample", "purge", SHA, "--yes").code == 2
    assert not os.path.lexists(malbox.data)
