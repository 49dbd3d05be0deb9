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
        try:
            async with clock.within(within_s):
                return await work
        except GuestUnreachable:
            raise
        except MachineError as error:
            self.note(f"could not {what}: {error.problem}")
        except MalboxError as error:
            self.note(f"could not {what}: {error}")
        except TimeoutError:
            self.note(f"could not {what} within {within_s:g} s")
        except asyncio.CancelledError as error:
            if was_cancelled():
                raise
            self._broke(what, error)
        except Exception as error:  # noqa: BLE001 - an adapter's fault costs no more than what it was asked for
            self._broke(what, error)
        return None

    def note(self, what: str) -> None:
        """Something is missing of what the run could have found."""
        self.notes.append(what.rstrip("."))

    def _broke(self, what: str, error: BaseException) -> None:
        log.error("an adapter of machine %s broke", self._machine, exc_info=error)
        self.note(f"could not {what}: its adapter broke: {type(error).__name__}: {error}".rstrip(": "))
