"""Several works at once, of which the first to fail ends the others."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


async def together(*works: Coroutine[Any, Any, Any]) -> list[Any]:
    """What each of `works` gives, all done at once. The first error ends the others and is raised. Cancelled: all are.

    A group whose task fails while it is waited for leaves its own task counted as cancelled (Python 3.11), so that nobody can tell
    any more whether somebody cancelled it. Here no task of the group fails.
    """
    errors: list[Exception] = []
    tasks: list[asyncio.Task[Any]] = []

    async def one(work: Coroutine[Any, Any, Any]) -> Any:
        try:
            return await work
        except Exception as error:
            errors.append(error)
            for task in tasks:
                task.cancel()
            raise asyncio.CancelledError from error

    try:
        async with asyncio.TaskGroup() as group:
            tasks += [group.create_task(one(work)) for work in works]
    finally:
        for work in works:
            work.close()  # one that was cancelled before it began
    if errors:
        raise errors[0]
    return [task.result() for task in tasks]
