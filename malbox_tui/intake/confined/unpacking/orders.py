"""What a confined unpacker is asked for: one archive after the other, each with what may come out of it and the passwords to try.

| order | `unpack`: `path`, `entries`, `total_bytes`, `member_bytes`; the payload is a JSON list of passwords |
| --- | --- |
| answer | for each entry `member` (the payload is its name), `content`… and `end` or `refused`; then `done` |
| or | `whole`: it is no archive, or one that is a sample itself |

`done` has a `code` and a `reason` when it ended early.
"""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from .outlet import Limits, Outlet, Sender
from .problems import IsSample, as_problem
from .signatures import HEAD_BYTES, Form, known_by_head
from .source import Source

_WITH_PASSWORDS = {Form.ZIP: "zip_archive", Form.SEVEN_ZIP: "seven_zip", Form.RAR: "rar"}
_WITH_FORM = {
    Form.GZIP: "compressed",
    Form.BZIP2: "compressed",
    Form.XZ: "compressed",
    Form.ZSTD: "compressed",
    Form.CAB: "by_libarchive",
    Form.ISO: "by_libarchive",
}
_PLAIN = {Form.TAR: "tar", Form.MAIL: "mail", Form.OUTLOOK: "outlook"}
"""The module for each format, by what it has to be told; each is imported when it is needed first."""


class Wire(Sender, Protocol):
    """The end of a wire in the confined process."""

    def receive(self) -> tuple[dict[str, Any], bytes]:
        """Wait for a frame."""
        ...


def serve(wire: Wire) -> None:
    """Carry orders out, one after the other, until the other end closes the wire."""
    while True:
        order, payload = wire.receive()
        source = Source(Path(order["path"]))
        try:
            _carry_out(wire, source, order, [str(password) for password in json.loads(payload)])
        finally:
            source.close()


def _carry_out(wire: Wire, source: Source, order: dict[str, Any], passwords: list[str]) -> None:
    kind = known_by_head(source.at(0, HEAD_BYTES))
    if kind is None or kind.form is None:
        title, reason = ("", "") if kind is None else (kind.title, kind.why_whole)
        wire.send({"kind": "whole", "title": title, "code": "format", "reason": reason})
        return
    outlet = Outlet(wire, Limits(order["entries"], order["total_bytes"], order["member_bytes"]))
    try:
        _unpack(kind.form, source, passwords, outlet)
    except IsSample as exc:
        wire.send({"kind": "whole", "title": kind.title, "code": exc.code, "reason": exc.reason})
    except Exception as exc:  # noqa: BLE001 - libraries raise anything on hostile bytes; that a wire is gone shows at the next word
        code, reason = as_problem(exc)
        wire.send({"kind": "done", "title": kind.title, "code": code, "reason": reason})
    else:
        wire.send({"kind": "done", "title": kind.title, "code": "", "reason": ""})


def _unpack(form: Form, source: Source, passwords: list[str], outlet: Outlet) -> None:
    if form in _WITH_PASSWORDS:
        _module(_WITH_PASSWORDS[form]).unpack(source, passwords, outlet)
    elif form in _WITH_FORM:
        _module(_WITH_FORM[form]).unpack(source, form, outlet)
    else:
        _module(_PLAIN[form]).unpack(source, outlet)


def _module(name: str) -> Any:
    return import_module(f".{name}", __package__)
