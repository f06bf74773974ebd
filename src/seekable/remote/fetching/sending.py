"""One request to a store, sent as often as it takes: places, pace, hedges, retries and errors."""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar, final

from seekable.errors import SeekableError, Unreachable
from seekable.remote.fetching.budget import Measured, at_once_for
from seekable.remote.fetching.pace import Pace, Retrying, answer_seconds
from seekable.remote.stores.store import Passing

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from seekable.remote.fetching.fetch_report import FetchCounts
    from seekable.remote.fetching.pace import Patience
    from seekable.remote.stores.store import Store

__all__ = ["Places", "Request", "Sender", "hedge_after", "may_hedge"]

T = TypeVar("T")

_RATE, _BURST = 2000.0, 64.0
_LATENCY, _LINK = 0.03, 125e6
_FAST_LINK, _CONNECTION = 600e6, 80e6
_SMOOTHING = 0.05
_random = random.SystemRandom()
"""The source of jitter: it leaves the generators of the user alone, and differs in forked children."""
_LONG_WAIT = 0.25
"""A request that waits longer than this for the pace gives its place to requests to other stores."""

_HEDGED_BYTES: Final = 8 << 20
"""Longer requests are never sent a second time."""

_HEDGES = 0.05
_CALM_SECONDS = 1.0
_LEAST_AGE = 0.05
_UNKNOWN_AGE = 1.0
_SLOW_LINK = 25e6


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request to a store, with what its sender needs."""

    store: Store
    shown: Callable[[], str]
    """Returns the object and the range for messages."""
    size: int
    """The bytes that are sent or received; 0 if they are few."""
    may_hedge: bool
    """True if it may be sent a second time when it is late."""
    patience: Patience
    """The bounds of its tries."""
    demanded: Callable[[], bool]
    """Returns True if somebody waits for the answer."""


@final
@dataclass(slots=True)
class _Manner:
    """The pace and the measured figures of requests to one store."""

    pace: Pace
    measured: Measured = field(default_factory=lambda: Measured(latency=_LATENCY, link=_LINK))


@final
class Sender:
    """Sends requests from one event loop, and remembers which have no answer yet."""

    def __init__(self, places: Places, counts: FetchCounts, *, processes: int) -> None:
        """Begin without requests; nothing is sent yet.

        Args:
            places: the requests at once.
            counts: counts requests.
            processes: the number of processes that share what a store permits.
        """
        self._places = places
        self._counts = counts
        self._rate = max(1.0, _RATE / processes)
        self._manners: dict[str, _Manner] = {}
        self._last_store: Store | None = None
        self._last = _Manner(Pace(self._rate, _BURST))
        self._mean_bytes = 0.0
        self._open: dict[int, tuple[Request, float]] = {}
        self._number = 0

    async def send(self, request: Request, once: Callable[[], Awaitable[T]]) -> T:
        """Send a request until it is answered, and return the answer.

        Args:
            request: describes it.
            once: sends it once.

        Raises:
            Unreachable: it failed as often as permitted; the message has the last answer.
            SeekableError: the error of the store. It ends with what the store lacks.
        """
        try:
            return await self._repeated(request, once)
        except SeekableError as error:
            lacks = getattr(request.store, "lacks", "")
            if not lacks:
                raise
            raise type(error)(f"{error}; {lacks}") from error.__cause__

    async def _repeated(self, request: Request, once: Callable[[], Awaitable[T]]) -> T:
        manner = self._manner(request.store)
        retrying = Retrying(request.patience, time.monotonic())
        while True:
            try:
                answer = await self._in_turn(request, manner, once)
            except Passing as error:
                failure = error
            else:
                manner.pace.answered(time.monotonic())
                return answer
            now = time.monotonic()
            if failure.refused:
                self._counts.refusals += 1
                manner.pace.refused(now, retry_after=failure.retry_after)
            share = _random.random()
            wait = retrying.wait_after_failure(now, share=share, retry_after=failure.retry_after)
            if wait is None:
                raise _given_up(request.shown(), retrying, failure) from failure
            self._counts.retries += 1
            await asyncio.sleep(wait)

    @property
    def measured(self) -> Measured:
        """The figures of the store that was read last; assumed ones before the first request."""
        return self._last.measured

    def oldest(self) -> str | None:
        """Return the request that has waited longest for its answer, and since when; None if none waits."""
        request, began = min(self._open.copy().values(), key=lambda found: found[1], default=(None, 0.0))
        return f"{request.shown()}, sent {time.monotonic() - began:.1f} s ago" if request else None

    def _manner(self, store: Store) -> _Manner:
        if store is not self._last_store:
            name = store.shown("")
            found = self._manners.get(name)
            if found is None:
                found = self._manners[name] = _Manner(Pace(self._rate, _BURST))
            self._last, self._last_store = found, store
        return self._last

    async def _in_turn(self, request: Request, manner: _Manner, once: Callable[[], Awaitable[T]]) -> T:
        """Send a request when there is a place and the pace permits it."""
        await self._places.take(demanded=request.demanded())
        has_place = True
        try:
            wait = manner.pace.reserve(time.monotonic())
            while wait > 0.0:
                if wait > _LONG_WAIT:
                    self._places.give_back()
                    has_place = False
                await asyncio.sleep(wait)
                if not has_place:
                    await self._places.take(demanded=request.demanded())
                    has_place = True
                wait = manner.pace.stop_left(time.monotonic())
            return await self._hedged(request, manner, once)
        finally:
            if has_place:
                self._places.give_back()

    async def _hedged(self, request: Request, manner: _Manner, once: Callable[[], Awaitable[T]]) -> T:
        """Send a request once, and a second time if it is late; the first answer wins."""
        size = request.size
        expected, p95 = manner.measured.quantiles(size) or (None, None)
        most = answer_seconds(size, expected=expected)
        if not request.may_hedge:
            return await _within(self._once(request, manner, once), most)
        late = hedge_after(size, expected=expected, p95=p95)
        until = time.monotonic() + most
        tasks = {asyncio.ensure_future(self._once(request, manner, once))}
        extra = 0
        try:
            while True:
                left = max(0.0, until - time.monotonic())
                done, _ = await asyncio.wait(
                    tasks, timeout=min(late, left), return_when=asyncio.FIRST_COMPLETED
                )
                tasks -= done
                good = [task for task in done if task.exception() is None]
                if good or (done and not tasks):
                    return (good or [*done])[0].result()
                if left <= late and not done:
                    raise Passing(f"no answer in {most:.0f} s")
                if not done and not extra and self._may_hedge(size, manner):
                    await self._places.take(demanded=True)
                    extra = 1
                    self._counts.hedges += 1
                    tasks.add(asyncio.ensure_future(self._once(request, manner, once)))
        finally:
            for task in tasks:
                task.cancel()
            if extra:
                self._places.give_back()

    def _may_hedge(self, size: int, manner: _Manner) -> bool:
        return may_hedge(
            size,
            hedges=self._counts.hedges,
            requests=self._counts.requests,
            since_refusal=manner.pace.seconds_since_refusal(time.monotonic()),
            is_place_free=self._places.is_free,
        )

    async def _once(self, request: Request, manner: _Manner, once: Callable[[], Awaitable[T]]) -> T:
        self._number += 1
        number, began = self._number, time.monotonic()
        self._open[number] = request, began
        self._counts.requests += 1
        try:
            answer = await once()
        finally:
            del self._open[number]
        now = time.monotonic()
        self._counts.latencies.append(now - began)
        if request.may_hedge:
            self._counts.fetched_bytes += request.size
            manner.measured.answered(now, size=request.size, seconds=now - began)
            self._adapt(manner.measured, request.size)
        return answer

    def _adapt(self, measured: Measured, size: int) -> None:
        """Permit as many requests at once as a fast link needs for requests of the latest sizes."""
        self._mean_bytes += _SMOOTHING * (size - self._mean_bytes)
        at_once = at_once_for(
            rate=max(measured.link, _FAST_LINK),
            latency=measured.latency,
            connection=_CONNECTION,
            request_bytes=round(self._mean_bytes),
        )
        if at_once != self._places.at_once:
            self._places.set_at_once(at_once)


async def _within(work: Awaitable[T], seconds: float) -> T:
    """Return the result of some work that may take only so long.

    Raises:
        Passing: it took longer.
    """
    try:
        async with asyncio.timeout(seconds):
            return await work
    except TimeoutError:
        raise Passing(f"no answer in {seconds:.0f} s") from None


def _given_up(shown: str, retrying: Retrying, failure: Passing) -> Unreachable:
    seconds = time.monotonic() - retrying.began
    return Unreachable(
        f"{shown}: {retrying.tries} tries in {seconds:.0f} s failed; the last one: {failure}; "
        f"check the network and the store, and run again: nothing is lost"
    )


def hedge_after(size: int, *, expected: float | None, p95: float | None) -> float:
    """Return the age in seconds from which a request is late.

    Args:
        size: the bytes of the request.
        expected: the median latency of requests of about this size; None if it is not known yet.
        p95: the latency that 95 % of them do not exceed; None if it is not known yet.

    Example:
        >>> hedge_after(4096, expected=0.03, p95=0.2)
        0.2
        >>> hedge_after(25_000_000, expected=None, p95=None)
        2.0
    """
    if expected is None or p95 is None:
        return _UNKNOWN_AGE + size / _SLOW_LINK
    return max(_LEAST_AGE, 3 * expected, p95)


def may_hedge(size: int, *, hedges: int, requests: int, since_refusal: float, is_place_free: bool) -> bool:
    """Return True if a late request may be sent a second time.

    Args:
        size: the bytes of the request.
        hedges: the number of requests that were sent a second time before.
        requests: the number of requests before; at most 5 % of them are sent a second time.
        since_refusal: the seconds since the store refused a request because there were too many.
        is_place_free: True if no other request waits to be sent.

    Example:
        >>> may_hedge(4096, hedges=4, requests=100, since_refusal=9.0, is_place_free=True)
        True
        >>> may_hedge(4096, hedges=5, requests=100, since_refusal=9.0, is_place_free=True)
        False
    """
    if size > _HEDGED_BYTES or not is_place_free or since_refusal < _CALM_SECONDS:
        return False
    return hedges < max(1.0, _HEDGES * requests)


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
