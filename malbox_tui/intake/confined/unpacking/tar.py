"""Tar archives, by the standard library's reader, as a stream: nothing is sought and nothing is kept."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterable, Iterator
from typing import Any

from .codecs import STEP_BYTES
from .outlet import Outlet, refuse_special
from .problems import BrokenArchive, UnpackingProblem, as_problem
from .source import Source


def unpack(source: Source, outlet: Outlet) -> None:
    """Raises `BrokenArchive`, `LimitReached`."""
    unpack_stream(source.chunks(), outlet)


def unpack_stream(chunks: Iterable[bytes], outlet: Outlet) -> None:
    """As `unpack`, of what is read from `chunks`."""
    stream = _Stream(iter(chunks), outlet)
    archive: _Archive | None = None
    try:
        archive = _Archive.open(
            fileobj=stream, mode="r|", tarinfo=_Header, encoding="utf-8", errors="surrogateescape", bufsize=STEP_BYTES
        )
        for header in archive:
            # The reader keeps all headers for random access, which a stream doesn't have.
            archive.members.clear()  # type: ignore[attr-defined]
            _take(archive, header, outlet)
    except UnpackingProblem:
        raise
    except Exception as exc:
        raise BrokenArchive(*as_problem(stream.problem or exc)) from exc
    if (problem := stream.problem or archive.broken_by) is not None:
        raise BrokenArchive(*as_problem(problem))


class _Archive(tarfile.TarFile):
    broken_by: Exception | None = None
    """Why reading ended where it did, if not at the end: the reader itself keeps that to itself."""


class _Header(tarfile.TarInfo):
    @classmethod
    def fromtarfile(cls, tarfile_: Any) -> Any:
        try:
            return super().fromtarfile(tarfile_)
        except (tarfile.InvalidHeaderError, tarfile.TruncatedHeaderError) as exc:  # type: ignore[attr-defined]
            tarfile_.broken_by = exc
            raise


class _Stream(io.RawIOBase):
    """What `tarfile` reads from. `problem` is what its chunks raised; the reader would take that for the end."""

    def __init__(self, chunks: Iterator[bytes], outlet: Outlet) -> None:
        self._chunks = chunks
        self._waiting = b""
        self._outlet = outlet
        self.problem: Exception | None = None

    def read(self, size: int | None = -1, /) -> bytes:
        """Some bytes, none at the end."""
        if not self._waiting and self.problem is None:
            try:
                self._waiting = next((chunk for chunk in self._chunks if chunk), b"")
                self._outlet.read_past(len(self._waiting))
            except Exception as exc:
                self.problem = exc
                raise
        wanted = len(self._waiting) if size is None or size < 0 else size
        got, self._waiting = self._waiting[:wanted], self._waiting[wanted:]
        return got


def _take(archive: tarfile.TarFile, header: tarfile.TarInfo, outlet: Outlet) -> None:
    name = header.name.encode("utf-8", "surrogateescape")
    if header.isdir():
        outlet.skip()
    elif header.issym() or header.islnk():
        refuse_special(outlet, name, "link", header.linkname.encode("utf-8", "surrogateescape"))
    elif header.ischr() or header.isblk():
        refuse_special(outlet, name, "device")
    elif header.isfifo():
        refuse_special(outlet, name, "fifo")
    elif header.isreg():
        outlet.member(name, _content(archive, header), header.size)
    else:
        refuse_special(outlet, name, "special")


def _content(archive: tarfile.TarFile, header: tarfile.TarInfo) -> Iterator[bytes]:
    reader = archive.extractfile(header)
    while reader is not None and (chunk := reader.read(STEP_BYTES)):
        yield chunk
