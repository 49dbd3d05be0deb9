"""Linux guests. Nothing is needed in them but a POSIX shell with the usual tools, GNU's or busybox's; all is written for both.

The scripts are fixed texts: what comes from outside (a sample's name, its arguments) are positional parameters, which no shell reads
as words of its own. What hostile names could forge is kept apart by a word that the guest can't have known before.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from malbox_tui.guest.system import PATH_BYTES, Argv, Birth, ProcessFacts, number, process_facts
from malbox_tui.ports import GuestFile

_SHELL = "/bin/sh"

_RUN = r"""
base=$1 folder=$2 count=$3; shift 3
set -C; true >"$base.once" || exit 0; set +C
cd "$folder" || exit 125
printf 'pending\n' >"$base.code"
while [ "$count" -gt 0 ]; do chmod 755 "$1"; shift; count=$((count - 1)); done
case $1 in
  */*) [ -f "$1" ] ;;
  *) command -v "$1" >/dev/null 2>&1 ;;
esac || { printf '%s\n' "there is no program $1" >"$base.out"; exit 127; }
own_session=; command -v setsid >/dev/null 2>&1 && own_session=setsid
(
  read -r stat </proc/self/stat && printf '%s\n' "$stat" >"$base.pid"
  exec $own_session "$@"
) </dev/null >"$base.out" 2>&1
code=$?
printf '%-7s\n' "$code" 1<>"$base.code"
exit "$code"
"""
"""The place for the status is written before: on a disk that the program has filled, it can still be overwritten."""

_LIST = r"""
told=$1 word=$2 limit=$3; shift 3
for folder; do
  printf '%s:\n' "$word"
  find "$folder" -xdev -type f ! -name "$word*" -exec stat -c "$word %s %Y %n" {} + 2>/dev/null | head -n "$limit"
done >"$told"
"""

_PROCESSES = r"""
told=$1 word=$2 limit=$3
printf '\n%s\n' "$word" >"$told.x"
exec 3<"$told.x"
cd /proc
set -- [0-9]*
if [ "$#" -gt "$limit" ]; then
  few= count=0
  for process; do few="$few $process" count=$((count + 1)); [ "$count" -ge "$limit" ] && break; done
  set -- $few
fi
printf '%s ' "$@" >"$told"
printf '\n' >>"$told"
exec cat $(printf '%s/stat\n' "$@"; printf 'self/fd/3\n%s/cmdline\n' "$@") "$told.x" >>"$told" 2>/dev/null
"""
"""First which there are and all that is short, then the command lines, so that a long one hides no process."""

_LOOK = rf"""
told=$1 word=$2 limit=$3 most=$4; shift 4
set -- "$told.files" "$word" "$limit" "$@"
{_LIST}
set -- "${{told%.files}}" "$word" "$most"
{_PROCESSES}
"""

_KILL = 'kill -9 "$@" 2>/dev/null; exit 0'

_MARK = r"""
printf '%s' "$2" >"$1" || exit 1
sync "$1" 2>/dev/null || sync
while :; do sleep 3600; done
"""

_LOOK_FOR = r"""
{ if [ -e "$2" ] || [ -L "$2" ]; then echo there; else echo gone; fi; cat /proc/[0-9]*/cmdline 2>/dev/null; } >"$1"
"""

_STAT = re.compile(rb"\d{1,10} \(.{0,256}?\) [A-Za-z](?: -?\d{1,20}){40,60}\n", re.DOTALL)
"""A line of proc(5), `/proc/PID/stat`. A name may have anything in it, but not so many numbers: it has 64 bytes at most."""

_ZOMBIE_STATES = frozenset({b"Z", b"X", b"x"})
_COMMAND_CHARS = 4096
_NAME_BYTES = 64
_SIGNALS = range(1, 65)


class Linux:
    """Implements `GuestSystem`."""

    folder = "/tmp"
    disk_folder = "/var/tmp"
    boot_file: str | None = "/proc/sys/kernel/random/boot_id"

    def boot(self, told: str) -> Argv:
        """As `GuestSystem.boot`."""
        return _script('cat /proc/sys/kernel/random/boot_id >"$1"', told)

    def join(self, folder: str, name: str) -> str:
        """As `GuestSystem.join`."""
        return f"{folder.rstrip('/')}/{name}"

    def run(self, base: str, folder: str, to_be_executable: Sequence[str], argv: Argv) -> Argv:
        """As `GuestSystem.run`. The program leads a session of its own where the guest has `setsid`."""
        return _script(_RUN, base, folder, str(len(to_be_executable)), *to_be_executable, *argv)

    def outputs(self, base: str) -> Sequence[str]:
        """As `GuestSystem.outputs`."""
        return (f"{base}.out",)

    def born(self, left: bytes) -> Birth | None:
        """As `GuestSystem.born`."""
        facts = _facts_of(left, b"") if left.endswith(b"\n") else None
        return None if facts is None else facts.birth

    def signal_of(self, code: int) -> int | None:
        """As `GuestSystem.signal_of`, as shells tell it: 128 and the signal."""
        return code - 128 if code - 128 in _SIGNALS else None

    def kill(self, pids: Iterable[int]) -> Argv:
        """As `GuestSystem.kill`."""
        return _script(_KILL, *map(str, pids))

    def list(self, told: str, folder: str, base: str, limit: int) -> Argv:
        """As `GuestSystem.list`. Other file systems that are mounted below are left out: /proc would be one."""
        return _script(_LIST, told, _word(base), str(limit), folder)

    def files(self, left: bytes, base: str, limit: int) -> Sequence[GuestFile]:
        """As `GuestSystem.files`. What of a path is no UTF-8 is kept as by `os.fsdecode`."""
        record = re.compile(rb"(?:\A|\n)" + re.escape(_word(base)).encode() + rb" (\d{1,18}) (-?\d{1,18}) /")
        found = list(islice(record.finditer(left), limit + 1))
        ends = [later.start() for later in found[1:]]
        if left.endswith(b"\n"):
            ends.append(len(left) - 1)
        return [
            GuestFile(
                left[match.end() - 1 : min(end, match.end() + PATH_BYTES)].decode("utf-8", "surrogateescape"),
                int(match[1]),
                float(match[2]),
            )
            for match, end in zip(found[:limit], ends, strict=False)
        ]

    def look(self, told: str, folders: Sequence[str], base: str, limit: int, most_processes: int) -> Argv:
        """As `GuestSystem.look`."""
        return _script(_LOOK, told, _word(base), str(limit), str(most_processes), *folders)

    def listed(self, left: bytes, base: str, folders: int, limit: int) -> Sequence[Sequence[GuestFile]]:
        """As `GuestSystem.listed`."""
        _before, *parts = re.split(rb"(?m)^" + re.escape(_word(base)).encode() + rb":\n", left, maxsplit=folders)
        parts += [b""] * (folders - len(parts))
        return [self.files(part, base, limit) for part in parts]

    def processes(self, told: str, base: str, limit: int) -> Argv:
        """As `GuestSystem.processes`."""
        return _script(_PROCESSES, told, _word(base), str(limit))

    def facts(self, left: bytes, base: str, limit: int) -> Sequence[ProcessFacts]:
        """As `GuestSystem.facts`. Those that have ended and are waited for by nobody don't run."""
        word = _word(base).encode()
        short, *commands = left.split(b"\n" + word + b"\n", limit + 1)
        pids, _line, stats = short.partition(b"\n")
        command_of = dict(zip(pids.split(), commands, strict=False))
        told = ((stat, command_of.get(stat.partition(b" ")[0], b"")) for stat in islice(_stats(stats), limit))
        found = (_facts_of(stat, command) for stat, command in told if word not in command)
        return [facts for facts in found if facts is not None]

    def set_clock(self, told: str, at: float) -> Argv:
        """As `GuestSystem.set_clock`."""
        return _script('exec date -s "@$2" >"$1" 2>&1', told, str(int(at)))

    def link(self, told: str, path: str) -> Argv | None:
        """As `GuestSystem.link`. Each byte is told by its number: JSON can't hold it."""
        encoded = "".join(f"\\0{byte:03o}" for byte in path.encode("utf-8", "surrogateescape"))
        return _script('path=$(printf %b. "$2"); exec ln -s "${path%.}" "$1"', told, encoded)

    def mark(self, file: str, word: str) -> Argv:
        """As `GuestSystem.mark`."""
        return _script(_MARK, file, word)

    def look_for(self, told: str, file: str) -> Argv:
        """As `GuestSystem.look_for`."""
        return _script(_LOOK_FOR, told, file)

    def found(self, left: bytes, word: str) -> tuple[bool, bool]:
        """As `GuestSystem.found`."""
        said, _line, commands = left.partition(b"\n")
        return said != b"gone", word.encode() in commands


def _script(text: str, *parameters: str) -> Argv:
    return (_SHELL, "-c", text, "sh", *parameters)


def _stats(left: bytes) -> Iterator[bytes]:
    """One after the other, until something else follows."""
    at = 0
    while found := _STAT.match(left, at):
        yield found[0]
        at = found.end()


def _word(base: str) -> str:
    return base.rpartition("/")[2]


def _facts_of(stat: bytes, command: bytes) -> ProcessFacts | None:
    """From a line of /proc/PID/stat (proc(5)); None for one that is none, or of a process that has ended."""
    head, _parenthesis, tail = stat.rpartition(b") ")
    pid, _space, name = head.partition(b" (")
    fields = tail.split(None, 20)
    if len(fields) < 20 or fields[0] in _ZOMBIE_STATES:
        return None
    process, parent, session, began = (number(word) for word in (pid, fields[1], fields[3], fields[19]))
    if process is None or parent is None or session is None or began is None:
        return None
    arguments = command[:_COMMAND_CHARS].rstrip(b"\0").replace(b"\0", b" ")
    return process_facts(
        Birth(process, began),
        parent,
        name[:_NAME_BYTES].decode("utf-8", "backslashreplace"),
        arguments.decode("utf-8", "backslashreplace"),
        session,
    )
