"""Peers that need no server, each as its own documentation has it, in the durable mode that it has by default.

SqliteHuey syncs each commit (SQLite's own default), and keeps no record of a task that is done. persist-queue syncs likewise.
litequeue commits without a sync, so a power cut may take its latest tasks; it is measured with one, too. It is no engine, so a loop
stands for one. None of them can cancel a running task.
"""

from __future__ import annotations

import itertools
import tempfile
import threading
import time

from tests.benchmarks.workload import PAUSE_S, PRODUCERS, WORKERS, Measured, Workload, in_threads, processor_s

POLL_FIRST_S, POLL_AT_MOST_S = 0.01, 0.1
"""How often an idle worker of huey looks: a hundredth of its default, without which a dispatch would take seconds."""
LOOK_S = 0.1


def huey(_address: str, load: Workload) -> Measured:
    """SqliteHuey with threads as producers and workers."""
    from huey import SqliteHuey  # type: ignore[import-untyped]
    from huey.signals import SIGNAL_COMPLETE  # type: ignore[import-untyped]

    with tempfile.TemporaryDirectory() as folder:
        queue = SqliteHuey("benchmark", filename=f"{folder}/huey.db")
        completed, all_completed, entered = itertools.count(1), threading.Event(), threading.Event()
        entered_at: list[float] = []

        @queue.task()  # type: ignore[untyped-decorator]
        def no_op(number: int) -> None: ...

        @queue.task()  # type: ignore[untyped-decorator]
        def watched(number: int) -> None:
            entered_at.append(time.perf_counter())
            entered.set()

        @queue.signal(SIGNAL_COMPLETE)  # type: ignore[untyped-decorator]
        def count(_signal: str, _task: object) -> None:
            if next(completed) == load.tasks:
                all_completed.set()

        workers = queue.create_consumer(
            workers=WORKERS, worker_type="thread", periodic=False, initial_delay=POLL_FIRST_S, max_delay=POLL_AT_MOST_S
        )
        workers.start()
        before, start = processor_s(), time.perf_counter()
        list(in_threads(PRODUCERS, lambda producer: [no_op(number) for number in range(producer, load.tasks, PRODUCERS)]))
        all_completed.wait()
        tasks_per_s, processor_us = load.tasks / (time.perf_counter() - start), (processor_s() - before) / load.tasks * 1e6
        dispatch_ms = []
        for number in range(load.dispatches):
            time.sleep(PAUSE_S)
            entered.clear()
            enqueued_at = time.perf_counter()
            watched(number)
            entered.wait()
            dispatch_ms.append((entered_at[-1] - enqueued_at) * 1e3)
        workers.stop(graceful=False)
    return Measured(tasks_per_s, processor_us, dispatch_ms)


def persist_queue(_address: str, load: Workload) -> Measured:
    """SQLiteAckQueue with threads as producers and workers: put, get, ack."""
    from persistqueue import Empty, SQLiteAckQueue

    with tempfile.TemporaryDirectory() as folder:
        queue = SQLiteAckQueue(folder, multithreading=True, auto_commit=True)
        acknowledged, all_acknowledged = itertools.count(1), threading.Event()

        def work(_worker: int) -> None:
            while not all_acknowledged.is_set():
                try:
                    item = queue.get(timeout=LOOK_S)
                except Empty:
                    continue
                queue.ack(item)
                if next(acknowledged) == load.tasks:
                    all_acknowledged.set()

        before, start = processor_s(), time.perf_counter()
        workers = list(in_threads(WORKERS, work))
        list(in_threads(PRODUCERS, lambda producer: [queue.put(number) for number in range(producer, load.tasks, PRODUCERS)]))
        all_acknowledged.wait()
        measured = Measured(load.tasks / (time.perf_counter() - start), (processor_s() - before) / load.tasks * 1e6)
        for worker in workers:
            worker.join()
        queue.close()
    return measured


def litequeue_synced(_address: str, load: Workload) -> Measured:
    """LiteQueue as no default of it has it: each commit is synced."""
    return _litequeue(load, synchronous="FULL")


def litequeue(_address: str, load: Workload) -> Measured:
    """LiteQueue as it is."""
    return _litequeue(load)


def _litequeue(load: Workload, synchronous: str = "") -> Measured:
    """Put all, then pop and done; in one thread, which is what its one connection is for."""
    from litequeue import LiteQueue  # type: ignore[import-untyped]

    with tempfile.TemporaryDirectory() as folder:
        queue = LiteQueue(f"{folder}/litequeue.db")
        if synchronous:
            queue.conn.execute(f"PRAGMA synchronous = {synchronous}")
        before, start = processor_s(), time.perf_counter()
        for number in range(load.tasks):
            queue.put(str(number))
        for _ in range(load.tasks):
            queue.done(queue.pop().message_id)
        return Measured(load.tasks / (time.perf_counter() - start), (processor_s() - before) / load.tasks * 1e6)
