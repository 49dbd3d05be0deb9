"""Textual's driver for a terminal, made safe at the side of its input. What a terminal sends is taken apart by `terminal_input.py`.

Textual's own driver dies of one byte that is no UTF-8 (a dropped name, an old mouse report after a tmux re-attach), lets ESC inside a
paste out as keys, and takes a dropped path that a terminal types for commands. Only its reading thread is replaced; if a release of
Textual changes that thread, compare with `LinuxDriver.run_input_thread`.
"""

from __future__ import annotations

import os
import selectors
import time

from textual import constants, events
from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver

from malbox_tui.tui.terminal_input import EscapeKey, Keys, Pasted, Piece, TerminalInput

READ_BYTES = 16 * 1024
LONGEST_WAIT_S = 0.1
"""The thread looks this often whether it is to end, as Textual's own does."""

REMINDER_S = 1.0
"""A terminal that forgot the mouse's form is told again, but not at each report."""


class TerminalDriver(LinuxDriver):
    """The whole screen of a terminal (not inline)."""

    def run_input_thread(self) -> None:
        """See `LinuxDriver`: read until the app ends, or the terminal is gone."""
        parser = XTermParser(self._debug)
        taken_apart = TerminalInput(constants.ESCAPE_DELAY)
        reminded_at = float("-inf")

        def pass_on(pieces: list[Piece]) -> None:
            nonlocal reminded_at
            for piece in pieces:
                match piece:
                    case Keys(text):
                        for message in parser.feed(text):
                            self.process_message(message)
                    case Pasted(text):
                        self.process_message(events.Paste(text.replace("\0", "")))
                    case EscapeKey():
                        self.process_message(events.Key("escape", "\x1b"))
                    case _ if time.monotonic() - reminded_at >= REMINDER_S:
                        reminded_at = time.monotonic()
                        self._enable_mouse_support()

        with selectors.SelectSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            while not self.exit_event.is_set():
                if selector.select(taken_apart.wait_s(time.monotonic(), LONGEST_WAIT_S)):
                    read = _read(self.fileno)
                    if not read:
                        break
                    pass_on(taken_apart.feed(read, time.monotonic()))
                pass_on(taken_apart.due(time.monotonic()))
                for message in parser.tick():
                    self.process_message(message)


def _read(descriptor: int) -> bytes:
    """Empty when the terminal is gone: whoever handles the hang-up ends the app."""
    try:
        return os.read(descriptor, READ_BYTES)
    except OSError:
        return b""
