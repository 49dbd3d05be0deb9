"""The plugin's main loop: `run` answers to the engine until it closes the wire.

Handlers run in the main thread, one at a time; a second thread reads the wire, so that a cancel gets through while a handler works.
"""

from __future__ import annotations

import inspect
import os
import queue
import socket
import sys
import threading
import traceback
from typing import TYPE_CHECKING, Any

from .context import Context
from .interrupt import Interrupts, TaskCanceled
from .orders import Order, order_of
from .values import Event, HealthStatus
from .wire import FD_VARIABLE, Header, Wire, WireClosed, WireError

if TYPE_CHECKING:
    import asyncio

MAX_TRACEBACK_BYTES = 64 * 1024


class Plugin:
    """Base of all plugins. Every handler may be `async def`; all do nothing here.

    A plugin that gains from seeing several samples at once may define, besides `on_task`, `on_batch(self, ctxs)`: it gets a list of
    contexts, at most 256. Their results are kept when it returns. When it raises, or takes too long, they are forgotten, and each task
    goes to `on_task` by itself.
    """

    def __init__(self) -> None:
        """Nothing to keep."""

    def on_task(self, ctx: Context) -> Any:
        """Analyse one sample. An exception fails this plugin's run."""

    def on_start(self, config: dict[str, str]) -> Any:
        """Prepare, once a process. An exception keeps the plugin from being ready."""

    def on_stop(self) -> Any:
        """Clean up; there is about a second for it."""

    def health_check(self) -> Any:
        """Whether the plugin can work; asked after `on_start` and on request."""
        return HealthStatus.Healthy()

    def on_event(self, event: Event) -> Any:
        """Something happened."""


def run(plugin: Plugin, name: str | None = None, version: str | None = None) -> None:
    """Serve the engine; returns when it has closed the wire. Raises RuntimeError where no engine started this process."""
    fd = os.environ.get(FD_VARIABLE, "")
    if not fd.isdigit():
        raise RuntimeError("this plugin was not started by an engine: add its folder to the plugins and submit a sample")
    with socket.socket(fileno=int(fd)) as connection:
        _Process(plugin, Wire(connection), name, version).serve()


class _Process:
    def __init__(self, plugin: Plugin, wire: Wire, name: str | None, version: str | None) -> None:
        self._plugin = plugin
        self._wire = wire
        self._identity = {"name": name or "", "version": version or ""}
        self._interrupts = Interrupts()
        self._inbox: queue.SimpleQueue[Header | Order | None] = queue.SimpleQueue()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._config: dict[str, str] = {}

    def serve(self) -> None:
        threading.Thread(target=self._read, name="wire", daemon=True).start()
        try:
            while (frame := self._inbox.get()) is not None:
                if not self._handle(frame):
                    break
        except WireClosed:
            pass
        finally:
            self._stop()

    def _read(self) -> None:
        order: Order | None = None
        try:
            while True:
                header, _payload = self._wire.receive()
                match header["kind"]:
                    case "run" | "batch":
                        order = order_of(header, self._config, self._send)
                        self._inbox.put(order)
                    case "cancel":
                        if order is not None and order.cancel(int(header["run"])):
                            self._interrupts.ask(order.number)
                    case _:
                        self._inbox.put(header)
        except (WireClosed, WireError):
            self._inbox.put(None)

    def _handle(self, frame: Header | Order) -> bool:
        if isinstance(frame, Order):
            self._carry_out(frame)
            return True
        match frame["kind"]:
            case "start":
                return self._start(frame)
            case "health":
                self._send({"kind": "health", **_health(self._call(self._plugin.health_check))})
            case "event":
                self._event(frame)
            case "stop":
                return False
        return True

    def _start(self, frame: Header) -> bool:
        self._config = {str(key): str(value) for key, value in frame.get("config", {}).items()}
        try:
            self._call(self._plugin.on_start, dict(self._config))
            health = _health(self._call(self._plugin.health_check))
        except Exception:  # noqa: BLE001 - whatever a plugin raises is told, not hidden
            self._send({"kind": "not_ready", "reason": ""}, _traceback())
            return False
        if health["state"] == "unhealthy":
            self._send({"kind": "not_ready", "reason": health["reason"]})
            return False
        self._flush()
        takes_batches = callable(getattr(self._plugin, "on_batch", None))
        takes_events = type(self._plugin).on_event is not Plugin.on_event
        said = {"takes_batches": takes_batches, "takes_events": takes_events}
        self._send({"kind": "ready", **self._identity, **health, **said})
        return True

    def _carry_out(self, order: Order) -> None:
        self._send({"kind": "begun", "run": order.number})
        end, payload = {"kind": "done", "run": order.number}, b""
        try:
            with self._interrupts.armed(order.number):
                self._call_with(order)
        except TaskCanceled:
            end["kind"] = "canceled"
        except WireClosed:
            raise
        except BaseException as exc:  # noqa: BLE001 - a plugin's SystemExit or KeyboardInterrupt is its failure, not the process's end
            end.update(kind="failed", error=type(exc).__name__)
            payload = _traceback()
        finally:
            for run in order.runs:
                run.end()
        self._flush()
        if order.is_batch and end["kind"] == "done":
            for run in order.runs:
                self._send({"kind": "canceled" if run.is_canceled else "done", "run": run.run})
        self._send(end, payload)

    def _call_with(self, order: Order) -> None:
        contexts = [Context(run) for run in order.runs]
        if order.is_batch:
            self._call(getattr(self._plugin, "on_batch"), contexts)  # noqa: B009 - the base class has none
        else:
            self._call(self._plugin.on_task, *contexts)

    def _event(self, frame: Header) -> None:
        event = Event(str(frame["event"]), frame.get("id"), frame.get("source"), frame.get("result_name"))
        try:
            self._call(self._plugin.on_event, event)
        except Exception:  # noqa: BLE001 - whatever a plugin raises is told, not hidden
            traceback.print_exc()
        self._flush()

    def _stop(self) -> None:
        try:
            self._call(self._plugin.on_stop)
        except Exception:  # noqa: BLE001 - whatever a plugin raises is told, not hidden
            traceback.print_exc()
        if self._loop is not None:
            self._loop.close()

    def _send(self, header: Header, payload: bytes | memoryview = b"") -> None:
        with self._interrupts.held():
            self._wire.send(header, payload)

    def _call(self, handler: Any, *arguments: Any) -> Any:
        answer = handler(*arguments)
        return self._drive(answer) if inspect.isawaitable(answer) else answer

    def _drive(self, awaitable: Any) -> Any:
        import asyncio  # here, for it is a third of the time and memory that a process without async handlers takes to start

        if self._loop is None:
            self._loop = asyncio.new_event_loop()
        task = asyncio.ensure_future(awaitable, loop=self._loop)  # noqa: TID251 - this is another process than the engine's
        try:
            return self._loop.run_until_complete(task)
        finally:
            self._cancel_leftovers(self._loop)

    @staticmethod
    def _cancel_leftovers(loop: asyncio.AbstractEventLoop) -> None:
        import asyncio

        if left := asyncio.all_tasks(loop):
            for task in left:
                task.cancel()
            loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))

    @staticmethod
    def _flush() -> None:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError, AttributeError):
                continue


def _health(status: Any) -> dict[str, str]:
    if not isinstance(status, HealthStatus):
        raise TypeError(f"health_check must return a HealthStatus, not {type(status).__name__}")
    return {"state": status.state, "reason": status.reason[:2000]}


def _traceback() -> bytes:
    text = traceback.format_exc().encode("utf-8", "backslashreplace")
    if len(text) <= MAX_TRACEBACK_BYTES:
        return text
    half = MAX_TRACEBACK_BYTES // 2
    return text[:half] + b"\n[...]\n" + text[-half:]
