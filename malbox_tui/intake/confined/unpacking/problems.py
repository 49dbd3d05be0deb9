"""What goes wrong with archives, as codes that scripts may rely on and sentences for a person."""

from __future__ import annotations

import lzma
import zlib


class UnpackingProblem(Exception):
    """`code` is stable, `reason` a sentence."""

    def __init__(self, code: str, reason: str) -> None:
        self.code = code
        self.reason = reason
        super().__init__(reason)


class BrokenArchive(UnpackingProblem):
    """The archive can't be read, or not any further."""


class SpoiltMember(UnpackingProblem):
    """One member can't be had; the others may."""


class IsSample(UnpackingProblem):
    """The archive is a sample itself: a document, a program."""


class LimitReached(UnpackingProblem):
    """A limit ends the whole unpacking. `code` is the limit's name."""


PASSWORD_CODE = "password"


def wrong_password(tried: int) -> tuple[str, str]:
    """Code and sentence for something encrypted that none of the passwords opens."""
    return PASSWORD_CODE, f"It is encrypted, and none of the {tried} passwords that were tried opens it. Give the right one."


def damaged(detail: str) -> tuple[str, str]:
    """Code and sentence for content that doesn't decode."""
    return "damaged", f"It is damaged: {detail[:300]}."


def as_problem(exc: BaseException) -> tuple[str, str]:
    """Code and sentence for what a library raised on hostile bytes."""
    if isinstance(exc, UnpackingProblem):
        return exc.code, exc.reason
    if isinstance(exc, MemoryError):
        return "memory", "Unpacking it takes more memory than the unpacker may use."
    if isinstance(exc, RecursionError):
        return damaged("its structure is nested too deeply")
    if isinstance(exc, EOFError):
        return damaged(str(exc) or "it ends too early")
    if isinstance(exc, zlib.error | lzma.LZMAError):
        return damaged(str(exc) or "its compressed data is wrong")
    return damaged(f"{type(exc).__name__}: {exc}" if str(exc) else type(exc).__name__)
