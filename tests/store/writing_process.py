"""A process of its own that adds tasks to a store and prints each acknowledged id, until it is killed. Its argument is the store."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tests.store.builders import new_task, sqlite_store


async def main(path: Path) -> None:
    store = sqlite_store(path)
    await store.open(lambda events: None)

    async def add_for_ever(producer: int) -> None:
        number = 0
        while True:
            added = await store.add(new_task(f"{producer} {number}"))
            sys.stdout.write(f"{added.task.id} {added.task.sha256}\n")
            sys.stdout.flush()
            number += 1

    await asyncio.gather(*(add_for_ever(producer) for producer in range(8)))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
