"""Steps of a run in a guest that may fail without ending it: what could not be done is noted in words, and the run goes on."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from typing import TypeVar

from malbox_tui.engine import clock
from malbox_tui.engine.tracker import was_cancelled
from malbox_tui.model.errors import GuestUnreachable, MachineError, MalboxError

log = logging.getLogger(__name__)

T = TypeVar("T")


class Steps:
    """The steps of one run. `notes`: what could not be done, each in a sentence without a capital and a stop."""

    def __init__(self, machine: str) -> None:
        self.notes: list[str] = []
        self._machine = machine

    async def try_to(self, what: str, work: Awaitable[T], within_s: float) -> T | None:
        """What `work` gives; None when that could not be had, which is noted as "could not `what`".

        Raises `GuestUnreachable`: a guest that answers no more is asked for nothing else.
        """
        given, problem = await self.attempt(what, work, within_s)
        if problem:
            self.note(problem)
        return given

    async def attempt(self, what: str, work: Awaitable[T], within_s: float) -> tuple[T | None, str]:
        """As `try_to`; why it could not be had is not noted but given."""
        try:
            async with clock.within(within_s):
                return await work, ""
        except GuestUnreachable:
            raise
        except MachineError as error:
            problem = f"could not {what}: {error.problem}"
        except MalboxError as error:
            problem = f"could not {what}: {error}"
        except TimeoutError:
            problem = f"could not {what} within {within_s:g} s"
        except asyncio.CancelledError as error:
            if was_cancelled():
                raise
            problem = self._broken(what, error)
        except Exception as error:  # noqa: BLE001 - an adapter's fault costs no more than what it was asked for
            problem = self._broken(what, error)
        return None, problem.rstrip(".")

    def note(self, what: str) -> None:
        """Something is missing of what the run could have found."""
        self.notes.append(what.rstrip("."))

    def _broken(self, what: str, error: BaseException) -> str:
        log.error("an adapter of machine %s broke", self._machine, exc_info=error)
        return f"could not {what}: its adapter broke: {type(error).__name__}: {error}".rstrip(": ")
