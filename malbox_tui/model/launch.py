"""How a content is started in a guest: under which name, and by which program. No shell reads what it is given.

What is not known, or may be a program, is tried as one. What its platform can't start is refused with the reason, before a machine is
used for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import msgspec

from malbox_tui.model.report import Identification

SAMPLE_STEM = "sample"
"""What a sample is called in a guest, up to its extension: its own name never becomes part of a path there."""


class Launch(msgspec.Struct, frozen=True):
    """A way to start a content: named `sample` and `extension`, by the program and options `opener` (empty: by itself).

    With `has_export` its first argument is the function of a library that is called.
    """

    extension: str = ""
    opener: tuple[str, ...] = ()
    has_export: bool = False

    @property
    def name(self) -> str:
        """The plain name under which the content is put into the guest."""
        return SAMPLE_STEM + self.extension

    def argv(self, path: str, arguments: Sequence[str]) -> tuple[str, ...]:
        """What is started, when the content lies at `path` in the guest."""
        if self.has_export:
            export, *rest = arguments or (_FIRST_EXPORT,)
            return (*self.opener, f"{path},{export}", *rest)
        return (*self.opener, path, *arguments)


class NoLaunch(msgspec.Struct, frozen=True):
    """There is no way to start it; `reason` says why, in a sentence."""

    reason: str


def launch_of(identification: Identification | None, platform: str) -> Launch | NoLaunch:
    """How a machine of this platform starts such a content; None: nobody knows what it is."""
    ways = _WAYS.get(platform, {})
    if identification is None:
        return ways.get(_UNKNOWN, Launch())
    if identification.platform not in (None, platform):
        return NoLaunch(f"The sample is {_described(identification)}, which a {platform} machine can't start.")
    if identification.kind in _CONTAINERS:
        return NoLaunch(f"The sample is {_described(identification)}, which can't be started: submit what is in it.")
    way = ways.get(_as_known(identification)) or ways.get(identification.kind)
    if way is not None:
        return way
    if identification.kind in _PROGRAMS or identification.platform == platform:
        return Launch()
    return NoLaunch(f"The sample is {_described(identification)}, and nothing is known on {platform} that starts it.")


def _as_known(identification: Identification) -> str:
    """The kind, more closely: the language of a script, and whether a PE file is a library."""
    said = f"{identification.mime or ''} {identification.description or ''}".lower()
    if identification.kind == "pe":
        return "dll" if "(dll)" in said else "pe"
    if identification.kind in ("script", "source"):
        return next((language for word, language in _LANGUAGES if word in said), identification.kind)
    return identification.kind


def _described(identification: Identification) -> str:
    what = f"of the kind {identification.kind}"
    return f"{what} for {identification.platform}" if identification.platform else what


_UNKNOWN = "unknown"
_FIRST_EXPORT = "#1"
"""The first function that a library exports."""

_PROGRAMS = frozenset({"elf", "pe", "dos", "macho", "script", _UNKNOWN})
"""What is tried as a program where no other way is known."""

_CONTAINERS = frozenset(
    {"zip", "7z", "rar", "tar", "gzip", "bzip2", "xz", "zstd", "lz4", "cab", "iso", "arj", "ace", "lha", "ar", "dmg", "empty"}
)

_LANGUAGES = (
    ("powershell", "powershell"),
    ("batch", "batch"),
    ("vbscript", "vbscript"),
    ("visual basic", "vbscript"),
    ("vbs", "vbscript"),
    ("javascript", "javascript"),
    ("application/hta", "hta"),
    ("html application", "hta"),
    ("python", "python"),
    ("perl", "perl"),
    ("php", "php"),
    ("ruby", "ruby"),
    ("lua", "lua"),
    ("shell", "shell"),
    ("awk", "awk"),
)
"""(a word of the MIME type or description, the language), the first that is found counts."""

_SYSTEM32 = "C:\\Windows\\System32\\"
_ENV = "/usr/bin/env"

_LINUX_DOCUMENTS = {
    "pdf": ".pdf",
    "ole": ".doc",
    "ooxml": ".docx",
    "odf": ".odt",
    "rtf": ".rtf",
    "html": ".html",
    "xml": ".xml",
    "email": ".eml",
    "epub": ".epub",
    "postscript": ".ps",
    "image": "",
    "audio": "",
    "video": "",
}

_LINUX = {
    "elf": Launch(),
    "shell": Launch(".sh", ("/bin/sh",)),
    "script": Launch(".sh", ("/bin/sh",)),
    "text": Launch(".sh", ("/bin/sh",)),
    "awk": Launch(".awk", (_ENV, "awk", "-f")),
    "python": Launch(".py", (_ENV, "python3")),
    "python-bytecode": Launch(".pyc", (_ENV, "python3")),
    "perl": Launch(".pl", (_ENV, "perl")),
    "php": Launch(".php", (_ENV, "php")),
    "ruby": Launch(".rb", (_ENV, "ruby")),
    "lua": Launch(".lua", (_ENV, "lua")),
    "javascript": Launch(".js", (_ENV, "node")),
    "jar": Launch(".jar", (_ENV, "java", "-jar")),
    **{kind: Launch(extension, (_ENV, "xdg-open")) for kind, extension in _LINUX_DOCUMENTS.items()},
}

_OPENED_BY_WINDOWS = (f"{_SYSTEM32}cmd.exe", "/c", "start", "/wait", "")
"""`start` takes its first quoted word for a title."""

_WINDOWS_DOCUMENTS = {
    **{kind: extension for kind, extension in _LINUX_DOCUMENTS.items() if extension},
    "image": ".png",
    "audio": ".wav",
    "video": ".mp4",
    "text": ".txt",
    "json": ".json",
    "markup": ".txt",
    "lnk": ".lnk",
    "url": ".url",
    "onenote": ".one",
    "jar": ".jar",
}

_WINDOWS = {
    _UNKNOWN: Launch(".exe"),
    "pe": Launch(".exe"),
    "dos": Launch(".exe"),
    "dll": Launch(".dll", (f"{_SYSTEM32}rundll32.exe",), has_export=True),
    "msi": Launch(".msi", (f"{_SYSTEM32}msiexec.exe", "/i")),
    "batch": Launch(".bat", (f"{_SYSTEM32}cmd.exe", "/c")),
    "powershell": Launch(
        ".ps1",
        (f"{_SYSTEM32}WindowsPowerShell\\v1.0\\powershell.exe", "-NoProfile", "-ExecutionPolicy", "Bypass", "-File"),
    ),
    "javascript": Launch(".js", (f"{_SYSTEM32}wscript.exe",)),
    "vbscript": Launch(".vbs", (f"{_SYSTEM32}wscript.exe",)),
    "hta": Launch(".hta", (f"{_SYSTEM32}mshta.exe",)),
    "chm": Launch(".chm", ("C:\\Windows\\hh.exe",)),
    "registry": Launch(".reg", ("C:\\Windows\\regedit.exe", "/s")),
    "python": Launch(".py", ("C:\\Windows\\py.exe",)),
    **{kind: Launch(extension, _OPENED_BY_WINDOWS) for kind, extension in _WINDOWS_DOCUMENTS.items()},
}

_WAYS: Mapping[str, Mapping[str, Launch]] = MappingProxyType({"linux": _LINUX, "windows": _WINDOWS})
"""platform → kind → how it is started."""
