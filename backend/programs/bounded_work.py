"""Work of a thread that ends with the task which waits for it."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from indexing.runtime.deadline import Deadline

Found = TypeVar("Found")


async def run_bounded(work: Callable[[Deadline], Found], deadline: Deadline) -> Found:
    """Run `work` in a thread; its deadline ends when the task is cancelled."""
    with deadline.ended_with_block() as bounded:
        return await asyncio.to_thread(work, bounded)
