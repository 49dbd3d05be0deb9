"""The plugin for strings and indicators: what it finds, what it leaves out, and that nothing makes it slow or large."""

from __future__ import annotations

import importlib
import io
import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from malbox_tui.config.settings import PluginSettings
from malbox_tui.model.report import PluginStatus
from malbox_tui.plugins.registry import BUILTIN_FOLDER
from tests.confine.rig import rig

SDK = Path(__file__).resolve().parents[2] / "malbox_tui" / "sdk"
MODULES = ("extract", "indicators", "noise", "wallets", "main")
OTHERS = tuple(path.name for path in BUILTIN_FOLDER.iterdir() if path.is_dir() and path.name not in ("strings", "__pycache__"))

BITCOIN = "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa"
SEGWIT = "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq"
TAPROOT = "bc1p5cyxnuxmeuwuvkwfem96lqzszd02n6xdcjrs20cac6yqjjwudpxqkedrcr"
ETHEREUM = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
MONERO = "44AFFq5kSiGBoZ4NMDwYtN18obc8AemS33DBLWs3H7otXft3XjrpDtQGv7SqSsaBYBb98uNbr2VBBEt7f2wfn3RVGQBEP3A"


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, ModuleType]]:
    """The plugin's modules, which its process finds beside its entry."""
    monkeypatch.syspath_prepend(str(SDK))
    monkeypatch.syspath_prepend(str(BUILTIN_FOLDER / "strings"))
    before = set(sys.modules)
    yield {name: importlib.import_module(name) for name in MODULES}
    for name in set(sys.modules) - before:
        del sys.modules[name]


def found_in(plugin: dict[str, ModuleType], content: bytes, min_length: int = 6) -> list[tuple[int, str, str]]:
    strings = plugin["extract"].strings_of(io.BytesIO(content), min_length, len(content) + 1)
    return [tuple(found) for found in strings]


def kinds_in(plugin: dict[str, ModuleType], text: str) -> set[tuple[str, str]]:
    return set(plugin["indicators"].indicators_in(text))


# --- strings ---------------------------------------------------------------------------------------------------------------------


def test_strings_are_found_in_ascii_and_both_orders_of_utf_16(plugin: dict[str, ModuleType]) -> None:
    content = b"\xff\xffplain text\0\0" + "little end".encode("utf-16-le") + b"\xff\xff" + "big endian".encode("utf-16-be")
    assert [(encoding, text) for _, encoding, text in found_in(plugin, content)] == [
        ("ASCII", "plain text"),
        ("UTF-16LE", "little end"),
        ("UTF-16BE", "big endian"),
    ]


def test_what_is_shorter_than_asked_for_is_no_string(plugin: dict[str, ModuleType]) -> None:
    assert found_in(plugin, b"\0short\0sixsix\0") == [(7, "ASCII", "sixsix")]
    assert [text for _, _, text in found_in(plugin, b"\0abc\0", min_length=3)] == ["abc"]


@pytest.mark.parametrize("shift", [0, 1, 4000, 8191, 8192, 8193])
def test_a_string_over_the_edge_of_a_window_is_one_string(plugin: dict[str, ModuleType], shift: int) -> None:
    window = plugin["extract"].WINDOW_BYTES
    content = bytes(window - shift) + b"over the edge" + bytes(window) + "wide edge".encode("utf-16-le") + bytes(10)
    assert [text for _, _, text in found_in(plugin, content)] == ["over the edge", "wide edge"]
    assert found_in(plugin, content)[0][0] == window - shift


def test_every_byte_of_a_long_run_is_in_one_string(plugin: dict[str, ModuleType]) -> None:
    content = bytes(random.Random(1).choices(b"abcdef", k=3_000_000))
    found = found_in(plugin, content)
    assert b"".join(text.encode() for _, _, text in found) == content
    assert max(len(text) for _, _, text in found) == plugin["extract"].MAX_CHARACTERS


def test_reading_stops_where_it_is_to(plugin: dict[str, ModuleType]) -> None:
    file = io.BytesIO(b"first one\0" + bytes(5_000_000) + b"second one")
    assert [found.text for found in plugin["extract"].strings_of(file, 6, 2_000_000)] == ["first one"]
    assert file.tell() <= 2_000_000


# --- indicators ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("GET http://a.evil.top/x.exe?q=1 HTTP", {("url", "http://a.evil.top/x.exe?q=1"), ("domain", "a.evil.top")}),
        ("hXXp is no scheme", set()),
        ("(see https://203.0.113.7:8443/a).", {("url", "https://203.0.113.7:8443/a"), ("ipv4", "203.0.113.7")}),
        ("stratum+tcp://pool.evil.cn:3333", {("url", "stratum+tcp://pool.evil.cn:3333"), ("domain", "pool.evil.cn")}),
        ("http://[2001:db8::1]/a", {("url", "http://[2001:db8::1]/a"), ("ipv6", "2001:db8::1")}),
        ("connect c2.evil.example.ru now", {("domain", "c2.evil.example.ru")}),
        ("to 198.51.100.23:4444", {("ipv4", "198.51.100.23")}),
        ("2001:db8:0:1::5", {("ipv6", "2001:db8:0:1::5")}),
        ("mail bob.smith@evil.example.com please", {("email", "bob.smith@evil.example.com")}),
        ("C:\\Users\\Public\\a b.exe", {("path", "C:\\Users\\Public\\a b.exe")}),
        ("%APPDATA%\\x\\y.dll", {("path", "%APPDATA%\\x\\y.dll")}),
        ("\\\\server\\share\\x.exe", {("path", "\\\\server\\share\\x.exe")}),
        ("/tmp/.x/run.sh", {("path", "/tmp/.x/run.sh")}),
        ("~/.ssh/authorized_keys", {("path", "~/.ssh/authorized_keys")}),
        (
            "HKEY_LOCAL_MACHINE\\Software\\Microsoft\\Windows\\CurrentVersion\\Run",
            {("registry", "HKEY_LOCAL_MACHINE\\Software\\Microsoft\\Windows\\CurrentVersion\\Run")},
        ),
        ("Software\\Classes\\ms-settings", {("registry", "Software\\Classes\\ms-settings")}),
        (f"send to {BITCOIN} now", {("wallet", f"{BITCOIN} (bitcoin)")}),
        (SEGWIT, {("wallet", f"{SEGWIT} (bitcoin)")}),
        (TAPROOT, {("wallet", f"{TAPROOT} (bitcoin)")}),
        (ETHEREUM, {("wallet", f"{ETHEREUM} (ethereum)")}),
        (MONERO, {("wallet", f"{MONERO} (monero)")}),
    ],
)
def test_an_indicator_is_found(plugin: dict[str, ModuleType], text: str, found: set[tuple[str, str]]) -> None:
    assert kinds_in(plugin, text) == found


@pytest.mark.parametrize(
    "text",
    [
        "http://www.w3.org/2001/XMLSchema",
        "http://schemas.microsoft.com/SMI/2005/WindowsSettings",
        "http://crl.verisign.com/pca3.crl0",
        "https://www.gnu.org/licenses/",
        "System.Windows.Forms",
        "kernel32.dll",
        "datetime.date",
        "user.email",
        "self.name",
        "a.out.c",
        "std::string::npos",
        "12:34:56 78:90",
        "version 1.2.3.4",
        "127.0.0.1 0.0.0.0 255.255.255.0",
        "300.1.1.1",
        "1.2.3.4.5",
        "not@here",
        "a@b.dll",
        "/usr",
        "C: drive",
        BITCOIN[:-1] + "b",
        SEGWIT[:-1] + "p",
        ETHEREUM.lower(),
        ETHEREUM.replace("A", "a", 1),
        MONERO[:-1] + "B",
        "http://",
        "http://...",
        "\\\\",
    ],
)
def test_what_looks_like_an_indicator_and_is_none_is_left_out(plugin: dict[str, ModuleType], text: str) -> None:
    assert kinds_in(plugin, text) == set()


def test_keccak_is_that_of_the_specification(plugin: dict[str, ModuleType]) -> None:
    digest = plugin["wallets"].keccak256
    assert digest(b"").hex() == "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470"
    assert digest(b"abc").hex() == "4e03657aea45a94fc7d47ba826c8d667c0d1e6e33a64a036ec44f58fa12d6c45"
    assert len({digest(bytes(length)) for length in range(130, 140)}) == 10


@pytest.mark.parametrize(
    "text",
    [
        "!This program cannot be run in DOS mode.",
        "GCC: (GNU) 12.2.0",
        ".text",
        "_ZNSt6vectorIiSaIiEE9push_backEOi",
        "__libc_start_main",
        "library/core/src/fmt/mod.rs",
        "Copyright (c) 2004 Somebody",
        "Permission is hereby granted, free of charge",
        "aaaaaaaaaa",
        "!!!!####$$$$",
    ],
)
def test_the_noise_of_compilers_and_licences_is_known(plugin: dict[str, ModuleType], text: str) -> None:
    assert plugin["noise"].is_noise(text)


@pytest.mark.parametrize("text", ["cmd.exe /c whoami", "GetProcAddress", "password:", "1.2.3.4:80", "Wednesday is the day"])
def test_what_tells_something_is_no_noise(plugin: dict[str, ModuleType], text: str) -> None:
    assert not plugin["noise"].is_noise(text)


WORST = ("a", "a.", "a-", "1.", "f:", "::", "\\a", "C:\\", "/tmp", "a@", "x@a.", "://", "http://", "http://a.", "0x0", "bc1", "1A",
         "HKLM\\", "Software\\", "%a", "a.a-", "a..", "~/a")  # fmt: skip


@pytest.mark.parametrize("piece", WORST)
def test_no_text_takes_longer_than_its_length_accounts_for(plugin: dict[str, ModuleType], piece: str) -> None:
    """Counted in steps of the interpreter's own: twice the text may not give many times the matches, and all of it comes to an end."""
    text = (piece * 4096)[:4096]
    found = list(plugin["indicators"].indicators_in(text))
    assert len(found) <= len(text) // 2


class Endless(io.RawIOBase):
    """A file of one byte, over and over; `read_bytes` of it were read."""

    def __init__(self, byte: bytes) -> None:
        self._byte = byte
        self.read_bytes = 0

    def read(self, size: int = -1) -> bytes:
        self.read_bytes += size
        return self._byte * size


@pytest.mark.slow
def test_a_gigabyte_of_one_letter_is_read_as_far_as_is_asked_for_and_kept_once(plugin: dict[str, ModuleType]) -> None:
    file, haul = Endless(b"a"), plugin["main"].Haul()
    for found in plugin["extract"].strings_of(file, 6, 128 * 1024 * 1024):
        haul.take(found)
    assert file.read_bytes == 128 * 1024 * 1024
    assert len(haul.strings) <= 2
    assert sum(haul.times.values()) == 128 * 1024 * 1024 // plugin["extract"].MAX_CHARACTERS


@pytest.mark.slow
def test_of_text_that_never_repeats_so_much_is_kept_as_there_is_room_for(plugin: dict[str, ModuleType]) -> None:
    haul, chance = plugin["main"].Haul(), random.Random(1)
    letters = bytes(chance.choices(b"abcdefghijklmnop ", k=6 * 1024 * 1024))
    for found in plugin["extract"].strings_of(io.BytesIO(letters), 6, len(letters)):
        haul.take(found)
    kept = sum(map(len, haul.strings))
    assert plugin["main"].MAX_KEPT_CHARACTERS <= kept <= plugin["main"].MAX_KEPT_CHARACTERS + plugin["extract"].MAX_CHARACTERS
    assert not haul.is_whole


def test_what_is_kept_is_bounded_and_that_is_known(plugin: dict[str, ModuleType]) -> None:
    haul = plugin["main"].Haul()
    found = plugin["extract"].Found
    for number in range(plugin["main"].MAX_OF_A_KIND + 1):
        haul.take(found(number, "ASCII", f"http://a{number}.example.com/"))
    assert haul.of_kind["url"] == plugin["main"].MAX_OF_A_KIND
    assert not haul.is_whole


# --- as a plugin -----------------------------------------------------------------------------------------------------------------


async def results_of(tmp_path: Path, content: bytes, **options: str) -> tuple[Any, Any, bytes]:
    settings = PluginSettings(disabled=OTHERS, config={"strings": options} if options else {})
    async with rig(tmp_path, plugins=settings, plugin_folder=BUILTIN_FOLDER) as subject:
        run = await subject.run(content)
        assert run.status is PluginStatus.COMPLETED, run.reason
        report, indicators = [json.loads(await subject.content(run, name)) for name in ("report", "indicators")]
        assert run.named.is_whole
        return report, indicators, await subject.content(run, "strings")


@pytest.mark.slow
async def test_a_report_names_what_was_found_and_leaves_the_noise_out(tmp_path: Path) -> None:
    content = b"\0http://cdn.evil.top/a.bin\0GCC: (GNU) 12.2.0\0GetProcAddress\0GetProcAddress\0" + "WideName".encode("utf-16-le")
    report, indicators, strings = await results_of(tmp_path, content)
    assert indicators == [
        {"kind": "url", "value": "http://cdn.evil.top/a.bin", "offset": 1},
        {"kind": "domain", "value": "cdn.evil.top", "offset": 1},
    ]
    assert {item["kind"] for item in report["indicators"]} == {"url", "domain"}
    (table,) = [block for section in report["sections"] for block in section.get("blocks", ()) if block["type"] == "table"]
    texts = {row["text"]: row["times"] for row in table["rows"]}
    assert texts == {"http://cdn.evil.top/a.bin": 1, "GetProcAddress": 2, "WideName": 1}
    assert b"GCC: (GNU)" in strings, "the result has them all"
    assert "verdict" not in report, "it judges nothing"


@pytest.mark.slow
async def test_nothing_at_all_is_a_report_too(tmp_path: Path) -> None:
    report, indicators, strings = await results_of(tmp_path, bytes(100))
    assert (indicators, strings) == ([], b"")
    assert "0 distinct strings; no indicators" in report["summary"]


@pytest.mark.slow
async def test_a_large_file_is_read_as_far_as_is_asked_for_and_that_is_said(tmp_path: Path) -> None:
    content = bytes(1000) + b"http://early.evil.top/" + bytes(2 * 1024 * 1024) + b"http://late.evil.top/"
    report, indicators, _ = await results_of(tmp_path, content, max_mib="1")
    assert [item["value"] for item in indicators if item["kind"] == "url"] == ["http://early.evil.top/"]
    assert "The first 1 MiB of 2 were read" in json.dumps(report)


@pytest.mark.slow
async def test_a_report_full_of_indicators_is_still_read_whole_by_the_engine(tmp_path: Path) -> None:
    content = b"\0".join(b"http://h%d.evil.top/%s" % (number, b"x" * 250) for number in range(3000))
    report, indicators, _ = await results_of(tmp_path, content)
    assert len(indicators) > 500
    assert "more in the result indicators" in json.dumps(report)


@pytest.mark.slow
async def test_a_wrong_option_keeps_it_from_starting(tmp_path: Path) -> None:
    settings = PluginSettings(disabled=OTHERS, config={"strings": {"min_length": "two"}})
    async with rig(tmp_path, plugins=settings, plugin_folder=BUILTIN_FOLDER) as subject:
        run = await subject.run(b"x")
    assert (run.status, [result.name for result in run.results]) == (PluginStatus.FAILED, ["log"])
    assert "min_length must be a whole number from 3 to 256" in run.reason
