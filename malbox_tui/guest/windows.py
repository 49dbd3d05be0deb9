"""Windows guests, through the PowerShell 5 that Windows 10 and later have.

This was never run in a guest: there is none to be had here. What can be checked without one, the texts that are sent and the reading
of what comes back, is checked in `tests/guest/test_windows.py`.

The agent opens files so that nobody else may write to them meanwhile (`FILE_SHARE_READ`): what another process writes can be read when
that has closed it, and what the agent itself holds open for writing can't be opened a second time.

A script is one argument (`-Command`); what comes from outside stands in it as a literal in single quotes, in which nothing but a
quote has a meaning. Names come back as base64 of UTF-8, so that none can forge a line.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from malbox_tui.guest.system import PATH_BYTES, PENDING, Argv, Birth, ProcessFacts, number, process_facts
from malbox_tui.ports import GuestFile

_POWERSHELL = "C:\\Windows\\System32\\WindowsPowerShell\\v1.0\\powershell.exe"

_HEAD = "$ErrorActionPreference='SilentlyContinue';$ProgressPreference='SilentlyContinue';"

_RUN = """
$base={base};
try{{[IO.File]::Open("$base.once",[IO.FileMode]::CreateNew).Close()}}catch{{exit 0}};
[IO.File]::WriteAllText("$base.code","{pending}");
try{{
$p=Start-Process -FilePath {program} {arguments} -WorkingDirectory {folder} -RedirectStandardOutput "$base.out" `
 -RedirectStandardError "$base.err" -WindowStyle Normal -PassThru -ErrorAction Stop;
$null=$p.Handle;
$t=$p.StartTime.ToUniversalTime().Ticks;
[IO.File]::WriteAllText("$base.pid","$($p.Id) $($t-$t%10000)`n");
$p.WaitForExit();$code=$p.ExitCode
}}catch{{[IO.File]::WriteAllText("$base.err","$_");[IO.File]::WriteAllText("$base.pid","$PID 0`n");$code=127}};
[IO.File]::WriteAllText("$base.code","$code");
exit $code
"""

_LIST = """
$out=[IO.StreamWriter]::new({told});
foreach($folder in @({folders})){{
$out.WriteLine(":");$n=0;
$left=[Collections.Stack]::new();$left.Push($folder);
while($left.Count -and $n -lt {limit}){{
foreach($f in Get-ChildItem -LiteralPath $left.Pop() -Force){{
if($f.Attributes.HasFlag([IO.FileAttributes]::ReparsePoint) -or $f.Name.StartsWith({word})){{continue}};
if($f.PSIsContainer){{$left.Push($f.FullName);continue}};
if($n++ -ge {limit}){{break}};
$out.WriteLine("$($f.Length) $(([DateTimeOffset]$f.LastWriteTimeUtc).ToUnixTimeSeconds()) " `
 +[Convert]::ToBase64String([Text.Encoding]::UTF8.GetBytes($f.FullName)))}}}}}};
$out.Close()
"""
"""Links are reparse points: they are not followed. A colon stands before the files of each folder."""

_PROCESSES = """
$out=[IO.StreamWriter]::new({told});$n=0;
foreach($p in Get-CimInstance Win32_Process){{
if($n++ -ge {limit}){{break}};
$c="$($p.CommandLine)";if($c.Length -gt 4096){{$c=$c.Substring(0,4096)}};
$t=0;if($p.CreationDate){{$t=$p.CreationDate.ToUniversalTime().Ticks}};
$out.WriteLine("$($p.ProcessId) $($p.ParentProcessId) $($t-$t%10000) " `
 +[Convert]::ToBase64String([Text.Encoding]::UTF8.GetBytes("$($p.Name)"))+' ' `
 +[Convert]::ToBase64String([Text.Encoding]::UTF8.GetBytes($c)))}};
$out.Close()
"""

_LOOK = f"{_LIST.replace('{told}', '{files}').replace('{limit}', '{most}').rstrip()};{_PROCESSES}"

_BOOT = """
[IO.File]::WriteAllText({told},(Get-ItemProperty -LiteralPath {key} -Name BootId).BootId)
"""

_BOOT_KEY = "HKLM:\\SYSTEM\\CurrentControlSet\\Control\\Session Manager\\Memory Management\\PrefetchParameters"
"""Where Windows counts its starts. The time of the last start would do, but for that it moves when the clock is set."""

_SET_CLOCK = """
try{{Set-Date ([DateTimeOffset]::FromUnixTimeSeconds({at}).LocalDateTime) -ErrorAction Stop|Out-Null;$said=''}}catch{{$said="$_"}};
[IO.File]::WriteAllText({told},$said)
"""

_MARK = """
$f=[IO.FileStream]::new({file},[IO.FileMode]::Create,[IO.FileAccess]::Write,[IO.FileShare]::ReadWrite,4096, `
 [IO.FileOptions]::WriteThrough);
$b=[Text.Encoding]::ASCII.GetBytes({word});$f.Write($b,0,$b.Length);$f.Flush($true);$f.Close();
while($true){{Start-Sleep 3600}}
"""

_LOOK_FOR = """
$out=[IO.StreamWriter]::new({told});
$out.WriteLine($(if(Test-Path -LiteralPath {file}){{'there'}}else{{'gone'}}));
foreach($p in Get-CimInstance Win32_Process){{$out.WriteLine("$($p.CommandLine)")}};
$out.Close()
"""

_NAME_CHARS = 256
_COMMAND_CHARS = 4096
_KILLED_AT_ONCE = 1500
"""A command line has 32,767 characters at most."""


class Windows:
    """Implements `GuestSystem`."""

    folder = "C:\\Users\\Public"
    disk_folder = "C:\\ProgramData"
    boot_file: str | None = None

    def boot(self, told: str) -> Argv:
        """As `GuestSystem.boot`."""
        return _script(_BOOT, told=quoted(told), key=quoted(_BOOT_KEY))

    def join(self, folder: str, name: str) -> str:
        """As `GuestSystem.join`."""
        return f"{folder.rstrip(chr(92))}\\{name}"

    def run(self, base: str, folder: str, to_be_executable: Sequence[str], argv: Argv) -> Argv:
        """As `GuestSystem.run`. Everything is executable here. What can't be started is left as exited with 127."""
        line = " ".join(argument(word) for word in argv[1:])
        return _script(
            _RUN,
            base=quoted(base),
            folder=quoted(folder),
            program=quoted(argv[0]),
            arguments=f"-ArgumentList {quoted(line)}" if line else "",
            pending=PENDING.decode(),
        )

    def outputs(self, base: str) -> Sequence[str]:
        """As `GuestSystem.outputs`: what was printed, and then the errors."""
        return (f"{base}.out", f"{base}.err")

    def born(self, left: bytes) -> Birth | None:
        """As `GuestSystem.born`."""
        words = left.split()
        if not left.endswith(b"\n") or len(words) != 2:
            return None
        pid, began = (number(word) for word in words)
        return None if pid is None or began is None or pid < 1 else Birth(pid, began)

    def signal_of(self, code: int) -> int | None:
        """As `GuestSystem.signal_of`: there are none."""
        return None

    def kill(self, pids: Iterable[int]) -> Argv:
        """As `GuestSystem.kill`."""
        victims = islice(pids, _KILLED_AT_ONCE)
        return ("C:\\Windows\\System32\\taskkill.exe", "/F", *(word for pid in victims for word in ("/PID", str(pid))))

    def list(self, told: str, folder: str, base: str, limit: int) -> Argv:
        """As `GuestSystem.list`."""
        return _script(_LIST, told=quoted(told), folders=quoted(folder), word=quoted(_word(base)), limit=str(int(limit)))

    def files(self, left: bytes, base: str, limit: int) -> Sequence[GuestFile]:
        """As `GuestSystem.files`."""
        told = (_file(*words) for words in islice(_lines(left, 3), limit))
        return [file for file in told if file is not None]

    def look(self, told: str, folders: Sequence[str], base: str, limit: int, most_processes: int) -> Argv:
        """As `GuestSystem.look`."""
        return _script(
            _LOOK,
            told=quoted(told),
            files=quoted(f"{told}.files"),
            folders=",".join(map(quoted, folders)),
            word=quoted(_word(base)),
            most=str(int(limit)),
            limit=str(int(most_processes)),
        )

    def listed(self, left: bytes, base: str, folders: int, limit: int) -> Sequence[Sequence[GuestFile]]:
        """As `GuestSystem.listed`."""
        _before, *parts = re.split(rb"(?m)^:\r?\n", left.removeprefix(b"\xef\xbb\xbf"), maxsplit=folders)
        parts += [b""] * (folders - len(parts))
        return [self.files(part, base, limit) for part in parts]

    def processes(self, told: str, base: str, limit: int) -> Argv:
        """As `GuestSystem.processes`."""
        return _script(_PROCESSES, told=quoted(told), limit=str(int(limit)))

    def facts(self, left: bytes, base: str, limit: int) -> Sequence[ProcessFacts]:
        """As `GuestSystem.facts`. When a process began is told in whole milliseconds: what is finer, Windows tells in two ways."""
        told = (_facts_of(*words) for words in islice(_lines(left, 5), limit))
        return [facts for facts in told if facts is not None and _word(base) not in facts.process.command]

    def set_clock(self, told: str, at: float) -> Argv:
        """As `GuestSystem.set_clock`."""
        return _script(_SET_CLOCK, told=quoted(told), at=str(int(at)))

    def link(self, told: str, path: str) -> Argv | None:
        """As `GuestSystem.link`: names are UTF-16 here."""
        return None

    def mark(self, file: str, word: str) -> Argv:
        """As `GuestSystem.mark`."""
        return _script(_MARK, file=quoted(file), word=quoted(word))

    def look_for(self, told: str, file: str) -> Argv:
        """As `GuestSystem.look_for`."""
        return _script(_LOOK_FOR, told=quoted(told), file=quoted(file))

    def found(self, left: bytes, word: str) -> tuple[bool, bool]:
        """As `GuestSystem.found`."""
        said, _line, commands = left.partition(b"\n")
        return said.strip() != b"gone", word.encode() in commands


def quoted(text: str) -> str:
    """`text` as a literal of PowerShell, in single quotes; the typographic ones count as quotes there, too."""
    return "'" + "".join(character * 2 if character in "'\u2018\u2019\u201a\u201b" else character for character in text) + "'"


def argument(word: str) -> str:
    """`word` as one argument of a command line, as `CommandLineToArgvW` reads it (learn.microsoft.com, "Parsing C++ command-line
    arguments"): backslashes count only before a quote."""
    if word and not any(character in word for character in ' \t\n\v"'):
        return word
    told, backslashes = "", 0
    for character in word:
        if character == "\\":
            backslashes += 1
            continue
        told += "\\" * (2 * backslashes + 1 if character == '"' else backslashes) + character
        backslashes = 0
    return f'"{told}{chr(92) * 2 * backslashes}"'


def _script(text: str, **literals: str) -> Argv:
    one_line = " ".join(text.replace("`\n", "").split("\n")).strip()
    script = _HEAD + one_line.format(**literals)
    return (_POWERSHELL, "-NoProfile", "-NonInteractive", "-ExecutionPolicy", "Bypass", "-Command", script)


def _word(base: str) -> str:
    return base.rpartition("\\")[2]


def _lines(left: bytes, fields: int) -> Iterator[list[bytes]]:
    """Whole lines of that many fields; what is cut off at the end is none."""
    for line in left.removeprefix(b"\xef\xbb\xbf").split(b"\n")[:-1]:
        words = line.rstrip(b"\r").split(b" ", fields)
        if len(words) == fields:
            yield words


def _file(size: bytes, modified: bytes, path: bytes) -> GuestFile | None:
    size_bytes, seconds, name = number(size), number(modified), _text(path)
    if size_bytes is None or size_bytes < 0 or seconds is None or not name:
        return None
    return GuestFile(name[:PATH_BYTES], size_bytes, float(seconds))


def _facts_of(pid: bytes, parent: bytes, began: bytes, name: bytes, command: bytes) -> ProcessFacts | None:
    process, starter, ticks = number(pid), number(parent), number(began)
    if process is None or starter is None or ticks is None:
        return None
    return process_facts(
        Birth(process, ticks), starter, (_text(name) or "")[:_NAME_CHARS], (_text(command) or "")[:_COMMAND_CHARS]
    )


def _text(encoded: bytes) -> str | None:
    """None: no base64."""
    try:
        return binascii.a2b_base64(encoded, strict_mode=True).decode("utf-8", "backslashreplace")
    except (binascii.Error, ValueError):
        return None
