"""One request to a store, sent as often as it takes: places, pace, retries and errors."""

from __future__ import annotations

import asyncio
import random
import time
from typing import TYPE_CHECKING, TypeVar, final

from seekable.errors import Unreachable
from seekable.remote.fetching.retries import Patience, Retrying
from seekable.remote.stores.store import Passing

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from seekable.remote.fetching.places import Places
    from seekable.remote.fetching.report import FetchCounts

__all__ = ["Sender"]

T = TypeVar("T")


@final
class Sender:
    """Sends requests from one event loop, and remembers which have no answer yet."""

    def __init__(self, places: Places, counts: FetchCounts) -> None:
        """Send nothing yet."""
        self._places = places
        self._counts = counts
        self._open: dict[int, tuple[str, float]] = {}
        self._number = 0

    async def send(
        self, request: Callable[[], Awaitable[T]], *, shown: str, demanded: Callable[[], bool]
    ) -> T:
        """Send a request until it is answered, and return the answer.

        Args:
            request: sends it once.
            shown: the object and the range in messages.
            demanded: returns True if somebody waits for the answer.

        Raises:
            Unreachable: it failed as often as permitted; the message has the last answer.
        """
        retrying = Retrying(Patience(), time.monotonic())
        while True:
            await self._places.take(demanded=demanded())
            try:
                return await self._once(request, shown)
            except Passing as error:
                failure = error
            finally:
                self._places.give_back()
            self._counts.refusals += failure.refused
            wait = retrying.wait_after_failure(
                time.monotonic(),
                share=random.random(),  # noqa: S311 - no secret
                retry_after=failure.retry_after,
            )
            if wait is None:
                raise _given_up(shown, retrying, failure) from failure
            self._counts.retries += 1
            await asyncio.sleep(wait)

    def oldest(self) -> str | None:
        """Return the request that has waited longest for its answer, and since when; None if none waits."""
        shown, began = min(self._open.copy().values(), key=lambda found: found[1], default=("", 0.0))
        return f"{shown}, sent {time.monotonic() - began:.1f} s ago" if shown else None

    async def _once(self, request: Callable[[], Awaitable[T]], shown: str) -> T:
        self._number += 1
        number, began = self._number, time.monotonic()
        self._open[number] = shown, began
        self._counts.requests += 1
        try:
            answer = await request()
        finally:
            del self._open[number]
        self._counts.latencies.append(time.monotonic() - began)
        return answer


def _given_up(shown: str, retrying: Retrying, failure: Passing) -> Unreachable:
    seconds = time.monotonic() - retrying.began
    return Unreachable(
        f"{shown}: {retrying.tries} tries in {seconds:.0f} s failed; the last one: {failure}; "
        f"check the network and the store, and run again: nothing is lost"
    )
