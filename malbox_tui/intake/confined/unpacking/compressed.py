"""Files that are compressed alone (gzip, bzip2, xz, Zstandard). What is in them may be a tar archive: both are then one archive."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain

from . import codecs, tar
from .outlet import Outlet
from .signatures import Form, is_tar
from .source import Source

_DECODERS: dict[Form, Callable[[], codecs.Decoder]] = {
    Form.GZIP: partial(codecs.Inflate, 16 + zlib.MAX_WBITS),
    Form.BZIP2: codecs.bzip2_decoder,
    Form.XZ: codecs.xz_decoder,
    Form.ZSTD: codecs.zstd_decoder,
}

_TAR_BLOCK_BYTES = 512
_LONGEST_NAME = 4096
_HAS_EXTRA, _HAS_NAME = 1 << 2, 1 << 3
"""RFC 1952, 2.3.1"""


def unpack(source: Source, form: Form, outlet: Outlet) -> None:
    """The only member has the name that the archive gives, or none. Raises `BrokenArchive`, `LimitReached`."""
    chunks = codecs.decoded_streams(source.chunks(), _DECODERS[form])
    begun = bytearray()
    problem: Exception | None = None
    try:
        for chunk in chunks:
            begun += chunk
            if len(begun) >= _TAR_BLOCK_BYTES:
                break
    except Exception as exc:  # noqa: BLE001 - decoders raise anything on hostile bytes; it is raised again where the member is accounted for
        problem = exc
    content = chain([bytes(begun)], chunks if problem is None else _raising(problem))
    if is_tar(bytes(begun)):
        tar.unpack_stream(content, outlet)
    else:
        outlet.member(_name(source) if form is Form.GZIP else b"", content)


def _raising(problem: Exception) -> Iterator[bytes]:
    raise problem
    yield b""


def _name(source: Source) -> bytes:
    head = source.at(0, 12)
    if len(head) < 12 or not head[3] & _HAS_NAME:
        return b""
    place = 12 + int.from_bytes(head[10:12], "little") if head[3] & _HAS_EXTRA else 10
    name, end, _ = source.at(place, _LONGEST_NAME).partition(b"\0")
    return name if end else b""
