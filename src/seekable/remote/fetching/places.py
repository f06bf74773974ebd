"""The requests that may be under way at once: reads that somebody waits for come before reads ahead."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import final

__all__ = ["Places"]


@final
class Places:
    """A semaphore of one event loop with two queues. The most at once may change at any time."""

    def __init__(self, *, at_once: int) -> None:
        """Start with all places free.

        Args:
            at_once: the most requests at once.
        """
        self._at_once = at_once
        self._open = 0
        self._queues: tuple[deque[asyncio.Future[None]], deque[asyncio.Future[None]]] = deque(), deque()

    @property
    def at_once(self) -> int:
        """The most requests at once."""
        return self._at_once

    @property
    def is_free(self) -> bool:
        """True if a place is free and nobody waits for one."""
        return self._open < self._at_once and not any(self._queues)

    def set_at_once(self, at_once: int) -> None:
        """Change the most requests at once; requests that are under way go on."""
        self._at_once = at_once
        self._fill()

    async def take(self, *, demanded: bool) -> None:
        """Wait for a place and take it.

        Args:
            demanded: True if somebody waits for the request; it then comes before all others.
        """
        if self.is_free:
            self._open += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queues[0 if demanded else 1].append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.give_back()
            raise

    def give_back(self) -> None:
        """Free a place, which goes to the first request that waits."""
        self._open -= 1
        self._fill()

    def _fill(self) -> None:
        for queue in self._queues:
            while queue and self._open < self._at_once:
                turn = queue.popleft()
                if not turn.done():
                    self._open += 1
                    turn.set_result(None)
