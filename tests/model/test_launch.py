"""How contents are started in guests: the table, pinned by hand, and what can't be started."""

from __future__ import annotations

import pytest

from malbox_tui.model.launch import Launch, NoLaunch, launch_of
from malbox_tui.model.report import Identification

PE = "application/vnd.microsoft.portable-executable"


def script(mime: str, description: str = "", platform: str | None = None) -> Identification:
    return Identification("script", mime, platform, None, description)


@pytest.mark.parametrize(
    ("identification", "platform", "argv"),
    [
        (None, "linux", ("/g/sample", "-x")),
        (Identification("elf", None, "linux", "x64"), "linux", ("/g/sample", "-x")),
        (script("text/x-shellscript", platform="linux"), "linux", ("/bin/sh", "/g/sample.sh", "-x")),
        (script("text/plain"), "linux", ("/bin/sh", "/g/sample.sh", "-x")),
        (Identification("text", "text/plain"), "linux", ("/bin/sh", "/g/sample.sh", "-x")),
        (script("text/x-python"), "linux", ("/usr/bin/env", "python3", "/g/sample.py", "-x")),
        (script("text/x-perl"), "linux", ("/usr/bin/env", "perl", "/g/sample.pl", "-x")),
        (script("text/plain", "Lua"), "linux", ("/usr/bin/env", "lua", "/g/sample.lua", "-x")),
        (Identification("pdf"), "linux", ("/usr/bin/env", "xdg-open", "/g/sample.pdf", "-x")),
        (Identification("unknown"), "linux", ("/g/sample", "-x")),
        (Identification("macho", None, "macos"), "macos", ("/g/sample", "-x")),
        (Identification("unknown"), "plan9", ("/g/sample", "-x")),
        (None, "windows", ("/g/sample.exe", "-x")),
        (Identification("pe", PE, "windows", "x64", "PE32+ executable (console)"), "windows", ("/g/sample.exe", "-x")),
        (
            Identification("pe", PE, "windows", "x64", "PE32+ executable (DLL) (GUI) x86-64, for MS Windows"),
            "windows",
            ("C:\\Windows\\System32\\rundll32.exe", "/g/sample.dll,-x"),
        ),
        (script("text/x-msdos-batch"), "windows", ("C:\\Windows\\System32\\cmd.exe", "/c", "/g/sample.bat", "-x")),
        (script("application/javascript"), "windows", ("C:\\Windows\\System32\\wscript.exe", "/g/sample.js", "-x")),
        (
            script("text/vbscript", "MS Visual Basic source (VBA)", "windows"),
            "windows",
            ("C:\\Windows\\System32\\wscript.exe", "/g/sample.vbs", "-x"),
        ),
        (
            script("application/x-powershell", "Powershell source", "windows"),
            "windows",
            (
                "C:\\Windows\\System32\\WindowsPowerShell\\v1.0\\powershell.exe",
                "-NoProfile",
                "-ExecutionPolicy",
                "Bypass",
                "-File",
                "/g/sample.ps1",
                "-x",
            ),
        ),
        (
            Identification("ooxml"),
            "windows",
            ("C:\\Windows\\System32\\cmd.exe", "/c", "start", "/wait", "", "/g/sample.docx", "-x"),
        ),
    ],
    ids=str,
)
def test_a_content_is_started_by_what_it_is(identification: Identification | None, platform: str, argv: tuple[str, ...]) -> None:
    launch = launch_of(identification, platform)
    assert isinstance(launch, Launch)
    assert launch.argv(f"/g/{launch.name}", ["-x"]) == argv


def test_a_library_without_arguments_is_called_at_its_first_function() -> None:
    launch = launch_of(Identification("pe", PE, "windows", "x86", "PE32 executable (DLL)"), "windows")
    assert isinstance(launch, Launch)
    assert launch.argv("C:\\x\\sample.dll", ()) == ("C:\\Windows\\System32\\rundll32.exe", "C:\\x\\sample.dll,#1")
    assert launch.argv("C:\\x\\sample.dll", ("Run", "a b")) == (
        "C:\\Windows\\System32\\rundll32.exe",
        "C:\\x\\sample.dll,Run",
        "a b",
    )


@pytest.mark.parametrize(
    ("identification", "platform", "reason"),
    [
        (
            Identification("pe", PE, "windows", "x64"),
            "linux",
            "The sample is of the kind pe for windows, which a linux machine can't start.",
        ),
        (
            script("application/x-powershell", platform="windows"),
            "linux",
            "The sample is of the kind script for windows, which a linux machine can't start.",
        ),
        (
            Identification("zip", "application/zip"),
            "windows",
            "The sample is of the kind zip, which can't be started: submit what is in it.",
        ),
        (
            Identification("font"),
            "linux",
            "The sample is of the kind font, and nothing is known on linux that starts it.",
        ),
    ],
    ids=str,
)
def test_what_a_platform_cannot_start_is_refused_with_the_reason(
    identification: Identification, platform: str, reason: str
) -> None:
    assert launch_of(identification, platform) == NoLaunch(reason)
