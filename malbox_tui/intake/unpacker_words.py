"""What a confined unpacker may say, and what of it is believed."""

from __future__ import annotations

import re

import msgspec

from malbox_tui.model.sample import visible
from malbox_tui.model.submission import Refusal

MAX_REASON_CHARACTERS = 400


class Member(msgspec.Struct, frozen=True, tag_field="kind", tag="member"):
    """An entry begins; its name is the payload."""


class Content(msgspec.Struct, frozen=True, tag_field="kind", tag="content"):
    """A piece of it is the payload."""


class End(msgspec.Struct, frozen=True, tag_field="kind", tag="end"):
    """It is whole."""

    could_be_archive: bool


class Refused(msgspec.Struct, frozen=True, tag_field="kind", tag="refused"):
    """It can't be had."""

    code: str
    reason: str


class Done(msgspec.Struct, frozen=True, tag_field="kind", tag="done"):
    """The archive is over; `code` and `reason` say why, if not because of its end."""

    title: str
    code: str
    reason: str


class Whole(msgspec.Struct, frozen=True, tag_field="kind", tag="whole"):
    """It is to be taken as one file; with the code "sample" because it is a sample itself."""

    title: str
    code: str
    reason: str


Word = Member | Content | End | Refused | Done | Whole
WORDS = msgspec.json.Decoder(Word)

_CODE = re.compile(r"[a-z_]{1,32}")


def refusal(code: str, reason: str) -> Refusal:
    """As a confined process gives it: bounded, and safe to show."""
    return Refusal(code if _CODE.fullmatch(code) else "damaged", shown(reason))


def shown(text: str) -> str:
    """Bounded, and safe to show."""
    return visible(text[:MAX_REASON_CHARACTERS])
